//! The key record: what a peer must know to connect to one QP and to reach
//! the memory behind it, as one line of ASCII.

use std::fmt::Write as _;

use super::error::ExchangeError;
use super::step::{Stage, Step};

/// Which of the four forms a record has. It follows the local settings only:
/// an end expects from its peer the form it sends itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct KeyForm {
    /// A GID is part of it (every Ethernet link).
    pub gid: bool,
    /// The address of the tail markers is part of it (`--data_validation`).
    pub tail_markers: bool,
}

/// The forms by length.
const FORMS: [KeyForm; 4] = [
    KeyForm {
        gid: false,
        tail_markers: false,
    },
    KeyForm {
        gid: false,
        tail_markers: true,
    },
    KeyForm {
        gid: true,
        tail_markers: false,
    },
    KeyForm {
        gid: true,
        tail_markers: true,
    },
];

/// Length of the longest form.
pub const MAX_KEY_LEN: usize = 125;

impl KeyForm {
    /// All forms, the shortest first.
    pub fn all() -> [Self; 4] {
        FORMS
    }

    /// Length in bytes, with the terminating NUL.
    pub fn length(self) -> usize {
        match (self.gid, self.tail_markers) {
            (false, false) => 59,
            (false, true) => 76,
            (true, false) => 108,
            (true, true) => MAX_KEY_LEN,
        }
    }

    /// The form with this length.
    pub fn from_length(length: usize) -> Option<Self> {
        FORMS.into_iter().find(|form| form.length() == length)
    }
}

/// One QP's key record.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyRecord {
    /// LID of the port.
    pub lid: u16,
    /// Outstanding reads (1 except for READ, ATOMIC and data validation).
    pub out_reads: u32,
    /// QP number, 24 bits.
    pub qpn: u32,
    /// First PSN this QP sends, 24 bits.
    pub psn: u32,
    /// Remote key of the area the peer may reach.
    pub rkey: u32,
    /// Address of that area.
    pub vaddr: u64,
    /// Address of the tail markers (`--data_validation` only).
    pub tail_markers: Option<u64>,
    /// GID of the port, when the local GID index is set.
    pub gid: Option<[u8; 16]>,
    /// SRQ number for XRC and DC, else 0.
    pub srqn: u32,
    /// Index of that GID in the port's table: only a binary record says it.
    pub gid_index: Option<u32>,
}

impl KeyRecord {
    /// The form of this record.
    pub fn form(&self) -> KeyForm {
        KeyForm {
            gid: self.gid.is_some(),
            tail_markers: self.tail_markers.is_some(),
        }
    }

    /// The message, with its terminating NUL.
    pub fn encode(&self) -> Vec<u8> {
        let mut line = format!(
            "{:04x}:{:04x}:{:06x}:{:06x}:{:08x}:{:016x}:",
            self.lid, self.out_reads, self.qpn, self.psn, self.rkey, self.vaddr
        );
        // Writing to a String cannot fail.
        if let Some(address) = self.tail_markers {
            let _ = write!(line, "{address:016x}:");
        }
        if let Some(gid) = self.gid {
            for byte in gid {
                let _ = write!(line, "{byte:02x}:");
            }
        }
        let _ = write!(line, "{:08x}", self.srqn);
        if self.gid.is_some() {
            line.push(':');
        }
        line.push('\0');
        line.into_bytes()
    }

    /// Reads a record of the given form; every digit and separator must be in its place.
    ///
    /// # Errors
    /// [`ExchangeError::MalformedKey`] with the record as the peer sent it.
    pub fn parse(message: &[u8], form: KeyForm, stage: Stage) -> Result<Self, ExchangeError> {
        Self::read(message, form).ok_or_else(|| ExchangeError::MalformedKey {
            step: Step::Key(stage),
            expected: form.length(),
            seen: message.escape_ascii().to_string(),
        })
    }

    fn read(message: &[u8], form: KeyForm) -> Option<Self> {
        let mut reader = Reader { rest: message };
        let lid = reader.hex(4)?;
        let out_reads = reader.hex(4)?;
        let qpn = reader.hex(6)?;
        let psn = reader.hex(6)?;
        let rkey = reader.hex(8)?;
        let vaddr = reader.hex(16)?;
        let tail_markers = if form.tail_markers {
            Some(reader.hex(16)?)
        } else {
            None
        };
        let gid = if form.gid {
            let mut gid = [0; 16];
            for byte in &mut gid {
                *byte = reader.hex(2)?.try_into().ok()?;
            }
            Some(gid)
        } else {
            None
        };
        let srqn = if form.gid {
            reader.hex(8)?
        } else {
            reader.digits(8)?
        };
        (reader.rest == b"\0").then_some(())?;
        Some(Self {
            lid: lid.try_into().ok()?,
            out_reads: out_reads.try_into().ok()?,
            qpn: qpn.try_into().ok()?,
            psn: psn.try_into().ok()?,
            rkey: rkey.try_into().ok()?,
            vaddr,
            tail_markers,
            gid,
            srqn: srqn.try_into().ok()?,
            gid_index: None,
        })
    }

