//! The rows of group cq-events that are about channels.

use verbs_sys::CompletionChannel;

use super::events::is_readable;
use super::*;

/// CQE-001, CQE-002: a queue keeps its channel alive.
#[test]
fn create_and_destroy_comp_channel() {
    let context = lo().open().unwrap();
    drop(context.create_comp_channel().unwrap());
    let channel = context.create_comp_channel().unwrap();
    let init = CqInit {
        depth: 4,
        channel: Some(&channel),
    };
    let mut cq = context.create_cq(&init).unwrap();
    drop(channel);
    cq.arm(Notify::Any);
    assert_eq!(cq.poll(&mut [Completion::default()]), 0);
}

/// A queue pair on `lo` that is connected with itself, and its queues.
struct Loop {
    end: End,
    cqs: Vec<(Box<dyn CompletionQueue>, Box<dyn QueuePair>)>,
    channel: Arc<dyn CompletionChannel>,
}

impl Loop {
    fn new(count: usize) -> Self {
        let end = End::new(QpType::Rc);
        let channel = end.context.create_comp_channel().unwrap();
        let cq_init = CqInit {
            depth: 4,
            channel: Some(&channel),
        };
        let make = |_| {
            let cq = end.context.create_cq(&cq_init).unwrap();
            let init = verbs_sys::QpInit {
                qp_type: QpType::Rc,
                send_cq: &*cq,
                recv_cq: &*cq,
                srq: None,
                xrcd: None,
                cap: end.qp.capabilities(),
                sq_sig_all: true,
            };
            let mut qp = end.context.create_qp(&*end.pd, &init).unwrap();
            let qpn = qp.qpn();
            for step in steps(QpType::Rc, &*end.context, qpn, qpn) {
                qp.modify(&step).unwrap();
            }
            (cq, qp)
        };
        let cqs = (0..count).map(make).collect();
        Self { end, cqs, channel }
    }

    /// Completes a Write of queue pair `index`.
    fn complete(&mut self, index: usize) {
        let sges = [self.end.sge(0, 8)];
        let remote = self.end.remote(64);
        let write = SendRequest::signaled(1, SendOp::Write { remote }, &sges);
        self.cqs[index].1.post_send(&[write]).unwrap();
    }
}

/// CQE-016.
#[test]
fn many_cqs_share_one_channel() {
    const COUNT: usize = 40;
    let mut all = Loop::new(COUNT);
    for index in 0..COUNT {
        all.cqs[index].0.arm(Notify::Any);
        all.complete(index);
    }
    let wait = Some(Duration::from_secs(5));
    let mut woken: Vec<u32> = (0..COUNT)
        .map(|_| all.channel.wait(wait).unwrap().unwrap())
        .collect();
    let mut handles: Vec<u32> = all.cqs.iter().map(|(cq, _)| cq.handle()).collect();
    woken.sort_unstable();
    handles.sort_unstable();
    assert_eq!(woken, handles, "one for each");
    assert_eq!(all.channel.next_event(), None);
    for (cq, _) in &mut all.cqs {
        assert_eq!(cq.poll(&mut [Completion::default(); 4]), 1);
    }
}

/// CQE-017.
#[test]
fn channel_descriptor_is_readable_only_with_pending_event() {
    let mut one = Loop::new(1);
    assert!(!is_readable(one.channel.fd()), "before arming");
    one.cqs[0].0.arm(Notify::Any);
    assert!(!is_readable(one.channel.fd()), "armed");
    one.complete(0);
    let since = Instant::now();
    while !is_readable(one.channel.fd()) {
        assert!(since.elapsed() < Duration::from_secs(5), "no event");
    }
    assert_eq!(one.channel.next_event(), Some(one.cqs[0].0.handle()));
    assert!(!is_readable(one.channel.fd()), "after reading");
}

/// CQE-018: what is destroyed is forgotten.
#[test]
fn a_destroyed_queue_announces_nothing() {
    let mut two = Loop::new(2);
    for index in 0..2 {
        two.cqs[index].0.arm(Notify::Any);
        two.complete(index);
        let polled = wait(&mut *two.cqs[index].0);
        assert_eq!(polled.status, WcStatus::Success);
    }
    let kept = two.cqs[1].0.handle();
    drop(two.cqs.remove(0));
    assert_eq!(two.channel.next_event(), Some(kept));
    assert_eq!(two.channel.next_event(), None);
}
