//! The single headers.

use proptest::prelude::*;

use crate::wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, Deth, ExtendedHeader, Feth, Ieth, ImmDt, Msn, NakCode,
    Opcode, ParseError, Psn, Reth, Syndrome, XrcEth,
};

#[test]
fn bth_fields_are_where_the_specification_has_them() {
    let bth = Bth {
        opcode: Opcode::UD_SEND_ONLY,
        solicited: true,
        migreq: false,
        pad: 3,
        pkey: 0x7FFE,
        fecn: true,
        becn: false,
        dest_qpn: 0x12_3456,
        ack_request: true,
        psn: Psn::new(0xAB_CDEF),
    };
    let bytes = [
        0x64, 0xB0, 0x7F, 0xFE, 0x80, 0x12, 0x34, 0x56, 0x80, 0xAB, 0xCD, 0xEF,
    ];
    assert_eq!(bth.to_bytes(), bytes);
    assert_eq!(Bth::from_bytes(&bytes), Ok(bth));

    let other = Bth {
        solicited: false,
        migreq: true,
        fecn: false,
        becn: true,
        ..bth
    };
    let bytes = [
        0x64, 0x70, 0x7F, 0xFE, 0x40, 0x12, 0x34, 0x56, 0x80, 0xAB, 0xCD, 0xEF,
    ];
    assert_eq!(other.to_bytes(), bytes);
    assert_eq!(Bth::from_bytes(&bytes), Ok(other));
}

#[test]
fn bth_defaults() {
    let bytes = Bth::new(Opcode::RC_ACKNOWLEDGE, 0x11, Psn::new(5)).to_bytes();
    assert_eq!(bytes, [0x11, 0x40, 0xFF, 0xFF, 0, 0, 0, 0x11, 0, 0, 0, 5]);
}

#[test]
fn bth_that_is_none() {
    let mut bytes = [0; 12];
    bytes[0] = 0x15;
    assert_eq!(
        Bth::from_bytes(&bytes),
        Err(ParseError::UnknownOpcode { opcode: 0x15 })
    );
    bytes[0] = 0x04;
    bytes[1] = 0xF7;
    assert_eq!(
        Bth::from_bytes(&bytes),
        Err(ParseError::UnsupportedVersion { version: 7 })
    );
}

#[test]
fn bth_cuts_what_does_not_fit() {
    let bth = Bth {
        pad: 7,
        ..Bth::new(Opcode::CNP, 0xFF00_0001, Psn::new(0))
    };
    assert_eq!(
        bth.to_bytes(),
        [0x81, 0x70, 0xFF, 0xFF, 0, 0, 0, 1, 0, 0, 0, 0]
    );
}

/// `header` is `bytes` on the wire, and comes back from it.
fn check<H, const N: usize>(header: H, bytes: [u8; N])
where
    H: ExtendedHeader<N> + PartialEq + core::fmt::Debug,
{
    assert_eq!(header.to_bytes(), bytes, "{header:?}");
    assert_eq!(H::from_bytes(&bytes), header);
}

#[test]
fn fields_are_where_the_specification_has_them() {
    check(
        Reth {
            va: 0x0102_0304_0506_0708,
            rkey: 0x1112_1314,
            length: 0x2122_2324,
        },
        [
            1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24,
        ],
    );
    check(
        AtomicEth {
            va: 0x0102_0304_0506_0708,
            rkey: 0x1112_1314,
            swap_or_add: 0x2122_2324_2526_2728,
            compare: 0x3132_3334_3536_3738,
        },
        [
            1, 2, 3, 4, 5, 6, 7, 8, 0x11, 0x12, 0x13, 0x14, 0x21, 0x22, 0x23, 0x24, 0x25, 0x26,
            0x27, 0x28, 0x31, 0x32, 0x33, 0x34, 0x35, 0x36, 0x37, 0x38,
        ],
    );
    check(
        Aeth {
            syndrome: 0x62,
            msn: Msn::new(0x01_0203),
        },
        [0x62, 1, 2, 3],
    );
    check(
        AtomicAckEth {
            original: 0x0102_0304_0506_0708,
        },
        [1, 2, 3, 4, 5, 6, 7, 8],
    );
    check(ImmDt(0xC0FF_EE00), [0xC0, 0xFF, 0xEE, 0]);
    check(Ieth { rkey: 0x0102_0304 }, [1, 2, 3, 4]);
    check(
        Deth {
            qkey: 0x8001_0000,
            source_qpn: 0x01_0203,
        },
        [0x80, 1, 0, 0, 0, 1, 2, 3],
    );
    check(XrcEth { srqn: 0x01_0203 }, [0, 1, 2, 3]);
    check(
        Feth {
            selectivity: 1,
            placement: 3,
        },
        [0, 0, 0, 0x13],
    );
}

