//! A kernel at the other end of `NETLINK_RDMA`, which answers from tables.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::io;
use std::rc::Rc;

use verbs_sys::nldev::attribute::{Attribute, DEV_INDEX, PORT_INDEX, STAT_RES};
use verbs_sys::nldev::parse::Attributes;
use verbs_sys::nldev::{Command, Transport};

/// What an attribute holds.
#[derive(Debug, Clone)]
pub(crate) enum Payload {
    Bytes(Vec<u8>),
    Nested(Vec<Node>),
}

/// An attribute of an answer.
#[derive(Debug, Clone)]
pub(crate) struct Node(pub(crate) Attribute, pub(crate) Payload);

impl Node {
    pub(crate) fn u8(attribute: Attribute, value: u8) -> Self {
        Self(attribute, Payload::Bytes(vec![value]))
    }

    pub(crate) fn u32(attribute: Attribute, value: u32) -> Self {
        Self(attribute, Payload::Bytes(value.to_ne_bytes().to_vec()))
    }

    pub(crate) fn u64(attribute: Attribute, value: u64) -> Self {
        Self(attribute, Payload::Bytes(value.to_ne_bytes().to_vec()))
    }

    pub(crate) fn text(attribute: Attribute, value: &str) -> Self {
        Self(
            attribute,
            Payload::Bytes([value.as_bytes(), b"\0"].concat()),
        )
    }

    pub(crate) fn nested(attribute: Attribute, nodes: Vec<Self>) -> Self {
        Self(attribute, Payload::Nested(nodes))
    }
}

/// What a request is answered with.
#[derive(Debug, Clone)]
pub(crate) enum Answer {
    /// Objects, then the end.
    Objects(Vec<Vec<Node>>),
    /// An error number and a text.
    Refusal(i32, Option<String>),
    /// Just these bytes, behind a header when it is true.
    Bytes(Vec<u8>, bool),
}

/// What a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Question {
    /// `enum rdma_nldev_command`.
    pub(crate) command: u16,
    pub(crate) device: Option<u32>,
    pub(crate) port: Option<u32>,
    /// Counters of something else than a port.
    pub(crate) of_resource: bool,
}

type Rule = dyn Fn(Question) -> Answer;

/// A kernel.
#[derive(Clone)]
pub(crate) struct Kernel {
    rule: Rc<Rule>,
    waiting: Rc<RefCell<VecDeque<Vec<u8>>>>,
}

impl Kernel {
    pub(crate) fn new(rule: impl Fn(Question) -> Answer + 'static) -> Self {
        Self {
            rule: Rc::new(rule),
            waiting: Rc::default(),
        }
    }
}

impl Question {
    pub(crate) fn is(self, command: Command) -> bool {
        self.command == command as u16
    }

    fn read(request: &[u8]) -> Self {
        let kind = u16::from_ne_bytes([request[4], request[5]]);
        let attributes = Attributes::parse(&request[16..]).unwrap();
        Self {
            command: kind & 0x3ff,
            device: attributes.u32(DEV_INDEX).unwrap(),
            port: attributes.u32(PORT_INDEX).unwrap(),
            of_resource: attributes.bytes(STAT_RES).is_some(),
        }
    }
}

impl Transport for Kernel {
    fn send(&mut self, request: &[u8]) -> io::Result<()> {
        let sequence = u32::from_ne_bytes(request[8..12].try_into().unwrap());
        let question = Question::read(request);
        let is_dump = request[7] & 3 == 3;
        let mut datagram = Vec::new();
        match (self.rule)(question) {
            Answer::Objects(objects) => {
                for nodes in objects {
                    let payload = encode(&nodes);
                    datagram.extend(message(5 << 10 | question.command, 2, sequence, &payload));
                }
                let ending = if is_dump { 3 } else { 2 };
                datagram.extend(message(ending, 0, sequence, &[0; 20]));
            }
            Answer::Refusal(errno, text) => {
                let mut payload = (-errno).to_ne_bytes().to_vec();
                payload.extend(&request[..16]);
                let flags = if text.is_some() { 0x300 } else { 0x100 };
                if let Some(text) = text {
                    let attribute = Attribute {
                        number: 1,
                        name: "text",
                    };
                    payload.extend(encode(&[Node::text(attribute, &text)]));
                }
                datagram.extend(message(2, flags, sequence, &payload));
            }
            Answer::Bytes(bytes, true) => {
                datagram.extend(message(5 << 10 | question.command, 2, sequence, &bytes));
            }
            Answer::Bytes(bytes, false) => datagram = bytes,
        }
        self.waiting.borrow_mut().push_back(datagram);
        Ok(())
    }

    fn receive(&mut self) -> io::Result<Vec<u8>> {
        let silent = || io::Error::from_raw_os_error(nix::libc::EAGAIN);
        self.waiting.borrow_mut().pop_front().ok_or_else(silent)
    }
}

fn message(kind: u16, flags: u16, sequence: u32, payload: &[u8]) -> Vec<u8> {
    let mut bytes = (16 + payload.len() as u32).to_ne_bytes().to_vec();
    bytes.extend(kind.to_ne_bytes());
    bytes.extend(flags.to_ne_bytes());
    bytes.extend(sequence.to_ne_bytes());
    bytes.extend([0; 4]);
    bytes.extend(payload);
    bytes.resize(bytes.len().next_multiple_of(4), 0);
    bytes
}

pub(crate) fn encode(nodes: &[Node]) -> Vec<u8> {
    let mut bytes = Vec::new();
    for Node(attribute, payload) in nodes {
        let payload = match payload {
            Payload::Bytes(payload) => payload.clone(),
            Payload::Nested(nodes) => encode(nodes),
        };
        bytes.extend((payload.len() as u16 + 4).to_ne_bytes());
        bytes.extend(attribute.number.to_ne_bytes());
        bytes.extend(payload);
        bytes.resize(bytes.len().next_multiple_of(4), 0);
    }
    bytes
}
