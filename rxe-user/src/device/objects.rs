//! The objects of a context, as the verbs traits want them. Each keeps alive
//! what it was made from and releases itself when dropped.

use std::any::Any;
use std::sync::{Arc, MutexGuard};

use verbs_sys::{
    Completion, CompletionQueue, EventSource, Gid, MemoryRegion, MemoryWindow, Notify, PostError,
    ProtectionDomain, QpAttributes, QpCapabilities, QpType, QueuePair, ReceiveRequest, Result,
    SendRequest, SharedReceiveQueue, XrcDomain,
};

use super::context::Inner;
use super::port::Engine;
use crate::transport::{Acks, CqId, Keys, PdId, QpSettings, SrqId, XrcdId};

impl Inner {
    fn lock(&self) -> MutexGuard<'_, Engine> {
        self.port.lock()
    }
}

/// A domain of the NIC; released with the last object made in it.
struct DomainHandle {
    context: Arc<Inner>,
    id: PdId,
}

impl Drop for DomainHandle {
    fn drop(&mut self) {
        let released = self.context.lock().nic.dealloc_pd(self.id);
        debug_assert!(released.is_ok(), "objects keep their domain alive");
    }
}

/// A protection domain.
pub(crate) struct Domain {
    handle: Arc<DomainHandle>,
}

impl Domain {
    pub(crate) fn new(context: &Arc<Inner>, id: PdId) -> Self {
        Self {
            handle: Arc::new(DomainHandle {
                context: Arc::clone(context),
                id,
            }),
        }
    }

    pub(crate) fn id(&self) -> PdId {
        self.handle.id
    }

    pub(crate) fn belongs_to(&self, context: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.handle.context, context)
    }
}

impl ProtectionDomain for Domain {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Registered memory.
pub(crate) struct Region {
    domain: Arc<DomainHandle>,
    keys: Keys,
    addr: u64,
    len: u64,
}

impl Region {
    pub(crate) fn new(domain: &Domain, keys: Keys, addr: u64, len: u64) -> Self {
        Self {
            domain: Arc::clone(&domain.handle),
            keys,
            addr,
            len,
        }
    }
}

impl Drop for Region {
    /// Who drops a region means to end all access to it. So the windows that
    /// are bound to it become free; keeping the region alive for them would
    /// leave its memory open to the peer.
    fn drop(&mut self) {
        let nic = &mut self.domain.context.lock().nic;
        nic.unbind_windows(self.keys.lkey);
        let released = nic.deregister(self.keys.lkey);
        debug_assert!(
            released.is_ok(),
            "a region is registered until it is dropped"
        );
    }
}

impl MemoryRegion for Region {
    fn lkey(&self) -> u32 {
        self.keys.lkey
    }

    fn rkey(&self) -> u32 {
        self.keys.rkey
    }

    fn addr(&self) -> u64 {
        self.addr
    }

    fn len(&self) -> u64 {
        self.len
    }
}

/// A memory window.
pub(crate) struct Window {
    domain: Arc<DomainHandle>,
    rkey: u32,
}

impl Window {
    pub(crate) fn new(domain: &Domain, rkey: u32) -> Self {
        Self {
            domain: Arc::clone(&domain.handle),
            rkey,
        }
    }
}

impl Drop for Window {
    fn drop(&mut self) {
        let released = self.domain.context.lock().nic.dealloc_window(self.rkey);
        debug_assert!(released.is_ok(), "a window exists until it is dropped");
    }
}

impl MemoryWindow for Window {
    fn rkey(&self) -> u32 {
        self.rkey
    }
}

/// A completion queue of the NIC; released with the last queue pair that
/// reports there.
struct CqHandle {
    context: Arc<Inner>,
    id: CqId,
}

impl Drop for CqHandle {
    fn drop(&mut self) {
        let mut engine = self.context.lock();
        engine.remove_channel(self.id);
        engine.remove_owner(EventSource::Cq(self.id.handle()));
        let released = engine.nic.destroy_cq(self.id);
        debug_assert!(
            released.is_ok(),
            "queue pairs keep their completion queues alive"
        );
    }
}

/// A completion queue.
pub(crate) struct Cq {
    handle: Arc<CqHandle>,
    depth: u32,
    /// So many more polls in vain are likely to be followed by sleep.
    may_sleep: u32,
}

/// Who arms a queue polls it once more before going to sleep; some do twice.
/// Who polls on after that has not gone to sleep.
const POLLS_BEFORE_SLEEP: u32 = 4;

impl Cq {
    pub(crate) fn new(context: &Arc<Inner>, id: CqId, depth: u32) -> Self {
        Self {
            handle: Arc::new(CqHandle {
                context: Arc::clone(context),
                id,
            }),
            depth,
            may_sleep: 0,
        }
    }

