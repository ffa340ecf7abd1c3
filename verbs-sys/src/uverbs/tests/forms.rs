//! Which form of a command is taken, and how the write interface counts.

use std::io;
use std::sync::{Arc, Mutex};

use zerocopy::IntoBytes;

use super::{FakeKernel, errno, invoked, new_fd, open};
use crate::memory::Buffer;
use crate::uapi::ioctl::Method;
use crate::uapi::user_verbs::{CreateCqResp, Doorbell, GetContextResp, command};
use crate::uverbs::Uverbs;
use crate::uverbs::command::{Ioctl, Write};
use crate::uverbs::kernel::Kernel;
use crate::uverbs::objects::Registration;
use crate::uverbs::qp::NewQp;
use crate::uverbs::queues::{NewCq, NewSrq};
use crate::{
    AccessFlags, AddressVector, Gid, Notify, QpAttributes, QpCapabilities, QpState, QpType,
    VerbsError,
};

type Frames = Arc<Mutex<Vec<Vec<u8>>>>;

/// A kernel, or a filter of system calls, without the attribute form.
#[derive(Default)]
struct WriteOnly(Frames);

impl Kernel for WriteOnly {
    fn ioctl(&self, _: &mut Ioctl<'_, '_>) -> io::Result<()> {
        Err(errno(libc::ENOTTY))
    }

    fn write(&self, command: &mut Write<'_>) -> io::Result<()> {
        let (frame, len) = command.encode(0x1122_3344_5566_7788)?;
        self.0.lock().unwrap().push(frame[..len].to_vec());
        let fd = match command.number {
            command::GET_CONTEXT => GetContextResp {
                async_fd: new_fd(),
                num_comp_vectors: 2,
            }
            .as_bytes()
            .to_vec(),
            command::CREATE_COMP_CHANNEL => new_fd().as_bytes().to_vec(),
            _ => return Ok(()),
        };
        command.core_out.copy_from_slice(&fd);
        Ok(())
    }

    fn doorbell(&self, qp_handle: u32) -> io::Result<()> {
        let frame = Doorbell::new(qp_handle, 0).as_bytes().to_vec();
        self.0.lock().unwrap().push(frame);
        Ok(())
    }

    fn map(&self, _: u64, _: usize) -> io::Result<Buffer> {
        Err(errno(libc::EINVAL))
    }
}

fn write_only(driver_out: &mut [u8]) -> (Uverbs, Frames) {
    let kernel = WriteOnly::default();
    let frames = Arc::clone(&kernel.0);
    let uverbs = Uverbs::open(Box::new(kernel), 14, driver_out).unwrap();
    (uverbs, frames)
}

/// Command, in_words and out_words of what was written last.
fn words(frames: &Frames) -> (u32, u16, u16) {
    let frames = frames.lock().unwrap();
    let frame = frames.last().unwrap();
    let half = |at: usize| u16::from_ne_bytes([frame[at], frame[at + 1]]);
    let number = u32::from_ne_bytes(frame[..4].try_into().unwrap());
    let words = usize::from(half(4));
    let expected = match number & command::EXTENDED {
        0 => words * 4,
        _ => 24 + 8 * (words + usize::from(half(16))),
    };
    assert_eq!(frame.len(), expected, "command {number:#x}");
    (number, half(4), half(6))
}

fn new_qp() -> NewQp {
    NewQp {
        user_handle: 1,
        qp_type: QpType::Rc,
        pd: 1,
        send_cq: 2,
        recv_cq: 2,
        srq: None,
        xrcd: None,
        cap: QpCapabilities::default(),
        sq_sig_all: false,
    }
}

