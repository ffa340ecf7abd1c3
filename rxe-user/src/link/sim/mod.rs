//! A network that exists in memory only, with a clock of its own.
//!
//! The same seed and the same calls give the same packets at the same times,
//! whatever the machine does meanwhile. Nothing waits: who drives the ends
//! advances the clock, usually to [`Network::next_arrival`] or to the next
//! deadline of the protocol, whichever comes first.
//!
//! ```
//! use std::time::Duration;
//! use rxe_user::link::sim::{Faults, Network};
//! use rxe_user::time::Time;
//!
//! let faults = Faults { loss: 0.01, delay: Duration::from_micros(2), ..Faults::default() };
//! let network = Network::new(1, faults);
//! let client = network.attach(&[[192, 0, 2, 1].into()]);
//! let server = network.attach(&[[192, 0, 2, 2].into()]);
//! network.advance_to(Time::from_nanos(1000));
//! assert_eq!(network.next_arrival(), None);
//! # drop((client, server));
//! ```

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::io;
use std::net::IpAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::{IpId, Link, PacketSink, ROCE_PORT, Route, RxPacket, Tappable, TxQueue};
use crate::time::Time;
use crate::wire::icrc::{self, Envelope};
use crate::wire::ip::{IPV4_HEADER_LEN, IPV6_HEADER_LEN, UDP_HEADER_LEN};

mod faults;
#[cfg(test)]
mod tests;

pub use faults::{Faults, Transit, Verdict, drop_packet};

/// Packets that one [`Link::receive`] hands over at most.
const MAX_BATCH: usize = 64;

/// How the ends number their IPv4 packets, which the ICRC covers and the
/// receiver doesn't see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum IpIds {
    /// All 0, as an unconnected UDP socket does.
    #[default]
    Zero,
    /// At random, from a source port of their own, as kernel rxe and hardware
    /// do: the receiver must solve the ICRC for the identification.
    Hidden,
}

/// What has happened on a [`Network`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct SimCounters {
    /// Packets sent.
    pub sent: u64,
    /// Packets handed to a receiver, duplicates included.
    pub delivered: u64,
    /// Packets lost by chance or script.
    pub lost: u64,
    /// Packets that were doubled.
    pub duplicated: u64,
    /// Packets with a flipped bit.
    pub corrupted: u64,
    /// Packets held back so that others could overtake them.
    pub held_back: u64,
    /// Packets lost because they exceed the MTU.
    pub too_large: u64,
    /// Packets lost because no end has the address.
    pub unreachable: u64,
}

/// A simulated network. Clones are handles of the same network.
#[derive(Clone)]
pub struct Network(Arc<Mutex<State>>);

/// One end of a [`Network`]; dropping it takes its addresses off.
pub struct SimLink {
    network: Network,
    /// Its place among the ends.
    end: usize,
    src_port: u16,
}

type Script = Box<dyn FnMut(&Transit<'_>) -> Verdict + Send>;

struct State {
    now: Time,
    random: fastrand::Rng,
    faults: Faults,
    ip_ids: IpIds,
    script: Option<Script>,
    ends: Vec<End>,
    flows: BTreeMap<(IpAddr, IpAddr), Flow>,
    /// Copies of packets put under way so far.
    copies: u64,
    counters: SimCounters,
}

#[derive(Default)]
struct End {
    addresses: Vec<IpAddr>,
    arrivals: BinaryHeap<Reverse<Arrival>>,
}

/// The packets from one address to another.
#[derive(Default)]
struct Flow {
    packets: u64,
    /// When the last one has left the sender.
    sent: Time,
    /// When the last one that keeps its place arrives.
    arrived: Time,
}

/// A packet under way. Those that arrive first come first, at the same time
/// in the order of sending.
#[derive(PartialEq, Eq, PartialOrd, Ord)]
struct Arrival {
    at: Time,
    copy: u64,
    packet: Packet,
}

#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Packet {
    src: IpAddr,
    dst: IpAddr,
    src_port: u16,
    traffic_class: u8,
    hop_limit: u8,
    bytes: Vec<u8>,
}

