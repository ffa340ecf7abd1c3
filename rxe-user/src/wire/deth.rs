//! Datagram extended transport header (IBTA vol. 1, 9.3.2).

use zerocopy::byteorder::big_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::psn::U24;
use super::{ExtendedHeader, Headers};

/// Datagram extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Deth {
    /// The Q_Key that must be the destination queue pair's.
    pub qkey: u32,
    /// The sender's queue pair number, 24 bits.
    pub source_qpn: u32,
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    qkey: U32,
    reserved: u8,
    source_qpn: U24,
}

impl ExtendedHeader<8> for Deth {
    const HEADER: Headers = Headers::DETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 8]) -> Self {
        let wire: Wire = transmute!(*bytes);
        Deth {
            qkey: wire.qkey.get(),
            source_qpn: wire.source_qpn.get(),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 8] {
        transmute!(Wire {
            qkey: U32::new(self.qkey),
            reserved: 0,
            source_qpn: U24::new(self.source_qpn),
        })
    }
}
