//! The network interfaces of the host: what each of them holds, and which of
//! them leads to a peer.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd};

use nix::ifaddrs::getifaddrs;
use nix::net::if_::{InterfaceFlags, if_nametoindex};
use nix::sys::socket::SockaddrStorage;

/// A network interface that is up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NetDev {
    /// Its name, such as `eth0`.
    pub name: String,
    /// Its index, which is also the scope id of its link-local addresses.
    pub index: u32,
    /// Its MTU: bytes of the largest IP packet.
    pub mtu: usize,
    /// Its hardware address, if it has one of six bytes.
    pub mac: Option<[u8; 6]>,
    /// Whether it has a carrier.
    pub running: bool,
    /// Whether it leads back to the host itself.
    pub loopback: bool,
    /// Its unicast addresses: IPv4, IPv6 link-local and IPv6 of other scopes,
    /// each kind in the kernel's order.
    pub addresses: Vec<IpAddr>,
}

impl NetDev {
    /// The IPv4 addresses.
    pub fn ipv4(&self) -> impl Iterator<Item = Ipv4Addr> {
        self.addresses.iter().filter_map(|address| match address {
            IpAddr::V4(address) => Some(*address),
            IpAddr::V6(_) => None,
        })
    }

    /// The IPv6 addresses that are valid on this link only (`fe80::/10`).
    pub fn ipv6_link_local(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.ipv6().filter(Ipv6Addr::is_unicast_link_local)
    }

    /// The other IPv6 addresses: global, unique local, and `::1`.
    pub fn ipv6_global(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.ipv6()
            .filter(|address| !address.is_unicast_link_local())
    }

    /// Whether packets to `address` end here: one of its own addresses, or
    /// on `lo` any of `127.0.0.0/8`, all of which Linux takes as local.
    #[must_use]
    pub fn holds(&self, address: IpAddr) -> bool {
        self.addresses.contains(&address)
            || self.loopback && address.is_ipv4() && address.is_loopback()
    }

    fn ipv6(&self) -> impl Iterator<Item = Ipv6Addr> {
        self.addresses.iter().filter_map(|address| match address {
            IpAddr::V6(address) => Some(*address),
            IpAddr::V4(_) => None,
        })
    }
}

/// All interfaces that are up, by index.
///
/// # Errors
/// When the kernel doesn't tell.
pub fn list() -> io::Result<Vec<NetDev>> {
    let asker = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
    let mut devices: Vec<NetDev> = Vec::new();
    for entry in getifaddrs()? {
        if !entry.flags.contains(InterfaceFlags::IFF_UP) {
            continue;
        }
        let known = devices
            .iter()
            .position(|device| device.name == entry.interface_name);
        let at = match known {
            Some(at) => at,
            None => {
                let name = entry.interface_name.clone();
                // An interface may go away while it is looked at.
                let (Ok(index), Ok(mtu)) =
                    (if_nametoindex(name.as_str()), mtu(asker.as_fd(), &name))
                else {
                    continue;
                };
                devices.push(NetDev {
                    name,
                    index,
                    mtu,
                    mac: None,
                    running: entry.flags.contains(InterfaceFlags::IFF_RUNNING),
                    loopback: entry.flags.contains(InterfaceFlags::IFF_LOOPBACK),
                    addresses: Vec::new(),
                });
                devices.len() - 1
            }
        };
        if let (Some(device), Some(address)) = (devices.get_mut(at), &entry.address) {
            take_address(device, address);
        }
    }
    devices.sort_by_key(|device| device.index);
    Ok(devices)
}

/// The interface that holds `address`, if it is one of the host's own.
///
/// # Errors
/// When the kernel doesn't tell.
pub fn holding(address: IpAddr) -> io::Result<Option<NetDev>> {
    Ok(list()?.into_iter().find(|device| device.holds(address)))
}

/// The interface and the own address that packets to `peer` leave from, or
/// `None` when there is no route.
///
/// The kernel's routing table answers: a throw-away UDP socket on an ephemeral
/// port is connected to the peer, which sends nothing, and asked for its own
/// address. No RoCE packet ever travels over that socket: Linux numbers the
/// IPv4 packets of a connected socket unpredictably, which the ICRC can't have.
///
/// # Errors
/// When the kernel doesn't tell.
pub fn route_lookup(peer: IpAddr) -> io::Result<Option<(NetDev, IpAddr)>> {
    let any: IpAddr = match peer {
        IpAddr::V4(_) => Ipv4Addr::UNSPECIFIED.into(),
        IpAddr::V6(_) => Ipv6Addr::UNSPECIFIED.into(),
    };
    let own = UdpSocket::bind((any, 0)).and_then(|socket| {
        socket.connect(SocketAddr::new(peer, crate::link::ROCE_PORT))?;
        Ok(socket.local_addr()?.ip())
    });
    match own {
        Ok(own) => Ok(holding(own)?.map(|device| (device, own))),
        Err(error) if no_route(&error) => Ok(None),
        Err(error) => Err(error),
    }
}

