//! The requester half of a queue pair: what is in flight, what comes next,
//! and when to send again (IBTA 9.7.3, 9.7.5, 9.7.6).
//!
//! - [`transmit`]: segmentation, the window, and the request packets.
//! - [`response`]: acknowledgements, NAKs, read and atomic responses.

mod response;
mod transmit;

use std::time::Duration;

use verbs_sys::{Completion, QpAttributes, WcStatus};

use super::queue_pair::{Fault, Identity, Shared};
use super::send_queue::SendQueue;
use crate::time::Time;
use crate::wire::Psn;

/// Wait that an RNR NAK asks for, by timer code, in units of 10 µs (IBTA
/// table 45).
const RNR_WAIT: [u64; 32] = [
    65536, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256, 384, 512, 768, 1024, 1536,
    2048, 3072, 4096, 6144, 8192, 12288, 16384, 24576, 32768, 49152,
];

/// Four periods of the timeout, as a power of two.
const LONGEST_PATIENCE: u8 = 2;

/// Retry count that never runs out (IBTA 9.7.5.2.8, RNR retry).
const RNR_RETRY_FOREVER: u8 = 7;

/// The time that an RNR timer code stands for.
pub(crate) fn rnr_wait(code: u8) -> Duration {
    let index = usize::from(code & 0x1f);
    Duration::from_micros(RNR_WAIT.get(index).copied().unwrap_or(0) * 10)
}

/// The time that a local ACK timeout exponent stands for: 4.096 µs × 2^n; no
/// timeout for 0 (IBTA 9.7.6.1.3).
pub(crate) fn ack_timeout(exponent: u8) -> Option<Duration> {
    (exponent != 0).then(|| Duration::from_nanos(4096 << exponent.min(31)))
}

/// What the requester was told when the queue pair went to RTS.
#[derive(Debug, Clone, Copy, Default)]
struct Limits {
    timeout: Option<Duration>,
    retry_cnt: u8,
    rnr_retry: u8,
    max_rd_atomic: u32,
    /// Packets that may be unacknowledged.
    window: u32,
}

/// The requester half of a queue pair.
///
/// PSNs from `una` to `nxt` are in flight; `send` is the next to leave, which
/// is `nxt` unless something is being sent again.
#[derive(Debug)]
pub(crate) struct Requester {
    pub(crate) queue: SendQueue,
    limits: Limits,
    /// Oldest unacknowledged PSN.
    una: Psn,
    /// Next PSN that has never been sent.
    nxt: Psn,
    /// Next PSN to send.
    send: Psn,
    /// Position of the request that `send` belongs to.
    cursor: u64,
    /// Packet of that request that `send` is.
    cursor_packet: u32,
    /// Packets since the last one that asked for an acknowledgement.
    since_ack_request: u32,
    /// Reads and atomics sent and not answered.
    outstanding_reads: u32,
    retries_left: u8,
    rnr_retries_left: u8,
    /// When to send again for want of an acknowledgement.
    ack_deadline: Option<Time>,
    /// Until when the peer wants to be left alone.
    rnr_until: Option<Time>,
    /// Sent again from `una` already, without progress since.
    went_back: bool,
    /// A request that can't be executed, and why; fails when its turn comes.
    local_fault: Option<(u64, WcStatus)>,
}

impl Requester {
    pub(crate) fn new(queue: SendQueue) -> Self {
        Self {
            queue,
            limits: Limits::default(),
            una: Psn::default(),
            nxt: Psn::default(),
            send: Psn::default(),
            cursor: 0,
            cursor_packet: 0,
            since_ack_request: 0,
            outstanding_reads: 0,
            retries_left: 0,
            rnr_retries_left: 0,
            ack_deadline: None,
            rnr_until: None,
            went_back: false,
            local_fault: None,
        }
    }

    /// Takes over the attributes that concern the requester.
    pub(crate) fn configure(&mut self, attributes: &QpAttributes, window: u32) {
        self.limits.window = window;
        if let Some(timeout) = attributes.timeout {
            self.limits.timeout = ack_timeout(timeout);
        }
        if let Some(retry_cnt) = attributes.retry_cnt {
            self.limits.retry_cnt = retry_cnt;
        }
        if let Some(rnr_retry) = attributes.rnr_retry {
            self.limits.rnr_retry = rnr_retry;
        }
        if let Some(max) = attributes.max_qp_rd_atomic {
            self.limits.max_rd_atomic = u32::from(max);
        }
        if let Some(psn) = attributes.sq_psn {
            self.una = Psn::new(psn);
            self.nxt = self.una;
            self.send = self.una;
            self.cursor = self.queue.head();
            self.cursor_packet = 0;
        }
        self.reload_retries();
    }

    /// Forgets everything (RESET).
    pub(crate) fn reset(&mut self) {
        self.queue.clear();
        self.cursor = self.queue.head();
        self.cursor_packet = 0;
        self.since_ack_request = 0;
        self.outstanding_reads = 0;
        self.ack_deadline = None;
        self.rnr_until = None;
        self.went_back = false;
        self.local_fault = None;
    }

    pub(crate) fn next_psn(&self) -> Psn {
        self.nxt
    }

    pub(crate) fn max_rd_atomic(&self) -> u32 {
        self.limits.max_rd_atomic
    }

