//! Commands as values, and how they are laid out for the kernel.

use std::io;
use std::os::fd::RawFd;

use zerocopy::IntoBytes;

use crate::uapi::ioctl::{Attr, Header, MANDATORY, Method};
use crate::uapi::user_verbs::command::EXTENDED;

/// Attributes of one command; the largest, of a queue pair, has 14.
const MAX_ATTRIBUTES: usize = 16;

/// Bytes of the longest command of the write interface, header included.
const MAX_WRITE: usize = 192;

/// What an attribute carries.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value<'d> {
    /// The attribute isn't sent.
    Absent,
    /// An object that is used or released: its handle.
    Object(u32),
    /// An object or descriptor that is made: its number comes back here.
    New(u32),
    /// A file descriptor that is used.
    Fd(RawFd),
    /// An enumerator, a port or an index.
    Constant(u64),
    /// 4 bytes.
    Number32(u32),
    /// 8 bytes.
    Number64(u64),
    /// A structure for the kernel.
    In(&'d [u8]),
    /// Room for an answer.
    Out(&'d mut [u8]),
}

/// One attribute of a command.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Attribute<'d> {
    pub(crate) id: u16,
    pub(crate) flags: u16,
    pub(crate) value: Value<'d>,
}

impl<'d> Attribute<'d> {
    /// One that the kernel must know.
    pub(crate) fn new(id: u16, value: Value<'d>) -> Self {
        Self {
            id,
            flags: MANDATORY,
            value,
        }
    }

    /// One that is sent only if there is something to send.
    pub(crate) fn maybe(id: u16, value: Option<Value<'d>>) -> Self {
        Self::new(id, value.unwrap_or(Value::Absent))
    }

    /// A structure for the kernel, left out when empty.
    pub(crate) fn input(id: u16, bytes: &'d [u8]) -> Self {
        Self::maybe(id, (!bytes.is_empty()).then_some(Value::In(bytes)))
    }

    /// Room for an answer, left out when empty.
    pub(crate) fn output(id: u16, bytes: &'d mut [u8]) -> Self {
        Self::maybe(id, (!bytes.is_empty()).then_some(Value::Out(bytes)))
    }

    /// One that kernels may ignore when they don't know it.
    pub(crate) fn ignorable(mut self) -> Self {
        self.flags &= !MANDATORY;
        self
    }

    /// The number of what was made.
    pub(crate) fn made(&self) -> u32 {
        match self.value {
            Value::New(number) => number,
            _ => 0,
        }
    }

    fn encode(&mut self) -> Option<Attr> {
        // Input of up to 8 bytes travels in the attribute itself.
        let (len, data) = match &mut self.value {
            Value::Absent => return None,
            Value::Object(handle) => (0, u64::from(*handle)),
            Value::New(_) => (0, 0),
            Value::Fd(fd) => (0, i64::from(*fd) as u64),
            Value::Constant(value) => (8, *value),
            Value::Number32(value) => (4, u64::from(*value)),
            Value::Number64(value) => (8, *value),
            Value::In(bytes) if bytes.len() <= 8 => {
                let mut inline = [0; 8];
                inline[..bytes.len()].copy_from_slice(bytes);
                (bytes.len(), u64::from_ne_bytes(inline))
            }
            Value::In(bytes) => (bytes.len(), bytes.as_ptr() as u64),
            Value::Out(bytes) => (bytes.len(), bytes.as_mut_ptr() as u64),
        };
        Some(Attr {
            attr_id: self.id,
            len: len as u16,
            flags: self.flags,
            attr_data: 0,
            data,
        })
    }
}

/// A command in the attribute form.
#[derive(Debug)]
pub(crate) struct Ioctl<'a, 'd> {
    pub(crate) method: Method,
    pub(crate) driver: u32,
    pub(crate) attributes: &'a mut [Attribute<'d>],
}

/// What `RDMA_VERBS_IOCTL` points at.
#[derive(Debug, Clone, Copy)]
#[repr(C)]
pub(crate) struct Frame {
    pub(crate) header: Header,
    pub(crate) attributes: [Attr; MAX_ATTRIBUTES],
}

