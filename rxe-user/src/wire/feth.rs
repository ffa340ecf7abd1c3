//! Flush extended transport header (IBTA vol. 1, Annex A19).

use super::{ExtendedHeader, Headers};

/// Flush extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Feth {
    /// 0: the address range of the RETH, 1: the whole memory region; two bits.
    pub selectivity: u8,
    /// Bit 0: global visibility, bit 1: persistence; four bits.
    pub placement: u8,
}

impl ExtendedHeader<4> for Feth {
    const HEADER: Headers = Headers::FETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 4]) -> Self {
        Feth {
            selectivity: bytes[3] >> 4 & 0x03,
            placement: bytes[3] & 0x0F,
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        [
            0,
            0,
            0,
            (self.selectivity & 0x03) << 4 | self.placement & 0x0F,
        ]
    }
}
