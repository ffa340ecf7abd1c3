//! Operations: bits 4 to 0 of an opcode (IBTA vol. 1, 9.2.1).
//!
//! Everything that follows from an operation (its headers, where in a message it stands, how much
//! payload it may carry, whether it consumes a receive) is derived from one table, [`OPERATIONS`].

use core::fmt;

use super::Service;
use super::layout::Headers;

/// What a packet does: bits 4 to 0 of the opcode, whatever the service.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Operation {
    /// First packet of a Send.
    SendFirst,
    /// Middle packet of a Send.
    SendMiddle,
    /// Last packet of a Send.
    SendLast,
    /// Last packet of a Send with immediate.
    SendLastImm,
    /// A Send in one packet.
    SendOnly,
    /// A Send with immediate in one packet.
    SendOnlyImm,
    /// First packet of an RDMA Write.
    WriteFirst,
    /// Middle packet of an RDMA Write.
    WriteMiddle,
    /// Last packet of an RDMA Write.
    WriteLast,
    /// Last packet of an RDMA Write with immediate.
    WriteLastImm,
    /// An RDMA Write in one packet.
    WriteOnly,
    /// An RDMA Write with immediate in one packet.
    WriteOnlyImm,
    /// RDMA Read request.
    ReadRequest,
    /// First packet of an RDMA Read response.
    ReadResponseFirst,
    /// Middle packet of an RDMA Read response; the one response without an AETH.
    ReadResponseMiddle,
    /// Last packet of an RDMA Read response.
    ReadResponseLast,
    /// An RDMA Read response in one packet.
    ReadResponseOnly,
    /// Acknowledge: ACK, RNR NAK or NAK, as the AETH says.
    Acknowledge,
    /// Acknowledge of an atomic, with the original value.
    AtomicAcknowledge,
    /// Atomic compare and swap.
    CompareSwap,
    /// Atomic fetch and add.
    FetchAdd,
    /// Last packet of a Send with invalidate.
    SendLastInvalidate,
    /// A Send with invalidate in one packet.
    SendOnlyInvalidate,
    /// RDMA Flush (Annex A19).
    Flush,
    /// RDMA Atomic Write (Annex A19).
    AtomicWrite,
    /// Congestion notification packet.
    Cnp,
}

/// How much payload an operation carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PayloadClass {
    /// None.
    Empty,
    /// Exactly the path MTU.
    Full,
    /// One byte up to the path MTU.
    NonEmpty,
    /// Nothing up to the path MTU.
    Any,
    /// Exactly eight bytes.
    EightBytes,
}

impl PayloadClass {
    /// Whether a payload of `len` bytes is allowed with a path MTU of `path_mtu` bytes.
    #[inline]
    pub const fn allows(self, len: usize, path_mtu: usize) -> bool {
        match self {
            PayloadClass::Empty => len == 0,
            PayloadClass::Full => len == path_mtu,
            PayloadClass::NonEmpty => len != 0 && len <= path_mtu,
            PayloadClass::Any => len <= path_mtu,
            PayloadClass::EightBytes => len == 8,
        }
    }
}

/// What kind of operation a row of the table is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Send,
    Write,
    OtherRequest,
    Response,
    Notification,
}

/// Where in its message a packet stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Position {
    First,
    Middle,
    Last,
    Only,
}

/// One line of the opcode table of IBTA vol. 1, 9.2.1.
pub(super) struct Row {
    pub(super) operation: Operation,
    /// Bits 4 to 0 of the opcode.
    pub(super) code: u8,
    pub(super) services: &'static [Service],
    kind: Kind,
    position: Position,
    /// Headers after the BTH, whatever the service.
    pub(super) headers: Headers,
    payload: PayloadClass,
    name: &'static str,
}

