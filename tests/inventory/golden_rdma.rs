//! Recorded screens of iproute2's `rdma`. What each screen says is put into a
//! kernel, which our `rdma` is then asked about: it has to print the screen.

use std::collections::{BTreeMap, HashMap};

use ironverbs::inventory::{Report, System, rdma};
use verbs_sys::nldev::Command;
use verbs_sys::nldev::attribute::*;

use crate::host::Host;
use crate::netlink::{Answer, Kernel, Node, Question};
use crate::record::{Record, records};
use crate::state::{Fields, field, objects};

#[test]
fn golden_rdma_screens_are_printed_again() {
    let records = records("rdma");
    let known = known_devices(&records);
    let mut hosts = Hosts::default();
    for record in &records {
        let report = run(record, &known, &mut hosts);
        assert_eq!(report.stdout, record.stdout, "{} stdout", record.file);
        assert_eq!(report.stderr, record.stderr, "{} stderr", record.file);
        assert_eq!(report.code, record.code, "{} exit code", record.file);
    }
}

/// A device of the kernel.
#[derive(Debug, Clone, Default)]
struct Device {
    index: u32,
    fields: Fields,
}

type Devices = BTreeMap<String, Device>;

/// The devices of the first list of all, which are there in every record.
fn known_devices(records: &[Record]) -> Devices {
    let mut devices = Devices::new();
    let first = records.iter().find(|record| record.command() == ["dev"]);
    if let Some(first) = first {
        add_devices(&mut devices, &objects(&first.stdout));
        assert!(!devices.is_empty(), "{}", first.file);
    }
    devices
}

fn add_devices(devices: &mut Devices, objects: &[Fields]) {
    for fields in objects {
        let Some(name) = field(fields, "ifname") else {
            continue;
        };
        let next = devices.values().map(|device| device.index + 1).max();
        let next = devices
            .get(name)
            .map_or(next.unwrap_or(0), |known| known.index);
        let index = field(fields, "ifindex").map_or(next, |index| index.parse().unwrap());
        let fields = fields.clone();
        devices.insert(name.to_owned(), Device { index, fields });
    }
}

/// Hosts by their devices: names, and which of them are RNICs.
#[derive(Default)]
struct Hosts(HashMap<Vec<(String, bool)>, Host>);

impl Hosts {
    fn with(&mut self, devices: &Devices) -> &Host {
        let names = devices.iter().map(|(name, device)| {
            let is_rnic = field(&device.fields, "node_type") == Some("rnic");
            (name.clone(), is_rnic)
        });
        let names: Vec<(String, bool)> = names.collect();
        self.0.entry(names.clone()).or_insert_with(|| {
            let host = Host::new();
            for (index, (name, is_rnic)) in names.iter().enumerate() {
                let node_type = if *is_rnic { "4: RNIC" } else { "1: CA" };
                host.add_device(index, name, 1, node_type);
            }
            host
        })
    }
}

fn run(record: &Record, known: &Devices, hosts: &mut Hosts) -> Report {
    let command = record.command();
    let shown = match record.stdout.starts_with("Usage: ") {
        true => Vec::new(),
        false => objects(&record.stdout),
    };
    let mut devices = known.clone();
    match command.as_slice() {
        ["dev", ..] => add_devices(&mut devices, &shown),
        // What the record removes or renames without an error is there.
        ["link", "del", name] if record.code == 0 => {
            devices.insert(
                (*name).to_owned(),
                Device {
                    index: 99,
                    ..Device::default()
                },
            );
        }
        _ => {
            let unknown = shown.iter().filter(|fields| {
                field(fields, "ifname").is_some_and(|name| !devices.contains_key(name))
            });
            let unknown: Vec<Fields> = unknown.cloned().collect();
            add_devices(&mut devices, &unknown);
        }
    }
    if let ["dev", "set", name, ..] = command.as_slice()
        && record.code == 0
    {
        devices.insert(
            (*name).to_owned(),
            Device {
                index: 99,
                ..Device::default()
            },
        );
    }
    let host = hosts.with(&devices);
    for fields in &shown {
        if let (Some(pid), Some(comm)) = (field(fields, "pid"), field(fields, "comm")) {
            host.add_process(pid.parse().unwrap(), comm);
        }
    }
    let answers = Answers {
        devices,
        shown,
        command: command.iter().map(|word| (*word).to_owned()).collect(),
        refusal: refusal(record),
    };
    let kernel = Kernel::new(move |question| answers.to(question));
    let system = System {
        sysfs: host.sysfs(),
        proc: host.proc(),
        netlink: Box::new(move || Ok(Box::new(kernel.clone()))),
        open: Box::new(|_| unreachable!("rdma opens no device")),
        userspace: Ok(Vec::new()),
    };
    rdma(record.program(), record.arguments(), &system)
}

