//! Objects of a context: completions, events, datagrams, who keeps whom.

use std::sync::Arc;

use zerocopy::{FromBytes, IntoBytes};

use super::{Rig, code, init, slot};
use crate::memory::Buffer;
use crate::uapi::ioctl::Method;
use crate::uapi::rxe::{SendWqe, UdWr, queue};
use crate::uapi::user_verbs::{Wc, command};
use crate::{
    AccessFlags, AddressVector, Completion, CompletionQueue, Context, Gid, Notify, QpType, SendOp,
    SendRequest, UdTarget, VerbsError, WcFlags, WcOpcode, WcStatus,
};

fn av(dgid: Gid) -> AddressVector {
    AddressVector {
        dgid,
        sgid_index: 1,
        flow_label: 0,
        hop_limit: 0,
        traffic_class: 4,
        sl: 0,
        port: 1,
    }
}

/// Puts a completion where the kernel would.
fn complete(rig: &Rig, wc: &Wc) {
    let produced = super::load(&rig.cq, queue::PRODUCER_INDEX);
    let offset = queue::DATA + ((produced as usize) << 7);
    rig.cq.write(offset, wc.as_bytes()).unwrap();
    rig.cq.store_u32(queue::PRODUCER_INDEX, (produced + 1) & 15);
}

fn poll(cq: &mut dyn CompletionQueue) -> Completion {
    let mut completions = [Completion::default(); 4];
    assert_eq!(cq.poll(&mut completions), 1);
    completions[0]
}

#[test]
fn completions_are_put_in_the_words_of_the_verbs() {
    let rig = Rig::new();
    let mut cq = rig.completions();
    assert_eq!(cq.depth(), 15);
    assert_eq!(cq.poll(&mut [Completion::default()]), 0);
    let wc = Wc {
        wr_id: 9,
        opcode: 128,
        byte_len: 104,
        imm_or_rkey: [0xc0, 0xff, 0xee, 1],
        qp_num: 17,
        src_qp: 18,
        wc_flags: 1 | 2,
        ..Wc::default()
    };
    complete(&rig, &wc);
    let completion = poll(&mut *cq);
    assert_eq!(completion.opcode, WcOpcode::Receive);
    assert_eq!(completion.immediate(), Some(0xc0ff_ee01));
    assert_eq!(completion.flags, WcFlags::GRH | WcFlags::WITH_IMM);
    // The kernel's bit of an invalidated key is another one than the verbs',
    // and connected queue pairs have no GRH whatever the kernel says.
    complete(
        &rig,
        &Wc {
            imm_or_rkey: 0x0800_0105_u32.to_ne_bytes(),
            src_qp: 0,
            wc_flags: 1 | 4,
            ..wc
        },
    );
    let completion = poll(&mut *cq);
    assert_eq!(completion.invalidated_rkey(), Some(0x0800_0105));
    assert_eq!(completion.flags, WcFlags::WITH_INV);
    // A completed send isn't one with immediate data.
    complete(
        &rig,
        &Wc {
            opcode: 1,
            wc_flags: 2,
            ..Wc::default()
        },
    );
    let completion = poll(&mut *cq);
    assert_eq!(
        (completion.opcode, completion.flags),
        (WcOpcode::Write, WcFlags::empty())
    );
    for (status, expected) in [(12, WcStatus::RetryExceeded), (99, WcStatus::General)] {
        complete(
            &rig,
            &Wc {
                status,
                opcode: 0xdead,
                ..Wc::default()
            },
        );
        assert_eq!(poll(&mut *cq).status, expected);
    }
}

#[test]
fn arming_asks_the_kernel() {
    let rig = Rig::new();
    let mut cq = rig.completions();
    cq.arm(Notify::Solicited);
    assert_eq!(
        rig.asked.lock().unwrap().last(),
        Some(&command::REQ_NOTIFY_CQ)
    );
}

