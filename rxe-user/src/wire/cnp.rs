//! Congestion notification packets (IBTA vol. 1, Annex A17.9).
//!
//! A receiver that sees the "congestion experienced" mark on a packet tells its sender so: a BTH
//! with B = 1 for the sender's queue pair, and 16 reserved bytes. A CNP has no PSN of its own and
//! is neither acknowledged nor sent again.

use super::{Bth, BuildError, Opcode, Packet, PacketBuilder, Psn};

/// A congestion notification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Cnp {
    /// Queue pair that is to send slower: the destination of the CNP, the source of the marked
    /// packet.
    pub dest_qpn: u32,
    /// Partition key.
    pub pkey: u16,
}

impl Cnp {
    /// Bytes of the packet, BTH to ICRC.
    pub const LEN: usize = 32;

    /// The notification in `packet`, if it is one, and complete: opcode 0x81, B = 1, and 16
    /// reserved bytes, whatever is in them.
    #[inline]
    pub fn from_packet(packet: &Packet<'_>) -> Option<Cnp> {
        let right = packet.opcode() == Opcode::CNP
            && packet.becn()
            && packet.pad() == 0
            && packet.payload().is_empty();
        right.then(|| Cnp {
            dest_qpn: packet.dest_qpn(),
            pkey: packet.pkey(),
        })
    }

    /// Writes the packet, except its ICRC, to the front of `buf`; returns its length, 32.
    ///
    /// # Errors
    /// `buf` is shorter than that.
    #[inline]
    pub fn write(self, buf: &mut [u8]) -> Result<usize, BuildError> {
        let bth = Bth {
            migreq: false,
            becn: true,
            pkey: self.pkey,
            ..Bth::new(Opcode::CNP, self.dest_qpn, Psn::new(0))
        };
        PacketBuilder::new(buf, bth)?.finish()
    }
}
