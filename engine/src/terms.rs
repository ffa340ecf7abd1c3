//! The parameters of a run in the words of the dialogue and of the screens.

use crate::exchange::PlanInput;
use crate::options::{Length, Params, Sizes};
use crate::words::{Atomic, Ending, Method, Side, Tool, Units, Verb};

impl Params {
    /// Which end of the control connection this is.
    pub(crate) fn side(&self) -> Side {
        match self.host {
            Some(_) => Side::Client,
            None => Side::Server,
        }
    }

    /// The tool with immediate data, if any.
    pub(crate) fn wire_tool(&self) -> Tool {
        let verb = match self.tool.verb {
            Verb::Send if self.with_imm => Verb::SendImm,
            Verb::Write if self.with_imm => Verb::WriteImm,
            verb => verb,
        };
        Tool::new(verb, self.tool.measurement)
    }

    /// The atomic operation; the other verbs send the number 0.
    pub(crate) fn wire_atomic(&self) -> Atomic {
        match self.tool.verb {
            Verb::Atomic => self.atomic,
            _ => Atomic::CompareSwap,
        }
    }

    /// One size, all sizes, endless.
    pub(crate) fn method(&self) -> Method {
        match (self.length, self.sizes) {
            (Length::Infinite { .. }, _) => Method::Infinite,
            (_, Sizes::All { .. }) => Method::All,
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

    /// Whether a test has several rows, and an end.
    pub(crate) fn has_many_rows(&self) -> bool {
        self.method() == Method::All
    }

    /// What decides the sequence of the dialogue; `sizes` as `-a` has them.
    pub(crate) fn plan_input(&self) -> PlanInput {
        PlanInput {
            tool: self.wire_tool(),
            method: self.method(),
            sizes: self.sizes.count(),
            ending: self.ending(),
            duplex: self.bidirectional,
            data_validation: false,
            cm_connected: false,
        }
    }
}
