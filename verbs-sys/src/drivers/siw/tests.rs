//! The driver on a stand-in for the kernel: the test plays the kernel's side of
//! the queues.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

use std::sync::{Arc, Mutex};

use zerocopy::{FromBytes, IntoBytes};

use super::Siw;
use super::qp::encode;
use super::queues::completion;
use crate::drivers::context::KernelContext;
use crate::memory::Buffer;
use crate::sysfs::Sysfs;
use crate::uapi::ioctl::{Method, UHW_OUT};
use crate::uapi::siw::{
    Cqe, CreateCqResp, CreateQpResp, CreateSrqResp, FLAGS_OFFSET, Rqe, Sqe, flags,
};
use crate::uapi::user_verbs::QpCap;
use crate::uverbs::command::Ioctl;
use crate::uverbs::tests::{FakeKernel, answer, errno};
use crate::{
    Completion, CompletionQueue, Context, CqInit, Gather, Notify, ProtectionDomain, QpAttributes,
    QpCapabilities, QpInit, QpState, QpType, QueuePair, ReceiveRequest, RemoteAddress, SendFlags,
    SendOp, SendRequest, Sge, SrqInit, VerbsError, WcFlags, WcOpcode, WcStatus,
};

const CQ: u64 = 0;
const SQ: u64 = 0x1000;
const RQ: u64 = 0x2000;
const SRQ: u64 = 0x3000;
/// Entries of all queues.
const ENTRIES: u32 = 4;

const REMOTE: RemoteAddress = RemoteAddress {
    addr: 0x7000,
    rkey: 0x2b7b00,
};

struct Rig {
    context: KernelContext<Siw>,
    cq: Buffer,
    sq: Buffer,
    rq: Buffer,
    srq: Buffer,
    /// Doorbells, and how they are answered.
    rung: Arc<Mutex<u32>>,
    connected: Arc<Mutex<bool>>,
    _sysfs: tempfile::TempDir,
}

impl Rig {
    fn new() -> Self {
        Self::with_entries(ENTRIES)
    }

    fn with_entries(entries: u32) -> Self {
        let queues = [(); 4].map(|()| Buffer::allocate(4096).unwrap());
        let maps = [CQ, SQ, RQ, SRQ].into_iter().zip(queues.clone()).collect();
        let rung = Arc::new(Mutex::new(0));
        let connected = Arc::new(Mutex::new(true));
        let (doorbells, state) = (Arc::clone(&rung), Arc::clone(&connected));
        let kernel = FakeKernel {
            ioctl: Box::new(move |ours| execute(ours, entries)),
            doorbell: Box::new(move |_| {
                *doorbells.lock().unwrap() += 1;
                match *state.lock().unwrap() {
                    true => Ok(()),
                    false => Err(errno(libc::ENOTCONN)),
                }
            }),
            maps: Arc::new(Mutex::new(maps)),
            ..FakeKernel::default()
        };
        let root = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(root.path().join("class/infiniband/siw_t")).unwrap();
        let devices = Sysfs::at(root.path(), root.path()).devices().unwrap();
        let device = Arc::new(devices.into_iter().next().unwrap());
        let [cq, sq, rq, srq] = queues;
        Self {
            context: KernelContext::open(&device, Box::new(kernel)).unwrap(),
            cq,
            sq,
            rq,
            srq,
            rung,
            connected,
            _sysfs: root,
        }
    }

    fn domain(&self) -> Box<dyn ProtectionDomain> {
        self.context.alloc_pd().unwrap()
    }

    fn completions(&self) -> Box<dyn CompletionQueue> {
        let init = CqInit {
            depth: ENTRIES,
            channel: None,
        };
        self.context.create_cq(&init).unwrap()
    }

    fn queue_pair(&self) -> Box<dyn QueuePair> {
        let cq = self.completions();
        let init = init(QpType::Rc, &*cq);
        self.context.create_qp(&*self.domain(), &init).unwrap()
    }

    fn doorbells(&self) -> u32 {
        *self.rung.lock().unwrap()
    }
}

fn init(qp_type: QpType, cq: &dyn CompletionQueue) -> QpInit<'_> {
    QpInit {
        qp_type,
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        xrcd: None,
        cap: CAP,
        sq_sig_all: false,
    }
}

