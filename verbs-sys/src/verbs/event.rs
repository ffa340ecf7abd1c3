//! Asynchronous events (IBTA 11.6.3).

/// `enum ibv_event_type`: what happened outside the work queues.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum EventKind {
    /// A completion queue overran.
    CqError = 0,
    /// A queue pair went to error for a local reason without a work request to blame.
    QpFatal = 1,
    /// The responder refused an invalid request.
    QpRequestError = 2,
    /// The responder refused an access.
    QpAccessError = 3,
    /// The first packet arrived at a queue pair in RTR.
    CommunicationEstablished = 4,
    /// The send queue has drained after a move to SQD.
    SendQueueDrained = 5,
    /// The connection has moved to the alternate path.
    PathMigrated = 6,
    /// The alternate path failed.
    PathMigrationError = 7,
    /// The device is dead.
    DeviceFatal = 8,
    /// The port came up.
    PortActive = 9,
    /// The port went down.
    PortError = 10,
    /// The port has another local identifier.
    LidChange = 11,
    /// The P_Key table changed.
    PkeyChange = 12,
    /// The subnet manager changed.
    SmChange = 13,
    /// A shared receive queue failed.
    SrqError = 14,
    /// A shared receive queue fell below its limit.
    SrqLimitReached = 15,
    /// A queue pair in error has returned its last SRQ work request.
    LastWqeReached = 16,
    /// The subnet manager asks to register again.
    ClientReregister = 17,
    /// The GID table changed.
    GidChange = 18,
}

impl EventKind {
    const ALL: [Self; 19] = [
        Self::CqError,
        Self::QpFatal,
        Self::QpRequestError,
        Self::QpAccessError,
        Self::CommunicationEstablished,
        Self::SendQueueDrained,
        Self::PathMigrated,
        Self::PathMigrationError,
        Self::DeviceFatal,
        Self::PortActive,
        Self::PortError,
        Self::LidChange,
        Self::PkeyChange,
        Self::SmChange,
        Self::SrqError,
        Self::SrqLimitReached,
        Self::LastWqeReached,
        Self::ClientReregister,
        Self::GidChange,
    ];

    /// The event with this number (`enum ib_event_type`), if it is known.
    #[must_use]
    pub fn from_code(code: u32) -> Option<Self> {
        Self::ALL.get(usize::try_from(code).ok()?).copied()
    }
}

/// Which object an event concerns.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum EventSource {
    /// The queue pair with this number.
    Qp(u32),
    /// The completion queue with this handle.
    Cq(u32),
    /// The shared receive queue with this handle.
    Srq(u32),
    /// The port with this number.
    Port(u8),
    /// The whole device.
    Device,
}

/// `struct ibv_async_event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsyncEvent {
    /// What happened.
    pub kind: EventKind,
    /// To what.
    pub source: EventSource,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_the_kernel_are_understood() {
        for (code, kind) in (0..).zip(EventKind::ALL) {
            assert_eq!(kind as u32, code);
            assert_eq!(EventKind::from_code(code), Some(kind));
        }
        assert_eq!(EventKind::from_code(19), None);
    }
}
