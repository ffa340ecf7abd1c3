//! Devices over real sockets of `lo`.

mod channel;
mod events;
mod multicast;
mod xrc;

use std::time::{Duration, Instant};

use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, AddressVector, Completion, CompletionQueue, CqInit, Notify, PathMtu,
    ProtectionDomain, QpAttributes, QpCapabilities, QpState, QpType, QueuePair, ReceiveRequest,
    RemoteAddress, SendOp, SendRequest, Sge, WcStatus, WindowBinding,
};

use super::*;

fn lo() -> UserDevice {
    device_for([127, 0, 0, 1].into(), &Options::default())
        .unwrap()
        .unwrap()
}

/// One end of a connection: a context of its own with one queue pair.
struct End {
    context: Arc<dyn Context>,
    pd: Box<dyn ProtectionDomain>,
    buffer: Buffer,
    region: Box<dyn verbs_sys::MemoryRegion>,
    cq: Box<dyn CompletionQueue>,
    qp: Box<dyn QueuePair>,
}

const DEPTH: u32 = 64;

impl End {
    fn new(qp_type: QpType) -> Self {
        let context = lo().open().unwrap();
        let pd = context.alloc_pd().unwrap();
        let buffer = Buffer::allocate(1 << 20).unwrap();
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE | AccessFlags::MW_BIND;
        let region = context.reg_mr(&*pd, buffer.whole(), access).unwrap();
        let cq = context
            .create_cq(&CqInit {
                depth: 2 * DEPTH,
                channel: None,
            })
            .unwrap();
        let init = verbs_sys::QpInit {
            qp_type,
            send_cq: &*cq,
            recv_cq: &*cq,
            srq: None,
            xrcd: None,
            cap: QpCapabilities {
                max_send_wr: DEPTH,
                max_recv_wr: DEPTH,
                max_send_sge: 2,
                max_recv_sge: 2,
                max_inline_data: 64,
            },
            sq_sig_all: false,
        };
        let qp = context.create_qp(&*pd, &init).unwrap();
        Self {
            context,
            pd,
            buffer,
            region,
            cq,
            qp,
        }
    }

    fn connect(&mut self, peer: &Self) {
        let dest_qpn = peer.qp.qpn();
        for step in steps(QpType::Rc, &*peer.context, self.qp.qpn(), dest_qpn) {
            self.qp.modify(&step).unwrap();
        }
    }

    fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge {
            addr: self.buffer.addr() + offset,
            length,
            lkey: self.region.lkey(),
        }
    }

    fn remote(&self, offset: u64) -> RemoteAddress {
        RemoteAddress {
            addr: self.buffer.addr() + offset,
            rkey: self.region.rkey(),
        }
    }

    fn wait(&mut self) -> Completion {
        wait(&mut *self.cq)
    }
}

/// The attributes that lead a connected queue pair from RESET to RTS; its
/// number is its first PSN.
fn steps(qp_type: QpType, peer: &dyn Context, qpn: u32, dest_qpn: u32) -> [QpAttributes; 3] {
    let requests = matches!(qp_type, QpType::Rc | QpType::XrcSend);
    let responds = matches!(qp_type, QpType::Rc | QpType::XrcReceive);
    let init = QpAttributes {
        state: Some(QpState::Init),
        pkey_index: Some(0),
        port: Some(1),
        access_flags: Some(AccessFlags::REMOTE),
        ..QpAttributes::default()
    };
    let av = AddressVector {
        dgid: peer.query_gid(1, 0).unwrap().gid,
        sgid_index: 0,
        flow_label: 0,
        hop_limit: 64,
        traffic_class: 0,
        sl: 0,
        port: 1,
    };
    let rtr = QpAttributes {
        state: Some(QpState::Rtr),
        av: Some(av),
        path_mtu: Some(PathMtu::Mtu1024),
        dest_qpn: Some(dest_qpn),
        rq_psn: Some(dest_qpn),
        max_dest_rd_atomic: responds.then_some(4),
        min_rnr_timer: responds.then_some(1),
        ..QpAttributes::default()
    };
    let rts = QpAttributes {
        state: Some(QpState::Rts),
        sq_psn: Some(qpn),
        timeout: Some(14),
        retry_cnt: requests.then_some(7),
        rnr_retry: requests.then_some(7),
        max_qp_rd_atomic: requests.then_some(4),
        ..QpAttributes::default()
    };
    [init, rtr, rts]
}

