//! The address lines: what the ends told each other, one QP after the other.

use std::fmt::Write as _;

use super::cformat::hex;
use crate::exchange::{Connection, KeyRecord, Verb};

/// Whose address a line shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Whose {
    /// Ours.
    Local,
    /// The peer's.
    Remote,
}

/// What decides the parts of an address line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AddressStyle {
    /// The operation; keys are shown for READ and WRITE. With a dialogue over
    /// the connection manager (`-z`, `-R`) stock takes it for SEND.
    pub verb: Verb,
    /// The transport service; XRC and DC show the SRQ.
    pub connection: Connection,
    /// The GID is a multicast group's.
    pub multicast: bool,
}

/// The one or two lines of a QP.
pub fn address_lines(whose: Whose, key: &KeyRecord, style: AddressStyle) -> String {
    let name = match whose {
        Whose::Local => "local",
        Whose::Remote => "remote",
    };
    let mut text = format!(
        " {name} address: LID {} QPN {} PSN {}",
        hex(key.lid.into(), 4),
        hex(key.qpn.into(), 6),
        hex(key.psn.into(), 6)
    );
    // Writing to a String cannot fail.
    if style.verb == Verb::Read {
        let _ = write!(text, " OUT {}", hex(key.out_reads.into(), 4));
    }
    if matches!(style.verb, Verb::Read | Verb::Write) {
        let _ = write!(
            text,
            " RKey {} VAddr {}",
            hex(key.rkey.into(), 8),
            hex(key.vaddr, 16)
        );
    }
    if matches!(style.connection, Connection::Xrc | Connection::Dc) {
        let _ = write!(text, " SRQn {}", hex(key.srqn.into(), 8));
    }
    text.push('\n');
    if let Some(gid) = key.gid {
        text.push_str(if style.multicast { " MGID: " } else { " GID: " });
        // Decimal, as stock shows them.
        let bytes: Vec<String> = gid.iter().map(|byte| format!("{byte:02}")).collect();
        text.push_str(&bytes.join(":"));
        text.push('\n');
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn shows_the_known_lines() {
        let mut key = KeyRecord {
            lid: 0x11,
            out_reads: 0x10,
            qpn: 0x141,
            psn: 0x1a_737f,
            rkey: 0x4341,
            vaddr: 0x7f76_6926_e000,
            tail_markers: None,
            gid: None,
            srqn: 0x22,
            gid_index: None,
        };
        let mut style = AddressStyle {
            verb: Verb::Write,
            connection: Connection::Rc,
            multicast: false,
        };
        assert_eq!(
            address_lines(Whose::Local, &key, style),
            " local address: LID 0x11 QPN 0x0141 PSN 0x1a737f RKey 0x004341 VAddr 0x007f766926e000\n"
        );
        style.verb = Verb::Read;
        assert_eq!(
            address_lines(Whose::Remote, &key, style),
            " remote address: LID 0x11 QPN 0x0141 PSN 0x1a737f OUT 0x10 RKey 0x004341 VAddr 0x007f766926e000\n"
        );
        style.verb = Verb::Send;
        style.connection = Connection::Xrc;
        style.multicast = true;
        key.lid = 0;
        key.gid = Some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 168, 1, 201]);
        assert_eq!(
            address_lines(Whose::Local, &key, style),
            " local address: LID 0000 QPN 0x0141 PSN 0x1a737f SRQn 0x000022\n \
             MGID: 00:00:00:00:00:00:00:00:00:00:255:255:192:168:01:201\n"
        );
    }
}
