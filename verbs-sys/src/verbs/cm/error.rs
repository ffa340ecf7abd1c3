//! What goes wrong with connections: whose fault it is, and what to do.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use super::event::CmEvent;
use super::reason::{CmStatus, RejectReason, SidrStatus};
use crate::verbs::VerbsError;

/// Result of the connection manager.
pub type CmResult<T> = Result<T, CmError>;

/// Why a connection could not be made, or was refused.
#[derive(Debug, thiserror::Error)]
pub enum CmError {
    /// The kernel's connection manager isn't there.
    #[error(
        "the kernel has no connection manager ({path} does not exist): \
         load it (modprobe rdma_ucm), or give the container this device node"
    )]
    NoModule {
        /// The device node.
        path: String,
    },
    /// The connection manager may not be used.
    #[error(
        "{path} may not be opened ({source}): it should be readable and writable \
         for all (chmod 666), and allowed in the container"
    )]
    NotAllowed {
        /// The device node.
        path: String,
        /// What the kernel said.
        source: io::Error,
    },
    /// The kernel speaks another version of its interface.
    #[error(
        "the kernel's connection manager has ABI {seen}, expected {expected}: a newer program is needed"
    )]
    Abi {
        /// The kernel's.
        seen: String,
        /// Ours.
        expected: u32,
    },
    /// No device belongs to the address.
    #[error(
        "no RDMA device {}: the address has to be that of an interface with a device \
         (rdma link), and the device has to be up",
        leads_to(*address)
    )]
    NoDevice {
        /// The address that was to be bound or reached.
        address: SocketAddr,
    },
    /// The peer's address can't be reached.
    #[error(
        "no way to {destination}: {status}; check the address, the route to it (ip route get) and that the peer's host is up"
    )]
    NoRoute {
        /// The peer's address.
        destination: SocketAddr,
        /// What the manager said.
        status: CmStatus,
    },
    /// Another listener has the port.
    #[error("port {} is in use in the connection manager: stop the other server, or choose another port (-p) at both ends", address.port())]
    AddressInUse {
        /// The address that was to be bound.
        address: SocketAddr,
    },
    /// The address isn't ours; or another listener has the port on all
    /// addresses, for which the kernel has the same word.
    #[error(
        "{} is no address of this host, or port {} is in use on all addresses: \
         give another address or port, or stop the other server",
        address.ip(),
        address.port()
    )]
    AddressNotAvailable {
        /// The address that was to be bound.
        address: SocketAddr,
    },
    /// The peer refuses the connection.
    #[error("the peer refused the connection: {status}{}", rejection_hint(*status))]
    Rejected {
        /// Why.
        status: CmStatus,
        /// What it sent along.
        private_data: Vec<u8>,
    },
    /// The peer doesn't answer, or the connection fails while it is made.
    #[error(
        "the connection could not be made: {event}; is the server started, with the same options (-R, -z, -c, -p), and does the network let RDMA through?"
    )]
    Failed {
        /// What was reported.
        event: Box<CmEvent>,
    },
    /// The peer ended the connection.
    #[error("the peer ended the connection; its own screen says why")]
    Disconnected,
    /// The device is gone.
    #[error("the RDMA device was removed: bring it back and start again")]
    DeviceRemoved,
    /// Nothing came in time.
    #[error(
        "{waited_for} did not come within {waited:?}: is the peer alive, and does the network let RDMA through?"
    )]
    TimedOut {
        /// What was waited for.
        waited_for: &'static str,
        /// How long.
        waited: Duration,
    },
    /// The user interrupted the wait.
    #[error("interrupted")]
    Interrupted,
    /// Something else happened than what was waited for.
    #[error(
        "the connection manager reports \"{seen}\", expected {expected}: the ends do different things"
    )]
    Unexpected {
        /// What was reported.
        seen: Box<CmEvent>,
        /// What was waited for.
        expected: &'static str,
    },
    /// The private data doesn't fit.
    #[error("{length} bytes of private data don't fit, there is room for {limit}")]
    PrivateData {
        /// How much was given.
        length: usize,
        /// How much fits at most; some messages have room for less.
        limit: usize,
    },
    /// The connection manager can't do this.
    #[error("the connection manager doesn't support {0}")]
    Unsupported(&'static str),
    /// The kernel's answer makes no sense.
    #[error(
        "the kernel's connection manager answers {seen}, expected {expected}: a newer program is needed"
    )]
    Unintelligible {
        /// What came.
        seen: String,
        /// What would have been right.
        expected: &'static str,
    },
    /// The kernel refuses a command.
    #[error("the kernel's connection manager refuses {command}: {source}")]
    Command {
        /// The kernel's name for it.
        command: &'static str,
        /// What the kernel said.
        source: io::Error,
    },
    /// A verb failed, such as moving the queue pair on.
    #[error(transparent)]
    Verb(#[from] VerbsError),
}

impl CmError {
    /// Whether the peer's host answers that nobody listens there: its server
    /// may only not be that far yet.
    #[must_use]
    pub fn nobody_listens(&self) -> bool {
        const SERVICE_NOT_SUPPORTED: CmStatus = CmStatus::Sidr(SidrStatus(1));
        match self {
            Self::Rejected { status, .. } => matches!(
                status,
                CmStatus::Rejected(RejectReason::INVALID_SERVICE_ID)
                    | CmStatus::Errno(libc::ECONNREFUSED)
            ),
            Self::Failed { event } => event.status == SERVICE_NOT_SUPPORTED,
            _ => false,
        }
    }
}

/// What to say of an address without a device.
fn leads_to(address: SocketAddr) -> String {
    if address.ip().is_unspecified() {
        "is there".to_owned()
    } else {
        format!("has or leads to {}", address.ip())
    }
}

/// What to do about a refusal.
fn rejection_hint(status: CmStatus) -> &'static str {
    match status {
        CmStatus::Rejected(RejectReason::INVALID_SERVICE_ID) => {
            " (nobody listens); start the server first, with -R or -z as here, and the same -p"
        }
        CmStatus::Errno(libc::ECONNREFUSED) => {
            " (nobody listens); start the server first, with -R or -z as here, and the same -p"
        }
        CmStatus::Rejected(RejectReason::CONSUMER) => {
            "; the server is busy or expects something else, its own screen says why"
        }
        CmStatus::Rejected(RejectReason::STALE_CONNECTION) => {
            "; the server remembers an earlier connection, try again in a few seconds"
        }
        _ => "; the server's own screen says why",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_refusal_says_what_to_do() {
        let refused = |status| {
            let private_data = Vec::new();
            CmError::Rejected {
                status,
                private_data,
            }
        };
        for status in [
            CmStatus::Rejected(RejectReason::INVALID_SERVICE_ID),
            CmStatus::Errno(libc::ECONNREFUSED),
        ] {
            let text = refused(status).to_string();
            assert!(text.contains("start the server first"), "{text}");
            assert!(refused(status).nobody_listens());
        }
        let refused = refused(CmStatus::Rejected(RejectReason(3)));
        assert!(!refused.nobody_listens());
        let text = refused.to_string();
        assert!(text.contains("no resources available"), "{text}");
    }

    #[test]
    fn a_missing_device_is_named_by_its_address() {
        let text = |address: &str| {
            let address = address.parse().unwrap_or_else(|_| ([0; 4], 0).into());
            CmError::NoDevice { address }.to_string()
        };
        assert!(text("192.0.2.1:5").contains("leads to 192.0.2.1"));
        assert!(text("0.0.0.0:5").contains("no RDMA device is there"));
    }
}
