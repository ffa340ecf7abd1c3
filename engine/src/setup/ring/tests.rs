//! The layout of `--data_validation` against recorded addresses.

use proptest::prelude::*;

use super::*;

#[test]
fn addresses_are_those_of_recorded_runs() {
    // Message bytes, depth, reads; chunks, and from markers to the first ring.
    for (size, tx_depth, reads, chunks, ring) in [
        (65536, 128, false, 8, 0x40),
        (65536, 100, false, 12, 0x80),
        (65536, 128, true, 12, 0x80),
        (65536, 100, true, 18, 0xc0),
    ] {
        let layout = RingLayout::new(size, tx_depth, 1, reads);
        assert_eq!((layout.chunk, layout.chunks), (tx_depth, chunks));
        assert_eq!(layout.marker(0, 0), 3 * size);
        assert_eq!(layout.message(0, 0), 3 * size + ring);
    }
    let writes = RingLayout::new(65536, 128, 1, false);
    assert_eq!(writes.published(0), writes.message(0, 0));
    assert_eq!(RingLayout::new(65536, 128, 1, true).published(0), 0);
}

#[test]
fn chunks_have_64_kib_to_8_mib() {
    for (size, tx_depth, expected) in [
        (1, 128, 65536),
        (2, 32, 32768),
        (3, 100, 21900),
        (4096, 128, 128),
        (65536, 128, 128),
        (65536, 512, 128),
        (1 << 20, 128, 8),
        (8 << 20, 128, 1),
        (16 << 20, 128, 1),
    ] {
        assert_eq!(chunk(size, tx_depth), expected, "{size} {tx_depth}");
    }
}

#[test]
fn bytes_go_round_in_three() {
    let bytes: Vec<u8> = (0..5).map(RingLayout::pattern_byte).collect();
    assert_eq!(bytes, [1, 2, 3, 1, 2]);
}

#[test]
fn what_no_memory_can_hold_does_not_overflow() {
    let huge = RingLayout::new(usize::MAX / 2, 128, 16384, true);
    assert!(huge.len() > usize::MAX / 4);
}

proptest! {
    /// No part of the buffer meets another one, and words are aligned.
    #[test]
    fn parts_lie_side_by_side(
        size in 1_usize..100_000,
        tx_depth in 32_usize..2000,
        qps in 1_usize..9,
        reads: bool,
    ) {
        let layout = RingLayout::new(size, tx_depth, qps, reads);
        prop_assert!((4..=MOST_CHUNKS).contains(&layout.chunks));
        let mut parts: Vec<(usize, usize)> = (0..3).map(|round| (layout.pattern(round), size)).collect();
        for qp in 0..qps {
            parts.push((layout.message(qp, 0), layout.chunk_bytes() * layout.chunks));
            parts.extend([layout.checked(qp), layout.checked_by_peer(qp)].map(|at| (at, WORD)));
            if !reads {
                parts.push((layout.old_value(qp, 1), WORD));
            }
            for chunk in 0..layout.chunks {
                parts.push((layout.marker(qp, chunk), WORD));
                if reads {
                    parts.push((layout.old_value(qp, chunk), WORD));
                }
            }
        }
        parts.sort_unstable();
        for pair in parts.windows(2) {
            prop_assert!(pair[0].0 + pair[0].1 <= pair[1].0, "{pair:?}");
        }
        for (start, length) in parts {
            prop_assert!(start + length <= layout.len());
            prop_assert!(length != WORD || start.is_multiple_of(WORD) || start < layout.marker(0, 0));
        }
    }
}
