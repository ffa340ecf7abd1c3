//! Writes a packet in place: BTH, extended headers, payload, pad and room for the ICRC.

use super::layout::Layout;
use super::packet::ICRC_LEN;
use super::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ExtendedHeader, Feth, Headers, Ieth, ImmDt, Opcode,
    Reth, XrcEth,
};

/// Why a packet could not be built. All of these are mistakes of the caller, never of the peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// The buffer is too small.
    #[error("a packet of {needed} bytes does not fit the {available} bytes of its buffer")]
    BufferTooSmall {
        /// Bytes that the packet takes, as far as it has been described.
        needed: usize,
        /// Bytes of the buffer.
        available: usize,
    },
    /// The opcode does not have the header.
    #[error("caller gave {opcode} a header it does not have: {header}")]
    UnexpectedHeader {
        /// The packet's opcode.
        opcode: Opcode,
        /// What was given.
        header: Headers,
    },
    /// The opcode has headers that were not given.
    #[error("caller did not give all headers of {opcode}: {missing} missing")]
    MissingHeader {
        /// The packet's opcode.
        opcode: Opcode,
        /// What was not given.
        missing: Headers,
    },
}

/// Builds one packet in a caller's buffer.
///
/// Each header goes to its own place whatever the order of the calls; a mistake is reported by
/// [`finish`](Self::finish). Whether the payload's length suits the opcode and the path MTU is
/// the transport's business, see [`PayloadClass`](super::PayloadClass).
#[derive(Debug)]
pub struct PacketBuilder<'b> {
    buf: &'b mut [u8],
    bth: Bth,
    layout: &'static Layout,
    missing: Headers,
    unexpected: Option<Headers>,
    payload_len: usize,
}

impl<'b> PacketBuilder<'b> {
    /// Starts a packet in `buf`. The pad count of `bth` is not looked at: `finish` sets it.
    ///
    /// # Errors
    /// `buf` has no room for the opcode's headers and the ICRC.
    #[inline]
    pub fn new(buf: &'b mut [u8], bth: Bth) -> Result<Self, BuildError> {
        let layout = bth.opcode.layout();
        let needed = layout.header_len() + ICRC_LEN;
        let available = buf.len();
        if available < needed {
            return Err(BuildError::BufferTooSmall { needed, available });
        }
        let mut missing = bth.opcode.headers();
        if let Some(at) = layout.offset(Headers::CNP_RESERVED) {
            if let Some(reserved) = buf.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<16>) {
                *reserved = [0; 16];
            }
            missing = missing.without(Headers::CNP_RESERVED);
        }
        Ok(PacketBuilder {
            buf,
            bth,
            layout,
            missing,
            unexpected: None,
            payload_len: 0,
        })
    }

    #[inline]
    fn extended<H: ExtendedHeader<N>, const N: usize>(mut self, header: H) -> Self {
        let place = self
            .layout
            .offset(H::HEADER)
            .and_then(|at| self.buf.get_mut(at..))
            .and_then(<[u8]>::first_chunk_mut);
        match place {
            Some(place) => {
                *place = header.to_bytes();
                self.missing = self.missing.without(H::HEADER);
            }
            None => self.unexpected = Some(H::HEADER),
        }
        self
    }

    /// XRC requests.
    #[inline]
    #[must_use]
    pub fn xrceth(self, header: XrcEth) -> Self {
        self.extended(header)
    }

    /// All UD packets.
    #[inline]
    #[must_use]
    pub fn deth(self, header: Deth) -> Self {
        self.extended(header)
    }

    /// Flush.
    #[inline]
    #[must_use]
    pub fn feth(self, header: Feth) -> Self {
        self.extended(header)
    }

    /// Write First and Only, Read Request, Flush, Atomic Write.
    #[inline]
    #[must_use]
    pub fn reth(self, header: Reth) -> Self {
        self.extended(header)
    }

    /// Compare and Swap, Fetch and Add.
    #[inline]
    #[must_use]
    pub fn atomic_eth(self, header: AtomicEth) -> Self {
        self.extended(header)
    }

    /// All responses but Read Response Middle.
    #[inline]
    #[must_use]
    pub fn aeth(self, header: Aeth) -> Self {
        self.extended(header)
    }

    /// Atomic Acknowledge.
    #[inline]
    #[must_use]
    pub fn atomic_ack_eth(self, header: AtomicAckEth) -> Self {
        self.extended(header)
    }

    /// Whatever is "with Immediate".
    #[inline]
    #[must_use]
    pub fn immediate(self, header: ImmDt) -> Self {
        self.extended(header)
    }

    /// Whatever is "with Invalidate".
    #[inline]
    #[must_use]
    pub fn ieth(self, header: Ieth) -> Self {
        self.extended(header)
    }

    /// Makes the payload `len` bytes and hands out its place in the packet.
    ///
    /// What is not written there stays what the buffer held before.
    ///
    /// # Errors
    /// The buffer has no room for the payload, its pad and the ICRC; the payload stays as it was.
    #[inline]
    pub fn payload_mut(&mut self, len: usize) -> Result<&mut [u8], BuildError> {
        let start = self.layout.header_len();
        let available = self.buf.len();
        // Room for the pad and the ICRC is taken by `finish`; a length that overflows has none.
        let needed = start
            .saturating_add(len)
            .saturating_add(pad(len) + ICRC_LEN);
        let too_small = BuildError::BufferTooSmall { needed, available };
        if available < needed {
            return Err(too_small);
        }
        self.payload_len = len;
        self.buf.get_mut(start..start + len).ok_or(too_small)
    }

    /// Makes the payload `len` bytes and has `fill` write them in place.
    ///
    /// # Errors
    /// As [`payload_mut`](Self::payload_mut).
    #[inline]
    pub fn payload(mut self, len: usize, fill: impl FnOnce(&mut [u8])) -> Result<Self, BuildError> {
        fill(self.payload_mut(len)?);
        Ok(self)
    }

    /// Writes the BTH, with the pad count, and the pad; zeroes the place of the ICRC, which
    /// [`icrc::seal`](super::icrc::seal) fills. Returns the packet's length, BTH to ICRC.
    ///
    /// # Errors
    /// A header was given that the opcode does not have, or one that it has was not.
    #[inline]
    pub fn finish(self) -> Result<usize, BuildError> {
        let opcode = self.bth.opcode;
        if let Some(header) = self.unexpected {
            return Err(BuildError::UnexpectedHeader { opcode, header });
        }
        if !self.missing.is_empty() {
            return Err(BuildError::MissingHeader {
                opcode,
                missing: self.missing,
            });
        }
        let pad = pad(self.payload_len);
        let end = self.layout.header_len() + self.payload_len;
        let len = end + pad + ICRC_LEN;
        let too_small = BuildError::BufferTooSmall {
            needed: len,
            available: self.buf.len(),
        };
        let bth = Bth {
            pad: pad as u8,
            ..self.bth
        }
        .to_bytes();
        *self.buf.first_chunk_mut().ok_or(too_small)? = bth;
        self.buf.get_mut(end..len).ok_or(too_small)?.fill(0);
        Ok(len)
    }
}

/// Pad bytes that make `len` a multiple of four.
#[inline]
fn pad(len: usize) -> usize {
    len.wrapping_neg() & 3
}
