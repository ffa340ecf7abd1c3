//! How queue pairs follow the connection manager: the sequences of
//! `rdma_connect(3)` and `rdma_accept(3)`, over any implementation.

use super::{
    CmError, CmEvent, CmEventKind, CmId, CmRequest, CmResult, ConnectParameters, DatagramPeer, Wait,
};
use crate::verbs::{QpAttributes, QpState, QueuePair};

/// First PSN of a UD queue pair: datagrams have no order to keep.
const DATAGRAM_PSN: u32 = 0;

/// RESET to INIT, as the connection manager wants it. Receives may be posted
/// after this.
///
/// # Errors
/// Those of the manager and the queue pair.
pub fn qp_to_init(id: &dyn CmId, qp: &mut dyn QueuePair) -> CmResult<()> {
    follow(id, qp, QpState::Init, |_| {})
}

/// Connects a queue pair in INIT to the listener that `id`'s route leads to,
/// and takes it to RTS. `min_rnr_timer`: the code of the wait that this end
/// asks for when it has no receive (IBTA table 45); the kernel's default is
/// the longest there is. Returns what the peer answered.
///
/// # Errors
/// [`CmError::Rejected`], [`CmError::Failed`], [`CmError::TimedOut`],
/// [`CmError::Interrupted`].
pub fn connect_qp(
    id: &mut dyn CmId,
    qp: &mut dyn QueuePair,
    parameters: &ConnectParameters<'_>,
    min_rnr_timer: u8,
    wait: &Wait<'_>,
) -> CmResult<CmEvent> {
    id.connect(&ConnectParameters {
        qpn: qp.qpn(),
        ..*parameters
    })?;
    let event = answer(id, wait)?;
    match event.kind {
        // iWARP: the kernel has moved the queue pair.
        CmEventKind::Established => Ok(event),
        CmEventKind::ConnectResponse => {
            to_ready(id, qp, min_rnr_timer)?;
            id.establish()?;
            Ok(event)
        }
        _ => Err(not_connected(event)),
    }
}

/// Accepts a request with a queue pair in INIT, takes it to RTS, and waits
/// until the peer is ready, too. Reads and atomics are limited to what the
/// peer can do.
///
/// # Errors
/// As [`connect_qp`].
pub fn accept_qp(
    request: &mut CmRequest,
    qp: &mut dyn QueuePair,
    parameters: &ConnectParameters<'_>,
    min_rnr_timer: u8,
    wait: &Wait<'_>,
) -> CmResult<()> {
    let id = &mut *request.id;
    let peer = &request.event.parameters;
    to_ready(id, qp, min_rnr_timer)?;
    id.accept(&ConnectParameters {
        qpn: qp.qpn(),
        responder_resources: parameters.responder_resources.min(peer.responder_resources),
        initiator_depth: parameters.initiator_depth.min(peer.initiator_depth),
        ..*parameters
    })?;
    let event = answer(id, wait)?;
    match event.kind {
        CmEventKind::Established => Ok(()),
        _ => Err(not_connected(event)),
    }
}

/// RESET to RTS of a UD queue pair: datagrams need no peer for that.
///
/// # Errors
/// Those of the manager and the queue pair.
pub fn datagram_qp_ready(id: &dyn CmId, qp: &mut dyn QueuePair) -> CmResult<()> {
    qp_to_init(id, qp)?;
    qp.modify(&QpAttributes::to_state(QpState::Rtr))?;
    qp.modify(&QpAttributes {
        sq_psn: Some(DATAGRAM_PSN),
        ..QpAttributes::to_state(QpState::Rts)
    })?;
    Ok(())
}

/// Asks the datagram service that `id`'s route leads to for its queue pair
/// (SIDR, IBTA 12.11).
///
/// # Errors
/// As [`connect_qp`].
pub fn connect_datagram(
    id: &mut dyn CmId,
    parameters: &ConnectParameters<'_>,
    wait: &Wait<'_>,
) -> CmResult<DatagramPeer> {
    id.connect(parameters)?;
    let event = answer(id, wait)?;
    match (event.kind, event.datagram) {
        (CmEventKind::Established, Some(peer)) => Ok(peer),
        _ => Err(not_connected(event)),
    }
}

/// Tells the peer that asked for this datagram service its queue pair.
///
/// # Errors
/// Those of the manager.
pub fn accept_datagram(
    request: &mut CmRequest,
    parameters: &ConnectParameters<'_>,
) -> CmResult<()> {
    request.id.accept(parameters)
}

/// INIT to RTS. INIT comes once more: only with the peer's parameters the
/// manager knows which access to grant.
fn to_ready(id: &dyn CmId, qp: &mut dyn QueuePair, min_rnr_timer: u8) -> CmResult<()> {
    follow(id, qp, QpState::Init, |_| {})?;
    follow(id, qp, QpState::Rtr, |attributes| {
        if let Some(timer) = &mut attributes.min_rnr_timer {
            *timer = min_rnr_timer;
        }
    })?;
    follow(id, qp, QpState::Rts, |_| {})
}

/// Moves the queue pair as the manager says, with the caller's changes.
fn follow(
    id: &dyn CmId,
    qp: &mut dyn QueuePair,
    state: QpState,
    change: impl FnOnce(&mut QpAttributes),
) -> CmResult<()> {
    let mut attributes = id.qp_attributes(state)?;
    // iWARP: ready to receive without a path, and no word of sending. The
    // kernel moves the queue pair when it accepts.
    let by_kernel = state == QpState::Rtr && attributes.av.is_none();
    if by_kernel || attributes.state.is_none() {
        return Ok(());
    }
    change(&mut attributes);
    Ok(qp.modify(&attributes)?)
}

/// The next event that has to do with connecting.
fn answer(id: &mut dyn CmId, wait: &Wait<'_>) -> CmResult<CmEvent> {
    loop {
        let event = id.next_event(wait)?;
        let aside = matches!(
            event.kind,
            CmEventKind::AddressChange | CmEventKind::TimewaitExit
        );
        if !aside {
            return Ok(event);
        }
    }
}

/// What an event means that isn't the one that was hoped for.
fn not_connected(event: CmEvent) -> CmError {
    match event.kind {
        CmEventKind::Rejected => CmError::Rejected {
            status: event.status,
            private_data: event.private_data,
        },
        CmEventKind::Disconnected => CmError::Disconnected,
        CmEventKind::DeviceRemoval => CmError::DeviceRemoved,
        CmEventKind::ConnectError | CmEventKind::Unreachable => CmError::Failed {
            event: Box::new(event),
        },
        _ => CmError::Unexpected {
            seen: Box::new(event),
            expected: "the answer of the peer",
        },
    }
}

#[cfg(test)]
mod tests;
