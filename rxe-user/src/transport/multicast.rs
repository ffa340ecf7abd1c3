//! UD multicast (IBTA 10.5, annex A17): the IP group of a multicast GID, and
//! which queue pairs its datagrams go to.

use std::collections::HashMap;
use std::net::{IpAddr, Ipv4Addr};

use verbs_sys::Gid;

/// The queue pair number that all datagrams to a group name (IBTA 9.2.3).
pub(crate) const MULTICAST_QPN: u32 = 0xff_ffff;

/// Upper byte of the IPv4 groups that stand for IPv6 ones: those that stay
/// within the site (RFC 2365).
const SITE_LOCAL: u8 = 239;

/// The IP group that datagrams to a multicast GID have as their destination,
/// or `None` when the GID has none in this address family.
///
/// A mapped IPv4 group and an IPv6 group are what they are (annex A17.4.5.1).
/// Only an IPv6 group on a port that has but IPv4, as perftest's default group
/// on `lo`, has no group of its own in RoCEv2: it is the one of 239.0.0.0/8
/// with the same last three bytes, which all devices of this kind understand.
#[must_use]
pub fn group_address(mgid: Gid, ipv4: bool) -> Option<IpAddr> {
    match (mgid.to_ip(), ipv4) {
        (group, _) if !group.is_multicast() => None,
        (IpAddr::V4(group), true) => Some(group.into()),
        (IpAddr::V4(_), false) => None,
        (IpAddr::V6(group), false) => Some(group.into()),
        (IpAddr::V6(group), true) => {
            let [.., a, b, c] = group.octets();
            Some(Ipv4Addr::new(SITE_LOCAL, a, b, c).into())
        }
    }
}

/// Who is attached to which group.
#[derive(Debug, Default)]
pub(crate) struct Groups {
    members: HashMap<IpAddr, Vec<u32>>,
}

impl Groups {
    /// Number of groups.
    pub(crate) fn len(&self) -> usize {
        self.members.len()
    }

    pub(crate) fn contains(&self, group: IpAddr) -> bool {
        self.members.contains_key(&group)
    }

    /// Queue pairs that get the datagrams of a group.
    pub(crate) fn members(&self, group: IpAddr) -> &[u32] {
        self.members.get(&group).map_or(&[], Vec::as_slice)
    }

    /// Adds a queue pair that may be there already.
    pub(crate) fn attach(&mut self, group: IpAddr, qpn: u32) {
        let members = self.members.entry(group).or_default();
        if !members.contains(&qpn) {
            members.push(qpn);
        }
    }

    /// Takes a queue pair off those groups that `which` picks; returns the
    /// groups that have nobody left.
    pub(crate) fn detach(&mut self, qpn: u32, which: impl Fn(IpAddr) -> bool) -> Vec<IpAddr> {
        let mut left = Vec::new();
        self.members.retain(|group, members| {
            if which(*group) {
                members.retain(|member| *member != qpn);
            }
            if members.is_empty() {
                left.push(*group);
            }
            !members.is_empty()
        });
        left
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gids_map_to_groups_of_both_families() {
        for (mgid, v4, v6) in [
            ("::ffff:224.0.0.251", Some("224.0.0.251"), None),
            ("::ffff:10.0.0.1", None, None),
            ("fd00::1", None, None),
            (
                "ff0e::1234:5678",
                Some("239.52.86.120"),
                Some("ff0e::1234:5678"),
            ),
            // perftest's default.
            (
                "ff01:0:2:c985::",
                Some("239.0.0.0"),
                Some("ff01:0:2:c985::"),
            ),
        ] {
            let gid = Gid::from_ip(mgid.parse().unwrap());
            let parse = |text: Option<&str>| text.map(|text| text.parse().unwrap());
            assert_eq!(group_address(gid, true), parse(v4), "{mgid}");
            assert_eq!(group_address(gid, false), parse(v6), "{mgid}");
        }
    }

    #[test]
    fn a_group_ends_with_its_last_member() {
        let mut groups = Groups::default();
        let [one, two] = [[239, 0, 0, 1], [239, 0, 0, 2]].map(IpAddr::from);
        groups.attach(one, 5);
        groups.attach(one, 5);
        groups.attach(one, 6);
        groups.attach(two, 5);
        assert_eq!(groups.members(one), [5, 6]);
        assert!(groups.detach(6, |group| group == two).is_empty());
        assert!(groups.detach(6, |group| group == one).is_empty());
        let mut left = groups.detach(5, |_| true);
        left.sort();
        assert_eq!((left.as_slice(), groups.len()), ([one, two].as_slice(), 0));
    }
}
