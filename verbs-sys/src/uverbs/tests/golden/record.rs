//! A recorded command: what it held, comparing with it, giving its answer.

use std::collections::BTreeMap;
use std::io;
use std::sync::{Arc, Mutex};

use zerocopy::FromBytes;

use super::super::trace::{After, Call, Passed};
use super::super::{FakeKernel, answer, errno, invoked, new_fd};
use crate::uapi::ioctl::{Method, UHW_OUT};
use crate::uapi::user_verbs::command;
use crate::uverbs::Uverbs;
use crate::uverbs::command::{Attribute, Ioctl, Value};

/// One recorded command.
#[derive(Clone)]
pub(super) struct Record {
    pub(super) place: String,
    pub(super) method: Method,
    pub(super) driver: u32,
    pub(super) attributes: Vec<Passed>,
    pub(super) errno: i32,
    pub(super) after: BTreeMap<u16, After>,
}

impl Record {
    pub(super) fn of(name: &str, call: Call) -> Option<Self> {
        match call {
            Call::Write { .. } => None,
            Call::Ioctl {
                line,
                object,
                method,
                driver,
                attributes,
                errno,
                after,
                ..
            } => Some(Self {
                place: format!("{name}:{line}"),
                method: Method { object, method },
                driver,
                attributes,
                errno,
                after,
            }),
        }
    }

    pub(super) fn attribute(&self, id: u16) -> Option<&Passed> {
        self.attributes.iter().find(|passed| passed.id == id)
    }

    /// The value of an attribute that carries it in itself.
    pub(super) fn data(&self, id: u16) -> u64 {
        self.attribute(id).map_or(0, |passed| passed.data)
    }

    pub(super) fn number(&self, id: u16) -> u32 {
        self.data(id) as u32
    }

    /// The command of the write interface that is invoked.
    pub(super) fn command(&self) -> Option<u32> {
        (self.method == Method::INVOKE_WRITE).then(|| self.number(2))
    }

    /// What a structure for the kernel holds.
    pub(super) fn input(&self, id: u16) -> Vec<u8> {
        let Some(passed) = self.attribute(id) else {
            return Vec::new();
        };
        match passed.len {
            0..=8 => passed.data.to_ne_bytes()[..passed.len].to_vec(),
            _ => passed.bytes.clone().unwrap(),
        }
    }

    pub(super) fn core_in<T: FromBytes>(&self) -> T {
        T::read_from_bytes(&self.input(0)).expect(&self.place)
    }

    pub(super) fn driver_answer(&self) -> Vec<u8> {
        vec![0; self.attribute(UHW_OUT).map_or(0, |passed| passed.len)]
    }

    pub(super) fn answered<T: FromBytes>(&self, id: u16) -> T {
        match &self.after[&id] {
            After::Bytes(bytes) => T::read_from_bytes(bytes).expect(&self.place),
            After::Data(data) => panic!("{}: {id:#x} holds {data:#x}", self.place),
        }
    }

    pub(super) fn made(&self) -> u32 {
        match self.after[&0] {
            After::Data(number) => number as u32,
            After::Bytes(_) => panic!("{}: a handle was expected", self.place),
        }
    }

    /// Bytes of the structure that hold addresses, or what rdma-core chooses.
    pub(super) fn masked(&self) -> &'static [(usize, usize)] {
        match self.command() {
            // No answer: no address.
            Some(command::MODIFY_QP | command::REQ_NOTIFY_CQ | command::EX_QUERY_DEVICE) => &[],
            // The caller's own number for the handle.
            Some(command::CREATE_AH) => &[(0, 16)],
            // Which attributes the caller wants to see.
            Some(command::QUERY_QP) => &[(0, 8), (12, 16)],
            _ => &[(0, 8)],
        }
    }

    /// Compares a command with the record.
    pub(super) fn compare(&self, ours: &Ioctl<'_, '_>) {
        let place = &self.place;
        assert_eq!(ours.driver, self.driver, "{place}");
        let sent = ours.attributes.iter().filter(|a| a.value != Value::Absent);
        let mut ids: Vec<u16> = sent.clone().map(|attribute| attribute.id).collect();
        let mut theirs: Vec<u16> = self.attributes.iter().map(|passed| passed.id).collect();
        ids.sort_unstable();
        theirs.sort_unstable();
        assert_eq!(ids, theirs, "{place}: attributes");
        for attribute in sent {
            let passed = self.attribute(attribute.id).unwrap();
            let place = format!("{place}: attribute {:#x}", attribute.id);
            assert_eq!(attribute.flags, passed.flags, "{place}");
            let (len, data) = match &attribute.value {
                Value::Absent | Value::New(_) => (0, 0),
                Value::Object(handle) => (0, u64::from(*handle)),
                // Another process has other descriptors.
                Value::Fd(_) => (0, passed.data),
                Value::Constant(value) | Value::Number64(value) => (8, *value),
                Value::Number32(value) => (4, u64::from(*value)),
                Value::In(bytes) => {
                    self.compare_input(attribute.id, bytes, &place);
                    (bytes.len(), passed.data)
                }
                Value::Out(room) => (room.len(), passed.data),
            };
            assert_eq!((len, data), (passed.len, passed.data), "{place}");
        }
    }

    pub(super) fn compare_input(&self, id: u16, bytes: &[u8], place: &str) {
        let (mut ours, mut theirs) = (bytes.to_vec(), self.input(id));
        assert_eq!(ours.len(), theirs.len(), "{place}");
        if id == 0 {
            for (start, end) in self.masked() {
                ours[*start..*end].fill(0);
                theirs[*start..*end].fill(0);
            }
        }
        assert_eq!(ours, theirs, "{place}");
    }

    /// Gives the recorded answer.
    pub(super) fn answer(&self, ours: &mut Ioctl<'_, '_>) -> io::Result<()> {
        if self.errno != 0 {
            return Err(errno(self.errno));
        }
        for (id, after) in &self.after {
            match after {
                After::Bytes(bytes) if self.attribute(*id).is_some_and(|a| a.flags != 0) => {
                    let room = |a: &Attribute<'_>| a.id == *id && matches!(a.value, Value::Out(_));
                    if ours.attributes.iter().any(room) {
                        answer(ours, *id, bytes);
                    }
                }
                After::Data(number) if *id == 0 => {
                    let made = |a: &Attribute<'_>| a.id == 0 && matches!(a.value, Value::New(_));
                    if ours.attributes.iter().any(made) {
                        answer(ours, 0, &(*number as u32).to_ne_bytes());
                    }
                }
                _ => {}
            }
        }
        if self.command() == Some(command::CREATE_COMP_CHANNEL) {
            answer(ours, 1, &new_fd().to_ne_bytes());
        }
        Ok(())
    }

    /// A context whose kernel knows this one command; how often it was asked.
    pub(super) fn kernel(&self) -> (Uverbs, Arc<Mutex<u32>>) {
        let asked = Arc::new(Mutex::new(0));
        let (record, count) = (self.clone(), Arc::clone(&asked));
        let kernel = FakeKernel {
            ioctl: Box::new(move |ours| {
                let number = invoked(ours).map(|(number, _)| number);
                if ours.method != record.method || number != record.command() {
                    return Err(errno(libc::EOPNOTSUPP));
                }
                *count.lock().unwrap() += 1;
                record.compare(ours);
                record.answer(ours)
            }),
            ..FakeKernel::default()
        };
        let uverbs = Uverbs::open(Box::new(kernel), self.driver, &mut []).unwrap();
        (uverbs, asked)
    }
}
