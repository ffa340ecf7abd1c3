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
        self.method() == Method::All || self.repeat > 1
    }

    /// Whether both ends take part in the loop, so that both have to measure
    /// equally often. Else the active end does, and the other doesn't notice.
    pub(crate) fn repeats_with_peer(&self) -> bool {
        self.bidirectional
            || self.has_receive_completions()
            || (!self.tool.is_bandwidth() && !self.tool.verb.is_round_trip())
    }

    /// What decides the sequence of the dialogue; `sizes` as `-a` has them.
    pub(crate) fn plan_input(&self) -> PlanInput {
        // Measuring again is to the dialogue what the next size is.
        let method = match self.repeat > 1 && self.repeats_with_peer() {
            true => Method::All,
            false => self.method(),
        };
        PlanInput {
            tool: self.wire_tool(),
            method,
            sizes: self.sizes.count() * self.repeat,
            ending: self.ending(),
            duplex: self.bidirectional,
            data_validation: self.data_validation,
            cm_connected: self.control.rdma_cm_qps,
        }
    }
}
