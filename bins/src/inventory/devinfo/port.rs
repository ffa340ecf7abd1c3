//! The lines of a port.

use verbs_sys::{
    Context, GidEntry, GidType, LinkLayer, PathMtu, PortAttributes, PortState, Result, VerbsError,
};

use super::super::Report;
use super::super::words::word;
use super::Transport;

/// State and addresses.
pub(super) fn print(report: &mut Report, number: u8, port: &PortAttributes) {
    report.out(format_args!("\t\tport:\t{number}"));
    let mut line = |label: &str, value: String| {
        report.out(format_args!("\t\t\t{label}{value}"));
    };
    let state = match port.state {
        PortState::Down => "PORT_DOWN",
        PortState::Init => "PORT_INIT",
        PortState::Armed => "PORT_ARMED",
        PortState::Active => "PORT_ACTIVE",
        PortState::Nop | PortState::ActiveDefer => "invalid state",
    };
    let mtu = |mtu: PathMtu| format!("{mtu} ({})", mtu as u8);
    line("state:\t\t\t", format!("{state} ({})", port.state as u8));
    line("max_mtu:\t\t", mtu(port.max_mtu));
    line("active_mtu:\t\t", mtu(port.active_mtu));
    line("sm_lid:\t\t\t", port.sm_lid.to_string());
    line("port_lid:\t\t", port.lid.to_string());
    line("port_lmc:\t\t", format!("0x{:02x}", port.lmc));
    let link_layer = match port.link_layer {
        LinkLayer::Unspecified => "Unspecified",
        LinkLayer::InfiniBand => "InfiniBand",
        LinkLayer::Ethernet => "Ethernet",
    };
    line("link_layer:\t\t", link_layer.to_owned());
}

/// Limits, link and counters (`-v`).
pub(super) fn print_verbose(report: &mut Report, port: &PortAttributes, transport: Transport) {
    let mut line = |label: &str, value: String| {
        report.out(format_args!("\t\t\t{label}{value}"));
    };
    line("max_msg_sz:\t\t", format!("0x{:x}", port.max_msg_sz));
    line(
        "port_cap_flags:\t\t",
        format!("0x{:08x}", port.port_cap_flags),
    );
    line(
        "port_cap_flags2:\t",
        format!("0x{:04x}", port.port_cap_flags2),
    );
    let lanes = word(
        &["invalid value", "1", "2", "4", "8", "15"],
        port.max_vl_num,
        "invalid value",
    );
    line("max_vl_num:\t\t", format!("{lanes} ({})", port.max_vl_num));
    line("bad_pkey_cntr:\t\t", format!("0x{:x}", port.bad_pkey_cntr));
    line(
        "qkey_viol_cntr:\t\t",
        format!("0x{:x}", port.qkey_viol_cntr),
    );
    line("sm_sl:\t\t\t", port.sm_sl.to_string());
    line("pkey_tbl_len:\t\t", port.pkey_tbl_len.to_string());
    line("gid_tbl_len:\t\t", port.gid_tbl_len.to_string());
    line("subnet_timeout:\t\t", port.subnet_timeout.to_string());
    line("init_type_reply:\t", port.init_type_reply.to_string());
    let (width, speed) = (port.active_width, port.active_speed);
    line(
        "active_width:\t\t",
        format!("{}X ({width})", width_word(width)),
    );
    line(
        "active_speed:\t\t",
        format!("{} ({speed})", speed_word(speed)),
    );
    if transport == Transport::Ib {
        let physical = phys_state_word(port.phys_state);
        line(
            "phys_state:\t\t",
            format!("{physical} ({})", port.phys_state),
        );
    }
}

/// The used entries of the GID table.
///
/// # Errors
/// When the device doesn't tell an entry.
pub(super) fn print_gids(
    report: &mut Report,
    context: &dyn Context,
    number: u8,
    port: &PortAttributes,
) -> Result<()> {
    let table = match context.query_gid_table() {
        Ok(table) => table,
        // Linux before 5.10 has no query of the whole table.
        Err(VerbsError::Unsupported { .. }) => one_by_one(report, context, number, port)?,
        Err(error) => {
            report.err(format_args!(
                "Failed to query gid to port {number}, index 0"
            ));
            return Err(error);
        }
    };
    for entry in table.iter().filter(|entry| entry.port == number) {
        if entry.gid.0[8..] != [0; 8] {
            report.out(format_args!(
                "\t\t\tGID[{:3}]:\t\t{}",
                entry.index,
                gid_words(entry, port.link_layer)
            ));
        }
    }
    Ok(())
}

fn one_by_one(
    report: &mut Report,
    context: &dyn Context,
    number: u8,
    port: &PortAttributes,
) -> Result<Vec<GidEntry>> {
    let mut table = Vec::new();
    for index in 0..port.gid_tbl_len {
        match context.query_gid(number, index) {
            Ok(entry) => table.push(entry),
            Err(VerbsError::NoEntry { .. }) => {}
            Err(error) => {
                report.err(format_args!(
                    "Failed to query gid to port {number}, index {index}"
                ));
                return Err(error);
            }
        }
    }
    Ok(table)
}

/// RoCE v2 as an address, the others in groups of hexadecimal digits.
fn gid_words(entry: &GidEntry, link_layer: LinkLayer) -> String {
    let (gid, protocol) = match entry.gid_type {
        GidType::RoceV2 => (entry.gid.to_string(), "RoCE v2"),
        GidType::Ib | GidType::RoceV1 => {
            let groups: Vec<String> = entry
                .gid
                .0
                .chunks(2)
                .map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect())
                .collect();
            (groups.join(":"), "RoCE v1")
        }
    };
    match link_layer {
        LinkLayer::Ethernet => format!("{gid}, {protocol}"),
        LinkLayer::InfiniBand | LinkLayer::Unspecified => gid,
    }
}

/// `enum ib_port_width`.
fn width_word(width: u8) -> &'static str {
    match width {
        1 => "1",
        2 => "4",
        4 => "8",
        8 => "12",
        16 => "2",
        _ => "invalid width",
    }
}

/// `enum ib_port_speed`, as far as rdma-core 44 knows it.
fn speed_word(speed: u8) -> &'static str {
    match speed {
        1 => "2.5 Gbps",
        2 => "5.0 Gbps",
        4 | 8 => "10.0 Gbps",
        16 => "14.0 Gbps",
        32 => "25.0 Gbps",
        64 => "50.0 Gbps",
        128 => "100.0 Gbps",
        _ => "invalid speed",
    }
}

/// `enum ib_port_phys_state`, with the original's spelling.
fn phys_state_word(state: u8) -> &'static str {
    match state {
        1 => "SLEEP",
        2 => "POLLING",
        3 => "DISABLED",
        4 => "PORT_CONFIGURATION TRAINNING",
        5 => "LINK_UP",
        6 => "LINK_ERROR_RECOVERY",
        7 => "PHY TEST",
        _ => "invalid physical state",
    }
}
