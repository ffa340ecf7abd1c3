//! `rdma dev`: devices.

use std::fs::File;
use std::os::fd::AsFd;

use verbs_sys::nldev::DeviceInfo;

use super::super::UserspaceDevice;
use super::super::document::Document;
use super::super::words::{flags, guid, word};
use super::session::{Place, Session, Verb};
use super::{Step, help};

/// Where iproute2 keeps network namespaces.
const NAMESPACES: &str = "/var/run/netns";

pub(super) fn command(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("show", show),
        Verb("list", show),
        Verb("set", set),
        Verb("help", help::dev),
    ];
    session.dispatch(show, VERBS, "dev command")
}

fn show(session: &mut Session<'_>) -> Step {
    if !session.words.is_empty() {
        return show_devices(session);
    }
    session.for_all_and_userspace(show_devices, userspace)
}

fn show_devices(session: &mut Session<'_>) -> Step {
    session.for_devices(show_one)
}

fn show_one(session: &mut Session<'_>, place: &Place) -> Step {
    if let Some(word) = session.words.front() {
        return session.unknown_parameter(&word.clone());
    }
    let device = session.ask(|nldev| nldev.device(place.device))?;
    let details = session.options.details;
    print(&mut session.document, &device, details);
    Ok(())
}

fn print(document: &mut Document, device: &DeviceInfo, details: bool) {
    document.open_object();
    let (index, name) = (device.index, &device.name);
    document.number("ifindex", index, format_args!("{index}: "));
    document.string("ifname", name, format_args!("{name}: "));
    if let Some(kind) = device.node_type {
        document.named_word("node_type", word(NODE_TYPES, kind, "unknown"));
    }
    if let Some(version) = &device.fw_version {
        document.string("fw", version, format_args!("fw {version} "));
    }
    for (key, value) in [
        ("node_guid", device.node_guid),
        ("sys_image_guid", device.sys_image_guid),
    ] {
        if let Some(value) = value {
            document.named_word(key, &guid(value));
        }
    }
    if details {
        adaptive_moderation(document, device.adaptive_moderation);
        if let Some(caps) = device.cap_flags {
            let names = flags(CAPABILITIES, caps, "UNKNOWN");
            document.strings("caps", names, ["\n    caps: <", ", ", ">"]);
        }
    }
    document.close_object();
}

/// Prints a setting that is on or off, and nothing for other numbers.
pub(super) fn adaptive_moderation(document: &mut Document, setting: Option<u8>) {
    let setting = match setting {
        Some(0) => false,
        Some(1) => true,
        _ => return,
    };
    let text = if setting { "on" } else { "off" };
    document.on_off(
        "adaptive-moderation",
        setting,
        format_args!("adaptive-moderation {text} "),
    );
}

fn userspace(document: &mut Document, device: &UserspaceDevice) {
    let name = device.device.name();
    let value = guid(device.device.node_guid());
    document.open_object();
    document.string("ifname", name, format_args!("-: {name}: "));
    document.named_word("node_type", "ca");
    document.named_word("node_guid", &value);
    document.named_word("sys_image_guid", &value);
    document.on_off("userspace", true, format_args!("(userspace)"));
    document.close_object();
}

fn set(session: &mut Session<'_>) -> Step {
    session.for_named_device(set_one)
}

fn set_one(session: &mut Session<'_>, place: &Place) -> Step {
    let Some(what) = session.words.front().cloned() else {
        return help::dev(session);
    };
    let is = |name: &str| name.starts_with(&what);
    if is("name") {
        session.take();
        set_name(session, place)
    } else if is("netns") {
        session.take();
        set_netns(session, place)
    } else if is("adaptive-moderation") {
        session.take();
        set_adaptive_moderation(session, place)
    } else {
        session.unknown_parameter(&what)
    }
}

fn set_name(session: &mut Session<'_>, place: &Place) -> Step {
    let Some(name) = session.take() else {
        return session.refuse("Please provide device new name.");
    };
    session.ask(|nldev| nldev.rename(place.device, &name))
}

fn set_netns(session: &mut Session<'_>, place: &Place) -> Step {
    let Some(name) = session.take() else {
        return session.refuse("Please provide device name.");
    };
    match File::open(format!("{NAMESPACES}/{name}")) {
        Ok(namespace) => session.ask(|nldev| nldev.move_to_netns(place.device, namespace.as_fd())),
        Err(error) => {
            let reason = super::session::strerror(error.raw_os_error().unwrap_or(libc::EIO));
            session.refuse(&format!(
                "Cannot open network namespace \"{name}\": {reason}"
            ))
        }
    }
}

fn set_adaptive_moderation(session: &mut Session<'_>, place: &Place) -> Step {
    let Some(setting) = session.take() else {
        return help::dev(session);
    };
    let on = match setting.as_str() {
        setting if "on".starts_with(setting) => true,
        setting if "off".starts_with(setting) => false,
        other => return session.unknown_parameter(other),
    };
    session.ask(|nldev| nldev.set_adaptive_moderation(place.device, on))
}

/// `enum rdma_node_type`.
const NODE_TYPES: &[&str] = &[
    "unknown",
    "ca",
    "switch",
    "router",
    "rnic",
    "usnic",
    "usnic_udp",
    "unspecified",
];

/// `enum ib_device_cap_flags` by bit, as iproute2 names them.
const CAPABILITIES: &[(u32, &str)] = &[
    (0, "RESIZE_MAX_WR"),
    (1, "BAD_PKEY_CNTR"),
    (2, "BAD_QKEY_CNTR"),
    (3, "RAW_MULTI"),
    (4, "AUTO_PATH_MIG"),
    (5, "CHANGE_PHY_PORT"),
    (6, "UD_AV_PORT_ENFORCE_PORT_ENFORCE"),
    (7, "CURR_QP_STATE_MOD"),
    (8, "SHUTDOWN_PORT"),
    (9, "INIT_TYPE"),
    (10, "PORT_ACTIVE_EVENT"),
    (11, "SYS_IMAGE_GUID"),
    (12, "RC_RNR_NAK_GEN"),
    (13, "SRQ_RESIZE"),
    (14, "N_NOTIFY_CQ"),
    (15, "LOCAL_DMA_LKEY"),
    (17, "MEM_WINDOW"),
    (18, "UD_IP_CSUM"),
    (19, "UD_TSO"),
    (20, "XRC"),
    (21, "MEM_MGT_EXTENSIONS"),
    (22, "BLOCK_MULTICAST_LOOPBACK"),
    (23, "MEM_WINDOW_TYPE_2A"),
    (24, "MEM_WINDOW_TYPE_2B"),
    (25, "RC_IP_CSUM"),
    (26, "RAW_IP_CSUM"),
    (27, "CROSS_CHANNEL"),
    (29, "MANAGED_FLOW_STEERING"),
    (30, "SIGNATURE_HANDOVER"),
    (31, "ON_DEMAND_PAGING"),
    (32, "SG_GAPS_REG"),
    (33, "VIRTUAL_FUNCTION"),
    (34, "RAW_SCATTER_FCS"),
    (35, "RDMA_NETDEV_OPA_VNIC"),
    (36, "PCI_WRITE_END_PADDING"),
];
