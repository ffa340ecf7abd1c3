//! The checks that every received packet goes through (IBTA 9.6).

use super::{Nic, find};
use crate::link::{IpId, PacketSink, RxPacket};
use crate::time::Time;
use crate::transport::counters::Counters;
use crate::transport::multicast::MULTICAST_QPN;
use crate::wire::icrc::{self, Envelope};
use crate::wire::{DEFAULT_PKEY, Packet, Service};

impl Nic {
    /// Takes one packet through the checks (IBTA 9.6) to its queue pair.
    /// Whatever fails is dropped in silence and counted; nothing changes
    /// before the ICRC has passed.
    pub fn receive(&mut self, now: Time, rx: &RxPacket<'_>) {
        let counters = &mut self.shared.counters;
        let Ok(packet) = Packet::parse(rx.bytes) else {
            counters.rx_malformed += 1;
            return;
        };
        if packet.service() == Service::Cnp {
            counters.rx_cnps += 1;
            return;
        }
        let qpn = packet.dest_qpn();
        if rx.dst.is_multicast() || qpn == MULTICAST_QPN {
            let is_to_group = qpn == MULTICAST_QPN && packet.service() == Service::Ud;
            if !is_to_group || self.groups.members(rx.dst).is_empty() {
                counters.rx_unknown_qp += 1;
            } else if is_intact(rx, &packet, counters) {
                self.receive_multicast(now, rx, &packet);
            }
            return;
        }
        let Some(qp) = find(&mut self.qps, qpn).ok().filter(|qp| {
            qp.identity.service() == packet.service()
                && qp.identity.has_half_for(packet.operation())
        }) else {
            counters.rx_unknown_qp += 1;
            return;
        };
        if !qp.accepts(rx, &packet, counters) || !is_intact(rx, &packet, counters) {
            return;
        }
        qp.on_packet(rx, &packet, now, &mut self.shared);
        self.schedule(qpn);
        self.fail_overrun_users();
    }
}

/// A [`PacketSink`] that feeds a NIC.
#[derive(Debug)]
pub struct Receiver<'a> {
    /// The NIC.
    pub nic: &'a mut Nic,
    /// The time of arrival.
    pub now: Time,
}

impl PacketSink for Receiver<'_> {
    fn packet(&mut self, packet: &RxPacket<'_>) {
        self.nic.receive(self.now, packet);
    }
}

/// The checks that come last, and need no queue pair.
fn is_intact(rx: &RxPacket<'_>, packet: &Packet<'_>, counters: &mut Counters) -> bool {
    if !pkey_matches(packet.pkey()) {
        counters.rx_bad_pkey += 1;
        return false;
    }
    if !icrc_is_right(rx) {
        counters.rx_icrc_errors += 1;
        return false;
    }
    counters.rx_packets += 1;
    true
}

/// IBTA 10.9.3: the low 15 bits agree and aren't 0, and not both are limited
/// members; the own P_Key is always a full one.
fn pkey_matches(pkey: u16) -> bool {
    pkey & 0x7fff == DEFAULT_PKEY & 0x7fff
}

/// The full check when the IP header was seen; otherwise with the likely
/// identification, and last with any that fits.
fn icrc_is_right(rx: &RxPacket<'_>) -> bool {
    let (ipv4_id, known) = match rx.ip_id {
        IpId::Known(id) => (id, true),
        IpId::Likely(id) => (id, false),
    };
    let envelope = Envelope {
        src: rx.src,
        dst: rx.dst,
        src_port: rx.src_port,
        ipv4_id,
        dont_fragment: true,
    };
    match known {
        true => icrc::verify(&envelope, rx.bytes),
        false => icrc::solve_ipv4_id(&envelope, rx.bytes).is_some(),
    }
}
