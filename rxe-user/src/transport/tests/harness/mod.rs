//! Endpoints for the tests: two hosts and a network that can go wrong
//! ([`pair`]), hosts on the simulated network ([`lan`]), or one host and a script of raw packets ([`lone`]).

mod datagram;
mod host;
mod lan;
mod lone;
mod pair;

pub(crate) use datagram::Datagram;
pub(crate) use host::{BUFFER, Host, QKEY, Setup, address_vector, outcomes, pattern};
pub(crate) use lan::Lan;
pub(crate) use lone::{Lone, Raw};
pub(crate) use pair::{A, B, Fate, Faults, Pair};
