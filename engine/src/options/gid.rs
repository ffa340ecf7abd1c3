//! Choice of the source address from a port's GID table, as perftest 6.29
//! makes it.

use verbs_sys::{Gid, GidEntry, GidType};

/// `::ffff:a.b.c.d`, or a multicast address that carries an IPv4 one.
fn is_ipv4(gid: Gid) -> bool {
    let multicast = gid.0[..12] == [0xff, 0x0e, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
    gid.is_v4_mapped() || multicast
}

fn score(entry: &GidEntry, prefer_ipv6: bool) -> u32 {
    let family = if is_ipv4(entry.gid) != prefer_ipv6 {
        100
    } else {
        0
    };
    let scope = if entry.gid.is_link_local() { 0 } else { 10 };
    let version = match entry.gid_type {
        GidType::Ib => 0,
        GidType::RoceV1 => 1,
        GidType::RoceV2 => 2,
    };
    family + scope + version
}

/// The index to use when `-x` does not say: the wanted address family counts
/// most, then a scope wider than the link, then RoCE v2; the first of equals
/// wins. `None` when no entry holds an address.
pub fn choose(table: &[GidEntry], prefer_ipv6: bool) -> Option<u32> {
    let mut best: Option<(u32, u32)> = None;
    for entry in table.iter().filter(|entry| entry.gid != Gid::ZERO) {
        let score = score(entry, prefer_ipv6);
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

    fn table(entries: &[(&str, GidType)]) -> Vec<GidEntry> {
        entries
            .iter()
            .enumerate()
            .map(|(index, (gid, kind))| GidEntry {
                index: index as u32,
                gid: gid.parse::<Ipv6Addr>().unwrap().into(),
                gid_type: *kind,
                port: 1,
                netdev_index: 0,
            })
            .collect()
    }

    #[test]
    fn ipv4_v2_wins_and_zero_entries_are_skipped() {
        let entries = table(&[
            ("::", GidType::RoceV2),
            ("fe80::1", GidType::RoceV2),
            ("::ffff:192.168.1.201", GidType::RoceV1),
            ("::ffff:192.168.1.201", GidType::RoceV2),
            ("2001::9", GidType::RoceV1),
        ]);
        assert_eq!(choose(&entries, false), Some(3));
        assert_eq!(choose(&entries, true), Some(4));
        assert_eq!(choose(&[], false), None);
        assert_eq!(choose(&entries[..1], false), None);
    }

    #[test]
    fn scope_beats_version_and_family_beats_scope() {
        let entries = table(&[
            ("::ffff:169.254.3.4", GidType::RoceV2),
            ("::ffff:10.0.0.1", GidType::RoceV1),
            ("2001::9", GidType::RoceV2),
        ]);
        assert_eq!(choose(&entries, false), Some(1));
        assert_eq!(choose(&entries[..1], false), Some(0));
        let entries = table(&[
            ("::ffff:169.254.3.4", GidType::RoceV1),
            ("2001::9", GidType::RoceV2),
        ]);
        assert_eq!(choose(&entries, false), Some(0));
    }

    #[test]
    fn the_first_of_equals_wins() {
        let entries = table(&[
            ("::ffff:10.0.0.2", GidType::RoceV2),
            ("::ffff:10.0.0.1", GidType::RoceV2),
        ]);
        assert_eq!(choose(&entries, false), Some(0));
        let entries = table(&[("fe80::1", GidType::Ib), ("fe80::2", GidType::Ib)]);
        assert_eq!(choose(&entries, true), Some(0));
    }
}
