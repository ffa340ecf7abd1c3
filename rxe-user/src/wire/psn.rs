//! 24-bit sequence numbers: PSN and MSN.

use core::fmt;
use core::ops::{Add, AddAssign, Sub, SubAssign};

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

/// A packet sequence number: 24 bits, arithmetic modulo 2^24 (IBTA vol. 1, 9.2 and 9.7.1).
///
/// There is no `Ord`: on a circle "less than" is not transitive. Ask for [`diff`](Self::diff),
/// [`is_before`](Self::is_before) or [`is_after`](Self::is_after).
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Psn(u32);

/// A message sequence number of an AETH: the same 24-bit arithmetic as a [`Psn`] (9.7.5.1).
pub type Msn = Psn;

impl Psn {
    /// The largest value, 0xFFFFFF; the next one is 0.
    pub const MAX: Psn = Psn(0x00FF_FFFF);

    /// The low 24 bits of `value`.
    #[inline]
    pub const fn new(value: u32) -> Self {
        Psn(value & Self::MAX.0)
    }

    /// The number, 0 to 0xFFFFFF.
    #[inline]
    pub const fn value(self) -> u32 {
        self.0
    }

    /// The number after this one.
    #[inline]
    pub const fn next(self) -> Self {
        Psn::new(self.0 + 1)
    }

    /// How far `self` is ahead of `other`: the 24-bit difference, sign-extended.
    ///
    /// -2^23 to 2^23 - 1. Half the circle away counts as before, as in the kernel.
    #[inline]
    pub const fn diff(self, other: Psn) -> i32 {
        ((self.0.wrapping_sub(other.0) << 8) as i32) >> 8
    }

    /// Whether `self` lies in the half circle after `other`.
    #[inline]
    pub const fn is_after(self, other: Psn) -> bool {
        self.diff(other) > 0
    }

    /// Whether `self` lies in the half circle before `other`.
    #[inline]
    pub const fn is_before(self, other: Psn) -> bool {
        self.diff(other) < 0
    }
}

impl Add<u32> for Psn {
    type Output = Psn;

    #[inline]
    fn add(self, packets: u32) -> Psn {
        Psn::new(self.0.wrapping_add(packets))
    }
}

impl Sub<u32> for Psn {
    type Output = Psn;

    #[inline]
    fn sub(self, packets: u32) -> Psn {
        Psn::new(self.0.wrapping_sub(packets))
    }
}

impl AddAssign<u32> for Psn {
    #[inline]
    fn add_assign(&mut self, packets: u32) {
        *self = *self + packets;
    }
}

impl SubAssign<u32> for Psn {
    #[inline]
    fn sub_assign(&mut self, packets: u32) {
        *self = *self - packets;
    }
}

impl fmt::Debug for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Psn({self})")
    }
}

impl fmt::Display for Psn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{:06x}", self.0)
    }
}

/// Three big-endian bytes: how PSNs, MSNs and QPNs lie in their headers.
#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(transparent)]
pub(super) struct U24([u8; 3]);

impl U24 {
    /// The low 24 bits of `value`.
    #[inline]
    pub(super) const fn new(value: u32) -> Self {
        let [_, a, b, c] = value.to_be_bytes();
        U24([a, b, c])
    }

    #[inline]
    pub(super) const fn get(self) -> u32 {
        let [a, b, c] = self.0;
        u32::from_be_bytes([0, a, b, c])
    }
}
