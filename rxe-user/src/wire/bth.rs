//! Base transport header, 12 bytes in front of everything (IBTA vol. 1, 9.2).

use zerocopy::byteorder::big_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::psn::U24;
use super::{Opcode, ParseError, Psn};

/// The P_Key of every Ethernet partition: full member of the default partition.
pub const DEFAULT_PKEY: u16 = 0xFFFF;

/// Base transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Bth {
    /// Service and operation.
    pub opcode: Opcode,
    /// SE: the responder raises a solicited event.
    pub solicited: bool,
    /// M: migrated. Hardware sends 1 on data, rxe 0; ignored on receive.
    pub migreq: bool,
    /// Pad bytes behind the payload, 0 to 3.
    pub pad: u8,
    /// Partition key.
    pub pkey: u16,
    /// F: forward congestion notification.
    pub fecn: bool,
    /// B: backward congestion notification.
    pub becn: bool,
    /// Destination queue pair number, 24 bits.
    pub dest_qpn: u32,
    /// A: the requester wants an acknowledge of this packet.
    pub ack_request: bool,
    /// Packet sequence number.
    pub psn: Psn,
}

impl Bth {
    /// Bytes on the wire.
    pub const LEN: usize = 12;

    /// A header with nothing asked for: no event, no acknowledge, no congestion seen; the default
    /// partition, and M = 1, what hardware sends where there is no path migration.
    pub const fn new(opcode: Opcode, dest_qpn: u32, psn: Psn) -> Bth {
        Bth {
            opcode,
            solicited: false,
            migreq: true,
            pad: 0,
            pkey: DEFAULT_PKEY,
            fecn: false,
            becn: false,
            dest_qpn,
            ack_request: false,
            psn,
        }
    }

    /// Reads a header; the reserved bits are ignored.
    ///
    /// # Errors
    /// The opcode is unknown, or the transport version is not 0.
    pub fn from_bytes(bytes: &[u8; Bth::LEN]) -> Result<Bth, ParseError> {
        let wire: WireBth = transmute!(*bytes);
        let opcode = wire.opcode()?;
        wire.check_version()?;
        Ok(wire.to_bth(opcode))
    }

    /// The header as it is sent, reserved bits 0. `pad` and `dest_qpn` are cut to 2 and 24 bits.
    #[inline]
    pub fn to_bytes(self) -> [u8; Bth::LEN] {
        transmute!(WireBth {
            opcode: self.opcode.byte(),
            flags: flag(self.solicited, SE) | flag(self.migreq, M) | (self.pad & 3) << PAD_SHIFT,
            pkey: U16::new(self.pkey),
            congestion: flag(self.fecn, FECN) | flag(self.becn, BECN),
            dest_qpn: U24::new(self.dest_qpn),
            ack_request: flag(self.ack_request, A),
            psn: U24::new(self.psn.value()),
        })
    }
}

const SE: u8 = 0x80;
const M: u8 = 0x40;
const PAD_SHIFT: u8 = 4;
const TVER: u8 = 0x0F;
const FECN: u8 = 0x80;
const BECN: u8 = 0x40;
const A: u8 = 0x80;

#[inline]
fn flag(set: bool, bit: u8) -> u8 {
    if set { bit } else { 0 }
}

/// The header in the bytes of a packet.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub(super) struct WireBth {
    opcode: u8,
    /// SE, M, 2 bits of pad count, 4 bits of transport version.
    flags: u8,
    pkey: U16,
    /// FECN, BECN, 6 reserved bits; the ICRC does not cover this byte.
    congestion: u8,
    dest_qpn: U24,
    /// A and 7 reserved bits.
    ack_request: u8,
    psn: U24,
}

impl WireBth {
    #[inline]
    pub(super) fn opcode(&self) -> Result<Opcode, ParseError> {
        Opcode::from_byte(self.opcode).ok_or(ParseError::UnknownOpcode {
            opcode: self.opcode,
        })
    }

    #[inline]
    pub(super) fn check_version(&self) -> Result<(), ParseError> {
        match self.flags & TVER {
            0 => Ok(()),
            version => Err(ParseError::UnsupportedVersion { version }),
        }
    }

    #[inline]
    pub(super) fn solicited(&self) -> bool {
        self.flags & SE != 0
    }

    #[inline]
    pub(super) fn migreq(&self) -> bool {
        self.flags & M != 0
    }

    #[inline]
    pub(super) fn pad(&self) -> u8 {
        self.flags >> PAD_SHIFT & 3
    }

    #[inline]
    pub(super) fn pkey(&self) -> u16 {
        self.pkey.get()
    }

    #[inline]
    pub(super) fn fecn(&self) -> bool {
        self.congestion & FECN != 0
    }

    #[inline]
    pub(super) fn becn(&self) -> bool {
        self.congestion & BECN != 0
    }

    #[inline]
    pub(super) fn dest_qpn(&self) -> u32 {
        self.dest_qpn.get()
    }

    #[inline]
    pub(super) fn ack_request(&self) -> bool {
        self.ack_request & A != 0
    }

    #[inline]
    pub(super) fn psn(&self) -> Psn {
        Psn::new(self.psn.get())
    }

    /// The plain struct; `opcode` is this header's, already looked up.
    #[inline]
    pub(super) fn to_bth(self, opcode: Opcode) -> Bth {
        Bth {
            opcode,
            solicited: self.solicited(),
            migreq: self.migreq(),
            pad: self.pad(),
            pkey: self.pkey(),
            fecn: self.fecn(),
            becn: self.becn(),
            dest_qpn: self.dest_qpn(),
            ack_request: self.ack_request(),
            psn: self.psn(),
        }
    }
}