#[rustfmt::skip]
pub(super) static OPERATIONS: [Row; Operation::Cnp as usize + 1] = {
    use Kind::{Notification, OtherRequest, Response, Send, Write};
    use Operation as O;
    use PayloadClass::{Any, EightBytes, Empty, Full, NonEmpty};
    use Position::{First, Last, Middle, Only};
    use Service as S;

    const CONNECTED: &[Service] = &[S::Rc, S::Uc, S::Xrc];
    const DATAGRAM_TOO: &[Service] = &[S::Rc, S::Uc, S::Ud, S::Xrc];
    const RELIABLE: &[Service] = &[S::Rc, S::Xrc];
    // Nothing published assigns the two of Annex A19 to XRC.
    const RC: &[Service] = &[S::Rc];
    const NOTIFY: &[Service] = &[S::Cnp];

    const NONE: Headers = Headers::EMPTY;
    const IMM: Headers = Headers::IMM_DT;
    const IETH: Headers = Headers::IETH;
    const RETH: Headers = Headers::RETH;
    const AETH: Headers = Headers::AETH;
    const ATOMIC: Headers = Headers::ATOMIC_ETH;

    const fn row(
        operation: Operation, code: u8, services: &'static [Service], (kind, position): (Kind, Position),
        headers: Headers, payload: PayloadClass, name: &'static str,
    ) -> Row {
        Row { operation, code, services, kind, position, headers, payload, name }
    }

    [
        row(O::SendFirst,          0x00, CONNECTED,    (Send, First),        NONE,                  Full,       "Send First"),
        row(O::SendMiddle,         0x01, CONNECTED,    (Send, Middle),       NONE,                  Full,       "Send Middle"),
        row(O::SendLast,           0x02, CONNECTED,    (Send, Last),         NONE,                  NonEmpty,   "Send Last"),
        row(O::SendLastImm,        0x03, CONNECTED,    (Send, Last),         IMM,                   NonEmpty,   "Send Last with Immediate"),
        row(O::SendOnly,           0x04, DATAGRAM_TOO, (Send, Only),         NONE,                  Any,        "Send Only"),
        row(O::SendOnlyImm,        0x05, DATAGRAM_TOO, (Send, Only),         IMM,                   Any,        "Send Only with Immediate"),
        row(O::WriteFirst,         0x06, CONNECTED,    (Write, First),       RETH,                  Full,       "RDMA Write First"),
        row(O::WriteMiddle,        0x07, CONNECTED,    (Write, Middle),      NONE,                  Full,       "RDMA Write Middle"),
        row(O::WriteLast,          0x08, CONNECTED,    (Write, Last),        NONE,                  NonEmpty,   "RDMA Write Last"),
        row(O::WriteLastImm,       0x09, CONNECTED,    (Write, Last),        IMM,                   NonEmpty,   "RDMA Write Last with Immediate"),
        row(O::WriteOnly,          0x0A, CONNECTED,    (Write, Only),        RETH,                  Any,        "RDMA Write Only"),
        row(O::WriteOnlyImm,       0x0B, CONNECTED,    (Write, Only),        RETH.with(IMM),        Any,        "RDMA Write Only with Immediate"),
        row(O::ReadRequest,        0x0C, RELIABLE,     (OtherRequest, Only), RETH,                  Empty,      "RDMA Read Request"),
        row(O::ReadResponseFirst,  0x0D, RELIABLE,     (Response, First),    AETH,                  Full,       "RDMA Read Response First"),
        row(O::ReadResponseMiddle, 0x0E, RELIABLE,     (Response, Middle),   NONE,                  Full,       "RDMA Read Response Middle"),
        row(O::ReadResponseLast,   0x0F, RELIABLE,     (Response, Last),     AETH,                  NonEmpty,   "RDMA Read Response Last"),
        row(O::ReadResponseOnly,   0x10, RELIABLE,     (Response, Only),     AETH,                  Any,        "RDMA Read Response Only"),
        row(O::Acknowledge,        0x11, RELIABLE,     (Response, Only),     AETH,                  Empty,      "Acknowledge"),
        row(O::AtomicAcknowledge,  0x12, RELIABLE,     (Response, Only),     AETH.with(Headers::ATOMIC_ACK_ETH), Empty,      "Atomic Acknowledge"),
        row(O::CompareSwap,        0x13, RELIABLE,     (OtherRequest, Only), ATOMIC,                Empty,      "Compare and Swap"),
        row(O::FetchAdd,           0x14, RELIABLE,     (OtherRequest, Only), ATOMIC,                Empty,      "Fetch and Add"),
        row(O::SendLastInvalidate, 0x16, RELIABLE,     (Send, Last),         IETH,                  NonEmpty,   "Send Last with Invalidate"),
        row(O::SendOnlyInvalidate, 0x17, RELIABLE,     (Send, Only),         IETH,                  Any,        "Send Only with Invalidate"),
        row(O::Flush,              0x1C, RC,           (OtherRequest, Only), Headers::FETH.with(RETH), Empty,      "RDMA Flush"),
        row(O::AtomicWrite,        0x1D, RC,           (OtherRequest, Only), RETH,                  EightBytes, "RDMA Atomic Write"),
        row(O::Cnp,                0x01, NOTIFY,       (Notification, Only), Headers::CNP_RESERVED, Empty,      "Notification"),
    ]
};

