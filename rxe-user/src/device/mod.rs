//! The provider itself, and what it has to know of the host.

pub mod netdev;
