//! The headers of an atomic operation and of its acknowledge (IBTA vol. 1, 9.3).

use zerocopy::byteorder::big_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::{ExtendedHeader, Headers};

/// Atomic extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtomicEth {
    /// Virtual address in the responder's memory region, a multiple of 8.
    pub va: u64,
    /// The region's R_Key.
    pub rkey: u32,
    /// What Compare and Swap stores, or what Fetch and Add adds.
    pub swap_or_add: u64,
    /// What Compare and Swap compares with; Fetch and Add has no use for it.
    pub compare: u64,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    va: U64,
    rkey: U32,
    swap_or_add: U64,
    compare: U64,
}

impl ExtendedHeader<28> for AtomicEth {
    const HEADER: Headers = Headers::ATOMIC_ETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 28]) -> Self {
        let wire: Wire = transmute!(*bytes);
        AtomicEth {
            va: wire.va.get(),
            rkey: wire.rkey.get(),
            swap_or_add: wire.swap_or_add.get(),
            compare: wire.compare.get(),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 28] {
        transmute!(Wire {
            va: U64::new(self.va),
            rkey: U32::new(self.rkey),
            swap_or_add: U64::new(self.swap_or_add),
            compare: U64::new(self.compare),
        })
    }
}

/// Atomic ACK extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AtomicAckEth {
    /// The value in memory before the operation.
    pub original: u64,
}

impl ExtendedHeader<8> for AtomicAckEth {
    const HEADER: Headers = Headers::ATOMIC_ACK_ETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 8]) -> Self {
        AtomicAckEth {
            original: u64::from_be_bytes(*bytes),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 8] {
        self.original.to_be_bytes()
    }
}
