//! The line of an object.

use verbs_sys::nldev::{DriverField, DriverValue, Object, QpRange, Table};

use super::super::super::document::Document;
use super::super::super::words::word;
use super::super::dev::adaptive_moderation;
use super::super::filter::Filters;
use super::super::session::{Place, Session};
use super::tables::Kind;

/// Width of a line after which the values of a driver go to the next one.
const LINE_OF_DRIVER: usize = 80;

pub(super) fn qp(session: &mut Session<'_>, place: &Place, object: &Object) {
    let document = &mut session.document;
    document.open_object();
    link(document, place, object.port);
    document.named_number("lqpn", object.lqpn);
    document.named_number("rqpn", object.rqpn);
    document.named_word("type", qp_type_word(object.kind.unwrap_or(0)));
    document.named_word("state", qp_state_word(object));
    document.named_number("rq-psn", object.rq_psn);
    document.named_number("sq-psn", object.sq_psn);
    if object.path_mig_state.is_some() {
        document.named_word("path-mig-state", path_mig_word(object));
    }
    document.named_number("pdn", object.pdn);
    end(session, object);
}

pub(super) fn cm_id(session: &mut Session<'_>, place: &Place, object: &Object) {
    let document = &mut session.document;
    document.open_object();
    link(document, place, object.port);
    document.named_number("cm-idn", object.cm_idn);
    document.named_number("lqpn", object.lqpn);
    if let Some(kind) = object.kind {
        document.named_word("qp-type", qp_type_word(kind));
    }
    document.named_word("state", cm_id_state_word(object));
    document.named_word("ps", port_space_word(object));
    owner(session, object.pid, object.kern_name.as_deref());
    for (key, address) in [
        ("src-addr", object.source),
        ("dst-addr", object.destination),
    ] {
        if let Some(address) = address {
            let text = format!("{}:{}", address.ip(), address.port());
            session.document.named_word(key, &text);
        }
    }
    driver(session, &object.driver);
    session.document.close_object();
}

pub(super) fn cq(session: &mut Session<'_>, place: &Place, object: &Object) {
    let document = &mut session.document;
    open(document, place);
    document.named_number("cqn", object.cqn);
    document.named_number("cqe", object.cqe);
    document.named_number("users", object.users);
    if object.poll_context.is_some() {
        document.named_word("poll-ctx", poll_context_word(object));
    }
    adaptive_moderation(document, object.adaptive_moderation);
    document.named_number("ctxn", object.ctxn);
    end(session, object);
}

pub(super) fn mr(session: &mut Session<'_>, place: &Place, object: &Object) {
    let document = &mut session.document;
    open(document, place);
    document.named_number("mrn", object.mrn);
    document.named_hex("rkey", object.rkey);
    document.named_hex("lkey", object.lkey);
    document.named_hex("iova", object.iova);
    document.named_number("mrlen", object.length);
    document.named_number("pdn", object.pdn);
    end(session, object);
}

pub(super) fn pd(session: &mut Session<'_>, place: &Place, object: &Object) {
    let document = &mut session.document;
    open(document, place);
    document.named_number("pdn", object.pdn);
    document.named_hex("local_dma_lkey", object.local_dma_lkey);
    document.named_number("users", object.users);
    document.named_hex("unsafe_global_rkey", object.unsafe_global_rkey);
    document.named_number("ctxn", object.ctxn);
    end(session, object);
}

pub(super) fn ctx(session: &mut Session<'_>, place: &Place, object: &Object) {
    open(&mut session.document, place);
    session.document.named_number("ctxn", object.ctxn);
    end(session, object);
}

pub(super) fn srq(session: &mut Session<'_>, place: &Place, object: &Object) {
    let qps = srq_qps(&session.filters, object);
    let document = &mut session.document;
    open(document, place);
    document.named_number("srqn", object.srqn);
    document.named_word("type", srq_type_word(object));
    if !qps.is_empty() {
        let qps = qps.iter().map(String::as_str);
        document.strings("lqpn", qps, ["lqpn ", ",", " "]);
    }
    document.named_number("pdn", object.pdn);
    document.named_number("cqn", object.cqn);
    end(session, object);
}

