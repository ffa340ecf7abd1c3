//! Completion channels over the sockets of `lo`: who sleeps burns no CPU,
//! wakes at once, and misses nothing. A program of its own, because it
//! measures its own CPU time.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, mpsc};
use std::thread;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::resource::{UsageWho, getrusage};
use nix::sys::time::TimeValLike;
use rxe_user::device::{Options, device_for};
use verbs_sys::{
    AccessFlags, AddressVector, Completion, CompletionChannel, CompletionQueue, Context, CqInit,
    Device, Gather, Notify, PathMtu, ProtectionDomain, QpAttributes, QpCapabilities, QpInit,
    QpState, QpType, QueuePair, ReceiveRequest, SendOp, SendRequest, WcStatus,
};

/// Longer than anything here takes.
const LONG: Duration = Duration::from_secs(20);

/// The tests measure time and CPU, so only one runs at a time.
fn alone() -> MutexGuard<'static, ()> {
    static ONE: Mutex<()> = Mutex::new(());
    ONE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// One end of an RC connection: send and receive completions go to queues of
/// their own, which share a channel.
struct End {
    qp: Box<dyn QueuePair>,
    send_cq: Box<dyn CompletionQueue>,
    recv_cq: Box<dyn CompletionQueue>,
    channel: Arc<dyn CompletionChannel>,
    _pd: Box<dyn ProtectionDomain>,
    context: Arc<dyn Context>,
}

impl End {
    fn new() -> Self {
        let device = device_for([127, 0, 0, 1].into(), &Options::default());
        let context = device.unwrap().unwrap().open().unwrap();
        let pd = context.alloc_pd().unwrap();
        let channel = context.create_comp_channel().unwrap();
        let cq_init = CqInit {
            depth: 64,
            channel: Some(&channel),
        };
        let send_cq = context.create_cq(&cq_init).unwrap();
        let recv_cq = context.create_cq(&cq_init).unwrap();
        let init = QpInit {
            qp_type: QpType::Rc,
            send_cq: &*send_cq,
            recv_cq: &*recv_cq,
            srq: None,
            xrcd: None,
            cap: QpCapabilities {
                max_send_wr: 16,
                max_recv_wr: 16,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 64,
            },
            sq_sig_all: true,
        };
        let qp = context.create_qp(&*pd, &init).unwrap();
        Self {
            qp,
            send_cq,
            recv_cq,
            channel,
            _pd: pd,
            context,
        }
    }

    fn connect(&mut self, peer: &Self) {
        let init = QpAttributes {
            pkey_index: Some(0),
            port: Some(1),
            access_flags: Some(AccessFlags::REMOTE),
            ..QpAttributes::to_state(QpState::Init)
        };
        let av = AddressVector {
            dgid: peer.context.query_gid(1, 0).unwrap().gid,
            sgid_index: 0,
            flow_label: 0,
            hop_limit: 64,
            traffic_class: 0,
            sl: 0,
            port: 1,
        };
        let rtr = QpAttributes {
            av: Some(av),
            path_mtu: Some(PathMtu::Mtu1024),
            dest_qpn: Some(peer.qp.qpn()),
            rq_psn: Some(0),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(1),
            ..QpAttributes::to_state(QpState::Rtr)
        };
        // A message that has to be sent again costs more than a wake-up may.
        let rts = QpAttributes {
            sq_psn: Some(0),
            timeout: Some(18),
            retry_cnt: Some(7),
            rnr_retry: Some(7),
            max_qp_rd_atomic: Some(1),
            ..QpAttributes::to_state(QpState::Rts)
        };
        for step in [init, rtr, rts] {
            self.qp.modify(&step).unwrap();
        }
        for _ in 0..8 {
            self.post_receive();
        }
    }

    fn post_receive(&mut self) {
        let request = ReceiveRequest {
            wr_id: 0,
            sges: &[],
        };
        self.qp.post_recv(&[request]).unwrap();
    }

    fn send(&mut self) {
        let request = SendRequest {
            data: Gather::Inline(&[]),
            ..SendRequest::signaled(1, SendOp::Send, &[])
        };
        self.qp.post_send(&[request]).unwrap();
    }

    /// Takes what has completed: `[sent, received]`.
    fn take(&mut self) -> [usize; 2] {
        let mut completions = [Completion::default(); 16];
        [&mut self.send_cq, &mut self.recv_cq].map(|cq| {
            let count = cq.poll(&mut completions);
            for completion in &completions[..count] {
                assert_eq!(completion.status, WcStatus::Success);
            }
            count
        })
    }