/// The word counts of rxe and siw (`ib_user_verbs.h`: lengths in words of 4
/// bytes with the header, of 8 bytes without it for extended commands).
#[test]
fn the_write_interface_counts_its_words() {
    let (_, frames) = write_only(&mut []);
    assert_eq!(words(&frames), (command::GET_CONTEXT, 4, 2));
    let (uverbs, frames) = write_only(&mut [0; 8]);
    assert_eq!(words(&frames), (command::GET_CONTEXT, 4, 4), "siw");

    uverbs.query_device().unwrap_err();
    assert_eq!(words(&frames), (command::EX_QUERY_DEVICE, 1, 38));
    uverbs.query_port(1).unwrap_err();
    assert_eq!(words(&frames), (command::QUERY_PORT, 6, 10));
    uverbs.alloc_pd().unwrap();
    assert_eq!(words(&frames), (command::ALLOC_PD, 4, 1));
    uverbs.dealloc_pd(1);
    assert_eq!(words(&frames), (command::DEALLOC_PD, 3, 0));
    let registration = Registration {
        pd: 1,
        start: 0x1000,
        length: 1,
        iova: 0x1000,
        access: AccessFlags::RELAXED_ORDERING | AccessFlags::LOCAL_WRITE,
    };
    uverbs.reg_mr(&registration, &[], &mut []).unwrap();
    assert_eq!(words(&frames), (command::REG_MR, 12, 3), "rxe");
    let access = frames.lock().unwrap().last().unwrap()[44..48].to_vec();
    assert_eq!(
        access,
        [1, 0, 0, 0],
        "flags that this kernel may not know are left out"
    );
    uverbs.reg_mr(&registration, &[0; 8], &mut [0; 8]).unwrap();
    assert_eq!(words(&frames), (command::REG_MR, 14, 5), "siw");
    uverbs.dereg_mr(1);
    assert_eq!(words(&frames), (command::DEREG_MR, 3, 0));
    uverbs.alloc_mw(1).unwrap();
    assert_eq!(words(&frames), (command::ALLOC_MW, 6, 2));
    uverbs.dealloc_mw(1);
    assert_eq!(words(&frames), (command::DEALLOC_MW, 3, 0));
    let channel = uverbs.create_comp_channel().unwrap();
    assert_eq!(words(&frames), (command::CREATE_COMP_CHANNEL, 4, 1));
    let cq = NewCq {
        user_handle: 1,
        depth: 5,
        channel: Some(&channel),
    };
    uverbs.create_cq(&cq, &mut [0; 16]).unwrap();
    assert_eq!(words(&frames), (command::CREATE_CQ, 10, 6));
    uverbs.destroy_cq(1);
    assert_eq!(words(&frames), (command::DESTROY_CQ, 6, 2));
    uverbs.req_notify_cq(1, Notify::Any).unwrap();
    assert_eq!(words(&frames), (command::REQ_NOTIFY_CQ, 4, 0));
    uverbs.create_qp(&new_qp(), &mut [0; 32]).unwrap();
    assert_eq!(words(&frames), (command::CREATE_QP, 16, 16));
    uverbs.query_qp(1).unwrap();
    assert_eq!(words(&frames), (command::QUERY_QP, 6, 32));
    let to_error = QpAttributes::to_state(QpState::Error);
    uverbs.modify_qp(1, &to_error).unwrap();
    assert_eq!(words(&frames), (command::MODIFY_QP, 30, 0));
    uverbs.destroy_qp(1);
    assert_eq!(words(&frames), (command::DESTROY_QP, 6, 1));
    uverbs.doorbell(1).unwrap();
    assert_eq!(words(&frames), (command::POST_SEND, 8, 1));
    let group = Gid::from_ip([224, 0, 0, 1].into());
    uverbs.multicast(1, group, true).unwrap();
    assert_eq!(words(&frames), (command::ATTACH_MCAST, 8, 0));
    uverbs.multicast(1, group, false).unwrap();
    assert_eq!(words(&frames), (command::DETACH_MCAST, 8, 0));
    let mut srq = NewSrq {
        user_handle: 1,
        pd: 1,
        max_wr: 1,
        max_sge: 1,
        limit: 0,
        xrc: None,
    };
    uverbs.create_srq(&srq, &mut [0; 24]).unwrap();
    assert_eq!(words(&frames), (command::CREATE_SRQ, 10, 10), "rxe");
    uverbs.create_srq(&srq, &mut [0; 16]).unwrap();
    assert_eq!(words(&frames), (command::CREATE_SRQ, 10, 8), "siw");
    srq.xrc = Some((7, 8));
    uverbs.create_srq(&srq, &mut []).unwrap();
    assert_eq!(words(&frames), (command::CREATE_XSRQ, 14, 4));
    uverbs.set_srq_limit(1, 1, &[0; 8]).unwrap();
    assert_eq!(words(&frames), (command::MODIFY_SRQ, 8, 0), "rxe");
    uverbs.set_srq_limit(1, 1, &[]).unwrap();
    assert_eq!(words(&frames), (command::MODIFY_SRQ, 6, 0), "siw");
    uverbs.destroy_srq(1);
    assert_eq!(words(&frames), (command::DESTROY_SRQ, 6, 1));
    uverbs.open_xrcd().unwrap();
    assert_eq!(words(&frames), (command::OPEN_XRCD, 6, 1));
    uverbs.close_xrcd(1);
    assert_eq!(words(&frames), (command::CLOSE_XRCD, 3, 0));
    let av = AddressVector {
        dgid: Gid::ZERO,
        sgid_index: 0,
        flow_label: 0,
        hop_limit: 1,
        traffic_class: 0,
        sl: 0,
        port: 1,
    };
    uverbs.create_ah(1, &av, &mut [0; 8]).unwrap();
    assert_eq!(words(&frames), (command::CREATE_AH, 16, 3));
    uverbs.destroy_ah(1);
    assert_eq!(words(&frames), (command::DESTROY_AH, 3, 0));
}

