//! The key record as it goes over a connection of the connection manager
//! (`-R`, `-z`): stock's `struct pingpong_dest` with big-endian fields. It
//! grew by one field in 6.29.

use super::key::{KeyForm, KeyRecord};
use super::version::Version;

/// The first version whose record has the address of the tail markers.
const HAS_TAIL_MARKERS: f64 = 6.29;

/// GID index of an end that has none.
const NO_INDEX: u32 = u32::MAX;

/// Which of the two forms a record has; it follows from the peer's version.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinaryForm {
    /// 56 bytes, up to 6.28.
    Short,
    /// 64 bytes, from 6.29 on.
    Long,
}

impl BinaryForm {
    /// What a peer of this version sends, and what it expects: it knows
    /// nothing else.
    #[must_use]
    pub fn of(peer: &Version) -> Self {
        if peer.number() >= HAS_TAIL_MARKERS {
            Self::Long
        } else {
            Self::Short
        }
    }

    /// Length in bytes.
    #[must_use]
    pub fn length(self) -> usize {
        match self {
            Self::Short => 56,
            Self::Long => MAX_BINARY_KEY_LEN,
        }
    }
}

/// Length of the longer form.
pub const MAX_BINARY_KEY_LEN: usize = 64;

/// The message.
#[must_use]
pub fn encode(record: &KeyRecord, form: BinaryForm) -> Vec<u8> {
    let mut message = Vec::with_capacity(form.length());
    for field in [
        record.lid.into(),
        record.out_reads,
        record.qpn,
        record.psn,
        record.rkey,
        // Padding.
        0,
    ] {
        message.extend(field.to_be_bytes());
    }
    message.extend(record.vaddr.to_be_bytes());
    if form == BinaryForm::Long {
        message.extend(record.tail_markers.unwrap_or(0).to_be_bytes());
    }
    message.extend(record.gid.unwrap_or_default());
    message.extend(record.srqn.to_be_bytes());
    message.extend(record.gid_index.unwrap_or(NO_INDEX).to_be_bytes());
    message
}

/// Reads a record. What it has of GID and tail markers counts as far as our
/// own record has it (`ours`): stock sends rubbish where it has nothing.
/// `None` when the length or a number is impossible.
#[must_use]
pub fn parse(message: &[u8], form: BinaryForm, ours: KeyForm) -> Option<KeyRecord> {
    if message.len() != form.length() {
        return None;
    }
    let mut reader = Reader { rest: message };
    let lid = reader.u32()?;
    let out_reads = reader.u32()?;
    let qpn = reader.u32()?;
    let psn = reader.u32()?;
    let rkey = reader.u32()?;
    // Padding, of which stock sends whatever is there.
    reader.u32()?;
    let vaddr = reader.u64()?;
    let tail_markers = match form {
        BinaryForm::Short => 0,
        BinaryForm::Long => reader.u64()?,
    };
    let gid = reader.take()?;
    let srqn = reader.u32()?;
    let gid_index = reader.u32()?;
    Some(KeyRecord {
        lid: lid.try_into().ok()?,
        out_reads,
        qpn: Some(qpn).filter(|qpn| qpn >> 24 == 0)?,
        psn: Some(psn).filter(|psn| psn >> 24 == 0)?,
        rkey,
        vaddr,
        tail_markers: ours.tail_markers.then_some(tail_markers),
        gid: ours.gid.then_some(gid),
        srqn,
        gid_index: Some(gid_index).filter(|index| *index != NO_INDEX),
    })
}

/// Takes big-endian numbers off the front of a message.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (bytes, rest) = self.rest.split_first_chunk()?;
        self.rest = rest;
        Some(*bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.take().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.take().map(u64::from_be_bytes)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    const FULL: KeyForm = KeyForm {
        gid: true,
        tail_markers: true,
    };

    fn record() -> KeyRecord {
        KeyRecord {
            lid: 0x11,
            out_reads: 16,
            qpn: 0x141,
            psn: 0xe618f4,
            rkey: 0x396b,
            vaddr: 0x5577_98a9_c000,
            tail_markers: Some(0x5577_98a9_b000),
            gid: Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 0, 2, 1]),
            srqn: 5,
            gid_index: Some(1),
        }
    }

    #[test]
    fn the_form_follows_the_version() {
        for (version, length) in [("5.70", 56), ("6.06", 56), ("6.28", 56), ("6.29", 64)] {
            let form = BinaryForm::of(&Version::from_text(version));
            assert_eq!(form.length(), length, "{version}");
            assert_eq!(encode(&record(), form).len(), length, "{version}");
        }
    }

    #[test]
    fn records_survive() {
        let long = encode(&record(), BinaryForm::Long);
        assert_eq!(parse(&long, BinaryForm::Long, FULL), Some(record()));
        let short = encode(&record(), BinaryForm::Short);
        let form = KeyForm {
            tail_markers: false,
            ..FULL
        };
        let mut expected = record();
        expected.tail_markers = None;
        assert_eq!(parse(&short, BinaryForm::Short, form), Some(expected));
        // InfiniBand without a GID.
        expected.gid = None;
        expected.gid_index = None;
        let message = encode(&expected, BinaryForm::Short);
        let form = KeyForm { gid: false, ..form };
        assert_eq!(parse(&message, BinaryForm::Short, form), Some(expected));
    }

    #[test]
    fn impossible_records_are_refused() {
        let good = encode(&record(), BinaryForm::Short);
        assert_eq!(parse(&good, BinaryForm::Long, FULL), None);
        for length in 0..good.len() {
            assert_eq!(parse(&good[..length], BinaryForm::Short, FULL), None);
        }
        // LID, QPN and PSN have unused upper bits.
        for at in [0, 8, 12] {
            let mut bad = good.clone();
            bad[at] = 1;
            assert_eq!(parse(&bad, BinaryForm::Short, FULL), None, "{at}");
        }
        let mut padded = good;
        padded[20..24].fill(0xec);
        assert!(parse(&padded, BinaryForm::Short, FULL).is_some());
    }
}
