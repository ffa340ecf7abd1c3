//! Reading messages and attributes. Nothing here does I/O, and no bytes make
//! it panic.

use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

use super::attribute::{self, Attribute};
use super::encode::{ATTRIBUTE_HEADER, HEADER};
use super::error::NldevError;

/// The flag of an attribute type that says that it holds attributes. Some
/// messages set it, others don't: whether an attribute is nested is known by
/// its number.
const TYPE_MASK: u16 = 0x3fff;
/// `NLM_F_CAPPED`: an error message holds only the header of its request.
const FLAG_CAPPED: u16 = 0x100;
/// `NLM_F_ACK_TLVS`: attributes follow in an error message.
const FLAG_ACK_TLVS: u16 = 0x200;
/// `NLMSGERR_ATTR_MSG`.
const EXTENDED_TEXT: Attribute = Attribute {
    number: 1,
    name: "NLMSGERR_ATTR_MSG",
};

/// One message of the kernel.
#[derive(Debug)]
pub enum Message<'a> {
    /// An object, by its attributes.
    Object(Attributes<'a>),
    /// The request is done.
    Done,
    /// The request is refused.
    Refused {
        /// The error number, positive.
        errno: i32,
        /// What else the kernel said.
        extended: Option<String>,
    },
    /// Nothing (`NLMSG_NOOP`, or the answer to another request).
    Other,
}

/// Splits a datagram into messages; those with another sequence number than
/// `sequence` are [`Message::Other`].
///
/// # Errors
/// `Truncated` when a message or an attribute doesn't fit in what is there.
pub fn messages(datagram: &[u8], sequence: u32) -> Result<Vec<Message<'_>>, NldevError> {
    let mut messages = Vec::new();
    let mut rest = datagram;
    while !rest.is_empty() {
        let length = u32_at(rest, 0).map_or(HEADER, |length| length as usize);
        let message = rest
            .get(..length)
            .filter(|message| message.len() >= HEADER)
            .ok_or_else(|| NldevError::Truncated {
                what: "a message".to_owned(),
                needed: length.max(HEADER),
                left: rest.len(),
            })?;
        messages.push(read(message, sequence)?);
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
    }
    Ok(messages)
}

/// One message, at least as long as its header.
fn read(message: &[u8], sequence: u32) -> Result<Message<'_>, NldevError> {
    const NOOP: u16 = libc::NLMSG_NOOP as u16;
    const ERROR: u16 = libc::NLMSG_ERROR as u16;
    const DONE: u16 = libc::NLMSG_DONE as u16;
    const OVERRUN: u16 = libc::NLMSG_OVERRUN as u16;
    let (kind, flags) = (u16_at(message, 4), u16_at(message, 6));
    if u32_at(message, 8) != Some(sequence) {
        return Ok(Message::Other);
    }
    let payload = message.get(HEADER..).unwrap_or_default();
    match kind {
        NOOP | OVERRUN => Ok(Message::Other),
        ERROR => {
            let code =
                u32_at(payload, 0).ok_or_else(|| truncated("an error number", 4, payload))?;
            let text = extended(payload, flags);
            Ok(outcome(code.cast_signed(), text))
        }
        DONE => {
            // Linux before 2.6 sent none; a dump that fails half way tells here.
            let code = u32_at(payload, 0).unwrap_or(0);
            let text = payload
                .get(4..)
                .filter(|_| flags & FLAG_ACK_TLVS != 0)
                .and_then(extended_text);
            Ok(outcome(code.cast_signed(), text))
        }
        // Client 5, device management, is 0x1400 and above.
        _ if kind >> 10 == 5 => Ok(Message::Object(Attributes::parse(payload)?)),
        _ => Err(NldevError::Unexpected {
            seen: kind,
            expected: "one of the client 5 (device management)",
        }),
    }
}

/// Netlink clients give error numbers with either sign.
fn outcome(code: i32, extended: Option<String>) -> Message<'static> {
    if code == 0 {
        return Message::Done;
    }
    Message::Refused {
        errno: code.checked_abs().unwrap_or(libc::EIO),
        extended,
    }
}

