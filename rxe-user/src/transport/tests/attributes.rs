//! Which state transition takes which attributes of a queue pair.

use verbs_sys::{AccessFlags, AttributeMask as M, PathMtu, QpAttributes, QpState, QpType};

use super::harness::{Host, Setup, address_vector};
use super::states::{STATES, host_in};

/// The table of the specification (IBTA 10.3.1, tables 91 to 96, as
/// libibverbs names the attributes), written down once more: from, to, and
/// required and optional attributes of RC, UC and UD. What isn't here doesn't
/// exist.
const TABLE: &str = "
RESET INIT  RC PKEY_INDEX PORT ACCESS_FLAGS |
RESET INIT  UC PKEY_INDEX PORT ACCESS_FLAGS |
RESET INIT  UD PKEY_INDEX PORT QKEY |
INIT INIT   RC | PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT   UC | PKEY_INDEX PORT ACCESS_FLAGS
INIT INIT   UD | PKEY_INDEX PORT QKEY
INIT RTR    RC AV PATH_MTU DEST_QPN RQ_PSN MAX_DEST_RD_ATOMIC MIN_RNR_TIMER | ACCESS_FLAGS PKEY_INDEX
INIT RTR    UC AV PATH_MTU DEST_QPN RQ_PSN | ACCESS_FLAGS PKEY_INDEX
INIT RTR    UD | PKEY_INDEX QKEY
RTR RTS     RC TIMEOUT RETRY_CNT RNR_RETRY SQ_PSN MAX_QP_RD_ATOMIC | ACCESS_FLAGS MIN_RNR_TIMER
RTR RTS     UC SQ_PSN | ACCESS_FLAGS
RTR RTS     UD SQ_PSN | QKEY
RTS RTS     RC | ACCESS_FLAGS MIN_RNR_TIMER
RTS RTS     UC | ACCESS_FLAGS
RTS RTS     UD | QKEY
RTS SQD     RC | EN_SQD_ASYNC_NOTIFY
RTS SQD     UC | EN_SQD_ASYNC_NOTIFY
RTS SQD     UD | EN_SQD_ASYNC_NOTIFY
SQD RTS     RC | ACCESS_FLAGS MIN_RNR_TIMER
SQD RTS     UC | ACCESS_FLAGS
SQD RTS     UD | QKEY
SQD SQD     RC | PORT AV TIMEOUT RETRY_CNT RNR_RETRY MAX_QP_RD_ATOMIC MAX_DEST_RD_ATOMIC ACCESS_FLAGS PKEY_INDEX MIN_RNR_TIMER
SQD SQD     UC | AV ACCESS_FLAGS PKEY_INDEX
SQD SQD     UD | PKEY_INDEX QKEY
SQE RTS     UC | ACCESS_FLAGS
SQE RTS     UD | QKEY
";

fn expected(qp_type: QpType, from: QpState, to: QpState) -> Option<(M, M)> {
    let to_reset = to == QpState::Reset;
    if to_reset || (to == QpState::Error && from != QpState::Reset) {
        return Some((M::empty(), M::empty()));
    }
    let words = [from.to_string(), to.to_string(), qp_type.to_string()];
    let line = TABLE.lines().find(|line| {
        let mut seen = line.split_whitespace();
        words.iter().all(|word| seen.next() == Some(word.as_str()))
    })?;
    let (required, optional) = line.split_once('|').unwrap();
    let mask = |names: &str, skip| {
        names
            .split_whitespace()
            .skip(skip)
            .map(|name| M::from_name(name).unwrap())
            .collect()
    };
    Some((mask(required, 3), mask(optional, 0)))
}

/// A legal value for each attribute of a mask.
fn attributes(mask: M, to: QpState) -> QpAttributes {
    let peer = [10, 0, 0, 2].into();
    let given = |bit| mask.contains(bit);
    QpAttributes {
        state: Some(to),
        en_sqd_async_notify: given(M::EN_SQD_ASYNC_NOTIFY).then_some(true),
        access_flags: given(M::ACCESS_FLAGS).then_some(AccessFlags::REMOTE_READ),
        pkey_index: given(M::PKEY_INDEX).then_some(0),
        port: given(M::PORT).then_some(1),
        qkey: given(M::QKEY).then_some(7),
        av: given(M::AV).then(|| address_vector(peer)),
        path_mtu: given(M::PATH_MTU).then_some(PathMtu::Mtu512),
        timeout: given(M::TIMEOUT).then_some(9),
        retry_cnt: given(M::RETRY_CNT).then_some(2),
        rnr_retry: given(M::RNR_RETRY).then_some(3),
        rq_psn: given(M::RQ_PSN).then_some(0x33),
        max_qp_rd_atomic: given(M::MAX_QP_RD_ATOMIC).then_some(5),
        min_rnr_timer: given(M::MIN_RNR_TIMER).then_some(6),
        sq_psn: given(M::SQ_PSN).then_some(0x44),
        max_dest_rd_atomic: given(M::MAX_DEST_RD_ATOMIC).then_some(8),
        dest_qpn: given(M::DEST_QPN).then_some(0x55),
    }
}

