//! The receiving half of UC (IBTA 9.8.2): like RC's, but what goes wrong is
//! dropped in silence, up to the next message.

use verbs_sys::{AccessFlags, WcOpcode, WcStatus};

use super::placement::{ActiveReceive, ReceiveSource};
use super::queue_pair::{Connection, Identity, Shared};
use super::responder::{Message, WriteTarget, arrival, check_payload, check_range, follows};
use crate::wire::{Packet, Psn};

/// A message was dropped.
struct Dropped;

/// The receiving half of a UC queue pair.
#[derive(Debug)]
pub(crate) struct UnreliableReceiver {
    expected: Psn,
    message: Message,
    access: AccessFlags,
}

impl UnreliableReceiver {
    pub(crate) fn new() -> Self {
        Self {
            expected: Psn::default(),
            message: Message::None,
            access: AccessFlags::empty(),
        }
    }

    pub(crate) fn set_access(&mut self, access: AccessFlags) {
        self.access = access;
    }

    /// Starts to expect packets at `psn`.
    pub(crate) fn start(&mut self, psn: Psn) {
        self.expected = psn;
        self.message = Message::None;
    }

    pub(crate) fn expected_psn(&self) -> Psn {
        self.expected
    }

    /// Handles a packet that has passed the checks of every packet. A gap, or
    /// an operation out of place, ends the message that is being received;
    /// the next First or Only packet starts a new one (IBTA 9.8.2.2.1).
    pub(crate) fn on_packet(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        active: &mut ActiveReceive,
        source: &mut ReceiveSource,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) {
        let operation = packet.operation();
        if packet.psn() != self.expected {
            shared.counters.out_of_sequence += 1;
            self.abandon(
                identity,
                active,
                source,
                WcStatus::RemoteInvalidRequest,
                shared,
            );
        }
        self.expected = packet.psn().next();
        if !follows(self.message, operation) {
            self.abandon(
                identity,
                active,
                source,
                WcStatus::RemoteInvalidRequest,
                shared,
            );
            if !operation.is_start() {
                return;
            }
        }
        let done = match operation.is_send() {
            true => self.on_send(identity, connection, active, source, packet, shared),
            false => self.on_write(identity, connection, active, source, packet, shared),
        };
        if done.is_err() {
            shared.counters.rx_no_receive += 1;
            self.abandon(
                identity,
                active,
                source,
                WcStatus::RemoteAccessError,
                shared,
            );
        }
    }

    fn on_send(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        active: &mut ActiveReceive,
        source: &mut ReceiveSource,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Dropped> {
        let operation = packet.operation();
        check_payload(packet, connection.path_mtu.bytes() as usize).map_err(|_| Dropped)?;
        if operation.is_start() {
            active
                .begin(source, identity, packet, shared)
                .map_err(|_| Dropped)?;
        }
        let payload = packet.payload();
        if active.filled() + payload.len() as u64 > active.capacity() {
            return Err(Dropped);
        }
        active.place(payload, shared).map_err(|_| Dropped)?;
        if operation.is_end() {
            self.message = Message::None;
            let arrival = arrival(packet, connection, WcOpcode::Receive);
            active.complete(source, identity, active.filled(), arrival, shared);
        } else {
            self.message = Message::Send;
        }
        Ok(())
    }

    fn on_write(
        &mut self,
        identity: &Identity,
        connection: &Connection,
        active: &mut ActiveReceive,
        source: &mut ReceiveSource,
        packet: &Packet<'_>,
        shared: &mut Shared,
    ) -> Result<(), Dropped> {
        let (operation, by) = (packet.operation(), identity.accessor());
        if !self.access.contains(AccessFlags::REMOTE_WRITE) {
            return Err(Dropped);
        }
        check_payload(packet, connection.path_mtu.bytes() as usize).map_err(|_| Dropped)?;
        let mut target = match (packet.reth(), self.message) {
            (Some(reth), _) => {
                check_range(by, &reth, AccessFlags::REMOTE_WRITE, shared).map_err(|_| Dropped)?;
                WriteTarget::new(&reth)
            }
            (None, Message::Write(target)) => target,
            (None, _) => return Err(Dropped),
        };
        if !target.expects(packet) {
            return Err(Dropped);
        }
        target
            .place(by, packet.payload(), shared)
            .map_err(|_| Dropped)?;
        if !operation.is_end() {
            self.message = Message::Write(target);
            return Ok(());
        }
        self.message = Message::None;
        if operation.consumes_receive() {
            // The data stays where it is even if there is nobody to tell.
            active
                .begin(source, identity, packet, shared)
                .map_err(|_| Dropped)?;
            let arrival = arrival(packet, connection, WcOpcode::ReceiveWriteImm);
            active.complete(source, identity, target.total, arrival, shared);
        }
        Ok(())
    }

    /// Gives up the message that is being received. A request of the own
    /// queue is used again for the next; one of a shared queue can't go back
    /// and fails (IBTA table 61, class E).
    fn abandon(
        &mut self,
        identity: &Identity,
        active: &mut ActiveReceive,
        source: &mut ReceiveSource,
        status: WcStatus,
        shared: &mut Shared,
    ) {
        self.message = Message::None;
        match source {
            ReceiveSource::Own(_) => active.rewind(),
            ReceiveSource::Shared(_) | ReceiveSource::Named(_) => {
                active.fail(source, identity, status, 0, shared);
            }
        }
    }
}
