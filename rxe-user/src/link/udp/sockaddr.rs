//! Socket addresses as the kernel takes them (`ip(7)`, `ipv6(7)`).

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use nix::sys::socket::AddressFamily;

/// A `sockaddr_in` or `sockaddr_in6`, byte for byte.
#[derive(Debug, Clone, Copy)]
#[repr(C, align(4))]
pub(super) struct SockAddr([u8; Self::CAPACITY as usize]);

impl SockAddr {
    /// Bytes of the longer of the two.
    pub(super) const CAPACITY: libc::socklen_t = size_of::<libc::sockaddr_in6>() as libc::socklen_t;

    /// No address.
    pub(super) const EMPTY: Self = Self([0; Self::CAPACITY as usize]);

    /// `scope_id` is the interface index that an IPv6 link-local address needs.
    pub(super) fn new(address: IpAddr, port: u16, scope_id: u32) -> Self {
        let mut bytes = [0; Self::CAPACITY as usize];
        bytes[..2].copy_from_slice(&family(address).to_ne_bytes());
        bytes[2..4].copy_from_slice(&port.to_be_bytes());
        match address {
            IpAddr::V4(address) => bytes[4..8].copy_from_slice(&address.octets()),
            IpAddr::V6(address) => {
                bytes[8..24].copy_from_slice(&address.octets());
                if address.is_unicast_link_local() || address.is_multicast() {
                    bytes[24..28].copy_from_slice(&scope_id.to_ne_bytes());
                }
            }
        }
        Self(bytes)
    }

    /// The address and port, when the kernel has written them.
    pub(super) fn get(&self) -> Option<SocketAddr> {
        let [f0, f1, p0, p1, rest @ ..] = &self.0;
        let port = u16::from_be_bytes([*p0, *p1]);
        let address = match i32::from(u16::from_ne_bytes([*f0, *f1])) {
            libc::AF_INET => IpAddr::from(Ipv4Addr::from(*rest.first_chunk::<4>()?)),
            libc::AF_INET6 => IpAddr::from(Ipv6Addr::from(*rest[4..].first_chunk::<16>()?)),
            _ => return None,
        };
        Some(SocketAddr::new(address, port))
    }

    /// Bytes that matter.
    pub(super) fn len(&self) -> libc::socklen_t {
        if i32::from(u16::from_ne_bytes([self.0[0], self.0[1]])) == libc::AF_INET {
            size_of::<libc::sockaddr_in>() as libc::socklen_t
        } else {
            Self::CAPACITY
        }
    }

    pub(super) fn as_ptr(&self) -> *const libc::sockaddr {
        self.0.as_ptr().cast()
    }

    pub(super) fn as_mut_ptr(&mut self) -> *mut libc::c_void {
        self.0.as_mut_ptr().cast()
    }
}

/// The address family of an address.
pub(super) fn address_family(address: IpAddr) -> AddressFamily {
    match address {
        IpAddr::V4(_) => AddressFamily::Inet,
        IpAddr::V6(_) => AddressFamily::Inet6,
    }
}

fn family(address: IpAddr) -> libc::sa_family_t {
    address_family(address) as libc::sa_family_t
}

#[cfg(test)]
mod tests {
    use nix::sys::socket::{SockaddrIn, SockaddrIn6, SockaddrLike};

    use super::*;

    /// The bytes of the same address as nix writes them.
    fn bytes_of<A: SockaddrLike>(address: &A) -> Vec<u8> {
        // SAFETY: nix gives the pointer and length of an initialised address.
        unsafe { std::slice::from_raw_parts(address.as_ptr().cast(), address.len() as usize) }
            .to_vec()
    }

    #[test]
    fn bytes_are_those_of_the_c_structs() {
        let ours = SockAddr::new([127, 1, 2, 3].into(), 4791, 7);
        let theirs = SockaddrIn::new(127, 1, 2, 3, 4791);
        assert_eq!(ours.0[..ours.len() as usize], bytes_of(&theirs));

        let address: Ipv6Addr = "fe80::12:34".parse().unwrap();
        let ours = SockAddr::new(address.into(), 4791, 7);
        let theirs = SockaddrIn6::from(std::net::SocketAddrV6::new(address, 4791, 0, 7));
        assert_eq!(ours.0[..ours.len() as usize], bytes_of(&theirs));
    }

    #[test]
    fn addresses_come_back() {
        for address in ["127.1.2.3", "2001:db8::9", "fe80::1"] {
            let address: IpAddr = address.parse().unwrap();
            let expected = Some(SocketAddr::new(address, 0xC123));
            assert_eq!(SockAddr::new(address, 0xC123, 0).get(), expected);
        }
        assert_eq!(SockAddr::EMPTY.get(), None);
    }

    #[test]
    fn only_addresses_of_a_link_carry_the_interface() {
        let global = SockAddr::new("2001:db8::9".parse().unwrap(), 4791, 7);
        assert_eq!(global.0[24..28], [0; 4]);
    }
}
