//! Choice of the source address from a port's GID table, as perftest 6.29
//! makes it.

/// How packets with this source address are encapsulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GidKind {
    /// InfiniBand.
    InfiniBand,
    /// RoCE v1, directly on Ethernet.
    RoceV1,
    /// RoCE v2, over UDP.
    RoceV2,
}

/// An entry of a port's GID table that could be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct GidEntry {
    /// Position in the table.
    pub index: u8,
    /// The address, in network order.
    pub gid: [u8; 16],
    /// Encapsulation.
    pub kind: GidKind,
}

impl GidEntry {
    /// `::ffff:a.b.c.d`, or a multicast address that carries an IPv4 one.
    fn is_ipv4(&self) -> bool {
        let mapped = self.gid[..10] == [0; 10] && self.gid[10..12] == [0xff, 0xff];
        let multicast = self.gid[..12] == [0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        mapped || multicast
    }

    /// fe80::/10 or 169.254.0.0/16.
    fn is_link_local(&self) -> bool {
        match self.is_ipv4() {
            true => self.gid[12..14] == [169, 254],
            false => self.gid[0] == 0xfe && self.gid[1] & 0xc0 == 0x80,
        }
    }

    fn score(&self, prefer_ipv6: bool) -> u32 {
        let family = if self.is_ipv4() != prefer_ipv6 {
            100
        } else {
            0
        };
        let scope = if self.is_link_local() { 0 } else { 10 };
        let version = match self.kind {
            GidKind::InfiniBand => 0,
            GidKind::RoceV1 => 1,
            GidKind::RoceV2 => 2,
        };
        family + scope + version
    }
}

/// The index to use when `-x` does not say: the wanted address family counts
/// most, then a scope wider than the link, then RoCE v2; the first of equals
/// wins. `None` when no entry holds an address.
pub fn choose(table: &[GidEntry], prefer_ipv6: bool) -> Option<u8> {
    let mut best: Option<(u32, u8)> = None;
    for entry in table.iter().filter(|entry| entry.gid != [0; 16]) {
        let score = entry.score(prefer_ipv6);
        if best.is_none_or(|(highest, _)| score > highest) {
            best = Some((score, entry.index));
        }
    }
    best.map(|(_, index)| index)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests")]

    use std::net::Ipv6Addr;

    use super::*;

    fn table(entries: &[(&str, GidKind)]) -> Vec<GidEntry> {
        entries
            .iter()
            .enumerate()
            .map(|(index, (gid, kind))| GidEntry {
                index: index as u8,
                gid: gid.parse::<Ipv6Addr>().unwrap().octets(),
                kind: *kind,
            })
            .collect()
    }

    #[test]
    fn ipv4_v2_wins_and_zero_entries_are_skipped() {
        let entries = table(&[
            ("::", GidKind::RoceV2),
            ("fe80::1", GidKind::RoceV2),
            ("::ffff:192.168.1.201", GidKind::RoceV1),
            ("::ffff:192.168.1.201", GidKind::RoceV2),
            ("2001::9", GidKind::RoceV1),
        ]);
        assert_eq!(choose(&entries, false), Some(3));
        assert_eq!(choose(&entries, true), Some(4));
        assert_eq!(choose(&[], false), None);
        assert_eq!(choose(&entries[..1], false), None);
    }

    #[test]
    fn scope_beats_version_and_family_beats_scope() {
        let entries = table(&[
            ("::ffff:169.254.3.4", GidKind::RoceV2),
            ("::ffff:10.0.0.1", GidKind::RoceV1),
            ("2001::9", GidKind::RoceV2),
        ]);
        assert_eq!(choose(&entries, false), Some(1));
        assert_eq!(choose(&entries[..1], false), Some(0));
        let entries = table(&[
            ("::ffff:169.254.3.4", GidKind::RoceV1),
            ("2001::9", GidKind::RoceV2),
        ]);
        assert_eq!(choose(&entries, false), Some(0));
    }

    #[test]
    fn the_first_of_equals_wins() {
        let entries = table(&[
            ("::ffff:10.0.0.2", GidKind::RoceV2),
            ("::ffff:10.0.0.1", GidKind::RoceV2),
        ]);
        assert_eq!(choose(&entries, false), Some(0));
        let entries = table(&[
            ("fe80::1", GidKind::InfiniBand),
            ("fe80::2", GidKind::InfiniBand),
        ]);
        assert_eq!(choose(&entries, true), Some(0));
    }
}
