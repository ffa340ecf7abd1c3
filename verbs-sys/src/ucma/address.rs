//! Socket addresses as the kernel reads and writes them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use crate::uapi::ucma::SOCKADDR_STORAGE;
use crate::verbs::Gid;

/// `AF_IB`: `struct sockaddr_ib` (`rdma/ib.h`).
const AF_IB: u16 = 27;
/// Where `struct sockaddr_ib` has its GID.
const IB_GID: std::ops::Range<usize> = 8..24;

/// An address in a `struct sockaddr_storage`, and its exact length.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Storage {
    pub(super) bytes: [u8; SOCKADDR_STORAGE],
    pub(super) length: u16,
}

impl Storage {
    /// No address: the kernel chooses.
    pub(super) const NONE: Self = Self {
        bytes: [0; SOCKADDR_STORAGE],
        length: 0,
    };

    /// `struct sockaddr_in` (16 bytes) or `struct sockaddr_in6` (28).
    pub(super) fn new(address: SocketAddr) -> Self {
        let mut storage = Self::NONE;
        let bytes = &mut storage.bytes;
        bytes[2..4].copy_from_slice(&address.port().to_be_bytes());
        let family = match address {
            SocketAddr::V4(v4) => {
                bytes[4..8].copy_from_slice(&v4.ip().octets());
                storage.length = 16;
                libc::AF_INET
            }
            SocketAddr::V6(v6) => {
                bytes[4..8].copy_from_slice(&v6.flowinfo().to_be_bytes());
                bytes[8..24].copy_from_slice(&v6.ip().octets());
                bytes[24..28].copy_from_slice(&v6.scope_id().to_ne_bytes());
                storage.length = 28;
                libc::AF_INET6
            }
        };
        // The families have small numbers.
        bytes[..2].copy_from_slice(&(family as u16).to_ne_bytes());
        storage
    }
}

/// The address in a `struct sockaddr_storage`, if it is an IP address.
pub(super) fn parse(bytes: &[u8; SOCKADDR_STORAGE]) -> Option<SocketAddr> {
    let port = u16::from_be_bytes([bytes[2], bytes[3]]);
    match i32::from(family(bytes)) {
        libc::AF_INET => {
            let octets: [u8; 4] = bytes[4..8].try_into().ok()?;
            Some(SocketAddrV4::new(Ipv4Addr::from(octets), port).into())
        }
        libc::AF_INET6 => {
            let octets: [u8; 16] = bytes[8..24].try_into().ok()?;
            let flow = u32::from_be_bytes(bytes[4..8].try_into().ok()?);
            let scope = u32::from_ne_bytes(bytes[24..28].try_into().ok()?);
            Some(SocketAddrV6::new(Ipv6Addr::from(octets), port, flow, scope).into())
        }
        _ => None,
    }
}

/// The address of the peer of an identifier that has one: an unconnected one
/// has a wildcard.
pub(super) fn parse_peer(bytes: &[u8; SOCKADDR_STORAGE]) -> Option<SocketAddr> {
    parse(bytes).filter(|address| !address.ip().is_unspecified())
}

/// The GID in a `struct sockaddr_ib`; zero when there is none. Port spaces of
/// IP don't show in it.
pub(super) fn parse_gid(bytes: &[u8; SOCKADDR_STORAGE]) -> Gid {
    let mut gid = Gid::ZERO;
    if family(bytes) == AF_IB {
        gid.0.copy_from_slice(&bytes[IB_GID]);
    }
    gid
}

fn family(bytes: &[u8; SOCKADDR_STORAGE]) -> u16 {
    u16::from_ne_bytes([bytes[0], bytes[1]])
}

/// A multicast address: only these can be joined.
pub(super) fn is_group(address: &SocketAddr) -> bool {
    match address.ip() {
        IpAddr::V4(v4) => v4.is_multicast(),
        IpAddr::V6(v6) => v6.is_multicast(),
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn addresses_survive() {
        let scoped = SocketAddrV6::new("fe80::1".parse().unwrap(), 18515, 7, 3);
        for (address, length) in [
            ("192.0.2.1:18515".parse().unwrap(), 16),
            ("[2001:db8::1]:1".parse().unwrap(), 28),
            (SocketAddr::from(scoped), 28),
        ] {
            let storage = Storage::new(address);
            assert_eq!(storage.length, length);
            assert_eq!(parse(&storage.bytes), Some(address));
            assert_eq!(parse_gid(&storage.bytes), Gid::ZERO);
        }
    }

    #[test]
    fn other_families_are_no_ip_addresses() {
        for family in [0_u16, AF_IB, u16::MAX] {
            let mut bytes = [0xff; SOCKADDR_STORAGE];
            bytes[..2].copy_from_slice(&family.to_ne_bytes());
            assert_eq!(parse(&bytes), None);
        }
        let any = Storage::new("0.0.0.0:5".parse().unwrap());
        assert_eq!(parse_peer(&any.bytes), None);
    }
}
