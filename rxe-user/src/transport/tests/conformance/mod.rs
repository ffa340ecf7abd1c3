//! Rows of the conformance table that need both ends of a connection; the
//! tests are named as the rows. Rows about single packets are beside the
//! other tests of their kind.

mod async_events;
mod cq;
mod cq_events;
mod multicast;
mod mw;
mod qp_attr;
mod qp_state;
mod rc_atomic;
mod rc_error;
mod rc_send;
mod rc_write_read;
mod retry;
mod srq;
mod uc;
mod ud;
mod xrc;

use verbs_sys::{Completion, EventKind, QpState, WcStatus};

use super::harness::{Host, Pair, outcomes};

/// Where messages go in the buffers.
const TARGET: usize = 0x8_0000;

const SUCCESS: WcStatus = WcStatus::Success;
const FLUSHED: WcStatus = WcStatus::WorkRequestFlushed;

/// Both ends are alive and silent: no completions, no events.
fn assert_at_rest(pair: &mut Pair) {
    for host in &mut pair.hosts {
        assert_eq!(host.state(), QpState::Rts);
        assert_eq!(outcomes(&host.sent()), []);
        assert_eq!(outcomes(&host.received()), []);
        assert_eq!(host.events(), []);
    }
}

/// The only completion, which succeeded.
fn only(completions: Vec<Completion>) -> Completion {
    let [completion] = completions[..] else {
        panic!("one completion expected: {completions:?}");
    };
    assert_eq!(completion.status, SUCCESS, "{completion:?}");
    completion
}

fn kinds(host: &mut Host) -> Vec<EventKind> {
    host.events().iter().map(|event| event.kind).collect()
}

/// The states of A and B.
fn states(pair: &Pair) -> [QpState; 2] {
    [pair.hosts[0].state(), pair.hosts[1].state()]
}

const BOTH_ERR: [QpState; 2] = [QpState::Error, QpState::Error];
/// The requester has failed alone.
const A_ERR: [QpState; 2] = [QpState::Error, QpState::Rts];
