//! Sockets for multicast groups.
//!
//! The socket of a local address gets nothing that is sent to a group, so
//! each group has one of its own. It is bound to the group's address, which
//! other processes may do as well, and belongs to the group on the interface
//! of the device alone. Nothing is sent from it.

use std::io;
use std::net::{IpAddr, UdpSocket};
use std::os::fd::AsFd;

use super::super::ROCE_PORT;
use super::UdpOptions;
use super::bind;
use super::sockaddr::SockAddr;
use super::socket::Socket;

/// A socket for what is sent to `group` on the interface that has `address`
/// (IPv4) or is that of the options (IPv6).
pub(super) fn open(group: IpAddr, address: IpAddr, options: &UdpOptions) -> io::Result<Socket> {
    let socket = bind::configured(group, options).map_err(io::Error::other)?;
    socket.set(libc::SOL_SOCKET, libc::SO_REUSEADDR, 1)?;
    // Not what others have joined on other interfaces.
    match group {
        IpAddr::V4(_) => socket.set(libc::IPPROTO_IP, libc::IP_MULTICAST_ALL, 0)?,
        IpAddr::V6(_) => socket.set(libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_ALL, 0)?,
    }
    socket.bind(&SockAddr::new(group, ROCE_PORT, options.interface))?;
    // The same socket, for the calls that the standard library has.
    let same = UdpSocket::from(socket.as_fd().try_clone_to_owned()?);
    match (group, address) {
        (IpAddr::V4(group), IpAddr::V4(interface)) => same.join_multicast_v4(&group, &interface)?,
        (IpAddr::V6(group), IpAddr::V6(_)) => same.join_multicast_v6(&group, options.interface)?,
        _ => return Err(io::ErrorKind::AddrNotAvailable.into()),
    }
    Ok(socket)
}