    pub(crate) fn id(&self) -> CqId {
        self.handle.id
    }

    pub(crate) fn belongs_to(&self, context: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.handle.context, context)
    }
}

impl CompletionQueue for Cq {
    fn handle(&self) -> u32 {
        self.handle.id.handle()
    }

    fn depth(&self) -> u32 {
        self.depth
    }

    fn poll(&mut self, completions: &mut [Completion]) -> usize {
        let progress = &self.handle.context.port.progress;
        let mut engine = progress.lock();
        let ready = engine.nic.poll_cq(self.handle.id, completions);
        if ready > 0 || completions.is_empty() {
            progress.note_poll();
            return ready;
        }
        let ready = progress.poll(engine, |engine| {
            engine.nic.poll_cq(self.handle.id, completions)
        });
        if ready == 0 && self.may_sleep > 0 {
            self.may_sleep -= 1;
            progress.take_over();
        }
        ready
    }

    fn arm(&mut self, notify: Notify) {
        let progress = &self.handle.context.port.progress;
        progress.lock().nic.arm_cq(self.handle.id, notify);
        self.may_sleep = POLLS_BEFORE_SLEEP;
        progress.take_over();
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// An XRC domain of the NIC; released with the last object made in it.
struct XrcdHandle {
    context: Arc<Inner>,
    id: XrcdId,
}

impl Drop for XrcdHandle {
    fn drop(&mut self) {
        let released = self.context.lock().nic.dealloc_xrcd(self.id);
        debug_assert!(released.is_ok(), "objects keep their XRC domain alive");
    }
}

/// An XRC domain.
pub(crate) struct XrcdObject {
    handle: Arc<XrcdHandle>,
}

impl XrcdObject {
    pub(crate) fn new(context: &Arc<Inner>, id: XrcdId) -> Self {
        Self {
            handle: Arc::new(XrcdHandle {
                context: Arc::clone(context),
                id,
            }),
        }
    }

    pub(crate) fn id(&self) -> XrcdId {
        self.handle.id
    }

    pub(crate) fn belongs_to(&self, context: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.handle.context, context)
    }
}

impl XrcDomain for XrcdObject {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A shared receive queue of the NIC; released with the last queue pair that
/// draws from it.
struct SrqHandle {
    domain: Arc<DomainHandle>,
    id: SrqId,
    _xrc: Option<(Arc<XrcdHandle>, Arc<CqHandle>)>,
}

impl Drop for SrqHandle {
    fn drop(&mut self) {
        let mut engine = self.domain.context.lock();
        engine.remove_owner(EventSource::Srq(self.id.number()));
        let released = engine.nic.destroy_srq(self.id);
        debug_assert!(
            released.is_ok(),
            "queue pairs keep their shared queues alive"
        );
    }
}

/// A shared receive queue.
pub(crate) struct Srq {
    handle: Arc<SrqHandle>,
}

impl Srq {
    pub(crate) fn new(domain: &Domain, id: SrqId, xrc: Option<(&XrcdObject, &Cq)>) -> Self {
        Self {
            handle: Arc::new(SrqHandle {
                domain: Arc::clone(&domain.handle),
                id,
                _xrc: xrc.map(|(xrcd, cq)| (Arc::clone(&xrcd.handle), Arc::clone(&cq.handle))),
            }),
        }
    }

    pub(crate) fn id(&self) -> SrqId {
        self.handle.id
    }

    pub(crate) fn belongs_to(&self, context: &Arc<Inner>) -> bool {
        Arc::ptr_eq(&self.handle.domain.context, context)
    }
}

impl SharedReceiveQueue for Srq {
    fn number(&self) -> u32 {
        self.handle.id.number()
    }

    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        self.handle
            .domain
            .context
            .lock()
            .nic
            .post_srq_recv(self.handle.id, requests)
    }

