//! The control dialogue with the peer, compatible with stock perftest from
//! 5.70 on: who says what in which order, byte for byte.
//!
//! [`connect()`] and [`Listener`] set up the connection; a [`Session`] speaks
//! over it; [`plan()`] says which steps a tool takes. A run author walks
//! through the plan:
//!
//! 1. [`Session::start`]: version, page size, cache line, MTU;
//! 2. [`Session::negotiate`]: the parameter block (peers from 6.28 on);
//! 3. the [`Action`]s of [`plan()`]: [`Session::exchange_keys`],
//!    [`Session::sync`], [`Session::exchange_reports`], [`Session::close`].
//!
//! The dialogue is neither encrypted nor authenticated, and the published
//! rkey opens the buffer to anybody on the fabric while a test runs. That is
//! the protocol; use it on networks you trust.

pub mod binary_key;
mod bw_report;
mod channel;
mod cm_channel;
mod connect;
mod device_attributes;
mod error;
mod key;
mod parameters;
mod plan;
mod presence;
mod session;
mod step;
mod version;

pub use crate::words::{Atomic, Connection, Ending, Measurement, Method, Side, Tool, Units, Verb};
pub use bw_report::{BandwidthReport, PortReport};
pub use channel::{Channel, KeyDialect, TcpChannel, Timeouts};
pub use cm_channel::{CmChannel, CmConnection, ControlQueuePair};
pub use connect::{ConnectOptions, ListenOptions, Listener, connect};
pub(crate) use connect::{any, resolve};
pub use device_attributes::{DEVICE_ATTRIBUTES_LEN, DeviceAttributes};
pub use error::{ExchangeError, Family};
pub use key::{KeyForm, KeyRecord, MAX_KEY_LEN, check_gid_types};
pub use parameters::{BLOCK_LEN, Mismatch, ParameterBlock, SHORT_BLOCK_LEN, TestParameters};
pub use plan::{Action, PlanInput, Scope, plan};
pub use presence::{End, Presence};
pub use session::{Agreement, Host, Negotiation, OUT_READS_LOWERED, Session};
pub use step::{Direction, ReportField, Stage, Step};
pub use version::{ANNOUNCED, VERSION_LEN, Version};

#[cfg(test)]
mod tests;
