//! RoCEv2 on the wire: checked views of packets, builders, and the invariant CRC.
//!
//! Everything here works in the caller's bytes: nothing allocates, nothing does I/O, and no bytes
//! whatsoever make it panic. Structure is checked once, by [`Packet::parse`] and
//! [`IpPacket::parse`]; what they hand out cannot fail afterwards. What a packet *means* is the
//! transport's business.
//!
//! One file per header:
//!
//! | bytes | header | file |
//! |---|---|---|
//! | IPv4 or IPv6, UDP | [`IpUdp`] | [`ip`] |
//! | 12 | [`Bth`], its [`Opcode`] and [`Psn`] | `bth`, `opcode`, `operation`, `psn` |
//! | 4 | [`XrcEth`] | `xrceth` |
//! | 8 | [`Deth`] | `deth` |
//! | 4 | [`Feth`] | `feth` |
//! | 16 | [`Reth`] | `reth` |
//! | 28, 8 | [`AtomicEth`], [`AtomicAckEth`] | `atomic` |
//! | 4 | [`Aeth`] and its [`Syndrome`] | `aeth` |
//! | 4, 4 | [`ImmDt`], [`Ieth`] | `imm` |
//! | 4 | the trailer | [`icrc`] |
//!
//! All fields are big-endian but the ICRC. Sources: IBTA vol. 1 chapter 9 and Annex A17 (RoCEv2).

#![forbid(unsafe_code)]

mod aeth;
mod atomic;
mod bth;
mod builder;
pub mod cnp;
mod deth;
mod feth;
pub mod flow;
pub mod grh;
mod header;
pub mod icrc;
mod imm;
pub mod ip;
mod layout;
mod opcode;
mod operation;
mod packet;
mod psn;
mod reth;
#[cfg(test)]
mod tests;
mod xrceth;

pub use aeth::{Aeth, NakCode, Syndrome};
pub use atomic::{AtomicAckEth, AtomicEth};
pub use bth::{Bth, DEFAULT_PKEY};
pub use builder::{BuildError, PacketBuilder};
pub use cnp::Cnp;
pub use deth::Deth;
pub use feth::Feth;
pub use flow::ROCE_UDP_PORT;
pub use header::ExtendedHeader;
pub use imm::{Ieth, ImmDt};
pub use ip::{IpError, IpPacket, IpUdp};
pub use layout::Headers;
pub use opcode::{MAX_HEADER_LEN, Opcode, Service, header_len};
pub use operation::{Operation, PayloadClass};
pub use packet::{ICRC_LEN, Packet, ParseError};
pub use psn::{Msn, Psn};
pub use reth::Reth;
pub use xrceth::XrcEth;
