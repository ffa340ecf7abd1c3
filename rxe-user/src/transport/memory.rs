//! Protection domains and the key table: the only way to a consumer's memory.
//!
//! A key is an index of 24 bits and a tag of 8 bits (as `ibv_bind_mw`
//! has it). Of a region all 32 bits are random, and the same for local and
//! remote use; of a window the index is random, and the consumer chooses the
//! tag. No two objects have the same index. Every access is checked against
//! key, domain, rights and bounds (IBTA 10.6, 9.7.4.1.4).
//!
//! - [`mod@self`]: domains, regions, and every access.
//! - [`windows`]: memory windows: binding, invalidation, access through them.

mod windows;

use std::collections::HashMap;
use std::hash::{BuildHasherDefault, Hasher};
use std::sync::atomic::Ordering;

use verbs_sys::memory::MemoryRange;
use verbs_sys::{AccessFlags, Result, Sge, VerbsError};

use super::domains::Domains;
use windows::Window;

/// Identifies a protection domain of a NIC.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PdId(pub(crate) u32);

/// The keys of a registration.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Keys {
    /// For own work requests.
    pub lkey: u32,
    /// For the peer; 0 when the region gives no remote access.
    pub rkey: u32,
}

/// A key, domain, right or bound doesn't allow an access.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct AccessDenied;

/// The queue pair that an access comes through.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Accessor {
    pub(crate) pd: PdId,
    pub(crate) qpn: u32,
}

/// Indices are random already, so they are their own hash.
#[derive(Default)]
pub(crate) struct KeyHasher(u64);

impl Hasher for KeyHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = self.0.rotate_left(8) ^ u64::from(*byte);
        }
    }

    fn write_u32(&mut self, index: u32) {
        // The table takes its bucket from the low bits and its tag from the high ones.
        self.0 = u64::from(index) | u64::from(index) << (u64::BITS - INDEX_BITS);
    }
}

/// Bits of a key that name an object.
const INDEX_BITS: u32 = 24;

/// The part of a key that names the object.
#[inline]
fn index(key: u32) -> u32 {
    key >> (u32::BITS - INDEX_BITS)
}

/// Objects by the index in their keys.
type ByIndex<T> = HashMap<u32, T, BuildHasherDefault<KeyHasher>>;

#[derive(Debug)]
struct Region {
    /// With the tag.
    key: u32,
    range: MemoryRange,
    pd: PdId,
    access: AccessFlags,
    /// Address of the first byte as users of the key count it.
    base: u64,
    /// Windows that are bound to it.
    windows: u32,
}

impl Region {
    /// Offset in the buffer of `len` bytes at `va`, if they are inside
    /// (without overflow at the end of the address space).
    #[inline]
    fn offset(&self, va: u64, len: u64) -> Option<usize> {
        let start = va.checked_sub(self.base)?;
        let room = (self.range.len() as u64).checked_sub(start)?;
        (len <= room).then(|| self.range.start() + start as usize)
    }
}

/// All domains, registrations and windows of a NIC.
#[derive(Debug)]
pub(crate) struct MemoryTable {
    regions: ByIndex<Region>,
    windows: ByIndex<Window>,
    domains: Domains,
}

impl Default for MemoryTable {
    fn default() -> Self {
        Self {
            regions: ByIndex::default(),
            windows: ByIndex::default(),
            domains: Domains::new("protection domain"),
        }
    }
}

impl MemoryTable {
    pub(crate) fn alloc_pd(&mut self) -> PdId {
        PdId(self.domains.alloc())
    }

    pub(crate) fn dealloc_pd(&mut self, pd: PdId) -> Result<()> {
        self.domains.dealloc(pd.0)
    }

    pub(crate) fn domains(&self) -> usize {
        self.domains.len()
    }

    pub(crate) fn add_pd_user(&mut self, pd: PdId) {
        self.domains.add_user(pd.0);
    }

