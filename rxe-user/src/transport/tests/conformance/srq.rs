//! Group srq, and the rows of group pd that are about shared queues.

use std::time::Duration;

use verbs_sys::{
    AccessFlags, EventKind, EventSource, QpAttributes, QpState, ReceiveRequest, SendOp, Sge,
    WcStatus,
};

use super::{A_ERR, BOTH_ERR, TARGET, kinds, only, states};
use crate::transport::tests::harness::{A, B, Fate, Host, Pair, Setup, outcomes, pattern};
use crate::transport::{Keys, NicLimits, PdId, SrqSettings};

const SRQ: Setup = Setup {
    shared_receive_queue: true,
    ..Setup::DEFAULT
};

fn srq_settings(pd: PdId, depth: u32, max_sge: u32, limit: u32) -> SrqSettings {
    SrqSettings {
        pd,
        depth,
        max_sge,
        limit,
        xrc: None,
    }
}

/// SRQ-001.
#[test]
fn create_query_and_destroy_srq() {
    let mut host = Host::new(1, &Setup::default());
    let limits = NicLimits::default();
    let settings = srq_settings(host.pd, limits.max_qp_wr, limits.max_sge, 0);
    let srq = host.nic.create_srq(settings).unwrap();
    host.nic.set_srq_limit(srq, limits.max_qp_wr).unwrap();
    host.nic.destroy_srq(srq).unwrap();
    assert!(host.nic.set_srq_limit(srq, 0).is_err());
    assert!(host.nic.post_srq_recv(srq, &[]).is_ok(), "nothing to post");
    assert!(host.nic.destroy_srq(srq).is_err());
}

/// SRQ-002.
#[test]
fn create_srq_beyond_device_limit_is_rejected() {
    let mut host = Host::new(1, &Setup::default());
    let limits = NicLimits::default();
    for (depth, max_sge, limit, fits) in [
        (64, limits.max_sge, 0, true),
        (64, 1, 64, true),
        (limits.max_qp_wr + 1, 1, 0, false),
        (0, 1, 0, false),
        (64, limits.max_sge + 1, 0, false),
        (64, 1, 65, false),
    ] {
        let settings = srq_settings(host.pd, depth, max_sge, limit);
        let created = host.nic.create_srq(settings);
        assert_eq!(created.is_ok(), fits, "{depth} {max_sge} {limit}");
        match created {
            Ok(srq) => host.nic.destroy_srq(srq).unwrap(),
            Err(error) => assert_eq!(error.errno(), libc::EINVAL),
        }
    }
}

/// SRQ-003.
#[test]
fn post_recv_on_qp_with_srq_is_refused() {
    let mut pair = Pair::new(&SRQ);
    let list = [pair.b().sge(TARGET, 8)];
    let request = [ReceiveRequest {
        wr_id: 1,
        sges: &list,
    }];
    let qpn = pair.b().qpn;
    let error = pair.b().nic.post_recv(qpn, &request).unwrap_err();
    assert_eq!((error.posted, error.source.errno()), (0, libc::EINVAL));
    let srq = pair.b().srq.unwrap();
    assert!(pair.b().nic.destroy_srq(srq).is_err(), "it is in use");
}

/// SRQ-004.
#[test]
fn srq_accepts_exactly_its_capacity() {
    let mut host = Host::new(1, &SRQ);
    let srq = host.srq.unwrap();
    let requests: Vec<_> = (0..65)
        .map(|wr_id| ReceiveRequest { wr_id, sges: &[] })
        .collect();
    let error = host.nic.post_srq_recv(srq, &requests).unwrap_err();
    assert_eq!((error.posted, error.source.errno()), (64, libc::ENOMEM));
}

/// SRQ-005.
#[test]
fn srq_recv_with_too_many_sges_is_refused() {
    let mut host = Host::new(1, &SRQ);
    let srq = host.srq.unwrap();
    let sge = host.sge(0, 8);
    let (four, five) = ([sge; 4], [sge; 5]);
    let request = |wr_id, sges| ReceiveRequest { wr_id, sges };
    let requests = [request(1, &four[..]), request(2, &five[..])];
    let error = host.nic.post_srq_recv(srq, &requests).unwrap_err();
    assert_eq!((error.posted, error.source.errno()), (1, libc::EINVAL));
}

