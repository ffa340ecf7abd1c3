//! Global identifiers: the 16-byte addresses of RoCE ports.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// A 128-bit global identifier (IBTA 4.1.1). On RoCEv2 it is an IPv6 address,
/// or an IPv4 address mapped into one (annex A17.4.5.1).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Gid(pub [u8; 16]);

impl Gid {
    /// The all-zero GID, which names nobody.
    pub const ZERO: Self = Self([0; 16]);

    /// The RoCEv2 GID of an IP address: `::ffff:a.b.c.d` for IPv4.
    #[must_use]
    pub fn from_ip(ip: IpAddr) -> Self {
        match ip {
            IpAddr::V4(v4) => Self(v4.to_ipv6_mapped().octets()),
            IpAddr::V6(v6) => Self(v6.octets()),
        }
    }

    /// The IP address that this GID stands for on RoCEv2.
    #[must_use]
    pub fn to_ip(self) -> IpAddr {
        let v6 = Ipv6Addr::from(self.0);
        v6.to_ipv4_mapped().map_or(IpAddr::V6(v6), IpAddr::V4)
    }

    /// The link-local default GID of a MAC address: `fe80::/64` and the EUI-64.
    #[must_use]
    pub fn link_local(mac: [u8; 6]) -> Self {
        let mut gid = [0; 16];
        gid[0] = 0xfe;
        gid[1] = 0x80;
        gid[8..].copy_from_slice(&Self::eui64(mac));
        Self(gid)
    }

    /// The EUI-64 of a MAC address: `ff:fe` in the middle, the
    /// universal/local bit inverted. It is also a RoCE device's node GUID.
    #[must_use]
    pub const fn eui64(mac: [u8; 6]) -> [u8; 8] {
        [
            mac[0] ^ 2,
            mac[1],
            mac[2],
            0xff,
            0xfe,
            mac[3],
            mac[4],
            mac[5],
        ]
    }

    /// Whether this is an IPv4 address mapped to IPv6.
    #[must_use]
    pub fn is_v4_mapped(self) -> bool {
        matches!(self.to_ip(), IpAddr::V4(_))
    }

    /// Whether this GID names a multicast group: an IPv6 group, or a mapped
    /// IPv4 one in 224.0.0.0/4.
    #[must_use]
    pub fn is_multicast(self) -> bool {
        self.to_ip().is_multicast()
    }

    /// Whether this is an IPv6 link-local (`fe80::/10`) or an IPv4 link-local
    /// (169.254.0.0/16) address.
    #[must_use]
    pub fn is_link_local(self) -> bool {
        match self.to_ip() {
            IpAddr::V4(v4) => v4.is_link_local(),
            IpAddr::V6(v6) => v6.is_unicast_link_local(),
        }
    }
}

impl From<Ipv4Addr> for Gid {
    fn from(ip: Ipv4Addr) -> Self {
        Self::from_ip(ip.into())
    }
}

impl From<Ipv6Addr> for Gid {
    fn from(ip: Ipv6Addr) -> Self {
        Self::from_ip(ip.into())
    }
}

impl fmt::Display for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        Ipv6Addr::from(self.0).fmt(f)
    }
}

impl fmt::Debug for Gid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gid({self})")
    }
}

/// `enum ib_gid_type`: which protocol a GID table entry speaks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GidType {
    /// InfiniBand.
    Ib,
    /// RoCE version 1 (Ethertype 0x8915).
    RoceV1,
    /// RoCE version 2 (UDP 4791).
    RoceV2,
}

/// One valid entry of a port's GID table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct GidEntry {
    /// The GID.
    pub gid: Gid,
    /// Index in the port's table.
    pub index: u32,
    /// Port number, counted from 1.
    pub port: u8,
    /// Protocol.
    pub gid_type: GidType,
    /// Index of the network interface that holds the address.
    pub netdev_index: u32,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ip_addresses_map_both_ways() {
        let v4 = IpAddr::from([192, 0, 2, 1]);
        let gid = Gid::from_ip(v4);
        assert_eq!(
            gid.0,
            [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 192, 0, 2, 1]
        );
        assert_eq!(gid.to_ip(), v4);
        assert!(gid.is_v4_mapped());
        let v6: IpAddr = "2001:db8::1".parse().unwrap();
        assert_eq!(Gid::from_ip(v6).to_ip(), v6);
        assert!(!Gid::from_ip(v6).is_v4_mapped());
    }

    /// The example of the RoCE annex: MAC to EUI-64.
    #[test]
    fn link_local_gid_comes_from_the_mac() {
        let gid = Gid::link_local([0x00, 0x1a, 0x2b, 0x3c, 0x4d, 0x5e]);
        assert_eq!(gid.to_string(), "fe80::21a:2bff:fe3c:4d5e");
        assert!(gid.is_link_local());
    }

    #[test]
    fn multicast_covers_both_families() {
        for (text, expected) in [
            ("ff02::1", true),
            ("::ffff:224.0.0.1", true),
            ("::ffff:239.255.255.255", true),
            ("::ffff:223.255.255.255", false),
            ("::ffff:240.0.0.0", false),
            ("fe80::1", false),
        ] {
            let gid = Gid::from(text.parse::<Ipv6Addr>().unwrap());
            assert_eq!(gid.is_multicast(), expected, "{text}");
        }
    }
}
