//! An open device.

use std::os::fd::BorrowedFd;
use std::sync::Arc;

use verbs_sys::memory::MemoryRange;
use verbs_sys::{
    AccessFlags, AddressHandle, AddressVector, AsyncEvent, AtomicCapability, CompletionChannel,
    CompletionQueue, Context, CqInit, Device, DeviceAttributes, EventSource, ExtendedAttributes,
    GidEntry, GidType, LinkLayer, MemoryRegion, MemoryWindow, PathMtu, PortAttributes, PortState,
    ProtectionDomain, QpInit, QueuePair, Result, SharedReceiveQueue, SrqInit, VerbsError,
    XrcDomain,
};

use super::channel::{Channel, Mailbox};
use super::objects::{Cq, Domain, Qp, Region, Srq, Window, XrcdObject};
use super::port::{Engine, Port};
use super::{UserDevice, path_mtu};
use crate::transport::{NicLimits, QpSettings, RoutedAddress, SrqSettings, XrcQueue};
use crate::wire::DEFAULT_PKEY;

/// Largest message: what the IB specification allows.
const MAX_MESSAGE: u32 = 1 << 31;

/// `IBV_PORT_CM_SUP` (uapi/rdma/ib_user_verbs.h).
const PORT_CAP_CM: u32 = 1 << 16;

/// `IBV_DEVICE_XRC` (uapi/rdma/ib_user_verbs.h).
const DEVICE_CAP_XRC: u32 = 1 << 20;

/// Physical state "link up" (IBTA 14.2.5.6).
const PHYS_STATE_LINK_UP: u8 = 5;

/// One virtual lane (IBTA PortInfo:VLCap), as rxe has it.
const ONE_VIRTUAL_LANE: u8 = 1;

/// One lane (`enum ib_port_width`): what lies under a socket isn't known.
const WIDTH_1X: u8 = 1;

/// FDR10, which the verbs show as 10 Gbit/s (`enum ib_port_speed`).
const SPEED_10_GBPS: u8 = 8;

/// Exponent of the longest time to acknowledge, as rxe has it.
const LOCAL_CA_ACK_DELAY: u8 = 15;

/// No assigned number: what rxe says, too.
const VENDOR_ID: u32 = 0xff_ffff;

/// What the objects of a context share.
pub(crate) struct Inner {
    pub(crate) port: Arc<Port>,
    pub(crate) events: Arc<Mailbox<AsyncEvent>>,
}

/// An open device of the userspace NIC.
pub(crate) struct UserContext {
    device: UserDevice,
    inner: Arc<Inner>,
}

impl UserContext {
    pub(crate) fn new(device: UserDevice, port: Arc<Port>) -> Result<Self> {
        let inner = Arc::new(Inner {
            port,
            events: Arc::new(Mailbox::new()?),
        });
        Ok(Self { device, inner })
    }

    fn limits(engine: &Engine) -> NicLimits {
        engine.nic.config().limits
    }

    fn check_port(port: u8) -> Result<()> {
        if port == 1 {
            return Ok(());
        }
        let (what, seen, expected) = ("port", port.to_string(), "1".into());
        Err(VerbsError::InvalidArgument {
            what,
            seen,
            expected,
        })
    }

    fn domain<'a>(&self, pd: &'a dyn ProtectionDomain) -> Result<&'a Domain> {
        pd.as_any()
            .downcast_ref::<Domain>()
            .filter(|domain| domain.belongs_to(&self.inner))
            .ok_or(VerbsError::ForeignObject {
                what: "protection domain",
            })
    }

    fn cq<'a>(&self, cq: &'a dyn CompletionQueue) -> Result<&'a Cq> {
        cq.as_any()
            .downcast_ref::<Cq>()
            .filter(|cq| cq.belongs_to(&self.inner))
            .ok_or(VerbsError::ForeignObject {
                what: "completion queue",
            })
    }

    fn channel(&self, channel: &Arc<dyn CompletionChannel>) -> Result<Arc<Mailbox<u32>>> {
        channel
            .as_any()
            .downcast_ref::<Channel>()
            .filter(|channel| channel.belongs_to(&self.inner))
            .map(|channel| Arc::clone(channel.mailbox()))
            .ok_or(VerbsError::ForeignObject {
                what: "completion channel",
            })
    }

    fn xrcd<'a>(&self, xrcd: &'a dyn XrcDomain) -> Result<&'a XrcdObject> {
        xrcd.as_any()
            .downcast_ref::<XrcdObject>()
            .filter(|xrcd| xrcd.belongs_to(&self.inner))
            .ok_or(VerbsError::ForeignObject { what: "XRC domain" })
    }

    fn srq<'a>(&self, srq: &'a dyn SharedReceiveQueue) -> Result<&'a Srq> {
        srq.as_any()
            .downcast_ref::<Srq>()
            .filter(|srq| srq.belongs_to(&self.inner))
            .ok_or(VerbsError::ForeignObject {
                what: "shared receive queue",
            })
    }
}

