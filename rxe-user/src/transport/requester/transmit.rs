//! Segmentation and the request packets (IBTA 9.7.3, 9.4, 9.8.2).

use verbs_sys::{QpType, SendFlags, SendOp, WcStatus};

use super::Requester;
use crate::link::{Route, TxQueue};
use crate::time::Time;
use crate::transport::queue_pair::{Connection, Fault, Identity, Shared, Turn};
use crate::transport::send_queue::{MAX_OUTSTANDING, Payload, SendWqe};
use crate::wire::{
    AtomicEth, Bth, Deth, Ieth, ImmDt, MAX_HEADER_LEN, Opcode, Operation, PacketBuilder, Reth,
    XrcEth,
};

/// Packets without an acknowledge request after which one is due at the
/// latest, as rxe does.
const ACK_REQUEST_INTERVAL: u32 = 64;

/// Acknowledge requests per window, so that it moves on before it is full.
const ACK_REQUESTS_PER_WINDOW: u32 = 4;

/// Bytes that pad and ICRC add.
const TRAILER: usize = 3 + 4;

/// Why a packet couldn't be written.
enum Unwritten {
    /// The consumer's memory can't be read.
    Protection,
    /// The packet and its headers don't fit each other: a defect of ours.
    Malformed,
}

/// What comes next.
enum Next {
    /// Nothing can be sent now.
    Blocked,
    /// The request at the cursor.
    Request(SendWqe),
}

impl Requester {
    /// Writes request packets, at most `budget`, as far as window, fences and
    /// the peer's limits allow.
    pub(crate) fn transmit(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        now: Time,
        tx: &mut TxQueue,
        budget: u32,
        shared: &mut Shared,
    ) -> Result<Turn, Fault> {
        for _ in 0..budget {
            let wqe = match self.next(identity, connection, shared)? {
                Next::Blocked => return Ok(Turn::Idle),
                Next::Request(wqe) => wqe,
            };
            if wqe.packets == 0 {
                self.execute_locally(identity, &wqe, shared)?;
                continue;
            }
            if !tx.has_room(connection.path_mtu.bytes() as usize + MAX_HEADER_LEN + TRAILER) {
                return Ok(Turn::Full);
            }
            let Some(route) = wqe.destination.map(|ud| ud.route).or(connection.route) else {
                return Ok(Turn::Idle);
            };
            let oversized = identity.qp_type == QpType::Ud
                && wqe.length > u64::from(connection.path_mtu.bytes());
            // A datagram above the MTU ends here, successfully (IBTA 9.8.2.2).
            if !oversized {
                match self.write_packet(identity, connection, &wqe, route, tx, shared) {
                    Ok(()) => shared.counters.tx_packets += 1,
                    Err(Unwritten::Protection) => {
                        self.fault_at_cursor(identity, WcStatus::LocalProtectionError, shared)?;
                        return Ok(Turn::Idle);
                    }
                    Err(Unwritten::Malformed) => {
                        self.fault_at_cursor(identity, WcStatus::LocalQpOperationError, shared)?;
                        return Ok(Turn::Idle);
                    }
                }
            }
            self.step(identity, &wqe, now, shared);
        }
        Ok(Turn::More)
    }

    /// Decides what may be sent.
    fn next(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        shared: &mut Shared,
    ) -> Result<Next, Fault> {
        let Some(wqe) = self.queue.get(self.cursor).copied() else {
            return Ok(Next::Blocked);
        };
        if let Some((position, status)) = self.local_fault
            && position == self.cursor
        {
            self.fault_at_cursor(identity, status, shared)?;
            return Ok(Next::Blocked);
        }
        if wqe.first_psn.is_none() && !connection.starts_requests {
            return Ok(Next::Blocked);
        }
        if !identity.is_reliable() {
            return Ok(Next::Request(wqe));
        }
        let in_flight = self.send.diff(self.una).max(0) as u32;
        if self.rnr_until.is_some() || in_flight >= self.limits.window {
            return Ok(Next::Blocked);
        }
        if wqe.first_psn.is_none() {
            let waits_for_data = wqe.flags.contains(SendFlags::FENCE) && self.outstanding_reads > 0;
            let waits_for_all = wqe.packets == 0 && self.cursor != self.queue.head();
            let fits = in_flight + wqe.packets < MAX_OUTSTANDING;
            if waits_for_data || waits_for_all || !fits {
                return Ok(Next::Blocked);
            }
        }
        if wqe.awaits_response() && self.outstanding_reads >= self.limits.max_rd_atomic {
            return Ok(Next::Blocked);
        }
        Ok(Next::Request(wqe))
    }

