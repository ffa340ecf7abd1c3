//! Odd, truncated and refusing answers of the kernel.

use std::sync::{Arc, Mutex};

use zerocopy::IntoBytes;

use super::{FakeKernel, answer, errno, invoked, open};
use crate::uapi::ioctl::{GidEntry, Method, QueryPortRespEx};
use crate::uapi::user_verbs::{ExQueryDeviceResp, QueryPortResp, QueryQpResp, command};
use crate::uverbs::Uverbs;
use crate::uverbs::objects::Registration;
use crate::uverbs::qp::NewQp;
use crate::uverbs::queues::NewCq;
use crate::{AccessFlags, QpCapabilities, QpType, VerbsError};

/// A context whose kernel gives every command this answer at the attribute.
fn answering(id: u16, bytes: Vec<u8>) -> Uverbs {
    open(FakeKernel {
        ioctl: Box::new(move |command| {
            answer(command, id, &bytes);
            Ok(())
        }),
        ..FakeKernel::default()
    })
}

/// A context whose kernel refuses every command.
fn refusing(code: i32) -> Uverbs {
    open(FakeKernel {
        ioctl: Box::new(move |_| Err(errno(code))),
        ..FakeKernel::default()
    })
}

fn assert_names(error: VerbsError, words: &[&str]) {
    let text = error.to_string();
    for word in words {
        assert!(text.contains(word), "{text:?} lacks {word:?}");
    }
}

fn port(change: impl FnOnce(&mut QueryPortResp)) -> Vec<u8> {
    let mut legacy = QueryPortResp {
        state: 4,
        max_mtu: 5,
        active_mtu: 3,
        link_layer: 2,
        ..QueryPortResp::default()
    };
    change(&mut legacy);
    QueryPortRespEx {
        legacy,
        ..QueryPortRespEx::default()
    }
    .as_bytes()
    .to_vec()
}

#[test]
fn odd_ports_are_named() {
    let query = |bytes| answering(1, bytes).query_port(1);
    assert!(query(port(|_| ())).is_ok());
    let odd = query(port(|port| port.state = 9)).unwrap_err();
    assert_names(odd, &["query port 1", "port state 9", "0 to 5"]);
    let odd = query(port(|port| port.active_mtu = 0)).unwrap_err();
    assert_names(odd, &["active MTU 0", "1 to 5"]);
    let odd = refusing(libc::EINVAL).query_port(7).unwrap_err();
    assert_names(odd, &["port is 7"]);
}

#[test]
fn a_short_device_answer_is_named() {
    let resp = |response_length, atomic_cap| {
        let mut resp = ExQueryDeviceResp {
            response_length,
            ..ExQueryDeviceResp::default()
        };
        resp.base.atomic_cap = atomic_cap;
        resp.base.fw_ver = 0x0010_0023_1234;
        answering(1, resp.as_bytes().to_vec()).query_device()
    };
    assert_eq!(resp(304, 1).unwrap().fw_ver, "16.35.4660");
    assert_names(resp(8, 1).unwrap_err(), &["a length of 8", "176"]);
    assert_names(resp(304, 77).unwrap_err(), &["atomic capability 77"]);
}

#[test]
fn odd_gid_tables_are_named() {
    let table = |count: u64, gid_type| {
        let entry = GidEntry {
            gid: [1; 16],
            gid_index: 3,
            port_num: 1,
            gid_type,
            netdev_ifindex: 2,
        };
        let kernel = FakeKernel {
            ioctl: Box::new(move |command| {
                assert_eq!(command.method, Method::QUERY_GID_TABLE);
                answer(command, 2, entry.as_bytes());
                answer(command, 3, count.as_bytes());
                Ok(())
            }),
            ..FakeKernel::default()
        };
        open(kernel).query_gid_table(2)
    };
    assert_eq!(table(1, 2).unwrap()[0].index, 3);
    assert_names(
        table(3, 2).unwrap_err(),
        &["number of GIDs of 3", "at most 2"],
    );
    assert!(table(u64::MAX, 2).is_err());
    assert_names(table(1, 7).unwrap_err(), &["GID type 7"]);
}

#[test]
fn empty_and_missing_gids_are_told_apart() {
    let empty = refusing(libc::ENODATA).query_gid(1, 5);
    assert!(matches!(empty, Err(VerbsError::NoEntry { index: 5, .. })));
    let beyond = refusing(libc::EINVAL).query_gid(1, 5000);
    assert!(matches!(beyond, Err(VerbsError::InvalidArgument { .. })));
}