    /// Whether the GID is an IPv4 address (`::ffff:` in front). No GID is not.
    fn is_v4_mapped(&self) -> bool {
        const PREFIX: [u8; 12] = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff];
        self.gid.is_some_and(|gid| gid.starts_with(&PREFIX))
    }
}

/// Two GIDs work together when both are IPv4 addresses or neither is.
///
/// # Errors
/// [`ExchangeError::GidTypes`] otherwise; both ends find out by themselves.
pub fn check_gid_types(ours: &KeyRecord, theirs: &KeyRecord) -> Result<(), ExchangeError> {
    if ours.is_v4_mapped() == theirs.is_v4_mapped() {
        Ok(())
    } else {
        Err(ExchangeError::GidTypes {
            ours: ours.gid,
            theirs: theirs.gid,
        })
    }
}

/// Takes hexadecimal numbers of fixed width off the front of a line.
struct Reader<'a> {
    rest: &'a [u8],
}

impl Reader<'_> {
    /// `width` digits and a colon.
    fn hex(&mut self, width: usize) -> Option<u64> {
        let value = self.digits(width)?;
        self.rest = self.rest.strip_prefix(b":")?;
        Some(value)
    }

    /// `width` lower-case digits.
    fn digits(&mut self, width: usize) -> Option<u64> {
        let (digits, rest) = self.rest.split_at_checked(width)?;
        self.rest = rest;
        digits.iter().try_fold(0_u64, |value, digit| {
            let digit = match digit {
                b'0'..=b'9' => digit - b'0',
                b'a'..=b'f' => digit - b'a' + 10,
                _ => return None,
            };
            Some(value << 4 | u64::from(digit))
        })
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn record(gid: bool, tail_markers: bool) -> KeyRecord {
        KeyRecord {
            lid: 0x11,
            out_reads: 1,
            qpn: 0x141,
            psn: 0xe618f4,
            rkey: 0x396b,
            vaddr: 0x5577_98a9_c000,
            tail_markers: tail_markers.then_some(0x5577_98a9_b000),
            gid: gid.then_some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 192, 168, 1, 201]),
            srqn: 0,
            gid_index: None,
        }
    }

    #[test]
    fn prints_the_known_lines() {
        assert_eq!(
            record(false, false).encode(),
            b"0011:0001:000141:e618f4:0000396b:0000557798a9c000:00000000\0"
        );
        assert_eq!(
            record(true, false).encode(),
            b"0011:0001:000141:e618f4:0000396b:0000557798a9c000:\
              00:00:00:00:00:00:00:00:00:00:ff:ff:c0:a8:01:c9:00000000:\0"
        );
        assert_eq!(
            record(false, true).encode(),
            b"0011:0001:000141:e618f4:0000396b:0000557798a9c000:0000557798a9b000:00000000\0"
        );
    }

    #[test]
    fn reads_every_form_back() {
        for form in KeyForm::all() {
            let record = record(form.gid, form.tail_markers);
            let message = record.encode();
            assert_eq!(message.len(), form.length());
            assert_eq!(KeyForm::from_length(message.len()), Some(form));
            let parsed = KeyRecord::parse(&message, form, Stage::Keys).unwrap();
            assert_eq!(parsed, record);
        }
    }

    #[test]
    fn refuses_any_damaged_byte() {
        for form in KeyForm::all() {
            let message = record(form.gid, form.tail_markers).encode();
            for at in 0..message.len() {
                for bad in [b'g', b'A', b' ', b'-', 0xff] {
                    let mut damaged = message.clone();
                    damaged[at] = bad;
                    let error = KeyRecord::parse(&damaged, form, Stage::Ready).unwrap_err();
                    assert!(
                        matches!(
                            error,
                            ExchangeError::MalformedKey {
                                step: Step::Key(Stage::Ready),
                                ..
                            }
                        ),
                        "{error}"
                    );
                }
            }
            assert!(KeyRecord::parse(&message[1..], form, Stage::Keys).is_err());
            assert!(KeyRecord::parse(&[], form, Stage::Keys).is_err());
        }
    }

    #[test]
    fn compares_gid_types() {
        let mapped = record(true, false);
        let none = record(false, false);
        let mut ipv6 = mapped;
        ipv6.gid = Some([0xfd, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]);
        assert!(check_gid_types(&mapped, &mapped).is_ok());
        assert!(check_gid_types(&ipv6, &ipv6).is_ok());
        assert!(check_gid_types(&ipv6, &none).is_ok());
        assert!(check_gid_types(&mapped, &ipv6).is_err());
        assert!(check_gid_types(&none, &mapped).is_err());
    }
}
