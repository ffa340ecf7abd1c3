//! What the connection manager's events mean to the connection. The channel
//! itself is tested from end to end, with queue pairs that work.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::net::SocketAddr;

use verbs_sys::QpAttributes;
use verbs_sys::cm::{
    CmEvent, CmOption, CmParameters, CmResult, CmRoute, CmStatus, ConnectParameters, DatagramPeer,
    PortSpace,
};

use super::*;

/// Reports these events, then nothing; counts farewells.
struct Reporting {
    events: Vec<CmEventKind>,
    farewells: Arc<Mutex<u32>>,
}

const NOT_HERE: CmError = CmError::Unsupported("anything but events");

impl CmId for Reporting {
    fn port_space(&self) -> PortSpace {
        PortSpace::Tcp
    }
    fn resolve_addr(&mut self, _: Option<SocketAddr>, _: SocketAddr, _: &Wait<'_>) -> CmResult<()> {
        Err(NOT_HERE)
    }
    fn resolve_route(&mut self, _: &Wait<'_>) -> CmResult<()> {
        Err(NOT_HERE)
    }
    fn set_option(&mut self, _: CmOption) -> CmResult<()> {
        Err(NOT_HERE)
    }
    fn route(&self) -> CmResult<CmRoute> {
        Err(NOT_HERE)
    }
    fn qp_attributes(&self, _: QpState) -> CmResult<QpAttributes> {
        Err(NOT_HERE)
    }
    fn connect(&mut self, _: &ConnectParameters<'_>) -> CmResult<()> {
        Err(NOT_HERE)
    }
    fn accept(&mut self, _: &ConnectParameters<'_>) -> CmResult<()> {
        Err(NOT_HERE)
    }
    fn establish(&mut self) -> CmResult<()> {
        Err(NOT_HERE)
    }
    fn reject(&mut self, _: &[u8]) -> CmResult<()> {
        Err(NOT_HERE)
    }
    fn disconnect(&mut self) -> CmResult<()> {
        *self.farewells.lock().unwrap() += 1;
        Ok(())
    }
    fn next_event(&mut self, wait: &Wait<'_>) -> CmResult<CmEvent> {
        if self.events.is_empty() {
            return Err(CmError::TimedOut {
                waited_for: "an event",
                waited: wait.limit().unwrap_or_default(),
            });
        }
        Ok(CmEvent {
            kind: self.events.remove(0),
            status: CmStatus::Success,
            private_data: Vec::new(),
            parameters: CmParameters::default(),
            datagram: None,
        })
    }
    fn join_multicast(&mut self, _: SocketAddr, _: &Wait<'_>) -> CmResult<DatagramPeer> {
        Err(NOT_HERE)
    }
}

fn connection(events: &[CmEventKind]) -> (CmConnection, Arc<Mutex<u32>>) {
    let farewells = Arc::default();
    let id = Reporting {
        events: events.to_vec(),
        farewells: Arc::clone(&farewells),
    };
    (CmConnection::new(Box::new(id)), farewells)
}

#[test]
fn only_some_events_end_a_connection() {
    for (events, expected) in [
        (&[][..], None),
        (&[CmEventKind::Established], None),
        (
            &[CmEventKind::AddressChange, CmEventKind::TimewaitExit],
            None,
        ),
        (
            &[CmEventKind::Established, CmEventKind::Disconnected],
            Some(End::Peer),
        ),
        (&[CmEventKind::DeviceRemoval], Some(End::Device)),
    ] {
        let (connection, _) = connection(events);
        assert_eq!(connection.ended(), expected, "{events:?}");
        // What has ended stays so.
        assert_eq!(connection.ended(), expected, "{events:?}");
    }
}

#[test]
fn both_ends_say_farewell_once() {
    for listened in [false, true] {
        let (connection, farewells) = connection(&[CmEventKind::Disconnected]);
        connection.end(listened);
        assert_eq!(*farewells.lock().unwrap(), 1);
        assert_eq!(connection.ended(), Some(End::Peer));
    }
}