    fn set_limit(&mut self, limit: u32) -> Result<()> {
        self.handle
            .domain
            .context
            .lock()
            .nic
            .set_srq_limit(self.handle.id, limit)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A queue pair.
pub(crate) struct Qp {
    qpn: u32,
    qp_type: QpType,
    cap: QpCapabilities,
    domain: Arc<DomainHandle>,
    _cqs: [Arc<CqHandle>; 2],
    _srq: Option<Arc<SrqHandle>>,
    _xrcd: Option<Arc<XrcdHandle>>,
}

impl Qp {
    pub(crate) fn new(
        domain: &Domain,
        cqs: [&Cq; 2],
        (srq, xrcd): (Option<&Srq>, Option<&XrcdObject>),
        qpn: u32,
        settings: &QpSettings,
    ) -> Self {
        Self {
            qpn,
            qp_type: settings.qp_type,
            cap: settings.granted(),
            domain: Arc::clone(&domain.handle),
            _cqs: cqs.map(|cq| Arc::clone(&cq.handle)),
            _srq: srq.map(|srq| Arc::clone(&srq.handle)),
            _xrcd: xrcd.map(|xrcd| Arc::clone(&xrcd.handle)),
        }
    }
}

impl Drop for Qp {
    fn drop(&mut self) {
        let progress = &self.domain.context.port.progress;
        let mut engine = progress.lock();
        engine.remove_owner(EventSource::Qp(self.qpn));
        let groups = engine.nic.destroy_qp(self.qpn);
        if engine.leave(&groups) {
            progress.renew_sockets(&engine);
        }
    }
}

impl QueuePair for Qp {
    fn qpn(&self) -> u32 {
        self.qpn
    }

    fn qp_type(&self) -> QpType {
        self.qp_type
    }

    fn capabilities(&self) -> QpCapabilities {
        self.cap
    }

    fn modify(&mut self, attributes: &QpAttributes) -> Result<()> {
        let mut engine = self.domain.context.lock();
        if self.qp_type == QpType::Ud {
            // The GRH in front of each datagram shows them.
            engine.want_ip_fields()?;
        }
        engine.nic.modify_qp(self.qpn, attributes)?;
        engine.transmit(Acks::All);
        Ok(())
    }

    fn query(&self) -> Result<QpAttributes> {
        self.domain.context.lock().nic.query_qp(self.qpn)
    }

    /// A request on a quiet queue pair leaves at once. While others are under
    /// way it waits for the next poll, which sends all that has gathered
    /// together; the port's thread does it when nobody polls.
    fn post_send(&mut self, requests: &[SendRequest<'_>]) -> Result<(), PostError> {
        let progress = &self.domain.context.port.progress;
        let mut engine = progress.lock();
        let gather = engine.posted || engine.nic.has_in_flight(self.qpn);
        let result = engine.nic.post_send(self.qpn, requests);
        if gather {
            // Requests of a queue pair in error have completed already.
            engine.announce();
            progress.wake_sleeper();
        } else {
            engine.transmit(Acks::WithData);
            progress.wake_for_deadline(&engine);
        }
        engine.posted = true;
        result
    }

    fn post_recv(&mut self, requests: &[ReceiveRequest<'_>]) -> Result<(), PostError> {
        let mut engine = self.domain.context.lock();
        let result = engine.nic.post_recv(self.qpn, requests);
        engine.announce();
        result
    }

    fn attach_multicast(&mut self, mgid: &Gid) -> Result<()> {
        let progress = &self.domain.context.port.progress;
        let mut engine = progress.lock();
        if engine.attach_multicast(self.qpn, *mgid)? {
            progress.renew_sockets(&engine);
        }
        Ok(())
    }

    fn detach_multicast(&mut self, mgid: &Gid) -> Result<()> {
        let progress = &self.domain.context.port.progress;
        let mut engine = progress.lock();
        let groups = engine.nic.detach_multicast(self.qpn, *mgid)?;
        if engine.leave(&groups) {
            progress.renew_sockets(&engine);
        }
        Ok(())
    }
}
