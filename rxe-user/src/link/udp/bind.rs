//! Opening the socket of an address.

use std::ffi::c_int;
use std::io;
use std::net::IpAddr;

use nix::errno::Errno;
use nix::sys::socket::{getsockopt, sockopt};
use verbs_sys::VerbsError;

use super::super::ROCE_PORT;
use super::UdpOptions;
use super::holder::Holder;
use super::sockaddr::{SockAddr, address_family};
use super::socket::Socket;

/// Path MTU discovery mode "probe" (`ip(7)`, `linux/in.h`; for IPv6 the number is the same).
///
/// It sets DF and, on an unconnected socket, the identification 0, as "do"
/// does. Unlike that it doesn't let an ICMP message lower the MTU for ten
/// minutes: the path MTU of a queue pair is the user's word, and a forged
/// "fragmentation needed" must not stop it.
const PMTUDISC_PROBE: c_int = libc::IP_PMTUDISC_PROBE;
const _: () = assert!(libc::IP_PMTUDISC_PROBE == libc::IPV6_PMTUDISC_PROBE);

/// Accept IPv6 datagrams without a checksum (`linux/udp.h`).
const UDP_NO_CHECK6_RX: c_int = 102;

/// Why a [`UdpLink`](super::UdpLink) can't be had.
#[derive(Debug, thiserror::Error)]
pub enum BindError {
    /// No local address was given.
    #[error("a link needs at least one local address, none was given")]
    NoAddress,
    /// Somebody else has the port.
    #[error("UDP port {port} on {address} is held by {holder}; {}", .holder.way_out(*.address), port = ROCE_PORT)]
    PortHeld {
        /// The local address.
        address: IpAddr,
        /// Who has it.
        holder: Holder,
    },
    /// No interface has the address.
    #[error("{0} is no address of this host; `ip addr` lists those")]
    NotLocal(IpAddr),
    /// The kernel refused otherwise.
    #[error("can't {action} for {address}: {source}")]
    Kernel {
        /// What was tried.
        action: &'static str,
        /// The local address.
        address: IpAddr,
        /// What the kernel said.
        source: io::Error,
    },
}

impl From<BindError> for VerbsError {
    fn from(error: BindError) -> Self {
        match error {
            BindError::NoAddress => Self::InvalidArgument {
                what: "the number of local addresses",
                seen: "0".to_owned(),
                expected: "at least 1".to_owned(),
            },
            BindError::PortHeld { address, holder } => Self::PortHeld {
                address,
                port: ROCE_PORT,
                holder: holder.to_string(),
                way_out: holder.way_out(address),
            },
            BindError::NotLocal(address) => Self::InvalidArgument {
                what: "the local address",
                seen: address.to_string(),
                expected: "an address of this host (see `ip addr`)".to_owned(),
            },
            BindError::Kernel {
                action,
                address,
                source,
            } => Self::Io {
                action: format!("{action} for {address}"),
                source,
            },
        }
    }
}

fn kernel(action: &'static str, address: IpAddr) -> impl Fn(Errno) -> BindError {
    move |errno| BindError::Kernel {
        action,
        address,
        source: errno.into(),
    }
}

/// A socket for RoCE on one address.
pub(super) fn open(address: IpAddr, options: &UdpOptions) -> Result<Socket, BindError> {
    let socket = configured(address, options)?;
    let (level, option, value) = match address {
        // The number is taken as the address of the interface (ip(7)).
        IpAddr::V4(v4) => {
            let interface = c_int::from_ne_bytes(v4.octets());
            (libc::IPPROTO_IP, libc::IP_MULTICAST_IF, interface)
        }
        IpAddr::V6(_) => {
            let interface = c_int::try_from(options.interface).unwrap_or_default();
            (libc::IPPROTO_IPV6, libc::IPV6_MULTICAST_IF, interface)
        }
    };
    let name = SockAddr::new(address, ROCE_PORT, options.interface);
    socket.bind(&name).map_err(|errno| match errno {
        Errno::EADDRINUSE => BindError::PortHeld {
            address,
            holder: Holder::find(address),
        },
        Errno::EADDRNOTAVAIL => BindError::NotLocal(address),
        errno => kernel("bind the UDP socket", address)(errno),
    })?;
    socket
        .set(level, option, value)
        .map_err(kernel("choose the interface of multicast packets", address))?;
    Ok(socket)
}

/// A socket with the options of RoCE, not bound yet; `address` is what it is for.
pub(super) fn configured(address: IpAddr, options: &UdpOptions) -> Result<Socket, BindError> {
    let kernel = |action| kernel(action, address);
    let socket = Socket::new(address_family(address)).map_err(kernel("open a UDP socket"))?;
    let set =
        |level, option, value, action| socket.set(level, option, value).map_err(kernel(action));
    if address.is_ipv4() {
        let action = "turn fragmentation off";
        set(
            libc::IPPROTO_IP,
            libc::IP_MTU_DISCOVER,
            PMTUDISC_PROBE,
            action,
        )?;
    } else {
        let action = "turn fragmentation off";
        set(
            libc::IPPROTO_IPV6,
            libc::IPV6_MTU_DISCOVER,
            PMTUDISC_PROBE,
            action,
        )?;
        set(libc::IPPROTO_IPV6, libc::IPV6_V6ONLY, 1, "leave IPv4 alone")?;
        // Kernel rxe sends IPv6 without checksums.
        set(
            libc::SOL_UDP,
            UDP_NO_CHECK6_RX,
            1,
            "accept datagrams without a checksum",
        )?;
    }
    buffer(
        &socket,
        libc::SO_RCVBUFFORCE,
        libc::SO_RCVBUF,
        options.buffer_bytes,
    )
    .map_err(kernel("set the receive buffer"))?;
    buffer(
        &socket,
        libc::SO_SNDBUFFORCE,
        libc::SO_SNDBUF,
        options.buffer_bytes,
    )
    .map_err(kernel("set the send buffer"))?;
    if options.gro
        && let Err(errno) = socket.set(libc::SOL_UDP, libc::UDP_GRO, 1)
    {
        log::debug!("{address}: no UDP_GRO ({errno}), each packet comes by itself");
    }
    Ok(socket)
}

/// Asks for a socket buffer of `bytes`, beyond the system's limit if we may.
fn buffer(socket: &Socket, force: c_int, ask: c_int, bytes: usize) -> nix::Result<()> {
    let bytes = c_int::try_from(bytes).unwrap_or(c_int::MAX);
    socket
        .set(libc::SOL_SOCKET, force, bytes)
        .or_else(|_| socket.set(libc::SOL_SOCKET, ask, bytes))
}

/// Bytes of kernel memory that the socket's receive queue may take.
pub(super) fn receive_buffer(socket: &Socket) -> nix::Result<usize> {
    getsockopt(socket, sockopt::RcvBuf)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_error_says_who_and_how_to_go_on() {
        let error = BindError::PortHeld {
            address: [10, 0, 0, 1].into(),
            holder: Holder::KernelRxe,
        };
        assert_eq!(
            error.to_string(),
            "UDP port 4791 on 10.0.0.1 is held by kernel rdma_rxe, for every address of this \
             host; remove its links with `rdma link del NAME` (see `rdma link`), unload \
             rdma_rxe, or run in another network namespace"
        );
        let text = error.to_string();
        let verbs = VerbsError::from(error);
        assert_eq!(verbs.to_string(), text);
        assert_eq!(verbs.errno(), libc::EADDRINUSE);
    }
}
