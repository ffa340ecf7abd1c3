//! The parameters of a run in the words of the dialogue and of the screens.

use crate::exchange::{
    self, Atomic, Connection, Ending, Measurement, Method, PlanInput, Side, Units,
};
use crate::options::{AtomicOperation, ConnectionType, Length, Params, Sizes, Test, Tool, Verb};

impl Tool {
    /// The tool as the dialogue names it, without immediate data.
    pub(crate) fn on_wire(self) -> exchange::Tool {
        exchange::Tool {
            verb: match self.verb {
                Verb::Send => exchange::Verb::Send,
                Verb::Write => exchange::Verb::Write,
                Verb::Read => exchange::Verb::Read,
                Verb::Atomic => exchange::Verb::Atomic,
            },
            measurement: match self.test {
                Test::Bandwidth => Measurement::Bandwidth,
                Test::Latency => Measurement::Latency,
            },
        }
    }
}

impl Params {
    /// Which end of the control connection this is.
    pub(crate) fn side(&self) -> Side {
        match self.host {
            Some(_) => Side::Client,
            None => Side::Server,
        }
    }

    /// The tool as the dialogue names it.
    pub(crate) fn wire_tool(&self) -> exchange::Tool {
        let mut tool = self.tool.on_wire();
        tool.verb = match tool.verb {
            exchange::Verb::Send if self.with_imm => exchange::Verb::SendImm,
            exchange::Verb::Write if self.with_imm => exchange::Verb::WriteImm,
            verb => verb,
        };
        tool
    }

    /// The transport service.
    pub(crate) fn wire_connection(&self) -> Connection {
        match self.connection {
            ConnectionType::Rc => Connection::Rc,
            ConnectionType::Uc => Connection::Uc,
            ConnectionType::Ud => Connection::Ud,
            ConnectionType::Xrc => Connection::Xrc,
            ConnectionType::Dc => Connection::Dc,
            ConnectionType::Srd => Connection::Srd,
        }
    }

    /// The atomic operation, for ATOMIC.
    pub(crate) fn wire_atomic(&self) -> Atomic {
        match self.atomic {
            AtomicOperation::FetchAndAdd if self.verb() == Verb::Atomic => Atomic::FetchAdd,
            // The number 0, which the other verbs send.
            AtomicOperation::FetchAndAdd | AtomicOperation::CompareAndSwap => Atomic::CompareSwap,
        }
    }

    /// One size, all sizes, endless.
    pub(crate) fn method(&self) -> Method {
        match (self.length, self.sizes) {
            (Length::Infinite { .. }, _) => Method::Infinite,
            (_, Sizes::All) => Method::All,
            (_, Sizes::One(_)) => Method::Regular,
        }
    }

    /// What ends the test; stock makes an endless one a timed one.
    pub(crate) fn ending(&self) -> Ending {
        match self.length {
            Length::Iterations(_) => Ending::Iterations,
            Length::Timed { .. } | Length::Infinite { .. } => Ending::Duration,
        }
    }

    /// The unit of bandwidth.
    pub(crate) fn units(&self) -> Units {
        match self.report.gbits {
            true => Units::Gbits,
            false => Units::Mib,
        }
    }

    /// What decides the sequence of the dialogue; `sizes` as `-a` has them.
    pub(crate) fn plan_input(&self, sizes: u32) -> PlanInput {
        PlanInput {
            tool: self.wire_tool(),
            method: self.method(),
            sizes,
            ending: self.ending(),
            duplex: self.bidirectional,
            data_validation: false,
            cm_connected: false,
        }
    }
}
