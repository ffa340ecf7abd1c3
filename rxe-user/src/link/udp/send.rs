//! Sending: packets of one size to one peer become one message that the
//! kernel or the NIC segments, several messages one system call.

use std::ffi::c_int;
use std::io;
use std::net::IpAddr;

use nix::errno::Errno;

use super::super::{IpId, PacketSink, ROCE_PORT, Route, RxPacket, TxPacket, TxQueue};
use super::bind::{self, BindError};
use super::group;
use super::sockaddr::SockAddr;
use super::socket::{MAX_MESSAGES, Message, Socket};
use super::{Batching, UdpCounters, UdpOptions};
use crate::wire::icrc::{self, Envelope};

/// Segments of one message: what every kernel with `UDP_SEGMENT` takes.
const MAX_SEGMENTS: usize = 64;
/// Bytes of one message: what an IPv4 packet can carry in UDP.
const MAX_MESSAGE_BYTES: usize = 65535 - 20 - 8;

/// TTL in place of 0, which no router would take.
const DEFAULT_HOP_LIMIT: u8 = 64;

/// The socket of one local address or multicast group.
pub(super) struct Endpoint {
    pub(super) address: IpAddr,
    pub(super) socket: Socket,
    interface: u32,
    batching: Batching,
    detour: Option<Detour>,
    habit: Habit,
    /// As the socket is set.
    traffic_class: u8,
    /// As the socket is set.
    hop_limit: u8,
}

/// A message of several segments was refused; its packets go one by one, which
/// tells whether segmentation or the packets are to blame.
struct Detour {
    /// Packets still to send so.
    packets: usize,
    /// Why, until the first packet has told.
    refusal: Option<Errno>,
}

/// The segment size that the socket itself is set to. Where one small run after
/// the other is alike, as a message and an acknowledgement are in a ping-pong,
/// that saves a control message with each.
#[derive(Default)]
struct Habit {
    /// As the socket is set; 0 is none.
    segment: usize,
    /// The last run's segment size, and how many runs in a row had it.
    last: usize,
    streak: u32,
}

/// Runs alike after which the socket is set.
const HABIT_STREAK: u32 = 32;

/// Bytes of a run above which a control message doesn't matter.
const HABIT_BYTES: usize = 1024;

/// Packets that make one message: all of one size, the last may be shorter.
#[derive(Clone, Copy, Default)]
struct Run {
    packets: usize,
    bytes: usize,
    segment: usize,
}

/// Sees the packets that have been sent.
pub(super) struct Tap<'a>(pub(super) Option<&'a mut dyn PacketSink>);

impl Tap<'_> {
    fn sent(&mut self, route: &Route, run: Run, bytes: &[u8]) {
        let Some(sink) = &mut self.0 else { return };
        for (ip_id, bytes) in (0..).zip(bytes.chunks(run.segment.max(1))) {
            sink.packet(&RxPacket {
                src: route.src,
                dst: route.dst,
                src_port: ROCE_PORT,
                traffic_class: route.traffic_class,
                hop_limit: hop_limit(route),
                ip_id: IpId::Known(ip_id),
                bytes,
            });
        }
    }
}

impl Endpoint {
    pub(super) fn open(address: IpAddr, options: &UdpOptions) -> Result<Self, BindError> {
        let mut endpoint = Self::new(address, bind::open(address, options)?, options);
        endpoint
            .set_ip_fields(0, DEFAULT_HOP_LIMIT)
            .map_err(|errno| BindError::Kernel {
                action: "set the TTL",
                address,
                source: errno.into(),
            })?;
        Ok(endpoint)
    }

    /// An endpoint that receives what is sent to a multicast group.
    pub(super) fn join(group: IpAddr, own: IpAddr, options: &UdpOptions) -> io::Result<Self> {
        let socket = group::open(group, own, options)?;
        Ok(Self::new(group, socket, options))
    }

    fn new(address: IpAddr, socket: Socket, options: &UdpOptions) -> Self {
        Self {
            address,
            socket,
            interface: options.interface,
            batching: options.batching,
            detour: None,
            habit: Habit::default(),
            traffic_class: 0,
            hop_limit: DEFAULT_HOP_LIMIT,
        }
    }

