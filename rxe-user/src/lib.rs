//! A Soft-RoCE NIC in userspace: RoCEv2 on UDP 4791, without root, kernel
//! module or RDMA device.
//!
//! - [`wire`]: packets on the wire; views, builders, the ICRC.
//! - [`transport`]: queue pairs as state machines, without I/O.
//! - [`link`]: how packets travel.
//! - [`device`]: the provider, and the network interfaces of the host.
//! - [`time`]: the clock that the protocol is told.

pub mod device;
pub mod link;
pub mod time;
pub mod transport;
pub mod wire;