/// Whether the kernel refused for want of a route or of the whole family; `EINVAL` is a link-local peer
/// without an interface, `EACCES` a broadcast address.
fn no_route(error: &io::Error) -> bool {
    matches!(
        error.raw_os_error(),
        Some(
            libc::ENETUNREACH
                | libc::EHOSTUNREACH
                | libc::EADDRNOTAVAIL
                | libc::EAFNOSUPPORT
                | libc::EINVAL
                | libc::EACCES
        )
    )
}

/// Files what one entry of the kernel's list says about `device`.
fn take_address(device: &mut NetDev, address: &SockaddrStorage) {
    if let Some(link) = address.as_link_addr() {
        device.mac = link.addr();
    } else if let Some(v4) = address.as_sockaddr_in() {
        device.addresses.push(v4.ip().into());
    } else if let Some(v6) = address.as_sockaddr_in6() {
        device.addresses.push(v6.ip().into());
    }
}

nix::ioctl_read_bad!(
    /// Reads the MTU of the named interface (`netdevice(7)`).
    siocgifmtu,
    libc::SIOCGIFMTU,
    libc::ifreq
);

/// The MTU of an interface. The kernel is asked rather than sysfs, which may
/// show another network namespace than the process lives in.
fn mtu(socket: BorrowedFd<'_>, name: &str) -> io::Result<usize> {
    // SAFETY: `ifreq` consists of integers and unions of them, for which zeros are valid.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    // SAFETY: the descriptor is open for the call, and `request` is an `ifreq`
    // with a terminated name, which is what SIOCGIFMTU reads and writes.
    unsafe { siocgifmtu(socket.as_raw_fd(), &raw mut request) }?;
    // SAFETY: SIOCGIFMTU has filled this field of the union.
    let mtu = unsafe { request.ifr_ifru.ifru_mtu };
    usize::try_from(mtu).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const LOCALHOST: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);

    #[test]
    fn loopback_is_listed_with_what_it_holds() {
        let devices = list().unwrap();
        let lo = devices.iter().find(|device| device.loopback).unwrap();
        assert_eq!(lo.name, "lo");
        assert!(lo.index > 0);
        assert!(lo.mtu >= 1280, "{}", lo.mtu);
        assert!(lo.running);
        assert!(lo.ipv4().any(|address| address == Ipv4Addr::LOCALHOST));
        assert_eq!(lo.ipv6_link_local().count(), 0);
        assert!(devices.is_sorted_by(|a, b| a.index < b.index), "one each");
    }

    #[test]
    fn every_listed_address_is_held_by_its_interface() {
        for device in list().unwrap() {
            for &address in &device.addresses {
                assert!(device.holds(address));
                assert!(holding(address).unwrap().is_some(), "{address}");
            }
            let split = device.ipv4().count()
                + device.ipv6_global().count()
                + device.ipv6_link_local().count();
            assert_eq!(split, device.addresses.len());
        }
    }

    #[test]
    fn the_whole_of_127_8_is_local() {
        let device = holding("127.77.3.2".parse().unwrap()).unwrap().unwrap();
        assert!(device.loopback);
        assert_eq!(holding("192.0.2.254".parse().unwrap()).unwrap(), None);
    }

    #[test]
    fn the_route_to_a_loopback_address_is_lo() {
        let (device, own) = route_lookup(LOCALHOST).unwrap().unwrap();
        assert!(device.loopback);
        assert_eq!(own, LOCALHOST);
        let (device, own) = route_lookup("127.1.2.3".parse().unwrap()).unwrap().unwrap();
        assert!(device.loopback);
        assert!(own.is_loopback());
    }

    #[test]
    fn a_peer_without_a_route_has_no_interface() {
        // A link-local address means nothing without an interface.
        assert_eq!(route_lookup("fe80::1".parse().unwrap()).unwrap(), None);
        assert_eq!(
            route_lookup(Ipv4Addr::BROADCAST.into()).unwrap(),
            None,
            "RoCE has no broadcast"
        );
    }

    #[test]
    fn an_interface_that_is_not_there_has_no_mtu() {
        let socket = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
        let fd = socket.as_fd();
        let error = mtu(fd, "no-such-dev").unwrap_err();
        assert_eq!(error.raw_os_error(), Some(libc::ENODEV));
        assert!(mtu(fd, "a-name-that-is-too-long").is_err());
    }
}
