//! What a simulated network does to packets.

use std::net::IpAddr;
use std::time::Duration;

use crate::time::Time;

/// The faults of a [`Network`](super::Network); none by default.
///
/// Probabilities are from 0 to 1 and apply to each packet by itself.
#[derive(Debug, Clone, Copy, PartialEq, Default)]
pub struct Faults {
    /// Probability that a packet gets lost.
    pub loss: f64,
    /// Probability that a packet arrives twice.
    pub duplicate: f64,
    /// Probability that a packet is held back for up to [`Self::reorder_by`],
    /// so that later ones overtake it.
    pub reorder: f64,
    /// How long at most a packet is held back.
    pub reorder_by: Duration,
    /// Probability that one bit is flipped, one that the ICRC covers.
    pub corrupt: f64,
    /// Time under way.
    pub delay: Duration,
    /// Up to as much is added to the delay, without changing the order.
    pub jitter: Duration,
    /// Largest IP packet; larger ones get lost.
    pub mtu: Option<usize>,
    /// Bits of IP packets per second from one address to another.
    pub bits_per_second: Option<u64>,
}

/// A packet under way, as a script sees it.
#[derive(Debug, Clone, Copy)]
pub struct Transit<'a> {
    /// Sender's address.
    pub src: IpAddr,
    /// Receiver's address.
    pub dst: IpAddr,
    /// How many packets went from `src` to `dst` before this one.
    pub index: u64,
    /// When it was sent.
    pub time: Time,
    /// BTH to ICRC.
    pub bytes: &'a [u8],
}

/// What a script decides for a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Leave it to the network's [`Faults`].
    Pass,
    /// It gets lost.
    Drop,
    /// It arrives with this bit flipped: bit `i % 8` of byte `i / 8`.
    Corrupt(usize),
    /// It arrives twice.
    Duplicate,
    /// It arrives so much later; others overtake it.
    Delay(Duration),
}

/// A script that drops one packet: the one that `index` others have gone
/// before from `src` to `dst`.
pub fn drop_packet(
    src: IpAddr,
    dst: IpAddr,
    index: u64,
) -> impl FnMut(&Transit<'_>) -> Verdict + Send + 'static {
    move |packet| {
        if (packet.src, packet.dst, packet.index) == (src, dst, index) {
            Verdict::Drop
        } else {
            Verdict::Pass
        }
    }
}

/// What happens to one packet.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Fate {
    pub(super) lost: bool,
    pub(super) duplicated: bool,
    pub(super) flipped_bit: Option<usize>,
    /// Held back, so that others may overtake it.
    pub(super) held_back: Option<Duration>,
    /// Added to the delay of all.
    pub(super) jitter: Duration,
}

impl Faults {
    /// Casts the dice for a packet of `len` bytes. As many are cast whatever
    /// they show, so that one fault doesn't change those of later packets.
    pub(super) fn cast(&self, random: &mut fastrand::Rng, len: usize) -> Fate {
        let mut happens = |probability: f64| random.f64() < probability;
        let lost = happens(self.loss);
        let duplicated = happens(self.duplicate);
        let reordered = happens(self.reorder);
        let corrupted = happens(self.corrupt);
        let mut up_to = |limit: Duration| limit.mul_f64(random.f64());
        let held_back = up_to(self.reorder_by);
        let jitter = up_to(self.jitter);
        let bit = covered_bit(random, len);
        Fate {
            lost,
            duplicated,
            flipped_bit: corrupted.then_some(bit),
            held_back: reordered.then_some(held_back),
            jitter,
        }
    }
}

/// A bit of a packet that the ICRC covers: not one of the BTH's fifth byte
/// (FECN, BECN), which it takes as ones.
fn covered_bit(random: &mut fastrand::Rng, len: usize) -> usize {
    const UNCOVERED: usize = 4;
    let byte = random.usize(..len.saturating_sub(1).max(1));
    let byte = if byte >= UNCOVERED { byte + 1 } else { byte };
    byte * 8 + random.usize(..8)
}

impl Verdict {
    /// What becomes of a packet that the dice have given `fate`.
    pub(super) fn apply(self, fate: Fate) -> Fate {
        let chosen = Fate {
            jitter: fate.jitter,
            ..Fate::default()
        };
        match self {
            Self::Pass => fate,
            Self::Drop => Fate {
                lost: true,
                ..chosen
            },
            Self::Corrupt(bit) => Fate {
                flipped_bit: Some(bit),
                ..chosen
            },
            Self::Duplicate => Fate {
                duplicated: true,
                ..chosen
            },
            Self::Delay(delay) => Fate {
                held_back: Some(delay),
                ..chosen
            },
        }
    }
}
