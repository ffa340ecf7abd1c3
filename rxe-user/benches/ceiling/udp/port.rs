//! What the measurements need of a way to send packets.

use super::Result;

/// Bytes in front of the payload, as many as a BTH has.
pub(crate) const HEADER: usize = 12;
/// Bytes of the CRC behind it.
pub(crate) const CRC: usize = 4;

/// Bytes of a small payload: with header and CRC 40, as many as an RDMA Write
/// of 8 bytes has (BTH 12, RETH 16, payload 8, ICRC 4).
pub(crate) const SMALL: usize = 24;

/// First byte of a packet that only carries payload.
pub(crate) const DATA: u8 = 0;
/// First byte of a packet whose payload is a word: see [`Port::send_word`].
pub(crate) const WORD: u8 = 1;

/// One end of a way to send packets to one peer.
///
/// Every packet has a header, a payload, and a CRC over both, which
/// `receive` checks.
pub(crate) trait Port {
    /// Sends `count` packets of payload.
    fn send_data(&mut self, count: usize) -> Result<()>;

    /// Sends a word at once, in a payload of [`SMALL`] bytes.
    fn send_word(&mut self, word: u64) -> Result<()>;

    /// Hands over what has arrived, if anything has, and returns how many
    /// packets. Payload has been copied to its place by then.
    fn receive(&mut self, each: impl FnMut(Arrival)) -> Result<usize>;
}

/// What has arrived.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Arrival {
    /// A packet of payload.
    Data,
    /// A word.
    Word(u64),
    /// Something else, or with a wrong CRC.
    Garbage,
}

/// Where received payload goes: memory of a few messages, filled in turn.
pub(crate) struct Destination {
    memory: Vec<u8>,
    at: usize,
}

impl Destination {
    /// Bytes of the memory, as many as a message of the usual size has.
    const BYTES: usize = 65536;

    pub(crate) fn new() -> Self {
        Self {
            memory: vec![0; Self::BYTES],
            at: 0,
        }
    }

    /// Takes a packet whose CRC has been checked.
    pub(crate) fn take(&mut self, packet: &[u8]) -> Arrival {
        let Some(payload) = packet.get(HEADER..packet.len().saturating_sub(CRC)) else {
            return Arrival::Garbage;
        };
        match packet.first() {
            Some(&DATA) => {
                if self.at + payload.len() > self.memory.len() {
                    self.at = 0;
                }
                match self.memory.get_mut(self.at..self.at + payload.len()) {
                    Some(to) => to.copy_from_slice(payload),
                    None => return Arrival::Garbage,
                }
                self.at += payload.len();
                Arrival::Data
            }
            Some(&WORD) => payload.first_chunk().map_or(Arrival::Garbage, |word| {
                Arrival::Word(u64::from_be_bytes(*word))
            }),
            _ => Arrival::Garbage,
        }
    }
}
