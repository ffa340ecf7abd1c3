//! What the peer answers (IBTA 9.7.5): acknowledgements, NAKs, read and
//! atomic responses.

use verbs_sys::{SendOp, WcStatus};

use super::{RNR_RETRY_FOREVER, Requester, rnr_wait};
use crate::time::Time;
use crate::transport::queue_pair::{Connection, Fault, Identity, Shared};
use crate::transport::send_queue::{Payload, SendWqe};
use crate::wire::{NakCode, Operation, Packet, Psn, Syndrome};

/// How far an acknowledgement got.
#[derive(Debug, PartialEq, Eq)]
enum Walk {
    /// Up to the PSN it names.
    Reached,
    /// A Read or atomic before it has no data yet: its response was lost, the
    /// acknowledgement implies a NAK (IBTA 9.7.5.1.1).
    MissingResponse,
}

/// Takes the data of a response for the oldest request.
type DataHandler = fn(
    &mut Requester,
    &Identity,
    &Connection,
    &SendWqe,
    &Packet<'_>,
    &mut Shared,
) -> Result<(), WcStatus>;

impl Requester {
    /// Handles a response that has passed the checks of every packet.
    pub(crate) fn on_response(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        now: Time,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        let psn = packet.psn();
        // It answers something never sent, or something answered already.
        if psn.diff(self.nxt) >= 0 || psn.is_before(self.una) {
            shared.counters.rx_stale_responses += 1;
            return Ok(());
        }
        let result = match packet.operation() {
            Operation::Acknowledge => self.on_acknowledge(identity, packet, now, shared),
            Operation::AtomicAcknowledge => {
                self.on_data_response(identity, connection, packet, now, shared, Self::on_atomic)
            }
            _ => self.on_data_response(identity, connection, packet, now, shared, Self::on_read),
        };
        self.catch_up();
        result
    }

    fn on_acknowledge(
        &mut self,
        identity: &Identity,
        packet: &Packet<'_>,
        now: Time,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        let psn = packet.psn();
        let Some(aeth) = packet.aeth() else {
            return Ok(());
        };
        match aeth.meaning() {
            Syndrome::Ack { .. } => {
                match self.acknowledge_before(identity, psn.next(), now, shared) {
                    Walk::Reached => Ok(()),
                    Walk::MissingResponse => self.retry(identity, WcStatus::RetryExceeded, shared),
                }
            }
            Syndrome::Nak(NakCode::PsnSequenceError) => {
                // The peer is not ready anyway; it sends this for what was
                // under way behind the packet it had no receive for.
                if self.rnr_until.is_some() {
                    return Ok(());
                }
                shared.counters.rx_sequence_naks += 1;
                self.acknowledge_before(identity, psn, now, shared);
                self.retry(identity, WcStatus::RetryExceeded, shared)
            }
            Syndrome::RnrNak { timer } => self.on_rnr_nak(identity, psn, timer, now, shared),
            Syndrome::Nak(code) => {
                shared.counters.rx_error_naks += 1;
                let status = match code {
                    NakCode::InvalidRequest => WcStatus::RemoteInvalidRequest,
                    NakCode::RemoteAccessError => WcStatus::RemoteAccessError,
                    _ => WcStatus::RemoteOperationError,
                };
                // The request at `psn` can't fail before an earlier Read has
                // its data; asking for that again finds the peer dead.
                match self.acknowledge_before(identity, psn, now, shared) {
                    Walk::Reached => {
                        Err(self.fail_head(identity, status, aeth.syndrome.into(), shared))
                    }
                    Walk::MissingResponse => self.retry(identity, WcStatus::RetryExceeded, shared),
                }
            }
            Syndrome::Reserved(_) => {
                shared.counters.rx_stale_responses += 1;
                Ok(())
            }
        }
    }

    /// IBTA 9.7.5.2.8: wait as long as the peer says, then send again.
    fn on_rnr_nak(
        &mut self,
        identity: &Identity,
        psn: Psn,
        timer: u8,
        now: Time,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        if self.rnr_until.is_some() {
            return Ok(());
        }
        shared.counters.rx_rnr_naks += 1;
        if self.acknowledge_before(identity, psn, now, shared) == Walk::MissingResponse {
            return self.retry(identity, WcStatus::RetryExceeded, shared);
        }
        if self.limits.rnr_retry != RNR_RETRY_FOREVER {
            if self.rnr_retries_left == 0 {
                return Err(self.fail_head(identity, WcStatus::RnrRetryExceeded, 0x20, shared));
            }
            self.rnr_retries_left -= 1;
        }
        self.rnr_until = Some(now + rnr_wait(timer));
        // The packet has arrived, so what comes next is another loss.
        self.went_back = false;
        self.go_back();
        Ok(())
    }