/// SRQ-007.
#[test]
fn srq_recv_serves_send() {
    let mut pair = Pair::new(&SRQ);
    for round in 0..200 {
        let wr_id = u64::MAX - round;
        pair.b().recv(wr_id, TARGET, 600);
        pair.a().write(0, &pattern(round, 600));
        pair.a().post(round, SendOp::Send, 0, 600);
        pair.drive();
        assert_eq!(only(pair.a().sent()).wr_id, round);
        assert_eq!(only(pair.b().received()).wr_id, wr_id);
        assert_eq!(pair.b().read(TARGET, 600), pattern(round, 600));
    }
}

/// A second connection between the hosts; its queue pairs.
fn second(pair: &mut Pair) -> [u32; 2] {
    let qpns = [pair.a().create_qp(), pair.b().create_qp()];
    let addresses = [pair.a().address, pair.b().address];
    pair.a().connect(qpns[0], addresses[1], qpns[1], [1, 2]);
    pair.b().connect(qpns[1], addresses[0], qpns[0], [2, 1]);
    qpns
}

/// SRQ-009, T-081: taken at a message's first packet, whichever ends first.
#[test]
fn srq_entries_leave_in_post_order() {
    let mut pair = Pair::new(&SRQ);
    let [other_a, other_b] = second(&mut pair);
    let (first_a, first_b) = (pair.a().qpn, pair.b().qpn);
    for wr_id in [1, 2, 3] {
        pair.b().recv(wr_id, TARGET + 1000 * wr_id as usize, 1000);
    }
    // The first message is long: it is under way when the second one ends.
    pair.faults = Box::new(move |_, _, datagram| {
        let packet = datagram.packet();
        let is_late = packet.dest_qpn() == first_b && packet.operation().is_end();
        match is_late && packet.operation().is_request() {
            true => Fate::Delay(Duration::from_micros(50)),
            false => Fate::Deliver,
        }
    });
    pair.a().post(1, SendOp::Send, 0, 600);
    pair.a().qpn = other_a;
    pair.a().post(2, SendOp::Send, 0, 600);
    pair.drive();
    let received = pair.b().received();
    let order: Vec<_> = received
        .iter()
        .map(|done| (done.wr_id, done.qp_num))
        .collect();
    assert_eq!(order, [(2, other_b), (1, first_b)]);
    pair.a().qpn = first_a;
    assert_eq!(pair.a().sent().len(), 2);
}