#[test]
fn an_unknown_queue_pair_state_is_named() {
    let resp = QueryQpResp {
        qp_state: 8,
        ..QueryQpResp::default()
    };
    let odd = answering(1, resp.as_bytes().to_vec()).query_qp(1);
    assert_names(odd.unwrap_err(), &["queue pair state 8"]);
}

#[test]
fn a_channel_that_is_no_descriptor_is_refused() {
    let odd = answering(1, (-1_i32).as_bytes().to_vec()).create_comp_channel();
    assert_names(odd.unwrap_err(), &["descriptor -1"]);
}

#[test]
fn refused_registrations_explain_the_limit() {
    let registration = Registration {
        pd: 1,
        start: 0x1000,
        length: 1 << 20,
        iova: 0x1000,
        access: AccessFlags::LOCAL_WRITE,
    };
    for (code, words) in [
        (libc::ENOMEM, ["1048576 bytes", "ulimit -l"]),
        (libc::EPERM, ["may not lock memory", "ulimit -l"]),
        (libc::EFAULT, ["1048576 bytes", "not all there"]),
        (libc::EIO, ["1048576 bytes", "removed"]),
        (libc::EBUSY, ["1048576 bytes", "busy"]),
    ] {
        let error = refusing(code)
            .reg_mr(&registration, &[], &mut [])
            .unwrap_err();
        assert_eq!(error.errno(), code);
        assert_names(error, &words);
    }
}

/// What the device allows is asked for only when something is refused.
#[test]
fn refused_sizes_name_the_limits() {
    let queried = Arc::new(Mutex::new(0));
    let count = Arc::clone(&queried);
    let uverbs = open(FakeKernel {
        ioctl: Box::new(move |ours| match invoked(ours) {
            Some((command::EX_QUERY_DEVICE, _)) => {
                *count.lock().unwrap() += 1;
                let mut resp = ExQueryDeviceResp {
                    response_length: 304,
                    ..ExQueryDeviceResp::default()
                };
                (resp.base.max_cqe, resp.base.max_qp_wr) = (32767, 16384);
                answer(ours, 1, resp.as_bytes());
                Ok(())
            }
            _ => Err(errno(libc::EINVAL)),
        }),
        ..FakeKernel::default()
    });
    let new = NewCq {
        user_handle: 1,
        depth: 100_000,
        channel: None,
    };
    let refused = uverbs.create_cq(&new, &mut []).unwrap_err();
    assert_names(refused, &["100000", "1 to 32767"]);
    let new = NewQp {
        user_handle: 1,
        qp_type: QpType::Rc,
        pd: 1,
        send_cq: 1,
        recv_cq: 1,
        srq: None,
        xrcd: None,
        cap: QpCapabilities {
            max_send_wr: 20_000,
            ..QpCapabilities::default()
        },
        sq_sig_all: false,
    };
    let refused = uverbs.create_qp(&new, &mut []).unwrap_err();
    assert_names(refused, &["20000 sends", "at most 16384 requests"]);
    assert_eq!(*queried.lock().unwrap(), 2);
}

#[test]
fn what_a_driver_lacks_is_unsupported() {
    let uverbs = refusing(libc::EOPNOTSUPP);
    assert!(matches!(
        uverbs.open_xrcd(),
        Err(VerbsError::Unsupported { what: "XRC" })
    ));
    assert!(matches!(
        uverbs.alloc_mw(1),
        Err(VerbsError::Unsupported {
            what: "memory windows"
        })
    ));
}

#[test]
fn no_way_to_the_peer_says_what_to_try() {
    let uverbs = refusing(libc::ENETUNREACH);
    let av = crate::AddressVector {
        dgid: crate::Gid::from_ip([192, 0, 2, 9].into()),
        sgid_index: 1,
        flow_label: 0,
        hop_limit: 64,
        traffic_class: 0,
        sl: 0,
        port: 1,
    };
    let error = uverbs.create_ah(1, &av, &mut []).unwrap_err();
    assert_names(error, &["192.0.2.9", "ip route"]);
    let far = crate::AddressVector {
        sgid_index: 256,
        ..av
    };
    let error = uverbs.create_ah(1, &far, &mut []).unwrap_err();
    assert_names(error, &["256", "at most 255"]);
}
