//! Tests of the wire formats.

mod icrc;
mod vectors;