/// The error that the kernel gave.
fn refusal(record: &Record) -> Option<(i32, Option<String>)> {
    let text = record
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("error: "))?;
    let errno = (1..200).find(|errno| {
        let error = std::io::Error::from_raw_os_error(*errno).to_string();
        error == format!("{text} (os error {errno})")
    });
    let extended = record
        .stderr
        .lines()
        .find_map(|line| line.strip_prefix("Error: "));
    Some((errno.unwrap(), extended.map(str::to_owned)))
}

/// What a kernel answers that is as a record shows it.
struct Answers {
    devices: Devices,
    shown: Vec<Fields>,
    command: Vec<String>,
    refusal: Option<(i32, Option<String>)>,
}

impl Answers {
    fn to(&self, question: Question) -> Answer {
        let name = self
            .devices
            .iter()
            .find(|(_, d)| Some(d.index) == question.device);
        let name = name.map_or("", |(name, _)| name.as_str());
        if question.is(Command::Get) {
            return self.get(question);
        }
        if question.is(Command::PortGet) {
            let ports = self.shown_of(name).map(|fields| port(question, fields));
            return self.one_or_refuse(ports.collect());
        }
        if question.is(Command::SysGet) {
            return Answer::Objects(self.shown.iter().map(system).collect());
        }
        if question.is(Command::ResGet) {
            let counts = self
                .shown_of(name)
                .map(|fields| summary(question, name, fields));
            return self.one_or_refuse(counts.collect());
        }
        if question.is(Command::StatGet) && !question.of_resource {
            let counters = self
                .shown_of(name)
                .map(|fields| counters(question, name, fields));
            return self.one_or_refuse(counters.collect());
        }
        if question.is(Command::StatGet) {
            return Answer::Objects(vec![]);
        }
        let is_change = [
            Command::Set,
            Command::NewLink,
            Command::DelLink,
            Command::SysSet,
        ];
        if is_change.into_iter().any(|command| question.is(command)) {
            return match &self.refusal {
                Some((errno, text)) => Answer::Refusal(*errno, text.clone()),
                None => Answer::Objects(vec![]),
            };
        }
        self.table(question, name)
    }

    fn shown_of<'a>(&'a self, name: &'a str) -> impl Iterator<Item = &'a Fields> {
        let shown = self.shown.iter();
        shown.filter(move |fields| field(fields, "ifname") == Some(name))
    }

    fn one_or_refuse(&self, objects: Vec<Vec<Node>>) -> Answer {
        match (&self.refusal, objects.is_empty()) {
            (Some((errno, text)), true) => Answer::Refusal(*errno, text.clone()),
            _ => Answer::Objects(objects),
        }
    }

    /// Devices, in the order of their indexes.
    fn get(&self, question: Question) -> Answer {
        let mut devices: Vec<_> = self.devices.iter().collect();
        devices.sort_by_key(|(_, device)| device.index);
        devices.retain(|(_, d)| question.device.is_none_or(|index| index == d.index));
        let objects = devices.iter().map(|(name, device)| {
            let mut nodes = vec![
                Node::u32(DEV_INDEX, device.index),
                Node::text(DEV_NAME, name),
                Node::u32(PORT_INDEX, 1),
            ];
            for (key, value) in &device.fields {
                nodes.extend(match key.as_str() {
                    "node_type" => Some(Node::u8(DEV_NODE_TYPE, position(NODE_TYPES, value))),
                    "fw" => Some(Node::text(FW_VERSION, value)),
                    "node_guid" => Some(Node::u64(NODE_GUID, guid(value))),
                    "sys_image_guid" => Some(Node::u64(SYS_IMAGE_GUID, guid(value))),
                    "adaptive-moderation" => Some(Node::u8(DEV_DIM, (value == "on").into())),
                    "caps" => Some(Node::u64(CAP_FLAGS, capabilities(value))),
                    _ => None,
                });
            }
            nodes
        });
        Answer::Objects(objects.collect())
    }

