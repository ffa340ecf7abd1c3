//! What can go wrong while messages flow.

use std::time::Duration;

use verbs_sys::{Completion, PostError, WcFlags, WcStatus};

use crate::failure::seconds;
use crate::screen::ScreenError;

/// Why a run ended early.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// A work request failed.
    #[error(
        "a message failed on queue pair {:#08x}: {}; {}",
        completion.qp_num, completion.status, advice(completion.status)
    )]
    Completion {
        /// How.
        completion: Completion,
        /// Messages posted until then, over all queue pairs.
        posted: u64,
        /// Messages completed until then.
        completed: u64,
    },
    /// A receive failed.
    #[error(
        "a receive failed on queue pair {:#08x}: {}; {}",
        completion.qp_num, completion.status, advice(completion.status)
    )]
    Receive {
        /// How.
        completion: Completion,
        /// Messages received until then, over all queue pairs.
        received: u64,
    },
    /// A message came without immediate data.
    #[error(
        "a message without immediate data came on queue pair {:#08x}; \
         give both ends the same options",
        completion.qp_num
    )]
    NoImmediate {
        /// What came.
        completion: Completion,
        /// Messages received until then, over all queue pairs.
        received: u64,
    },
    /// A receive was refused.
    #[error("a receive was refused when it was posted: {source}; -r is the depth of the queue")]
    PostReceive {
        /// Index of the queue pair.
        qp: usize,
        /// Messages received until then; `None` before the run.
        received: Option<u64>,
        /// Why.
        source: PostError,
    },
    /// No message has come for a long time.
    #[error(
        "no message came for {}; look at the peer, it may be stopped, and on an unreliable \
         connection (-c UC, -c UD) messages may be lost; --peer-timeout changes the limit",
        seconds(*waited)
    )]
    NothingCame {
        /// For how long.
        waited: Duration,
        /// Messages received until then, over all queue pairs.
        received: u64,
        /// Messages that should have come.
        expected: u64,
    },
    /// A work request was refused.
    #[error("a message was refused when it was posted: {source}")]
    Post {
        /// Index of the queue pair; `None` where stock doesn't tell.
        qp: Option<usize>,
        /// Messages posted on it before.
        posted: u64,
        /// Depth of its send queue.
        tx_depth: u32,
        /// Why.
        source: PostError,
    },
    /// The peer closed the control connection.
    #[error(
        "the peer closed the control connection during the test; \
         it was stopped or failed, its own screen says why"
    )]
    PeerGone,
    /// The connection manager says that our device is no more.
    #[error("the RDMA device was removed during the test: bring it back and start again")]
    DeviceGone,
    /// Nothing has moved for a long time.
    #[error(
        "no message went through for {}; look at the peer, it may be stopped, and on an \
         unreliable connection (-c UC) a message may be lost; --peer-timeout changes the limit",
        seconds(*waited)
    )]
    Stalled {
        /// For how long.
        waited: Duration,
    },
    /// Nothing moves, and the device says that something is wrong with it.
    #[error("no message went through for {}", seconds(*waited))]
    DeviceDown {
        /// For how long.
        waited: Duration,
    },
    /// The provider can't wait for completions.
    #[error("cannot wait for completions: {0}; leave -e out")]
    Wait(verbs_sys::VerbsError),
    /// The user wants an end.
    #[error("interrupted")]
    Interrupted,
    /// The screen can't be written to.
    #[error(transparent)]
    Screen(#[from] ScreenError),
}

