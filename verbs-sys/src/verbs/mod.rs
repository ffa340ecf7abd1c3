//! Words and traits of the verbs (IBTA volume 1, chapters 10 and 11).

mod access;
pub mod cm;
mod completion;
mod device;
mod error;
mod event;
mod gid;
mod path_mtu;
mod provider;
mod qp;
mod work;

pub use access::AccessFlags;
pub use completion::{Completion, WcFlags, WcOpcode, WcStatus};
pub use device::{
    AtomicCapability, DeviceAttributes, ExtendedAttributes, LinkLayer, OdpCapabilities,
    PortAttributes, PortState, RssCapabilities, TagMatchingCapabilities, Transport,
};
pub use error::{PostError, Result, VerbsError};
pub use event::{AsyncEvent, EventKind, EventSource};
pub use gid::{Gid, GidEntry, GidType};
pub use path_mtu::PathMtu;
pub use provider::{
    AddressHandle, CompletionChannel, CompletionQueue, Context, CqInit, Device, MemoryRegion,
    MemoryWindow, Notify, ProtectionDomain, QueuePair, SharedReceiveQueue, SrqInit, XrcDomain,
};
pub use qp::{AddressVector, AttributeMask, QpAttributes, QpCapabilities, QpInit, QpState, QpType};
pub use work::{
    Gather, ReceiveRequest, RemoteAddress, SendFlags, SendOp, SendRequest, Sge, UdTarget,
    WindowBinding,
};
