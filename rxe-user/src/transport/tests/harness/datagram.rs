//! A packet in flight.

use std::fmt::Write as _;

use crate::link::{IpId, Route, RxPacket};
use crate::wire::icrc::{self, Envelope};
use crate::wire::{Packet, Psn, Syndrome};

/// UDP source port of all packets.
const SRC_PORT: u16 = 0xc123;

/// A packet with addresses.
#[derive(Debug, Clone)]
pub(crate) struct Datagram {
    pub(crate) route: Route,
    /// BTH to ICRC.
    pub(crate) bytes: Vec<u8>,
}

impl Datagram {
    /// Completes a packet with its ICRC.
    pub(crate) fn sealed(route: Route, mut bytes: Vec<u8>) -> Self {
        let envelope = Envelope {
            src: route.src,
            dst: route.dst,
            src_port: SRC_PORT,
            ipv4_id: 0,
            dont_fragment: true,
        };
        icrc::seal(&envelope, &mut bytes);
        Self { route, bytes }
    }

    /// As its receiver sees it.
    pub(crate) fn arrived(&self) -> RxPacket<'_> {
        RxPacket {
            src: self.route.src,
            dst: self.route.dst,
            src_port: SRC_PORT,
            traffic_class: self.route.traffic_class,
            hop_limit: self.route.hop_limit,
            ip_id: IpId::Known(0),
            bytes: &self.bytes,
        }
    }

    pub(crate) fn packet(&self) -> Packet<'_> {
        Packet::parse(&self.bytes).unwrap()
    }

    pub(crate) fn psn(&self) -> Psn {
        self.packet().psn()
    }

    /// The packet in one line: operation, PSN counted from `base`, then what
    /// it has of bytes, acknowledge request, and syndrome.
    pub(crate) fn text(&self, base: u32) -> String {
        let packet = self.packet();
        let mut text = format!(
            "{} {}",
            packet.operation(),
            packet.psn().diff(Psn::new(base))
        );
        if !packet.payload().is_empty() {
            write!(text, " [{}]", packet.payload().len()).unwrap();
        }
        if let Some(reth) = packet.reth() {
            write!(text, " of {}", reth.length).unwrap();
        }
        if packet.ack_request() {
            text.push_str(" A");
        }
        if packet.solicited() {
            text.push_str(" SE");
        }
        if let Some(aeth) = packet.aeth() {
            match aeth.meaning() {
                Syndrome::Ack { .. } => {}
                Syndrome::RnrNak { timer } => write!(text, " RNR {timer}").unwrap(),
                Syndrome::Nak(code) => write!(text, " {code:?}").unwrap(),
                Syndrome::Reserved(byte) => write!(text, " reserved {byte:#x}").unwrap(),
            }
            write!(text, " msn {}", aeth.msn.value()).unwrap();
        }
        text
    }
}