    /// Sends the first messages of the queue, which is not empty, in one system
    /// call, and takes what was sent or is lost out of the queue. Returns
    /// `false` when the kernel takes no more for now.
    pub(super) fn send_front(
        &mut self,
        tx: &mut TxQueue,
        tap: &mut Tap<'_>,
        counters: &mut UdpCounters,
    ) -> io::Result<bool> {
        let Some(first) = tx.packets().first() else {
            return Ok(true);
        };
        let route = first.route;
        let (traffic_class, hop_limit) = (route.traffic_class, hop_limit(&route));
        if (self.traffic_class, self.hop_limit) != (traffic_class, hop_limit) {
            self.set_ip_fields(traffic_class, hop_limit)?;
        }
        let max_segments = match (&self.detour, self.batching) {
            (None, Batching::Segments) => MAX_SEGMENTS,
            _ => 1,
        };
        let front = front_run(tx.packets(), max_segments);
        let whole = front.filter(|run| run.packets == tx.packets().len());
        self.follow_habit(whole)?;
        let result = match front {
            Some(run) if whole.is_some() || self.batching == Batching::None => {
                self.send_run(tx, &route, run, tap)
            }
            _ => self.send_runs(tx, &route, max_segments, tap),
        };
        match result {
            Ok((messages, packets)) => {
                counters.sent_messages += messages as u64;
                counters.sent_packets += packets as u64;
                tx.consume(packets);
                self.leave_detour(packets, true);
                Ok(true)
            }
            Err(errno) => self.refused(errno, tx, counters),
        }
    }

    /// Sets the socket's own segment size when small runs repeat, and takes it
    /// back before anything else is sent, which would be cut up, too. `run` is
    /// all there is to send, if it is one run.
    fn follow_habit(&mut self, run: Option<Run>) -> nix::Result<()> {
        let mut wanted = match run {
            Some(run) if run.segment <= self.habit.segment && self.detour.is_none() => {
                self.habit.segment
            }
            _ => 0,
        };
        if let Some(run) = run.filter(|run| run.packets > 1) {
            let alike = run.segment == self.habit.last && run.bytes <= HABIT_BYTES;
            self.habit.streak = if alike { self.habit.streak + 1 } else { 0 };
            self.habit.last = run.segment;
            wanted = match self.habit.streak >= HABIT_STREAK {
                true => run.segment,
                false if run.segment == self.habit.segment => run.segment,
                false => 0,
            };
        }
        if wanted != self.habit.segment {
            self.socket
                .set(libc::SOL_UDP, libc::UDP_SEGMENT, wanted as c_int)?;
            self.habit.segment = wanted;
        }
        Ok(())
    }

    /// Sends the first run: messages and packets that went.
    fn send_run(
        &self,
        tx: &mut TxQueue,
        route: &Route,
        run: Run,
        tap: &mut Tap<'_>,
    ) -> nix::Result<(usize, usize)> {
        let bytes = tx.bytes_mut(0, run.packets);
        seal(route, run, bytes);
        let to = self.peer(route);
        if run.packets == 1 || run.segment == self.habit.segment {
            self.socket.send_to(&to, bytes)?;
        } else {
            self.socket.send_segments(&to, bytes, run.segment as u16)?;
        }
        tap.sent(route, run, bytes);
        Ok((1, run.packets))
    }

    /// Sends as many runs as one system call takes: messages and packets that went.
    fn send_runs(
        &self,
        tx: &mut TxQueue,
        first: &Route,
        max_segments: usize,
        tap: &mut Tap<'_>,
    ) -> nix::Result<(usize, usize)> {
        let mut runs = [Run::default(); MAX_MESSAGES];
        let mut peers = [SockAddr::EMPTY; MAX_MESSAGES];
        let mut routes = [*first; MAX_MESSAGES];
        let mut messages = 0;
        let mut packets = 0;
        for ((to_run, to_peer), to_route) in runs.iter_mut().zip(&mut peers).zip(&mut routes) {
            let waiting = tx.packets().get(packets..).unwrap_or_default();
            let Some(run) = front_run(waiting, max_segments) else {
                break;
            };
            let Some(route) = waiting.first().map(|packet| packet.route) else {
                break;
            };
            let same_socket = Route {
                dst: first.dst,
                ..route
            } == *first;
            let beyond_detour = self
                .detour
                .as_ref()
                .is_some_and(|detour| packets == detour.packets);
            if !same_socket || beyond_detour {
                break;
            }
            seal(&route, run, tx.bytes_mut(packets, run.packets));
            *to_peer = self.peer(&route);
            *to_route = route;
            *to_run = run;
            packets += run.packets;
            messages += 1;
        }
        let mut batch = [Message {
            to: &SockAddr::EMPTY,
            bytes: &[],
            segment: None,
        }; MAX_MESSAGES];
        let mut rest = tx.bytes(0, packets);
        for ((message, run), to) in batch.iter_mut().zip(&runs).zip(&peers).take(messages) {
            let (bytes, tail) = rest.split_at_checked(run.bytes).unwrap_or_default();
            rest = tail;
            *message = Message {
                to,
                bytes,
                segment: (run.packets > 1).then_some(run.segment as u16),
            };
        }
        let batch = batch.get(..messages).unwrap_or_default();
        let sent = self.socket.send_messages(batch)?;
        let mut packets = 0;
        for ((run, route), message) in runs.iter().zip(&routes).zip(batch).take(sent) {
            packets += run.packets;
            tap.sent(route, *run, message.bytes);
        }
        Ok((sent, packets))
    }

