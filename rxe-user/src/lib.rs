//! A Soft-RoCE NIC in userspace: RoCEv2 on UDP 4791, without root, kernel
//! module or RDMA device.
//!
//! - [`link`]: how packets travel.
//! - [`time`]: the clock that the protocol is told.

pub mod link;
pub mod time;
