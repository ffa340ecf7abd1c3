//! What the tests of the links share.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicU8, Ordering};

use super::{IpId, Link, PacketSink, Route, RxPacket, TxQueue};
use crate::wire::icrc::{self, Envelope};

/// An address of `lo` that no other test has, in this process or another.
pub(crate) fn loopback_address() -> IpAddr {
    static NEXT: AtomicU8 = AtomicU8::new(16);
    let [.., high, low] = std::process::id().to_be_bytes();
    Ipv4Addr::new(127, NEXT.fetch_add(1, Ordering::Relaxed), high, low).into()
}

pub(crate) fn route(src: IpAddr, dst: IpAddr) -> Route {
    Route {
        src,
        dst,
        traffic_class: 0,
        hop_limit: 64,
    }
}

/// Queues a packet of `len` bytes with a content of its own.
pub(crate) fn push(tx: &mut TxQueue, route: Route, len: usize, seed: u64) {
    let mut random = fastrand::Rng::with_seed(seed);
    tx.push(route, len, |room| {
        random.fill(&mut room[..len]);
        Ok::<_, Infallible>(len)
    })
    .expect("the queue has room")
    .expect("writing can't fail");
}

/// A packet as a sink saw it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Packet {
    pub(crate) route: Route,
    pub(crate) src_port: u16,
    pub(crate) ip_id: IpId,
    pub(crate) bytes: Vec<u8>,
}

impl Packet {
    /// The identification with which the ICRC is right.
    pub(crate) fn solve(&self) -> Option<u16> {
        let (IpId::Known(ipv4_id) | IpId::Likely(ipv4_id)) = self.ip_id;
        let envelope = Envelope {
            src: self.route.src,
            dst: self.route.dst,
            src_port: self.src_port,
            ipv4_id,
            dont_fragment: true,
        };
        icrc::solve_ipv4_id(&envelope, &self.bytes)
    }

    /// Whether the ICRC is right with the identification at hand.
    pub(crate) fn is_sealed(&self) -> bool {
        let (IpId::Known(ip_id) | IpId::Likely(ip_id)) = self.ip_id;
        self.solve() == Some(ip_id)
    }
}

/// Keeps what arrives.
#[derive(Debug, Default)]
pub(crate) struct Packets(pub(crate) Vec<Packet>);

impl PacketSink for Packets {
    fn packet(&mut self, packet: &RxPacket<'_>) {
        self.0.push(Packet {
            route: Route {
                src: packet.src,
                dst: packet.dst,
                traffic_class: packet.traffic_class,
                hop_limit: packet.hop_limit,
            },
            src_port: packet.src_port,
            ip_id: packet.ip_id,
            bytes: packet.bytes.to_vec(),
        });
    }
}

/// Receives until `count` packets are there, or none has come for a second.
pub(crate) fn receive(link: &mut impl Link, count: usize) -> Vec<Packet> {
    let mut packets = Packets::default();
    let mut last = std::time::Instant::now();
    while packets.0.len() < count && last.elapsed().as_secs() < 1 {
        if link.receive(&mut packets).expect("the link works") > 0 {
            last = std::time::Instant::now();
        }
    }
    packets.0
}