#[test]
fn reserved_bits_are_ignored_and_not_sent() {
    assert_eq!(
        Deth::from_bytes(&[0, 0, 0, 1, 0xFF, 0, 0, 2]),
        Deth {
            qkey: 1,
            source_qpn: 2
        }
    );
    assert_eq!(XrcEth::from_bytes(&[0xFF, 0, 0, 2]), XrcEth { srqn: 2 });
    assert_eq!(
        Feth::from_bytes(&[0xFF, 0xFF, 0xFF, 0xD2]),
        Feth {
            selectivity: 1,
            placement: 2
        }
    );
    assert_eq!(
        Deth {
            qkey: 0,
            source_qpn: u32::MAX
        }
        .to_bytes(),
        [0, 0, 0, 0, 0, 255, 255, 255]
    );
    assert_eq!(XrcEth { srqn: u32::MAX }.to_bytes(), [0, 255, 255, 255]);
    assert_eq!(
        Feth {
            selectivity: 0xFF,
            placement: 0xFF
        }
        .to_bytes(),
        [0, 0, 0, 0x3F]
    );
}

#[test]
fn syndromes() {
    for byte in 0..=u8::MAX {
        let syndrome = Syndrome::from(byte);
        assert_eq!(u8::from(syndrome), byte, "{syndrome:?}");
        let expected = match byte {
            0x00..=0x1F => Syndrome::Ack { credits: byte },
            0x20..=0x3F => Syndrome::RnrNak { timer: byte - 0x20 },
            0x60 => Syndrome::Nak(NakCode::PsnSequenceError),
            0x61 => Syndrome::Nak(NakCode::InvalidRequest),
            0x62 => Syndrome::Nak(NakCode::RemoteAccessError),
            0x63 => Syndrome::Nak(NakCode::RemoteOperationalError),
            0x64 => Syndrome::Nak(NakCode::InvalidRdRequest),
            0x65..=0x7F => Syndrome::Nak(NakCode::Reserved(byte - 0x60)),
            0x40..=0x5F | 0x80..=0xFF => Syndrome::Reserved(byte),
        };
        assert_eq!(syndrome, expected);
    }
    let aeth = Aeth::new(
        Syndrome::Ack {
            credits: Syndrome::NO_CREDITS,
        },
        Msn::new(1),
    );
    assert_eq!(
        aeth,
        Aeth {
            syndrome: 0x1F,
            msn: Msn::new(1)
        }
    );
    assert_eq!(aeth.meaning(), Syndrome::Ack { credits: 31 });
    // A value too large must not become another type.
    assert_eq!(u8::from(Syndrome::RnrNak { timer: 0xFF }), 0x3F);
    assert_eq!(u8::from(Syndrome::Ack { credits: 0xFF }), 0x1F);
    assert_eq!(u8::from(Syndrome::Nak(NakCode::Reserved(0xFF))), 0x7F);
}

proptest! {
    #[test]
    fn any_bytes_of_a_reth_survive(bytes: [u8; 16]) {
        prop_assert_eq!(Reth::from_bytes(&bytes).to_bytes(), bytes);
    }

    #[test]
    fn any_bytes_of_an_atomic_eth_survive(bytes: [u8; 28]) {
        prop_assert_eq!(AtomicEth::from_bytes(&bytes).to_bytes(), bytes);
    }
}
