//! `-z` and `-R`: the connection manager makes the control connection, and
//! with `-R` connects the test's queue pairs, too.
//!
//! - `control`: the control connection, which comes first and decides the
//!   device;
//! - `queue_pairs`: the queue pairs of the test.

mod control;
mod queue_pairs;

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use verbs_sys::cm::{CmError, CmListener, CmOption, CmResult, ConnectionManager, PortSpace, Wait};

use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::options::Params;
use crate::words::{Connection, Side};

pub(crate) use control::control_connection;
pub(crate) use queue_pairs::{Connections, Meeting};

/// How long the resolution of an address or a route may take; the kernel
/// gives up after 2 s by itself.
const RESOLVE_TIME: Duration = Duration::from_secs(5);

/// How often an address or route that can't be found is asked for.
const RESOLVE_TRIES: u32 = 10;

/// Code of the wait that an RNR NAK asks for: 0.64 ms (IBTA table 45).
const MIN_RNR_TIMER: u8 = 12;

/// Retries that fit the field of the protocol, three bits.
const MOST_RETRIES: u8 = 7;

/// The connection manager, and where the peer is to be met.
pub(crate) struct Manager {
    manager: Arc<dyn ConnectionManager>,
    /// The server's address; on the server where it listens.
    address: SocketAddr,
    /// Our own address, where the user or the device decides it.
    source: Option<SocketAddr>,
    side: Side,
    /// Listens for the queue pairs of the test.
    listener: Option<Box<dyn CmListener>>,
}

impl Manager {
    /// An identifier whose route to the server is known.
    fn resolved(
        &self,
        space: PortSpace,
        options: &[CmOption],
        interrupt: &Interrupt,
    ) -> CmResult<Box<dyn verbs_sys::cm::CmId>> {
        let asked = || interrupt.requested();
        let wait = || Wait::at_most(RESOLVE_TIME).or(&asked);
        let mut tries = 1;
        loop {
            let mut id = self.manager.create_id(space)?;
            let resolved = id
                .resolve_addr(self.source, self.address, &wait())
                .and_then(|()| options.iter().try_for_each(|option| id.set_option(*option)))
                .and_then(|()| id.resolve_route(&wait()));
            match resolved {
                Ok(()) => return Ok(id),
                // A neighbour that was asleep answers the next time.
                Err(CmError::NoRoute { .. }) if tries < RESOLVE_TRIES => tries += 1,
                Err(error) => return Err(error),
            }
        }
    }
}

/// The port space of the test's queue pairs.
fn space(params: &Params) -> PortSpace {
    match params.connection {
        Connection::Ud => PortSpace::Udp,
        _ => PortSpace::Tcp,
    }
}

/// `--retry_count` as the protocol has it.
fn retries(params: &Params) -> u8 {
    u8::try_from(params.control.cm_retry_count)
        .map_or(MOST_RETRIES, |count| count.min(MOST_RETRIES))
}

/// What stock prints, and what we say, when the manager fails.
fn failed(side: Side, doing: &'static str, source: CmError) -> Failure {
    if matches!(source, CmError::Interrupted) {
        return Failure::Interrupted;
    }
    let reason = match &source {
        CmError::Rejected { .. } => "Unexpected CM event bl blka 8\n".to_owned(),
        CmError::Failed { event } | CmError::Unexpected { seen: event, .. } => {
            format!("Unexpected CM event bl blka {}\n", event.kind as u32)
        }
        CmError::NoRoute { .. } => format!("Received {RESOLVE_TRIES} times ADDR_ERROR\n"),
        _ => String::new(),
    };
    Failure::Manager {
        stock: format!("{reason}{}", stock_tail(side)),
        doing,
        source,
    }
}

/// Stock's last lines when there is no control connection.
fn stock_tail(side: Side) -> &'static str {
    match side {
        Side::Client => {
            " Unable to perform rdma_client function\n Unable to init the socket connection\n"
        }
        Side::Server => {
            " Unable to perform rdma_server function\n Unable to init the socket connection\n"
        }
    }
}
