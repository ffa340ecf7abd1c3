//! Attaching queue pairs to multicast groups, and the datagrams of a group.

use std::net::IpAddr;

use verbs_sys::{Gid, QpType, Result, VerbsError};

use super::objects::within;
use super::{Nic, find};
use crate::link::RxPacket;
use crate::time::Time;
use crate::transport::multicast::group_address;
use crate::wire::Packet;

impl Nic {
    /// Attaches a UD queue pair to a multicast group; twice is once. Returns
    /// the IP groups that the link has to join for it.
    ///
    /// # Errors
    /// `InvalidArgument` for a GID that is no group's, or none of the address
    /// families of the port, `UnsupportedOperation` for other services,
    /// `Exhausted` at the limits.
    pub fn attach_multicast(&mut self, qpn: u32, mgid: Gid) -> Result<Vec<IpAddr>> {
        let groups = self.groups_of(qpn, mgid)?;
        let limits = &self.config.limits;
        let mut joins = groups.clone();
        joins.retain(|group| !self.groups.contains(*group));
        for (more, _) in joins.iter().enumerate() {
            let count = self.groups.len() + more;
            within("multicast groups", count, limits.max_multicast_groups)?;
        }
        for group in &groups {
            let members = self.groups.members(*group);
            if !members.contains(&qpn) {
                let limit = limits.max_multicast_members;
                within("queue pairs of a multicast group", members.len(), limit)?;
            }
        }
        for group in groups {
            self.groups.attach(group, qpn);
        }
        Ok(joins)
    }

    /// Detaches a queue pair from a multicast group. Returns the IP groups
    /// that the link may leave.
    ///
    /// # Errors
    /// `InvalidArgument` when it isn't attached.
    pub fn detach_multicast(&mut self, qpn: u32, mgid: Gid) -> Result<Vec<IpAddr>> {
        let groups = self.groups_of(qpn, mgid)?;
        let is_member = |group: &IpAddr| self.groups.members(*group).contains(&qpn);
        if !groups.iter().any(is_member) {
            return Err(VerbsError::InvalidArgument {
                what: "multicast GID to detach from",
                seen: mgid.to_string(),
                expected: "one that the queue pair is attached to".into(),
            });
        }
        Ok(self.groups.detach(qpn, |group| groups.contains(&group)))
    }

    /// The groups of a GID in the address families of the port.
    fn groups_of(&self, qpn: u32, mgid: Gid) -> Result<Vec<IpAddr>> {
        let qp_type = self.qp(qpn)?.identity.qp_type;
        if qp_type != QpType::Ud {
            let operation = "multicast";
            return Err(VerbsError::UnsupportedOperation { qp_type, operation });
        }
        let has = |ipv4: bool| {
            let family = |gid: &Gid| gid.is_v4_mapped() == ipv4;
            self.config.gids.iter().any(family)
        };
        let families = [true, false].into_iter().filter(|ipv4| has(*ipv4));
        let groups: Vec<IpAddr> = families
            .filter_map(|ipv4| group_address(mgid, ipv4))
            .collect();
        if groups.is_empty() {
            return Err(VerbsError::InvalidArgument {
                what: "multicast GID",
                seen: mgid.to_string(),
                expected: "a group's, of an address family that the port has".into(),
            });
        }
        Ok(groups)
    }

    /// Gives a datagram to all that are attached to its group: each has a
    /// Q_Key and receive requests of its own (IBTA 9.8.3).
    pub(super) fn receive_multicast(&mut self, now: Time, rx: &RxPacket<'_>, packet: &Packet<'_>) {
        for index in 0.. {
            let Some(&qpn) = self.groups.members(rx.dst).get(index) else {
                break;
            };
            let Ok(qp) = find(&mut self.qps, qpn) else {
                continue;
            };
            if qp.accepts(rx, packet, &mut self.shared.counters) {
                qp.on_packet(rx, packet, now, &mut self.shared);
                self.schedule(qpn);
            }
        }
        self.fail_overrun_users();
    }
}
