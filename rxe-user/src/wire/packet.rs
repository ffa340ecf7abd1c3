//! A received packet: BTH, extended headers, payload, pad and ICRC, in the bytes they came in.

use zerocopy::FromBytes;

use super::bth::WireBth;
use super::layout::Layout;
use super::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ExtendedHeader, Feth, Headers, Ieth, ImmDt, Opcode,
    Operation, Psn, Reth, Service, XrcEth,
};

/// Bytes of the invariant CRC behind the pad.
pub const ICRC_LEN: usize = 4;

/// Why the payload of a UDP datagram is no packet. Such datagrams are dropped without an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ParseError {
    /// Shorter than the smallest packet.
    #[error("peer sent a datagram of {len} bytes; a BTH and an ICRC are {} bytes", Bth::LEN + ICRC_LEN)]
    TooShort {
        /// Bytes of the datagram.
        len: usize,
    },
    /// Not an opcode of the table.
    #[error("peer sent opcode 0x{opcode:02x}, which is reserved or of a service not supported")]
    UnknownOpcode {
        /// Byte 0.
        opcode: u8,
    },
    /// Shorter than the opcode's headers, the pad and the ICRC.
    #[error("peer sent {len} bytes of {opcode}; its headers, pad and ICRC are {needed} bytes")]
    Truncated {
        /// What it claims to be.
        opcode: Opcode,
        /// Bytes of the datagram.
        len: usize,
        /// The least it must have.
        needed: usize,
    },
    /// A transport header version other than 0.
    #[error("peer sent transport header version {version}; only version 0 exists")]
    UnsupportedVersion {
        /// TVer, 1 to 15.
        version: u8,
    },
}

/// A view of a packet whose structure has been checked: known opcode, room for all of its headers.
///
/// Nothing else has been: not the ICRC, nor the P_Key, nor whether the pad fits the payload.
#[derive(Clone, Copy)]
pub struct Packet<'a> {
    bytes: &'a [u8],
    bth: &'a WireBth,
    opcode: Opcode,
    layout: &'static Layout,
    payload: &'a [u8],
    icrc: u32,
}