    /// The kernel refused the first message.
    fn refused(
        &mut self,
        errno: Errno,
        tx: &mut TxQueue,
        counters: &mut UdpCounters,
    ) -> io::Result<bool> {
        match errno {
            Errno::EINTR => return Ok(true),
            Errno::EAGAIN | Errno::ENOBUFS | Errno::ENOMEM => return Ok(false),
            Errno::EBADF | Errno::ENOTSOCK | Errno::EFAULT => return Err(errno.into()),
            Errno::ENOSYS if self.batching > Batching::None => {
                log::debug!("{}: no sendmmsg, sending packets one by one", self.address);
                self.batching = Batching::None;
                return Ok(true);
            }
            _ => {}
        }
        if self.detour.is_none()
            && self.batching == Batching::Segments
            && let Some(run) = front_run(tx.packets(), MAX_SEGMENTS)
            && run.packets > 1
        {
            self.detour = Some(Detour {
                packets: run.packets,
                refusal: Some(errno),
            });
            return Ok(true);
        }
        if errno == Errno::EMSGSIZE {
            counters.lost_too_large += 1;
        } else {
            counters.lost_unreachable += 1;
        }
        tx.consume(1);
        self.leave_detour(1, false);
        Ok(true)
    }

    /// Counts packets off a detour. That the first of them goes by itself
    /// proves that the kernel or the NIC can't segment.
    fn leave_detour(&mut self, packets: usize, sent: bool) {
        let Some(detour) = &mut self.detour else {
            return;
        };
        let refusal = detour.refusal.take().filter(|errno| {
            sent && matches!(
                errno,
                Errno::EIO | Errno::EINVAL | Errno::ENOPROTOOPT | Errno::EOPNOTSUPP
            )
        });
        if let Some(errno) = refusal {
            log::debug!(
                "{}: no UDP_SEGMENT ({errno}), sending packets whole",
                self.address
            );
            self.batching = self.batching.min(Batching::Messages);
        }
        detour.packets = detour.packets.saturating_sub(packets);
        if detour.packets == 0 {
            self.detour = None;
        }
    }

    /// Sets what the IP headers of the packets sent from now on say.
    fn set_ip_fields(&mut self, traffic_class: u8, hop_limit: u8) -> nix::Result<()> {
        let (level, options) = if self.address.is_ipv4() {
            let hops = [libc::IP_TTL, libc::IP_MULTICAST_TTL];
            (libc::IPPROTO_IP, (libc::IP_TOS, hops))
        } else {
            let hops = [libc::IPV6_UNICAST_HOPS, libc::IPV6_MULTICAST_HOPS];
            (libc::IPPROTO_IPV6, (libc::IPV6_TCLASS, hops))
        };
        let (class_option, hop_options) = options;
        self.socket
            .set(level, class_option, c_int::from(traffic_class))?;
        for option in hop_options {
            self.socket.set(level, option, c_int::from(hop_limit))?;
        }
        self.traffic_class = traffic_class;
        self.hop_limit = hop_limit;
        Ok(())
    }

    fn peer(&self, route: &Route) -> SockAddr {
        SockAddr::new(route.dst, ROCE_PORT, self.interface)
    }
}

/// Completes the packets of a run with their ICRC: the kernel numbers the
/// segments of a message from 0.
fn seal(route: &Route, run: Run, bytes: &mut [u8]) {
    for (ip_id, packet) in (0..).zip(bytes.chunks_mut(run.segment.max(1))) {
        icrc::seal(&envelope(route, ip_id), packet);
    }
}

fn envelope(route: &Route, ipv4_id: u16) -> Envelope {
    Envelope {
        src: route.src,
        dst: route.dst,
        src_port: ROCE_PORT,
        ipv4_id,
        dont_fragment: true,
    }
}

fn hop_limit(route: &Route) -> u8 {
    match route.hop_limit {
        0 => DEFAULT_HOP_LIMIT,
        hop_limit => hop_limit,
    }
}

/// The packets at the front that can be one message of up to `max_segments`.
fn front_run(packets: &[TxPacket], max_segments: usize) -> Option<Run> {
    let (first, rest) = packets.split_first()?;
    let mut run = Run {
        packets: 1,
        bytes: first.len(),
        segment: first.len(),
    };
    for packet in rest {
        if run.packets == max_segments
            || packet.len() > run.segment
            || run.bytes + packet.len() > MAX_MESSAGE_BYTES
            || packet.route != first.route
        {
            break;
        }
        run.packets += 1;
        run.bytes += packet.len();
        if packet.len() < run.segment {
            break;
        }
    }
    Some(run)
}