/// The text that follows an error number and the refused request.
fn extended(payload: &[u8], flags: u16) -> Option<String> {
    if flags & FLAG_ACK_TLVS == 0 {
        return None;
    }
    let request = if flags & FLAG_CAPPED == 0 {
        (u32_at(payload, 4)? as usize).max(HEADER)
    } else {
        HEADER
    };
    let at = request.checked_add(4)?.checked_next_multiple_of(4)?;
    extended_text(payload.get(at..)?)
}

fn extended_text(attributes: &[u8]) -> Option<String> {
    let attributes = Attributes::parse(attributes).ok()?;
    let text = attributes.string(EXTENDED_TEXT).ok()??;
    (!text.is_empty()).then_some(text)
}

/// The attributes of a message or of another attribute. Lengths have been
/// checked; the payloads are checked when they are asked for.
#[derive(Debug, Clone, Default)]
pub struct Attributes<'a> {
    list: Vec<(u16, &'a [u8])>,
}

impl<'a> Attributes<'a> {
    /// Splits a payload into attributes.
    ///
    /// # Errors
    /// `Truncated`, with the name of the attribute that doesn't fit.
    pub fn parse(payload: &'a [u8]) -> Result<Self, NldevError> {
        let mut list = Vec::new();
        let mut rest = payload;
        while !rest.is_empty() {
            if rest.len() < ATTRIBUTE_HEADER {
                return Err(truncated("an attribute's header", ATTRIBUTE_HEADER, rest));
            }
            let length = usize::from(u16_at(rest, 0));
            let number = u16_at(rest, 2) & TYPE_MASK;
            let body = rest.get(ATTRIBUTE_HEADER..length).ok_or_else(|| {
                let name = attribute::name_of(number).unwrap_or("unknown");
                let what = format!("the attribute {name} ({number})");
                NldevError::Truncated {
                    what,
                    needed: length.max(ATTRIBUTE_HEADER),
                    left: rest.len(),
                }
            })?;
            // Type 0 pads so that the next payload is aligned to 8 bytes.
            if number != 0 {
                list.push((number, body));
            }
            rest = rest.get(length.next_multiple_of(4)..).unwrap_or_default();
        }
        Ok(Self { list })
    }

    /// A list of one attribute.
    pub(super) fn single(number: u16, payload: &'a [u8]) -> Self {
        Self {
            list: vec![(number, payload)],
        }
    }

    /// All attributes in order: number and payload.
    pub fn iter(&self) -> impl Iterator<Item = (u16, &'a [u8])> {
        self.list.iter().copied()
    }