/// A kernel that numbers address handles wants the number, one that doesn't
/// the whole path.
#[test]
fn datagrams_say_where_they_go() {
    for ah_num in [3, 0] {
        let rig = Rig::new();
        *rig.ah_num.lock().unwrap() = ah_num;
        let peer = Gid::from_ip([10, 0, 0, 2].into());
        let ah = rig.context.create_ah(&*rig.domain(), &av(peer)).unwrap();
        let mut qp = rig.ready(QpType::Ud);
        let mut request = SendRequest::signaled(1, SendOp::Send, &[]);
        request.ud = Some(UdTarget {
            ah: &*ah,
            qpn: 0x12,
            qkey: 0x1122_3344,
        });
        qp.post_send(&[request]).unwrap();
        let wqe = SendWqe::read_from_bytes(&slot::<208>(&rig.sq, 0)).unwrap();
        let ud = UdWr::read_from_bytes(wqe.operands.as_bytes()).unwrap();
        assert_eq!((ud.remote_qpn, ud.remote_qkey), (0x12, 0x1122_3344));
        assert_eq!(ud.ah_num, ah_num);
        if ah_num == 0 {
            assert_eq!((ud.av.network_type, ud.av.port_num), (1, 1));
            assert_eq!((ud.av.hop_limit, ud.av.traffic_class), (64, 4));
            assert_eq!(ud.av.dgid, peer.0);
            assert_eq!(ud.av.source[4..8], [10, 0, 0, 1]);
            assert_eq!(ud.av.destination[4..8], [10, 0, 0, 2]);
        } else {
            assert_eq!(ud.av, Default::default());
        }
        drop(ah);
        let asked = rig.asked.lock().unwrap();
        assert!(asked.contains(&code(Method::AH_DESTROY)));
    }
}

#[test]
fn groups_are_left_before_the_queue_pair_goes() {
    let rig = Rig::new();
    let mut qp = rig.ready(QpType::Ud);
    let groups = [1, 2].map(|last| Gid::from_ip([224, 0, 0, last].into()));
    for group in groups {
        qp.attach_multicast(&group).unwrap();
    }
    qp.attach_multicast(&groups[0]).unwrap();
    assert!(qp.attach_multicast(&Gid::ZERO).is_err());
    qp.detach_multicast(&groups[0]).unwrap();
    assert!(qp.detach_multicast(&groups[0]).is_err());
    rig.asked.lock().unwrap().clear();
    drop(qp);
    let asked = rig.asked.lock().unwrap().clone();
    assert_eq!(
        asked[..2],
        [command::DETACH_MCAST, code(Method::QP_DESTROY)]
    );
}

/// The order in which a program drops its objects doesn't matter.
#[test]
fn objects_keep_alive_what_they_need() {
    let rig = Rig::new();
    let pd = rig.domain();
    let cq = rig.completions();
    let qp = rig
        .context
        .create_qp(&*pd, &init(QpType::Rc, &*cq))
        .unwrap();
    let buffer = Buffer::allocate(4096).unwrap();
    let access = AccessFlags::LOCAL_WRITE;
    let mr = rig.context.reg_mr(&*pd, buffer.whole(), access).unwrap();
    rig.asked.lock().unwrap().clear();
    drop((pd, cq));
    assert_eq!(*rig.asked.lock().unwrap(), []);
    drop((mr, qp));
    let expected = [
        Method::MR_DESTROY,
        Method::QP_DESTROY,
        Method::PD_DESTROY,
        Method::CQ_DESTROY,
    ];
    assert_eq!(*rig.asked.lock().unwrap(), expected.map(code));
}

#[test]
fn objects_of_others_are_refused() {
    let (rig, other) = (Rig::new(), Rig::new());
    let cq = other.completions();
    let foreign = |result: Result<(), VerbsError>| {
        assert!(matches!(result, Err(VerbsError::ForeignObject { .. })));
    };
    let own = rig.domain();
    foreign(
        rig.context
            .create_qp(&*own, &init(QpType::Rc, &*cq))
            .map(drop),
    );
    let buffer = Buffer::allocate(1).unwrap();
    let whole = buffer.whole();
    let pd = other.domain();
    foreign(
        rig.context
            .reg_mr(&*pd, whole, AccessFlags::empty())
            .map(drop),
    );
    foreign(rig.context.alloc_window(&*pd).map(drop));
    foreign(rig.context.create_ah(&*pd, &av(Gid::ZERO)).map(drop));
}

#[test]
fn registrations_are_checked_before_the_kernel_is_asked() {
    let rig = Rig::new();
    let pd = rig.domain();
    let buffer = Buffer::allocate(8192).unwrap();
    rig.asked.lock().unwrap().clear();
    let crooked = buffer.range(8..16).unwrap();
    for (range, access) in [
        (buffer.range(8..8).unwrap(), AccessFlags::empty()),
        (buffer.whole(), AccessFlags::REMOTE_WRITE),
        (crooked, AccessFlags::ZERO_BASED),
    ] {
        let refused = rig.context.reg_mr(&*pd, range, access).err().unwrap();
        assert!(matches!(refused, VerbsError::InvalidArgument { .. }));
    }
    assert_eq!(*rig.asked.lock().unwrap(), []);
    let zero_based = AccessFlags::ZERO_BASED | AccessFlags::LOCAL_WRITE;
    rig.context
        .reg_mr(&*pd, buffer.whole(), zero_based)
        .unwrap();
    let null = std::fs::File::open("/dev/null").unwrap();
    let fd = std::os::fd::AsFd::as_fd(&null);
    let empty = rig
        .context
        .reg_dmabuf_mr(&*pd, fd, 0..0, 0, AccessFlags::empty());
    assert!(matches!(
        empty.err(),
        Some(VerbsError::InvalidArgument { .. })
    ));
    let region = rig
        .context
        .reg_dmabuf_mr(&*pd, fd, 4096..8192, 0x5000, AccessFlags::LOCAL_WRITE)
        .unwrap();
    assert_eq!((region.addr(), region.len()), (0x5000, 4096));
}

