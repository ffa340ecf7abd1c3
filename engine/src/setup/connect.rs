//! The states of a queue pair, and what we tell the peer of it.

use verbs_sys::{
    AccessFlags, AddressVector, Gid, PathMtu, QpAttributes, QpState, QpType, QueuePair, VerbsError,
};

use super::adapter::Source;
use crate::exchange::KeyRecord;
use crate::failure::Failure;
use crate::options::Params;
use crate::words::Verb;

/// Code of the wait that an RNR NAK asks for: 0.64 ms (IBTA table 45).
const MIN_RNR_TIMER: u8 = 12;

/// Retries after a timeout or a sequence error.
const RETRY_COUNT: u8 = 7;

/// Retries after an RNR NAK: without end.
const RNR_RETRY: u8 = 7;

/// The Q_Key of all datagrams, unless the connection manager decides.
pub(crate) const QKEY: u32 = 0x1111_1111;

/// IPv4 TTL or IPv6 hop limit.
const HOP_LIMIT: u8 = 255;

/// What all queue pairs of a test have in common.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Path {
    pub(crate) source: Source,
    pub(crate) mtu: PathMtu,
    /// Reads and atomics in flight.
    pub(crate) out_reads: u32,
    pub(crate) pkey_index: u16,
    /// Of all datagrams of the test.
    pub(crate) qkey: u32,
}

/// RESET to INIT: the port, and what the peer may do.
pub(crate) fn to_init(qp: &mut dyn QueuePair, params: &Params, path: &Path) -> Result<(), Failure> {
    let mut access = match params.verb() {
        Verb::Write | Verb::WriteImm => AccessFlags::REMOTE_WRITE,
        Verb::Read => AccessFlags::REMOTE_READ,
        Verb::Atomic => AccessFlags::REMOTE_ATOMIC,
        Verb::Send | Verb::SendImm => AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE_WRITE,
    };
    if params.data_validation {
        access |= AccessFlags::REMOTE_ATOMIC | AccessFlags::REMOTE_READ;
    }
    let datagrams = qp.qp_type() == QpType::Ud;
    qp.modify(&QpAttributes {
        pkey_index: Some(path.pkey_index),
        port: Some(params.device.port),
        access_flags: (!datagrams).then_some(access),
        qkey: datagrams.then_some(path.qkey),
        ..QpAttributes::to_state(QpState::Init)
    })
    .map_err(|source| Failure::Verbs {
        stock: format!(
            "Failed to modify QP to INIT, ret={}\n Couldn't create IB resources\n",
            source.errno()
        ),
        doing: "taking a queue pair to INIT",
        source,
    })
}

/// Joins the multicast group, on the end that receives from one.
pub(crate) fn join_group(qp: &mut dyn QueuePair, params: &Params) -> Result<(), Failure> {
    let Some(group) = params.multicast.filter(|_| params.is_in_group()) else {
        return Ok(());
    };
    qp.attach_multicast(&group)
        .map_err(|source| Failure::Verbs {
            stock: "Couldn't attach QP to MultiCast group\n Failed to set up multicast group\n"
                .to_owned(),
            doing: "joining the multicast group",
            source,
        })
}

/// INIT to RTR: where the peer is. `index` counts the queue pairs.
pub(crate) fn to_rtr(
    qp: &mut dyn QueuePair,
    index: usize,
    params: &Params,
    path: &Path,
    peer: &KeyRecord,
) -> Result<(), Failure> {
    let datagrams = qp.qp_type() == QpType::Ud;
    let responds = matches!(qp.qp_type(), QpType::Rc | QpType::XrcReceive);
    qp.modify(&QpAttributes {
        av: (!datagrams).then(|| address_vector(index, params, path, peer)),
        path_mtu: (!datagrams).then_some(path.mtu),
        dest_qpn: (!datagrams).then_some(peer.qpn),
        rq_psn: (!datagrams).then_some(peer.psn),
        max_dest_rd_atomic: responds.then_some(limited(path.out_reads)),
        min_rnr_timer: responds.then_some(MIN_RNR_TIMER),
        ..QpAttributes::to_state(QpState::Rtr)
    })
    .map_err(|source| {
        let stock = format!("Failed to modify QP {} to RTR\n", qp.qpn());
        not_connected(stock, "taking a queue pair to RTR", source)
    })
}

/// The way to the peer of queue pair `index`.
pub(crate) fn address_vector(
    index: usize,
    params: &Params,
    path: &Path,
    peer: &KeyRecord,
) -> AddressVector {
    AddressVector {
        dgid: peer.gid.map_or(Gid::ZERO, Gid),
        sgid_index: path.source.index,
        flow_label: in_turn(&params.path.flow_labels, index),
        hop_limit: HOP_LIMIT,
        traffic_class: params.path.traffic_class,
        sl: params.path.service_level,
        port: params.device.port,
    }
}

/// RTR to RTS: how we send. `own` is what the peer was told, `peer` what it told.
pub(crate) fn to_rts(
    qp: &mut dyn QueuePair,
    params: &Params,
    path: &Path,
    own: &KeyRecord,
    peer: &KeyRecord,
) -> Result<(), Failure> {
    let reliable = matches!(qp.qp_type(), QpType::Rc | QpType::XrcSend);
    // Neither more than the peer answers, nor than we can ask.
    let out_reads = limited(peer.out_reads.min(path.out_reads));
    qp.modify(&QpAttributes {
        sq_psn: Some(own.psn),
        timeout: reliable.then_some(params.path.qp_timeout),
        retry_cnt: reliable.then_some(RETRY_COUNT),
        rnr_retry: reliable.then_some(RNR_RETRY),
        max_qp_rd_atomic: reliable.then_some(out_reads),
        ..QpAttributes::to_state(QpState::Rts)
    })
    .map_err(|source| {
        let stock = "Failed to modify QP to RTS\n".to_owned();
        not_connected(stock, "taking a queue pair to RTS", source)
    })
}

/// The field has eight bits; no device has more.
fn limited(out_reads: u32) -> u8 {
    u8::try_from(out_reads).unwrap_or(u8::MAX)
}

/// The flow labels are given to the queue pairs in turn.
fn in_turn(labels: &[u32], index: usize) -> u32 {
    index
        .checked_rem(labels.len())
        .and_then(|turn| labels.get(turn))
        .copied()
        .unwrap_or(0)
}

fn not_connected(stock: String, doing: &'static str, source: VerbsError) -> Failure {
    Failure::Verbs {
        stock: format!("{stock} Unable to Connect the HCA's through the link\n"),
        doing,
        source,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flow_labels_go_round() {
        let labels: Vec<u32> = (0..5).map(|index| in_turn(&[7, 8], index)).collect();
        assert_eq!(labels, [7, 8, 7, 8, 7]);
        assert_eq!(in_turn(&[], 3), 0);
    }

    #[test]
    fn outstanding_reads_fit_their_field() {
        assert_eq!(limited(16), 16);
        assert_eq!(limited(0x1234), 255);
    }
}
