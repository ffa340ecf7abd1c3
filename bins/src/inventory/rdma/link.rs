//! `rdma link`: ports, and software devices made and removed.

use verbs_sys::nldev::PortInfo;

use super::super::UserspaceDevice;
use super::super::document::Document;
use super::super::words::{flags, guid, word};
use super::session::{Place, Session, Verb};
use super::{Step, help};

pub(super) fn command(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("add", add),
        Verb("delete", delete),
        Verb("show", show),
        Verb("list", show),
        Verb("help", help::link),
    ];
    session.dispatch(show, VERBS, "link command")
}

fn show(session: &mut Session<'_>) -> Step {
    if !session.words.is_empty() {
        return show_ports(session);
    }
    session.for_all_and_userspace(show_ports, userspace)
}

fn show_ports(session: &mut Session<'_>) -> Step {
    session.for_ports(true, show_one)
}

fn show_one(session: &mut Session<'_>, place: &Place) -> Step {
    if let Some(word) = session.words.front() {
        return session.unknown_parameter(&word.clone());
    }
    let port = session.ask(|nldev| nldev.port(place.device, place.port))?;
    let Some(number) = port.port else {
        return session.refuse("This tool doesn't support switches yet");
    };
    let details = session.options.details;
    print(&mut session.document, &port, number, details);
    Ok(())
}

fn print(document: &mut Document, port: &PortInfo, number: u32, details: bool) {
    document.open_object();
    document.json_number("ifindex", port.device);
    document.string("ifname", &port.name, format_args!("link {}/", port.name));
    document.number("port", number, format_args!("{number} "));
    if let Some(prefix) = port.subnet_prefix {
        document.named_word("subnet_prefix", &guid(prefix));
    }
    document.named_number("lid", port.lid);
    document.named_number("sm_lid", port.sm_lid);
    document.named_number("lmc", port.lmc);
    if let Some(state) = port.state {
        document.named_word("state", word(STATES, state, "UNKNOWN"));
    }
    if let Some(state) = port.phys_state {
        document.named_word("physical_state", word(PHYSICAL_STATES, state, "UNKNOWN"));
    }
    if let (Some(name), Some(index)) = (&port.netdev, port.netdev_index) {
        netdev(document, name, index, details);
    }
    if let Some(caps) = port.cap_flags.filter(|_| details) {
        let names = flags(CAPABILITIES, caps, "UNKNOWN");
        document.strings("caps", names, ["\n    caps: <", ", ", ">"]);
    }
    document.close_object();
}

fn netdev(document: &mut Document, name: &str, index: u32, details: bool) {
    document.named_word("netdev", name);
    if details {
        document.named_number("netdev_index", Some(index));
    } else {
        document.json_number("netdev_index", index);
    }
}

fn userspace(document: &mut Document, device: &UserspaceDevice) {
    let name = device.device.name();
    let (state, physical) = match device.running {
        true => ("ACTIVE", "LINK_UP"),
        false => ("DOWN", "DISABLED"),
    };
    document.open_object();
    document.string("ifname", name, format_args!("link {name}/"));
    document.number("port", 1, format_args!("1 "));
    document.named_word("state", state);
    document.named_word("physical_state", physical);
    netdev(document, &device.netdev, device.netdev_index, false);
    document.on_off("userspace", true, format_args!("(userspace)"));
    document.close_object();
}

/// `link add NAME type TYPE netdev NETDEV`.
fn add(session: &mut Session<'_>) -> Step {
    let Some(name) = session.take() else {
        return session.refuse("Please provide a link name to add.");
    };
    match session.take() {
        None => return help::link(session),
        Some(word) if "type".starts_with(&word) => {}
        Some(word) => return session.unknown_parameter(&word),
    }
    let Some(kind) = session.take() else {
        return session.refuse("Please provide a link type name.");
    };
    match session.take() {
        None => return help::link(session),
        Some(word) if "netdev".starts_with(&word) => {}
        Some(word) => return session.unknown_parameter(&word),
    }
    let Some(netdev) = session.take() else {
        return session.refuse("Please provide a net device name.");
    };
    session.ask(|nldev| nldev.add_link(&name, &kind, &netdev))
}

fn delete(session: &mut Session<'_>) -> Step {
    session.for_named_device(|session, place| {
        if let Some(word) = session.words.front().cloned() {
            return session.refuse(&format!("Unknown parameter {word}"));
        }
        session.ask(|nldev| nldev.delete_link(place.device))
    })
}

/// `enum ib_port_state`.
const STATES: &[&str] = &["NOP", "DOWN", "INIT", "ARMED", "ACTIVE", "ACTIVE_DEFER"];

/// `enum ib_port_phys_state`.
const PHYSICAL_STATES: &[&str] = &[
    "NOP",
    "SLEEP",
    "POLLING",
    "DISABLED",
    "ARMED",
    "LINK_UP",
    "LINK_ERROR_RECOVER",
    "PHY_TEST",
    "UNKNOWN",
    "OPA_OFFLINE",
    "UNKNOWN",
    "OPA_TEST",
];

/// `enum ib_port_capability_mask_bits` by bit, with iproute2's spelling.
const CAPABILITIES: &[(u32, &str)] = &[
    (0, "RESERVED"),
    (1, "SM"),
    (2, "NOTICE"),
    (3, "TRAP"),
    (4, "OPT_IPD"),
    (5, "AUTO_MIGR"),
    (6, "SL_MAP"),
    (7, "MKEY_NVRAM"),
    (8, "PKEY_NVRAM"),
    (9, "LED_INFO"),
    (10, "SM_DISABLED"),
    (11, "SYS_IMAGE_GUID"),
    (12, "PKEY_SW_EXT_PORT_TRAP"),
    (13, "CABLE_INFO"),
    (14, "EXTENDED_SPEEDS"),
    (15, "CAP_MASK2"),
    (16, "CM"),
    (17, "SNMP_TUNNEL"),
    (18, "REINIT"),
    (19, "DEVICE_MGMT"),
    (20, "VENDOR_CLASS"),
    (21, "DR_NOTICE"),
    (22, "CAP_MASK_NOTICE"),
    (23, "BOOT_MGMT"),
    (24, "LINK_LATENCY"),
    (25, "CLIENT_REG"),
    (26, "OTHER_LOCAL_CHANGES"),
    (27, "LINK_SPPED_WIDTH"),
    (28, "VENDOR_SPECIFIC_MADS"),
    (29, "MULT_PKER_TRAP"),
    (30, "MULT_FDB"),
    (31, "HIERARCHY_INFO"),
    (32, "SET_NODE_DESC"),
    (33, "EXT_INFO"),
    (34, "VIRT"),
    (35, "SWITCH_POR_STATE_TABLE"),
    (36, "LINK_WIDTH_2X"),
    (37, "LINK_SPEED_HDR"),
];
