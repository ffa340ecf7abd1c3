//! Asynchronous events, and notifications that nobody's polling brings about.

use std::os::fd::AsFd;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use verbs_sys::{AsyncEvent, CompletionChannel, EventKind, EventSource, QpInit, SrqInit};

use super::*;

/// Sleeps until there is an event.
fn next_event(context: &dyn Context) -> AsyncEvent {
    let mut fds = [PollFd::new(context.async_fd(), PollFlags::POLLIN)];
    let woken = poll(&mut fds, PollTimeout::from(5000_u16)).unwrap();
    assert_eq!(woken, 1, "no event in 5 s");
    context.next_async_event().unwrap()
}

pub(super) fn is_readable(fd: impl AsFd) -> bool {
    let mut fds = [PollFd::new(fd.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).unwrap() == 1
}

/// An end whose queue pair is made anew, with other queues.
fn with_queues(
    cq_depth: u32,
    channel: Option<&Arc<dyn CompletionChannel>>,
    srq_init: &SrqInit<'_>,
) -> (End, Box<dyn verbs_sys::SharedReceiveQueue>) {
    let mut end = End::new(QpType::Rc);
    let init = CqInit {
        depth: cq_depth,
        channel,
    };
    let srq = end.context.create_srq(&*end.pd, srq_init).unwrap();
    end.cq = end.context.create_cq(&init).unwrap();
    let init = QpInit {
        qp_type: QpType::Rc,
        send_cq: &*end.cq,
        recv_cq: &*end.cq,
        srq: Some(&*srq),
        xrcd: None,
        cap: end.qp.capabilities(),
        sq_sig_all: false,
    };
    end.qp = end.context.create_qp(&*end.pd, &init).unwrap();
    (end, srq)
}

const SRQ: SrqInit<'_> = SrqInit {
    max_wr: 16,
    max_sge: 1,
    limit: 0,
    xrc: None,
};

/// The peer sleeps all the time; its context tells of what happens.
#[test]
fn events_of_queues_reach_a_sleeper() {
    let mut a = End::new(QpType::Rc);
    let (mut b, mut srq) = with_queues(4, None, &SRQ);
    a.connect(&b);
    b.connect(&a);
    let room = [b.sge(0, 64)];
    for wr_id in 0..8 {
        let request = ReceiveRequest { wr_id, sges: &room };
        srq.post_recv(&[request]).unwrap();
    }
    srq.set_limit(7).unwrap();
    assert!(!is_readable(b.context.async_fd()));
    let sges = [a.sge(0, 8)];
    let send = SendRequest::signaled(1, SendOp::Send, &sges);
    for _ in 0..2 {
        a.qp.post_send(&[send]).unwrap();
        assert_eq!(a.wait().status, WcStatus::Success);
    }
    let limit = AsyncEvent {
        kind: EventKind::SrqLimitReached,
        source: EventSource::Srq(srq.number()),
    };
    assert_eq!(next_event(&*b.context), limit);
    assert!(!is_readable(b.context.async_fd()), "once");
    // Nobody has polled B's queue of four, so the fifth message is too many.
    for _ in 2..5 {
        a.qp.post_send(&[send]).unwrap();
    }
    let (cq, qp) = (b.cq.handle(), b.qp.qpn());
    for (kind, source) in [
        (EventKind::CqError, EventSource::Cq(cq)),
        (EventKind::LastWqeReached, EventSource::Qp(qp)),
        (EventKind::QpFatal, EventSource::Qp(qp)),
    ] {
        assert_eq!(next_event(&*b.context), AsyncEvent { kind, source });
    }
    assert!(!is_readable(b.context.async_fd()));
}

#[test]
fn events_of_what_is_gone_are_forgotten() {
    let (mut end, _srq) = with_queues(4, None, &SRQ);
    let error = QpAttributes::to_state(QpState::Error);
    let init = steps(QpType::Rc, &*end.context, 0, 0)[0];
    end.qp.modify(&init).unwrap();
    end.qp.modify(&error).unwrap();
    assert!(is_readable(end.context.async_fd()), "last request reached");
    let End { context, qp, .. } = end;
    drop(qp);
    assert!(!is_readable(context.async_fd()));
    assert_eq!(context.next_async_event(), None);
}

/// A receive that is flushed as soon as it is posted is a completion like
/// any other.
#[test]
fn a_flush_at_posting_notifies() {
    let end = End::new(QpType::Rc);
    let channel = end.context.create_comp_channel().unwrap();
    let init = CqInit {
        depth: 4,
        channel: Some(&channel),
    };
    let mut cq = end.context.create_cq(&init).unwrap();
    let init = QpInit {
        qp_type: QpType::Rc,
        send_cq: &*cq,
        recv_cq: &*cq,
        srq: None,
        xrcd: None,
        cap: end.qp.capabilities(),
        sq_sig_all: false,
    };
    let mut qp = end.context.create_qp(&*end.pd, &init).unwrap();
    for step in [
        steps(QpType::Rc, &*end.context, 0, 0)[0],
        QpAttributes::to_state(QpState::Error),
    ] {
        qp.modify(&step).unwrap();
    }
    cq.arm(Notify::Any);
    assert!(!is_readable(channel.fd()));
    qp.post_recv(&[ReceiveRequest {
        wr_id: 3,
        sges: &[],
    }])
    .unwrap();
    let woken = channel.wait(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(woken, Some(cq.handle()));
    assert_eq!(wait(&mut *cq).status, WcStatus::WorkRequestFlushed);
}

#[test]
fn a_channel_of_another_context_is_refused() {
    let (a, b) = (lo().open().unwrap(), lo().open().unwrap());
    let channel = a.create_comp_channel().unwrap();
    let init = CqInit {
        depth: 4,
        channel: Some(&channel),
    };
    let error = b.create_cq(&init).map(|_| ()).unwrap_err();
    assert_eq!(
        error.to_string(),
        "the completion channel belongs to another context"
    );
}