const CAP: QpCapabilities = QpCapabilities {
    max_send_wr: 4,
    max_recv_wr: 4,
    max_send_sge: 2,
    max_recv_sge: 2,
    max_inline_data: 200,
};

/// Answers as siw does.
fn execute(ours: &mut Ioctl<'_, '_>, entries: u32) -> std::io::Result<()> {
    match ours.method {
        Method::CQ_CREATE => {
            let resp = CreateCqResp {
                cq_id: 1,
                num_cqe: entries,
                cq_key: CQ,
            };
            answer(ours, 6, &entries.to_ne_bytes());
            answer(ours, UHW_OUT, resp.as_bytes());
        }
        Method::QP_CREATE => {
            let cap = QpCap {
                max_send_wr: 4,
                max_recv_wr: 4,
                max_send_sge: 2,
                max_recv_sge: 2,
                max_inline_data: 200,
            };
            let resp = CreateQpResp {
                qp_id: 7,
                num_sqe: entries,
                num_rqe: entries,
                pad: 0,
                sq_key: SQ,
                rq_key: RQ,
            };
            answer(ours, 13, cap.as_bytes());
            answer(ours, 14, &7_u32.to_ne_bytes());
            answer(ours, UHW_OUT, resp.as_bytes());
        }
        Method::SRQ_CREATE => {
            let resp = CreateSrqResp {
                num_rqe: entries,
                pad: 0,
                srq_key: SRQ,
            };
            answer(ours, UHW_OUT, resp.as_bytes());
        }
        _ => {}
    }
    Ok(())
}

fn entry<T: FromBytes>(memory: &Buffer, index: usize) -> T {
    let mut bytes = vec![0; size_of::<T>()];
    memory.read(index * bytes.len(), &mut bytes).unwrap();
    T::read_from_bytes(&bytes).unwrap()
}

/// The kernel has done an entry.
fn take<T>(memory: &Buffer, index: usize) {
    let offset = index * size_of::<T>() + FLAGS_OFFSET;
    memory.write(offset, &[0; 2]).unwrap();
}

fn sge(addr: u64, length: u32) -> Sge {
    Sge {
        addr,
        length,
        lkey: 3,
    }
}

#[test]
fn sends_are_laid_out() {
    let sges = [sge(0x1000, 10), sge(0x2000, 20)];
    let request = SendRequest::signaled(9, SendOp::Write { remote: REMOTE }, &sges);
    let sqe = encode(&request, &CAP, false).unwrap();
    assert_eq!((sqe.id, sqe.opcode, sqe.num_sge), (9, 0, 2));
    assert_eq!(sqe.flags, flags::VALID | flags::SIGNALLED);
    assert_eq!((sqe.raddr, sqe.rkey), (REMOTE.addr, REMOTE.rkey));
    assert_eq!(
        (sqe.sge[1].laddr, sqe.sge[1].length, sqe.sge[1].lkey),
        (0x2000, 20, 3)
    );
    let mut request = SendRequest::signaled(9, SendOp::SendInvalidate { rkey: 5 }, &[]);
    request.flags = SendFlags::FENCE | SendFlags::SOLICITED;
    let sqe = encode(&request, &CAP, false).unwrap();
    assert_eq!((sqe.opcode, sqe.rkey, sqe.num_sge), (5, 5, 0));
    assert_eq!(
        sqe.flags,
        flags::VALID | flags::READ_FENCE | flags::SOLICITED
    );
    let sqe = encode(&request, &CAP, true).unwrap();
    assert!(sqe.flags & flags::SIGNALLED != 0, "all are signalled");
}

#[test]
fn inline_data_lies_over_the_entries() {
    let data: Vec<u8> = (1..=80).collect();
    let mut request = SendRequest::signaled(1, SendOp::Send, &[]);
    request.data = Gather::Inline(&data);
    let cap = QpCapabilities {
        max_inline_data: 80,
        ..CAP
    };
    let sqe = encode(&request, &cap, false).unwrap();
    assert_eq!((sqe.num_sge, sqe.sge[0].length), (1, 80));
    assert!(sqe.flags & flags::INLINE != 0);
    assert_eq!(sqe.as_bytes()[40..], data);
    let less = QpCapabilities {
        max_inline_data: 79,
        ..CAP
    };
    assert!(encode(&request, &less, false).is_err());
    // However many bytes the kernel says, an entry has room for 80.
    assert_eq!(Rig::new().queue_pair().capabilities().max_inline_data, 80);
}

