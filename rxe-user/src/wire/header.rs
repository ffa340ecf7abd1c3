//! What the headers behind the BTH have in common.

use super::layout::Headers;

/// A header of `N` bytes that may follow the BTH. Any bytes are a valid header.
pub trait ExtendedHeader<const N: usize>: Copy {
    /// Which one it is.
    const HEADER: Headers;

    /// Reads the header; reserved bits are ignored.
    fn from_bytes(bytes: &[u8; N]) -> Self;

    /// The header as it is sent, reserved bits 0.
    fn to_bytes(self) -> [u8; N];
}
