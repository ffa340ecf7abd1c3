//! How an end of a ping-pong learns that a message has come.

use verbs_sys::memory::Buffer;
use verbs_sys::{
    Completion, CompletionQueue, Context, Notify, QueuePair, ReceiveRequest, SharedReceiveQueue,
    WcFlags,
};

use super::error::RunError;
use super::latency::Table;
use super::receiver::{check_receive, initial_receives, required_flags};
use super::requests::PreparedReceives;
use crate::options::Params;
use crate::setup::{Memory, Place};

/// Sees messages come, one after the other.
pub(crate) trait Arrival {
    /// Whether message `number` (1-based) has come. The queue pair carries on
    /// until message `limit`.
    fn has_come(
        &mut self,
        qp: &mut dyn QueuePair,
        number: u64,
        limit: u64,
    ) -> Result<bool, RunError>;

    /// Asks for a notification of the next message, where there is one.
    fn arm(&mut self);
}

/// A byte in registered memory, known to be inside its buffer.
pub(super) struct Byte<'a> {
    buffer: &'a Buffer,
    offset: usize,
}

impl<'a> Byte<'a> {
    /// The last byte of a message, which lies in an area of the layout and so
    /// inside the buffer.
    pub(super) fn last_of(memory: &'a Memory, message: Place, size: usize) -> Self {
        Self {
            buffer: memory.buffer(message),
            offset: message.offset + size.saturating_sub(1),
        }
    }

    #[inline]
    fn load(&self) -> Option<u8> {
        self.buffer.load_u8(self.offset).ok()
    }

    #[inline]
    pub(super) fn store(&self, value: u8) {
        let _ = self.buffer.store_u8(self.offset, value);
    }
}

/// By the last byte of the message: RDMA WRITE tells nobody.
pub(crate) struct LastByte<'a> {
    context: &'a dyn Context,
    byte: Byte<'a>,
    /// Messages of this size in earlier runs.
    earlier: u64,
}

impl<'a> LastByte<'a> {
    /// For messages to queue pair `qp`.
    pub(crate) fn new(
        context: &'a dyn Context,
        memory: &'a Memory,
        qp: usize,
        table: &Table<'_>,
    ) -> Self {
        Self {
            context,
            byte: Byte::last_of(memory, memory.layout.published(qp), table.size),
            earlier: table.earlier,
        }
    }
}

impl Arrival for LastByte<'_> {
    #[inline]
    fn has_come(&mut self, _: &mut dyn QueuePair, number: u64, _: u64) -> Result<bool, RunError> {
        // The peer counts in the last byte, too.
        if self.byte.load() == Some(self.earlier.wrapping_add(number) as u8) {
            return Ok(true);
        }
        self.context.progress();
        Ok(false)
    }

    fn arm(&mut self) {}
}

/// By the completion of the receive that the message consumes.
pub(crate) struct Receipt<'a> {
    cq: &'a mut dyn CompletionQueue,
    srq: Option<&'a mut dyn SharedReceiveQueue>,
    requests: Vec<ReceiveRequest<'a>>,
    flags: WcFlags,
    posted: u64,
}

impl<'a> Receipt<'a> {
    /// On one queue pair, completing on `cq`.
    /// [`super::post_receives`] has been called with the same receives.
    pub(crate) fn new(
        cq: &'a mut dyn CompletionQueue,
        srq: &'a mut Option<Box<dyn SharedReceiveQueue>>,
        prepared: &'a PreparedReceives,
        params: &Params,
    ) -> Self {
        Self {
            cq,
            srq: srq.as_mut().map(|srq| &mut **srq as _),
            requests: prepared.requests(),
            flags: required_flags(params),
            posted: initial_receives(params),
        }
    }
}

impl Arrival for Receipt<'_> {
    #[inline]
    fn has_come(
        &mut self,
        qp: &mut dyn QueuePair,
        number: u64,
        limit: u64,
    ) -> Result<bool, RunError> {
        let mut completion = [Completion::default()];
        if self.cq.poll(&mut completion) == 0 {
            return Ok(false);
        }
        check_receive(&completion[0], self.flags, number - 1)?;
        if self.posted < limit {
            self.posted += 1;
            // One place serves: a message is looked at by nobody.
            let request = self.requests.get(..1).unwrap_or_default();
            let posted = match &mut self.srq {
                Some(srq) => srq.post_recv(request),
                None => qp.post_recv(request),
            };
            posted.map_err(|source| RunError::PostReceive {
                qp: 0,
                received: Some(number),
                source,
            })?;
        }
        Ok(true)
    }

    fn arm(&mut self) {
        self.cq.arm(Notify::Any);
    }
}
