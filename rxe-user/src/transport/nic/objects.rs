//! Making, changing and releasing the objects of a NIC.

use std::net::IpAddr;

use verbs_sys::memory::MemoryRange;
use verbs_sys::{AccessFlags, Gid, PostError, QpAttributes, ReceiveRequest, Result, VerbsError};

use super::{Nic, SLOT_BITS, SLOTS, TAG_BITS, find};
use crate::link::Route;
use crate::transport::memory::{Keys, PdId};
use crate::transport::multicast::group_address;
use crate::transport::queue_pair::{QpSettings, QueuePair};
use crate::transport::srq::{MAX_SRQ, SrqSettings};
use crate::transport::{CqId, SrqId, XrcdId};

impl Nic {
    /// Makes a protection domain.
    ///
    /// # Errors
    /// `Exhausted` at the limit.
    pub fn alloc_pd(&mut self) -> Result<PdId> {
        let limit = self.config.limits.max_pd;
        within("protection domains", self.shared.memory.domains(), limit)?;
        Ok(self.shared.memory.alloc_pd())
    }

    /// Releases a protection domain.
    ///
    /// # Errors
    /// `Busy` while objects made in it exist.
    pub fn dealloc_pd(&mut self, pd: PdId) -> Result<()> {
        self.shared.memory.dealloc_pd(pd)
    }

    /// Registers memory.
    ///
    /// # Errors
    /// `InvalidArgument` for an empty range or contradicting flags.
    pub fn register(&mut self, pd: PdId, range: MemoryRange, access: AccessFlags) -> Result<Keys> {
        let limit = self.config.limits.max_mr;
        within("memory regions", self.shared.memory.regions(), limit)?;
        self.shared
            .memory
            .register(pd, range, access, &mut self.random)
    }

    /// Ends a registration. Packets that still use the key are refused.
    ///
    /// # Errors
    /// `ForeignObject` when there is no such key, `Busy` while memory windows
    /// are bound to the region.
    pub fn deregister(&mut self, lkey: u32) -> Result<()> {
        self.shared.memory.deregister(lkey)
    }

    /// Makes the memory windows free that are bound to a region, so that it
    /// can be deregistered.
    pub fn unbind_windows(&mut self, lkey: u32) {
        self.shared.memory.unbind_region(lkey);
    }

    /// Makes a memory window and returns its key; work requests bind it.
    ///
    /// # Errors
    /// `Exhausted` at the limit.
    pub fn alloc_window(&mut self, pd: PdId) -> Result<u32> {
        let limit = self.config.limits.max_mw;
        within("memory windows", self.shared.memory.windows(), limit)?;
        Ok(self.shared.memory.alloc_window(pd, &mut self.random))
    }

    /// Releases a memory window. Packets that still use its key are refused.
    ///
    /// # Errors
    /// `ForeignObject` when there is no such window.
    pub fn dealloc_window(&mut self, rkey: u32) -> Result<()> {
        self.shared.memory.dealloc_window(rkey)
    }

    /// Makes a completion queue.
    ///
    /// # Errors
    /// `InvalidArgument` for a depth of 0 or above the limit.
    pub fn create_cq(&mut self, depth: u32) -> Result<CqId> {
        let limits = &self.config.limits;
        in_range("completion queue depth", depth, 1, limits.max_cqe)?;
        within("completion queues", self.shared.cqs.len(), limits.max_cq)?;
        Ok(self.shared.cqs.create(depth))
    }

    /// Releases a completion queue.
    ///
    /// # Errors
    /// `Busy` while queue pairs report there.
    pub fn destroy_cq(&mut self, cq: CqId) -> Result<()> {
        self.shared.cqs.destroy(cq)
    }

    /// Makes an XRC domain.
    ///
    /// # Errors
    /// `Exhausted` at the limit.
    pub fn alloc_xrcd(&mut self) -> Result<XrcdId> {
        let domains = &mut self.shared.xrc_domains;
        within("XRC domains", domains.len(), self.config.limits.max_xrcd)?;
        Ok(XrcdId(domains.alloc()))
    }