#[test]
fn what_iwarp_lacks_is_refused_with_the_reason() {
    let add = SendOp::FetchAdd {
        remote: REMOTE,
        add: 1,
    };
    let imm = SendOp::WriteImm {
        remote: REMOTE,
        imm: 1,
    };
    let local = SendOp::LocalInvalidate { key: 1 };
    let sges = [sge(0, 8)];
    for (op, word) in [(add, "atomics"), (imm, "immediate"), (local, "windows")] {
        let request = SendRequest::signaled(1, op, &sges);
        let error = encode(&request, &CAP, false).unwrap_err();
        assert!(matches!(error, VerbsError::Unsupported { .. }));
        assert!(error.to_string().contains(word), "{error}");
    }
    let two = [sge(0, 1); 2];
    let read = SendRequest::signaled(1, SendOp::Read { remote: REMOTE }, &two);
    let error = encode(&read, &CAP, false).unwrap_err().to_string();
    assert!(error.contains("at most 1"), "{error}");
    let mut inline = read;
    inline.data = Gather::Inline(&[1]);
    assert!(encode(&inline, &CAP, false).is_err());
    let three = [sge(0, 1); 3];
    let send = SendRequest::signaled(1, SendOp::Send, &three);
    assert!(encode(&send, &CAP, false).is_err());
    let rig = Rig::new();
    let cq = rig.completions();
    let datagrams = rig
        .context
        .create_qp(&*rig.domain(), &init(QpType::Ud, &*cq))
        .err()
        .unwrap();
    assert!(datagrams.to_string().contains("iWARP"), "{datagrams}");
    let mut qp = rig.queue_pair();
    let connect = qp
        .modify(&QpAttributes::to_state(QpState::Rtr))
        .unwrap_err();
    assert!(connect.to_string().contains("rdma_cm (-R"), "{connect}");
    qp.modify(&QpAttributes::to_state(QpState::Init)).unwrap();
}

/// The kernel is told only when it isn't looking anyway.
#[test]
fn a_busy_queue_needs_no_doorbell() {
    let rig = Rig::new();
    let mut qp = rig.queue_pair();
    let send = SendRequest::signaled(1, SendOp::Send, &[]);
    qp.post_send(&[send]).unwrap();
    assert_eq!(rig.doorbells(), 1, "the queue was idle");
    qp.post_send(&[send]).unwrap();
    assert_eq!(rig.doorbells(), 1, "the kernel is at the first");
    let sqe: Sqe = entry(&rig.sq, 1);
    assert_eq!((sqe.id, sqe.flags, sqe.opcode), (1, 1 | 4, 3));
    take::<Sqe>(&rig.sq, 0);
    take::<Sqe>(&rig.sq, 1);
    qp.post_send(&[send]).unwrap();
    assert_eq!(rig.doorbells(), 2, "it has done all");
    let error = qp.post_send(&[send; 4]).unwrap_err();
    assert_eq!(error.posted, 3);
    assert!(matches!(
        error.source,
        VerbsError::QueueFull { depth: 4, .. }
    ));
    for index in 0..4 {
        take::<Sqe>(&rig.sq, index);
    }
    qp.post_send(&[send; 4]).unwrap();
    assert_eq!(rig.doorbells(), 3, "the whole queue is new");
}

#[test]
fn sending_before_the_connection_is_named() {
    let rig = Rig::new();
    *rig.connected.lock().unwrap() = false;
    let mut qp = rig.queue_pair();
    let send = SendRequest::signaled(1, SendOp::Send, &[]);
    let error = qp.post_send(&[send]).unwrap_err().to_string();
    assert!(error.contains("rdma_cm has connected"), "{error}");
}

