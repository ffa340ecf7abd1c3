//! The driver on a stand-in for the kernel: the test plays the kernel's side of
//! the queues.

#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "tests fail by panicking"
)]

mod golden;
mod objects;
mod posting;
mod rings;

use std::sync::{Arc, Mutex};

use zerocopy::{FromBytes, IntoBytes};

use super::Rxe;
use crate::drivers::context::KernelContext;
use crate::memory::Buffer;
use crate::sysfs::{RdmaDevice, Sysfs};
use crate::uapi::ioctl::{Method, QueryPortRespEx, UHW_OUT};
use crate::uapi::rxe::{CreateAhResp, CreateCqResp, CreateQpResp, CreateSrqResp, MmInfo, queue};
use crate::uapi::user_verbs::{QpCap, QueryPortResp, command};
use crate::uverbs::command::Ioctl;
use crate::uverbs::tests::{FakeKernel, answer, errno, invoked};
use crate::{
    CompletionQueue, Context, CqInit, ProtectionDomain, QpAttributes, QpCapabilities, QpInit,
    QpState, QpType, QueuePair,
};

/// Where the stand-in has its queues.
const CQ: u64 = 0x1000;
const SQ: u64 = 0x2000;
const RQ: u64 = 0x3000;
const SRQ: u64 = 0x4000;

/// Longest message of the port.
const MAX_MESSAGE: u32 = 8 << 20;

/// A queue of `mask` + 1 slots of 2^`log2` bytes, as the kernel makes it.
fn queue_of(log2: u32, mask: u32) -> Buffer {
    let len = queue::DATA + ((mask as usize + 1) << log2.min(20));
    let memory = Buffer::allocate(len.next_multiple_of(4096)).unwrap();
    memory
        .write(queue::LOG2_ELEM_SIZE, &log2.to_ne_bytes())
        .unwrap();
    memory
        .write(queue::INDEX_MASK, &mask.to_ne_bytes())
        .unwrap();
    memory
}

fn load(memory: &Buffer, offset: usize) -> u32 {
    memory.load_u32(offset).unwrap()
}

/// Bytes of a slot.
fn slot<const N: usize>(memory: &Buffer, index: u32) -> [u8; N] {
    let log2 = load(memory, queue::LOG2_ELEM_SIZE);
    let mut bytes = [0; N];
    memory
        .read(queue::DATA + ((index as usize) << log2), &mut bytes)
        .unwrap();
    bytes
}

/// What the kernel was asked, and its queues.
struct Rig {
    context: KernelContext<Rxe>,
    cq: Buffer,
    sq: Buffer,
    rq: Buffer,
    srq: Buffer,
    /// Doorbells.
    rung: Arc<Mutex<u32>>,
    /// Commands, methods as `object << 16 | method`.
    asked: Arc<Mutex<Vec<u32>>>,
    /// Where the kernel reports asynchronous events.
    events: std::io::PipeWriter,
    /// Number that address handles get; 0 for a kernel that has none.
    ah_num: Arc<Mutex<u32>>,
    sysfs: tempfile::TempDir,
    /// Methods that the kernel lacks.
    missing: Arc<Mutex<Vec<Method>>>,
    /// State of the port.
    state: Arc<Mutex<u8>>,
}

/// The number by which [`Rig::asked`] lists a method.
fn code(method: Method) -> u32 {
    u32::from(method.object) << 16 | u32::from(method.method)
}

/// A device in a tree of its own.
fn device(name: &str) -> (Arc<RdmaDevice>, tempfile::TempDir) {
    let root = tempfile::tempdir().unwrap();
    let port = root.path().join(format!("class/infiniband/{name}/ports/1"));
    for (file, text) in [
        ("pkeys/0", "0xffff\n"),
        ("link_layer", "Ethernet\n"),
        ("gids/2", "fd00:0000:0000:0000:0000:0000:0000:0001\n"),
        ("gid_attrs/types/2", "RoCE v2\n"),
        ("gid_attrs/ndevs/2", "lo\n"),
    ] {
        let file = port.join(file);
        std::fs::create_dir_all(file.parent().unwrap()).unwrap();
        std::fs::write(file, text).unwrap();
    }
    let sysfs = Sysfs::at(root.path(), root.path());
    let device = sysfs.devices().unwrap().remove(0);
    (Arc::new(device), root)
}