    /// Releases an XRC domain.
    ///
    /// # Errors
    /// `Busy` while targets or shared receive queues made in it exist.
    pub fn dealloc_xrcd(&mut self, domain: XrcdId) -> Result<()> {
        self.shared.xrc_domains.dealloc(domain.0)
    }

    /// Makes a shared receive queue.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes above the limits.
    pub fn create_srq(&mut self, settings: SrqSettings) -> Result<SrqId> {
        let limits = &self.config.limits;
        let SrqSettings {
            depth,
            max_sge,
            limit,
            ..
        } = settings;
        in_range("shared receive queue depth", depth, 1, limits.max_qp_wr)?;
        in_range(
            "scatter/gather entries of a shared receive",
            max_sge,
            0,
            limits.max_sge,
        )?;
        in_range("shared receive queue limit", limit, 0, depth)?;
        within(
            "shared receive queues",
            self.shared.srqs.len(),
            limits.max_srq.min(MAX_SRQ),
        )?;
        if let Some(xrc) = settings.xrc {
            self.check_cq(xrc.cq)?;
            self.check_xrcd(xrc.domain)?;
            self.shared.cqs.add_user(xrc.cq);
            self.shared.xrc_domains.add_user(xrc.domain.0);
        }
        self.shared.memory.add_pd_user(settings.pd);
        Ok(self.shared.srqs.create(settings, (self.random)()))
    }

    fn check_cq(&self, cq: CqId) -> Result<()> {
        let what = "completion queue";
        match self.shared.cqs.contains(cq) {
            true => Ok(()),
            false => Err(VerbsError::ForeignObject { what }),
        }
    }

    fn check_xrcd(&self, domain: XrcdId) -> Result<()> {
        let what = "XRC domain";
        match self.shared.xrc_domains.contains(domain.0) {
            true => Ok(()),
            false => Err(VerbsError::ForeignObject { what }),
        }
    }

    /// Releases a shared receive queue. XRC messages that are on the way into
    /// it end with a NAK.
    ///
    /// # Errors
    /// `Busy` while queue pairs draw from it, except the targets of its XRC
    /// domain, `ForeignObject` when there is no such queue.
    pub fn destroy_srq(&mut self, srq: SrqId) -> Result<()> {
        let settings = self.shared.srqs.destroy(srq)?;
        self.shared.memory.remove_pd_user(settings.pd);
        if let Some(xrc) = settings.xrc {
            for qp in self.qps.iter_mut().flatten() {
                qp.forget_srq(srq);
            }
            self.shared.cqs.remove_user(xrc.cq);
            self.shared.xrc_domains.remove_user(xrc.domain.0);
        }
        Ok(())
    }

    /// Arms the limit event of a shared receive queue.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit above its depth.
    pub fn set_srq_limit(&mut self, srq: SrqId, limit: u32) -> Result<()> {
        self.shared.srqs.set_limit(srq, limit)
    }