impl Ioctl<'_, '_> {
    /// Lays the command out. The frame holds addresses of its structures and
    /// answers.
    ///
    /// # Errors
    /// When there are too many attributes.
    pub(crate) fn encode(&mut self) -> io::Result<Frame> {
        let mut attributes = [Attr::default(); MAX_ATTRIBUTES];
        let mut count = 0;
        for attr in self.attributes.iter_mut().filter_map(Attribute::encode) {
            *attributes.get_mut(count).ok_or_else(too_long)? = attr;
            count += 1;
        }
        let length = size_of::<Header>() + count * size_of::<Attr>();
        Ok(Frame {
            header: Header {
                length: length as u16,
                object_id: self.method.object,
                method_id: self.method.method,
                num_attrs: count as u16,
                driver_id: self.driver,
                ..Header::default()
            },
            attributes,
        })
    }

    /// Takes the numbers of what was made from the frame.
    pub(crate) fn take_back(&mut self, frame: &Frame) {
        let present = |attribute: &&mut Attribute<'_>| attribute.value != Value::Absent;
        let attributes = self.attributes.iter_mut().filter(present);
        for (attribute, answer) in attributes.zip(&frame.attributes) {
            if let Value::New(number) = &mut attribute.value {
                // A handle or a descriptor, both 32 bits.
                *number = answer.data as u32;
            }
        }
    }
}

/// A command of the write interface. Its structure begins with the address of
/// the answer if there is one, which is filled in here.
#[derive(Debug)]
pub(crate) struct Write<'d> {
    pub(crate) number: u32,
    pub(crate) core_in: &'d [u8],
    pub(crate) core_out: &'d mut [u8],
    pub(crate) driver_in: &'d [u8],
    pub(crate) driver_out: &'d mut [u8],
}

impl<'d> Write<'d> {
    /// A command that the driver adds nothing to.
    pub(crate) fn new(number: u32, core_in: &'d [u8], core_out: &'d mut [u8]) -> Self {
        Self {
            number,
            core_in,
            core_out,
            driver_in: &[],
            driver_out: &mut [],
        }
    }

    /// Adds what the driver wants and answers.
    pub(crate) fn with_driver(self, driver_in: &'d [u8], driver_out: &'d mut [u8]) -> Self {
        Self {
            driver_in,
            driver_out,
            ..self
        }
    }

    /// Bytes of the answer, the driver's included.
    pub(crate) fn answer_len(&self) -> usize {
        self.core_out.len() + self.driver_out.len()
    }

    /// The bytes to write, where the answer goes to the address `answer`, and
    /// how many they are.
    ///
    /// # Errors
    /// When the command is longer than any that exists.
    pub(crate) fn encode(&self, answer: u64) -> io::Result<([u8; MAX_WRITE], usize)> {
        let mut frame = [0; MAX_WRITE];
        let mut end = if self.number & EXTENDED == 0 {
            // Lengths in words of 4 bytes, the header's included.
            let length = 8 + self.core_in.len() + self.driver_in.len();
            let words = [length / 4, self.answer_len() / 4].map(|words| words as u16);
            frame[..4].copy_from_slice(self.number.as_bytes());
            frame[4..8].copy_from_slice(words.as_bytes());
            8
        } else {
            // Lengths in words of 8 bytes, without the header.
            let words = |bytes: &[u8]| (bytes.len() / 8) as u16;
            let lengths = [words(self.core_in), words(self.core_out)];
            let driver = [words(self.driver_in), words(self.driver_out)];
            frame[..4].copy_from_slice(self.number.as_bytes());
            frame[4..8].copy_from_slice(lengths.as_bytes());
            frame[16..20].copy_from_slice(driver.as_bytes());
            24
        };
        for part in [self.core_in, self.driver_in] {
            frame
                .get_mut(end..end + part.len())
                .ok_or_else(too_long)?
                .copy_from_slice(part);
            end += part.len();
        }
        if self.answer_len() > 0 {
            frame[8..16].copy_from_slice(answer.as_bytes());
        }
        Ok((frame, end))
    }

    /// Distributes an answer: the driver's part follows the kernel's at once,
    /// aligned or not.
    pub(crate) fn take_back(&mut self, answer: &[u8]) {
        let (core, driver) = answer.split_at(self.core_out.len());
        self.core_out.copy_from_slice(core);
        self.driver_out
            .copy_from_slice(&driver[..self.driver_out.len()]);
    }
}

fn too_long() -> io::Error {
    io::Error::new(io::ErrorKind::InvalidInput, "the command is too long")
}