// `Operation::row` indexes the table with the discriminant.
const _: () = {
    let mut i = 0;
    while i < OPERATIONS.len() {
        assert!(OPERATIONS[i].operation as usize == i);
        i += 1;
    }
};

impl Operation {
    #[inline]
    pub(super) const fn row(self) -> &'static Row {
        &OPERATIONS[self as usize]
    }

    /// Every operation, in the order of the opcode table.
    pub fn all() -> impl Iterator<Item = Operation> {
        OPERATIONS.iter().map(|row| row.operation)
    }

    /// The IBTA name, without the service.
    pub const fn name(self) -> &'static str {
        self.row().name
    }

    /// How much payload a packet of this operation carries.
    #[inline]
    pub const fn payload_class(self) -> PayloadClass {
        self.row().payload
    }

    /// Whether the packet begins a message: First, Only, and all that fit one packet by nature.
    #[inline]
    pub const fn is_start(self) -> bool {
        matches!(self.row().position, Position::First | Position::Only)
    }

    /// Whether the packet ends a message: Last, Only, and all that fit one packet by nature.
    #[inline]
    pub const fn is_end(self) -> bool {
        matches!(self.row().position, Position::Last | Position::Only)
    }

    /// Whether the packet is a whole message.
    #[inline]
    pub const fn is_only(self) -> bool {
        matches!(self.row().position, Position::Only)
    }

    /// Whether the packet is the first of several.
    #[inline]
    pub const fn is_first(self) -> bool {
        matches!(self.row().position, Position::First)
    }

    /// Whether the packet stands between the first and the last of its message.
    #[inline]
    pub const fn is_middle(self) -> bool {
        matches!(self.row().position, Position::Middle)
    }

    /// Whether the packet is the last of several.
    #[inline]
    pub const fn is_last(self) -> bool {
        matches!(self.row().position, Position::Last)
    }

    /// Whether a requester sends it.
    #[inline]
    pub const fn is_request(self) -> bool {
        matches!(
            self.row().kind,
            Kind::Send | Kind::Write | Kind::OtherRequest
        )
    }

    /// Whether a responder sends it.
    #[inline]
    pub const fn is_response(self) -> bool {
        matches!(self.row().kind, Kind::Response)
    }

    /// Whether it is part of a Send, with immediate or invalidate or without.
    #[inline]
    pub const fn is_send(self) -> bool {
        matches!(self.row().kind, Kind::Send)
    }

    /// Whether it is part of an RDMA Write, with immediate or without. Atomic Write is none.
    #[inline]
    pub const fn is_write(self) -> bool {
        matches!(self.row().kind, Kind::Write)
    }

    /// Whether it is a request with an [`AtomicEth`](super::AtomicEth).
    #[inline]
    pub const fn is_atomic(self) -> bool {
        self.row().headers.contains(Headers::ATOMIC_ETH)
    }

    /// Whether it is part of an RDMA Read response.
    #[inline]
    pub const fn is_read_response(self) -> bool {
        matches!(
            self,
            Operation::ReadResponseFirst
                | Operation::ReadResponseMiddle
                | Operation::ReadResponseLast
                | Operation::ReadResponseOnly
        )
    }

    /// Whether the packet carries an [`ImmDt`](super::ImmDt).
    #[inline]
    pub const fn has_immediate(self) -> bool {
        self.row().headers.contains(Headers::IMM_DT)
    }

    /// Whether the packet carries an [`Ieth`](super::Ieth).
    #[inline]
    pub const fn has_invalidate(self) -> bool {
        self.row().headers.contains(Headers::IETH)
    }

    /// Whether the packet carries a [`Reth`](super::Reth).
    #[inline]
    pub const fn has_reth(self) -> bool {
        self.row().headers.contains(Headers::RETH)
    }

    /// Whether the packet carries an [`Aeth`](super::Aeth).
    #[inline]
    pub const fn has_aeth(self) -> bool {
        self.row().headers.contains(Headers::AETH)
    }

    /// Whether the packet needs a receive request at the responder before its payload can be
    /// placed: the start of a Send, and a Write's immediate.
    #[inline]
    pub const fn fetches_receive(self) -> bool {
        (self.is_send() && self.is_start()) || (self.is_write() && self.has_immediate())
    }

    /// Whether the packet completes a receive request: the end of a Send, and a Write's immediate.
    #[inline]
    pub const fn consumes_receive(self) -> bool {
        (self.is_send() && self.is_end()) || (self.is_write() && self.has_immediate())
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}