impl Rig {
    /// Send slots of 512 bytes (19 entries), receive slots of 128 (5 entries).
    fn new() -> Self {
        Self::with_queues(
            queue_of(7, 15),
            queue_of(9, 7),
            queue_of(7, 7),
            queue_of(7, 7),
        )
    }

    fn with_queues(cq: Buffer, sq: Buffer, rq: Buffer, srq: Buffer) -> Self {
        let (rung, asked, ah_num) =
            <(Arc<Mutex<u32>>, Arc<Mutex<Vec<u32>>>, Arc<Mutex<u32>>)>::default();
        let sizes = [&cq, &sq, &rq, &srq].map(|queue| queue.len() as u32);
        let (list, number) = (Arc::clone(&asked), Arc::clone(&ah_num));
        let missing = Arc::<Mutex<Vec<Method>>>::default();
        let lacks = Arc::clone(&missing);
        let state = Arc::new(Mutex::new(4));
        let port = Arc::clone(&state);
        let doorbells = Arc::clone(&rung);
        let maps = [CQ, SQ, RQ, SRQ]
            .into_iter()
            .zip([&cq, &sq, &rq, &srq].map(Clone::clone))
            .collect();
        let (reader, events) = std::io::pipe().unwrap();
        let kernel = FakeKernel {
            ioctl: Box::new(move |ours| {
                if lacks.lock().unwrap().contains(&ours.method) {
                    return Err(errno(libc::EPROTONOSUPPORT));
                }
                let asked = invoked(ours).map_or(code(ours.method), |(number, _)| number);
                list.lock().unwrap().push(asked);
                execute(ours, sizes, *number.lock().unwrap(), *port.lock().unwrap())
            }),
            doorbell: Box::new(move |handle| {
                assert_eq!(handle, 22);
                *doorbells.lock().unwrap() += 1;
                Ok(())
            }),
            maps: Arc::new(Mutex::new(maps)),
            events: Mutex::new(Some(reader.into())),
            ..FakeKernel::default()
        };
        let (device, root) = device("rxe_t");
        Self {
            context: KernelContext::open(&device, Box::new(kernel)).unwrap(),
            cq,
            sq,
            rq,
            srq,
            rung,
            asked,
            events,
            ah_num,
            sysfs: root,
            missing,
            state,
        }
    }

    fn domain(&self) -> Box<dyn ProtectionDomain> {
        self.context.alloc_pd().unwrap()
    }

    fn completions(&self) -> Box<dyn CompletionQueue> {
        let init = CqInit {
            depth: 5,
            channel: None,
        };
        self.context.create_cq(&init).unwrap()
    }

    /// A queue pair in RTS.
    fn ready(&self, qp_type: QpType) -> Box<dyn QueuePair> {
        let cq = self.completions();
        let init = init(qp_type, &*cq);
        let mut qp = self.context.create_qp(&*self.domain(), &init).unwrap();
        for state in [QpState::Init, QpState::Rtr, QpState::Rts] {
            qp.modify(&QpAttributes::to_state(state)).unwrap();
        }
        qp
    }

    fn doorbells(&self) -> u32 {
        *self.rung.lock().unwrap()
    }

    /// The kernel has taken all sends, or receives.
    fn take_all(queue: &Buffer) {
        let produced = load(queue, queue::PRODUCER_INDEX);
        queue.store_u32(queue::CONSUMER_INDEX, produced);
    }
}

fn init(qp_type: QpType, cq: &dyn CompletionQueue) -> QpInit<'_> {
    QpInit {
        qp_type,
        send_cq: cq,
        recv_cq: cq,
        srq: None,
        xrcd: None,
        cap: QpCapabilities {
            max_send_wr: 5,
            max_recv_wr: 5,
            max_send_sge: 2,
            max_recv_sge: 2,
            max_inline_data: 64,
        },
        sq_sig_all: false,
    }
}

