//! Group mw, as far as it is about windows of type 2. B binds, A accesses.

use verbs_sys::{
    AccessFlags, EventKind, QpAttributes, QpState, QpType, RemoteAddress, SendFlags, SendOp,
    SendRequest, WcOpcode, WcStatus, WindowBinding,
};

use super::{BOTH_ERR, FLUSHED, SUCCESS, TARGET, assert_at_rest, kinds, only, states};
use crate::transport::tests::harness::{B, Pair, Setup, outcomes, pattern};

/// Bytes of the window.
const LENGTH: u64 = 1024;

/// The window's owner has failed alone.
const B_ERR: [QpState; 2] = [QpState::Rts, QpState::Error];

const BIND_ERROR: WcStatus = WcStatus::MemoryWindowBindError;

fn bind(pair: &mut Pair, wr_id: u64, binding: WindowBinding) {
    pair.b().post_bare(wr_id, SendOp::BindWindow { binding });
    pair.drive();
}

/// Two ends, and a new window of B at `TARGET` that isn't bound.
fn unbound() -> (Pair, WindowBinding) {
    unbound_of(&Setup::default())
}

fn unbound_of(setup: &Setup) -> (Pair, WindowBinding) {
    let mut pair = Pair::new(setup);
    let pd = pair.b().pd;
    let window = pair.b().nic.alloc_window(pd).unwrap();
    let binding = pair.b().binding(window, 1, TARGET, LENGTH);
    (pair, binding)
}

fn bound() -> (Pair, WindowBinding) {
    bound_of(&Setup::default())
}

/// Two ends, and a window of B at `TARGET` with all rights.
pub(super) fn bound_of(setup: &Setup) -> (Pair, WindowBinding) {
    let (mut pair, binding) = unbound_of(setup);
    bind(&mut pair, 50, binding);
    assert_eq!(only(pair.b().sent()).opcode, WcOpcode::BindWindow);
    (pair, binding)
}

pub(super) fn remote(binding: &WindowBinding) -> RemoteAddress {
    RemoteAddress {
        addr: binding.addr,
        rkey: binding.rkey(),
    }
}

fn all_operations(remote: RemoteAddress) -> [SendOp; 4] {
    [
        SendOp::Write { remote },
        SendOp::Read { remote },
        SendOp::FetchAdd { remote, add: 1 },
        SendOp::CompareSwap {
            remote,
            compare: 0,
            swap: 1,
        },
    ]
}

/// A's access of 8 bytes is refused with a NAK, and memory is unchanged.
pub(super) fn assert_refused(pair: &mut Pair, op: SendOp, context: &str) {
    let before = pair.b().read(TARGET - 64, LENGTH as usize + 128);
    pair.clear_log();
    pair.a().post(60, op, 0, 8);
    pair.drive();
    let sent = outcomes(&pair.a().sent());
    assert_eq!(sent, [(60, WcStatus::RemoteAccessError)], "{context}");
    let answers = pair.texts(B);
    assert_eq!(answers.len(), 1, "{context}: {answers:?}");
    assert!(answers[0].contains("RemoteAccessError"), "{answers:?}");
    assert_eq!(states(pair), BOTH_ERR, "{context}");
    assert_eq!(kinds(pair.b()), [EventKind::QpAccessError], "{context}");
    let after = pair.b().read(TARGET - 64, LENGTH as usize + 128);
    assert_eq!(after, before, "{context}");
}

/// A writes 8 bytes, successfully.
pub(super) fn assert_writes(pair: &mut Pair, remote: RemoteAddress) {
    pair.a().write(0, &pattern(u64::from(remote.rkey), 8));
    pair.a().post(61, SendOp::Write { remote }, 0, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 61);
    let offset = (remote.addr - pair.b().buffer.addr()) as usize;
    let expected = pattern(u64::from(remote.rkey), 8);
    assert_eq!(pair.b().read(offset, 8), expected);
}