fn wait(cq: &mut dyn CompletionQueue) -> Completion {
    let deadline = Instant::now() + Duration::from_secs(10);
    let mut completions = [Completion::default()];
    while cq.poll(&mut completions) == 0 {
        assert!(Instant::now() < deadline, "no completion in 10 s");
    }
    completions[0]
}

fn pair(qp_type: QpType) -> (End, End) {
    let (mut a, mut b) = (End::new(qp_type), End::new(qp_type));
    a.connect(&b);
    b.connect(&a);
    (a, b)
}

/// The peer never polls: its thread answers.
#[test]
fn one_sided_operations_need_nobody_at_the_peer() {
    let (mut a, b) = pair(QpType::Rc);
    let data: Vec<u8> = (0..10_000u32).map(|i| (i * 7) as u8).collect();
    a.buffer.write(0, &data).unwrap();
    let sges = [a.sge(0, 10_000)];
    let write = SendRequest::signaled(
        1,
        SendOp::Write {
            remote: b.remote(500),
        },
        &sges,
    );
    a.qp.post_send(&[write]).unwrap();
    assert_eq!(a.wait().status, WcStatus::Success);
    let mut seen = vec![0; 10_000];
    b.buffer.read(500, &mut seen).unwrap();
    assert!(seen == data);

    let sges = [a.sge(100_000, 10_000)];
    let read = SendRequest::signaled(
        2,
        SendOp::Read {
            remote: b.remote(500),
        },
        &sges,
    );
    a.qp.post_send(&[read]).unwrap();
    let completion = a.wait();
    assert_eq!(
        (completion.wr_id, completion.status),
        (2, WcStatus::Success)
    );
    a.buffer.read(100_000, &mut seen).unwrap();
    assert!(seen == data);
}

#[test]
fn a_send_and_its_receive_complete() {
    let (mut a, mut b) = pair(QpType::Rc);
    let room = [b.sge(0, 4096)];
    b.qp.post_recv(&[ReceiveRequest {
        wr_id: 7,
        sges: &room,
    }])
    .unwrap();
    let request = SendRequest {
        data: verbs_sys::Gather::Inline(b"hello"),
        ..SendRequest::signaled(1, SendOp::SendImm { imm: 0xc0ff_ee00 }, &[])
    };
    a.qp.post_send(&[request]).unwrap();
    assert_eq!(a.wait().status, WcStatus::Success);
    let completion = b.wait();
    assert_eq!((completion.wr_id, completion.byte_len), (7, 5));
    assert_eq!(completion.immediate(), Some(0xc0ff_ee00));
    let mut text = [0; 5];
    b.buffer.read(0, &mut text).unwrap();
    assert_eq!(&text, b"hello");
}

