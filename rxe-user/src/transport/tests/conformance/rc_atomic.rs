//! Group rc-atomic.

use verbs_sys::{AccessFlags, EventKind, SendFlags, SendOp, SendRequest, WcOpcode, WcStatus};

use super::{A_ERR, BOTH_ERR, TARGET, assert_at_rest, kinds, only, states};
use crate::transport::tests::harness::{B, Pair, Setup, outcomes};

const RESULT: usize = 64;

fn start(value: u64) -> Pair {
    let mut pair = Pair::new(&Setup::default());
    pair.b().write(TARGET, &value.to_ne_bytes());
    pair.a().write(RESULT, &[0xee; 8]);
    pair
}

fn add(pair: &mut Pair, add: u64) -> SendOp {
    let remote = pair.b().remote(TARGET);
    SendOp::FetchAdd { remote, add }
}

fn swap(pair: &mut Pair, compare: u64, swap: u64) -> SendOp {
    let remote = pair.b().remote(TARGET);
    SendOp::CompareSwap {
        remote,
        compare,
        swap,
    }
}

/// Runs one atomic; returns what was there and what is.
fn run(pair: &mut Pair, op: SendOp, opcode: WcOpcode) -> (u64, u64) {
    pair.a().post(1, op, RESULT, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).opcode, opcode);
    assert_at_rest(pair);
    (pair.a().read_u64(RESULT), pair.b().read_u64(TARGET))
}

/// RCA-001.
#[test]
fn fetch_add_returns_old_value_and_adds() {
    for addend in [1, 0, 0x1_0000_0001] {
        let mut pair = start(41);
        let op = add(&mut pair, addend);
        let values = run(&mut pair, op, WcOpcode::FetchAdd);
        assert_eq!(values, (41, 41 + addend));
    }
}

/// RCA-002.
#[test]
fn fetch_add_wraps_at_64_bits() {
    let mut pair = start(u64::MAX);
    let op = add(&mut pair, 3);
    assert_eq!(run(&mut pair, op, WcOpcode::FetchAdd), (u64::MAX, 2));
}

/// RCA-003.
#[test]
fn compare_swap_stores_when_equal() {
    let mut pair = start(5);
    let op = swap(&mut pair, 5, 9);
    assert_eq!(run(&mut pair, op, WcOpcode::CompareSwap), (5, 9));
}

/// RCA-004.
#[test]
fn compare_swap_leaves_memory_when_different() {
    let mut pair = start(5);
    let op = swap(&mut pair, 6, 9);
    assert_eq!(run(&mut pair, op, WcOpcode::CompareSwap), (5, 5));
}

/// RCA-005.
#[test]
fn atomic_values_are_in_host_byte_order() {
    let value = 0x0102_0304_0506_0708;
    let mut pair = start(value);
    let op = add(&mut pair, 1);
    assert_eq!(run(&mut pair, op, WcOpcode::FetchAdd), (value, value + 1));
    let response = pair.log.last().unwrap().datagram.packet();
    let original = response.atomic_ack_eth().map(|ack| ack.original);
    assert_eq!(original, Some(value), "big-endian on the wire");
}

/// RCA-006.
#[test]
fn unsignaled_atomic_gives_no_cqe() {
    let mut pair = start(0);
    let ops = [add(&mut pair, 1), swap(&mut pair, 1, 10)];
    for op in ops {
        pair.a().post_flags(1, op, RESULT, 8, SendFlags::empty());
    }
    let last = add(&mut pair, 5);
    pair.a().post(2, last, RESULT, 8);
    pair.drive();
    assert_eq!(only(pair.a().sent()).wr_id, 2);
    assert_eq!(
        (pair.a().read_u64(RESULT), pair.b().read_u64(TARGET)),
        (10, 15)
    );
}

/// RCA-007, RCA-008: here a result of another length than 8 is refused at
/// posting; two pieces of together 8 bytes are filled in order.
#[test]
fn atomic_result_sge_of_wrong_length_fails() {
    let mut pair = start(7);
    let op = add(&mut pair, 1);
    for length in [7, 9, 16] {
        let list = [pair.a().sge(RESULT, length)];
        let error = pair
            .a()
            .try_post(&[SendRequest::signaled(1, op, &list)])
            .unwrap_err();
        assert_eq!(error.source.errno(), libc::EINVAL);
    }
    pair.drive();
    assert!(pair.log.is_empty());
    assert_eq!(pair.b().read_u64(TARGET), 7);
    let list = [pair.a().sge(RESULT, 4), pair.a().sge(RESULT + 100, 4)];
    let request = SendRequest::signaled(1, op, &list);
    pair.a().try_post(&[request]).unwrap();
    pair.drive();
    only(pair.a().sent());
    let halves = [pair.a().read(RESULT, 4), pair.a().read(RESULT + 100, 4)];
    assert_eq!(halves.concat(), 7_u64.to_ne_bytes());
}

