//! Tests of the wire formats.
#![allow(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod builder;
mod cnp;
mod grh;
mod headers;
mod icrc;
mod ip;
mod opcode;
mod packet;
mod psn;
mod vectors;