    pub(crate) fn remove_pd_user(&mut self, pd: PdId) {
        self.domains.remove_user(pd.0);
    }

    pub(crate) fn regions(&self) -> usize {
        self.regions.len()
    }

    /// Registers `range`; `random` proposes keys until one is free.
    pub(crate) fn register(
        &mut self,
        pd: PdId,
        range: MemoryRange,
        access: AccessFlags,
        mut random: impl FnMut() -> u32,
    ) -> Result<Keys> {
        if range.is_empty() {
            return Err(VerbsError::InvalidArgument {
                what: "length of the memory region",
                seen: "0".into(),
                expected: "at least 1".into(),
            });
        }
        if !access.is_valid_for_registration() {
            return Err(VerbsError::InvalidArgument {
                what: "access flags of the memory region",
                seen: format!("{access:?}"),
                expected: "LOCAL_WRITE with REMOTE_WRITE or REMOTE_ATOMIC".into(),
            });
        }
        let key = self.free_key(&mut random);
        let base = if access.contains(AccessFlags::ZERO_BASED) {
            0
        } else {
            range.addr()
        };
        let region = Region {
            key,
            range,
            pd,
            access,
            base,
            windows: 0,
        };
        self.regions.insert(index(key), region);
        self.add_pd_user(pd);
        let rkey = if access.intersects(AccessFlags::REMOTE) {
            key
        } else {
            0
        };
        Ok(Keys { lkey: key, rkey })
    }

    /// A key whose index no other object has.
    fn free_key(&self, random: &mut impl FnMut() -> u32) -> u32 {
        loop {
            let key = random();
            let index = index(key);
            if index != 0
                && !self.regions.contains_key(&index)
                && !self.windows.contains_key(&index)
            {
                return key;
            }
        }
    }

    /// Refused while windows are bound to the region (IBTA 10.6).
    pub(crate) fn deregister(&mut self, lkey: u32) -> Result<()> {
        let region = self.region(lkey).ok_or(VerbsError::ForeignObject {
            what: "memory region",
        })?;
        if region.windows > 0 {
            return Err(VerbsError::Busy {
                what: "memory region",
                user: "a memory window bound to it",
            });
        }
        let pd = region.pd;
        self.regions.remove(&index(lkey));
        self.remove_pd_user(pd);
        Ok(())
    }

    #[inline]
    fn region(&self, key: u32) -> Option<&Region> {
        self.regions
            .get(&index(key))
            .filter(|region| region.key == key)
    }

    /// Checks a peer's access (IBTA 9.7.4.1.4): key, domain, right, bounds.
    pub(crate) fn check_remote(
        &self,
        by: Accessor,
        rkey: u32,
        va: u64,
        len: u64,
        right: AccessFlags,
    ) -> Result<(), AccessDenied> {
        self.remote(by, rkey, va, len, right).map(|_| ())
    }

    /// Writes a peer's bytes.
    #[inline]
    pub(crate) fn write_remote(
        &self,
        by: Accessor,
        rkey: u32,
        va: u64,
        bytes: &[u8],
    ) -> Result<(), AccessDenied> {
        let right = AccessFlags::REMOTE_WRITE;
        let (region, offset) = self.remote(by, rkey, va, bytes.len() as u64, right)?;
        region
            .range
            .buffer()
            .write(offset, bytes)
            .map_err(|_| AccessDenied)
    }

    /// Reads bytes for a peer.
    #[inline]
    pub(crate) fn read_remote(
        &self,
        by: Accessor,
        rkey: u32,
        va: u64,
        bytes: &mut [u8],
    ) -> Result<(), AccessDenied> {
        let right = AccessFlags::REMOTE_READ;
        let (region, offset) = self.remote(by, rkey, va, bytes.len() as u64, right)?;
        region
            .range
            .buffer()
            .read(offset, bytes)
            .map_err(|_| AccessDenied)
    }

