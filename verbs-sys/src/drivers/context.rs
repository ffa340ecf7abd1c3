//! An open device of the kernel.

use std::any::Any;
use std::marker::PhantomData;
use std::os::fd::BorrowedFd;
use std::sync::Arc;

use super::objects::{
    Channel, Cq, CqHandle, Domain, DomainHandle, Region, Srq, SrqHandle, Window, Xrcd, XrcdHandle,
};
use super::registry::Registry;
use super::windows::Windows;
use super::{Driver, QpOwners};
use crate::memory::MemoryRange;
use crate::sysfs::RdmaDevice;
use crate::uverbs::Uverbs;
use crate::uverbs::kernel::Kernel;
use crate::uverbs::objects::Registration;
use crate::uverbs::qp::NewQp;
use crate::uverbs::queues::{NewCq, NewSrq};
use crate::{
    AccessFlags, AddressHandle, AddressVector, AsyncEvent, CompletionChannel, CompletionQueue,
    Context, CqInit, DeviceAttributes, EventKind, EventSource, GidEntry, MemoryRegion,
    MemoryWindow, PortAttributes, PortState, ProtectionDomain, QpInit, QueuePair, Result,
    SharedReceiveQueue, SrqInit, Transport, VerbsError, XrcDomain,
};

/// What the objects of a context share.
pub(crate) struct Core {
    pub(crate) device: Arc<RdmaDevice>,
    pub(crate) uverbs: Uverbs,
    pub(crate) registry: Registry,
    pub(crate) windows: Windows,
}

/// An open device whose queues the driver `D` serves.
pub(crate) struct KernelContext<D> {
    pub(super) core: Arc<Core>,
    driver: PhantomData<D>,
}

impl<D: Driver> KernelContext<D> {
    /// Makes a context on the device that `kernel` has open.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    pub(crate) fn open(device: &Arc<RdmaDevice>, kernel: Box<dyn Kernel>) -> Result<Self> {
        let mut answer = [0; 8];
        let uverbs = Uverbs::open(kernel, D::ID, &mut answer[..D::CONTEXT_ANSWER])
            .map_err(|error| crate::uverbs::failed("make a context", error))?;
        Ok(Self {
            core: Arc::new(Core {
                device: Arc::clone(device),
                uverbs,
                registry: Registry::default(),
                windows: Windows::default(),
            }),
            driver: PhantomData,
        })
    }

    fn domain<'a>(&self, pd: &'a dyn ProtectionDomain) -> Result<&'a Domain> {
        let own = |domain: &&Domain| Arc::ptr_eq(&domain.0.core, &self.core);
        foreign("protection domain", downcast(pd.as_any()).filter(own))
    }

    fn cq<'a>(&self, cq: &'a dyn CompletionQueue) -> Result<&'a Arc<CqHandle>> {
        let cq = downcast(cq.as_any()).map(|cq: &Cq<D::Completions>| &cq.queue);
        let own = |handle: &&Arc<CqHandle>| Arc::ptr_eq(&handle.core, &self.core);
        foreign("completion queue", cq.filter(own))
    }

    fn srq<'a>(&self, srq: &'a dyn SharedReceiveQueue) -> Result<&'a Arc<SrqHandle>> {
        let srq = downcast(srq.as_any()).map(|srq: &Srq<D>| &srq.handle);
        let own = |handle: &&Arc<SrqHandle>| Arc::ptr_eq(&handle.domain.core, &self.core);
        foreign("shared receive queue", srq.filter(own))
    }

    fn xrcd<'a>(&self, xrcd: &'a dyn XrcDomain) -> Result<&'a Arc<XrcdHandle>> {
        let xrcd = downcast(xrcd.as_any()).map(|Xrcd(handle)| handle);
        let own = |handle: &&Arc<XrcdHandle>| Arc::ptr_eq(&handle.core, &self.core);
        foreign("XRC domain", xrcd.filter(own))
    }
}

impl<D: Driver> Context for KernelContext<D> {
    fn device_name(&self) -> &str {
        self.core.device.name()
    }

    fn query_device(&self) -> Result<DeviceAttributes> {
        self.core.uverbs.query_device()
    }

