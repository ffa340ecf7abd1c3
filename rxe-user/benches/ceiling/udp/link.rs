//! The same by `UdpLink`: as a queue pair would use it.

use std::convert::Infallible;
use std::net::{IpAddr, Ipv4Addr};

use rxe_user::link::udp::{UdpLink, UdpOptions};
use rxe_user::link::{IpId, Link, PacketSink, Route, RxPacket, TxQueue};
use rxe_user::wire::icrc::{self, Envelope};

use super::Result;
use super::port::{Arrival, CRC, DATA, Destination, HEADER, Port, SMALL, WORD};

/// Room for the packets of one [`Port::send_data`].
const ARENA: usize = 2 << 20;
const MAX_PACKETS: usize = 4096;

/// A `UdpLink` with one address and its peer.
pub(crate) struct LinkPort {
    link: UdpLink,
    route: Route,
    tx: TxQueue,
    payload: Vec<u8>,
    packets: u32,
    destination: Destination,
}

impl LinkPort {
    /// Takes one of the two addresses that belong to the process `pid`, and
    /// sends to the other; packets carry `payload` bytes.
    pub(crate) fn new(pid: u32, first: bool, payload: usize) -> Result<Self> {
        let [.., high, low] = pid.to_be_bytes();
        let [one, two] = [8, 9].map(|net| IpAddr::from(Ipv4Addr::new(127, net, high, low)));
        let (src, dst) = if first { (one, two) } else { (two, one) };
        Ok(Self {
            link: UdpLink::bind(&[src], &UdpOptions::default())?,
            route: Route {
                src,
                dst,
                traffic_class: 0,
                hop_limit: 64,
            },
            tx: TxQueue::new(ARENA, MAX_PACKETS),
            payload: (0..payload).map(|i| i as u8).collect(),
            packets: 0,
            destination: Destination::new(),
        })
    }

    fn push(&mut self, kind: u8, payload: Option<&[u8]>) -> Result<()> {
        let payload = payload.unwrap_or(&self.payload);
        let len = HEADER + payload.len() + CRC;
        self.packets = self.packets.wrapping_add(1);
        let psn = self.packets;
        let pushed = self.tx.push(self.route, len, |room| {
            room[..8].fill(kind);
            room[8..HEADER].copy_from_slice(&psn.to_be_bytes());
            room[HEADER..len - CRC].copy_from_slice(payload);
            Ok::<_, Infallible>(len)
        });
        match pushed {
            Some(Ok(())) => Ok(()),
            None => Err("the queue is full".into()),
        }
    }
}

impl Port for LinkPort {
    fn send_data(&mut self, count: usize) -> Result<()> {
        for _ in 0..count {
            self.push(DATA, None)?;
        }
        while !self.tx.is_empty() {
            self.link.send(&mut self.tx)?;
        }
        Ok(())
    }

    fn send_word(&mut self, word: u64) -> Result<()> {
        let mut payload = [0; SMALL];
        payload[..8].copy_from_slice(&word.to_be_bytes());
        self.push(WORD, Some(&payload))?;
        while !self.tx.is_empty() {
            self.link.send(&mut self.tx)?;
        }
        Ok(())
    }

    fn receive(&mut self, each: impl FnMut(Arrival)) -> Result<usize> {
        let mut sink = Sink {
            destination: &mut self.destination,
            each,
        };
        Ok(self.link.receive(&mut sink)?)
    }
}

struct Sink<'a, F> {
    destination: &'a mut Destination,
    each: F,
}

impl<F: FnMut(Arrival)> PacketSink for Sink<'_, F> {
    fn packet(&mut self, packet: &RxPacket<'_>) {
        let (IpId::Known(ipv4_id) | IpId::Likely(ipv4_id)) = packet.ip_id;
        let envelope = Envelope {
            src: packet.src,
            dst: packet.dst,
            src_port: packet.src_port,
            ipv4_id,
            dont_fragment: true,
        };
        let intact = icrc::solve_ipv4_id(&envelope, packet.bytes).is_some();
        (self.each)(if intact {
            self.destination.take(packet.bytes)
        } else {
            Arrival::Garbage
        });
    }
}