    /// Queues receives on a shared queue.
    ///
    /// # Errors
    /// [`PostError`] names the first request that was refused.
    pub fn post_srq_recv(
        &mut self,
        srq: SrqId,
        requests: &[ReceiveRequest<'_>],
    ) -> Result<(), PostError> {
        self.shared.srqs.post(srq, requests)
    }

    /// Makes a queue pair in RESET and returns its number.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes above the limits, `Exhausted` at the limit.
    pub fn create_qp(&mut self, settings: QpSettings) -> Result<u32> {
        let (limits, cap) = (&self.config.limits, settings.granted());
        settings.check_queues()?;
        in_range("max_send_wr", cap.max_send_wr, 0, limits.max_qp_wr)?;
        in_range("max_recv_wr", cap.max_recv_wr, 0, limits.max_qp_wr)?;
        in_range("max_send_sge", cap.max_send_sge, 0, limits.max_sge)?;
        in_range("max_recv_sge", cap.max_recv_sge, 0, limits.max_sge)?;
        in_range(
            "max_inline_data",
            cap.max_inline_data,
            0,
            limits.max_inline_data,
        )?;
        for cq in [settings.send_cq, settings.recv_cq] {
            self.check_cq(cq)?;
        }
        let shared_sges = match (settings.srq, settings.xrcd) {
            (Some(srq), _) => self.sges_of(srq)?,
            (None, Some(domain)) => {
                self.check_xrcd(domain)?;
                // Of queues that may not be there yet.
                limits.max_sge
            }
            (None, None) => 0,
        };
        let slot = self.free_slot()?;
        // Slots 0 and 1 with tag 0 would be the management queue pairs, and
        // all ones is multicast: tags avoid both.
        let tag = 1 + (self.random)() % ((1 << TAG_BITS) - 2);
        let qpn = tag << SLOT_BITS | slot;
        let qp = QueuePair::new(qpn, settings, self.config.port_mtu, shared_sges as usize);
        if let Some(place) = self.qps.get_mut(slot as usize) {
            *place = Some(Box::new(qp));
        }
        self.shared.memory.add_pd_user(settings.pd);
        self.shared.cqs.add_user(settings.send_cq);
        self.shared.cqs.add_user(settings.recv_cq);
        if let Some(srq) = settings.srq {
            self.shared.srqs.add_user(srq);
        }
        if let Some(domain) = settings.xrcd {
            self.shared.xrc_domains.add_user(domain.0);
        }
        self.timers.reserve(slot);
        self.ready.reserve(self.qps.len());
        self.ack_ready.reserve(self.qps.len());
        Ok(qpn)
    }

    /// The longest list of a shared queue that a queue pair can have for its
    /// own; an XRC queue belongs to its domain.
    fn sges_of(&self, srq: SrqId) -> Result<u32> {
        let what = "shared receive queue";
        let settings = self.shared.srqs.settings(srq);
        let settings = settings.ok_or(VerbsError::ForeignObject { what })?;
        match settings.xrc {
            None => Ok(settings.max_sge),
            Some(_) => Err(VerbsError::InvalidArgument {
                what: "shared receive queue of the queue pair",
                seen: "one of an XRC domain".into(),
                expected: "a plain one".into(),
            }),
        }
    }

    fn free_slot(&mut self) -> Result<u32> {
        if let Some(slot) = self.free_slots.pop() {
            return Ok(slot);
        }
        within(
            "queue pairs",
            self.qps.len(),
            self.config.limits.max_qp.min(SLOTS - 2),
        )?;
        self.qps.push(None);
        self.free_slots.reserve(self.qps.len());
        Ok(self.qps.len() as u32 - 1)
    }

    /// Releases a queue pair. Its completions that nobody has fetched go too,
    /// and memory windows that are bound to it become free. Returns the
    /// multicast groups that the link may leave.
    pub fn destroy_qp(&mut self, qpn: u32) -> Vec<IpAddr> {
        let slot = qpn & (SLOTS - 1);
        if self.qp(qpn).is_err() {
            return Vec::new();
        }
        let Some(qp) = self.qps.get_mut(slot as usize).and_then(Option::take) else {
            return Vec::new();
        };
        let settings = qp.settings;
        self.shared.memory.unbind_queue_pair(qpn);
        self.shared.memory.remove_pd_user(settings.pd);
        qp.purge(&mut self.shared);
        self.shared.cqs.remove_user(settings.send_cq);
        self.shared.cqs.remove_user(settings.recv_cq);
        if let Some(srq) = settings.srq {
            self.shared.srqs.remove_user(srq);
        }
        if let Some(domain) = settings.xrcd {
            self.shared.xrc_domains.remove_user(domain.0);
        }
        if qp.ack_waits {
            self.acks_waiting -= 1;
        }
        self.ready.retain(|other| *other != slot);
        self.ack_ready.retain(|other| *other != slot);
        self.timers.cancel(slot);
        self.free_slots.push(slot);
        self.groups.detach(qpn, |_| true)
    }

    /// Changes attributes of a queue pair; on an error nothing has changed.
    ///
    /// # Errors
    /// The transition or an attribute isn't allowed.
    pub fn modify_qp(&mut self, qpn: u32, change: &QpAttributes) -> Result<()> {
        let av = self.qp(qpn)?.check_modify(change)?;
        self.check_limits(change)?;
        let route = av.map(|av| self.route(av.sgid_index, av.dgid, av.traffic_class, av.hop_limit));
        let route = route.transpose()?;
        let window = self.config.window;
        let Self { qps, shared, .. } = self;
        let qp = find(qps, qpn)?;
        qp.modify(change, route, window, shared);
        self.schedule(qpn);
        self.fail_overrun_users();
        Ok(())
    }

    fn check_limits(&self, change: &QpAttributes) -> Result<()> {
        let max = u32::from(self.config.limits.max_rd_atomic);
        let depth = |depth: Option<u8>| u32::from(depth.unwrap_or(0));
        in_range("max_qp_rd_atomic", depth(change.max_qp_rd_atomic), 0, max)?;
        in_range(
            "max_dest_rd_atomic",
            depth(change.max_dest_rd_atomic),
            0,
            max,
        )?;
        if let Some(path_mtu) = change.path_mtu {
            in_range(
                "path MTU",
                path_mtu.bytes(),
                256,
                self.config.port_mtu.bytes(),
            )?;
        }
        Ok(())
    }

    /// Resolves a path: own and peer's address.
    ///
    /// # Errors
    /// `InvalidArgument` for a GID index without an entry, or a peer's GID of
    /// the other address family.
    pub fn route(
        &self,
        sgid_index: u32,
        dgid: Gid,
        traffic_class: u8,
        hop_limit: u8,
    ) -> Result<Route> {
        let gids = &self.config.gids;
        let sgid = gids
            .get(sgid_index as usize)
            .ok_or_else(|| VerbsError::InvalidArgument {
                what: "GID index",
                seen: sgid_index.to_string(),
                expected: format!("0 to {}", gids.len().saturating_sub(1)),
            })?;
        let ipv4 = sgid.is_v4_mapped();
        let dst = match dgid.is_multicast() {
            true => group_address(dgid, ipv4),
            false => (dgid.is_v4_mapped() == ipv4 && dgid != Gid::ZERO).then(|| dgid.to_ip()),
        };
        let dst = dst.ok_or_else(|| VerbsError::InvalidArgument {
            what: "destination GID",
            seen: dgid.to_string(),
            expected: format!("one of the address family of {sgid}"),
        })?;
        let hop_limit = if hop_limit == 0 { 64 } else { hop_limit };
        Ok(Route {
            src: sgid.to_ip(),
            dst,
            traffic_class,
            hop_limit,
        })
    }

    /// All attributes of a queue pair.
    ///
    /// # Errors
    /// `ForeignObject` when there is none of this number.
    pub fn query_qp(&self, qpn: u32) -> Result<QpAttributes> {
        Ok(self.qp(qpn)?.query())
    }
}

pub(super) fn within(what: &'static str, count: usize, limit: u32) -> Result<()> {
    if count < limit as usize {
        return Ok(());
    }
    Err(VerbsError::Exhausted {
        what,
        limit: u64::from(limit),
    })
}

fn in_range(what: &'static str, value: u32, min: u32, max: u32) -> Result<()> {
    if (min..=max).contains(&value) {
        return Ok(());
    }
    let (seen, expected) = (value.to_string(), format!("{min} to {max}"));
    Err(VerbsError::InvalidArgument {
        what,
        seen,
        expected,
    })
}