#[test]
fn receives_are_laid_out() {
    let rig = Rig::new();
    let mut qp = rig.queue_pair();
    let sges = [sge(0x1000, 10)];
    let request = ReceiveRequest {
        wr_id: 4,
        sges: &sges,
    };
    assert_eq!(qp.post_recv(&[request; 5]).unwrap_err().posted, 4);
    let rqe: Rqe = entry(&rig.rq, 3);
    assert_eq!((rqe.id, rqe.flags, rqe.num_sge, rqe.opcode), (4, 1, 1, 8));
    assert_eq!((rqe.sge[0].laddr, rqe.sge[0].length), (0x1000, 10));
    assert_eq!(rig.doorbells(), 0);
    qp.modify(&QpAttributes::to_state(QpState::Error)).unwrap();
    assert!(matches!(
        qp.post_recv(&[request]).unwrap_err().source,
        VerbsError::InvalidState { .. }
    ));
    let sizes = SrqInit {
        max_wr: 4,
        max_sge: 1,
        limit: 0,
        xrc: None,
    };
    let mut srq = rig.context.create_srq(&*rig.domain(), &sizes).unwrap();
    srq.post_recv(&[request]).unwrap();
    assert_eq!(entry::<Rqe>(&rig.srq, 0).id, 4);
    let sges = [sge(0, 1); 7];
    let many = ReceiveRequest {
        wr_id: 1,
        sges: &sges,
    };
    assert!(srq.post_recv(&[many]).is_err());
}

#[test]
fn completions_are_taken_in_turn() {
    let rig = Rig::new();
    let mut cq = rig.completions();
    let put = |index: usize, id: u64| {
        let cqe = Cqe {
            id,
            flags: flags::VALID as u8,
            opcode: 8,
            status: 4,
            bytes: 12,
            imm_or_stag: 0,
            qp_id: 7,
        };
        rig.cq
            .write(index * size_of::<Cqe>(), cqe.as_bytes())
            .unwrap();
    };
    let mut polled = [Completion::default(); 3];
    for round in 0..3 {
        assert_eq!(cq.poll(&mut polled), 0);
        for index in 0..4 {
            put(index, round * 10 + index as u64);
        }
        assert_eq!(cq.poll(&mut polled), 3);
        assert_eq!(polled.map(|c| c.wr_id), [0, 1, 2].map(|id| round * 10 + id));
        assert_eq!(cq.poll(&mut polled), 1);
        assert_eq!(polled[0].wr_id, round * 10 + 3);
    }
    assert_eq!(polled[0].status, WcStatus::WorkRequestFlushed);
    assert_eq!((polled[0].opcode, polled[0].qp_num), (WcOpcode::Receive, 7));
}

#[test]
fn arming_stores_a_word() {
    let rig = Rig::new();
    let mut cq = rig.completions();
    for (notify, word) in [(Notify::Any, 3), (Notify::Solicited, 1)] {
        cq.arm(notify);
        let offset = ENTRIES as usize * size_of::<Cqe>();
        assert_eq!(rig.cq.load_u32(offset), Some(word));
    }
}

#[test]
fn completions_are_put_in_the_words_of_the_verbs() {
    let cqe = |opcode, status, flags| {
        completion(&Cqe {
            opcode,
            status,
            flags,
            imm_or_stag: 0x1_2345,
            ..Cqe::default()
        })
    };
    for (opcode, expected) in [
        (0, WcOpcode::Write),
        (1, WcOpcode::Read),
        (2, WcOpcode::Read),
        (3, WcOpcode::Send),
        (5, WcOpcode::Send),
        (8, WcOpcode::Receive),
    ] {
        assert_eq!(cqe(opcode, 0, 1).opcode, expected);
    }
    let statuses = [0, 1, 4, 2, 5, 7, 8, 10, 9, 21, 21].map(WcStatus::from_code);
    for (code, expected) in (0..).zip(statuses) {
        assert_eq!(cqe(0, code, 1).status, expected, "{code}");
    }
    let invalidated = cqe(8, 0, 1 | flags::REM_INVAL);
    assert_eq!(invalidated.flags, WcFlags::WITH_INV);
    assert_eq!(invalidated.invalidated_rkey(), Some(0x1_2345));
}

#[test]
fn odd_queues_are_named() {
    for entries in [0, 3] {
        let rig = Rig::with_entries(entries);
        let init = CqInit {
            depth: 4,
            channel: None,
        };
        let error = rig.context.create_cq(&init).err().unwrap().to_string();
        assert!(error.contains(&format!("{entries} entries")), "{error}");
    }
}
