//! Which attributes a state transition needs and takes (IBTA 10.3.1 and
//! tables 91 to 96; RoCE has neither alternate paths nor path migration).

use verbs_sys::{AttributeMask, QpAttributes, QpState, QpType, Result, VerbsError};

/// The attributes that a transition requires and those it also takes, beside
/// the state itself; `None` when the transition doesn't exist.
#[must_use]
pub fn transition_masks(
    qp_type: QpType,
    from: QpState,
    to: QpState,
) -> Option<(AttributeMask, AttributeMask)> {
    use AttributeMask as M;
    use QpState::{Error, Init, Reset, Rtr, Rts, Sqd, Sqe};
    use QpType::{Rc, Uc, Ud, XrcReceive, XrcSend};

    let none = M::empty();
    let access = M::ACCESS_FLAGS;
    let masks = match (from, to) {
        (_, Reset) => (none, none),
        (Init | Rtr | Rts | Sqd | Sqe | Error, Error) => (none, none),
        (Reset, Init) => match qp_type {
            Ud => (M::PKEY_INDEX | M::PORT | M::QKEY, none),
            _ => (M::PKEY_INDEX | M::PORT | access, none),
        },
        (Init, Init) => match qp_type {
            Ud => (none, M::PKEY_INDEX | M::PORT | M::QKEY),
            _ => (none, M::PKEY_INDEX | M::PORT | access),
        },
        (Init, Rtr) => {
            let path = M::AV | M::PATH_MTU | M::DEST_QPN | M::RQ_PSN;
            let responder = M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER;
            match qp_type {
                Rc | XrcReceive => (path | responder, access | M::PKEY_INDEX),
                Uc | XrcSend => (path, access | M::PKEY_INDEX),
                Ud => (none, M::PKEY_INDEX | M::QKEY),
            }
        }
        (Rtr, Rts) => {
            let requester =
                M::TIMEOUT | M::RETRY_CNT | M::RNR_RETRY | M::SQ_PSN | M::MAX_QP_RD_ATOMIC;
            match qp_type {
                Rc => (requester, access | M::MIN_RNR_TIMER),
                Uc => (M::SQ_PSN, access),
                Ud => (M::SQ_PSN, M::QKEY),
                XrcSend => (requester, access),
                XrcReceive => (M::TIMEOUT | M::SQ_PSN, access | M::MIN_RNR_TIMER),
            }
        }
        (Rts, Rts) | (Sqd, Rts) => match qp_type {
            Rc | XrcReceive => (none, access | M::MIN_RNR_TIMER),
            Uc | XrcSend => (none, access),
            Ud => (none, M::QKEY),
        },
        (Rts, Sqd) => (none, M::EN_SQD_ASYNC_NOTIFY),
        (Sqd, Sqd) => {
            let path = M::AV | access | M::PKEY_INDEX;
            let timing = M::PORT | M::TIMEOUT;
            let retries = M::RETRY_CNT | M::RNR_RETRY | M::MAX_QP_RD_ATOMIC;
            let responder = M::MAX_DEST_RD_ATOMIC | M::MIN_RNR_TIMER;
            match qp_type {
                Rc => (none, path | timing | retries | responder),
                Uc => (none, path),
                Ud => (none, M::PKEY_INDEX | M::QKEY),
                XrcSend => (none, path | timing | retries),
                XrcReceive => (none, path | timing | responder),
            }
        }
        (Sqe, Rts) => match qp_type {
            Uc => (none, access),
            Ud => (none, M::QKEY),
            Rc | XrcSend | XrcReceive => return None,
        },
        _ => return None,
    };
    Some(masks)
}

/// Refuses a transition that doesn't exist, lacks an attribute, or carries one
/// too many; returns the state to go to.
pub(crate) fn check_transition(
    qp_type: QpType,
    from: QpState,
    attributes: &QpAttributes,
) -> Result<QpState> {
    let to = attributes.state.unwrap_or(from);
    let (required, optional) = transition_masks(qp_type, from, to)
        .ok_or(VerbsError::InvalidTransition { qp_type, from, to })?;
    let given = attributes.mask() - AttributeMask::STATE;
    if let Some(attribute) = first_name(required - given) {
        return Err(VerbsError::MissingAttribute {
            from,
            to,
            attribute,
        });
    }
    if let Some(attribute) = first_name(given - required - optional) {
        return Err(VerbsError::UnexpectedAttribute {
            from,
            to,
            attribute,
        });
    }
    Ok(to)
}

