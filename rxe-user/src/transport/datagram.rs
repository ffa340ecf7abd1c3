//! UD: address handles, and the receiving half (IBTA 9.8.3).

use std::any::Any;

use verbs_sys::{AddressHandle, WcFlags, WcOpcode};

use super::placement::{ActiveReceive, Arrival, ReceiveSource};
use super::queue_pair::{Identity, Shared};
use crate::link::{ROCE_PORT, Route, RxPacket};
use crate::wire::{IpUdp, Packet, grh};

/// An address handle: the route to a peer. The network resolves the rest.
#[derive(Debug, Clone, Copy)]
pub struct RoutedAddress {
    /// Where datagrams go.
    pub route: Route,
}

impl AddressHandle for RoutedAddress {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Where one UD request goes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct UdDestination {
    pub(crate) route: Route,
    pub(crate) qpn: u32,
    pub(crate) qkey: u32,
}

/// Delivers a datagram, or drops it in silence: wrong Q_Key, no receive
/// request, or one that is too small and stays (IBTA 9.8.3.1).
pub(crate) fn receive(
    identity: &Identity,
    qkey: u32,
    active: &mut ActiveReceive,
    source: &mut ReceiveSource,
    rx: &RxPacket<'_>,
    packet: &Packet<'_>,
    shared: &mut Shared,
) {
    let Some(deth) = packet.deth() else { return };
    if deth.qkey != qkey {
        shared.counters.rx_bad_qkey += 1;
        return;
    }
    if active.begin(source, identity, packet, shared).is_err() {
        shared.counters.rx_no_receive += 1;
        return;
    }
    let payload = packet.payload();
    let byte_len = (grh::GRH_LEN + payload.len()) as u64;
    if byte_len > active.capacity() {
        shared.counters.rx_no_receive += 1;
        return;
    }
    let header = IpUdp {
        src: rx.src,
        dst: rx.dst,
        tos: rx.traffic_class,
        ttl: rx.hop_limit,
        ipv4_id: 0,
        dont_fragment: true,
        flow_label: 0,
        src_port: rx.src_port,
        dst_port: ROCE_PORT,
        udp_checksum: 0,
    };
    let Ok(image) = grh::image(&header, rx.bytes.len()) else {
        return;
    };
    let placed = active
        .place(&image, shared)
        .and_then(|()| active.place(payload, shared));
    if placed.is_err() {
        active.rewind();
        shared.counters.rx_no_receive += 1;
        return;
    }
    let (flags, imm_or_rkey) = match packet.immediate() {
        Some(imm) => (WcFlags::GRH | WcFlags::WITH_IMM, imm.0),
        None => (WcFlags::GRH, 0),
    };
    let arrival = Arrival {
        opcode: WcOpcode::Receive,
        flags,
        imm_or_rkey,
        src_qp: deth.source_qpn,
        solicited: packet.solicited(),
    };
    active.complete(source, identity, byte_len, arrival, shared);
}
