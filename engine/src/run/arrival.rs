//! How an end of a ping-pong learns that a message has come.

use verbs_sys::memory::Buffer;
use verbs_sys::{Completion, CompletionQueue, Context, QueuePair, ReceiveRequest, WcFlags};

use super::error::RunError;
use super::receiver::{check_receive, initial_receives, requests, required_flags};
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
}

impl<'a> LastByte<'a> {
    /// For messages of `size` bytes on the first queue pair.
    pub(crate) fn new(context: &'a dyn Context, memory: &'a Memory, size: usize) -> Self {
        Self {
            context,
            byte: Byte::last_of(memory, memory.layout.published(0), size),
        }
    }
}

impl Arrival for LastByte<'_> {
    #[inline]
    fn has_come(&mut self, _: &mut dyn QueuePair, number: u64, _: u64) -> Result<bool, RunError> {
        // The peer counts in the last byte, too.
        if self.byte.load() == Some(number as u8) {
            return Ok(true);
        }
        self.context.progress();
        Ok(false)
    }
}

/// By the completion of the receive that the message consumes.
pub(crate) struct Receipt<'a> {
    cq: &'a mut dyn CompletionQueue,
    request: Vec<ReceiveRequest<'static>>,
    flags: WcFlags,
    posted: u64,
}

impl<'a> Receipt<'a> {
    /// On the first queue pair, completing on `cq`.
    /// [`super::post_receives`] has been called.
    pub(crate) fn new(cq: &'a mut dyn CompletionQueue, params: &Params) -> Self {
        Self {
            cq,
            request: requests(0, 1),
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
            qp.post_recv(&self.request)
                .map_err(|source| RunError::PostReceive {
                    qp: 0,
                    received: Some(number),
                    source,
                })?;
        }
        Ok(true)
    }
}
