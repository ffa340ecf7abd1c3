//! Where rxe 6.1 answers otherwise than the rules, and we follow the rules.

use rxe_user::wire::{AtomicAckEth, Operation, Packet, Psn};

/// What a response says.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Answer {
    pub(crate) operation: Operation,
    pub(crate) psn: Psn,
    /// Syndrome and MSN.
    pub(crate) aeth: Option<(u8, u32)>,
    pub(crate) original: Option<AtomicAckEth>,
    pub(crate) payload: Vec<u8>,
}

impl Answer {
    pub(crate) fn of(packet: &Packet<'_>) -> Self {
        Self {
            operation: packet.operation(),
            psn: packet.psn(),
            aeth: packet.aeth().map(|aeth| (aeth.syndrome, aeth.msn.value())),
            original: packet.atomic_ack_eth(),
            payload: packet.payload().to_vec(),
        }
    }

    fn syndrome(&self) -> Option<u8> {
        self.aeth.map(|(syndrome, _)| syndrome)
    }
}

/// What a deviation makes of a recorded answer that ours differs from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Both are right in their way.
    Alike,
    /// We don't send this one.
    OnlyRecorded,
}

/// Recorded answers before this one, the recorded answer, and ours.
type Judge = fn(&[Answer], &Answer, Option<&Answer>) -> Option<Verdict>;

/// Reason and rule of each deviation.
const DEVIATIONS: [(&str, Judge); 5] = [
    (
        "a Send longer than the receive is an invalid request (IBTA table 60), rxe says operational error",
        |_, recorded, ours| {
            let pair = (recorded.syndrome(), ours?.syndrome());
            (pair == (Some(0x63), Some(0x61))).then_some(Verdict::Alike)
        },
    ),
    (
        "rxe sends a sequence NAK for what was under way behind a packet with an RNR NAK",
        |before, recorded, _| {
            let last = before.last()?;
            let follows = last.syndrome()? & 0xe0 == 0x20 && last.psn == recorded.psn;
            (follows && recorded.syndrome() == Some(0x60)).then_some(Verdict::OnlyRecorded)
        },
    ),
    (
        "rxe acknowledges a repetition of what it never saw with PSN 0xffffff, not the last one before the expected",
        |before, recorded, ours| {
            let fresh = before.iter().all(|answer| answer == recorded);
            let pair = (recorded.aeth, ours?.aeth);
            let first = recorded.psn == Psn::MAX && pair == (Some((0x1f, 0)), Some((0x1f, 0)));
            (fresh && first).then_some(Verdict::Alike)
        },
    ),
    (
        "rxe acknowledges each packet of a repeated message, asked for or not",
        |before, recorded, _| {
            let is_ack = recorded.operation == Operation::Acknowledge;
            (is_ack && before.contains(recorded)).then_some(Verdict::OnlyRecorded)
        },
    ),
    (
        "rxe goes on with Middle or Last when a Read is repeated from the middle, where First or Only is due (IBTA 9.7.5.1.3)",
        |_, recorded, ours| {
            use Operation as Op;
            let ours = ours?;
            let positions = matches!(
                (recorded.operation, ours.operation),
                (Op::ReadResponseMiddle, Op::ReadResponseFirst)
                    | (Op::ReadResponseLast, Op::ReadResponseOnly)
            );
            let same = (recorded.psn, &recorded.payload) == (ours.psn, &ours.payload);
            (positions && same).then_some(Verdict::Alike)
        },
    ),
];

/// Compares answers in order.
pub(crate) fn compare(name: &str, recorded: &[Answer], ours: &[Answer]) {
    let mut rest = ours;
    for (index, answer) in recorded.iter().enumerate() {
        let own = rest.first();
        if own == Some(answer) {
            rest = &rest[1..];
            continue;
        }
        let verdict = DEVIATIONS
            .iter()
            .find_map(|(_, judge)| judge(&recorded[..index], answer, own));
        match verdict {
            Some(Verdict::Alike) => rest = &rest[1..],
            Some(Verdict::OnlyRecorded) => {}
            None => panic!("{name}: response {index} is {answer:?}\nours is {own:?}"),
        }
    }
    // A capture may end in the middle of a Read's responses.
    let is_cut = recorded.last().is_some_and(|last| {
        let operation = last.operation;
        matches!(
            operation,
            Operation::ReadResponseFirst | Operation::ReadResponseMiddle
        )
    });
    assert!(
        rest.is_empty() || is_cut,
        "{name}: too many responses, {rest:?}"
    );
}

#[test]
fn golden_deviations_have_reasons() {
    for (reason, _) in DEVIATIONS {
        assert!(reason.contains("rxe"), "{reason}");
    }
}
