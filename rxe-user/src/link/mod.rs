//! How packets travel.
//!
//! The transport writes packets into a [`TxQueue`] and a [`Link`] takes them
//! out; a link hands what arrives to a [`PacketSink`]. The link completes each
//! packet with its ICRC, because the check covers what only the link knows:
//! the UDP source port and the IPv4 identification that the kernel will use.

use std::io;
use std::net::IpAddr;
use std::os::fd::OwnedFd;

pub mod capture;
pub mod sim;
#[cfg(test)]
pub(crate) mod testing;
mod tx_queue;
pub mod udp;

pub use tx_queue::{TxPacket, TxQueue};

/// UDP port of RoCEv2 (IBTA annex A17.4.5.3).
pub const ROCE_PORT: u16 = crate::wire::ROCE_UDP_PORT;

/// Where a packet goes and how: the variable parts of its IP header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Route {
    /// Own address.
    pub src: IpAddr,
    /// The peer's address, of the same family.
    pub dst: IpAddr,
    /// IPv4 ToS or IPv6 traffic class.
    pub traffic_class: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
}

/// What is known of the IPv4 identification of a received packet, which the
/// ICRC covers and a UDP socket doesn't show.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IpId {
    /// The header was at hand.
    Known(u16),
    /// Not seen; most likely this one, as a peer of our own kind numbers the
    /// segments of one send from 0.
    Likely(u16),
}

/// One RoCEv2 packet as it arrived; nothing in it has been checked.
#[derive(Debug, Clone, Copy)]
pub struct RxPacket<'a> {
    /// Sender's address.
    pub src: IpAddr,
    /// Own address that it was sent to.
    pub dst: IpAddr,
    /// UDP source port, which the ICRC covers.
    pub src_port: u16,
    /// IPv4 ToS or IPv6 traffic class.
    pub traffic_class: u8,
    /// IPv4 TTL or IPv6 hop limit.
    pub hop_limit: u8,
    /// IPv4 identification; meaningless on IPv6.
    pub ip_id: IpId,
    /// The UDP payload: BTH to ICRC.
    pub bytes: &'a [u8],
}

/// Takes what a link receives.
pub trait PacketSink {
    /// One packet, in order of arrival.
    fn packet(&mut self, packet: &RxPacket<'_>);
}

/// A way for packets to travel. No call waits.
pub trait Link: Send {
    /// Completes packets with their ICRC and sends them, oldest first, until
    /// the queue is empty or the network takes no more; what was sent leaves
    /// the queue. A packet that the network refuses for good (no route,
    /// larger than the interface's MTU) leaves the queue too and counts as lost.
    ///
    /// # Errors
    /// When the socket itself has failed.
    fn send(&mut self, tx: &mut TxQueue) -> io::Result<()>;

    /// Hands over a bounded batch of the packets that have arrived and
    /// returns how many; 0 means there are none.
    ///
    /// # Errors
    /// When the socket itself has failed.
    fn receive(&mut self, sink: &mut dyn PacketSink) -> io::Result<usize>;

    /// Whether received packets must show their true traffic class and hop
    /// limit, as UD's GRH image and ECN need them. A link that has them at no
    /// cost shows them always; others show 0 and 64 until asked to do better.
    ///
    /// # Errors
    /// When the socket itself has failed.
    fn want_ip_fields(&mut self, wanted: bool) -> io::Result<()> {
        let _ = wanted;
        Ok(())
    }

    /// Receives what is sent to a multicast group, too.
    ///
    /// # Errors
    /// When the network refuses, or the link has no groups.
    fn join(&mut self, group: IpAddr) -> io::Result<()> {
        let _ = group;
        Err(io::ErrorKind::Unsupported.into())
    }

    /// No longer receives what is sent to a group.
    fn leave(&mut self, group: IpAddr) {
        let _ = group;
    }

    /// Copies of the descriptors to wait for with `poll(2)`: readable when a
    /// packet has come, writable when packets that [`Self::send`] left in the
    /// queue can go. None when there is nothing to wait for. They change when a
    /// group is joined or left.
    ///
    /// # Errors
    /// When the kernel refuses another descriptor.
    fn wait_fds(&self) -> io::Result<Vec<OwnedFd>> {
        Ok(Vec::new())
    }
}

/// A link that lets others see what it sends.
///
/// What is sent isn't known before the link has sent it: the ICRC, the
/// source port and the IPv4 identification are its own. So it shows each packet
/// as the peer will receive it, with [`IpId::Known`]. Wrappers such as
/// [`capture::Capture`] build on this; a wrapper that can itself be
/// wrapped passes the tap on.
pub trait Tappable: Link {
    /// As [`Link::send`], and shows `tap` each packet that has been sent.
    ///
    /// # Errors
    /// As [`Link::send`].
    fn send_tapped(&mut self, tx: &mut TxQueue, tap: &mut dyn PacketSink) -> io::Result<()>;
}
