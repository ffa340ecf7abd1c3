//! A queue pair: its state, and what goes through its two halves.

mod modify;
mod parts;

use verbs_sys::{
    EventKind, EventSource, PathMtu, QpAttributes, QpState, QpType, ReceiveRequest, Result, SendOp,
    SendRequest, VerbsError, WcStatus,
};

use super::counters::Counters;
use super::datagram;
use super::placement::ReceiveSource;
use super::receive_queue::ReceiveQueue;
use super::requester::Requester;
use super::responder::{ReplyBudget, Responder};
use super::send_queue::SendQueue;
use super::unreliable::UnreliableReceiver;
use super::{CqId, SrqId};
use crate::link::{RxPacket, TxQueue};
use crate::time::Time;
use crate::wire::Packet;

pub use parts::QpSettings;
pub(crate) use parts::{Connection, Fault, Identity, Shared, Turn};

/// Packets that one queue pair writes before the next one's turn: enough for
/// a full segmented send.
const TURN: u32 = 64;

#[derive(Debug)]
pub(crate) struct QueuePair {
    pub(crate) identity: Identity,
    pub(crate) settings: QpSettings,
    state: QpState,
    attributes: QpAttributes,
    connection: Connection,
    requester: Requester,
    responder: Responder,
    unreliable: UnreliableReceiver,
    /// The first packet has been reported (COMM_EST).
    established: bool,
    /// The end of draining has to be reported (SQ_DRAINED).
    drain_pending: bool,
    /// Packets in flight that the receive buffers on the path hold.
    window: u32,
    /// In the scheduler's queue.
    pub(crate) scheduled: bool,
    /// Owes nothing but an acknowledgement, which waits for company.
    pub(crate) ack_waits: bool,
    /// In the queue of those whose acknowledgement waits, or did.
    pub(crate) ack_queued: bool,
}

impl QueuePair {
    /// `shared_sges` is the longest list of the shared queues that it may
    /// draw from.
    pub(crate) fn new(
        qpn: u32,
        settings: QpSettings,
        port_mtu: PathMtu,
        shared_sges: usize,
    ) -> Self {
        let cap = settings.granted();
        let (source, max_sge) = match (settings.srq, settings.xrcd) {
            (Some(srq), _) => (ReceiveSource::Shared(srq), shared_sges),
            (None, Some(domain)) => (ReceiveSource::Named(domain), shared_sges),
            (None, None) => (
                ReceiveSource::Own(ReceiveQueue::new(cap.max_recv_wr, cap.max_recv_sge)),
                cap.max_recv_sge as usize,
            ),
        };
        let identity = Identity {
            qpn,
            qp_type: settings.qp_type,
            pd: settings.pd,
            send_cq: settings.send_cq,
            recv_cq: settings.recv_cq,
        };
        Self {
            identity,
            settings,
            state: QpState::Reset,
            attributes: QpAttributes::default(),
            connection: Connection {
                route: None,
                dest_qpn: 0,
                path_mtu: port_mtu,
                qkey: 0,
                starts_requests: false,
            },
            requester: Requester::new(SendQueue::new(&cap)),
            responder: Responder::new(source, max_sge, &identity),
            unreliable: UnreliableReceiver::new(),
            established: false,
            drain_pending: false,
            window: 1,
            scheduled: false,
            ack_waits: false,
            ack_queued: false,
        }
    }

    pub(crate) fn state(&self) -> QpState {
        self.state
    }

    /// Everything that is left is flushed (IBTA 10.3.1, Error state).
    pub(crate) fn enter_error(&mut self, shared: &mut Shared) {
        if self.state == QpState::Error {
            return;
        }
        self.state = QpState::Error;
        self.connection.starts_requests = false;
        self.requester.flush(&self.identity, shared);
        self.responder.close();
        self.flush_receives(shared);
        if self.settings.srq.is_some() {
            let source = EventSource::Qp(self.identity.qpn);
            shared.events.raise(EventKind::LastWqeReached, source);
        }
    }

    fn flush_receives(&mut self, shared: &mut Shared) {
        let Responder {
            receive, source, ..
        } = &mut self.responder;
        receive.fail(
            source,
            &self.identity,
            WcStatus::WorkRequestFlushed,
            0,
            shared,
        );
        source.flush(&self.identity, shared);
    }

