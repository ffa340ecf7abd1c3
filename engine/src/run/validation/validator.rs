//! Looks through the chunks that are complete.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::thread::JoinHandle;
use std::time::Duration;

use verbs_sys::memory::Buffer;

use crate::setup::RingLayout;

/// Bytes that are looked at together.
const PIECE: usize = 16 << 10;

/// How long the thread sleeps when it has found nothing several times.
const NAP: Duration = Duration::from_micros(20);
const PATIENCE: u32 = 64;

/// A byte that isn't what it should be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mismatch {
    /// Index of the queue pair.
    pub(crate) qp: usize,
    /// Chunk of its ring.
    pub(crate) chunk: usize,
    /// Byte of the message.
    pub(crate) offset: usize,
    pub(crate) expected: u8,
    pub(crate) found: u8,
}

/// What a validator has seen.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Verdict {
    /// Messages it has looked at, and their bytes.
    pub(crate) messages: u64,
    pub(crate) bytes: u64,
    /// Chunks that were wrong, and the first wrong byte of the first.
    pub(crate) errors: u64,
    pub(crate) first: Option<Mismatch>,
    /// Chunks that the sender went over while they were looked at.
    pub(crate) overtaken: u64,
    /// Chunks that it had gone over before.
    pub(crate) missed: u64,
}

/// A validator at work.
pub(crate) struct Validation {
    stop: Arc<AtomicBool>,
    thread: Option<JoinHandle<Verdict>>,
}

impl Validation {
    /// Begins to look at the rings in this buffer.
    ///
    /// # Errors
    /// There is no thread to be had.
    pub(crate) fn start(buffer: Buffer, layout: RingLayout) -> io::Result<Self> {
        let stop = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&stop);
        let work = move || {
            let mut validator = Validator::new(buffer, layout);
            let mut idle = 0;
            loop {
                // What was complete before the end counts.
                let last = seen.load(Ordering::Acquire);
                if validator.look() {
                    idle = 0;
                } else if last {
                    return validator.verdict;
                } else {
                    idle += 1;
                    match idle < PATIENCE {
                        true => std::hint::spin_loop(),
                        false => std::thread::sleep(NAP),
                    }
                }
            }
        };
        let builder = std::thread::Builder::new().name("validator".to_owned());
        Ok(Self {
            stop,
            thread: Some(builder.spawn(work)?),
        })
    }

    /// Looks at what is complete by now, and ends.
    pub(crate) fn end(mut self) -> Verdict {
        self.stop.store(true, Ordering::Release);
        let ended = self.thread.take().map(JoinHandle::join);
        // The thread doesn't panic.
        ended.and_then(Result::ok).unwrap_or_default()
    }
}

impl Drop for Validation {
    fn drop(&mut self) {
        self.stop.store(true, Ordering::Release);
        if let Some(thread) = self.thread.take() {
            // The test has failed, nobody wants to know any more.
            let _ = thread.join();
        }
    }
}

/// The eye on the rings of all queue pairs.
pub(super) struct Validator {
    buffer: Buffer,
    layout: RingLayout,
    /// Chunks of each queue pair that are done with, from the beginning on.
    done: Vec<u64>,
    piece: Vec<u8>,
    pub(super) verdict: Verdict,
}

impl Validator {
    pub(super) fn new(buffer: Buffer, layout: RingLayout) -> Self {
        Self {
            buffer,
            done: vec![0; layout.qps],
            piece: vec![0; PIECE.min(layout.chunk_bytes())],
            layout,
            verdict: Verdict::default(),
        }
    }

    /// Looks at the next chunk of each queue pair. `false`: none was complete.
    pub(super) fn look(&mut self) -> bool {
        let mut found = false;
        for qp in 0..self.layout.qps {
            found |= self.look_at(qp);
        }
        found
    }

    fn look_at(&mut self, qp: usize) -> bool {
        let (chunk, round) = self.next(qp);
        let signals = self.signals(qp, chunk);
        if signals <= round {
            return false;
        }
        if signals == round + 1 {
            let wrong = self.first_wrong(qp, chunk, RingLayout::pattern_byte(round));
            match wrong {
                // A sender that only waits for us, its ring full, hasn't begun.
                Some(Mismatch { found, .. })
                    if found == RingLayout::pattern_byte(round + 1)
                        && self.is_overtaken(qp, chunk, round) =>
                {
                    self.verdict.overtaken += 1;
                }
                Some(mismatch) => {
                    self.verdict.errors += 1;
                    self.verdict.first.get_or_insert(mismatch);
                }
                None => {}
            }
            self.verdict.messages += self.layout.chunk as u64;
            self.verdict.bytes += self.layout.chunk_bytes() as u64;
        } else {
            self.verdict.missed += 1;
        }
        self.done[qp] += 1;
        let done = self.done[qp];
        self.buffer
            .with_atomic_u64(self.layout.checked(qp), |word| {
                word.store(done, Ordering::Release);
            });
        true
    }

    /// The next chunk of a queue pair's ring, and in which round.
    fn next(&self, qp: usize) -> (usize, u64) {
        let chunks = self.layout.chunks as u64;
        // Less than the number of chunks.
        ((self.done[qp] % chunks) as usize, self.done[qp] / chunks)
    }

    /// How often a chunk has been complete.
    fn signals(&self, qp: usize, chunk: usize) -> u64 {
        let word = self.layout.signal(qp, chunk);
        let load = |word: &std::sync::atomic::AtomicU64| word.load(Ordering::Acquire);
        self.buffer.with_atomic_u64(word, load).unwrap_or(0)
    }

    /// Whether the sender may have begun with the next round of this chunk:
    /// it does so after it has completed the chunk before.
    fn is_overtaken(&self, qp: usize, chunk: usize, round: u64) -> bool {
        // The signals are looked at after the bytes.
        fence(Ordering::Acquire);
        match chunk.checked_sub(1) {
            Some(before) => self.signals(qp, before) > round + 1,
            None => self.signals(qp, self.layout.chunks - 1) > round,
        }
    }

    /// The first byte of a chunk that isn't as expected.
    fn first_wrong(&mut self, qp: usize, chunk: usize, expected: u8) -> Option<Mismatch> {
        let start = self.layout.message(qp, chunk * self.layout.chunk);
        let length = self.layout.chunk_bytes();
        for offset in (0..length).step_by(self.piece.len()) {
            let piece = &mut self.piece[..PIECE.min(length - offset)];
            // Inside the buffer by the layout.
            let _ = self.buffer.read(start + offset, piece);
            if piece.iter().fold(0, |all, byte| all | (byte ^ expected)) == 0 {
                continue;
            }
            let wrong = piece.iter().position(|byte| *byte != expected)?;
            return Some(Mismatch {
                qp,
                chunk,
                offset: (offset + wrong) % self.layout.size,
                expected,
                found: piece[wrong],
            });
        }
        None
    }
}