/// SRQ-010.
#[test]
fn srq_entries_survive_error_of_one_qp() {
    let mut pair = Pair::new(&SRQ);
    let [other_a, _] = second(&mut pair);
    for wr_id in [1, 2] {
        pair.b().recv(wr_id, TARGET, 100);
    }
    let error = QpAttributes::to_state(QpState::Error);
    pair.b().modify(error).unwrap();
    assert_eq!(pair.b().received(), []);
    assert_eq!(kinds(pair.b()), [EventKind::LastWqeReached]);
    pair.a().qpn = other_a;
    pair.a().post(5, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(only(pair.b().received()).wr_id, 1);
    assert_eq!(only(pair.a().sent()).wr_id, 5);
}

/// SRQ-011.
#[test]
fn srq_limit_event_fires_once_below_limit() {
    let mut pair = Pair::new(&SRQ);
    let srq = pair.b().srq.unwrap();
    for wr_id in 0..60 {
        pair.b().recv(wr_id, TARGET, 8);
    }
    pair.b().nic.set_srq_limit(srq, 30).unwrap();
    let take = |pair: &mut Pair, count| {
        for wr_id in 0..count {
            pair.a().post(wr_id, SendOp::Send, 0, 8);
        }
        pair.drive();
        pair.b().events()
    };
    assert_eq!(take(&mut pair, 30), [], "exactly the limit is left");
    let fired = take(&mut pair, 1);
    assert_eq!(fired.len(), 1);
    assert_eq!(fired[0].kind, EventKind::SrqLimitReached);
    assert_eq!(fired[0].source, EventSource::Srq(srq.number()));
    assert_eq!(take(&mut pair, 10), [], "once");
    pair.b().nic.set_srq_limit(srq, 15).unwrap();
    assert_eq!(take(&mut pair, 4), []);
    assert_eq!(take(&mut pair, 1).len(), 1, "armed again");
}

/// SRQ-012.
#[test]
fn empty_srq_gives_rnr() {
    let mut pair = Pair::new(&Setup {
        rnr_retry: 1,
        ..SRQ
    });
    let before = pair.b().read(TARGET, 8);
    pair.a().post(1, SendOp::Send, 0, 8);
    pair.drive();
    let failed = [(1, WcStatus::RnrRetryExceeded)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(pair.texts(B), ["Acknowledge 0 RNR 1 msn 0"; 2]);
    assert_eq!(states(&pair), A_ERR);
    assert_eq!(pair.b().read(TARGET, 8), before);
}

/// SRQ-013.
#[test]
fn taken_srq_entry_is_flushed_and_last_wqe_reported() {
    let mut pair = Pair::new(&SRQ);
    for wr_id in [1, 2] {
        pair.b().recv(wr_id, TARGET, 1000);
    }
    pair.drop_packets(A, &[2]);
    pair.a().post(1, SendOp::Send, 0, 600);
    pair.run_for(Duration::from_micros(5));
    let error = QpAttributes::to_state(QpState::Error);
    pair.b().modify(error).unwrap();
    let flushed = [(1, WcStatus::WorkRequestFlushed)];
    assert_eq!(outcomes(&pair.b().received()), flushed);
    assert_eq!(kinds(pair.b()), [EventKind::LastWqeReached]);
}

/// A shared queue in a domain of its own, and an RC queue pair of the first
/// domain that draws from it, in place of B's; with the keys of B's buffer in
/// the queue's domain.
fn queue_in_other_domain() -> (Pair, Keys) {
    let setup = Setup::default();
    let (a, mut b) = (Host::new(1, &setup), Host::new(2, &setup));
    let pd = b.nic.alloc_pd().unwrap();
    let range = b.buffer.whole();
    let keys = b.nic.register(pd, range, AccessFlags::LOCAL_WRITE).unwrap();
    let srq = b.nic.create_srq(srq_settings(pd, 8, 1, 0)).unwrap();
    b.srq = Some(srq);
    b.qpn = b.create_qp();
    (Pair::of(a, b, setup.psn), keys)
}

/// PD-023.
#[test]
fn srq_recv_buffer_in_srq_pd_is_accepted() {
    let (mut pair, keys) = queue_in_other_domain();
    let lkey = keys.lkey;
    let list = [Sge {
        lkey,
        ..pair.b().sge(TARGET, 100)
    }];
    pair.b().recv_into(7, &list);
    pair.a().write(0, &pattern(1, 100));
    pair.a().post(1, SendOp::Send, 0, 100);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    assert_eq!(only(pair.b().received()).wr_id, 7);
    assert_eq!(pair.b().read(TARGET, 100), pattern(1, 100));
}

/// PD-024.
#[test]
fn srq_recv_buffer_only_in_qp_pd_is_rejected() {
    let (mut pair, _) = queue_in_other_domain();
    pair.b().recv(7, TARGET, 100);
    pair.a().post(1, SendOp::Send, 0, 100);
    pair.drive();
    let refused = [(1, WcStatus::RemoteOperationError)];
    assert_eq!(outcomes(&pair.a().sent()), refused);
    let failed = [(7, WcStatus::LocalProtectionError)];
    assert_eq!(outcomes(&pair.b().received()), failed);
    assert_eq!(
        pair.texts(B),
        ["Acknowledge 0 RemoteOperationalError msn 0"]
    );
    assert_eq!(states(&pair), BOTH_ERR);
}

/// PD-025.
#[test]
fn write_imm_works_with_srq_on_other_pd() {
    let (mut pair, keys) = queue_in_other_domain();
    let lkey = keys.lkey;
    let list = [Sge {
        lkey,
        ..pair.b().sge(0, 100)
    }];
    let before = pair.b().read(0, 100);
    pair.b().recv_into(7, &list);
    pair.a().write(0, &pattern(1, 100));
    let remote = pair.b().remote(TARGET);
    pair.a()
        .post(1, SendOp::WriteImm { remote, imm: 5 }, 0, 100);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 1);
    let received = only(pair.b().received());
    assert_eq!((received.wr_id, received.immediate()), (7, Some(5)));
    assert_eq!(pair.b().read(TARGET, 100), pattern(1, 100));
    assert_eq!(pair.b().read(0, 100), before);
}