    /// A response with data belongs to the oldest Read or atomic and comes in
    /// order; what is before it is acknowledged with it.
    fn on_data_response(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        now: Time,
        shared: &mut Shared,
        handle: DataHandler,
    ) -> Result<(), Fault> {
        let psn = packet.psn();
        if self.acknowledge_before(identity, psn, now, shared) == Walk::MissingResponse {
            return self.retry(identity, WcStatus::RetryExceeded, shared);
        }
        let Some(wqe) = self.queue.get(self.queue.head()).copied() else {
            return Ok(());
        };
        match handle(self, identity, connection, &wqe, packet, shared) {
            Ok(()) => {
                self.una = psn.next();
                if wqe.end_psn() == Some(self.una) {
                    self.outstanding_reads = self.outstanding_reads.saturating_sub(1);
                    self.complete_head(identity, WcStatus::Success, 0, shared);
                }
                self.on_progress(now);
                Ok(())
            }
            Err(status) => Err(self.fail_head(identity, status, 0, shared)),
        }
    }

    /// A read response: the right kind of packet with the right number of
    /// bytes (IBTA 9.7.5.1.7). A responder may continue a repeated Read with
    /// Middle or Last where the rule says First or Only; rxe does.
    fn on_read(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        wqe: &SendWqe,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), WcStatus> {
        if !matches!(wqe.op, SendOp::Read { .. }) || !is_positive(packet) {
            return Err(WcStatus::BadResponse);
        }
        let mtu = u64::from(connection.path_mtu.bytes());
        let placed = u64::from(self.packets_into_head()) * mtu;
        let missing = wqe.length - placed;
        let is_last = missing <= mtu;
        let ends = matches!(
            packet.operation(),
            Operation::ReadResponseLast | Operation::ReadResponseOnly
        );
        if ends != is_last {
            return Err(WcStatus::BadResponse);
        }
        if packet.payload().len() as u64 != missing.min(mtu) {
            return Err(WcStatus::LocalLengthError);
        }
        self.place(identity, wqe, placed, packet.payload(), shared)
    }

    fn on_atomic(
        &mut self,
        identity: &Identity,
        _: &Connection,
        wqe: &SendWqe,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), WcStatus> {
        let is_atomic = matches!(wqe.op, SendOp::CompareSwap { .. } | SendOp::FetchAdd { .. });
        match packet.atomic_ack_eth() {
            Some(ack) if is_atomic && is_positive(packet) => {
                self.place(identity, wqe, 0, &ack.original.to_ne_bytes(), shared)
            }
            _ => Err(WcStatus::BadResponse),
        }
    }

    fn place(
        &self,
        identity: &Identity,
        wqe: &SendWqe,
        skip: u64,
        bytes: &[u8],
        shared: &Shared,
    ) -> Result<(), WcStatus> {
        let Payload::Sges(count) = wqe.payload else {
            return Err(WcStatus::LocalQpOperationError);
        };
        let sges = self.queue.sges(self.queue.head(), count);
        shared
            .memory
            .scatter(identity.pd, sges, skip, bytes)
            .map_err(|_| WcStatus::LocalProtectionError)
    }

    /// Everything before `psn` is acknowledged: completes requests, oldest
    /// first, but stops at a Read or atomic whose data is missing.
    fn acknowledge_before(
        &mut self,
        identity: &Identity,
        psn: Psn,
        now: Time,
        shared: &mut Shared,
    ) -> Walk {
        let before = self.una;
        let walk = loop {
            let head = self.queue.get(self.queue.head());
            let Some(wqe) = head.filter(|_| psn.is_after(self.una)) else {
                break Walk::Reached;
            };
            let Some(end) = wqe.end_psn() else {
                break Walk::Reached;
            };
            if wqe.awaits_response() {
                break Walk::MissingResponse;
            }
            if psn.is_before(end) {
                self.una = psn;
                break Walk::Reached;
            }
            self.una = end;
            self.complete_head(identity, WcStatus::Success, 0, shared);
        };
        if self.una != before {
            self.on_progress(now);
        }
        walk
    }

    /// `una` has moved: retries start anew, and so does the timer; a peer that
    /// was not ready is.
    fn on_progress(&mut self, now: Time) {
        self.reload_retries();
        self.went_back = false;
        self.rnr_until = None;
        self.ack_deadline = match self.una == self.nxt {
            true => None,
            false => self.patience().map(|patience| now + patience),
        };
    }
}

/// Only an ACK may stand in the AETH of a response with data (IBTA 9.7.5.1.7).
fn is_positive(packet: &Packet<'_>) -> bool {
    packet
        .aeth()
        .is_none_or(|aeth| matches!(aeth.meaning(), Syndrome::Ack { .. }))
}