    fn query_port(&self, port: u8) -> Result<PortAttributes> {
        self.core.uverbs.query_port(port)
    }

    fn query_gid(&self, port: u8, index: u32) -> Result<GidEntry> {
        self.core.query_gid(port, index)
    }

    fn query_gid_table(&self) -> Result<Vec<GidEntry>> {
        self.core.query_gid_table()
    }

    fn query_pkey(&self, port: u8, index: u16) -> Result<u16> {
        let ports = self.core.device.ports().map_err(unreadable)?;
        let port = ports.iter().find(|other| other.number() == port);
        let pkey = match port {
            Some(port) => port.pkey(index).map_err(unreadable)?,
            None => None,
        };
        pkey.ok_or_else(|| VerbsError::InvalidArgument {
            what: "P_Key index",
            seen: index.to_string(),
            expected: "one inside the port's table".to_owned(),
        })
    }

    fn alloc_pd(&self) -> Result<Box<dyn ProtectionDomain>> {
        let handle = self.core.uverbs.alloc_pd()?;
        let core = Arc::clone(&self.core);
        Ok(Box::new(Domain(Arc::new(DomainHandle { core, handle }))))
    }

    fn reg_mr(
        &self,
        pd: &dyn ProtectionDomain,
        range: MemoryRange,
        access: AccessFlags,
    ) -> Result<Box<dyn MemoryRegion>> {
        let domain = self.domain(pd)?;
        let (addr, len) = (range.addr(), range.len() as u64);
        check_registration(addr, len, access)?;
        let registration = Registration {
            pd: domain.0.handle,
            start: addr,
            length: len,
            iova: match access.contains(AccessFlags::ZERO_BASED) {
                true => 0,
                false => addr,
            },
            access,
        };
        let (driver_in, mut driver_out) = ([0; 8], [0; 8]);
        let registered = self.core.uverbs.reg_mr(
            &registration,
            &driver_in[..D::REGISTRATION],
            &mut driver_out[..D::REGISTRATION],
        )?;
        Ok(Box::new(Region {
            domain: Arc::clone(&domain.0),
            registered,
            addr,
            len,
            _memory: Some(range),
        }))
    }

    fn reg_dmabuf_mr(
        &self,
        pd: &dyn ProtectionDomain,
        buffer: BorrowedFd<'_>,
        range: std::ops::Range<u64>,
        iova: u64,
        access: AccessFlags,
    ) -> Result<Box<dyn MemoryRegion>> {
        let domain = self.domain(pd)?;
        let len = range.end.saturating_sub(range.start);
        check_registration(iova, len, access)?;
        let registration = Registration {
            pd: domain.0.handle,
            start: range.start,
            length: len,
            iova,
            access,
        };
        let registered = self.core.uverbs.reg_dmabuf_mr(&registration, buffer)?;
        Ok(Box::new(Region {
            domain: Arc::clone(&domain.0),
            registered,
            addr: iova,
            len,
            _memory: None,
        }))
    }

    fn alloc_window(&self, pd: &dyn ProtectionDomain) -> Result<Box<dyn MemoryWindow>> {
        let domain = self.domain(pd)?;
        let (handle, rkey) = self.core.uverbs.alloc_mw(domain.0.handle)?;
        self.core.windows.enter(rkey);
        Ok(Box::new(Window {
            domain: Arc::clone(&domain.0),
            handle,
            rkey,
        }))
    }

    fn create_comp_channel(&self) -> Result<Arc<dyn CompletionChannel>> {
        Ok(Arc::new(Channel(self.core.uverbs.create_comp_channel()?)))
    }

    fn create_cq(&self, init: &CqInit<'_>) -> Result<Box<dyn CompletionQueue>> {
        let channel = match init.channel {
            None => None,
            Some(channel) => {
                let own: Option<&Channel> = downcast(channel.as_any());
                Some(&foreign("completion channel", own)?.0)
            }
        };
        let number = self.core.registry.reserve();
        let new = NewCq {
            user_handle: number.into(),
            depth: init.depth,
            channel,
        };
        let (made, ring) = D::create_cq(&self.core.uverbs, &new)?;
        self.core.registry.enter(number, EventSource::Cq(number));
        Ok(Box::new(Cq {
            queue: Arc::new(CqHandle {
                core: Arc::clone(&self.core),
                kernel_handle: made.handle,
                number,
            }),
            depth: made.depth,
            ring,
        }))
    }

