//! Opcodes: the transport service and the operation in byte 0 of the BTH (IBTA vol. 1, 9.2.1).

use core::fmt;

use super::Operation;
use super::layout::{Headers, Layout};
use super::operation::OPERATIONS;

/// The transport service: bits 7 to 5 of the opcode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[repr(u8)]
pub enum Service {
    /// Reliable Connection.
    Rc = 0x00,
    /// Unreliable Connection.
    Uc = 0x20,
    /// Unreliable Datagram.
    Ud = 0x60,
    /// Congestion notification (Annex A17), which has a service prefix of its own.
    Cnp = 0x80,
    /// Extended Reliable Connection (Annex A14).
    Xrc = 0xA0,
}

impl Service {
    /// The name as in the names of opcodes: "RC", "UC", "UD", "XRC", "CNP".
    pub const fn name(self) -> &'static str {
        match self {
            Service::Rc => "RC",
            Service::Uc => "UC",
            Service::Ud => "UD",
            Service::Cnp => "CNP",
            Service::Xrc => "XRC",
        }
    }
}

impl fmt::Display for Service {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// A service and an operation that exist together.
///
/// RC Flush and RC Atomic Write are known although they are optional: a responder without them
/// answers NAK invalid request, where it drops an unknown opcode without a word.
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct Opcode {
    byte: u8,
    service: Service,
    operation: Operation,
}

static OPCODES: [Option<Opcode>; 256] = {
    let mut table = [None; 256];
    let mut i = 0;
    while i < OPERATIONS.len() {
        let row = &OPERATIONS[i];
        let mut j = 0;
        while j < row.services.len() {
            let service = row.services[j];
            let byte = service as u8 | row.code;
            assert!(table[byte as usize].is_none());
            table[byte as usize] = Some(Opcode {
                byte,
                service,
                operation: row.operation,
            });
            j += 1;
        }
        i += 1;
    }
    table
};

static LAYOUTS: [Layout; 256] = {
    let mut table = [Layout::of(Headers::EMPTY); 256];
    let mut byte = 0;
    while byte < 256 {
        if let Some(opcode) = OPCODES[byte] {
            table[byte] = Layout::of(opcode.headers());
        }
        byte += 1;
    }
    table
};

/// An opcode of the table, for constants: anything else fails to compile.
const fn known(service: Service, operation: Operation) -> Opcode {
    match Opcode::new(service, operation) {
        Some(opcode) => opcode,
        None => panic!("no such opcode"),
    }
}

impl Opcode {
    /// RC Acknowledge, 0x11.
    pub const RC_ACKNOWLEDGE: Opcode = known(Service::Rc, Operation::Acknowledge);
    /// UD Send Only, 0x64.
    pub const UD_SEND_ONLY: Opcode = known(Service::Ud, Operation::SendOnly);
    /// UD Send Only with immediate, 0x65.
    pub const UD_SEND_ONLY_IMM: Opcode = known(Service::Ud, Operation::SendOnlyImm);
    /// Congestion notification, 0x81.
    pub const CNP: Opcode = known(Service::Cnp, Operation::Cnp);

    /// The opcode of byte 0 of a BTH, if it is one that this module knows.
    #[inline]
    pub const fn from_byte(byte: u8) -> Option<Opcode> {
        OPCODES[byte as usize]
    }

    /// The opcode of `operation` in `service`, if there is one.
    #[inline]
    pub const fn new(service: Service, operation: Operation) -> Option<Opcode> {
        match OPCODES[(service as u8 | operation.row().code) as usize] {
            Some(opcode) if opcode.operation as u8 == operation as u8 => Some(opcode),
            _ => None,
        }
    }

    /// Every known opcode, in the order of its byte.
    pub fn all() -> impl Iterator<Item = Opcode> {
        OPCODES.iter().flatten().copied()
    }

    /// Byte 0 of the BTH.
    #[inline]
    pub const fn byte(self) -> u8 {
        self.byte
    }

    /// The transport service.
    #[inline]
    pub const fn service(self) -> Service {
        self.service
    }

    /// The operation.
    #[inline]
    pub const fn operation(self) -> Operation {
        self.operation
    }

    /// The headers between the BTH and the payload.
    #[inline]
    pub const fn headers(self) -> Headers {
        let headers = self.operation.row().headers;
        match self.service {
            Service::Ud => headers.with(Headers::DETH),
            // Annex A14: on every request packet, on no response.
            Service::Xrc if self.operation.is_request() => headers.with(Headers::XRCETH),
            _ => headers,
        }
    }

    #[inline]
    pub(super) fn layout(self) -> &'static Layout {
        &LAYOUTS[usize::from(self.byte)]
    }
}

impl fmt::Display for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.service, self.operation)
    }
}

impl fmt::Debug for Opcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Opcode(0x{:02x}, {self})", self.byte)
    }
}

/// Bytes of BTH and extended headers in front of the payload.
#[inline]
pub fn header_len(opcode: Opcode) -> usize {
    opcode.layout().header_len()
}

/// The most that [`header_len`] returns: an XRC atomic.
pub const MAX_HEADER_LEN: usize = {
    let mut max = 0;
    let mut byte = 0;
    while byte < 256 {
        if LAYOUTS[byte].header_len() > max {
            max = LAYOUTS[byte].header_len();
        }
        byte += 1;
    }
    max
};