    /// A table of objects, as far as the record shows them.
    fn table(&self, question: Question, name: &str) -> Answer {
        let word = self.command.get(2).map_or("", String::as_str);
        let (list, entry) = match word {
            "qp" => (RES_QP, RES_QP_ENTRY),
            "cm_id" => (RES_CM_ID, RES_CM_ID_ENTRY),
            "cq" => (RES_CQ, RES_CQ_ENTRY),
            "mr" => (RES_MR, RES_MR_ENTRY),
            "pd" => (RES_PD, RES_PD_ENTRY),
            "ctx" => (RES_CTX, RES_CTX_ENTRY),
            "srq" => (RES_SRQ, RES_SRQ_ENTRY),
            other => panic!("no table {other}"),
        };
        let rows = self
            .shown_of(name)
            .map(|fields| Node::nested(entry, row(fields)));
        let device = question.device.unwrap();
        Answer::Objects(vec![vec![
            Node::u32(DEV_INDEX, device),
            Node::text(DEV_NAME, name),
            Node::nested(list, rows.collect()),
        ]])
    }
}

fn port(question: Question, fields: &Fields) -> Vec<Node> {
    let mut nodes = vec![
        Node::u32(DEV_INDEX, question.device.unwrap()),
        Node::text(DEV_NAME, field(fields, "ifname").unwrap()),
        Node::u32(PORT_INDEX, question.port.unwrap()),
    ];
    for (key, value) in fields {
        match key.as_str() {
            "state" => nodes.push(Node::u8(PORT_STATE, position(PORT_STATES, value))),
            "physical_state" => {
                nodes.push(Node::u8(PORT_PHYS_STATE, position(PHYSICAL_STATES, value)));
            }
            "netdev" => {
                nodes.push(Node::text(NDEV_NAME, value));
                let index = field(fields, "netdev_index").unwrap_or("7");
                nodes.push(Node::u32(NDEV_INDEX, index.parse().unwrap()));
            }
            "lid" => nodes.push(Node::u32(LID, value.parse().unwrap())),
            "sm_lid" => nodes.push(Node::u32(SM_LID, value.parse().unwrap())),
            "lmc" => nodes.push(Node::u8(LMC, value.parse().unwrap())),
            "subnet_prefix" => nodes.push(Node::u64(SUBNET_PREFIX, guid(value))),
            _ => {}
        }
    }
    nodes
}

fn system(fields: &Fields) -> Vec<Node> {
    let mode = position(&["exclusive", "shared"], field(fields, "netns").unwrap());
    let copied = field(fields, "copy-on-fork") == Some("on");
    vec![
        Node::u8(SYS_NETNS_MODE, mode),
        Node::u8(SYS_COPY_ON_FORK, copied.into()),
    ]
}

fn summary(question: Question, name: &str, fields: &Fields) -> Vec<Node> {
    let counts = fields.iter().filter(|(key, _)| !key.starts_with("if"));
    let entries = counts.map(|(key, value)| {
        Node::nested(
            RES_SUMMARY_ENTRY,
            vec![
                Node::text(RES_SUMMARY_ENTRY_NAME, key),
                Node::u64(RES_SUMMARY_ENTRY_CURR, value.parse().unwrap()),
            ],
        )
    });
    vec![
        Node::u32(DEV_INDEX, question.device.unwrap()),
        Node::text(DEV_NAME, name),
        Node::nested(RES_SUMMARY, entries.collect()),
    ]
}

fn counters(question: Question, name: &str, fields: &Fields) -> Vec<Node> {
    let values = fields
        .iter()
        .filter(|(key, _)| key != "ifname" && key != "port");
    let entries = values.map(|(key, value)| {
        Node::nested(
            STAT_HWCOUNTER_ENTRY,
            vec![
                Node::text(STAT_HWCOUNTER_ENTRY_NAME, key),
                Node::u64(STAT_HWCOUNTER_ENTRY_VALUE, value.parse().unwrap()),
            ],
        )
    });
    vec![
        Node::u32(DEV_INDEX, question.device.unwrap()),
        Node::text(DEV_NAME, name),
        Node::u32(PORT_INDEX, question.port.unwrap()),
        Node::nested(STAT_HWCOUNTERS, entries.collect()),
    ]
}

