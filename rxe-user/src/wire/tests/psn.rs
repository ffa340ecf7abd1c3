//! 24-bit arithmetic.

use proptest::prelude::*;

use crate::wire::Psn;

#[test]
fn arithmetic_wraps_at_24_bits() {
    assert_eq!(Psn::new(0xFF12_3456).value(), 0x12_3456);
    assert_eq!(Psn::MAX.next(), Psn::new(0));
    assert_eq!(Psn::new(0xFF_FFFE) + 3, Psn::new(1));
    assert_eq!(Psn::new(1) - 3, Psn::new(0xFF_FFFE));
    assert_eq!(Psn::new(7) + u32::MAX, Psn::new(6));

    let mut psn = Psn::MAX;
    psn += 2;
    assert_eq!(psn, Psn::new(1));
    psn -= 2;
    assert_eq!(psn, Psn::MAX);
}

#[test]
fn half_the_circle_away_is_before() {
    let psn = Psn::new(0x10);
    assert_eq!((psn + 0x7F_FFFF).diff(psn), 0x7F_FFFF);
    assert_eq!((psn + 0x80_0000).diff(psn), -0x80_0000);
    assert!((psn + 0x80_0000).is_before(psn));
    assert!(!psn.is_before(psn) && !psn.is_after(psn));
    assert!(Psn::new(0).is_after(Psn::MAX));
    assert!(Psn::MAX.is_before(Psn::new(0)));
}

#[test]
fn is_written_in_hex() {
    assert_eq!(
        format!("{} {:?}", Psn::new(0xABC), Psn::MAX),
        "0x000abc Psn(0xffffff)"
    );
}

proptest! {
    #[test]
    fn diff_undoes_addition(start: u32, packets in -0x80_0000i32..0x80_0000) {
        let psn = Psn::new(start);
        let other = if packets < 0 { psn - packets.unsigned_abs() } else { psn + packets as u32 };
        prop_assert_eq!(other.diff(psn), packets);
        prop_assert_eq!(other.is_after(psn), packets > 0);
        prop_assert_eq!(other.is_before(psn), packets < 0);
    }
}
