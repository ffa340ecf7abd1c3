//! Rows 13 to 19: memory that can't be accessed, and what else ends a connection.

use verbs_sys::{AccessFlags, EventKind, QpAttributes, QpState, WcStatus};

use super::{
    REMOTE_ACCESS, REMOTE_OPERATIONAL, TARGET, assert_fatal, endpoint, refused, refused_with_event,
};
use crate::transport::Acks;
use crate::transport::tests::harness::{BUFFER, Lone, Raw, Setup, outcomes};
use crate::wire::{Operation as Op, Reth};

/// Row 13; T-070, T-075: keys, rights and bounds of remote memory.
#[test]
fn row_13_remote_access() {
    let outcome = refused_with_event(REMOTE_ACCESS, EventKind::QpAccessError);
    let end = BUFFER;
    type Aim = fn(&mut Lone) -> Reth;
    let aims: [(&str, Aim); 8] = [
        ("unknown key", |lone| Reth {
            rkey: lone.host.keys.rkey ^ 0x100,
            ..lone.reth(TARGET, 8)
        }),
        ("wrong tag", |lone| Reth {
            rkey: lone.host.keys.rkey ^ 1,
            ..lone.reth(TARGET, 8)
        }),
        ("other domain", |lone| {
            let pd = lone.host.nic.alloc_pd().unwrap();
            let range = lone.host.buffer.whole();
            let access = AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE;
            let keys = lone.host.nic.register(pd, range, access).unwrap();
            Reth {
                rkey: keys.rkey,
                ..lone.reth(TARGET, 8)
            }
        }),
        ("no right", |lone| {
            let (pd, range) = (lone.host.pd, lone.host.buffer.whole());
            let access = AccessFlags::LOCAL_WRITE;
            let keys = lone.host.nic.register(pd, range, access).unwrap();
            Reth {
                rkey: keys.lkey,
                ..lone.reth(TARGET, 8)
            }
        }),
        ("one before", |lone| {
            let mut reth = lone.reth(0, 8);
            reth.va -= 8;
            reth
        }),
        ("one behind", |lone| lone.reth(BUFFER - 4, 8)),
        ("beyond all addresses", |lone| Reth {
            va: u64::MAX - 7,
            ..lone.reth(0, 8)
        }),
        ("deregistered", |lone| {
            let (pd, range) = (lone.host.pd, lone.host.buffer.whole());
            let access = AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE;
            let keys = lone.host.nic.register(pd, range, access).unwrap();
            lone.host.nic.deregister(keys.lkey).unwrap();
            Reth {
                rkey: keys.rkey,
                ..lone.reth(TARGET, 8)
            }
        }),
    ];
    for (name, aim) in aims {
        for op in [Op::WriteOnly, Op::ReadRequest, Op::FetchAdd] {
            let mut lone = endpoint(&Setup::default());
            let mut raw = Raw::new(op, 0);
            raw.reth = aim(&mut lone);
            if op == Op::WriteOnly {
                raw.payload = vec![1; 8];
            }
            // What is aligned 4 before the end is another row's business.
            raw.atomic.va = raw.reth.va & !7;
            if name == "one behind" {
                raw.atomic.va = lone.host.remote(end).addr;
            }
            raw.atomic.rkey = raw.reth.rkey;
            assert_fatal(lone, &[raw], &outcome, &format!("{op}: {name}"));
        }
    }
    // RCW-011: the receive is told in its own words (IBTA 11.6.2).
    let lone = endpoint(&Setup::default());
    let mut raw = Raw::new(Op::WriteOnlyImm, 0).payload([1; 8]);
    raw.reth = lone.reth(end - 4, 8);
    let outcome = refused(REMOTE_ACCESS, WcStatus::LocalAccessError, None);
    assert_fatal(lone, &[raw], &outcome, "Write with immediate");
}

/// RCE-026, T-077: a key that goes away between the packets of a Write; row 19
/// is the same for a Read.
#[test]
fn key_revoked_mid_message_is_naked() {
    let mut lone = endpoint(&Setup::default());
    let (pd, range) = (lone.host.pd, lone.host.buffer.whole());
    let access = AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE;
    let keys = lone.host.nic.register(pd, range, access).unwrap();
    let first = Raw {
        reth: Reth {
            rkey: keys.rkey,
            ..lone.reth(TARGET, 500)
        },
        ..Raw::new(Op::WriteFirst, 0).no_ack().payload([1; 256])
    };
    assert!(lone.answers(&[first]).is_empty());
    lone.host.nic.deregister(keys.lkey).unwrap();
    let last = Raw::new(Op::WriteLast, 1).payload([2; 244]);
    let outcome = refused_with_event(REMOTE_ACCESS, EventKind::QpAccessError);
    assert_fatal(lone, &[last], &outcome, "Last");
}

/// RCR-007, T-071: nothing is looked at when nothing is accessed.
#[test]
fn duplicate_zero_length_read_with_bad_key_is_answered() {
    let mut lone = endpoint(&Setup::default());
    let garbage = Reth {
        va: 0xdead,
        rkey: 0xbeef,
        length: 0,
    };
    let write = Raw {
        reth: garbage,
        ..Raw::new(Op::WriteOnly, 0)
    };
    let read = Raw {
        reth: garbage,
        ..Raw::new(Op::ReadRequest, 1)
    };
    for _ in 0..2 {
        assert_eq!(
            lone.answers(std::slice::from_ref(&write)),
            [if lone.host.nic.counters().duplicate_requests == 0 {
                "Acknowledge 0 msn 1"
            } else {
                // The Read that came later may still lack its answer.
                "Acknowledge 0 msn 2"
            }]
        );
        assert_eq!(
            lone.answers(std::slice::from_ref(&read)),
            ["RDMA Read Response Only 1 msn 2"]
        );
    }
}