impl<'a> Packet<'a> {
    /// Checks the payload of a UDP datagram, BTH to ICRC.
    ///
    /// # Errors
    /// In this order: shorter than 16 bytes; unknown opcode; shorter than the headers of that
    /// opcode, the pad and the ICRC; transport version not 0.
    #[inline]
    pub fn parse(udp_payload: &'a [u8]) -> Result<Packet<'a>, ParseError> {
        let len = udp_payload.len();
        let too_short = ParseError::TooShort { len };
        let (bth, rest) = WireBth::ref_from_prefix(udp_payload).map_err(|_| too_short)?;
        let (_, icrc) = rest.split_last_chunk::<ICRC_LEN>().ok_or(too_short)?;
        let opcode = bth.opcode()?;
        let layout = opcode.layout();
        let tail = usize::from(bth.pad()) + ICRC_LEN;
        let needed = layout.header_len() + tail;
        let payload = len
            .checked_sub(tail)
            .and_then(|end| udp_payload.get(layout.header_len()..end))
            .ok_or(ParseError::Truncated {
                opcode,
                len,
                needed,
            })?;
        bth.check_version()?;
        let icrc = u32::from_le_bytes(*icrc);
        Ok(Packet {
            bytes: udp_payload,
            bth,
            opcode,
            layout,
            payload,
            icrc,
        })
    }

    /// Service and operation.
    #[inline]
    pub fn opcode(&self) -> Opcode {
        self.opcode
    }

    /// What the packet does.
    #[inline]
    pub fn operation(&self) -> Operation {
        self.opcode.operation()
    }

    /// The transport service.
    #[inline]
    pub fn service(&self) -> Service {
        self.opcode.service()
    }

    /// SE: solicited event.
    #[inline]
    pub fn solicited(&self) -> bool {
        self.bth.solicited()
    }

    /// M: migration state.
    #[inline]
    pub fn migreq(&self) -> bool {
        self.bth.migreq()
    }

    /// Pad bytes behind the payload as the BTH counts them, 0 to 3.
    #[inline]
    pub fn pad(&self) -> u8 {
        self.bth.pad()
    }

    /// Partition key.
    #[inline]
    pub fn pkey(&self) -> u16 {
        self.bth.pkey()
    }

    /// F: forward congestion notification.
    #[inline]
    pub fn fecn(&self) -> bool {
        self.bth.fecn()
    }

    /// B: backward congestion notification.
    #[inline]
    pub fn becn(&self) -> bool {
        self.bth.becn()
    }

    /// Destination queue pair number, 24 bits.
    #[inline]
    pub fn dest_qpn(&self) -> u32 {
        self.bth.dest_qpn()
    }

    /// A: the requester wants an acknowledge.
    #[inline]
    pub fn ack_request(&self) -> bool {
        self.bth.ack_request()
    }

    /// Packet sequence number.
    #[inline]
    pub fn psn(&self) -> Psn {
        self.bth.psn()
    }

    /// The whole base transport header.
    #[inline]
    pub fn bth(&self) -> Bth {
        self.bth.to_bth(self.opcode)
    }

    /// The header `H`, if the opcode has it.
    #[inline]
    fn extended<H: ExtendedHeader<N>, const N: usize>(&self) -> Option<H> {
        let at = self.layout.offset(H::HEADER)?;
        self.bytes.get(at..)?.first_chunk().map(H::from_bytes)
    }

    /// XRC requests.
    #[inline]
    pub fn xrceth(&self) -> Option<XrcEth> {
        self.extended()
    }

    /// All UD packets.
    #[inline]
    pub fn deth(&self) -> Option<Deth> {
        self.extended()
    }

    /// Flush.
    #[inline]
    pub fn feth(&self) -> Option<Feth> {
        self.extended()
    }

    /// Write First and Only, Read Request, Flush, Atomic Write.
    #[inline]
    pub fn reth(&self) -> Option<Reth> {
        self.extended()
    }

    /// Compare and Swap, Fetch and Add.
    #[inline]
    pub fn atomic_eth(&self) -> Option<AtomicEth> {
        self.extended()
    }

    /// All responses but Read Response Middle.
    #[inline]
    pub fn aeth(&self) -> Option<Aeth> {
        self.extended()
    }

    /// Atomic Acknowledge.
    #[inline]
    pub fn atomic_ack_eth(&self) -> Option<AtomicAckEth> {
        self.extended()
    }

    /// Whatever is "with Immediate".
    #[inline]
    pub fn immediate(&self) -> Option<ImmDt> {
        self.extended()
    }

    /// Whatever is "with Invalidate".
    #[inline]
    pub fn ieth(&self) -> Option<Ieth> {
        self.extended()
    }

    /// The reserved bytes of a congestion notification packet.
    #[inline]
    pub fn cnp_reserved(&self) -> Option<&'a [u8; 16]> {
        let at = self.layout.offset(Headers::CNP_RESERVED)?;
        self.bytes.get(at..)?.first_chunk()
    }

    /// The payload without the pad.
    #[inline]
    pub fn payload(&self) -> &'a [u8] {
        self.payload
    }

    /// The invariant CRC as sent.
    #[inline]
    pub fn icrc(&self) -> u32 {
        self.icrc
    }

    /// The whole packet, BTH to ICRC.
    #[inline]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }
}

impl core::fmt::Debug for Packet<'_> {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        let mut s = f.debug_struct("Packet");
        s.field("bth", &self.bth());
        // Only what the opcode has.
        if let Some(h) = self.xrceth() {
            s.field("xrceth", &h);
        }
        if let Some(h) = self.deth() {
            s.field("deth", &h);
        }
        if let Some(h) = self.feth() {
            s.field("feth", &h);
        }
        if let Some(h) = self.reth() {
            s.field("reth", &h);
        }
        if let Some(h) = self.atomic_eth() {
            s.field("atomic_eth", &h);
        }
        if let Some(h) = self.aeth() {
            s.field("aeth", &h).field("syndrome", &h.meaning());
        }
        if let Some(h) = self.atomic_ack_eth() {
            s.field("atomic_ack_eth", &h);
        }
        if let Some(h) = self.immediate() {
            s.field("immediate", &h);
        }
        if let Some(h) = self.ieth() {
            s.field("ieth", &h);
        }
        s.field("payload_len", &self.payload.len()).finish()
    }
}