/// RCA-012: the result can't be stored, but the atomic has been executed.
#[test]
fn atomic_with_bad_lkey_fails_locally() {
    for flags in [SendFlags::SIGNALED, SendFlags::empty()] {
        let mut pair = start(7);
        let op = add(&mut pair, 1);
        let mut sge = pair.a().sge(RESULT, 8);
        sge.lkey ^= 1;
        let list = [sge];
        let request = SendRequest {
            flags,
            ..SendRequest::signaled(1, op, &list)
        };
        pair.a().try_post(&[request]).unwrap();
        pair.drive();
        let failed = [(1, WcStatus::LocalProtectionError)];
        assert_eq!(outcomes(&pair.a().sent()), failed);
        assert_eq!(states(&pair), A_ERR);
        assert_eq!(pair.a().read(RESULT, 8), [0xee; 8]);
        assert_eq!(pair.b().read_u64(TARGET), 8, "executed once");
    }
}

/// RCA-013, RCA-014: also when the lkey is bad, the remote key is judged first.
#[test]
fn atomic_with_bad_rkey_is_naked() {
    for bad_lkey in [false, true] {
        let mut pair = start(7);
        let mut remote = pair.b().remote(TARGET);
        remote.rkey ^= 1;
        let mut sge = pair.a().sge(RESULT, 8);
        sge.lkey ^= u32::from(bad_lkey);
        let list = [sge];
        let op = SendOp::FetchAdd { remote, add: 1 };
        let request = SendRequest::signaled(1, op, &list);
        pair.a().try_post(&[request]).unwrap();
        pair.drive();
        let failed = [(1, WcStatus::RemoteAccessError)];
        assert_eq!(outcomes(&pair.a().sent()), failed);
        assert_eq!(states(&pair), BOTH_ERR);
        assert_eq!(kinds(pair.b()), [EventKind::QpAccessError]);
        assert_eq!(pair.texts(B), ["Acknowledge 0 RemoteAccessError msn 0"]);
        assert_eq!(pair.a().read(RESULT, 8), [0xee; 8]);
        assert_eq!(pair.b().read_u64(TARGET), 7);
    }
}

/// RCA-015.
#[test]
fn atomic_without_qp_remote_atomic_right_is_naked() {
    let setup = Setup {
        access: AccessFlags::REMOTE_READ | AccessFlags::REMOTE_WRITE,
        ..Setup::default()
    };
    let mut pair = Pair::new(&setup);
    let before = pair.b().read_u64(TARGET);
    let op = add(&mut pair, 1);
    pair.a().post(1, op, RESULT, 8);
    pair.drive();
    let failed = [(1, WcStatus::RemoteInvalidRequest)];
    assert_eq!(outcomes(&pair.a().sent()), failed);
    assert_eq!(states(&pair), BOTH_ERR);
    assert_eq!(kinds(pair.b()), [EventKind::QpRequestError]);
    assert_eq!(pair.b().read_u64(TARGET), before);
}

/// RCA-016, T-075.
#[test]
fn atomic_on_region_of_exactly_eight_bytes() {
    for length in [8, 7] {
        let mut pair = start(7);
        let range = pair.b().buffer.range(TARGET..TARGET + length).unwrap();
        let access = AccessFlags::REMOTE_ATOMIC | AccessFlags::LOCAL_WRITE;
        let pd = pair.b().pd;
        let keys = pair.b().nic.register(pd, range, access).unwrap();
        let mut remote = pair.b().remote(TARGET);
        remote.rkey = keys.rkey;
        pair.a()
            .post(1, SendOp::FetchAdd { remote, add: 1 }, RESULT, 8);
        pair.drive();
        let status = match length {
            8 => WcStatus::Success,
            _ => WcStatus::RemoteAccessError,
        };
        assert_eq!(outcomes(&pair.a().sent()), [(1, status)]);
        let expected = if length == 8 { 8 } else { 7 };
        assert_eq!(pair.b().read_u64(TARGET), expected);
    }
}