/// An object of a table.
fn row(fields: &Fields) -> Vec<Node> {
    let number = |value: &str| match value.strip_prefix("0x") {
        Some(digits) => u32::from_str_radix(digits, 16).unwrap(),
        None => value.parse().unwrap(),
    };
    let hexadecimal =
        |value: &str| u32::from_str_radix(value.trim_start_matches("0x"), 16).unwrap();
    let mut nodes = Vec::new();
    for (key, value) in fields {
        nodes.extend(Some(match key.as_str() {
            "port" => Node::u32(PORT_INDEX, number(value)),
            "lqpn" => Node::u32(RES_LQPN, number(value)),
            "rqpn" => Node::u32(RES_RQPN, number(value)),
            "type" | "qp-type" => Node::u8(RES_TYPE, position(QP_TYPES, value)),
            "state" => Node::u8(RES_STATE, position(QP_STATES, value)),
            "rq-psn" => Node::u32(RES_RQ_PSN, number(value)),
            "sq-psn" => Node::u32(RES_SQ_PSN, number(value)),
            "path-mig-state" => {
                let state = position(&["MIGRATED", "REARM", "ARMED"], value);
                Node::u8(RES_PATH_MIG_STATE, state)
            }
            "pdn" => Node::u32(RES_PDN, number(value)),
            "cqn" => Node::u32(RES_CQN, number(value)),
            "mrn" => Node::u32(RES_MRN, number(value)),
            "ctxn" => Node::u32(RES_CTXN, number(value)),
            "srqn" => Node::u32(RES_SRQN, number(value)),
            "cqe" => Node::u32(RES_CQE, number(value)),
            "users" => Node::u64(RES_USECNT, number(value).into()),
            "mrlen" => Node::u64(RES_MRLEN, value.parse().unwrap()),
            "rkey" => Node::u32(RES_RKEY, hexadecimal(value)),
            "lkey" => Node::u32(RES_LKEY, hexadecimal(value)),
            "local_dma_lkey" => Node::u32(RES_LOCAL_DMA_LKEY, hexadecimal(value)),
            "poll-ctx" => {
                let contexts = ["DIRECT", "SOFTIRQ", "WORKQUEUE", "UNBOUND_WORKQUEUE"];
                Node::u8(RES_POLL_CTX, position(&contexts, value))
            }
            "adaptive-moderation" => Node::u8(DEV_DIM, (value == "on").into()),
            "pid" => Node::u32(RES_PID, number(value)),
            "comm" if field(fields, "pid").is_none() => {
                Node::text(RES_KERN_NAME, value.trim_matches(['[', ']']))
            }
            _ => continue,
        }));
    }
    nodes
}

fn position(words: &[&str], word: &str) -> u8 {
    let found = words.iter().position(|known| *known == word);
    found.unwrap_or_else(|| panic!("no {word} in {words:?}")) as u8
}

fn guid(groups: &str) -> u64 {
    u64::from_str_radix(&groups.replace(':', ""), 16).unwrap()
}

fn capabilities(names: &str) -> u64 {
    names
        .split(',')
        .map(|name| {
            let known = CAPABILITIES.iter().find(|(_, known)| *known == name);
            1 << known.unwrap_or_else(|| panic!("no capability {name}")).0
        })
        .sum()
}

const NODE_TYPES: &[&str] = &["unknown", "ca", "switch", "router", "rnic"];
const PORT_STATES: &[&str] = &["NOP", "DOWN", "INIT", "ARMED", "ACTIVE"];
const PHYSICAL_STATES: &[&str] = &["NOP", "SLEEP", "POLLING", "DISABLED", "ARMED", "LINK_UP"];
const QP_TYPES: &[&str] = &["SMI", "GSI", "RC", "UC", "UD"];
const QP_STATES: &[&str] = &["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];
/// By bit, from `enum ib_device_cap_flags` of the kernel.
const CAPABILITIES: &[(u32, &str)] = &[
    (1, "BAD_PKEY_CNTR"),
    (2, "BAD_QKEY_CNTR"),
    (4, "AUTO_PATH_MIG"),
    (5, "CHANGE_PHY_PORT"),
    (6, "UD_AV_PORT_ENFORCE_PORT_ENFORCE"),
    (10, "PORT_ACTIVE_EVENT"),
    (11, "SYS_IMAGE_GUID"),
    (12, "RC_RNR_NAK_GEN"),
    (13, "SRQ_RESIZE"),
    (17, "MEM_WINDOW"),
    (21, "MEM_MGT_EXTENSIONS"),
    (24, "MEM_WINDOW_TYPE_2B"),
];