/// An object as the driver holds it (`-r`).
pub(super) fn raw(
    document: &mut Document,
    kind: &Kind,
    place: &Place,
    object: &Object,
    bytes: &[u8],
) {
    match kind.table {
        Table::Qp => {
            document.open_object();
            link(document, place, object.port);
        }
        _ => open(document, place),
    }
    // Plain numbers one behind the other, as the original has it.
    document.numbers(
        "data",
        bytes.iter().map(|byte| u32::from(*byte)),
        ["", "", ">"],
    );
    document.close_object();
}

/// Begins an object of a device.
fn open(document: &mut Document, place: &Place) {
    let name = &place.name;
    document.open_object();
    document.json_number("ifindex", place.device);
    document.string("ifname", name, format_args!("dev {name} "));
}

/// Names the port of an object; `-` for one that belongs to none.
pub(in super::super) fn link(document: &mut Document, place: &Place, port: Option<u32>) {
    let name = &place.name;
    document.json_number("ifindex", place.device);
    document.string("ifname", name, format_args!(""));
    match port {
        Some(port) => document.number("port", port, format_args!("link {name}/{port} ")),
        None => document.plain(format_args!("link {name}/- ")),
    }
}

/// Names who made an object: a process, or a module of the kernel in brackets.
pub(in super::super) fn owner(session: &mut Session<'_>, pid: Option<u32>, module: Option<&str>) {
    session.document.named_number("pid", pid);
    let process = pid.map(|pid| session.system.process_name(pid));
    let document = &mut session.document;
    match (process, module) {
        (Some(Some(name)), _) => document.named_word("comm", &name),
        (None, Some(module)) => {
            document.string("comm", module, format_args!("comm [{module}] "));
        }
        (Some(None), _) | (None, None) => {}
    }
}

/// Ends an object with its owner and what the driver says.
fn end(session: &mut Session<'_>, object: &Object) {
    owner(session, object.pid, object.kern_name.as_deref());
    driver(session, &object.driver);
    session.document.close_object();
}

/// What the driver says (`-dd`).
fn driver(session: &mut Session<'_>, fields: &[DriverField]) {
    if !session.options.driver_details || fields.is_empty() {
        return;
    }
    let document = &mut session.document;
    let is_pretty = document.is_plain_pretty();
    if is_pretty {
        document.plain(format_args!("\n    "));
    }
    let mut width = 0;
    for field in fields {
        if is_pretty && width > LINE_OF_DRIVER {
            document.plain(format_args!("\n    "));
            width = 0;
        }
        let key = format!("drv_{}", field.key);
        let text = driver_text(&field.value, field.print_type == 1);
        width += key.len() + text.len() + 2;
        match &field.value {
            DriverValue::Text(value) => document.named_word(&key, value),
            DriverValue::S32(value) => {
                document.number(&key, value, format_args!("{key} {text} "));
            }
            DriverValue::U32(value) => {
                document.number(&key, value, format_args!("{key} {text} "));
            }
            DriverValue::S64(value) => {
                document.number(&key, value, format_args!("{key} {text} "));
            }
            DriverValue::U64(value) => {
                document.number(&key, value, format_args!("{key} {text} "));
            }
        }
    }
}

fn driver_text(value: &DriverValue, hexadecimal: bool) -> String {
    match (value, hexadecimal) {
        (DriverValue::Text(value), _) => value.clone(),
        (DriverValue::S32(value), false) => value.to_string(),
        (DriverValue::S32(value), true) => format!("{value:#x}"),
        (DriverValue::U32(value), false) => value.to_string(),
        (DriverValue::U32(value), true) => format!("{value:#x}"),
        (DriverValue::S64(value), false) => value.to_string(),
        (DriverValue::S64(value), true) => format!("{value:#x}"),
        (DriverValue::U64(value), false) => value.to_string(),
        (DriverValue::U64(value), true) => format!("{value:#x}"),
    }
}