impl Context for UserContext {
    fn device_name(&self) -> &str {
        self.device.name()
    }

    fn query_device(&self) -> Result<DeviceAttributes> {
        let limits = Self::limits(&self.inner.port.lock());
        let guid = self.device.node_guid();
        Ok(DeviceAttributes {
            fw_ver: env!("CARGO_PKG_VERSION").to_owned(),
            node_guid: guid,
            sys_image_guid: guid,
            max_mr_size: u64::MAX,
            page_size_cap: 0xffff_f000,
            vendor_id: VENDOR_ID,
            max_qp: limits.max_qp,
            max_qp_wr: limits.max_qp_wr,
            device_cap_flags: DEVICE_CAP_XRC,
            max_sge: limits.max_sge,
            max_sge_rd: limits.max_sge,
            max_cq: limits.max_cq,
            max_cqe: limits.max_cqe,
            max_mr: limits.max_mr,
            max_mw: limits.max_mw,
            max_pd: limits.max_pd,
            max_qp_rd_atom: limits.max_rd_atomic.into(),
            max_res_rd_atom: limits.max_qp.saturating_mul(limits.max_rd_atomic.into()),
            max_qp_init_rd_atom: limits.max_rd_atomic.into(),
            atomic_cap: AtomicCapability::Hca,
            max_mcast_grp: limits.max_multicast_groups,
            max_mcast_qp_attach: limits.max_multicast_members,
            max_total_mcast_qp_attach: limits
                .max_multicast_groups
                .saturating_mul(limits.max_multicast_members),
            max_ah: limits.max_qp,
            max_srq: limits.max_srq,
            max_srq_wr: limits.max_qp_wr,
            max_srq_sge: limits.max_sge,
            max_pkeys: 1,
            local_ca_ack_delay: LOCAL_CA_ACK_DELAY,
            phys_port_cnt: 1,
            extended: ExtendedAttributes {
                num_comp_vectors: 1,
                ..ExtendedAttributes::default()
            },
            ..DeviceAttributes::default()
        })
    }

    fn query_port(&self, port: u8) -> Result<PortAttributes> {
        Self::check_port(port)?;
        let engine = self.inner.port.lock();
        Ok(PortAttributes {
            state: PortState::Active,
            max_mtu: PathMtu::Mtu4096,
            active_mtu: path_mtu(self.device.netdev()).unwrap_or(PathMtu::Mtu256),
            gid_tbl_len: engine.nic.config().gids.len() as u32,
            pkey_tbl_len: 1,
            port_cap_flags: PORT_CAP_CM,
            max_msg_sz: MAX_MESSAGE,
            bad_pkey_cntr: engine.nic.counters().rx_bad_pkey.min(0xffff) as u32,
            qkey_viol_cntr: engine.nic.counters().rx_bad_qkey.min(0xffff) as u32,
            lid: 0,
            phys_state: PHYS_STATE_LINK_UP,
            link_layer: LinkLayer::Ethernet,
            sm_lid: 0,
            sm_sl: 0,
            lmc: 0,
            max_vl_num: ONE_VIRTUAL_LANE,
            subnet_timeout: 0,
            init_type_reply: 0,
            active_width: WIDTH_1X,
            active_speed: SPEED_10_GBPS,
            port_cap_flags2: 0,
        })
    }

    fn query_gid(&self, port: u8, index: u32) -> Result<GidEntry> {
        Self::check_port(port)?;
        let table = self.query_gid_table()?;
        table
            .get(index as usize)
            .copied()
            .ok_or_else(|| VerbsError::InvalidArgument {
                what: "GID index",
                seen: index.to_string(),
                expected: format!("0 to {}", table.len().saturating_sub(1)),
            })
    }

    fn query_gid_table(&self) -> Result<Vec<GidEntry>> {
        let engine = self.inner.port.lock();
        let netdev_index = self.device.netdev().index;
        let entries = engine.nic.config().gids.iter().zip(0..);
        Ok(entries
            .map(|(gid, index)| GidEntry {
                gid: *gid,
                index,
                port: 1,
                gid_type: GidType::RoceV2,
                netdev_index,
            })
            .collect())
    }

    fn query_pkey(&self, port: u8, index: u16) -> Result<u16> {
        Self::check_port(port)?;
        if index == 0 {
            return Ok(DEFAULT_PKEY);
        }
        let (what, seen, expected) = ("P_Key index", index.to_string(), "0".into());
        Err(VerbsError::InvalidArgument {
            what,
            seen,
            expected,
        })
    }

    fn alloc_pd(&self) -> Result<Box<dyn ProtectionDomain>> {
        let pd = self.inner.port.lock().nic.alloc_pd()?;
        Ok(Box::new(Domain::new(&self.inner, pd)))
    }

