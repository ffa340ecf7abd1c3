//! Memory windows of type 2B: keys for parts of regions, made and revoked by
//! work requests (IBTA 10.6, 9.4.1.1.3).
//!
//! An unbound window is a key that gives access to nothing. Binding and
//! invalidating change the window in its place and allocate nothing.

use verbs_sys::{AccessFlags, Result, VerbsError, WindowBinding};

use super::{AccessDenied, Accessor, MemoryTable, PdId, Region, index};

/// A window that can't be bound so, or a key that can't be invalidated
/// (`IBV_WC_MW_BIND_ERR`, IBTA 11.6.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BindDenied;

#[derive(Debug)]
pub(super) struct Window {
    pd: PdId,
    /// None when it is free.
    bound: Option<Bound>,
}

/// Where a window leads.
#[derive(Debug)]
struct Bound {
    /// The window's key with the tag of this binding.
    key: u32,
    /// The queue pair that has bound it, and alone may use it.
    qpn: u32,
    /// Of the region.
    lkey: u32,
    addr: u64,
    length: u64,
    access: AccessFlags,
}

impl Bound {
    /// Address in the region of `len` bytes that the peer finds at `va`, if
    /// they are inside the window.
    fn address(&self, va: u64, len: u64) -> Option<u64> {
        let base = match self.access.contains(AccessFlags::ZERO_BASED) {
            true => 0,
            false => self.addr,
        };
        let start = va.checked_sub(base)?;
        let room = self.length.checked_sub(start)?;
        (len <= room).then(|| self.addr + start)
    }
}

impl MemoryTable {
    pub(crate) fn windows(&self) -> usize {
        self.windows.len()
    }

    /// Makes a window and returns its key, with tag 0.
    pub(crate) fn alloc_window(&mut self, pd: PdId, mut random: impl FnMut() -> u32) -> u32 {
        let key = self.free_key(&mut random) & !0xff;
        self.windows.insert(index(key), Window { pd, bound: None });
        self.add_pd_user(pd);
        key
    }

    /// Releases a window, bound or not; `key` is any key of it.
    pub(crate) fn dealloc_window(&mut self, key: u32) -> Result<()> {
        let window = self
            .windows
            .remove(&index(key))
            .ok_or(VerbsError::ForeignObject {
                what: "memory window",
            })?;
        if let Some(bound) = window.bound {
            self.release_region(bound.lkey);
        }
        self.remove_pd_user(window.pd);
        Ok(())
    }

    /// Binds a free window to a part of a region (IBTA C10-72 to C10-75,
    /// o10-37.2.30); on a failure nothing has changed.
    pub(crate) fn bind(&mut self, by: Accessor, wanted: &WindowBinding) -> Result<(), BindDenied> {
        let window = self
            .windows
            .get_mut(&index(wanted.window))
            .filter(|window| window.pd == by.pd && window.bound.is_none())
            .ok_or(BindDenied)?;
        let region = self
            .regions
            .get_mut(&index(wanted.lkey))
            .filter(|region| region.key == wanted.lkey && region.pd == by.pd)
            .ok_or(BindDenied)?;
        let writes = AccessFlags::REMOTE_WRITE | AccessFlags::REMOTE_ATOMIC;
        let is_writable = region.access.contains(AccessFlags::LOCAL_WRITE);
        let is_inside = region.offset(wanted.addr, wanted.length).is_some();
        if !region.access.contains(AccessFlags::MW_BIND)
            || region.access.contains(AccessFlags::ZERO_BASED)
            || (wanted.access.intersects(writes) && !is_writable)
            || wanted.length == 0
            || !is_inside
        {
            return Err(BindDenied);
        }
        region.windows += 1;
        window.bound = Some(Bound {
            key: wanted.rkey(),
            qpn: by.qpn,
            lkey: wanted.lkey,
            addr: wanted.addr,
            length: wanted.length,
            access: wanted.access,
        });
        Ok(())
    }

    /// Makes the window free that is bound with this key to this queue pair
    /// (IBTA 10.6, 9.4.1.1.3).
    pub(crate) fn invalidate(&mut self, by: Accessor, key: u32) -> Result<(), BindDenied> {
        let window = self.windows.get_mut(&index(key)).ok_or(BindDenied)?;
        let is_own = |bound: &mut Bound| bound.key == key && bound.qpn == by.qpn;
        let bound = window.bound.take_if(is_own).ok_or(BindDenied)?;
        self.release_region(bound.lkey);
        Ok(())
    }

    /// Makes the windows free that are bound to a queue pair, which goes away
    /// (IBTA o10-2.2.5).
    pub(crate) fn unbind_queue_pair(&mut self, qpn: u32) {
        self.unbind_where(|bound| bound.qpn == qpn);
    }

    /// Makes the windows free that are bound to a region, which goes away.
    pub(crate) fn unbind_region(&mut self, lkey: u32) {
        if self.region(lkey).is_some_and(|region| region.windows > 0) {
            self.unbind_where(|bound| bound.lkey == lkey);
        }
    }

    fn unbind_where(&mut self, mut condition: impl FnMut(&Bound) -> bool) {
        let Self {
            windows, regions, ..
        } = self;
        for window in windows.values_mut() {
            if let Some(bound) = window.bound.take_if(|bound| condition(bound))
                && let Some(region) = regions.get_mut(&index(bound.lkey))
            {
                region.windows -= 1;
            }
        }
    }

    fn release_region(&mut self, lkey: u32) {
        if let Some(region) = self.regions.get_mut(&index(lkey)) {
            region.windows -= 1;
        }
    }

    /// A peer's access through a window: the rights are the window's own, and
    /// the queue pair the one that has bound it.
    pub(super) fn through_window(
        &self,
        by: Accessor,
        rkey: u32,
        va: u64,
        len: u64,
        right: AccessFlags,
    ) -> Result<(&Region, usize), AccessDenied> {
        let window = self.windows.get(&index(rkey)).ok_or(AccessDenied)?;
        let bound = window
            .bound
            .as_ref()
            .filter(|bound| bound.key == rkey && bound.qpn == by.qpn)
            .filter(|bound| bound.access.contains(right))
            .ok_or(AccessDenied)?;
        let address = bound.address(va, len).ok_or(AccessDenied)?;
        let region = self.region(bound.lkey).ok_or(AccessDenied)?;
        let offset = region.offset(address, len).ok_or(AccessDenied)?;
        Ok((region, offset))
    }
}