impl RunError {
    /// The lines of stock perftest, up to what the tool itself adds.
    #[must_use]
    pub fn stock_text(&self) -> String {
        match self {
            Self::Completion {
                completion,
                posted,
                completed,
            } => format!(
                " Completion with error at client\n Failed status-{} ({}): wr_id {} syndrom {:#x}\n \
                 scnt={posted}, ccnt={completed}\n",
                completion.status, completion.status as u8, completion.wr_id, completion.vendor_err
            ),
            Self::Post {
                qp: Some(qp),
                posted,
                tx_depth,
                source,
            } => format!(
                "Couldn't post send: qp {qp} scnt={posted} || err={} tx_depth={tx_depth}\n",
                source.source.errno()
            ),
            Self::Wait(_) => "Couldn't request CQ notification\n".to_owned(),
            Self::Post {
                qp: None, posted, ..
            } => format!("Couldn't post send: scnt={posted}\n"),
            Self::Receive {
                completion,
                received,
            } => format!(
                " Completion with error at server\n Failed status-{} ({}): wr_id {} syndrom {:#x}\n \
                 rcnt={received}\n",
                completion.status, completion.status as u8, completion.wr_id, completion.vendor_err
            ),
            Self::NoImmediate {
                completion,
                received,
            } => format!(
                " Completion with wc_flags mismatch at server\n Failed wr_id {} flag: {:#x} \
                 (should contain {:#x})\n rcnt={received}\n",
                completion.wr_id,
                completion.flags.bits(),
                WcFlags::WITH_IMM.bits()
            ),
            Self::PostReceive {
                qp,
                received: Some(received),
                ..
            } => format!("Couldn't post recv Qp={qp} rcnt={received}\n"),
            Self::PostReceive { received: None, .. } => {
                " Failed to post receive recv_wqes\n".to_owned()
            }
            // Stock's number of seconds is a fixed text, ours is what it was.
            Self::NothingCame {
                received, expected, ..
            } => format!(
                " Did not get Message for 120 Seconds, exiting..\n \
                 Total Received={received}, Total Iters Required={expected}\n"
            ),
            Self::PeerGone
            | Self::DeviceGone
            | Self::Stalled { .. }
            | Self::DeviceDown { .. }
            | Self::Interrupted
            | Self::Screen(_) => String::new(),
        }
    }
}

/// What to do about a failed message.
fn advice(status: WcStatus) -> &'static str {
    match status {
        WcStatus::RetryExceeded => {
            "the peer acknowledged nothing: see whether it still runs, and whether UDP port 4791 \
             gets through in both directions (firewall, MTU)"
        }
        WcStatus::RnrRetryExceeded => "the peer posted no receive: see whether it still runs",
        WcStatus::RemoteAccessError => {
            "the peer refused the address or the key: see whether its test has ended or failed"
        }
        WcStatus::RemoteInvalidRequest => {
            "the peer refused the request: give both ends the same options"
        }
        WcStatus::RemoteOperationError | WcStatus::RemoteAborted => {
            "the peer could not carry it out: see what the peer says"
        }
        WcStatus::WorkRequestFlushed => "an earlier message had failed on this queue pair",
        _ => "the fault is on our side: run again with --debug",
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use verbs_sys::VerbsError;

    #[test]
    fn a_failed_message_reads_as_in_stock() {
        let error = RunError::Completion {
            completion: Completion {
                wr_id: 3,
                status: WcStatus::RetryExceeded,
                vendor_err: 0x81,
                ..Completion::default()
            },
            posted: 266_112,
            completed: 266_028,
        };
        assert_eq!(
            error.stock_text(),
            " Completion with error at client\n \
             Failed status-transport retry counter exceeded (12): wr_id 3 syndrom 0x81\n \
             scnt=266112, ccnt=266028\n"
        );
    }

    #[test]
    fn a_failed_receive_reads_as_in_stock() {
        let completion = Completion {
            wr_id: 1,
            status: WcStatus::WorkRequestFlushed,
            vendor_err: 0x81,
            flags: WcFlags::GRH,
            ..Completion::default()
        };
        let received = 12;
        let failed = RunError::Receive {
            completion,
            received,
        };
        assert_eq!(
            failed.stock_text(),
            " Completion with error at server\n \
             Failed status-Work Request Flushed Error (5): wr_id 1 syndrom 0x81\n rcnt=12\n"
        );
        let bare = RunError::NoImmediate {
            completion,
            received,
        };
        assert_eq!(
            bare.stock_text(),
            " Completion with wc_flags mismatch at server\n \
             Failed wr_id 1 flag: 0x1 (should contain 0x2)\n rcnt=12\n"
        );
    }

    #[test]
    fn silence_reads_as_in_stock() {
        let error = RunError::NothingCame {
            waited: Duration::from_secs(60),
            received: 3,
            expected: 100,
        };
        assert_eq!(
            error.stock_text(),
            " Did not get Message for 120 Seconds, exiting..\n \
             Total Received=3, Total Iters Required=100\n"
        );
    }

    #[test]
    fn a_refused_message_reads_as_in_stock() {
        let mut error = RunError::Post {
            qp: Some(1),
            posted: 7,
            tx_depth: 128,
            source: PostError {
                posted: 0,
                source: VerbsError::Unsupported { what: "this" },
            },
        };
        assert_eq!(
            error.stock_text(),
            "Couldn't post send: qp 1 scnt=7 || err=95 tx_depth=128\n"
        );
        if let RunError::Post { qp, .. } = &mut error {
            *qp = None;
        }
        assert_eq!(error.stock_text(), "Couldn't post send: scnt=7\n");
    }
}