/// MW-004.
#[test]
fn bind_completes_with_bind_opcode() {
    let (mut pair, _) = bound();
    assert!(pair.log.is_empty());
    // No PSN is used: the next request has the first one.
    pair.a().recv(1, 0, 8);
    pair.b().post(2, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(only(pair.b().sent()).wr_id, 2);
    assert_eq!(only(pair.a().received()).wr_id, 1);
    assert_at_rest(&mut pair);
}

/// MW-005, MW-036.
#[test]
fn read_and_write_through_bound_mw() {
    let (mut pair, binding) = bound();
    let aim = remote(&binding);
    assert_writes(&mut pair, aim);
    pair.b().write(TARGET, &7_u64.to_ne_bytes());
    for op in all_operations(aim).into_iter().skip(1) {
        pair.a().post(1, op, 4096, 8);
        pair.drive();
        only(pair.a().sent());
    }
    assert_eq!(pair.a().read_u64(4096), 8, "after the Fetch and Add");
    let nowhere = RemoteAddress { addr: 1, ..aim };
    for op in [
        SendOp::Write { remote: nowhere },
        SendOp::Read { remote: nowhere },
    ] {
        pair.a().post_bare(2, op);
        pair.drive();
        only(pair.a().sent());
    }
    assert_at_rest(&mut pair);
}

/// The same over UC, whose requests complete in another way.
#[test]
fn uc_binds_and_invalidates() {
    let (mut pair, binding) = bound_of(&Setup {
        qp_type: QpType::Uc,
        ..Setup::default()
    });
    assert_writes(&mut pair, remote(&binding));
    let key = binding.rkey();
    pair.b().post_bare(2, SendOp::LocalInvalidate { key });
    pair.b().post_bare(3, SendOp::LocalInvalidate { key });
    pair.drive();
    assert_eq!(outcomes(&pair.b().sent()), [(2, SUCCESS), (3, BIND_ERROR)]);
    assert_eq!(states(&pair), [QpState::Rts, QpState::Sqe]);
}

/// MW-006.
#[test]
fn bind_takes_effect_before_following_send() {
    let (mut pair, binding) = unbound();
    pair.a().recv(1, 0, 8);
    let list = [pair.b().sge(0, 8)];
    let chain = [
        SendRequest::signaled(2, SendOp::BindWindow { binding }, &[]),
        SendRequest::signaled(3, SendOp::Send, &list),
    ];
    pair.b().try_post(&chain).unwrap();
    while pair.a().received().is_empty() {
        assert!(pair.step(crate::time::Time::from_nanos(u64::MAX)));
    }
    assert_writes(&mut pair, remote(&binding));
    assert_eq!(outcomes(&pair.b().sent()), [(2, SUCCESS), (3, SUCCESS)]);
}

/// MW-010.
#[test]
fn type2_mw_is_refused_through_other_qp() {
    let (mut pair, binding) = unbound();
    let other = pair.b().create_qp();
    let address = pair.a().address;
    pair.b().connect(other, address, 9, [0, 0]);
    let request = SendRequest::signaled(1, SendOp::BindWindow { binding }, &[]);
    pair.b().nic.post_send(other, &[request]).unwrap();
    pair.drive();
    only(pair.b().sent());
    let op = SendOp::Write {
        remote: remote(&binding),
    };
    assert_refused(&mut pair, op, "other queue pair");
    let state = pair.b().nic.query_qp(other).unwrap().state;
    assert_eq!(state, Some(QpState::Rts));
}

/// MW-011, MW-012, MW-016, MW-019, MW-024, MW-033, MW-037, MW-042: the request
/// fails, signalled or not, and so does the queue pair.
#[test]
fn bad_binds_fail() {
    type Change = fn(&mut Pair, &mut WindowBinding);
    let changes: [(&str, Change); 7] = [
        ("dead region", |pair, binding| {
            let (pd, range) = (pair.b().pd, pair.b().buffer.whole());
            let keys = pair.b().nic.register(pd, range, AccessFlags::MW_BIND);
            binding.lkey = keys.unwrap().lkey;
            pair.b().nic.deregister(binding.lkey).unwrap();
        }),
        ("dead window", |pair, binding| {
            pair.b().nic.dealloc_window(binding.window).unwrap();
        }),
        ("length 0", |_, binding| binding.length = 0),
        ("bound already", |pair, binding| {
            bind(pair, 1, *binding);
            only(pair.b().sent());
            binding.tag += 1;
        }),
        ("outside", |pair, binding| {
            binding.addr = pair.b().buffer.addr() - 1;
        }),
        ("no right to bind", |pair, binding| {
            let (pd, range) = (pair.b().pd, pair.b().buffer.whole());
            let access = AccessFlags::LOCAL_WRITE;
            let keys = pair.b().nic.register(pd, range, access);
            binding.lkey = keys.unwrap().lkey;
        }),
        ("other domain", |pair, binding| {
            let pd = pair.b().nic.alloc_pd().unwrap();
            binding.window = pair.b().nic.alloc_window(pd).unwrap();
        }),
    ];
    for (name, change) in changes {
        for flags in [SendFlags::SIGNALED, SendFlags::empty()] {
            let (mut pair, mut binding) = unbound();
            change(&mut pair, &mut binding);
            let op = SendOp::BindWindow { binding };
            pair.b().post_flags(2, op, 0, 0, flags);
            pair.b().post(3, SendOp::Send, 0, 8);
            pair.drive();
            let sent = outcomes(&pair.b().sent());
            assert_eq!(sent, [(2, BIND_ERROR), (3, FLUSHED)], "{name}");
            assert_eq!(states(&pair), B_ERR, "{name}");
            assert!(pair.log.is_empty(), "{name}");
        }
    }
}

/// MW-014.
#[test]
fn dereg_mr_with_bound_mw_is_refused() {
    let (mut pair, binding) = bound();
    let error = pair.b().nic.deregister(binding.lkey).unwrap_err();
    assert_eq!(error.errno(), libc::EBUSY);
    assert_writes(&mut pair, remote(&binding));
}

/// MW-020, MW-021.
#[test]
fn type2_rebind_after_invalidate_succeeds() {
    let (mut pair, first) = bound();
    let second = WindowBinding {
        window: first.rkey(),
        tag: 2,
        ..first
    };
    let key = first.rkey();
    pair.b().post_bare(1, SendOp::LocalInvalidate { key });
    bind(&mut pair, 2, second);
    assert_eq!(outcomes(&pair.b().sent()), [(1, SUCCESS), (2, SUCCESS)]);
    assert_eq!(second.rkey(), first.window | 2);
    assert_writes(&mut pair, remote(&second));
    let op = SendOp::Write {
        remote: remote(&first),
    };
    assert_refused(&mut pair, op, "the former key");
}

/// MW-022.
#[test]
fn mw_indices_are_distinct() {
    let (mut pair, binding) = unbound();
    let pd = pair.b().pd;
    let mut keys: Vec<u32> = (0..4096)
        .map(|_| pair.b().nic.alloc_window(pd).unwrap())
        .map(|window| WindowBinding { window, ..binding }.rkey())
        .collect();
    keys.sort_unstable();
    keys.dedup();
    assert_eq!(keys.len(), 4096);
    assert!(keys.iter().all(|key| key & 0xff == 1));
}

/// MW-025.
#[test]
fn local_invalidate_revokes_type2_mw() {
    for op in 0..4 {
        let (mut pair, binding) = bound();
        let key = binding.rkey();
        pair.b().post_bare(1, SendOp::LocalInvalidate { key });
        pair.drive();
        assert_eq!(only(pair.b().sent()).opcode, WcOpcode::LocalInvalidate);
        let op = all_operations(remote(&binding))[op];
        assert_refused(&mut pair, op, &format!("{op:?}"));
    }
}

/// MW-023, MW-026.
#[test]
fn unsignaled_bind_and_invalidate_give_no_cqe() {
    let (mut pair, binding) = unbound();
    pair.a().recv(1, 0, 8);
    let key = binding.rkey();
    for op in [
        SendOp::BindWindow { binding },
        SendOp::LocalInvalidate { key },
    ] {
        pair.b().post_flags(1, op, 0, 0, SendFlags::empty());
    }
    pair.b().post(2, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(only(pair.b().sent()).wr_id, 2);
    let op = SendOp::Read {
        remote: remote(&binding),
    };
    assert_refused(&mut pair, op, "revoked");
}

/// MW-027, MW-028.
#[test]
fn local_invalidate_of_other_keys_fails() {
    let (mut pair, binding) = bound();
    let other = pair.b().create_qp();
    let address = pair.a().address;
    let unknown = SendOp::LocalInvalidate { key: 0xdead_beef };
    let foreign = SendOp::LocalInvalidate {
        key: binding.rkey(),
    };
    let region = SendOp::LocalInvalidate { key: binding.lkey };
    for op in [unknown, foreign, region] {
        pair.b().connect(other, address, 9, [0, 0]);
        let request = SendRequest::signaled(1, op, &[]);
        pair.b().nic.post_send(other, &[request]).unwrap();
        pair.drive();
        assert_eq!(outcomes(&pair.b().sent()), [(1, BIND_ERROR)], "{op:?}");
        let reset = QpAttributes::to_state(QpState::Reset);
        let state = pair.b().nic.query_qp(other).unwrap().state;
        assert_eq!(state, Some(QpState::Error));
        pair.b().nic.modify_qp(other, &reset).unwrap();
    }
    assert_writes(&mut pair, remote(&binding));
}

/// MW-031, MW-044.
#[test]
fn destroyed_owners_and_windows_leave_dead_keys() {
    for destroys_window in [false, true] {
        let (mut pair, binding) = unbound();
        let other = pair.b().create_qp();
        let address = pair.a().address;
        let owner = if destroys_window { pair.b().qpn } else { other };
        pair.b().connect(other, address, 9, [0, 0]);
        let request = SendRequest::signaled(1, SendOp::BindWindow { binding }, &[]);
        pair.b().nic.post_send(owner, &[request]).unwrap();
        pair.drive();
        only(pair.b().sent());
        if destroys_window {
            pair.b().nic.dealloc_window(binding.rkey()).unwrap();
        } else {
            pair.b().nic.destroy_qp(other);
        }
        let op = SendOp::Write {
            remote: remote(&binding),
        };
        assert_refused(&mut pair, op, "its owner or itself is gone");
        pair.b().nic.deregister(binding.lkey).unwrap();
    }
}

/// Only its end frees the windows of a queue pair.
#[test]
fn a_reset_leaves_windows_bound() {
    let (mut pair, binding) = bound();
    let [psn_a, psn_b] = Setup::default().psn;
    let (address, dest_qpn) = (pair.a().address, pair.a().qpn);
    let b = pair.b();
    b.modify(QpAttributes::to_state(QpState::Reset)).unwrap();
    b.connect(b.qpn, address, dest_qpn, [psn_b, psn_a]);
    assert_writes(&mut pair, remote(&binding));
}

/// MW-032.
#[test]
fn bind_on_error_qp_is_flushed() {
    let (mut pair, binding) = unbound();
    let error = QpAttributes::to_state(QpState::Error);
    pair.b().modify(error).unwrap();
    bind(&mut pair, 1, binding);
    assert_eq!(outcomes(&pair.b().sent()), [(1, FLUSHED)]);
    pair.b().nic.deregister(binding.lkey).unwrap();
}

/// MW-034, MW-035, MW-041: inside the region, which has all rights, but not
/// what the window gives.
#[test]
fn access_beyond_the_window_is_naked() {
    for index in 0..4 {
        for at in [-8_i64, LENGTH as i64] {
            let (mut pair, binding) = bound();
            let mut aim = remote(&binding);
            aim.addr = aim.addr.wrapping_add_signed(at);
            let op = all_operations(aim)[index];
            assert_refused(&mut pair, op, &format!("{op:?} at {at}"));
        }
        let rights = [
            AccessFlags::REMOTE_WRITE,
            AccessFlags::REMOTE_READ,
            AccessFlags::REMOTE_ATOMIC,
            AccessFlags::REMOTE_ATOMIC,
        ];
        let (mut pair, mut binding) = unbound();
        binding.access -= rights[index];
        bind(&mut pair, 1, binding);
        only(pair.b().sent());
        let op = all_operations(remote(&binding))[index];
        assert_refused(&mut pair, op, &format!("{op:?} without the right"));
    }
}

/// MW-038, MW-039: the window's rights need no remote rights of the region.
#[test]
fn bind_needs_local_write_for_remote_write_only() {
    let with_write = AccessFlags::MW_BIND | AccessFlags::LOCAL_WRITE;
    let reads = AccessFlags::REMOTE_READ;
    let writes = AccessFlags::REMOTE_WRITE;
    for (region, window, possible) in [
        (AccessFlags::MW_BIND, reads, true),
        (AccessFlags::MW_BIND, writes, false),
        (with_write, writes, true),
    ] {
        let (mut pair, mut binding) = unbound();
        let (pd, range) = (pair.b().pd, pair.b().buffer.whole());
        binding.lkey = pair.b().nic.register(pd, range, region).unwrap().lkey;
        binding.access = window;
        bind(&mut pair, 1, binding);
        let status = if possible { SUCCESS } else { BIND_ERROR };
        assert_eq!(outcomes(&pair.b().sent()), [(1, status)]);
        if possible {
            let [write, read, ..] = all_operations(remote(&binding));
            let op = if window == reads { read } else { write };
            pair.a().post(2, op, 0, 8);
            pair.drive();
            only(pair.a().sent());
        }
    }
}

/// MW-046: a window that goes away while A reads through it.
#[test]
fn reads_racing_with_mw_dealloc() {
    let (mut pair, binding) = bound();
    let op = SendOp::Read {
        remote: remote(&binding),
    };
    for wr_id in 0..8 {
        pair.a().post(wr_id, op, 0, LENGTH as usize);
    }
    let mut done = Vec::new();
    while done.len() < 2 {
        assert!(pair.step(crate::time::Time::from_nanos(u64::MAX)));
        done.extend(pair.a().sent());
    }
    pair.b().nic.dealloc_window(binding.window).unwrap();
    pair.drive();
    done.extend(pair.a().sent());
    let statuses: Vec<WcStatus> = done.iter().map(|done| done.status).collect();
    let good = statuses.iter().take_while(|status| **status == SUCCESS);
    let good = good.count();
    assert!((2..8).contains(&good), "{statuses:?}");
    assert_eq!(statuses[good], WcStatus::RemoteAccessError);
    assert!(statuses[good + 1..].iter().all(|status| *status == FLUSHED));
    assert_eq!(states(&pair), BOTH_ERR);
}

/// MW-012, as the peer sees it: the failed owner is silent.
#[test]
fn peer_of_a_failed_owner_runs_out_of_retries() {
    let (mut pair, mut binding) = bound();
    binding.tag += 1;
    bind(&mut pair, 1, binding);
    assert_eq!(states(&pair), B_ERR);
    pair.a().post(2, SendOp::Send, 0, 8);
    pair.drive();
    assert_eq!(outcomes(&pair.a().sent()), [(2, WcStatus::RetryExceeded)]);
    assert_eq!(states(&pair), BOTH_ERR);
}
