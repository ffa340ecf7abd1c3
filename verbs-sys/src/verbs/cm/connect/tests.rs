//! The sequences, over a manager and a queue pair that write down what happens.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::net::SocketAddr;
use std::sync::{Arc, Mutex};

use super::*;
use crate::verbs::cm::{CmOption, CmParameters, CmRoute, CmStatus, PortSpace, RejectReason};
use crate::verbs::{
    AddressVector, Gid, PostError, QpCapabilities, QpType, ReceiveRequest, Result as VerbsResult,
    SendRequest,
};

const WAY: AddressVector = AddressVector {
    dgid: Gid::ZERO,
    sgid_index: 1,
    flow_label: 0,
    hop_limit: 64,
    traffic_class: 0,
    sl: 0,
    port: 1,
};

type Journal = Arc<Mutex<Vec<String>>>;

fn write(journal: &Journal, line: String) {
    journal.lock().unwrap().push(line);
}

struct FakeQp {
    journal: Journal,
    attributes: QpAttributes,
}

impl QueuePair for FakeQp {
    fn qpn(&self) -> u32 {
        0x11
    }
    fn qp_type(&self) -> QpType {
        QpType::Rc
    }
    fn capabilities(&self) -> QpCapabilities {
        QpCapabilities::default()
    }
    fn modify(&mut self, attributes: &QpAttributes) -> VerbsResult<()> {
        let timer = match attributes.min_rnr_timer {
            Some(timer) => format!(" timer {timer}"),
            None => String::new(),
        };
        write(
            &self.journal,
            format!("{}{timer}", attributes.state.unwrap()),
        );
        Ok(())
    }
    fn query(&self) -> VerbsResult<QpAttributes> {
        Ok(self.attributes)
    }
    fn post_send(&mut self, _: &[SendRequest<'_>]) -> Result<(), PostError> {
        Ok(())
    }
    fn post_recv(&mut self, _: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        Ok(())
    }
}

/// Answers with the events it was given.
struct FakeId {
    journal: Journal,
    iwarp: bool,
    events: Vec<CmEvent>,
}

impl CmId for FakeId {
    fn port_space(&self) -> PortSpace {
        PortSpace::Tcp
    }
    fn resolve_addr(&mut self, _: Option<SocketAddr>, _: SocketAddr, _: &Wait<'_>) -> CmResult<()> {
        Ok(())
    }
    fn resolve_route(&mut self, _: &Wait<'_>) -> CmResult<()> {
        Ok(())
    }
    fn set_option(&mut self, _: CmOption) -> CmResult<()> {
        Ok(())
    }
    fn route(&self) -> CmResult<CmRoute> {
        Err(CmError::Unsupported("routes"))
    }
    fn qp_attributes(&self, state: QpState) -> CmResult<QpAttributes> {
        if self.iwarp && state == QpState::Rts {
            return Ok(QpAttributes {
                port: Some(1),
                ..QpAttributes::default()
            });
        }
        let rtr = state == QpState::Rtr && !self.iwarp;
        Ok(QpAttributes {
            av: rtr.then_some(WAY),
            min_rnr_timer: rtr.then_some(0),
            ..QpAttributes::to_state(state)
        })
    }
    fn connect(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()> {
        write(&self.journal, format!("connect {:#x}", parameters.qpn));
        Ok(())
    }
    fn accept(&mut self, parameters: &ConnectParameters<'_>) -> CmResult<()> {
        let ConnectParameters {
            qpn,
            responder_resources,
            initiator_depth,
            ..
        } = parameters;
        write(
            &self.journal,
            format!("accept {qpn:#x} {responder_resources} {initiator_depth}"),
        );
        Ok(())
    }
    fn establish(&mut self) -> CmResult<()> {
        write(&self.journal, "establish".to_owned());
        Ok(())
    }
    fn reject(&mut self, _: &[u8]) -> CmResult<()> {
        Ok(())
    }
    fn disconnect(&mut self) -> CmResult<()> {
        Ok(())
    }
    fn next_event(&mut self, wait: &Wait<'_>) -> CmResult<CmEvent> {
        if self.events.is_empty() {
            return Err(CmError::TimedOut {
                waited_for: "an event",
                waited: wait.limit().unwrap_or_default(),
            });
        }
        let event = self.events.remove(0);
        write(&self.journal, format!("<{}>", event.kind));
        Ok(event)
    }
    fn join_multicast(&mut self, _: SocketAddr, _: &Wait<'_>) -> CmResult<DatagramPeer> {
        Err(CmError::Unsupported("multicast"))
    }
}

fn event(kind: CmEventKind, status: i32) -> CmEvent {
    CmEvent {
        kind,
        status: CmStatus::of_event(kind, status),
        private_data: b"data".to_vec(),
        parameters: CmParameters::default(),
        datagram: None,
    }
}

fn fakes(events: &[CmEventKind]) -> (FakeId, FakeQp) {
    let journal = Journal::default();
    let id = FakeId {
        journal: Arc::clone(&journal),
        iwarp: false,
        events: events.iter().map(|kind| event(*kind, 0)).collect(),
    };
    let qp = FakeQp {
        journal,
        attributes: QpAttributes::default(),
    };
    (id, qp)
}

fn happened(qp: &FakeQp) -> Vec<String> {
    qp.journal.lock().unwrap().clone()
}

fn connect(id: &mut FakeId, qp: &mut FakeQp) -> CmResult<CmEvent> {
    connect_qp(id, qp, &ConnectParameters::default(), 12, &Wait::new(None))
}

/// The order of rdma-core, as recorded of `ib_write_bw -R`.
#[test]
fn the_active_end_moves_on_when_the_peer_has_accepted() {
    let (mut id, mut qp) = fakes(&[CmEventKind::AddressChange, CmEventKind::ConnectResponse]);
    connect(&mut id, &mut qp).unwrap();
    assert_eq!(
        happened(&qp),
        [
            "connect 0x11",
            "<address changed>",
            "<connect response>",
            "INIT",
            "RTR timer 12",
            "RTS",
            "establish"
        ]
    );
}

#[test]
fn iwarp_is_connected_by_the_kernel() {
    let (mut id, mut qp) = fakes(&[CmEventKind::Established]);
    connect(&mut id, &mut qp).unwrap();
    assert_eq!(happened(&qp), ["connect 0x11", "<established>"]);
}

#[test]
fn the_passive_end_moves_on_before_it_accepts() {
    for iwarp in [false, true] {
        let (mut id, mut qp) = fakes(&[CmEventKind::Established]);
        id.iwarp = iwarp;
        let mut request = event(CmEventKind::ConnectRequest, 0);
        request.parameters.responder_resources = 4;
        request.parameters.initiator_depth = 16;
        let mut request = CmRequest {
            id: Box::new(id),
            event: request,
        };
        let parameters = ConnectParameters {
            responder_resources: 8,
            initiator_depth: 8,
            ..ConnectParameters::default()
        };
        accept_qp(&mut request, &mut qp, &parameters, 12, &Wait::new(None)).unwrap();
        let mut expected = vec!["INIT"];
        if !iwarp {
            expected.extend(["RTR timer 12", "RTS"]);
        }
        expected.extend(["accept 0x11 4 8", "<established>"]);
        assert_eq!(happened(&qp), expected);
    }
}

#[test]
fn a_refused_queue_pair_stays_where_it_is() {
    let (mut id, mut qp) = fakes(&[]);
    id.events.push(event(CmEventKind::Rejected, 28));
    let error = connect(&mut id, &mut qp).unwrap_err();
    let CmError::Rejected {
        status,
        private_data,
    } = error
    else {
        panic!("{error}");
    };
    assert_eq!(status, CmStatus::Rejected(RejectReason::CONSUMER));
    assert_eq!(private_data, b"data");
    assert_eq!(happened(&qp), ["connect 0x11", "<rejected>"]);
}

#[test]
fn what_goes_wrong_has_its_error() {
    for (kind, expected) in [
        (CmEventKind::Unreachable, "the connection could not be made"),
        (
            CmEventKind::ConnectError,
            "the connection could not be made",
        ),
        (CmEventKind::Disconnected, "the peer ended the connection"),
        (CmEventKind::DeviceRemoval, "device was removed"),
        (CmEventKind::RouteResolved, "reports \"route resolved\""),
    ] {
        let (mut id, mut qp) = fakes(&[kind]);
        let text = connect(&mut id, &mut qp).unwrap_err().to_string();
        assert!(text.contains(expected), "{text}");
    }
    let (mut id, mut qp) = fakes(&[]);
    let error = connect(&mut id, &mut qp).unwrap_err();
    assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
}

#[test]
fn a_datagram_queue_pair_needs_no_peer() {
    let (id, mut qp) = fakes(&[]);
    datagram_qp_ready(&id, &mut qp).unwrap();
    assert_eq!(happened(&qp), ["INIT", "RTR", "RTS"]);
}

#[test]
fn a_datagram_service_tells_its_queue_pair() {
    let parameters = ConnectParameters::default();
    let wait = Wait::new(None);
    let (mut id, _) = fakes(&[CmEventKind::Established]);
    let peer = DatagramPeer {
        qpn: 5,
        qkey: 7,
        av: WAY,
    };
    id.events[0].datagram = Some(peer);
    let found = connect_datagram(&mut id, &parameters, &wait).unwrap();
    assert_eq!(found, peer);

    let (mut id, _) = fakes(&[]);
    id.events.push(event(CmEventKind::Unreachable, 1));
    let error = connect_datagram(&mut id, &parameters, &wait).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("service ID not supported"), "{text}");
}
