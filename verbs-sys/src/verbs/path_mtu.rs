//! The path MTU enumeration.

use std::fmt;

/// `enum ibv_mtu`: payload bytes of one packet on a path.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[repr(u8)]
pub enum PathMtu {
    /// 256 bytes.
    Mtu256 = 1,
    /// 512 bytes.
    Mtu512 = 2,
    /// 1024 bytes.
    Mtu1024 = 3,
    /// 2048 bytes.
    Mtu2048 = 4,
    /// 4096 bytes.
    Mtu4096 = 5,
}

impl PathMtu {
    /// All values, smallest first.
    pub const ALL: [Self; 5] = [
        Self::Mtu256,
        Self::Mtu512,
        Self::Mtu1024,
        Self::Mtu2048,
        Self::Mtu4096,
    ];

    /// Headers of a RoCEv2 packet that the network MTU has to hold beside the
    /// payload: IPv6, UDP, BTH, the longest extended headers and the ICRC, as
    /// Linux rxe budgets them (`RXE_MAX_HDR_LENGTH`).
    const HEADER_BUDGET: u32 = 80;

    /// Payload bytes per packet.
    #[must_use]
    pub const fn bytes(self) -> u32 {
        128 << self as u32
    }

    /// The value with this number of bytes, if there is one.
    #[must_use]
    pub fn from_bytes(bytes: u32) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| mtu.bytes() == bytes)
    }

    /// The value with this `enum ibv_mtu` number (1 to 5).
    #[must_use]
    pub fn from_code(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|mtu| *mtu as u8 == code)
    }

    /// The largest path MTU that fits packets of a network interface's MTU.
    /// `None` below 336 bytes, where not even 256 fits.
    #[must_use]
    pub fn for_netdev(netdev_mtu: u32) -> Option<Self> {
        let payload = netdev_mtu.checked_sub(Self::HEADER_BUDGET)?;
        Self::ALL
            .into_iter()
            .rev()
            .find(|mtu| mtu.bytes() <= payload)
    }
}

impl fmt::Display for PathMtu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.bytes().fmt(f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn codes_and_bytes_agree() {
        let bytes: Vec<u32> = PathMtu::ALL.iter().map(|m| m.bytes()).collect();
        assert_eq!(bytes, [256, 512, 1024, 2048, 4096]);
        for mtu in PathMtu::ALL {
            assert_eq!(PathMtu::from_bytes(mtu.bytes()), Some(mtu));
            assert_eq!(PathMtu::from_code(mtu as u8), Some(mtu));
        }
        assert_eq!(PathMtu::from_bytes(1500), None);
        assert_eq!(PathMtu::from_code(0), None);
        assert_eq!(PathMtu::from_code(6), None);
    }

    #[test]
    fn netdev_mtu_is_rounded_down_to_the_enumeration() {
        let cases = [
            (335, None),
            (336, Some(PathMtu::Mtu256)),
            (1500, Some(PathMtu::Mtu1024)),
            (2100, Some(PathMtu::Mtu1024)),
            (4175, Some(PathMtu::Mtu2048)),
            (4178, Some(PathMtu::Mtu4096)),
            (4200, Some(PathMtu::Mtu4096)),
            (9000, Some(PathMtu::Mtu4096)),
            (65536, Some(PathMtu::Mtu4096)),
            (0, None),
        ];
        for (netdev, expected) in cases {
            assert_eq!(PathMtu::for_netdev(netdev), expected, "netdev MTU {netdev}");
        }
    }
}