/// Refuses attributes outside their range.
pub(crate) fn check_ranges(attributes: &QpAttributes) -> Result<()> {
    const PSN: u64 = 0xff_ffff;
    let number = |what, value: Option<u64>, max: u64| match value {
        Some(value) if value > max => Err(VerbsError::InvalidArgument {
            what,
            seen: value.to_string(),
            expected: format!("0 to {max}"),
        }),
        _ => Ok(()),
    };
    number("timeout", attributes.timeout.map(u64::from), 31)?;
    number("retry_cnt", attributes.retry_cnt.map(u64::from), 7)?;
    number("rnr_retry", attributes.rnr_retry.map(u64::from), 7)?;
    number("min_rnr_timer", attributes.min_rnr_timer.map(u64::from), 31)?;
    number("rq_psn", attributes.rq_psn.map(u64::from), PSN)?;
    number("sq_psn", attributes.sq_psn.map(u64::from), PSN)?;
    number("dest_qpn", attributes.dest_qpn.map(u64::from), PSN)?;
    number("pkey_index", attributes.pkey_index.map(u64::from), 0)?;
    match attributes.port {
        None | Some(1) => Ok(()),
        Some(port) => Err(VerbsError::InvalidArgument {
            what: "port",
            seen: port.to_string(),
            expected: "1".into(),
        }),
    }
}

fn first_name(mask: AttributeMask) -> Option<&'static str> {
    mask.iter_names().next().map(|(name, _)| name)
}

#[cfg(test)]
mod tests {
    use verbs_sys::{AccessFlags, PathMtu};

    use super::*;

    const STATES: [QpState; 7] = [
        QpState::Reset,
        QpState::Init,
        QpState::Rtr,
        QpState::Rts,
        QpState::Sqd,
        QpState::Sqe,
        QpState::Error,
    ];

    /// The whole state × state table of RC, as a picture.
    #[test]
    fn the_transitions_of_rc() {
        let picture: Vec<String> = STATES
            .into_iter()
            .map(|from| {
                let reachable = STATES
                    .into_iter()
                    .filter(|to| transition_masks(QpType::Rc, from, *to).is_some())
                    .map(|to| to.to_string())
                    .collect::<Vec<_>>();
                format!("{from}: {}", reachable.join(" "))
            })
            .collect();
        assert_eq!(
            picture,
            [
                "RESET: RESET INIT",
                "INIT: RESET INIT RTR ERR",
                "RTR: RESET RTS ERR",
                "RTS: RESET RTS SQD ERR",
                "SQD: RESET RTS SQD ERR",
                "SQE: RESET ERR",
                "ERR: RESET ERR",
            ]
        );
    }

    #[test]
    fn only_unconnected_errors_lead_back_from_sqe() {
        for (qp_type, back) in [(QpType::Uc, true), (QpType::Ud, true), (QpType::Rc, false)] {
            let masks = transition_masks(qp_type, QpState::Sqe, QpState::Rts);
            assert_eq!(masks.is_some(), back, "{qp_type}");
        }
    }

    #[test]
    fn missing_and_superfluous_attributes_are_named() {
        let mut attributes = QpAttributes::to_state(QpState::Init);
        attributes.pkey_index = Some(0);
        attributes.access_flags = Some(AccessFlags::empty());
        let error = check_transition(QpType::Rc, QpState::Reset, &attributes).unwrap_err();
        assert_eq!(error.to_string(), "RESET to INIT needs the attribute PORT");
        attributes.port = Some(1);
        check_transition(QpType::Rc, QpState::Reset, &attributes).unwrap();
        attributes.path_mtu = Some(PathMtu::Mtu1024);
        let error = check_transition(QpType::Rc, QpState::Reset, &attributes).unwrap_err();
        assert_eq!(
            error.to_string(),
            "RESET to INIT doesn't take the attribute PATH_MTU"
        );
    }

    #[test]
    fn values_beyond_their_field_are_refused() {
        let cases: [(&str, QpAttributes); 5] = [
            (
                "timeout",
                QpAttributes {
                    timeout: Some(32),
                    ..Default::default()
                },
            ),
            (
                "retry_cnt",
                QpAttributes {
                    retry_cnt: Some(8),
                    ..Default::default()
                },
            ),
            (
                "min_rnr_timer",
                QpAttributes {
                    min_rnr_timer: Some(32),
                    ..Default::default()
                },
            ),
            (
                "sq_psn",
                QpAttributes {
                    sq_psn: Some(1 << 24),
                    ..Default::default()
                },
            ),
            (
                "port",
                QpAttributes {
                    port: Some(2),
                    ..Default::default()
                },
            ),
        ];
        for (name, attributes) in cases {
            let text = check_ranges(&attributes).unwrap_err().to_string();
            assert!(text.starts_with(name), "{text}");
        }
    }
}
