//! What a request in sequence does, check by check (IBTA 9.7.4.1).

use verbs_sys::{AccessFlags, WcFlags, WcOpcode};

use super::{Message, Refusal, Responder, WriteTarget};
use crate::transport::memory::{Accessor, AtomicOperation};
use crate::transport::placement::Arrival;
use crate::transport::queue_pair::{Connection, Identity, Shared};
use crate::wire::{Operation, Packet, PayloadClass, Reth};

/// Longest message of RDMA (IBTA 9.7.4.1.6).
const MAX_DMA_LENGTH: u32 = 1 << 31;

impl Responder {
    pub(super) fn execute(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Refusal> {
        let operation = packet.operation();
        if !follows(self.message, operation) {
            return Err(Refusal::INVALID_REQUEST);
        }
        self.check_allowed(operation)?;
        check_payload(packet, connection.path_mtu.bytes() as usize)?;
        if operation.is_send() {
            self.execute_send(identity, connection, packet, shared)
        } else if operation.is_write() {
            self.execute_write(identity, connection, packet, shared)
        } else if operation == Operation::ReadRequest {
            self.execute_read(identity, connection, packet, shared)
        } else {
            self.execute_atomic(identity, packet, shared)
        }
    }

    /// What the queue pair lets a peer do (IBTA 9.7.4.1.5); Flush and Atomic
    /// Write (annex A19) are known but not offered.
    fn check_allowed(&self, operation: Operation) -> Result<(), Refusal> {
        let right = match operation {
            Operation::Flush | Operation::AtomicWrite => return Err(Refusal::INVALID_REQUEST),
            Operation::ReadRequest => AccessFlags::REMOTE_READ,
            Operation::CompareSwap | Operation::FetchAdd => AccessFlags::REMOTE_ATOMIC,
            _ if operation.is_write() => AccessFlags::REMOTE_WRITE,
            _ => AccessFlags::empty(),
        };
        if self.access.contains(right) {
            Ok(())
        } else {
            Err(Refusal::INVALID_REQUEST)
        }
    }

    fn execute_send(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Refusal> {
        let operation = packet.operation();
        if operation.is_start() {
            self.receive.begin(&self.source, identity, packet, shared)?;
        } else if !self.receive.goes_on(packet) {
            return Err(Refusal::UNKNOWN_QUEUE);
        }
        let payload = packet.payload();
        if self.receive.filled() + payload.len() as u64 > self.receive.capacity() {
            return Err(Refusal::MESSAGE_TOO_LONG);
        }
        self.receive
            .place(payload, shared)
            .map_err(|_| Refusal::RECEIVE_PROTECTION)?;
        self.expected += 1;
        if !operation.is_end() {
            self.message = Message::Send;
            self.acknowledge_if_asked(packet);
            return Ok(());
        }
        self.message = Message::None;
        if let Some(ieth) = packet.ieth() {
            // Only windows of this queue pair can be (IBTA 9.4.1.1.3).
            shared
                .memory
                .invalidate(identity.accessor(), ieth.rkey)
                .map_err(|_| Refusal::InvalidateFailed)?;
        }
        self.msn += 1;
        let arrival = arrival(packet, connection, WcOpcode::Receive);
        let byte_len = self.receive.filled();
        self.receive
            .complete(&mut self.source, identity, byte_len, arrival, shared);
        self.acknowledge_if_asked(packet);
        Ok(())
    }

    fn execute_write(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Refusal> {
        let operation = packet.operation();
        let by = self.accessor(identity, packet, shared);
        let mut target = match (packet.reth(), self.message) {
            (Some(reth), _) => self.write_target(identity, by, &reth, packet, shared)?,
            (None, Message::Write(target)) => target,
            (None, _) => return Err(Refusal::INVALID_REQUEST),
        };
        if !target.expects(packet) {
            return Err(Refusal::INVALID_REQUEST);
        }
        if operation.consumes_receive() {
            self.receive.begin(&self.source, identity, packet, shared)?;
        }
        target.place(by, packet.payload(), shared)?;
        self.expected += 1;
        if !operation.is_end() {
            self.message = Message::Write(target);
            self.acknowledge_if_asked(packet);
            return Ok(());
        }
        self.message = Message::None;
        self.msn += 1;
        if operation.consumes_receive() {
            let arrival = arrival(packet, connection, WcOpcode::ReceiveWriteImm);
            self.receive
                .complete(&mut self.source, identity, target.total, arrival, shared);
        }
        self.acknowledge_if_asked(packet);
        Ok(())
    }

    /// Checks the whole range once, at the first packet, so that a Write with
    /// a bad key changes nothing; each packet is checked again as it is placed.
    fn write_target(
        &mut self,
        identity: &Identity,
        by: Accessor,
        reth: &Reth,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<WriteTarget, Refusal> {
        let operation = packet.operation();
        if reth.length > MAX_DMA_LENGTH {
            return Err(Refusal::INVALID_REQUEST);
        }
        // Resources come before keys (IBTA 9.7.4.1).
        if operation.consumes_receive() {
            self.receive.begin(&self.source, identity, packet, shared)?;
        }
        check_range(by, reth, AccessFlags::REMOTE_WRITE, shared)?;
        Ok(WriteTarget::new(reth))
    }

    fn execute_read(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Refusal> {
        let reth = packet.reth().ok_or(Refusal::INVALID_REQUEST)?;
        if reth.length > MAX_DMA_LENGTH || !self.replies.has_resource() {
            return Err(Refusal::INVALID_REQUEST);
        }
        let by = self.accessor(identity, packet, shared);
        check_range(by, &reth, AccessFlags::REMOTE_READ, shared)?;
        let packets = reth.length.div_ceil(connection.path_mtu.bytes()).max(1);
        self.msn += 1;
        self.expected += packets;
        self.replies
            .push_read(packet.psn(), packets, &reth, by, self.msn);
        Ok(())
    }

    fn execute_atomic(
        &mut self,
        identity: &Identity,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Refusal> {
        let atomic = packet.atomic_eth().ok_or(Refusal::INVALID_REQUEST)?;
        if !atomic.va.is_multiple_of(8) || !self.replies.has_resource() {
            return Err(Refusal::INVALID_REQUEST);
        }
        let operation = match packet.operation() {
            Operation::FetchAdd => AtomicOperation::FetchAdd {
                add: atomic.swap_or_add,
            },
            _ => AtomicOperation::CompareSwap {
                compare: atomic.compare,
                swap: atomic.swap_or_add,
            },
        };
        let by = self.accessor(identity, packet, shared);
        let original = shared
            .memory
            .atomic_remote(by, atomic.rkey, atomic.va, operation)
            .map_err(|_| Refusal::ACCESS)?;
        self.msn += 1;
        self.expected += 1;
        self.replies
            .push_atomic(packet.psn(), atomic.rkey, atomic.va, original, self.msn);
        Ok(())
    }

    fn acknowledge_if_asked(&mut self, packet: &Packet<'_>) {
        if packet.ack_request() {
            self.replies.push_ack(packet.psn(), self.msn);
        }
    }
}

/// Which operation may follow inside a message (IBTA 9.7.4.1.2, table 38).
pub(crate) fn follows(message: Message, operation: Operation) -> bool {
    match message {
        Message::None => operation.is_start(),
        Message::Send => operation.is_send() && !operation.is_start(),
        Message::Write(_) => operation.is_write() && !operation.is_start(),
    }
}

/// Length and pad rules of a packet (IBTA 9.7.4.1.6, 9.2.4).
pub(crate) fn check_payload(packet: &Packet<'_>, path_mtu: usize) -> Result<(), Refusal> {
    let len = packet.payload().len();
    let padded = (len + usize::from(packet.pad())).is_multiple_of(4);
    let class: PayloadClass = packet.operation().payload_class();
    if padded && class.allows(len, path_mtu) {
        Ok(())
    } else {
        Err(Refusal::INVALID_REQUEST)
    }
}

/// A peer's range; one of length 0 touches nothing, so its key isn't looked at
/// (IBTA 9.7.4.1.4).
pub(crate) fn check_range(
    by: Accessor,
    reth: &Reth,
    right: AccessFlags,
    shared: &Shared,
) -> Result<(), Refusal> {
    if reth.length == 0 {
        return Ok(());
    }
    shared
        .memory
        .check_remote(by, reth.rkey, reth.va, u64::from(reth.length), right)
        .map_err(|_| Refusal::ACCESS)
}

/// What the receive completion says of the last packet of a message.
pub(crate) fn arrival(packet: &Packet<'_>, connection: &Connection, opcode: WcOpcode) -> Arrival {
    let (flags, imm_or_rkey) = match (packet.immediate(), packet.ieth()) {
        (Some(imm), _) => (WcFlags::WITH_IMM, imm.0),
        (None, Some(ieth)) => (WcFlags::WITH_INV, ieth.rkey),
        (None, None) => (WcFlags::empty(), 0),
    };
    Arrival {
        opcode,
        flags,
        imm_or_rkey,
        src_qp: connection.dest_qpn,
        solicited: packet.solicited(),
    }
}
