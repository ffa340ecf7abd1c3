//! What a test posts: its operation, with the operands that stock uses.

use verbs_sys::{RemoteAddress, SendOp};

use crate::options::Params;
use crate::words::{Atomic, Verb};

/// The operation under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Operation {
    /// SEND.
    Send,
    /// SEND with immediate data.
    SendImm,
    /// RDMA WRITE.
    Write,
    /// RDMA WRITE with immediate data.
    WriteImm,
    /// RDMA READ.
    Read,
    /// Fetch and add.
    FetchAdd,
    /// Compare and swap.
    CompareSwap,
}

impl Operation {
    /// The one that the parameters ask for.
    pub(crate) fn of(params: &Params) -> Self {
        match (params.wire_tool().verb, params.atomic) {
            (Verb::Send, _) => Self::Send,
            (Verb::SendImm, _) => Self::SendImm,
            (Verb::Write, _) => Self::Write,
            (Verb::WriteImm, _) => Self::WriteImm,
            (Verb::Read, _) => Self::Read,
            (Verb::Atomic, Atomic::FetchAdd) => Self::FetchAdd,
            (Verb::Atomic, Atomic::CompareSwap) => Self::CompareSwap,
        }
    }

    /// The operation on a place in the peer's memory, if it works on one.
    /// Nobody looks at the immediate data, only whether there is any.
    #[inline]
    pub(crate) fn at(self, remote: RemoteAddress) -> SendOp {
        match self {
            Self::Send => SendOp::Send,
            Self::SendImm => SendOp::SendImm { imm: 0 },
            Self::Write => SendOp::Write { remote },
            Self::WriteImm => SendOp::WriteImm { remote, imm: 0 },
            Self::Read => SendOp::Read { remote },
            Self::FetchAdd => SendOp::FetchAdd { remote, add: 1 },
            Self::CompareSwap => SendOp::CompareSwap {
                remote,
                compare: 0,
                swap: 0,
            },
        }
    }

    /// Whether the message travels with the request, so that it may be inline.
    pub(crate) fn carries_message(self) -> bool {
        !matches!(self, Self::Read | Self::FetchAdd | Self::CompareSwap)
    }

    /// Whether the peer learns of the message by its bytes alone.
    pub(crate) fn tells_nobody(self) -> bool {
        self == Self::Write
    }

    /// Whether the message goes where the peer has posted a receive, instead
    /// of where the request says.
    pub(crate) fn fills_receives(self) -> bool {
        matches!(self, Self::Send | Self::SendImm)
    }
}
