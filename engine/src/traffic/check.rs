//! Whether the right data came in (`--check_payload`).

use std::collections::BTreeSet;
use std::time::Duration;

use verbs_sys::memory::Buffer;

use super::Test;
use crate::options::{Atomic, Length, Params, Sizes};
use crate::setup::{Memory, Payload, Place};
use crate::stats::Moment;
use crate::words::{Connection, Verb};

/// How long messages that nobody sees come may be under way.
const UNSEEN: Duration = Duration::from_secs(1);

/// What came in isn't what should have come.
#[derive(Debug, thiserror::Error, PartialEq, Eq)]
pub enum WrongData {
    /// A message isn't the payload.
    #[error(
        "--check_payload: byte {byte} of message place {slot} of queue pair {qp} is {found:#04x}, \
         not {expected:#04x}; give both ends the same payload file, else the path or a device \
         corrupts data"
    )]
    Payload {
        /// Index of the queue pair.
        qp: usize,
        /// Which of the places that messages take in turn.
        slot: usize,
        /// Byte of the message.
        byte: usize,
        /// What is there.
        found: u8,
        /// What should be there.
        expected: u8,
    },
    /// A chunk isn't what the sender fills it with.
    #[error(
        "--data_validation: {errors} of the chunks that came in are wrong, the first at byte \
         {offset} of a message in chunk {chunk} of the ring of queue pair {qp}: it is \
         {found:#04x}, not {expected:#04x}; the path, a device or the peer corrupts data"
    )]
    Chunk {
        /// Which end says so, where both do.
        role: &'static str,
        /// Chunks that are wrong.
        errors: u64,
        /// Index of the queue pair.
        qp: usize,
        /// Chunk of its ring.
        chunk: usize,
        /// Byte of the message.
        offset: usize,
        /// What is there.
        found: u8,
        /// What should be there.
        expected: u8,
    },
    /// The counters that the peer worked on show another number of operations.
    #[error(
        "--check_payload: the counters of queue pair {qp} sum up to {found}, not {expected}: \
         an atomic operation was lost or done twice"
    )]
    Counter {
        /// Index of the queue pair.
        qp: usize,
        /// What they show.
        found: u64,
        /// How many operations there were.
        expected: u64,
    },
}

impl WrongData {
    /// What stock prints, of what it looks at, too.
    pub(crate) fn stock_text(&self) -> String {
        match self {
            Self::Chunk {
                role,
                errors,
                qp,
                chunk,
                offset,
                found,
                expected,
            } => format!(
                "VALIDATION: FAILED{role} - {errors} error(s), first at QP {qp}, Chunk {chunk}, \
                 Offset {offset} (expected {expected:#04x}, got {found:#04x})\n"
            ),
            Self::Payload { .. } | Self::Counter { .. } => String::new(),
        }
    }
}

impl Test<'_> {
    /// Looks at everything that came in, after the end of the traffic.
    pub(super) fn check_payload(&mut self) -> Result<(), WrongData> {
        let params = self.params;
        if !params.memory.check_payload {
            return Ok(());
        }
        let start = Moment::now();
        loop {
            let checked = check(params, &self.resources.memory);
            let waits = checked.is_err() && comes_unseen(params);
            if !waits || Moment::now() - start > UNSEEN {
                return checked;
            }
            self.adapter.context.progress();
        }
    }
}

/// Whether no completion, neither here nor at the peer, tells that the messages
/// have come: then the last of them may be under way when the dialogue is over.
fn comes_unseen(params: &Params) -> bool {
    params.connection == Connection::Uc && params.verb() == Verb::Write
}

