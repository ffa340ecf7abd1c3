//! The headers at the end of a message: immediate data and the R_Key to invalidate
//! (IBTA vol. 1, 9.3).

use super::{ExtendedHeader, Headers};

/// Immediate data: four opaque bytes, as the number they are in network order.
///
/// Verbs leave the byte order to the application: a `imm_data` of libibverbs is `ImmDt.0.to_be()`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct ImmDt(pub u32);

impl ExtendedHeader<4> for ImmDt {
    const HEADER: Headers = Headers::IMM_DT;

    #[inline]
    fn from_bytes(bytes: &[u8; 4]) -> Self {
        ImmDt(u32::from_be_bytes(*bytes))
    }

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        self.0.to_be_bytes()
    }
}

/// Invalidate extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Ieth {
    /// The R_Key that the responder is to invalidate.
    pub rkey: u32,
}

impl ExtendedHeader<4> for Ieth {
    const HEADER: Headers = Headers::IETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 4]) -> Self {
        Ieth {
            rkey: u32::from_be_bytes(*bytes),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        self.rkey.to_be_bytes()
    }
}
