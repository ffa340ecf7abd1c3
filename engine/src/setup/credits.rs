//! Memory for the credits of SEND over iWARP: for each queue pair a count that
//! we tell the peer, and one that the peer tells us.

use verbs_sys::memory::Buffer;
use verbs_sys::{AccessFlags, MemoryRegion, ProtectionDomain, Sge};

use super::adapter::Adapter;
use super::resources::failed;
use crate::failure::Failure;

/// Bytes of a count: a number in the machine's byte order, as in stock.
const COUNT: usize = 4;

/// The counts of all queue pairs.
pub(crate) struct CreditMemory {
    buffer: Buffer,
    region: Box<dyn MemoryRegion>,
    qps: usize,
}

impl CreditMemory {
    pub(super) fn new(
        adapter: &Adapter,
        domain: &dyn ProtectionDomain,
        qps: usize,
    ) -> Result<Self, Failure> {
        let length = 2 * qps * COUNT;
        let buffer = Buffer::allocate(length).map_err(|source| Failure::Memory {
            bytes: length as u64,
            source,
        })?;
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE;
        let region = adapter
            .context
            .reg_mr(domain, buffer.whole(), access)
            .map_err(|error| {
                let stock = format!("Couldn't allocate MR with error={}\n", error.errno());
                failed(&stock, "registering the memory of the credits", error)
            })?;
        Ok(Self {
            buffer,
            region,
            qps,
        })
    }

    /// Where the peer tells its count of queue pair `qp`: address and key.
    pub(crate) fn published(&self, qp: usize) -> (u64, u32) {
        let offset = (self.qps + qp) * COUNT;
        (self.buffer.addr() + offset as u64, self.region.rkey())
    }

    /// Our count of queue pair `qp`, to be sent.
    pub(crate) fn count(&self, qp: usize) -> Sge {
        Sge {
            addr: self.buffer.addr() + (qp * COUNT) as u64,
            length: COUNT as u32,
            lkey: self.region.lkey(),
        }
    }

    /// Sets our count.
    pub(crate) fn set_count(&self, qp: usize, count: u32) {
        // Inside the buffer: one for each queue pair.
        let _ = self.buffer.write(qp * COUNT, &count.to_ne_bytes());
    }

    /// What the peer has told of queue pair `qp`.
    #[inline]
    pub(crate) fn told(&self, qp: usize) -> u32 {
        let mut count = [0; COUNT];
        // Inside the buffer: one for each queue pair.
        let _ = self.buffer.read((self.qps + qp) * COUNT, &mut count);
        u32::from_ne_bytes(count)
    }

    /// Forgets what the peer has told: a new run begins.
    pub(crate) fn forget(&self) {
        let _ = self.buffer.fill(self.qps * COUNT, self.qps * COUNT, 0);
    }
}

#[cfg(test)]
pub(crate) mod fake {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    struct Region(Buffer);

    impl MemoryRegion for Region {
        fn lkey(&self) -> u32 {
            1
        }

        fn rkey(&self) -> u32 {
            2
        }

        fn addr(&self) -> u64 {
            self.0.addr()
        }

        fn len(&self) -> u64 {
            self.0.len() as u64
        }
    }

    /// The counts of so many queue pairs that no device knows.
    pub(crate) fn credit_memory(qps: usize) -> CreditMemory {
        let buffer = Buffer::allocate(2 * qps * COUNT).unwrap();
        CreditMemory {
            region: Box::new(Region(buffer.clone())),
            buffer,
            qps,
        }
    }

    impl CreditMemory {
        /// What the peer's word does.
        pub(crate) fn tell(&self, qp: usize, count: u32) {
            let (addr, _) = self.published(qp);
            let offset = (addr - self.buffer.addr()) as usize;
            self.buffer.write(offset, &count.to_ne_bytes()).unwrap();
        }
    }
}