    fn create_srq(
        &self,
        pd: &dyn ProtectionDomain,
        init: &SrqInit<'_>,
    ) -> Result<Box<dyn SharedReceiveQueue>> {
        let domain = self.domain(pd)?;
        let xrc = match init.xrc {
            None => None,
            Some((xrcd, cq)) => Some((self.xrcd(xrcd)?, self.cq(cq)?)),
        };
        let user_handle = self.core.registry.reserve();
        let new = NewSrq {
            user_handle: user_handle.into(),
            pd: domain.0.handle,
            max_wr: init.max_wr,
            max_sge: init.max_sge,
            limit: init.limit,
            xrc: xrc.map(|(xrcd, cq)| (xrcd.handle, cq.kernel_handle)),
        };
        let (made, ring) = D::create_srq(&self.core.uverbs, &new)?;
        let number = match xrc {
            Some(_) => made.number,
            None => user_handle,
        };
        self.core
            .registry
            .enter(user_handle, EventSource::Srq(number));
        Ok(Box::new(Srq::<D> {
            handle: Arc::new(SrqHandle {
                domain: Arc::clone(&domain.0),
                handle: made.handle,
                number,
                user_handle,
                _xrc: xrc.map(|(xrcd, cq)| (Arc::clone(xrcd), Arc::clone(cq))),
            }),
            ring,
        }))
    }

    fn create_qp(
        &self,
        pd: &dyn ProtectionDomain,
        init: &QpInit<'_>,
    ) -> Result<Box<dyn QueuePair>> {
        let domain = self.domain(pd)?;
        let cqs = [self.cq(init.send_cq)?, self.cq(init.recv_cq)?];
        let srq = init.srq.map(|srq| self.srq(srq)).transpose()?;
        let xrcd = init.xrcd.map(|xrcd| self.xrcd(xrcd)).transpose()?;
        let new = NewQp {
            user_handle: self.core.registry.reserve().into(),
            qp_type: init.qp_type,
            pd: domain.0.handle,
            send_cq: cqs[0].kernel_handle,
            recv_cq: cqs[1].kernel_handle,
            srq: srq.map(|srq| srq.handle),
            xrcd: xrcd.map(|xrcd| xrcd.handle),
            cap: init.cap,
            sq_sig_all: init.sq_sig_all,
        };
        let owners = QpOwners {
            domain: Arc::clone(&domain.0),
            _cqs: cqs.map(Arc::clone),
            _srq: srq.map(Arc::clone),
            _xrcd: xrcd.map(Arc::clone),
        };
        D::create_qp(owners, &new)
    }

    fn create_ah(
        &self,
        pd: &dyn ProtectionDomain,
        av: &AddressVector,
    ) -> Result<Box<dyn AddressHandle>> {
        D::create_ah(&self.domain(pd)?.0, av)
    }

    fn alloc_xrcd(&self) -> Result<Box<dyn XrcDomain>> {
        let handle = self.core.uverbs.open_xrcd()?;
        let core = Arc::clone(&self.core);
        Ok(Box::new(Xrcd(Arc::new(XrcdHandle { core, handle }))))
    }

    /// The kernel works by itself.
    fn progress(&self) {}

    fn transport(&self) -> Transport {
        D::TRANSPORT
    }

    fn trouble(&self) -> Option<String> {
        let device = &self.core.device;
        let name = device.name();
        if !device.dir().exists() {
            return Some(format!(
                "{name} has been removed (`rdma link` shows what is left)"
            ));
        }
        device.ports().unwrap_or_default().iter().find_map(|port| {
            let number = port.number();
            let state = self.query_port(number).ok()?.state;
            if state == PortState::Active {
                return None;
            }
            let netdev = device.netdev(port).ok().flatten();
            let advice = match netdev {
                Some(netdev) => format!("bring its interface up: ip link set {netdev} up"),
                None => "bring its link up".to_owned(),
            };
            Some(format!("port {number} of {name} is {state:?}; {advice}"))
        })
    }

