//! RDMA extended transport header (IBTA vol. 1, 9.3.3).

use zerocopy::byteorder::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::{ExtendedHeader, Headers};

/// RDMA extended transport header: the remote memory of a Write, a Read or a Flush.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Reth {
    /// Virtual address in the responder's memory region.
    pub va: u64,
    /// The region's R_Key.
    pub rkey: u32,
    /// Bytes of the whole message.
    pub length: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    va: U64,
    rkey: U32,
    length: U32,
}

impl ExtendedHeader<16> for Reth {
    const HEADER: Headers = Headers::RETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 16]) -> Self {
        let wire: Wire = transmute!(*bytes);
        Reth {
            va: wire.va.get(),
            rkey: wire.rkey.get(),
            length: wire.length.get(),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 16] {
        transmute!(Wire {
            va: U64::new(self.va),
            rkey: U32::new(self.rkey),
            length: U32::new(self.length),
        })
    }
}
