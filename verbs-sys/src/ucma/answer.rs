//! Answers of the device as words: events, attributes, addresses. No I/O.

use zerocopy::FromBytes;

use super::address::{parse, parse_gid, parse_peer};
use crate::uapi::ucma::{AhAttr, ConnParam, Event, QpAttr, QueryAddrResponse, UdParam};
use crate::verbs::cm::{
    CmDevice, CmError, CmEvent, CmEventKind, CmParameters, CmResult, CmRoute, CmStatus,
    DatagramPeer, PortSpace,
};
use crate::verbs::{
    AccessFlags, AddressVector, AttributeMask, Gid, PathMtu, QpAttributes, QpState,
};

/// An event and whose it is.
#[derive(Debug, Clone)]
pub(super) struct Delivered {
    /// The number that the identifier was made with; the listener's for a
    /// request.
    pub(super) uid: u64,
    /// The kernel's number of the identifier; the new one's for a request.
    pub(super) id: u32,
    /// What happened, if it is an event that we know.
    pub(super) kind: Option<CmEventKind>,
    raw: Event,
}

impl Delivered {
    pub(super) fn new(raw: Event) -> Self {
        Self {
            uid: raw.uid,
            id: raw.id,
            kind: CmEventKind::from_code(raw.event),
            raw,
        }
    }

    /// The event in words; its parameters are read as those of `space`.
    pub(super) fn event(&self, space: PortSpace) -> CmResult<CmEvent> {
        let kind = self.kind.ok_or_else(|| CmError::Unintelligible {
            seen: format!("event {}", self.raw.event),
            expected: "an event from 0 to 15",
        })?;
        let mut event = CmEvent {
            kind,
            status: CmStatus::of_event(kind, self.raw.status),
            private_data: Vec::new(),
            parameters: CmParameters::default(),
            datagram: None,
        };
        let datagrams = matches!(
            kind,
            CmEventKind::MulticastJoin | CmEventKind::MulticastError
        ) || space == PortSpace::Udp;
        if datagrams {
            self.read_datagram(&mut event)?;
        } else {
            self.read_connection(&mut event)?;
        }
        Ok(event)
    }

    fn read_connection(&self, event: &mut CmEvent) -> CmResult<()> {
        let Ok((param, _)) = ConnParam::read_from_prefix(&self.raw.param) else {
            return Err(short_event());
        };
        event.private_data = taken(&param.private_data, param.private_data_len);
        event.parameters = CmParameters {
            qpn: param.qp_num,
            srq: param.srq != 0,
            responder_resources: param.responder_resources,
            initiator_depth: param.initiator_depth,
            retry_count: param.retry_count,
            rnr_retry_count: param.rnr_retry_count,
        };
        Ok(())
    }

    fn read_datagram(&self, event: &mut CmEvent) -> CmResult<()> {
        let Ok(param) = UdParam::read_from_bytes(&self.raw.param) else {
            return Err(short_event());
        };
        event.private_data = taken(&param.private_data, param.private_data_len);
        let answered = matches!(
            event.kind,
            CmEventKind::Established | CmEventKind::MulticastJoin
        );
        if answered {
            event.datagram = Some(DatagramPeer {
                qpn: param.qp_num,
                qkey: param.qkey,
                av: address_vector(&param.ah_attr)?,
            });
        }
        Ok(())
    }
}

fn short_event() -> CmError {
    CmError::Unintelligible {
        seen: "an event that is too short".to_owned(),
        expected: "the event's parameters",
    }
}

/// As much of the field as the kernel says, which can't be more than there is.
fn taken(field: &[u8], length: u8) -> Vec<u8> {
    field[..field.len().min(length.into())].to_vec()
}

fn address_vector(attr: &AhAttr) -> CmResult<AddressVector> {
    if attr.is_global == 0 {
        return Err(CmError::Unsupported(
            "paths without a GID (InfiniBand within a subnet)",
        ));
    }
    Ok(AddressVector {
        dgid: Gid(attr.dgid),
        sgid_index: attr.sgid_index.into(),
        flow_label: attr.flow_label,
        hop_limit: attr.hop_limit,
        traffic_class: attr.traffic_class,
        sl: attr.sl,
        port: attr.port_num,
    })
}