/// The address of the answer comes first in the structure, and stays out where
/// there is no answer.
#[test]
fn written_commands_say_where_the_answer_goes() {
    let (uverbs, frames) = write_only(&mut []);
    uverbs.alloc_pd().unwrap();
    let answer = 0x1122_3344_5566_7788_u64.to_ne_bytes();
    assert_eq!(frames.lock().unwrap().last().unwrap()[8..16], answer);
    uverbs.dealloc_pd(0x99);
    assert_eq!(
        frames.lock().unwrap().last().unwrap()[8..12],
        0x99_u32.to_ne_bytes()
    );
}

/// What a kernel without the attribute form lacks for good.
#[test]
fn what_only_attributes_can_say_is_unsupported() {
    let (uverbs, _) = write_only(&mut []);
    let gids = uverbs.query_gid_table(1);
    assert!(matches!(gids, Err(VerbsError::Unsupported { .. })));
    let registration = Registration {
        pd: 1,
        start: 0,
        length: 4096,
        iova: 0,
        access: AccessFlags::LOCAL_WRITE,
    };
    let file = std::fs::File::open("/dev/null").unwrap();
    let registered = uverbs.reg_dmabuf_mr(&registration, std::os::fd::AsFd::as_fd(&file));
    assert!(matches!(registered, Err(VerbsError::Unsupported { .. })));
}

/// A dma-buf is given by a plain number, and its handle is a new object's.
#[test]
fn a_dmabuf_is_registered_by_its_descriptor() {
    use crate::uverbs::command::Value;
    use std::os::fd::{AsFd, AsRawFd};
    let file = std::fs::File::open("/dev/null").unwrap();
    let fd = file.as_raw_fd() as u32;
    let uverbs = open(FakeKernel {
        ioctl: Box::new(move |command| {
            assert_eq!(command.method, Method::REG_DMABUF_MR);
            let values: Vec<_> = command
                .attributes
                .iter()
                .map(|a| (a.id, &a.value))
                .collect();
            assert_eq!(values[1], (1, &Value::Object(3)));
            assert_eq!(
                values[2..5],
                [
                    (2, &Value::Number64(0x2000)),
                    (3, &Value::Number64(0x1000)),
                    (4, &Value::Number64(0x7000)),
                ]
            );
            assert_eq!(values[5], (5, &Value::Number32(fd)));
            super::answer(command, 0, &9_u32.to_ne_bytes());
            super::answer(command, 7, &10_u32.to_ne_bytes());
            super::answer(command, 8, &11_u32.to_ne_bytes());
            Ok(())
        }),
        ..FakeKernel::default()
    });
    let registration = Registration {
        pd: 3,
        start: 0x2000,
        length: 0x1000,
        iova: 0x7000,
        access: AccessFlags::LOCAL_WRITE,
    };
    let made = uverbs.reg_dmabuf_mr(&registration, file.as_fd()).unwrap();
    assert_eq!((made.handle, made.lkey, made.rkey), (9, 10, 11));
}

/// A method that the kernel lacks is invoked as the command it replaced.
#[test]
fn a_missing_method_falls_back_to_its_command() {
    for missing in [libc::EPROTONOSUPPORT, libc::EOPNOTSUPP] {
        let uverbs = open(FakeKernel {
            ioctl: Box::new(move |command| {
                let Some((number, request)) = invoked(command) else {
                    return Err(errno(missing));
                };
                assert_eq!(number, command::CREATE_CQ);
                assert_eq!(request[16..20], 5_u32.to_ne_bytes());
                let made = CreateCqResp {
                    cq_handle: 8,
                    cqe: 7,
                };
                super::answer(command, 1, made.as_bytes());
                Ok(())
            }),
            ..FakeKernel::default()
        });
        let new = NewCq {
            user_handle: 1,
            depth: 5,
            channel: None,
        };
        let made = uverbs.create_cq(&new, &mut [0; 16]).unwrap();
        assert_eq!((made.handle, made.depth), (8, 7));
    }
}

/// `write(2)` refuses a process that has changed its credentials since it
/// opened the device; the attribute form doesn't.
#[test]
fn the_doorbell_survives_a_change_of_credentials() {
    let rung = Arc::new(Mutex::new((0, 0)));
    let (by_write, by_ioctl) = (Arc::clone(&rung), Arc::clone(&rung));
    let uverbs = open(FakeKernel {
        ioctl: Box::new(move |command| {
            assert_eq!(invoked(command).unwrap().0, command::POST_SEND);
            by_ioctl.lock().unwrap().1 += 1;
            Ok(())
        }),
        doorbell: Box::new(move |_| {
            by_write.lock().unwrap().0 += 1;
            Err(errno(libc::EACCES))
        }),
        ..FakeKernel::default()
    });
    for _ in 0..3 {
        uverbs.doorbell(4).unwrap();
    }
    assert_eq!(
        *rung.lock().unwrap(),
        (1, 3),
        "written once, then never again"
    );
}
