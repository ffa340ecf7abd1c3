//! Access rights of memory regions, windows and queue pairs.

bitflags::bitflags! {
    /// `enum ibv_access_flags`: what a registration, a window or a queue pair
    /// allows. Local read is implicit.
    #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
    pub struct AccessFlags: u32 {
        /// The device may write on behalf of this side: receives, read
        /// responses, results of atomics.
        const LOCAL_WRITE = 1;
        /// The peer may write (RDMA WRITE). Needs [`Self::LOCAL_WRITE`] on a region.
        const REMOTE_WRITE = 1 << 1;
        /// The peer may read (RDMA READ).
        const REMOTE_READ = 1 << 2;
        /// The peer may run atomics. Needs [`Self::LOCAL_WRITE`] on a region.
        const REMOTE_ATOMIC = 1 << 3;
        /// Memory windows may be bound to the region.
        const MW_BIND = 1 << 4;
        /// The remote address of the region's first byte is 0.
        const ZERO_BASED = 1 << 5;
        /// Pages are brought in when the device touches them.
        const ON_DEMAND = 1 << 6;
        /// The region lies in huge pages.
        const HUGETLB = 1 << 7;
        /// Writes to the region may be reordered on the host's bus.
        const RELAXED_ORDERING = 1 << 20;
    }
}

impl AccessFlags {
    /// The rights that concern a peer.
    pub const REMOTE: Self = Self::REMOTE_WRITE
        .union(Self::REMOTE_READ)
        .union(Self::REMOTE_ATOMIC);

    /// Whether a registration may carry these flags: remote write and remote
    /// atomic imply that the device writes, so they need local write
    /// (IBTA 10.6.3, `ibv_reg_mr(3)`).
    #[must_use]
    pub fn is_valid_for_registration(self) -> bool {
        !self.intersects(Self::REMOTE_WRITE | Self::REMOTE_ATOMIC)
            || self.contains(Self::LOCAL_WRITE)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_write_and_atomic_need_local_write() {
        assert!(AccessFlags::empty().is_valid_for_registration());
        assert!(AccessFlags::REMOTE_READ.is_valid_for_registration());
        assert!(!AccessFlags::REMOTE_WRITE.is_valid_for_registration());
        assert!(!AccessFlags::REMOTE_ATOMIC.is_valid_for_registration());
        assert!((AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE).is_valid_for_registration());
    }
}
