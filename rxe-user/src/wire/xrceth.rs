//! XRC extended transport header (IBTA vol. 1, Annex A14).

use super::{ExtendedHeader, Headers};

/// XRC extended transport header: on every XRC request packet, on no response.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct XrcEth {
    /// Number of the shared receive queue that the request is for, 24 bits.
    pub srqn: u32,
}

impl ExtendedHeader<4> for XrcEth {
    const HEADER: Headers = Headers::XRCETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 4]) -> Self {
        XrcEth {
            srqn: u32::from_be_bytes(*bytes) & SRQN,
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        (self.srqn & SRQN).to_be_bytes()
    }
}

/// The upper eight bits are reserved.
const SRQN: u32 = 0x00FF_FFFF;