    /// Runs a peer's atomic on 8 aligned bytes and returns their value before.
    pub(crate) fn atomic_remote(
        &self,
        by: Accessor,
        rkey: u32,
        va: u64,
        operation: AtomicOperation,
    ) -> Result<u64, AccessDenied> {
        let (region, offset) = self.remote(by, rkey, va, 8, AccessFlags::REMOTE_ATOMIC)?;
        region
            .range
            .buffer()
            .with_atomic_u64(offset, |value| match operation {
                AtomicOperation::FetchAdd { add } => value.fetch_add(add, Ordering::SeqCst),
                AtomicOperation::CompareSwap { compare, swap } => value
                    .compare_exchange(compare, swap, Ordering::SeqCst, Ordering::SeqCst)
                    .unwrap_or_else(|before| before),
            })
            .ok_or(AccessDenied)
    }

    /// Copies `target.len()` bytes from the `skip`-th byte of a gather list on.
    #[inline]
    pub(crate) fn gather(
        &self,
        pd: PdId,
        sges: &[Sge],
        skip: u64,
        target: &mut [u8],
    ) -> Result<(), AccessDenied> {
        let mut rest = target;
        self.walk(
            pd,
            sges,
            skip,
            rest.len() as u64,
            AccessFlags::empty(),
            |region, offset, len| {
                let (piece, tail) = std::mem::take(&mut rest).split_at_mut_checked(len)?;
                rest = tail;
                region.range.buffer().read(offset, piece).ok()
            },
        )
    }

    /// Copies `source` to the `skip`-th byte of a scatter list and on.
    #[inline]
    pub(crate) fn scatter(
        &self,
        pd: PdId,
        sges: &[Sge],
        skip: u64,
        source: &[u8],
    ) -> Result<(), AccessDenied> {
        let mut rest = source;
        let right = AccessFlags::LOCAL_WRITE;
        self.walk(
            pd,
            sges,
            skip,
            source.len() as u64,
            right,
            |region, offset, len| {
                let (piece, tail) = rest.split_at_checked(len)?;
                rest = tail;
                region.range.buffer().write(offset, piece).ok()
            },
        )
    }

    #[inline]
    fn walk(
        &self,
        pd: PdId,
        sges: &[Sge],
        mut skip: u64,
        mut wanted: u64,
        right: AccessFlags,
        mut copy: impl FnMut(&Region, usize, usize) -> Option<()>,
    ) -> Result<(), AccessDenied> {
        for sge in sges {
            if wanted == 0 {
                break;
            }
            let length = u64::from(sge.length);
            if skip >= length {
                skip -= length;
                continue;
            }
            let len = (length - skip).min(wanted);
            let region = self.region(sge.lkey).ok_or(AccessDenied)?;
            if region.pd != pd || !region.access.contains(right) {
                return Err(AccessDenied);
            }
            // The whole element has to be inside, not just the part in use.
            let start = region.offset(sge.addr, length).ok_or(AccessDenied)?;
            copy(region, start + skip as usize, len as usize).ok_or(AccessDenied)?;
            wanted -= len;
            skip = 0;
        }
        if wanted == 0 {
            Ok(())
        } else {
            Err(AccessDenied)
        }
    }

    #[inline]
    fn remote(
        &self,
        by: Accessor,
        rkey: u32,
        va: u64,
        len: u64,
        right: AccessFlags,
    ) -> Result<(&Region, usize), AccessDenied> {
        let Some(region) = self.region(rkey) else {
            return self.through_window(by, rkey, va, len, right);
        };
        if region.pd != by.pd || !region.access.contains(right) {
            return Err(AccessDenied);
        }
        let offset = region.offset(va, len).ok_or(AccessDenied)?;
        Ok((region, offset))
    }
}

/// The two atomic operations on 8 bytes (IBTA 9.4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomicOperation {
    FetchAdd { add: u64 },
    CompareSwap { compare: u64, swap: u64 },
}

#[cfg(test)]
mod tests;
