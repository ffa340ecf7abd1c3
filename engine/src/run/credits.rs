//! Credits of SEND over iWARP, where nothing tells a sender that the receiver
//! has no receive left: the connection would end. The receiver writes to the
//! sender's memory now and then how many messages it has received, and
//! the sender keeps within what it knows.

use verbs_sys::{
    Completion, CompletionQueue, PostError, QueuePair, RemoteAddress, SendOp, SendRequest, Sge,
};

use crate::exchange::KeyRecord;
use crate::options::Params;
use crate::setup::CreditMemory;

/// The number of no flow: the completion of a word counts for none.
const NO_FLOW: u64 = u64::MAX;

/// A receiver tells its count this often in the depth of its queue.
const TOLD_PER_DEPTH: u32 = 3;

/// What a sender knows of its receivers.
#[derive(Clone, Copy)]
pub(crate) struct Granted<'a> {
    memory: &'a CreditMemory,
    rx_depth: u64,
}

impl<'a> Granted<'a> {
    /// With receive queues of the depth that both ends use.
    pub(crate) fn new(memory: &'a CreditMemory, params: &Params) -> Self {
        Self {
            memory,
            rx_depth: params.rx_depth.into(),
        }
    }

    /// Whether the receiver of queue pair `qp` has room for `list` messages
    /// after `posted` ones.
    #[inline]
    pub(super) fn allows(&self, qp: usize, posted: u64, list: u64) -> bool {
        // The count is cut to its 32 bits, and so is what it is compared with.
        let ahead = ((posted + list) as u32).wrapping_sub(self.memory.told(qp));
        u64::from(ahead) < self.rx_depth
    }
}

/// Words about credits that may be on their way on a queue pair, beside the
/// messages: a sender that is up to date waits for no more than a few.
pub(crate) const WORDS: u32 = 16;

/// Tells the senders what has been received.
pub(crate) struct Returns<'a> {
    memory: &'a CreditMemory,
    words: Vec<Word>,
    /// Messages from one word to the next.
    every: u64,
    completions: [Completion; WORDS as usize],
}

/// Where the count of one queue pair goes.
struct Word {
    received: u64,
    sge: Sge,
    remote: RemoteAddress,
}

impl<'a> Returns<'a> {
    /// To the senders of all queue pairs.
    pub(crate) fn new(memory: &'a CreditMemory, peers: &[KeyRecord], params: &Params) -> Self {
        let words = peers.iter().enumerate().map(|(qp, peer)| Word {
            received: 0,
            sge: memory.count(qp),
            remote: RemoteAddress {
                addr: peer.vaddr,
                rkey: peer.rkey,
            },
        });
        Self {
            memory,
            words: words.collect(),
            every: u64::from((params.rx_depth / TOLD_PER_DEPTH).max(1)),
            completions: [Completion::default(); WORDS as usize],
        }
    }

    /// A message has been received on queue pair `index` of `qps`; tells the
    /// sender if it is time to. `cq` is where that completes, unless somebody
    /// else looks there.
    #[inline]
    pub(super) fn received(
        &mut self,
        index: usize,
        qps: &mut [Box<dyn QueuePair>],
        cq: Option<&mut dyn CompletionQueue>,
    ) -> Result<(), PostError> {
        let (Some(word), Some(qp)) = (self.words.get_mut(index), qps.get_mut(index)) else {
            return Ok(());
        };
        word.received += 1;
        if !word.received.is_multiple_of(self.every) {
            return Ok(());
        }
        if let Some(cq) = cq {
            // Makes room. A word that failed has taken the queue pair with it,
            // which the receives tell.
            cq.poll(&mut self.completions);
        }
        self.memory.set_count(index, word.received as u32);
        let op = SendOp::Write {
            remote: word.remote,
        };
        let sges = std::slice::from_ref(&word.sge);
        qp.post_send(&[SendRequest::signaled(NO_FLOW, op, sges)])
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;
    use crate::options::{SEND_BW, from_command_line};
    use crate::setup::fake::credit_memory;

    #[test]
    fn a_sender_keeps_within_what_it_was_told() {
        let args = ["-r", "10"].map(str::to_owned);
        let resolved = from_command_line(SEND_BW, "ib_send_bw", &args, 1);
        let memory = credit_memory(2);
        let granted = Granted::new(&memory, resolved.params().unwrap());
        assert!(granted.allows(1, 8, 1));
        assert!(!granted.allows(1, 9, 1));
        memory.tell(1, 5);
        assert!(granted.allows(1, 13, 1) && !granted.allows(1, 14, 1));
        assert!(!granted.allows(0, 9, 1), "each queue pair has its own");
        // The count goes round after 2^32 messages.
        memory.tell(1, u32::MAX);
        assert!(granted.allows(1, (1 << 32) + 7, 1));
        memory.forget();
        assert!(!granted.allows(1, 9, 1));
    }
}