impl Network {
    /// A network at time 0 whose chances depend on `seed` alone.
    #[must_use]
    pub fn new(seed: u64, faults: Faults) -> Self {
        Self(Arc::new(Mutex::new(State {
            now: Time::ZERO,
            random: fastrand::Rng::with_seed(seed),
            faults,
            ip_ids: IpIds::default(),
            script: None,
            ends: Vec::new(),
            flows: BTreeMap::new(),
            copies: 0,
            counters: SimCounters::default(),
        })))
    }

    /// A new end with these addresses. A packet goes to every end that has its
    /// destination: a group address may be on several.
    #[must_use]
    pub fn attach(&self, addresses: &[IpAddr]) -> SimLink {
        let mut state = self.lock();
        state.ends.push(End {
            addresses: addresses.to_vec(),
            arrivals: BinaryHeap::new(),
        });
        let end = state.ends.len() - 1;
        SimLink {
            network: self.clone(),
            end,
            src_port: 0xC000 | (end & 0x3FFF) as u16,
        }
    }

    /// Changes the faults for packets sent from now on.
    pub fn set_faults(&self, faults: Faults) {
        self.lock().faults = faults;
    }

    /// Changes how packets sent from now on are numbered.
    pub fn set_ip_ids(&self, ip_ids: IpIds) {
        self.lock().ip_ids = ip_ids;
    }