#[test]
fn pkeys_are_read_from_sysfs() {
    let rig = Rig::new();
    assert_eq!(rig.context.query_pkey(1, 0).unwrap(), 0xffff);
    assert!(rig.context.query_pkey(1, 1).is_err());
    assert!(rig.context.query_pkey(2, 0).is_err());
    assert!(matches!(
        rig.context.alloc_xrcd().err(),
        Some(VerbsError::Unsupported { what: "XRC" })
    ));
}

#[test]
fn gids_come_from_sysfs_where_there_is_no_command() {
    let rig = Rig::new();
    assert_eq!(rig.context.query_gid_table().unwrap()[0].index, 1);
    rig.missing
        .lock()
        .unwrap()
        .extend([Method::QUERY_GID_ENTRY, Method::QUERY_GID_TABLE]);
    let table = rig.context.query_gid_table().unwrap();
    assert_eq!(table.len(), 1);
    assert_eq!((table[0].index, table[0].port), (2, 1));
    assert_eq!(table[0].gid.to_string(), "fd00::1");
    assert_eq!(rig.context.query_gid(1, 2).unwrap(), table[0]);
    assert!(matches!(
        rig.context.query_gid(1, 1),
        Err(VerbsError::NoEntry { index: 1, .. })
    ));
}

#[test]
fn trouble_is_named() {
    let rig = Rig::new();
    assert_eq!(rig.context.trouble(), None);
    *rig.state.lock().unwrap() = 1;
    let trouble = rig.context.trouble().unwrap();
    assert!(trouble.contains("port 1 of rxe_t is Down"), "{trouble}");
    std::fs::remove_dir_all(rig.sysfs.path()).unwrap();
    let trouble = rig.context.trouble().unwrap();
    assert!(trouble.contains("rxe_t has been removed"), "{trouble}");
}

#[test]
fn asynchronous_events_name_their_object() {
    use crate::uapi::user_verbs::AsyncEventDesc;
    use crate::{AsyncEvent, EventKind, EventSource};
    use std::io::Write as _;
    let mut rig = Rig::new();
    let cq = rig.completions();
    let qp = rig.ready(QpType::Rc);
    assert_eq!(rig.context.next_async_event(), None);
    // Numbers are given in turn: this queue's, that of the queue pair's own
    // queue, the queue pair's.
    for (element, event_type) in [(1, 0), (3, 3), (1, 18), (0, 8), (99, 1), (3, 77), (3, 16)] {
        let event = AsyncEventDesc {
            element,
            event_type,
            reserved: 0,
        };
        rig.events.write_all(event.as_bytes()).unwrap();
    }
    let seen = std::iter::from_fn(|| rig.context.next_async_event());
    let expected = [
        (EventKind::CqError, EventSource::Cq(cq.handle())),
        (EventKind::QpAccessError, EventSource::Qp(qp.qpn())),
        (EventKind::GidChange, EventSource::Port(1)),
        (EventKind::DeviceFatal, EventSource::Device),
        // An object that is gone, and an event that nobody knows, are skipped.
        (EventKind::LastWqeReached, EventSource::Qp(qp.qpn())),
    ];
    let expected = expected.map(|(kind, source)| AsyncEvent { kind, source });
    assert_eq!(seen.collect::<Vec<_>>(), expected);
}

#[test]
fn completion_events_name_their_queue() {
    use crate::drivers::objects::Channel;
    use crate::uverbs::events::CompletionEvents;
    use std::io::Write as _;
    let (reader, mut writer) = std::io::pipe().unwrap();
    let channel = Arc::new(Channel(CompletionEvents::new(reader.into()).unwrap()));
    let channel: Arc<dyn crate::CompletionChannel> = channel;
    let short = Some(std::time::Duration::from_millis(1));
    assert_eq!(channel.wait(short).unwrap(), None);
    writer.write_all(&7_u64.to_ne_bytes()).unwrap();
    writer.write_all(&8_u64.to_ne_bytes()).unwrap();
    assert_eq!(channel.wait(None).unwrap(), Some(7));
    assert_eq!(channel.next_event(), Some(8));
    assert_eq!(channel.next_event(), None);
}
