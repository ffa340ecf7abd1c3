//! Which headers follow a BTH, and where.

use core::fmt;

use super::Bth;

/// A set of headers that may follow the BTH. The bits are in wire order (IBTA vol. 1, 9.3).
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Headers(u16);

impl Headers {
    /// No header.
    pub const EMPTY: Headers = Headers(0);
    /// XRC extended transport header.
    pub const XRCETH: Headers = Headers(1 << 0);
    /// Datagram extended transport header.
    pub const DETH: Headers = Headers(1 << 1);
    /// Flush extended transport header.
    pub const FETH: Headers = Headers(1 << 2);
    /// RDMA extended transport header.
    pub const RETH: Headers = Headers(1 << 3);
    /// Atomic extended transport header.
    pub const ATOMIC_ETH: Headers = Headers(1 << 4);
    /// ACK extended transport header.
    pub const AETH: Headers = Headers(1 << 5);
    /// Atomic ACK extended transport header.
    pub const ATOMIC_ACK_ETH: Headers = Headers(1 << 6);
    /// Immediate data.
    pub const IMM_DT: Headers = Headers(1 << 7);
    /// Invalidate extended transport header.
    pub const IETH: Headers = Headers(1 << 8);
    /// The reserved bytes of a congestion notification packet.
    pub const CNP_RESERVED: Headers = Headers(1 << 9);

    /// Both sets together.
    #[inline]
    #[must_use]
    pub const fn with(self, other: Headers) -> Headers {
        Headers(self.0 | other.0)
    }

    /// Whether all of `other` is in this set.
    #[inline]
    pub const fn contains(self, other: Headers) -> bool {
        self.0 & other.0 == other.0
    }

    /// The headers of this set that are not in `other`.
    #[inline]
    #[must_use]
    pub const fn without(self, other: Headers) -> Headers {
        Headers(self.0 & !other.0)
    }

    /// Whether there is no header in the set.
    #[inline]
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// Names, in the order of the bits of [`Headers`].
const NAMES: [&str; SIZES.len()] = [
    "XRCETH",
    "DETH",
    "FETH",
    "RETH",
    "AtomicETH",
    "AETH",
    "AtomicAckETH",
    "ImmDt",
    "IETH",
    "CNP reserved bytes",
];

/// The names, separated by commas: "RETH, ImmDt".
impl fmt::Display for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut separator = "";
        for (bit, name) in NAMES.iter().enumerate() {
            if self.contains(Headers(1 << bit)) {
                write!(f, "{separator}{name}")?;
                separator = ", ";
            }
        }
        Ok(())
    }
}

impl fmt::Debug for Headers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Headers({self})")
    }
}

/// Sizes in bytes, in the order of the bits of [`Headers`].
const SIZES: [u8; 10] = [4, 8, 4, 16, 28, 4, 8, 4, 4, 16];

/// Where the headers of one opcode begin, from the start of the BTH.
#[derive(Clone, Copy, Debug)]
pub(super) struct Layout {
    header_len: u8,
    /// In the order of the bits of [`Headers`]; 0 where the header is absent.
    offsets: [u8; SIZES.len()],
}

impl Layout {
    /// The headers of `headers` one after the other behind the BTH.
    pub(super) const fn of(headers: Headers) -> Layout {
        let mut layout = Layout {
            header_len: Bth::LEN as u8,
            offsets: [0; SIZES.len()],
        };
        let mut bit = 0;
        while bit < SIZES.len() {
            if headers.0 & (1 << bit) != 0 {
                layout.offsets[bit] = layout.header_len;
                layout.header_len += SIZES[bit];
            }
            bit += 1;
        }
        layout
    }

    /// Bytes in front of the payload, BTH included.
    #[inline]
    pub(super) const fn header_len(&self) -> usize {
        self.header_len as usize
    }

    /// Where `header` (one bit) begins, if the opcode has it.
    #[inline]
    pub(super) const fn offset(&self, header: Headers) -> Option<usize> {
        let bit = header.0.trailing_zeros() as usize;
        if bit < SIZES.len() && self.offsets[bit] != 0 {
            Some(self.offsets[bit] as usize)
        } else {
            None
        }
    }
}
