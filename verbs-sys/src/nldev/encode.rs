//! Writing messages: a 16-byte header, then attributes of length, type and
//! payload, padded to 4 bytes. There is no family header.

use super::attribute::Attribute;
use super::error::NldevError;

/// Bytes of `struct nlmsghdr`.
pub(crate) const HEADER: usize = 16;
/// Bytes of `struct nlattr`.
pub(crate) const ATTRIBUTE_HEADER: usize = 4;
/// `RDMA_NL_NLDEV`: device management, the client that all messages are for.
const CLIENT_NLDEV: u16 = 5;
/// Longest payload of an attribute: its length field has 16 bits.
const LONGEST: usize = u16::MAX as usize - ATTRIBUTE_HEADER;

/// `enum rdma_nldev_command`: what is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u16)]
pub enum Command {
    /// A device, or all.
    Get = 1,
    /// Change a device: name, network namespace, adaptive moderation.
    Set = 2,
    /// Make a software device.
    NewLink = 3,
    /// Remove a software device.
    DelLink = 4,
    /// A port.
    PortGet = 5,
    /// What holds for all devices.
    SysGet = 6,
    /// Change what holds for all devices.
    SysSet = 7,
    /// How many objects a device has.
    ResGet = 9,
    /// Queue pairs.
    ResQpGet = 10,
    /// Connection manager ids.
    ResCmIdGet = 11,
    /// Completion queues.
    ResCqGet = 12,
    /// Memory regions.
    ResMrGet = 13,
    /// Protection domains.
    ResPdGet = 14,
    /// Which character device belongs to a device.
    GetCharDev = 15,
    /// Counters.
    StatGet = 17,
    /// Queue pairs as the driver holds them.
    ResQpGetRaw = 19,
    /// Completion queues as the driver holds them.
    ResCqGetRaw = 20,
    /// Memory regions as the driver holds them.
    ResMrGetRaw = 21,
    /// Contexts.
    ResCtxGet = 22,
    /// Shared receive queues.
    ResSrqGet = 23,
    /// Which counters there are, and which of them count.
    StatGetStatus = 24,
}

/// Whether one object is asked for, or all of a kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// One object, which attributes name.
    One,
    /// All of them (`NLM_F_DUMP`).
    All,
}

/// A request, built attribute by attribute.
#[derive(Debug, Clone)]
pub struct Request {
    bytes: Vec<u8>,
}

impl Request {
    /// A request for `command`, with an acknowledgement asked for.
    #[must_use]
    pub fn new(command: Command, scope: Scope) -> Self {
        const REQUEST: u16 = libc::NLM_F_REQUEST as u16;
        const ACK: u16 = libc::NLM_F_ACK as u16;
        const DUMP: u16 = libc::NLM_F_DUMP as u16;
        let flags = match scope {
            Scope::One => REQUEST | ACK,
            Scope::All => REQUEST | ACK | DUMP,
        };
        Self {
            bytes: header(CLIENT_NLDEV << 10 | command as u16, flags),
        }
    }

    /// Adds an 8-bit number.
    #[must_use]
    pub fn u8(mut self, attribute: Attribute, value: u8) -> Self {
        put(&mut self.bytes, attribute, &[value]);
        self
    }

    /// Adds a 32-bit number.
    #[must_use]
    pub fn u32(mut self, attribute: Attribute, value: u32) -> Self {
        put(&mut self.bytes, attribute, &value.to_ne_bytes());
        self
    }

    /// Adds a string, which is terminated by a zero byte.
    ///
    /// # Errors
    /// `Unsendable` for one that holds a zero byte or is longer than 64 KiB.
    pub fn string(
        mut self,
        attribute: Attribute,
        what: &'static str,
        value: &str,
    ) -> Result<Self, NldevError> {
        let refuse = |why| NldevError::Unsendable {
            what,
            value: value.to_owned(),
            why,
        };
        if value.contains('\0') {
            return Err(refuse("it holds a zero byte"));
        }
        if value.len() >= LONGEST {
            return Err(refuse("it is longer than an attribute can be"));
        }
        let mut terminated = value.as_bytes().to_vec();
        terminated.push(0);
        put(&mut self.bytes, attribute, &terminated);
        Ok(self)
    }

    /// The whole message with `sequence` in its header.
    #[must_use]
    pub fn finish(mut self, sequence: u32) -> Vec<u8> {
        seal(&mut self.bytes, sequence);
        self.bytes
    }
}

/// A header whose length and sequence number are filled in by [`seal`].
fn header(kind: u16, flags: u16) -> Vec<u8> {
    let mut bytes = vec![0; HEADER];
    bytes[4..6].copy_from_slice(&kind.to_ne_bytes());
    bytes[6..8].copy_from_slice(&flags.to_ne_bytes());
    bytes
}

fn seal(message: &mut [u8], sequence: u32) {
    let length = u32::try_from(message.len()).unwrap_or(u32::MAX);
    message[..4].copy_from_slice(&length.to_ne_bytes());
    message[8..12].copy_from_slice(&sequence.to_ne_bytes());
}

/// Appends an attribute. The payload is at most [`LONGEST`] bytes.
pub(crate) fn put(message: &mut Vec<u8>, attribute: Attribute, payload: &[u8]) {
    debug_assert!(payload.len() <= LONGEST);
    let length = (payload.len() + ATTRIBUTE_HEADER) as u16;
    message.extend_from_slice(&length.to_ne_bytes());
    message.extend_from_slice(&attribute.number.to_ne_bytes());
    message.extend_from_slice(payload);
    message.resize(message.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::super::attribute::{DEV_NAME, LINK_TYPE, NDEV_NAME};
    use super::*;

    /// `rdma link add rxe0 type rxe netdev dummy0`, as iproute2 sends it.
    #[test]
    #[cfg(target_endian = "little")]
    fn a_new_link_is_encoded_as_iproute2_does() {
        let message = Request::new(Command::NewLink, Scope::One)
            .string(DEV_NAME, "name", "rxe0")
            .and_then(|request| request.string(LINK_TYPE, "type", "rxe"))
            .and_then(|request| request.string(NDEV_NAME, "netdev", "dummy0"))
            .unwrap()
            .finish(0x1122_3344);
        let expected = [
            &[0x30, 0, 0, 0, 0x03, 0x14, 0x05, 0][..],
            &[0x44, 0x33, 0x22, 0x11, 0, 0, 0, 0],
            &[0x09, 0, 0x02, 0],
            b"rxe0\0\0\0\0",
            &[0x08, 0, 0x41, 0],
            b"rxe\0",
            &[0x0b, 0, 0x33, 0],
            b"dummy0\0\0",
        ]
        .concat();
        assert_eq!(message, expected);
    }

    #[test]
    fn strings_that_the_kernel_would_misread_are_refused() {
        let request = || Request::new(Command::NewLink, Scope::One);
        let error = request().string(DEV_NAME, "name", "a\0b").unwrap_err();
        assert!(error.to_string().contains("zero byte"), "{error}");
        let long = "x".repeat(70_000);
        let error = request().string(DEV_NAME, "name", &long).unwrap_err();
        assert!(error.to_string().contains("longer"), "{error}");
    }
}