    fn on_fault(&mut self, fault: Fault, shared: &mut Shared) {
        if let Some(event) = fault.event
            && self.state != QpState::Error
        {
            shared
                .events
                .raise(event, EventSource::Qp(self.identity.qpn));
        }
        if fault.send_queue_only && !self.identity.is_reliable() {
            self.state = QpState::Sqe;
            self.connection.starts_requests = false;
            self.requester.flush(&self.identity, shared);
        } else {
            self.enter_error(shared);
        }
    }

    pub(crate) fn post_send(
        &mut self,
        request: &SendRequest<'_>,
        shared: &mut Shared,
    ) -> Result<()> {
        let operation = "posting a send request";
        if self.identity.qp_type == QpType::XrcReceive {
            return Err(self.lacks(operation));
        }
        match self.state {
            QpState::Reset | QpState::Init | QpState::Rtr => {
                return Err(VerbsError::InvalidState {
                    state: self.state,
                    operation,
                });
            }
            QpState::Rts | QpState::Sqd | QpState::Sqe | QpState::Error => {}
        }
        if self.identity.is_reliable()
            && self.requester.max_rd_atomic() == 0
            && matches!(
                request.op,
                SendOp::Read { .. } | SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. }
            )
        {
            return Err(VerbsError::InvalidArgument {
                what: "max_qp_rd_atomic of the queue pair",
                seen: "0".into(),
                expected: "at least 1 for a Read or atomic".into(),
            });
        }
        self.requester.queue.push(
            self.identity.qp_type,
            self.connection.path_mtu,
            self.settings.sq_sig_all,
            request,
        )?;
        if matches!(self.state, QpState::Error | QpState::Sqe) {
            self.requester.flush(&self.identity, shared);
        }
        Ok(())
    }

    pub(crate) fn post_recv(
        &mut self,
        request: &ReceiveRequest<'_>,
        shared: &mut Shared,
    ) -> Result<()> {
        let operation = "posting a receive request";
        if matches!(self.identity.qp_type, QpType::XrcSend | QpType::XrcReceive) {
            return Err(self.lacks(operation));
        }
        if self.state == QpState::Reset {
            return Err(VerbsError::InvalidState {
                state: self.state,
                operation,
            });
        }
        self.responder.source.push(request)?;
        if self.state == QpState::Error {
            self.flush_receives(shared);
        }
        Ok(())
    }

    /// An XRC queue pair hasn't the queue that something is posted to.
    fn lacks(&self, operation: &'static str) -> VerbsError {
        VerbsError::UnsupportedOperation {
            qp_type: self.identity.qp_type,
            operation,
        }
    }

    /// Whether the state takes a packet, and the addresses are those of the
    /// connection.
    pub(crate) fn accepts(
        &self,
        rx: &RxPacket<'_>,
        packet: &Packet<'_>,
        counters: &mut Counters,
    ) -> bool {
        let state_fits = match packet.operation().is_request() {
            true => matches!(
                self.state,
                QpState::Rtr | QpState::Rts | QpState::Sqd | QpState::Sqe
            ),
            false => matches!(self.state, QpState::Rts | QpState::Sqd),
        };
        if !state_fits {
            counters.rx_wrong_state += 1;
            return false;
        }
        // A datagram may come from anybody; a connection knows its peer.
        let addresses_fit = self.identity.qp_type == QpType::Ud
            || self
                .connection
                .route
                .is_some_and(|route| (route.dst, route.src) == (rx.src, rx.dst));
        if !addresses_fit {
            counters.rx_wrong_address += 1;
        }
        addresses_fit
    }

    /// Handles a packet that is meant for this queue pair and intact.
    pub(crate) fn on_packet(
        &mut self,
        rx: &RxPacket<'_>,
        packet: &Packet<'_>,
        now: Time,
        shared: &mut Shared,
    ) {
        if self.state == QpState::Rtr && !self.established {
            self.established = true;
            let source = EventSource::Qp(self.identity.qpn);
            shared
                .events
                .raise(EventKind::CommunicationEstablished, source);
        }
        let Self {
            identity,
            connection,
            requester,
            responder,
            unreliable,
            ..
        } = self;
        let result = match identity.qp_type {
            QpType::Rc | QpType::XrcSend if packet.operation().is_response() => {
                requester.on_response(identity, connection, packet, now, shared)
            }
            QpType::Rc | QpType::XrcReceive => {
                responder.on_request(identity, connection, packet, shared)
            }
            // Requests don't get here: it has no responder.
            QpType::XrcSend => Ok(()),
            QpType::Uc => {
                let Responder {
                    receive, source, ..
                } = responder;
                unreliable.on_packet(identity, connection, receive, source, packet, shared);
                Ok(())
            }
            QpType::Ud => {
                let Responder {
                    receive, source, ..
                } = responder;
                datagram::receive(
                    identity,
                    connection.qkey,
                    receive,
                    source,
                    rx,
                    packet,
                    shared,
                );
                Ok(())
            }
        };
        if let Err(fault) = result {
            self.on_fault(fault, shared);
        }
        self.report_drained(shared);
    }

    /// Writes requests and answers. Requests go first: with small messages a
    /// following acknowledgement fits the same segmented send, being shorter.
    pub(crate) fn transmit(
        &mut self,
        now: Time,
        tx: &mut TxQueue,
        acks: bool,
        shared: &mut Shared,
    ) -> Turn {
        let Self {
            identity,
            connection,
            requester,
            ..
        } = self;
        let mut requests = Turn::Idle;
        if matches!(self.state, QpState::Rts | QpState::Sqd) {
            match requester.transmit(identity, connection, now, tx, TURN, shared) {
                Ok(turn) => requests = turn,
                Err(fault) => self.on_fault(fault, shared),
            }
        }
        let Self {
            identity,
            connection,
            responder,
            ..
        } = self;
        let budget = ReplyBudget {
            packets: TURN,
            acks: acks || !tx.is_empty(),
        };
        let replies = match responder.transmit(identity, connection, tx, budget, shared) {
            Ok(turn) => turn,
            Err(fault) => {
                self.on_fault(fault, shared);
                Turn::More
            }
        };
        self.report_drained(shared);
        match (requests, replies) {
            (Turn::Full, _) | (_, Turn::Full) => Turn::Full,
            (Turn::More, _) | (_, Turn::More) => Turn::More,
            (Turn::Idle, Turn::Idle) => Turn::Idle,
        }
    }

    /// Whether an acknowledgement is owed, and nothing else.
    pub(crate) fn owes_only_ack(&self) -> bool {
        self.responder.owes_reply() && self.responder.owes_only_ack()
    }

    pub(crate) fn has_in_flight(&self) -> bool {
        self.requester.has_in_flight()
    }

    pub(crate) fn deadline(&self) -> Option<Time> {
        match self.state {
            QpState::Rts | QpState::Sqd => self.requester.deadline(),
            _ => None,
        }
    }

    /// Says whether there is something to transmit.
    pub(crate) fn on_timer(&mut self, now: Time, shared: &mut Shared) -> bool {
        match self.requester.on_timer(&self.identity, now, shared) {
            Ok(transmit) => transmit,
            Err(fault) => {
                self.on_fault(fault, shared);
                false
            }
        }
    }

    /// SQD is reached when nothing is in flight any more (IBTA 10.3.1).
    fn report_drained(&mut self, shared: &mut Shared) {
        if self.drain_pending && self.state == QpState::Sqd && self.requester.is_drained() {
            self.drain_pending = false;
            let source = EventSource::Qp(self.identity.qpn);
            shared.events.raise(EventKind::SendQueueDrained, source);
        }
    }

    pub(crate) fn uses_cq(&self, cq: CqId) -> bool {
        match self.identity.qp_type {
            QpType::XrcSend => self.identity.send_cq == cq,
            QpType::XrcReceive => self.responder.receive.cq() == Some(cq),
            QpType::Rc | QpType::Uc | QpType::Ud => {
                self.identity.send_cq == cq || self.identity.recv_cq == cq
            }
        }
    }

    /// Forgets its completions that nobody has fetched; those of an XRC target
    /// belong to the shared receive queues.
    pub(crate) fn purge(&self, shared: &mut Shared) {
        if self.identity.qp_type != QpType::XrcReceive {
            for cq in [self.identity.send_cq, self.identity.recv_cq] {
                shared.cqs.purge(cq, self.identity.qpn);
            }
        }
    }

    /// Forgets the receive request in use if it is of a shared queue that is
    /// going.
    pub(crate) fn forget_srq(&mut self, srq: SrqId) {
        self.responder.receive.abandon_of(srq);
    }
}
