//! An open device that only tells its attributes.

use std::os::fd::{AsFd, BorrowedFd};

use verbs_sys::memory::MemoryRange;
use verbs_sys::{
    AccessFlags, AddressHandle, AddressVector, AsyncEvent, CompletionChannel, CompletionQueue,
    Context, CqInit, DeviceAttributes, GidEntry, MemoryRegion, MemoryWindow, PortAttributes,
    ProtectionDomain, QpInit, QueuePair, Result, SharedReceiveQueue, SrqInit, VerbsError,
    XrcDomain,
};

/// A device of one port.
#[derive(Debug, Clone)]
pub(crate) struct Told {
    pub(crate) name: String,
    pub(crate) device: DeviceAttributes,
    pub(crate) port: PortAttributes,
    pub(crate) gids: Vec<GidEntry>,
}

fn only_tells<T>() -> Result<T> {
    Err(VerbsError::Unsupported {
        what: "anything but being asked",
    })
}

impl Context for Told {
    fn device_name(&self) -> &str {
        &self.name
    }

    fn query_device(&self) -> Result<DeviceAttributes> {
        Ok(self.device.clone())
    }

    fn query_port(&self, _port: u8) -> Result<PortAttributes> {
        Ok(self.port)
    }

    fn query_gid(&self, _port: u8, index: u32) -> Result<GidEntry> {
        let found = self.gids.iter().find(|entry| entry.index == index);
        found
            .copied()
            .ok_or(VerbsError::NoEntry { what: "GID", index })
    }

    fn query_gid_table(&self) -> Result<Vec<GidEntry>> {
        Ok(self.gids.clone())
    }

    fn query_pkey(&self, _port: u8, _index: u16) -> Result<u16> {
        only_tells()
    }

    fn alloc_pd(&self) -> Result<Box<dyn ProtectionDomain>> {
        only_tells()
    }

    fn reg_mr(
        &self,
        _pd: &dyn ProtectionDomain,
        _range: MemoryRange,
        _access: AccessFlags,
    ) -> Result<Box<dyn MemoryRegion>> {
        only_tells()
    }

    fn alloc_window(&self, _pd: &dyn ProtectionDomain) -> Result<Box<dyn MemoryWindow>> {
        only_tells()
    }

    fn create_comp_channel(&self) -> Result<std::sync::Arc<dyn CompletionChannel>> {
        only_tells()
    }

    fn create_cq(&self, _init: &CqInit<'_>) -> Result<Box<dyn CompletionQueue>> {
        only_tells()
    }

    fn create_srq(
        &self,
        _pd: &dyn ProtectionDomain,
        _init: &SrqInit<'_>,
    ) -> Result<Box<dyn SharedReceiveQueue>> {
        only_tells()
    }

    fn create_qp(
        &self,
        _pd: &dyn ProtectionDomain,
        _init: &QpInit<'_>,
    ) -> Result<Box<dyn QueuePair>> {
        only_tells()
    }

    fn create_ah(
        &self,
        _pd: &dyn ProtectionDomain,
        _av: &AddressVector,
    ) -> Result<Box<dyn AddressHandle>> {
        only_tells()
    }

    fn alloc_xrcd(&self) -> Result<Box<dyn XrcDomain>> {
        only_tells()
    }

    fn progress(&self) {}

    fn async_fd(&self) -> BorrowedFd<'_> {
        static STDIN: std::sync::LazyLock<std::io::Stdin> =
            std::sync::LazyLock::new(std::io::stdin);
        STDIN.as_fd()
    }

    fn next_async_event(&self) -> Option<AsyncEvent> {
        None
    }
}
