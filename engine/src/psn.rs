//! First packet sequence numbers: 24 random bits for each queue pair.

use std::io;

use rustix::rand::{GetRandomFlags, getrandom};

/// Where they come from.
#[derive(Debug)]
pub(crate) enum Psns {
    /// The system's generator.
    Random,
    /// A sequence that a seed repeats (`--seed`), as SplitMix64 makes it.
    Seeded(u64),
}

const MASK: u64 = 0xff_ffff;

impl Psns {
    pub(crate) fn new(seed: Option<u64>) -> Self {
        seed.map_or(Self::Random, Self::Seeded)
    }

    /// The next one.
    pub(crate) fn next(&mut self) -> io::Result<u32> {
        let bits = match self {
            Self::Random => {
                let mut bytes = [0; 8];
                getrandom(&mut bytes, GetRandomFlags::empty())?;
                u64::from_ne_bytes(bytes)
            }
            Self::Seeded(state) => {
                *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
                let mut mixed = *state;
                mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
                mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
                mixed ^ (mixed >> 31)
            }
        };
        Ok((bits & MASK) as u32)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn some(mut psns: Psns) -> Vec<u32> {
        (0..20).map(|_| psns.next().unwrap()).collect()
    }

    #[test]
    fn a_seed_repeats_them() {
        let first = some(Psns::new(Some(7)));
        assert_eq!(first, some(Psns::new(Some(7))));
        assert_ne!(first, some(Psns::new(Some(8))));
        assert_ne!(some(Psns::new(None)), some(Psns::new(None)));
        assert!(first.iter().all(|psn| *psn < 1 << 24));
    }
}
