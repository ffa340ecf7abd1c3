//! The status of an event, in words.

use std::fmt;
use std::io;

use super::event::CmEventKind;

/// Why something failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmStatus {
    /// It didn't.
    Success,
    /// The system's number, positive.
    Errno(i32),
    /// The peer's connection manager refused.
    Rejected(RejectReason),
    /// The peer's connection manager has no such datagram service.
    Sidr(SidrStatus),
}

impl CmStatus {
    /// Reads an event's status: negative is an `errno`; positive is what the
    /// peer's connection manager said.
    #[must_use]
    pub fn of_event(kind: CmEventKind, status: i32) -> Self {
        match (kind, u16::try_from(status)) {
            (_, Ok(0)) => Self::Success,
            (CmEventKind::Unreachable, Ok(code)) => Self::Sidr(SidrStatus(code)),
            (_, Ok(code)) => Self::Rejected(RejectReason(code)),
            (_, Err(_)) => Self::Errno(status.saturating_abs()),
        }
    }

    /// The system's number, if it is one.
    #[must_use]
    pub fn errno(self) -> Option<i32> {
        match self {
            Self::Errno(code) => Some(code),
            _ => None,
        }
    }
}

impl fmt::Display for CmStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Success => f.write_str("success"),
            Self::Errno(code) => io::Error::from_raw_os_error(*code).fmt(f),
            Self::Rejected(reason) => reason.fmt(f),
            Self::Sidr(status) => status.fmt(f),
        }
    }
}

/// Reason of a REJ message (IBTA 12.6.7.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RejectReason(pub u16);

impl RejectReason {
    /// Nobody listens.
    pub const INVALID_SERVICE_ID: Self = Self(8);
    /// The peer holds a connection from the same number for alive.
    pub const STALE_CONNECTION: Self = Self(10);
    /// The peer's consumer refuses.
    pub const CONSUMER: Self = Self(28);

    /// The words of the specification.
    #[must_use]
    pub fn words(self) -> &'static str {
        match self.0 {
            1 => "no queue pair available",
            2 => "no EE context available",
            3 => "no resources available",
            4 => "timeout",
            5 => "unsupported request",
            6 => "invalid communication ID",
            7 => "invalid communication instance",
            8 => "invalid service ID",
            9 => "invalid transport service type",
            10 => "stale connection",
            11 => "RDC does not exist",
            12 => "primary remote port GID rejected",
            13 => "primary remote port LID rejected",
            14 => "invalid primary SL",
            15 => "invalid primary traffic class",
            16 => "invalid primary hop limit",
            17 => "invalid primary packet rate",
            18 => "alternate remote port GID rejected",
            19 => "alternate remote port LID rejected",
            20 => "invalid alternate SL",
            21 => "invalid alternate traffic class",
            22 => "invalid alternate hop limit",
            23 => "invalid alternate packet rate",
            24 => "port and CM redirection",
            25 => "port redirection",
            26 => "invalid path MTU",
            27 => "insufficient responder resources",
            28 => "consumer reject",
            29 => "RNR retry count not acceptable",
            30 => "duplicate local communication ID",
            31 => "invalid class version",
            32 => "invalid primary flow label",
            33 => "invalid alternate flow label",
            35 => "vendor option is not supported",
            _ => "unknown reason",
        }
    }
}

impl fmt::Display for RejectReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, reason {}", self.words(), self.0)
    }
}

/// Status of a SIDR response (IBTA 12.11.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct SidrStatus(pub u16);

impl fmt::Display for SidrStatus {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let words = match self.0 {
            1 => "service ID not supported",
            2 => "rejected by the service provider",
            3 => "no queue pair available",
            4 => "redirected",
            5 => "version not supported",
            _ => "unknown status",
        };
        write!(f, "{words}, SIDR status {}", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_status_is_read_by_its_event() {
        let read = |kind, status| CmStatus::of_event(kind, status).to_string();
        assert_eq!(read(CmEventKind::Established, 0), "success");
        assert_eq!(
            read(CmEventKind::Rejected, 8),
            "invalid service ID, reason 8"
        );
        assert_eq!(
            read(CmEventKind::Rejected, 28),
            "consumer reject, reason 28"
        );
        assert_eq!(
            read(CmEventKind::Unreachable, 1),
            "service ID not supported, SIDR status 1"
        );
        // iWARP refuses in the system's numbers.
        assert_eq!(
            CmStatus::of_event(CmEventKind::Rejected, -libc::ECONNREFUSED).errno(),
            Some(libc::ECONNREFUSED)
        );
        assert!(read(CmEventKind::Unreachable, -libc::ETIMEDOUT).contains("timed out"));
        // Odd ones have words, too.
        for status in [i32::MIN, i32::MAX, 34, 0x1_0000] {
            assert!(!read(CmEventKind::Rejected, status).is_empty());
        }
    }
}