    fn async_fd(&self) -> BorrowedFd<'_> {
        self.core.uverbs.async_fd()
    }

    fn next_async_event(&self) -> Option<AsyncEvent> {
        loop {
            let event = self.core.uverbs.next_async_event()?;
            let Some(kind) = EventKind::from_code(event.event_type) else {
                log::warn!("unknown asynchronous event {} ignored", event.event_type);
                continue;
            };
            // The object may be gone already.
            if let Some(source) = self.core.source(kind, event.element) {
                return Some(AsyncEvent { kind, source });
            }
        }
    }
}

impl Core {
    /// One GID, from where [`Self::query_gid_table`] has them.
    pub(crate) fn query_gid(&self, port: u8, index: u32) -> Result<GidEntry> {
        match self.uverbs.query_gid(port, index) {
            Err(VerbsError::Unsupported { .. }) => {
                let wanted = |entry: &GidEntry| entry.port == port && entry.index == index;
                let found = self.gids_of_sysfs()?.into_iter().find(wanted);
                found.ok_or(VerbsError::NoEntry { what: "GID", index })
            }
            queried => queried,
        }
    }

    /// All GIDs, by command or, where the kernel or a filter of system calls
    /// has none for them, from sysfs.
    pub(crate) fn query_gid_table(&self) -> Result<Vec<GidEntry>> {
        let ports = self.uverbs.query_device()?.phys_port_cnt;
        let mut capacity = 0;
        for port in 1..=ports {
            capacity += self.uverbs.query_port(port)?.gid_tbl_len as usize;
        }
        match self.uverbs.query_gid_table(capacity) {
            Err(VerbsError::Unsupported { .. }) => self.gids_of_sysfs(),
            table => table,
        }
    }

    fn gids_of_sysfs(&self) -> Result<Vec<GidEntry>> {
        let mut table = Vec::new();
        for port in self.device.ports().map_err(unreadable)? {
            for slot in port.gids().map_err(unreadable)? {
                let netdev = slot.netdev.as_deref().unwrap_or_default();
                table.push(GidEntry {
                    gid: slot.gid,
                    index: slot.index,
                    port: port.number(),
                    gid_type: slot.gid_type,
                    netdev_index: nix::net::if_::if_nametoindex(netdev).unwrap_or(0),
                });
            }
        }
        Ok(table)
    }

    /// Which object an event concerns: ports come by number, others by the
    /// handle that they were made with.
    fn source(&self, kind: EventKind, element: u64) -> Option<EventSource> {
        match kind {
            EventKind::DeviceFatal => Some(EventSource::Device),
            EventKind::PortActive
            | EventKind::PortError
            | EventKind::LidChange
            | EventKind::PkeyChange
            | EventKind::SmChange
            | EventKind::ClientReregister
            | EventKind::GidChange => Some(EventSource::Port(element as u8)),
            _ => self.registry.source(element),
        }
    }
}

fn check_registration(addr: u64, len: u64, access: AccessFlags) -> Result<()> {
    if len == 0 {
        return Err(VerbsError::InvalidArgument {
            what: "length of a memory region",
            seen: "0".to_owned(),
            expected: "at least 1".to_owned(),
        });
    }
    if !access.is_valid_for_registration() {
        return Err(VerbsError::InvalidArgument {
            what: "access of a memory region",
            seen: format!("{access:?}"),
            expected: "local write with remote write or atomics".to_owned(),
        });
    }
    // The kernel wants both addresses at the same place of a page.
    if access.contains(AccessFlags::ZERO_BASED) && !addr.is_multiple_of(4096) {
        return Err(VerbsError::InvalidArgument {
            what: "start of a memory region that counts from 0",
            seen: format!("{addr:#x}"),
            expected: "the start of a page".to_owned(),
        });
    }
    Ok(())
}

fn downcast<T: 'static>(object: &dyn Any) -> Option<&T> {
    object.downcast_ref()
}

fn foreign<T>(what: &'static str, own: Option<T>) -> Result<T> {
    own.ok_or(VerbsError::ForeignObject { what })
}

fn unreadable(error: crate::sysfs::SysfsError) -> VerbsError {
    VerbsError::Io {
        action: "read sysfs".to_owned(),
        source: std::io::Error::other(error),
    }
}