    /// Moves on after a packet.
    fn step(&mut self, identity: &Identity, wqe: &SendWqe, now: Time, shared: &mut Shared) {
        let sent = if wqe.awaits_response() {
            wqe.packets - self.cursor_packet
        } else {
            1
        };
        if wqe.first_psn.is_none()
            && let Some(queued) = self.queue.get_mut(self.cursor)
        {
            queued.first_psn = Some(self.send);
        }
        let resent = self.send.is_before(self.nxt);
        self.send += sent;
        if self.send.is_after(self.nxt) {
            self.nxt = self.send;
        } else if resent {
            shared.counters.retransmitted += 1;
        }
        self.cursor_packet += sent;
        if self.cursor_packet >= wqe.packets {
            self.cursor += 1;
            self.cursor_packet = 0;
            if wqe.awaits_response() {
                self.outstanding_reads += 1;
            }
            if !identity.is_reliable() {
                self.complete_head(identity, WcStatus::Success, 0, shared);
            }
        }
        if identity.is_reliable() {
            if self.ack_deadline.is_none() {
                self.ack_deadline = self.patience().map(|patience| now + patience);
            }
        } else {
            self.una = self.send;
        }
    }

    /// Runs a request that sends nothing; all earlier ones have completed.
    fn execute_locally(
        &mut self,
        identity: &Identity,
        wqe: &SendWqe,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        let (by, memory) = (identity.accessor(), &mut shared.memory);
        let result = match &wqe.op {
            SendOp::BindWindow { binding } => memory.bind(by, binding),
            SendOp::LocalInvalidate { key } => memory.invalidate(by, *key),
            // Has packets, at least one.
            _ => Ok(()),
        };
        if result.is_err() {
            let status = WcStatus::MemoryWindowBindError;
            return Err(self.fail_head(identity, status, 0, shared));
        }
        self.cursor += 1;
        self.complete_head(identity, WcStatus::Success, 0, shared);
        Ok(())
    }

    /// The request at the cursor can't be executed. It fails once all earlier
    /// ones have completed, for completions come in order.
    fn fault_at_cursor(
        &mut self,
        identity: &Identity,
        status: WcStatus,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        if self.cursor == self.queue.head() {
            return Err(self.fail_head(identity, status, 0, shared));
        }
        self.local_fault = Some((self.cursor, status));
        Ok(())
    }

    fn write_packet(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        wqe: &SendWqe,
        route: Route,
        tx: &mut TxQueue,
        shared: &Shared,
    ) -> Result<(), Unwritten> {
        let mtu = u64::from(connection.path_mtu.bytes());
        let packet = self.cursor_packet;
        let done = u64::from(packet) * mtu;
        let operation = operation(wqe, packet);
        let opcode = Opcode::new(identity.service(), operation).ok_or(Unwritten::Malformed)?;
        let dest_qpn = wqe.destination.map_or(connection.dest_qpn, |ud| ud.qpn);
        let mut bth = Bth::new(opcode, dest_qpn, self.send);
        bth.ack_request = identity.is_reliable() && self.asks_for_ack(operation, wqe);
        bth.solicited = operation.is_end() && solicits(wqe);
        if bth.ack_request {
            self.since_ack_request = 0;
        } else {
            self.since_ack_request += 1;
        }
        let payload_len = match wqe.awaits_response() {
            true => 0,
            false => (wqe.length - done).min(mtu) as usize,
        };
        let room = MAX_HEADER_LEN + payload_len + TRAILER;
        let position = self.cursor;
        let written = tx.push(route, room, |buffer| {
            let builder = PacketBuilder::new(buffer, bth).map_err(|_| Unwritten::Malformed)?;
            let mut builder = headers(builder, operation, wqe, connection, identity, done);
            let payload = builder
                .payload_mut(payload_len)
                .map_err(|_| Unwritten::Malformed)?;
            self.copy_payload(identity, wqe, position, done, payload, shared)?;
            builder.finish().map_err(|_| Unwritten::Malformed)
        });
        // There is room: `transmit` has asked for more than this.
        written.unwrap_or(Err(Unwritten::Malformed))
    }

    fn copy_payload(
        &self,
        identity: &Identity,
        wqe: &SendWqe,
        position: u64,
        done: u64,
        target: &mut [u8],
        shared: &Shared,
    ) -> Result<(), Unwritten> {
        if target.is_empty() {
            return Ok(());
        }
        match wqe.payload {
            Payload::Sges(count) => shared
                .memory
                .gather(identity.pd, self.queue.sges(position, count), done, target)
                .map_err(|_| Unwritten::Protection),
            Payload::Inline => {
                let start = done as usize;
                let source = self.queue.inline(position).get(start..start + target.len());
                target.copy_from_slice(source.ok_or(Unwritten::Malformed)?);
                Ok(())
            }
        }
    }