/// Posting without ever polling has to work, too: the port's thread sends
/// what has gathered.
#[test]
fn posted_requests_leave_without_a_poll() {
    let (mut a, b) = pair(QpType::Rc);
    for i in 0..32u64 {
        a.buffer.store_u8(i as usize, i as u8 + 1).unwrap();
        let sges = [a.sge(i, 1)];
        let write = SendOp::Write {
            remote: b.remote(i),
        };
        a.qp.post_send(&[SendRequest::signaled(i, write, &sges)])
            .unwrap();
    }
    let deadline = Instant::now() + Duration::from_secs(5);
    while b.buffer.load_u8(31) != Ok(32) {
        assert!(Instant::now() < deadline, "the last byte did not arrive");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_completion_wakes_whoever_sleeps_on_the_channel() {
    let (mut a, b) = pair(QpType::Rc);
    let channel = a.context.create_comp_channel().unwrap();
    let pd = a.context.alloc_pd().unwrap();
    let init = CqInit {
        depth: 4,
        channel: Some(&channel),
    };
    let mut cq = a.context.create_cq(&init).unwrap();
    let region = a
        .context
        .reg_mr(&*pd, a.buffer.whole(), AccessFlags::LOCAL_WRITE)
        .unwrap();
    let qp_init = verbs_sys::QpInit {
        qp_type: QpType::Rc,
        send_cq: &*cq,
        recv_cq: &*cq,
        srq: None,
        xrcd: None,
        cap: a.qp.capabilities(),
        sq_sig_all: true,
    };
    a.qp = a.context.create_qp(&*pd, &qp_init).unwrap();
    let mut b = b;
    b.qp.modify(&QpAttributes::to_state(QpState::Reset))
        .unwrap();
    a.connect(&b);
    b.connect(&a);
    cq.arm(Notify::Any);
    let sges = [Sge {
        addr: a.buffer.addr(),
        length: 8,
        lkey: region.lkey(),
    }];
    let write = SendOp::Write {
        remote: b.remote(0),
    };
    a.qp.post_send(&[SendRequest::signaled(5, write, &sges)])
        .unwrap();
    let woken = channel.wait(Some(Duration::from_secs(5))).unwrap();
    assert_eq!(woken, Some(cq.handle()));
    let mut completions = [Completion::default()];
    assert_eq!(cq.poll(&mut completions), 1);
    assert_eq!(
        (completions[0].wr_id, completions[0].status),
        (5, WcStatus::Success)
    );
}

/// Whoever drops a region ends access to it, that through windows as well.
#[test]
fn a_window_opens_a_region_as_long_as_that_exists() {
    let (mut a, b) = pair(QpType::Rc);
    let End {
        context,
        buffer,
        region,
        pd,
        mut qp,
        mut cq,
    } = b;
    let window = context.alloc_window(&*pd).unwrap();
    let binding = WindowBinding {
        window: window.rkey(),
        tag: 1,
        lkey: region.lkey(),
        addr: buffer.addr(),
        length: 64,
        access: AccessFlags::REMOTE_WRITE,
    };
    let bind = SendOp::BindWindow { binding };
    qp.post_send(&[SendRequest::signaled(1, bind, &[])])
        .unwrap();
    assert_eq!(wait(&mut *cq).status, WcStatus::Success);
    let remote = RemoteAddress {
        addr: binding.addr,
        rkey: binding.rkey(),
    };
    let sges = [a.sge(0, 8)];
    let write = SendRequest::signaled(2, SendOp::Write { remote }, &sges);
    a.qp.post_send(&[write]).unwrap();
    assert_eq!(a.wait().status, WcStatus::Success);
    drop(region);
    a.qp.post_send(&[write]).unwrap();
    assert_eq!(a.wait().status, WcStatus::RemoteAccessError);
    // All else may go in any order.
    drop((pd, window, qp));
}

#[test]
fn objects_of_another_context_are_refused() {
    let (a, b) = (lo().open().unwrap(), lo().open().unwrap());
    let pd = a.alloc_pd().unwrap();
    let buffer = Buffer::allocate(64).unwrap();
    let error = b
        .reg_mr(&*pd, buffer.whole(), AccessFlags::LOCAL_WRITE)
        .map(|_| ())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the protection domain belongs to another context"
    );
}

#[test]
fn dropping_everything_leaves_neither_thread_nor_socket() {
    let context = lo().open().unwrap();
    let gid = context.query_gid(1, 0).unwrap().gid;
    drop(context);
    // The address is free again, unless a test beside this one has taken it
    // for a while.
    let deadline = Instant::now() + Duration::from_secs(10);
    while let Err(error) = std::net::UdpSocket::bind((gid.to_ip(), crate::link::ROCE_PORT)) {
        assert!(Instant::now() < deadline, "{gid}: {error}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn devices_are_named_after_their_interfaces() {
    let names: Vec<String> = devices(&Options::default())
        .unwrap()
        .iter()
        .map(|d| d.name().to_owned())
        .collect();
    assert!(names.iter().any(|name| name == "urxe_lo"), "{names:?}");
    assert!(
        names.iter().all(|name| name.starts_with("urxe_")),
        "{names:?}"
    );
}

#[test]
fn a_peer_that_is_not_there_costs_the_retries_and_no_more() {
    let (mut a, b) = pair(QpType::Rc);
    let remote = b.remote(0);
    drop(b);
    a.qp.modify(&QpAttributes::to_state(QpState::Sqd)).unwrap();
    a.qp.modify(&QpAttributes {
        state: Some(QpState::Sqd),
        timeout: Some(8),
        retry_cnt: Some(2),
        ..QpAttributes::default()
    })
    .unwrap();
    a.qp.modify(&QpAttributes::to_state(QpState::Rts)).unwrap();
    let sges = [a.sge(0, 8)];
    let writes = [
        SendRequest::signaled(1, SendOp::Write { remote }, &sges),
        SendRequest::signaled(2, SendOp::Write { remote }, &sges),
    ];
    a.qp.post_send(&writes).unwrap();
    assert_eq!(a.wait().status, WcStatus::RetryExceeded);
    assert_eq!(a.wait().status, WcStatus::WorkRequestFlushed);
    assert_eq!(a.qp.query().unwrap().state, Some(QpState::Error));
}