fn check(params: &Params, memory: &Memory) -> Result<(), WrongData> {
    let answers = params.bidirectional || !params.is_active() || params.receives();
    let first = params.first_receiver();
    let layout = &memory.layout;
    for flow in 0..params.flows() as usize {
        let own = first + flow;
        // Where it came in, where it came from, and bytes from place to place.
        let size = layout.size;
        let (into, from, length) = match params.verb() {
            Verb::Atomic if answers => {
                count(params, memory, flow)?;
                continue;
            }
            Verb::Write | Verb::WriteImm if answers || !params.tool.is_bandwidth() => {
                (layout.published(own), layout.sends_from(flow), size)
            }
            Verb::Send | Verb::SendImm if answers => {
                let mut into = layout.receives_into(own);
                into.offset += layout.header;
                (into, layout.sends_from(flow), layout.received(size))
            }
            Verb::Read if params.is_active() => {
                let from = layout.published(params.partner(flow));
                (layout.sends_from(flow), from, size)
            }
            _ => continue,
        };
        let Some(payload) = memory.payload() else {
            continue;
        };
        let phases = phases(params, memory, payload, from);
        for slot in 0..touched(params, layout.slots(length)) {
            let offset = into.offset + slot * layout.stride(length);
            let mut message = vec![0; size];
            // Inside the buffer by the layout.
            let _ = memory.buffer(into).read(offset, &mut message);
            compare(&message, payload, &phases, |byte| counts(params, byte)).map_err(
                |(byte, expected)| WrongData::Payload {
                    qp: own,
                    slot,
                    byte,
                    found: message[byte],
                    expected,
                },
            )?;
        }
    }
    Ok(())
}

/// Where in the pattern a message may begin: at any place of any queue pair
/// that the peer takes messages from. Who draws from a shared receive queue
/// gets anybody's.
fn phases(params: &Params, memory: &Memory, payload: &Payload, from: Place) -> BTreeSet<usize> {
    let layout = &memory.layout;
    let flows = match params.use_srq {
        true => params.flows() as usize,
        false => 1,
    };
    let areas = (0..flows).map(|flow| match flows {
        1 => from.offset,
        _ => layout.sends_from(flow).offset,
    });
    areas
        .flat_map(|area| {
            (0..layout.slots(layout.size)).map(move |slot| area + slot * layout.stride(layout.size))
        })
        .map(|offset| offset % payload.period())
        .collect()
}

/// How many of the places that messages take in turn have seen one. A latency
/// test stays at the first; a timed run goes round many times.
fn touched(params: &Params, slots: usize) -> usize {
    match params.length {
        _ if !params.tool.is_bandwidth() => 1,
        _ if params.post_list > 1 => slots.min(params.post_list as usize),
        Length::Iterations(count) => slots.min(usize::try_from(count).unwrap_or(slots)),
        Length::Timed { .. } | Length::Infinite { .. } => slots,
    }
}

/// Whether a byte belongs to the payload: ib_write_lat numbers its messages
/// in their last bytes.
fn counts(params: &Params, byte: usize) -> bool {
    let length = byte + 1;
    !params.polls_memory()
        || match params.sizes {
            Sizes::One(size) => length != size as usize,
            Sizes::All { .. } => !length.is_power_of_two(),
        }
}

/// The message has to be the pattern from one of the phases on. On failure:
/// the first wrong byte and what it should be, of the phase that goes furthest.
fn compare(
    message: &[u8],
    payload: &Payload,
    phases: &BTreeSet<usize>,
    counts: impl Fn(usize) -> bool,
) -> Result<(), (usize, u8)> {
    let mut furthest = None;
    for phase in phases {
        let expected = payload.from(*phase, message.len());
        let mut bytes = message.iter().zip(&expected).enumerate();
        let Some((byte, _)) = bytes.find(|(byte, (a, b))| a != b && counts(*byte)) else {
            return Ok(());
        };
        if furthest.is_none_or(|(other, _)| byte > other) {
            furthest = Some((byte, expected[byte]));
        }
    }
    furthest.map_or(Ok(()), Err)
}

/// The sum of the counters of a queue pair is the number of additions.
fn count(params: &Params, memory: &Memory, qp: usize) -> Result<(), WrongData> {
    let Length::Iterations(iterations) = params.length else {
        return Ok(());
    };
    let expected = match params.atomic {
        Atomic::FetchAdd => iterations * u64::from(params.repeat),
        Atomic::CompareSwap => 0,
    };
    let layout = &memory.layout;
    let place = layout.published(params.first_receiver() + qp);
    let counter = |slot| read_u64(memory.buffer(place), place.offset + slot * layout.stride(8));
    let found = (0..layout.slots(8)).map(counter).fold(0, u64::wrapping_add);
    match found == expected {
        true => Ok(()),
        false => Err(WrongData::Counter {
            qp,
            found,
            expected,
        }),
    }
}

fn read_u64(buffer: &Buffer, offset: usize) -> u64 {
    let mut bytes = [0; 8];
    // Inside the buffer by the layout.
    let _ = buffer.read(offset, &mut bytes);
    u64::from_ne_bytes(bytes)
}
