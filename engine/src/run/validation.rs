//! `--data_validation`: traffic through rings of chunks, every byte of which
//! is looked at.
//!
//! - `sender`: fills the rings, here (RDMA READ) or at the peer (RDMA WRITE);
//! - `validator`: looks through each chunk of the rings here once it is
//!   complete, in a thread of its own.
//!
//! A sender of ours never goes further around a ring than its receiver has
//! looked. A receiver of stock doesn't say how far that is, and a sender of
//! stock doesn't ask: a validator that falls behind notices.

mod sender;
mod validator;

pub(crate) use sender::{Credit, RingSender, Target};
pub(crate) use validator::{Validation, Verdict};

#[cfg(test)]
mod tests;