    /// Whether packets wait for their acknowledgement.
    pub(crate) fn has_in_flight(&self) -> bool {
        self.una != self.nxt
    }

    /// Whether nothing is in flight and no message is half sent.
    pub(crate) fn is_drained(&self) -> bool {
        self.una == self.nxt && self.cursor_packet == 0
    }

    /// When [`Self::on_timer`] has something to do.
    pub(crate) fn deadline(&self) -> Option<Time> {
        self.rnr_until.or(self.ack_deadline)
    }

    /// Sends again what has waited too long. Says whether there is something
    /// to transmit.
    pub(crate) fn on_timer(
        &mut self,
        identity: &Identity,
        now: Time,
        shared: &mut Shared,
    ) -> Result<bool, Fault> {
        if self.rnr_until.is_some_and(|until| until <= now) {
            self.rnr_until = None;
            self.go_back();
            return Ok(true);
        }
        if self.rnr_until.is_none() && self.ack_deadline.is_some_and(|deadline| deadline <= now) {
            shared.counters.timeouts += 1;
            // What was sent again may have been lost as well.
            self.went_back = false;
            self.retry(identity, WcStatus::RetryExceeded, shared)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Fails all requests that are left (IBTA 10.3.1, Error state).
    pub(crate) fn flush(&mut self, identity: &Identity, shared: &mut Shared) {
        while !self.queue.is_empty() {
            self.complete_head(identity, WcStatus::WorkRequestFlushed, 0, shared);
        }
        self.cursor = self.queue.head();
        self.cursor_packet = 0;
        self.una = self.nxt;
        self.send = self.nxt;
        self.outstanding_reads = 0;
        self.ack_deadline = None;
        self.rnr_until = None;
        self.local_fault = None;
    }

    /// Goes back to `una`, at the cost of one retry; without retries left the
    /// request there fails with `status`. Nothing happens when it has gone
    /// back there already: one loss costs one retry.
    fn retry(
        &mut self,
        identity: &Identity,
        status: WcStatus,
        shared: &mut Shared,
    ) -> Result<(), Fault> {
        if self.went_back {
            return Ok(());
        }
        if self.retries_left == 0 {
            return Err(self.fail_head(identity, status, 0, shared));
        }
        self.retries_left -= 1;
        self.went_back = true;
        self.go_back();
        Ok(())
    }

    /// Makes `una` the next PSN to send (go-back-N). The timer starts anew
    /// with the first packet.
    fn go_back(&mut self) {
        self.ack_deadline = None;
        self.send = self.una;
        self.cursor = self.queue.head();
        self.cursor_packet = self.packets_into_head();
        self.outstanding_reads = 0;
        self.since_ack_request = 0;
    }

    /// How many packets of the oldest request are acknowledged.
    fn packets_into_head(&self) -> u32 {
        match self
            .queue
            .get(self.queue.head())
            .and_then(|wqe| wqe.first_psn)
        {
            Some(first) => self.una.diff(first).max(0) as u32,
            None => 0,
        }
    }

    /// How long to wait for an acknowledgement: the timeout itself at first,
    /// and up to four times as long when that was too short, as IBTA 9.7.6.1.3
    /// allows. A peer on a busy host that isn't scheduled in time is not lost.
    fn patience(&self) -> Option<Duration> {
        let retried = self.limits.retry_cnt.saturating_sub(self.retries_left);
        let periods = 1 << retried.min(LONGEST_PATIENCE);
        self.limits.timeout.map(|timeout| timeout * periods)
    }

    fn reload_retries(&mut self) {
        self.retries_left = self.limits.retry_cnt;
        self.rnr_retries_left = self.limits.rnr_retry;
    }

    /// Completes the oldest request; successes only when they are signalled.
    fn complete_head(
        &mut self,
        identity: &Identity,
        status: WcStatus,
        vendor_err: u32,
        shared: &mut Shared,
    ) {
        let Some(wqe) = self.queue.pop() else { return };
        if status == WcStatus::Success && !wqe.signaled {
            return;
        }
        let completion = Completion {
            wr_id: wqe.wr_id,
            status,
            opcode: wqe.wc_opcode(),
            vendor_err,
            byte_len: wqe.length as u32,
            qp_num: identity.qpn,
            ..Completion::default()
        };
        shared
            .cqs
            .push(identity.send_cq, completion, false, &mut shared.events);
    }

    /// Fails the oldest request, and with it the queue pair.
    fn fail_head(
        &mut self,
        identity: &Identity,
        status: WcStatus,
        vendor_err: u32,
        shared: &mut Shared,
    ) -> Fault {
        self.complete_head(identity, status, vendor_err, shared);
        Fault::send_queue()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rnr_timer_codes_match_the_table() {
        let cases = [
            (0, 655_360),
            (1, 10),
            (14, 1_280),
            (25, 61_440),
            (31, 491_520),
        ];
        for (code, micros) in cases {
            assert_eq!(rnr_wait(code), Duration::from_micros(micros), "code {code}");
        }
    }

    #[test]
    fn ack_timeouts_double_per_step() {
        assert_eq!(ack_timeout(0), None);
        assert_eq!(ack_timeout(1), Some(Duration::from_nanos(8192)));
        assert_eq!(ack_timeout(14), Some(Duration::from_nanos(67_108_864)));
        assert_eq!(ack_timeout(31), Some(Duration::from_nanos(4096 << 31)));
    }
}