    /// Every message is acknowledged in the end; long ones also on the way,
    /// and always before the sender stalls (IBTA 9.7.3).
    fn asks_for_ack(&self, operation: Operation, wqe: &SendWqe) -> bool {
        let stalls_after = (self.send.diff(self.una) + 1) as u32 >= self.limits.window;
        let resent_to_the_end = self.send + 1 == self.nxt;
        let interval = ACK_REQUEST_INTERVAL.min(self.limits.window / ACK_REQUESTS_PER_WINDOW);
        operation.is_end()
            || wqe.awaits_response()
            || stalls_after
            || resent_to_the_end
            || self.since_ack_request >= interval
    }

    /// Brings the cursor up when acknowledgements have overtaken what is
    /// being sent again.
    pub(super) fn catch_up(&mut self) {
        if self.una.is_after(self.send) {
            self.send = self.una;
            self.cursor = self.queue.head();
            self.cursor_packet = self.packets_into_head();
        }
    }
}

/// SE is for operations that end in a receive completion (IBTA 9.2.3).
fn solicits(wqe: &SendWqe) -> bool {
    wqe.flags.contains(SendFlags::SOLICITED)
        && matches!(
            wqe.op,
            SendOp::Send
                | SendOp::SendImm { .. }
                | SendOp::SendInvalidate { .. }
                | SendOp::WriteImm { .. }
        )
}

/// The operation of the `packet`-th packet of a request.
fn operation(wqe: &SendWqe, packet: u32) -> Operation {
    use Operation as O;
    let (first, last) = (packet == 0, packet + 1 >= wqe.packets);
    let pick = |first_packet, middle, last_packet, only| match (first, last) {
        (true, true) => only,
        (true, false) => first_packet,
        (false, false) => middle,
        (false, true) => last_packet,
    };
    match wqe.op {
        SendOp::Send => pick(O::SendFirst, O::SendMiddle, O::SendLast, O::SendOnly),
        SendOp::SendImm { .. } => pick(O::SendFirst, O::SendMiddle, O::SendLastImm, O::SendOnlyImm),
        SendOp::SendInvalidate { .. } => pick(
            O::SendFirst,
            O::SendMiddle,
            O::SendLastInvalidate,
            O::SendOnlyInvalidate,
        ),
        SendOp::Write { .. } => pick(O::WriteFirst, O::WriteMiddle, O::WriteLast, O::WriteOnly),
        SendOp::WriteImm { .. } => pick(
            O::WriteFirst,
            O::WriteMiddle,
            O::WriteLastImm,
            O::WriteOnlyImm,
        ),
        SendOp::Read { .. } => O::ReadRequest,
        SendOp::CompareSwap { .. } => O::CompareSwap,
        SendOp::FetchAdd { .. } => O::FetchAdd,
        // Send no packet; `transmit` executes them before they get here.
        SendOp::LocalInvalidate { .. } | SendOp::BindWindow { .. } => O::SendOnly,
    }
}

/// Adds the extended headers that the operation has.
fn headers<'b>(
    builder: PacketBuilder<'b>,
    operation: Operation,
    wqe: &SendWqe,
    connection: &Connection,
    identity: &Identity,
    done: u64,
) -> PacketBuilder<'b> {
    let builder = match wqe.destination {
        Some(ud) => {
            // Bit 31 of the request's Q_Key selects the queue pair's own (IBTA 10.2.5).
            let qkey = if ud.qkey >> 31 == 1 {
                connection.qkey
            } else {
                ud.qkey
            };
            builder.deth(Deth {
                qkey,
                source_qpn: identity.qpn,
            })
        }
        None => builder,
    };
    let builder = match wqe.xrc_srqn {
        Some(srqn) => builder.xrceth(XrcEth { srqn }),
        None => builder,
    };
    let builder = match wqe.op {
        SendOp::Write { remote } | SendOp::WriteImm { remote, .. } if operation.has_reth() => {
            builder.reth(Reth {
                va: remote.addr,
                rkey: remote.rkey,
                length: wqe.length as u32,
            })
        }
        // A Read that is sent again asks for the rest (IBTA 9.7.5).
        SendOp::Read { remote } => builder.reth(Reth {
            va: remote.addr.wrapping_add(done),
            rkey: remote.rkey,
            length: (wqe.length - done) as u32,
        }),
        SendOp::CompareSwap {
            remote,
            compare,
            swap,
        } => builder.atomic_eth(AtomicEth {
            va: remote.addr,
            rkey: remote.rkey,
            swap_or_add: swap,
            compare,
        }),
        SendOp::FetchAdd { remote, add } => builder.atomic_eth(AtomicEth {
            va: remote.addr,
            rkey: remote.rkey,
            swap_or_add: add,
            compare: 0,
        }),
        _ => builder,
    };
    match wqe.op {
        SendOp::SendImm { imm } | SendOp::WriteImm { imm, .. } if operation.has_immediate() => {
            builder.immediate(ImmDt(imm))
        }
        SendOp::SendInvalidate { rkey } if operation.has_invalidate() => {
            builder.ieth(Ieth { rkey })
        }
        _ => builder,
    }
}