/// The queue pairs of a shared receive queue that pass the filters: numbers, and
/// ranges cut where one doesn't.
pub(super) fn srq_qps(filters: &Filters, object: &Object) -> Vec<String> {
    let mut texts = Vec::new();
    let chosen = filters.has("lqpn");
    for range in &object.qps {
        let (first, last) = match *range {
            QpRange::One(number) => (number, number),
            QpRange::Range(first, last) => (first, last),
        };
        if !chosen {
            texts.push(range_text(first, last));
            continue;
        }
        let mut begun = None;
        for number in first..=last {
            let passes = filters.admits_number("lqpn", Some(number));
            match (passes, begun) {
                (true, None) => begun = Some(number),
                (false, Some(from)) => {
                    texts.push(range_text(from, number - 1));
                    begun = None;
                }
                _ => {}
            }
        }
        texts.extend(begun.map(|from| range_text(from, last)));
    }
    texts
}

fn range_text(first: u32, last: u32) -> String {
    if first == last {
        first.to_string()
    } else {
        format!("{first}-{last}")
    }
}

/// `enum ib_qp_type`.
pub(in super::super) fn qp_type_word(kind: u8) -> &'static str {
    const WORDS: &[&str] = &[
        "SMI",
        "GSI",
        "RC",
        "UC",
        "UD",
        "RAW_IPV6",
        "RAW_ETHERTYPE",
        "UNKNOWN",
        "RAW_PACKET",
        "XRC_INI",
        "XRC_TGT",
    ];
    match kind {
        0xff => "DRIVER",
        kind => word(WORDS, kind, "UNKNOWN"),
    }
}

/// `enum ib_qp_state`.
pub(super) fn qp_state_word(object: &Object) -> &'static str {
    const WORDS: &[&str] = &["RESET", "INIT", "RTR", "RTS", "SQD", "SQE", "ERR"];
    word(WORDS, object.state.unwrap_or(0), "UNKNOWN")
}

/// `enum ib_mig_state`.
pub(super) fn path_mig_word(object: &Object) -> &'static str {
    const WORDS: &[&str] = &["MIGRATED", "REARM", "ARMED"];
    word(WORDS, object.path_mig_state.unwrap_or(0), "UNKNOWN")
}

/// `enum rdma_cm_state`.
pub(super) fn cm_id_state_word(object: &Object) -> &'static str {
    const WORDS: &[&str] = &[
        "IDLE",
        "ADDR_QUERY",
        "ADDR_RESOLVED",
        "ROUTE_QUERY",
        "ROUTE_RESOLVED",
        "CONNECT",
        "DISCONNECT",
        "ADDR_BOUND",
        "LISTEN",
        "DEVICE_REMOVAL",
        "DESTROYING",
    ];
    word(WORDS, object.state.unwrap_or(0), "UNKNOWN")
}

/// `enum rdma_ucm_port_space`.
pub(super) fn port_space_word(object: &Object) -> &'static str {
    match object.port_space {
        Some(0x0002 | 0x013f) => "IPoIB",
        Some(0x0106) => "TCP",
        Some(0x0111) => "UDP",
        _ => "---",
    }
}

/// `enum ib_poll_context`.
pub(super) fn poll_context_word(object: &Object) -> &'static str {
    const WORDS: &[&str] = &["DIRECT", "SOFTIRQ", "WORKQUEUE", "UNBOUND_WORKQUEUE"];
    word(WORDS, object.poll_context.unwrap_or(0), "UNKNOWN")
}

/// `enum ib_srq_type`.
pub(super) fn srq_type_word(object: &Object) -> &'static str {
    word(&["BASIC", "XRC", "TM"], object.kind.unwrap_or(0), "UNKNOWN")
}
