//! ACK extended transport header (IBTA vol. 1, 9.3.5 and 9.7.5.1.1).

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

use super::psn::U24;
use super::{ExtendedHeader, Headers, Msn};

/// ACK extended transport header.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Aeth {
    /// ACK or what kind of NAK, as sent; [`Syndrome`] is what it means.
    pub syndrome: u8,
    /// Messages that the responder has completed.
    pub msn: Msn,
}

impl Aeth {
    /// A header with the byte of `syndrome`.
    #[inline]
    pub fn new(syndrome: Syndrome, msn: Msn) -> Aeth {
        Aeth {
            syndrome: syndrome.into(),
            msn,
        }
    }

    /// What the syndrome means.
    #[inline]
    pub fn meaning(self) -> Syndrome {
        self.syndrome.into()
    }
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Wire {
    syndrome: u8,
    msn: U24,
}

impl ExtendedHeader<4> for Aeth {
    const HEADER: Headers = Headers::AETH;

    #[inline]
    fn from_bytes(bytes: &[u8; 4]) -> Self {
        let wire: Wire = transmute!(*bytes);
        Aeth {
            syndrome: wire.syndrome,
            msn: Msn::new(wire.msn.get()),
        }
    }

    #[inline]
    fn to_bytes(self) -> [u8; 4] {
        transmute!(Wire {
            syndrome: self.syndrome,
            msn: U24::new(self.msn.value())
        })
    }
}

/// The AETH syndrome: two bits of type, five of value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Syndrome {
    /// Positive acknowledge.
    Ack {
        /// Code of the end-to-end flow control credits, 0 to 31; [`Syndrome::NO_CREDITS`] when the
        /// responder does not do it.
        credits: u8,
    },
    /// Receiver not ready: try again later.
    RnrNak {
        /// Code of the time to wait, 0 to 31.
        timer: u8,
    },
    /// Negative acknowledge.
    Nak(NakCode),
    /// A reserved type, or the reserved bit 7 set; the whole byte.
    Reserved(u8),
}

impl Syndrome {
    /// The credit code "not given, unlimited".
    pub const NO_CREDITS: u8 = 0x1F;
}

/// Why a request was refused for good, or out of order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NakCode {
    /// 0: a PSN is missing; the header's PSN is the one expected.
    PsnSequenceError,
    /// 1: an unsupported or malformed request.
    InvalidRequest,
    /// 2: R_Key, bounds or rights of the remote memory.
    RemoteAccessError,
    /// 3: the responder could not do it.
    RemoteOperationalError,
    /// 4: Reliable Datagram only.
    InvalidRdRequest,
    /// 5 to 31.
    Reserved(u8),
}

const VALUE: u8 = 0x1F;
const TYPE: u8 = !VALUE;
const TYPE_ACK: u8 = 0x00;
const TYPE_RNR_NAK: u8 = 0x20;
const TYPE_NAK: u8 = 0x60;

impl From<u8> for Syndrome {
    #[inline]
    fn from(byte: u8) -> Self {
        match byte & TYPE {
            TYPE_ACK => Syndrome::Ack {
                credits: byte & VALUE,
            },
            TYPE_RNR_NAK => Syndrome::RnrNak {
                timer: byte & VALUE,
            },
            TYPE_NAK => Syndrome::Nak(NakCode::from(byte)),
            _ => Syndrome::Reserved(byte),
        }
    }
}

impl From<Syndrome> for u8 {
    /// The byte; values beyond five bits are cut.
    #[inline]
    fn from(syndrome: Syndrome) -> u8 {
        match syndrome {
            Syndrome::Ack { credits } => TYPE_ACK | credits & VALUE,
            Syndrome::RnrNak { timer } => TYPE_RNR_NAK | timer & VALUE,
            Syndrome::Nak(code) => TYPE_NAK | u8::from(code),
            Syndrome::Reserved(byte) => byte,
        }
    }
}

impl From<u8> for NakCode {
    /// The code in the low five bits.
    #[inline]
    fn from(byte: u8) -> Self {
        match byte & VALUE {
            0 => NakCode::PsnSequenceError,
            1 => NakCode::InvalidRequest,
            2 => NakCode::RemoteAccessError,
            3 => NakCode::RemoteOperationalError,
            4 => NakCode::InvalidRdRequest,
            code => NakCode::Reserved(code),
        }
    }
}

impl From<NakCode> for u8 {
    /// The five-bit code.
    #[inline]
    fn from(code: NakCode) -> u8 {
        match code {
            NakCode::PsnSequenceError => 0,
            NakCode::InvalidRequest => 1,
            NakCode::RemoteAccessError => 2,
            NakCode::RemoteOperationalError => 3,
            NakCode::InvalidRdRequest => 4,
            NakCode::Reserved(code) => code & VALUE,
        }
    }
}