    /// Lets `script` decide about each packet sent from now on, before chance
    /// does. It runs while the packet is sent, and must not use the network.
    pub fn set_script(&self, script: impl FnMut(&Transit<'_>) -> Verdict + Send + 'static) {
        self.lock().script = Some(Box::new(script));
    }

    /// The time on the network's clock.
    #[must_use]
    pub fn now(&self) -> Time {
        self.lock().now
    }

    /// Sets the clock forward; it never goes back.
    pub fn advance_to(&self, time: Time) {
        let mut state = self.lock();
        state.now = state.now.max(time);
    }

    /// When the next packet arrives; not in the future if it can be received now.
    #[must_use]
    pub fn next_arrival(&self) -> Option<Time> {
        let state = self.lock();
        let first = |end: &End| end.arrivals.peek().map(|Reverse(arrival)| arrival.at);
        state.ends.iter().filter_map(first).min()
    }

    /// What has happened so far.
    #[must_use]
    pub fn counters(&self) -> SimCounters {
        self.lock().counters
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes a sealed packet from its sender.
    fn transmit(&mut self, mut packet: Packet) {
        self.counters.sent += 1;
        let len = ip_packet_len(&packet);
        let mut fate = self.faults.cast(&mut self.random, packet.bytes.len());
        let flow = self.flows.entry((packet.src, packet.dst)).or_default();
        if let Some(script) = &mut self.script {
            let verdict = script(&Transit {
                src: packet.src,
                dst: packet.dst,
                index: flow.packets,
                time: self.now,
                bytes: &packet.bytes,
            });
            fate = verdict.apply(fate);
        }
        flow.packets += 1;
        if self.faults.mtu.is_some_and(|mtu| len > mtu) {
            self.counters.too_large += 1;
            return;
        }
        flow.sent = flow.sent.max(self.now) + transmission_time(len, self.faults.bits_per_second);
        if fate.lost {
            self.counters.lost += 1;
            return;
        }
        if let Some(bit) = fate.flipped_bit
            && let Some(byte) = packet.bytes.get_mut(bit / 8)
        {
            *byte ^= 1 << (bit % 8);
            self.counters.corrupted += 1;
        }
        let mut at = flow.sent + self.faults.delay + fate.jitter;
        if let Some(held_back) = fate.held_back {
            at = at + held_back;
            self.counters.held_back += 1;
        } else {
            at = at.max(flow.arrived);
            flow.arrived = at;
        }
        let copies = if fate.duplicated { 2 } else { 1 };
        self.counters.duplicated += copies - 1;
        self.deliver(&packet, at, copies);
    }

    /// Puts copies of a packet under way to all ends that have its destination.
    fn deliver(&mut self, packet: &Packet, at: Time, copies: u64) {
        let mut reachable = false;
        for end in &mut self.ends {
            if !end.addresses.contains(&packet.dst) {
                continue;
            }
            reachable = true;
            for _ in 0..copies {
                end.arrivals.push(Reverse(Arrival {
                    at,
                    copy: self.copies,
                    packet: packet.clone(),
                }));
                self.copies += 1;
            }
        }
        if !reachable {
            self.counters.unreachable += 1;
        }
    }

    /// The next packet that has arrived at an end.
    fn take_arrival(&mut self, end: usize) -> Option<Packet> {
        let arrivals = &mut self.ends.get_mut(end)?.arrivals;
        if arrivals.peek()?.0.at > self.now {
            return None;
        }
        self.counters.delivered += 1;
        arrivals.pop().map(|Reverse(arrival)| arrival.packet)
    }
}

impl SimLink {
    fn send_all(&self, tx: &mut TxQueue, mut tap: Option<&mut dyn PacketSink>) {
        while let Some(first) = tx.packets().first() {
            let Route {
                src,
                dst,
                traffic_class,
                hop_limit,
            } = first.route;
            let mut state = self.network.lock();
            let (src_port, ipv4_id) = match state.ip_ids {
                IpIds::Zero => (ROCE_PORT, 0),
                IpIds::Hidden => (self.src_port, state.random.u16(..)),
            };
            let envelope = Envelope {
                src,
                dst,
                src_port,
                ipv4_id,
                dont_fragment: true,
            };
            let bytes = tx.bytes_mut(0, 1);
            icrc::seal(&envelope, bytes);
            let packet = Packet {
                src,
                dst,
                src_port,
                traffic_class,
                hop_limit,
                bytes: bytes.to_vec(),
            };
            state.transmit(packet);
            drop(state);
            if let Some(tap) = tap.as_mut() {
                tap.packet(&RxPacket {
                    src,
                    dst,
                    src_port,
                    traffic_class,
                    hop_limit,
                    ip_id: IpId::Known(ipv4_id),
                    bytes,
                });
            }
            tx.consume(1);
        }
    }
}

impl Link for SimLink {
    fn send(&mut self, tx: &mut TxQueue) -> io::Result<()> {
        self.send_all(tx, None);
        Ok(())
    }

    fn receive(&mut self, sink: &mut dyn PacketSink) -> io::Result<usize> {
        for received in 0..MAX_BATCH {
            // The network isn't locked while the sink, which may send, has the packet.
            let arrival = self.network.lock().take_arrival(self.end);
            let Some(packet) = arrival else {
                return Ok(received);
            };
            sink.packet(&RxPacket {
                src: packet.src,
                dst: packet.dst,
                src_port: packet.src_port,
                traffic_class: packet.traffic_class,
                hop_limit: packet.hop_limit,
                ip_id: IpId::Likely(0),
                bytes: &packet.bytes,
            });
        }
        Ok(MAX_BATCH)
    }

    fn join(&mut self, group: IpAddr) -> io::Result<()> {
        if let Some(end) = self.network.lock().ends.get_mut(self.end)
            && !end.addresses.contains(&group)
        {
            end.addresses.push(group);
        }
        Ok(())
    }

    fn leave(&mut self, group: IpAddr) {
        if let Some(end) = self.network.lock().ends.get_mut(self.end) {
            end.addresses.retain(|address| *address != group);
        }
    }
}

impl Tappable for SimLink {
    fn send_tapped(&mut self, tx: &mut TxQueue, tap: &mut dyn PacketSink) -> io::Result<()> {
        self.send_all(tx, Some(tap));
        Ok(())
    }
}

impl Drop for SimLink {
    fn drop(&mut self) {
        if let Some(end) = self.network.lock().ends.get_mut(self.end) {
            *end = End::default();
        }
    }
}

fn ip_packet_len(packet: &Packet) -> usize {
    let ip = match packet.dst {
        IpAddr::V4(_) => IPV4_HEADER_LEN,
        IpAddr::V6(_) => IPV6_HEADER_LEN,
    };
    ip + UDP_HEADER_LEN + packet.bytes.len()
}

/// How long an IP packet occupies the line.
fn transmission_time(len: usize, bits_per_second: Option<u64>) -> Duration {
    match bits_per_second {
        Some(rate) if rate > 0 => {
            Duration::from_nanos((len as u64 * 8).saturating_mul(1_000_000_000) / rate)
        }
        _ => Duration::ZERO,
    }
}