/// QPA-012: Every pair of states, for every service, with exactly what is required,
/// with all that is allowed, with one attribute too few and with one too
/// many. A refusal changes nothing.
#[test]
fn missing_required_attribute_is_rejected() {
    let mut refused = 0;
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud] {
        for (from, to) in STATES.iter().flat_map(|from| STATES.map(|to| (*from, to))) {
            let Some(mut host) = host_in(qp_type, from) else {
                continue;
            };
            let mut attempt = |mask: M, legal: bool, why: &str| {
                let context = format!("{qp_type} {from} to {to}, {why}");
                if legal {
                    host = host_in(qp_type, from).unwrap();
                }
                let before = host.nic.query_qp(host.qpn).unwrap();
                let result = host.modify(attributes(mask, to));
                let after = host.nic.query_qp(host.qpn).unwrap();
                if legal {
                    result.unwrap_or_else(|error| panic!("{context}: {error}"));
                    assert_eq!(after.state, Some(to), "{context}");
                    for (name, bit) in mask.iter_names() {
                        let (asked, is) = (attributes(bit, to), picked(&after, bit, to));
                        assert_eq!(asked, is, "{context}: {name}");
                    }
                } else {
                    let error = result.expect_err(&context);
                    assert_eq!(error.errno(), libc::EINVAL, "{context}");
                    assert_eq!(before, after, "{context}");
                    refused += 1;
                }
            };
            let all = M::all() - M::STATE;
            match expected(qp_type, from, to) {
                None => {
                    attempt(M::empty(), false, "no attributes");
                    attempt(all, false, "all attributes");
                }
                Some((required, optional)) => {
                    for bit in required.iter() {
                        attempt(required - bit, false, &format!("without {bit:?}"));
                    }
                    for bit in (all - required - optional).iter() {
                        attempt(required | bit, false, &format!("with {bit:?}"));
                    }
                    attempt(required, true, "what is required");
                    attempt(required | optional, true, "what is allowed");
                }
            }
        }
    }
    assert!(refused > 500, "{refused}");
}

/// The attributes of `mask` alone.
fn picked(all: &QpAttributes, mask: M, to: QpState) -> QpAttributes {
    let chosen = attributes(mask, to);
    macro_rules! pick {
        ($($field:ident),*) => {
            QpAttributes { state: Some(to), $($field: chosen.$field.and(all.$field),)* }
        };
    }
    pick!(
        en_sqd_async_notify,
        access_flags,
        pkey_index,
        port,
        qkey,
        av,
        path_mtu,
        timeout,
        retry_cnt,
        rnr_retry,
        rq_psn,
        max_qp_rd_atomic,
        min_rnr_timer,
        sq_psn,
        max_dest_rd_atomic,
        dest_qpn
    )
}

/// QPA-014: Values that no field holds, or that this device doesn't have.
#[test]
fn attribute_out_of_range_is_rejected() {
    let mut host = Host::new(1, &Setup::default());
    let steps = host.path_to(QpState::Rts, [10, 0, 0, 2].into(), 0x55, [1, 2]);
    let change = |step: usize, change: fn(&mut QpAttributes)| {
        let mut attributes = steps[step];
        change(&mut attributes);
        attributes
    };
    let wrong = [
        vec![
            change(0, |a| a.pkey_index = Some(1)),
            change(0, |a| a.port = Some(0)),
            change(0, |a| a.port = Some(2)),
        ],
        vec![
            change(1, |a| a.min_rnr_timer = Some(32)),
            change(1, |a| a.rq_psn = Some(1 << 24)),
            change(1, |a| a.dest_qpn = Some(1 << 24)),
            change(1, |a| a.max_dest_rd_atomic = Some(129)),
            change(1, |a| {
                a.av.as_mut().unwrap().sgid_index = 1;
            }),
            change(1, |a| {
                a.av.as_mut().unwrap().dgid = verbs_sys::Gid::ZERO;
            }),
            change(1, |a| {
                a.av.as_mut().unwrap().dgid = verbs_sys::Gid([0xfd; 16]);
            }),
        ],
        vec![
            change(2, |a| a.timeout = Some(32)),
            change(2, |a| a.retry_cnt = Some(8)),
            change(2, |a| a.rnr_retry = Some(8)),
            change(2, |a| a.sq_psn = Some(1 << 24)),
            change(2, |a| a.max_qp_rd_atomic = Some(129)),
        ],
    ];
    for (step, attempts) in steps.iter().zip(wrong) {
        let before = host.nic.query_qp(host.qpn).unwrap();
        for attempt in attempts {
            let error = host.modify(attempt).expect_err(&format!("{attempt:?}"));
            assert_eq!(error.errno(), libc::EINVAL);
            assert_eq!(host.nic.query_qp(host.qpn).unwrap(), before);
        }
        host.modify(*step).unwrap();
    }
}
