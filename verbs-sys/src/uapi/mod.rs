//! The kernel's structures, byte for byte, each with its size asserted.
//! Integers are in the machine's byte order unless the field says otherwise.

pub(crate) mod ucma;