    fn reg_mr(
        &self,
        pd: &dyn ProtectionDomain,
        range: MemoryRange,
        access: AccessFlags,
    ) -> Result<Box<dyn MemoryRegion>> {
        let domain = self.domain(pd)?;
        let (addr, len) = (range.addr(), range.len() as u64);
        let keys = self
            .inner
            .port
            .lock()
            .nic
            .register(domain.id(), range, access)?;
        Ok(Box::new(Region::new(domain, keys, addr, len)))
    }

    fn alloc_window(&self, pd: &dyn ProtectionDomain) -> Result<Box<dyn MemoryWindow>> {
        let domain = self.domain(pd)?;
        let rkey = self.inner.port.lock().nic.alloc_window(domain.id())?;
        Ok(Box::new(Window::new(domain, rkey)))
    }

    fn create_comp_channel(&self) -> Result<Arc<dyn CompletionChannel>> {
        Ok(Arc::new(Channel::new(&self.inner)?))
    }

    fn create_cq(&self, init: &CqInit<'_>) -> Result<Box<dyn CompletionQueue>> {
        let channel = init.channel.map(|channel| self.channel(channel));
        let channel = channel.transpose()?;
        let mut engine = self.inner.port.lock();
        let id = engine.nic.create_cq(init.depth)?;
        if let Some(channel) = channel {
            engine.set_channel(id, channel);
        }
        engine.set_owner(EventSource::Cq(id.handle()), Arc::clone(&self.inner.events));
        drop(engine);
        Ok(Box::new(Cq::new(&self.inner, id, init.depth)))
    }

    fn create_srq(
        &self,
        pd: &dyn ProtectionDomain,
        init: &SrqInit<'_>,
    ) -> Result<Box<dyn SharedReceiveQueue>> {
        let domain = self.domain(pd)?;
        let xrc = match init.xrc {
            Some((xrcd, cq)) => Some((self.xrcd(xrcd)?, self.cq(cq)?)),
            None => None,
        };
        let settings = SrqSettings {
            pd: domain.id(),
            depth: init.max_wr,
            max_sge: init.max_sge,
            limit: init.limit,
            xrc: xrc.map(|(xrcd, cq)| XrcQueue {
                domain: xrcd.id(),
                cq: cq.id(),
            }),
        };
        let mut engine = self.inner.port.lock();
        let srq = engine.nic.create_srq(settings)?;
        engine.set_owner(
            EventSource::Srq(srq.number()),
            Arc::clone(&self.inner.events),
        );
        drop(engine);
        Ok(Box::new(Srq::new(domain, srq, xrc)))
    }

    fn create_qp(
        &self,
        pd: &dyn ProtectionDomain,
        init: &QpInit<'_>,
    ) -> Result<Box<dyn QueuePair>> {
        let domain = self.domain(pd)?;
        let (send_cq, recv_cq) = (self.cq(init.send_cq)?, self.cq(init.recv_cq)?);
        let srq = init.srq.map(|srq| self.srq(srq)).transpose()?;
        let xrcd = init.xrcd.map(|xrcd| self.xrcd(xrcd)).transpose()?;
        let settings = QpSettings {
            qp_type: init.qp_type,
            pd: domain.id(),
            send_cq: send_cq.id(),
            recv_cq: recv_cq.id(),
            srq: srq.map(Srq::id),
            xrcd: xrcd.map(XrcdObject::id),
            cap: init.cap,
            sq_sig_all: init.sq_sig_all,
        };
        let mut engine = self.inner.port.lock();
        let qpn = engine.nic.create_qp(settings)?;
        engine.set_owner(EventSource::Qp(qpn), Arc::clone(&self.inner.events));
        drop(engine);
        let queues = (srq, xrcd);
        Ok(Box::new(Qp::new(
            domain,
            [send_cq, recv_cq],
            queues,
            qpn,
            &settings,
        )))
    }

    fn create_ah(
        &self,
        pd: &dyn ProtectionDomain,
        av: &AddressVector,
    ) -> Result<Box<dyn AddressHandle>> {
        self.domain(pd)?;
        let nic = &self.inner.port.lock().nic;
        let route = nic.route(av.sgid_index, av.dgid, av.traffic_class, av.hop_limit)?;
        Ok(Box::new(RoutedAddress { route }))
    }

    fn alloc_xrcd(&self) -> Result<Box<dyn XrcDomain>> {
        let id = self.inner.port.lock().nic.alloc_xrcd()?;
        Ok(Box::new(XrcdObject::new(&self.inner, id)))
    }

    fn progress(&self) {
        let port = &self.inner.port;
        port.progress.poll(port.lock(), |_| ());
    }

    fn stop_polling(&self) {
        self.inner.port.progress.take_over();
    }

    fn async_fd(&self) -> BorrowedFd<'_> {
        self.inner.events.fd()
    }

    fn next_async_event(&self) -> Option<AsyncEvent> {
        self.inner.events.take()
    }
}
