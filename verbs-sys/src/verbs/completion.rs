//! Work completions.

use std::fmt;

/// `enum ibv_wc_status`: how a work request ended (IBTA 11.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
#[allow(missing_docs, reason = "named and described by as_str()")]
pub enum WcStatus {
    #[default]
    Success = 0,
    LocalLengthError = 1,
    LocalQpOperationError = 2,
    LocalEecOperationError = 3,
    LocalProtectionError = 4,
    WorkRequestFlushed = 5,
    MemoryWindowBindError = 6,
    BadResponse = 7,
    LocalAccessError = 8,
    RemoteInvalidRequest = 9,
    RemoteAccessError = 10,
    RemoteOperationError = 11,
    RetryExceeded = 12,
    RnrRetryExceeded = 13,
    LocalRddViolation = 14,
    RemoteInvalidRdRequest = 15,
    RemoteAborted = 16,
    InvalidEecNumber = 17,
    InvalidEecState = 18,
    Fatal = 19,
    ResponseTimeout = 20,
    General = 21,
}

impl WcStatus {
    const ALL: [Self; 22] = [
        Self::Success,
        Self::LocalLengthError,
        Self::LocalQpOperationError,
        Self::LocalEecOperationError,
        Self::LocalProtectionError,
        Self::WorkRequestFlushed,
        Self::MemoryWindowBindError,
        Self::BadResponse,
        Self::LocalAccessError,
        Self::RemoteInvalidRequest,
        Self::RemoteAccessError,
        Self::RemoteOperationError,
        Self::RetryExceeded,
        Self::RnrRetryExceeded,
        Self::LocalRddViolation,
        Self::RemoteInvalidRdRequest,
        Self::RemoteAborted,
        Self::InvalidEecNumber,
        Self::InvalidEecState,
        Self::Fatal,
        Self::ResponseTimeout,
        Self::General,
    ];

    /// The status with this number; [`Self::General`] for one that isn't known.
    #[must_use]
    #[inline]
    pub fn from_code(code: u32) -> Self {
        *Self::ALL.get(code as usize).unwrap_or(&Self::General)
    }

    /// The text of `ibv_wc_status_str(3)`, which perftest prints.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Success => "success",
            Self::LocalLengthError => "local length error",
            Self::LocalQpOperationError => "local QP operation error",
            Self::LocalEecOperationError => "local EE context operation error",
            Self::LocalProtectionError => "local protection error",
            Self::WorkRequestFlushed => "Work Request Flushed Error",
            Self::MemoryWindowBindError => "memory management operation error",
            Self::BadResponse => "bad response error",
            Self::LocalAccessError => "local access error",
            Self::RemoteInvalidRequest => "remote invalid request error",
            Self::RemoteAccessError => "remote access error",
            Self::RemoteOperationError => "remote operation error",
            Self::RetryExceeded => "transport retry counter exceeded",
            Self::RnrRetryExceeded => "RNR retry counter exceeded",
            Self::LocalRddViolation => "local RDD violation error",
            Self::RemoteInvalidRdRequest => "remote invalid RD request",
            Self::RemoteAborted => "aborted error",
            Self::InvalidEecNumber => "invalid EE context number",
            Self::InvalidEecState => "invalid EE context state",
            Self::Fatal => "fatal error",
            Self::ResponseTimeout => "response timeout error",
            Self::General => "general error",
        }
    }
}

impl fmt::Display for WcStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// `enum ibv_wc_opcode`: what a completed work request did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[repr(u8)]
pub enum WcOpcode {
    /// Any Send, with or without immediate or invalidate.
    #[default]
    Send = 0,
    /// RDMA Write, with or without immediate.
    Write = 1,
    /// RDMA Read.
    Read = 2,
    /// Compare and swap.
    CompareSwap = 3,
    /// Fetch and add.
    FetchAdd = 4,
    /// Binding of a memory window.
    BindWindow = 5,
    /// Local invalidate.
    LocalInvalidate = 6,
    /// Receive of a Send.
    Receive = 0x80,
    /// Receive consumed by an RDMA Write with immediate.
    ReceiveWriteImm = 0x81,
}

impl WcOpcode {
    /// The opcode with this number, if it is known.
    #[must_use]
    #[inline]
    pub fn from_code(code: u32) -> Option<Self> {
        Some(match code {
            0 => Self::Send,
            1 => Self::Write,
            2 => Self::Read,
            3 => Self::CompareSwap,
            4 => Self::FetchAdd,
            5 => Self::BindWindow,
            6 => Self::LocalInvalidate,
            0x80 => Self::Receive,
            0x81 => Self::ReceiveWriteImm,
            _ => return None,
        })
    }
}

bitflags::bitflags! {
    /// `enum ibv_wc_flags`: which optional fields of a completion are valid.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct WcFlags: u32 {
        /// The receive buffer starts with a 40-byte GRH.
        const GRH = 1;
        /// The peer sent immediate data.
        const WITH_IMM = 1 << 1;
        /// The peer invalidated a local rkey.
        const WITH_INV = 1 << 3;
    }
}

/// `struct ibv_wc`: one work completion.
///
/// On a status other than [`WcStatus::Success`] only `wr_id`, `status`,
/// `qp_num` and `vendor_err` are meaningful.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Completion {
    /// What the consumer gave with the work request.
    pub wr_id: u64,
    /// How it ended.
    pub status: WcStatus,
    /// What it did.
    pub opcode: WcOpcode,
    /// Provider detail: the userspace NIC puts the AETH syndrome of the NAK
    /// that caused an error here, 0 when there was none.
    pub vendor_err: u32,
    /// Bytes transferred by a receive or a read; includes the GRH on UD.
    pub byte_len: u32,
    /// Immediate data (as read from the wire, big-endian) or the invalidated
    /// rkey, as [`Self::flags`] says.
    pub imm_or_rkey: u32,
    /// Number of the local queue pair.
    pub qp_num: u32,
    /// Number of the sender's queue pair (receives).
    pub src_qp: u32,
    /// Which optional fields are valid.
    pub flags: WcFlags,
    /// Index of the packet's P_Key in the port's table.
    pub pkey_index: u16,
    /// Service level.
    pub sl: u8,
}

impl Completion {
    /// The immediate data, if the peer sent any.
    #[must_use]
    pub fn immediate(&self) -> Option<u32> {
        self.flags
            .contains(WcFlags::WITH_IMM)
            .then_some(self.imm_or_rkey)
    }

    /// The local rkey that the peer invalidated, if it did.
    #[must_use]
    pub fn invalidated_rkey(&self) -> Option<u32> {
        self.flags
            .contains(WcFlags::WITH_INV)
            .then_some(self.imm_or_rkey)
    }

    /// Whether the work request succeeded.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.status == WcStatus::Success
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kernel_are_understood() {
        for (code, status) in (0..).zip(WcStatus::ALL) {
            assert_eq!(status as u32, code);
            assert_eq!(WcStatus::from_code(code), status);
        }
        assert_eq!(WcStatus::from_code(22), WcStatus::General);
        for code in 0..=0x100 {
            let known = WcOpcode::from_code(code).map(|opcode| opcode as u32);
            let defined = code < 7 || code == 0x80 || code == 0x81;
            assert_eq!(known, defined.then_some(code));
        }
    }
}
