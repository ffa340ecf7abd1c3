//! Receiving: several datagrams per system call, each of which may hold
//! several packets.

use std::io;

use nix::errno::Errno;

use super::super::{IpId, PacketSink, RxPacket};
use super::UdpCounters;
use super::send::Endpoint;
use super::socket::{Datagram, MAX_DATAGRAMS, Slot};

/// What is reported when the kernel wasn't asked for the hop limit.
const UNKNOWN_HOP_LIMIT: u8 = 64;

/// Calls in a row that find something before a stream is assumed.
const STREAM: u8 = 2;

/// Buffers for what arrives on any of the sockets.
pub(super) struct Receiver {
    slots: Vec<Slot>,
    /// Calls in a row that found something: after some the next ones ask for
    /// many datagrams. A poll that finds nothing, and one that finds the only
    /// datagram there is, cost less by `recvmsg`, a stream by `recvmmsg`.
    streak: u8,
}

impl Receiver {
    pub(super) fn new() -> Self {
        Self {
            slots: (0..MAX_DATAGRAMS).map(|_| Slot::new()).collect(),
            streak: 0,
        }
    }

    /// Hands over what one system call gets and returns how many packets.
    pub(super) fn receive(
        &mut self,
        endpoint: &Endpoint,
        sink: &mut dyn PacketSink,
        counters: &mut UdpCounters,
    ) -> io::Result<usize> {
        let socket = &endpoint.socket;
        let mut packets = 0;
        if self.streak >= STREAM {
            let mut datagrams = [Datagram::EMPTY; MAX_DATAGRAMS];
            let received = some(socket.receive_many(&mut self.slots, &mut datagrams))?.unwrap_or(0);
            if received <= 1 {
                self.streak = 0;
            }
            for (slot, datagram) in self.slots.iter().zip(&datagrams).take(received) {
                packets += deliver(endpoint, slot, datagram, sink, counters);
            }
        } else if let Some(slot) = self.slots.first_mut() {
            match some(socket.receive_one(slot))? {
                Some(datagram) => {
                    self.streak += 1;
                    packets = deliver(endpoint, slot, &datagram, sink, counters);
                }
                None => self.streak = 0,
            }
        }
        Ok(packets)
    }
}

/// The result of a receive call that may have found nothing.
fn some<T>(result: nix::Result<T>) -> io::Result<Option<T>> {
    match result {
        Ok(received) => Ok(Some(received)),
        Err(Errno::EAGAIN | Errno::EINTR) => Ok(None),
        Err(errno) => Err(errno.into()),
    }
}

/// Hands over the packets of one datagram and returns how many.
fn deliver(
    endpoint: &Endpoint,
    slot: &Slot,
    datagram: &Datagram,
    sink: &mut dyn PacketSink,
    counters: &mut UdpCounters,
) -> usize {
    counters.received_datagrams += 1;
    if datagram.truncated {
        counters.received_truncated += 1;
        return 0;
    }
    let Some(from) = slot.from() else { return 0 };
    let bytes = slot.bytes(datagram);
    let segment = datagram.segment.unwrap_or(bytes.len());
    let mut packets = 0;
    for (index, bytes) in (0..).zip(bytes.chunks(segment.max(1))) {
        sink.packet(&RxPacket {
            src: from.ip(),
            dst: endpoint.address,
            src_port: from.port(),
            traffic_class: datagram.traffic_class.unwrap_or(0),
            hop_limit: datagram.hop_limit.unwrap_or(UNKNOWN_HOP_LIMIT),
            ip_id: IpId::Likely(index),
            bytes,
        });
        packets += 1;
    }
    counters.received_packets += packets as u64;
    packets
}

/// How many packets with a payload of `path_mtu` bytes a receive buffer of
/// `bytes` (as `SO_RCVBUF` reports it) holds.
///
/// The kernel charges a packet what it takes in kernel memory: the packet with
/// its headers and `skb_shared_info` in a block of a power of two, and the
/// `sk_buff` (measured: 8448 bytes for a path MTU of 4096, 1280 for 256, and
/// 832 for the smallest packets, which have blocks of their own size). It gives
/// memory back in quarters of the buffer, so three quarters can be relied on.
pub(super) fn window_packets(bytes: usize, path_mtu: usize) -> usize {
    const HEADERS: usize = 128;
    const SHARED_INFO: usize = 320;
    const SK_BUFF: usize = 256;
    const SMALLEST_BLOCK: usize = 576;
    let block = path_mtu
        .saturating_add(HEADERS + SHARED_INFO)
        .next_power_of_two()
        .max(SMALLEST_BLOCK);
    let packet = block.saturating_add(SK_BUFF);
    (bytes - bytes / 4) / packet
}

impl Endpoint {
    /// Whether the kernel reports the ToS and TTL of what arrives. That makes a
    /// receive call about 150 ns dearer (110 for the first, 35 for the second,
    /// where the call takes 850), so it is off until somebody needs them.
    pub(super) fn report_ip_fields(&self, on: bool) -> io::Result<()> {
        let (level, options) = if self.address.is_ipv4() {
            (libc::IPPROTO_IP, [libc::IP_RECVTOS, libc::IP_RECVTTL])
        } else {
            let options = [libc::IPV6_RECVTCLASS, libc::IPV6_RECVHOPLIMIT];
            (libc::IPPROTO_IPV6, options)
        };
        for option in options {
            self.socket.set(level, option, on.into())?;
        }
        Ok(())
    }
}