/// Answers as rxe does.
fn execute(
    ours: &mut Ioctl<'_, '_>,
    sizes: [u32; 4],
    ah_num: u32,
    state: u8,
) -> std::io::Result<()> {
    let info = |offset, size| MmInfo {
        offset,
        size,
        pad: 0,
    };
    let [cq, sq, rq, srq] = sizes;
    match ours.method {
        Method::QUERY_PORT => {
            let resp = QueryPortRespEx {
                legacy: QueryPortResp {
                    max_msg_sz: MAX_MESSAGE,
                    gid_tbl_len: 4,
                    state,
                    max_mtu: 5,
                    active_mtu: 5,
                    ..QueryPortResp::default()
                },
                ..QueryPortRespEx::default()
            };
            answer(ours, 1, resp.as_bytes());
        }
        Method::CQ_CREATE => {
            answer(ours, 0, &21_u32.to_ne_bytes());
            answer(ours, 6, &15_u32.to_ne_bytes());
            answer(ours, UHW_OUT, CreateCqResp { mi: info(CQ, cq) }.as_bytes());
        }
        Method::QP_CREATE => {
            let cap = ours.attributes.iter().find(|a| a.id == 8).unwrap();
            let crate::uverbs::command::Value::In(bytes) = cap.value else {
                panic!("no capabilities");
            };
            let mut cap = QpCap::read_from_bytes(bytes).unwrap();
            cap.max_inline_data = cap.max_inline_data.max(16 * cap.max_send_sge);
            cap.max_send_sge = cap.max_inline_data / 16;
            let resp = CreateQpResp {
                rq_mi: info(RQ, rq),
                sq_mi: info(SQ, sq),
            };
            answer(ours, 0, &22_u32.to_ne_bytes());
            answer(ours, 13, cap.as_bytes());
            answer(ours, 14, &17_u32.to_ne_bytes());
            answer(ours, UHW_OUT, resp.as_bytes());
        }
        Method::SRQ_CREATE => {
            let resp = CreateSrqResp {
                mi: info(SRQ, srq),
                ..CreateSrqResp::default()
            };
            answer(ours, 0, &23_u32.to_ne_bytes());
            answer(ours, 11, &7_u32.to_ne_bytes());
            answer(ours, 12, &2_u32.to_ne_bytes());
            answer(ours, UHW_OUT, resp.as_bytes());
        }
        Method::QUERY_GID_ENTRY => {
            let entry = own_gid();
            answer(ours, 3, entry.as_bytes());
        }
        Method::QUERY_GID_TABLE => {
            answer(ours, 2, own_gid().as_bytes());
            answer(ours, 3, &1_u64.to_ne_bytes());
        }
        Method::INVOKE_WRITE => match invoked(ours).map(|(number, _)| number) {
            Some(command::CREATE_AH) => {
                let resp = CreateAhResp {
                    ah_num,
                    reserved: 0,
                };
                answer(ours, UHW_OUT, resp.as_bytes());
            }
            Some(command::ALLOC_MW) => {
                answer(ours, 1, [31_u32, 0x0800_0104].as_bytes());
            }
            Some(command::EX_QUERY_DEVICE) => {
                let mut resp = crate::uapi::user_verbs::ExQueryDeviceResp {
                    response_length: 304,
                    ..Default::default()
                };
                resp.base.phys_port_cnt = 1;
                answer(ours, 1, resp.as_bytes());
            }
            Some(command::OPEN_XRCD) => return Err(errno(libc::EOPNOTSUPP)),
            _ => {}
        },
        _ => {}
    }
    Ok(())
}

fn own_gid() -> crate::uapi::ioctl::GidEntry {
    crate::uapi::ioctl::GidEntry {
        gid: crate::Gid::from_ip([10, 0, 0, 1].into()).0,
        gid_index: 1,
        port_num: 1,
        gid_type: 2,
        netdev_ifindex: 1,
    }
}