    /// The payload of an attribute; of the last one when there are several.
    #[must_use]
    pub fn bytes(&self, attribute: Attribute) -> Option<&'a [u8]> {
        let found = self.list.iter().rev();
        let mut found = found.filter(|(number, _)| *number == attribute.number);
        found.next().map(|(_, payload)| *payload)
    }

    /// An 8-bit number.
    ///
    /// # Errors
    /// `Odd` when the payload has another length.
    pub fn u8(&self, attribute: Attribute) -> Result<Option<u8>, NldevError> {
        let number = |bytes: [u8; 1]| bytes[0];
        self.fixed(attribute, "1 byte", number)
    }

    /// A 32-bit number.
    ///
    /// # Errors
    /// `Odd` when the payload has another length.
    pub fn u32(&self, attribute: Attribute) -> Result<Option<u32>, NldevError> {
        self.fixed(attribute, "4 bytes", u32::from_ne_bytes)
    }

    /// A 64-bit number.
    ///
    /// # Errors
    /// `Odd` when the payload has another length.
    pub fn u64(&self, attribute: Attribute) -> Result<Option<u64>, NldevError> {
        self.fixed(attribute, "8 bytes", u64::from_ne_bytes)
    }

    /// A string, without the zero byte that ends it. What isn't UTF-8 is
    /// replaced.
    ///
    /// # Errors
    /// `Odd` when it isn't terminated.
    pub fn string(&self, attribute: Attribute) -> Result<Option<String>, NldevError> {
        let Some(bytes) = self.bytes(attribute) else {
            return Ok(None);
        };
        if bytes.last() != Some(&0) {
            return Err(NldevError::Odd {
                attribute,
                seen: format!("{} bytes without a zero byte at the end", bytes.len()),
                expected: "a terminated string",
            });
        }
        let text = bytes.split(|byte| *byte == 0).next().unwrap_or_default();
        Ok(Some(String::from_utf8_lossy(text).into_owned()))
    }

    /// A `struct sockaddr_storage` with an IPv4 or IPv6 address; `None` for
    /// another family, too.
    ///
    /// # Errors
    /// `Odd` when it is shorter than an address of its family.
    pub fn socket_address(&self, attribute: Attribute) -> Result<Option<SocketAddr>, NldevError> {
        const INET: u16 = libc::AF_INET as u16;
        const INET6: u16 = libc::AF_INET6 as u16;
        let Some(bytes) = self.bytes(attribute) else {
            return Ok(None);
        };
        let odd = || NldevError::Odd {
            attribute,
            seen: format!("{} bytes", bytes.len()),
            expected: "a socket address",
        };
        let family = bytes
            .first_chunk()
            .map(|family| u16::from_ne_bytes(*family));
        let address: IpAddr = match family.ok_or_else(odd)? {
            INET => Ipv4Addr::from(*array::<4>(bytes, 4).ok_or_else(odd)?).into(),
            INET6 => Ipv6Addr::from(*array::<16>(bytes, 8).ok_or_else(odd)?).into(),
            _ => return Ok(None),
        };
        let port = u16::from_be_bytes(*array(bytes, 2).ok_or_else(odd)?);
        Ok(Some(SocketAddr::new(address, port)))
    }

    /// The attributes inside an attribute.
    ///
    /// # Errors
    /// `Truncated` as [`Self::parse`].
    pub fn nested(&self, attribute: Attribute) -> Result<Option<Attributes<'a>>, NldevError> {
        self.bytes(attribute).map(Attributes::parse).transpose()
    }

    /// The entries of a table: the attributes inside each attribute inside
    /// `table`, which has to be there.
    ///
    /// # Errors
    /// `Missing` without the table, `Truncated` as [`Self::parse`].
    pub fn entries(&self, table: Attribute) -> Result<Vec<Attributes<'a>>, NldevError> {
        let nested = self.nested(table)?.ok_or(NldevError::Missing(table))?;
        nested
            .iter()
            .map(|(_, entry)| Attributes::parse(entry))
            .collect()
    }

    fn fixed<const N: usize, T>(
        &self,
        attribute: Attribute,
        expected: &'static str,
        number: impl FnOnce([u8; N]) -> T,
    ) -> Result<Option<T>, NldevError> {
        let Some(bytes) = self.bytes(attribute) else {
            return Ok(None);
        };
        let value = bytes.try_into().map_err(|_| NldevError::Odd {
            attribute,
            seen: format!("{} bytes long", bytes.len()),
            expected,
        })?;
        Ok(Some(number(value)))
    }
}

/// The value of an attribute that has to be there.
///
/// # Errors
/// `Missing` when it isn't, or what its reader found wrong.
pub fn required<T>(
    attribute: Attribute,
    read: Result<Option<T>, NldevError>,
) -> Result<T, NldevError> {
    read?.ok_or(NldevError::Missing(attribute))
}

impl NldevError {
    pub(super) fn refused(doing: &'static str, errno: i32, extended: Option<String>) -> Self {
        Self::Refused {
            doing,
            source: io::Error::from_raw_os_error(errno),
            extended,
        }
    }
}

fn truncated(what: &str, needed: usize, rest: &[u8]) -> NldevError {
    NldevError::Truncated {
        what: what.to_owned(),
        needed,
        left: rest.len(),
    }
}

fn array<const N: usize>(bytes: &[u8], at: usize) -> Option<&[u8; N]> {
    bytes.get(at..)?.first_chunk()
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    array(bytes, at).map(|bytes| u32::from_ne_bytes(*bytes))
}

/// 0 beyond the end, which no header has there.
fn u16_at(bytes: &[u8], at: usize) -> u16 {
    array(bytes, at).map_or(0, |bytes| u16::from_ne_bytes(*bytes))
}
