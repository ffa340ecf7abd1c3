//! RoCEv2 over ordinary UDP sockets: no privilege, no raw socket.
//!
//! Each local address has its own unconnected socket, bound to port 4791.
//! *Unconnected* matters: only then does Linux send the IPv4 identification 0
//! (or `i`, for segment `i` of a segmented send), and the ICRC covers it. As
//! the receiver's socket doesn't show the identification, packets arrive with
//! the one that a peer of our own kind has used as [`IpId::Likely`].
//!
//! | file | |
//! |---|---|
//! | `bind` | opening a socket: options and errors |
//! | `group` | the sockets of multicast groups |
//! | `holder` | who holds the port when it is taken |
//! | `send` | runs of packets, GSO, what to do when the kernel refuses |
//! | `receive` | GRO, batches |
//! | `socket` | the system calls |
//!
//! [`IpId::Likely`]: super::IpId::Likely

use std::io;
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::{Link, PacketSink, Tappable, TxQueue};

mod bind;
mod group;
mod holder;
mod receive;
mod send;
mod sockaddr;
mod socket;
#[cfg(test)]
mod tests;

pub use bind::BindError;
pub use holder::Holder;

use receive::Receiver;
use send::{Endpoint, Tap};

/// With several sockets, of so many looks at the busy one that find nothing
/// one is followed by a look at the others.
const LOOKS_PER_ROUND: u32 = 4;

/// How a [`UdpLink`] uses its sockets.
#[derive(Debug, Clone)]
pub struct UdpOptions {
    /// Index of the interface that IPv6 link-local addresses belong to; 0 if
    /// there are none.
    pub interface: u32,
    /// How packets are sent together; less is used when the kernel refuses.
    pub batching: Batching,
    /// Let the kernel merge received packets (`UDP_GRO`).
    pub gro: bool,
    /// Bytes to ask for as receive and as send buffer of each socket. Without
    /// `CAP_NET_ADMIN` the kernel grants no more than `net.core.rmem_max` and
    /// `wmem_max`.
    pub buffer_bytes: usize,
}

impl Default for UdpOptions {
    fn default() -> Self {
        Self {
            interface: 0,
            batching: Batching::Segments,
            gro: true,
            buffer_bytes: 8 << 20,
        }
    }
}

/// How packets are sent together.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Batching {
    /// One system call per packet (`sendto`).
    None,
    /// Several packets per system call (`sendmmsg`).
    Messages,
    /// Also, packets of one size as one message that the kernel or the NIC
    /// cuts up (`UDP_SEGMENT`).
    Segments,
}

/// What has gone through a [`UdpLink`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct UdpCounters {
    /// Packets that the kernel took.
    pub sent_packets: u64,
    /// Messages they were in.
    pub sent_messages: u64,
    /// Packets lost because they exceed the interface's MTU.
    pub lost_too_large: u64,
    /// Packets lost because the kernel refused them otherwise: no route, a
    /// firewall, an interface that is down, a source address of no socket.
    pub lost_unreachable: u64,
    /// Times that the kernel took no more for the moment.
    pub send_blocked: u64,
    /// Packets received.
    pub received_packets: u64,
    /// Datagrams they were in, as merged by the kernel.
    pub received_datagrams: u64,
    /// Datagrams dropped because they didn't fit the buffer.
    pub received_truncated: u64,
}

/// A link over UDP sockets, one for each local address and each multicast group.
///
/// With several addresses [`Link::receive`] looks at the socket that got
/// something last each time, and at the others only now and then while that
/// is idle; 0 then doesn't mean that they are empty. Who goes to sleep must
/// wait for all of [`UdpLink::fds`].
pub struct UdpLink {
    options: UdpOptions,
    /// Those of local addresses come first.
    endpoints: Vec<Endpoint>,
    /// Whether received packets show their ToS and TTL.
    ip_fields: bool,
    receiver: Receiver,
    counters: UdpCounters,
    /// The endpoint that received last.
    busy: usize,
    /// Looks at it since then.
    idle_looks: u32,
    /// The endpoint that sent last.
    sender: usize,
}

impl UdpLink {
    /// Takes port 4791 on each of `addresses`.
    ///
    /// # Errors
    /// When there are none, or one isn't this host's, or its port is taken.
    pub fn bind(addresses: &[IpAddr], options: &UdpOptions) -> Result<Self, BindError> {
        let endpoints = addresses
            .iter()
            .map(|&address| Endpoint::open(address, options))
            .collect::<Result<Vec<_>, _>>()?;
        if endpoints.is_empty() {
            return Err(BindError::NoAddress);
        }
        Ok(Self {
            options: options.clone(),
            endpoints,
            ip_fields: false,
            receiver: Receiver::new(),
            counters: UdpCounters::default(),
            busy: 0,
            idle_looks: 0,
            sender: 0,
        })
    }

    /// The local addresses, and the groups that have been joined.
    pub fn addresses(&self) -> impl Iterator<Item = IpAddr> {
        self.endpoints.iter().map(|endpoint| endpoint.address)
    }

