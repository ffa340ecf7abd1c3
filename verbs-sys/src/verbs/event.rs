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
    /// The device is dead.
    DeviceFatal = 8,
    /// The port came up.
    PortActive = 9,
    /// The port went down.
    PortError = 10,
    /// A shared receive queue failed.
    SrqError = 14,
    /// A shared receive queue fell below its limit.
    SrqLimitReached = 15,
    /// A queue pair in error has returned its last SRQ work request.
    LastWqeReached = 16,
    /// The GID table changed.
    GidChange = 18,
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
}

/// `struct ibv_async_event`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct AsyncEvent {
    /// What happened.
    pub kind: EventKind,
    /// To what.
    pub source: EventSource,
}