    /// Sleeps until something completes, as `ibv_get_cq_event(3)` shows it:
    /// arm, look once more, wait.
    fn next(&mut self) -> [usize; 2] {
        loop {
            self.send_cq.arm(Notify::Any);
            self.recv_cq.arm(Notify::Any);
            let taken = self.take();
            if taken != [0, 0] {
                return taken;
            }
            let woken = self.channel.wait(Some(LONG)).unwrap();
            let handles = [self.send_cq.handle(), self.recv_cq.handle()];
            assert!(woken.is_some_and(|handle| handles.contains(&handle)));
        }
    }
}

fn pair() -> (End, End) {
    let (mut a, mut b) = (End::new(), End::new());
    a.connect(&b);
    b.connect(&a);
    (a, b)
}

fn cpu_time() -> Duration {
    let usage = getrusage(UsageWho::RUSAGE_SELF).unwrap();
    let time = usage.user_time() + usage.system_time();
    Duration::from_micros(time.num_microseconds() as u64)
}

/// Whoever waits has mostly polled before, so the port's thread was napping.
fn poll_for(end: &mut End, time: Duration) {
    let since = Instant::now();
    while since.elapsed() < time {
        assert_eq!(end.take(), [0, 0]);
    }
}

#[test]
fn a_waiter_burns_no_cpu() {
    let _alone = alone();
    let (mut a, _b) = pair();
    for polled in [Duration::ZERO, Duration::from_millis(100)] {
        poll_for(&mut a, polled);
        a.recv_cq.arm(Notify::Any);
        assert_eq!(a.take(), [0, 0]);
        let before = cpu_time();
        let woken = a.channel.wait(Some(Duration::from_secs(1))).unwrap();
        assert_eq!(woken, None, "nothing comes");
        let spent = cpu_time() - before;
        assert!(spent < Duration::from_millis(20), "{polled:?}: {spent:?}");
    }
}

/// How a sleeper waits.
#[derive(Debug, Clone, Copy)]
enum Wait {
    /// By the channel's own call.
    Call,
    /// On the descriptor, in an event loop.
    Descriptor,
}

/// Times from the posting of a message until a sleeper at the other end has
/// it, in order.
fn wake_ups(how: Wait) -> Vec<Duration> {
    const ROUNDS: usize = 50;
    let (mut a, mut b) = pair();
    let (ready, is_ready) = mpsc::channel();
    let (woke, has_woken) = mpsc::channel();
    thread::scope(|scope| {
        scope.spawn(move || {
            for _ in 0..ROUNDS {
                poll_for(&mut b, Duration::from_millis(5));
                b.recv_cq.arm(Notify::Any);
                assert_eq!(b.take(), [0, 0]);
                ready.send(()).unwrap();
                match how {
                    Wait::Call => assert!(b.channel.wait(Some(LONG)).unwrap().is_some()),
                    Wait::Descriptor => {
                        let timeout = PollTimeout::try_from(LONG).unwrap();
                        let mut fds = [PollFd::new(b.channel.fd(), PollFlags::POLLIN)];
                        assert_eq!(poll(&mut fds, timeout).unwrap(), 1, "{how:?}");
                        assert!(b.channel.next_event().is_some());
                    }
                }
                woke.send(Instant::now()).unwrap();
                b.post_receive();
                assert_eq!(b.take(), [0, 1]);
            }
        });
        let mut times: Vec<Duration> = (0..ROUNDS)
            .map(|round| {
                is_ready.recv_timeout(LONG).unwrap();
                thread::sleep(Duration::from_micros(100 * (round as u64 % 10)));
                let posted = Instant::now();
                a.send();
                let woken = has_woken.recv_timeout(LONG).unwrap();
                while a.take() == [0, 0] {}
                woken - posted
            })
            .collect();
        times.sort();
        times
    })
}

#[test]
fn a_message_wakes_the_waiter_at_once() {
    let _alone = alone();
    for how in [Wait::Call, Wait::Descriptor] {
        let times = wake_ups(how);
        let median = times[times.len() / 2];
        assert!(median < Duration::from_millis(1), "{how:?}: {times:?}");
    }
}

/// Both ends sleep for every message and for every send completion.
#[test]
fn no_wake_up_is_lost() {
    let _alone = alone();
    // More by hand: EVENT_ROUNDS=100000.
    let rounds = std::env::var("EVENT_ROUNDS").ok();
    let rounds: usize = rounds
        .and_then(|rounds| rounds.parse().ok())
        .unwrap_or(5000);
    let (mut a, mut b) = pair();
    let play = |end: &mut End, begins: bool| {
        let (mut sent, mut completed, mut received) = (0, 0, 0);
        if begins {
            end.send();
            sent = 1;
        }
        while received < rounds || completed < rounds {
            let [more_completed, more_received] = end.next();
            completed += more_completed;
            received += more_received;
            for _ in 0..more_received {
                end.post_receive();
                if sent < rounds {
                    end.send();
                    sent += 1;
                }
            }
        }
    };
    thread::scope(|scope| {
        scope.spawn(|| play(&mut a, true));
        scope.spawn(|| play(&mut b, false));
    });
}