/// Attributes that the kernel's mask says are given.
pub(super) fn qp_attributes(attr: &QpAttr) -> CmResult<QpAttributes> {
    let mask = AttributeMask::from_bits_truncate(attr.attr_mask);
    let given = |bit| mask.contains(bit);
    let state = given(AttributeMask::STATE)
        .then(|| qp_state(attr.qp_state))
        .transpose()?;
    let path_mtu = given(AttributeMask::PATH_MTU)
        .then(|| path_mtu(attr.path_mtu))
        .transpose()?;
    let av = given(AttributeMask::AV)
        .then(|| address_vector(&attr.ah_attr))
        .transpose()?;
    let access = AccessFlags::from_bits_truncate(attr.qp_access_flags);
    let some = |bit, value: u8| given(bit).then_some(value);
    Ok(QpAttributes {
        state,
        en_sqd_async_notify: given(AttributeMask::EN_SQD_ASYNC_NOTIFY)
            .then_some(attr.en_sqd_async_notify != 0),
        access_flags: given(AttributeMask::ACCESS_FLAGS).then_some(access),
        pkey_index: given(AttributeMask::PKEY_INDEX).then_some(attr.pkey_index),
        port: some(AttributeMask::PORT, attr.port_num),
        qkey: given(AttributeMask::QKEY).then_some(attr.qkey),
        av,
        path_mtu,
        timeout: some(AttributeMask::TIMEOUT, attr.timeout),
        retry_cnt: some(AttributeMask::RETRY_CNT, attr.retry_cnt),
        rnr_retry: some(AttributeMask::RNR_RETRY, attr.rnr_retry),
        rq_psn: given(AttributeMask::RQ_PSN).then_some(attr.rq_psn),
        max_qp_rd_atomic: some(AttributeMask::MAX_QP_RD_ATOMIC, attr.max_rd_atomic),
        min_rnr_timer: some(AttributeMask::MIN_RNR_TIMER, attr.min_rnr_timer),
        sq_psn: given(AttributeMask::SQ_PSN).then_some(attr.sq_psn),
        max_dest_rd_atomic: some(AttributeMask::MAX_DEST_RD_ATOMIC, attr.max_dest_rd_atomic),
        dest_qpn: given(AttributeMask::DEST_QPN).then_some(attr.dest_qp_num),
    })
}

fn qp_state(code: u32) -> CmResult<QpState> {
    [
        QpState::Reset,
        QpState::Init,
        QpState::Rtr,
        QpState::Rts,
        QpState::Sqd,
        QpState::Sqe,
        QpState::Error,
    ]
    .into_iter()
    .find(|state| u32::from(*state as u8) == code)
    .ok_or_else(|| CmError::Unintelligible {
        seen: format!("queue pair state {code}"),
        expected: "a state from 0 to 6",
    })
}

fn path_mtu(code: u32) -> CmResult<PathMtu> {
    u8::try_from(code)
        .ok()
        .and_then(PathMtu::from_code)
        .ok_or_else(|| CmError::Unintelligible {
            seen: format!("path MTU code {code}"),
            expected: "a code from 1 to 5",
        })
}

/// Device and addresses, from both forms of the query. `name_of` knows the
/// device with an index (`RDMA_NLDEV_ATTR_DEV_INDEX`).
pub(super) fn route(
    addresses: &QueryAddrResponse,
    gids: &QueryAddrResponse,
    name_of: impl FnOnce(u32) -> Option<String>,
) -> CmRoute {
    let node_guid = u64::from_be_bytes(addresses.node_guid);
    CmRoute {
        device: (node_guid != 0).then_some(CmDevice {
            name: name_of(addresses.ibdev_index),
            node_guid,
        }),
        port: addresses.port_num,
        pkey: addresses.pkey,
        local: parse(&addresses.src),
        peer: parse_peer(&addresses.dst),
        local_gid: parse_gid(&gids.src),
        peer_gid: parse_gid(&gids.dst),
    }
}