    /// The sockets, to wait for with `poll(2)`: readable when a packet has
    /// come, writable when packets that [`Link::send`] left in the queue can go.
    pub fn fds(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.endpoints
            .iter()
            .map(|endpoint| endpoint.socket.as_fd())
    }

    /// What has gone through so far.
    #[must_use]
    pub fn counters(&self) -> &UdpCounters {
        &self.counters
    }

    /// Packets that the kernel dropped because a receive buffer was full or
    /// a UDP checksum wrong.
    ///
    /// # Errors
    /// When the kernel doesn't tell (before Linux 4.12).
    pub fn receive_drops(&self) -> io::Result<u64> {
        const SK_MEMINFO_DROPS: usize = 8;
        let mut drops = 0;
        for endpoint in &self.endpoints {
            drops += u64::from(endpoint.socket.memory()?[SK_MEMINFO_DROPS]);
        }
        Ok(drops)
    }

    /// How many packets with a payload of `path_mtu` bytes fit the smallest
    /// receive buffer, however they arrive: a peer of our own kind with as much
    /// under way loses none while the receiver is off the CPU.
    ///
    /// # Errors
    /// When the kernel doesn't tell the size of the buffer.
    pub fn receive_window_packets(&self, path_mtu: usize) -> io::Result<usize> {
        let mut smallest = usize::MAX;
        for endpoint in &self.endpoints {
            smallest = smallest.min(bind::receive_buffer(&endpoint.socket)?);
        }
        Ok(receive::window_packets(smallest, path_mtu))
    }

    fn send_all(&mut self, tx: &mut TxQueue, tap: &mut Tap<'_>) -> io::Result<()> {
        while let Some(first) = tx.packets().first() {
            let Some(endpoint) =
                find_sender(&mut self.endpoints, &mut self.sender, first.route.src)
            else {
                self.counters.lost_unreachable += 1;
                tx.consume(1);
                continue;
            };
            if !endpoint.send_front(tx, tap, &mut self.counters)? {
                self.counters.send_blocked += 1;
                break;
            }
        }
        Ok(())
    }

    fn receive_from(&mut self, at: usize, sink: &mut dyn PacketSink) -> io::Result<usize> {
        match self.endpoints.get(at) {
            Some(endpoint) => self.receiver.receive(endpoint, sink, &mut self.counters),
            None => Ok(0),
        }
    }
}

/// The endpoint with the source address; `last` is tried first.
fn find_sender<'a>(
    endpoints: &'a mut [Endpoint],
    last: &mut usize,
    src: IpAddr,
) -> Option<&'a mut Endpoint> {
    if endpoints
        .get(*last)
        .is_none_or(|endpoint| endpoint.address != src)
    {
        *last = endpoints
            .iter()
            .position(|endpoint| endpoint.address == src)?;
    }
    endpoints.get_mut(*last)
}

impl Link for UdpLink {
    fn send(&mut self, tx: &mut TxQueue) -> io::Result<()> {
        self.send_all(tx, &mut Tap(None))
    }

    fn receive(&mut self, sink: &mut dyn PacketSink) -> io::Result<usize> {
        let received = self.receive_from(self.busy, sink)?;
        if received > 0 {
            self.idle_looks = 0;
            return Ok(received);
        }
        self.idle_looks = self.idle_looks.wrapping_add(1);
        if self.endpoints.len() == 1 || !self.idle_looks.is_multiple_of(LOOKS_PER_ROUND) {
            return Ok(0);
        }
        for _ in 1..self.endpoints.len() {
            self.busy = (self.busy + 1) % self.endpoints.len();
            let received = self.receive_from(self.busy, sink)?;
            if received > 0 {
                return Ok(received);
            }
        }
        Ok(0)
    }

    fn want_ip_fields(&mut self, wanted: bool) -> io::Result<()> {
        self.ip_fields = wanted;
        self.endpoints
            .iter()
            .try_for_each(|endpoint| endpoint.report_ip_fields(wanted))
    }

    fn join(&mut self, group: IpAddr) -> io::Result<()> {
        let same_family = |address: &IpAddr| address.is_ipv4() == group.is_ipv4();
        let own = self.addresses().find(same_family);
        let own = own.ok_or(io::ErrorKind::AddrNotAvailable)?;
        if self.addresses().any(|address| address == group) {
            return Ok(());
        }
        let endpoint = Endpoint::join(group, own, &self.options)?;
        endpoint.report_ip_fields(self.ip_fields)?;
        self.endpoints.push(endpoint);
        Ok(())
    }

    fn leave(&mut self, group: IpAddr) {
        self.endpoints
            .retain(|endpoint| endpoint.address != group || !group.is_multicast());
        (self.busy, self.sender) = (0, 0);
    }

    fn wait_fds(&self) -> io::Result<Vec<OwnedFd>> {
        self.fds().map(|fd| fd.try_clone_to_owned()).collect()
    }
}

impl Tappable for UdpLink {
    fn send_tapped(&mut self, tx: &mut TxQueue, tap: &mut dyn PacketSink) -> io::Result<()> {
        self.send_all(tx, &mut Tap(Some(tap)))
    }
}