/// Row 14: the receive request's own memory.
#[test]
fn row_14_a_receive_whose_memory_is_invalid() {
    let outcome = refused(REMOTE_OPERATIONAL, WcStatus::LocalProtectionError, None);
    for name in ["unknown key", "read-only region", "beyond the region"] {
        let mut lone = Lone::new(&Setup::default());
        let mut sge = lone.host.sge(0, 100);
        match name {
            "unknown key" => sge.lkey ^= 1,
            "read-only region" => {
                let (pd, range) = (lone.host.pd, lone.host.buffer.whole());
                let keys = lone.host.nic.register(pd, range, AccessFlags::empty());
                sge.lkey = keys.unwrap().lkey;
            }
            _ => sge = lone.host.sge(BUFFER - 50, 100),
        }
        lone.host.recv_into(7, &[sge]);
        let raw = Raw::new(Op::SendOnly, 0).payload([1; 60]);
        assert_fatal(lone, &[raw], &outcome, name);
    }
}

/// Row 15; T-076: the message counts as received, the connection is over.
#[test]
fn row_15_send_that_invalidates_a_bad_key() {
    let mut lone = endpoint(&Setup::default());
    let raw = Raw {
        rkey: 0xbad0_0001,
        ..Raw::new(Op::SendOnlyInvalidate, 0).payload([1; 8])
    };
    assert_eq!(lone.answers(&[raw]), ["Acknowledge 0 msn 0"]);
    assert_eq!(lone.host.state(), QpState::Error);
    let received = lone.host.received();
    assert_eq!(outcomes(&received), [(7, WcStatus::RemoteInvalidRequest)]);
    assert_eq!(lone.host.events(), []);
}

/// Row 16; T-082: a completion queue that overruns takes its users with it.
#[test]
fn row_16_receive_completion_queue_overrun() {
    let setup = Setup {
        cq_depth: 2,
        ..Setup::default()
    };
    let mut lone = Lone::new(&setup);
    for wr_id in 0..3 {
        lone.host.recv(wr_id, 0, 100);
    }
    let sends: Vec<Raw> = (0..3).map(|psn| Raw::new(Op::SendOnly, psn)).collect();
    assert_eq!(lone.answers(&sends[..2]), ["Acknowledge 1 msn 2"]);
    assert!(lone.answers(&sends[2..]).is_empty());
    assert_eq!(lone.host.state(), QpState::Error);
    let kinds: Vec<EventKind> = lone.host.events().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::CqError, EventKind::QpFatal]);
    let success = WcStatus::Success;
    assert_eq!(
        outcomes(&lone.host.received()),
        [(0, success), (1, success)]
    );
}

/// Row 18; T-079: who isn't ready to receive is silent.
#[test]
fn row_18_states_that_do_not_receive() {
    let setup = Setup::default();
    let raw = Raw::new(Op::SendOnly, 0);
    for state in [QpState::Reset, QpState::Init, QpState::Error] {
        let mut lone = Lone::new(&setup);
        lone.host
            .modify(QpAttributes::to_state(QpState::Reset))
            .unwrap();
        if state != QpState::Reset {
            for step in lone.host.path_to(QpState::Init, lone.peer, 0x77, setup.psn) {
                lone.host.modify(step).unwrap();
            }
            lone.host.recv(1, 0, 100);
        }
        if state == QpState::Error {
            lone.host.modify(QpAttributes::to_state(state)).unwrap();
        }
        assert!(
            lone.answers(std::slice::from_ref(&raw)).is_empty(),
            "{state}"
        );
        let flushed = [(1, WcStatus::WorkRequestFlushed)];
        let expected = if state == QpState::Error {
            &flushed[..]
        } else {
            &[]
        };
        assert_eq!(outcomes(&lone.host.received()), expected, "{state}");
    }
}

/// Row 19; T-077: the memory of a Read goes away while it is answered.
#[test]
fn row_19_memory_invalidated_during_a_read() {
    let mut lone = endpoint(&Setup::default());
    let (pd, range) = (lone.host.pd, lone.host.buffer.whole());
    let keys = lone
        .host
        .nic
        .register(pd, range, AccessFlags::REMOTE_READ)
        .unwrap();
    let read = Raw {
        reth: Reth {
            rkey: keys.rkey,
            ..lone.reth(0, 100_000)
        },
        ..Raw::new(Op::ReadRequest, 0)
    };
    lone.deliver(&read);
    // One turn's worth of packets, then the key is gone.
    let all = Acks::All;
    assert!(lone.host.nic.transmit(lone.now, &mut lone.host.tx, all));
    let count = lone.host.tx.packets().len();
    assert!((1..391).contains(&count), "{count}");
    lone.host.tx.consume(count);
    lone.host.nic.deregister(keys.lkey).unwrap();
    assert_eq!(
        lone.answers(&[]),
        [format!("Acknowledge {count} RemoteAccessError msn 1")]
    );
    assert_eq!(lone.host.state(), QpState::Error);
    let kinds: Vec<EventKind> = lone.host.events().iter().map(|event| event.kind).collect();
    assert_eq!(kinds, [EventKind::QpAccessError]);
}
