//! The lines of a device.

use verbs_sys::{AtomicCapability, DeviceAttributes, ExtendedAttributes, OdpCapabilities};

use super::super::Report;
use super::super::words::guid;
use super::flags::{self, Flag};
use super::{Shown, Transport};

/// Identity.
pub(super) fn print(report: &mut Report, shown: &Shown<'_>, device: &DeviceAttributes) {
    let transport = shown.transport();
    report.out(format_args!("hca_id:\t{}{}", shown.name, shown.mark));
    report.out(format_args!(
        "\ttransport:\t\t\t{} ({})",
        transport_word(transport),
        transport as i32
    ));
    if !device.fw_ver.is_empty() {
        report.out(format_args!("\tfw_ver:\t\t\t\t{}", device.fw_ver));
    }
    report.out(format_args!("\tnode_guid:\t\t\t{}", guid(device.node_guid)));
    report.out(format_args!(
        "\tsys_image_guid:\t\t\t{}",
        guid(device.sys_image_guid)
    ));
    report.out(format_args!("\tvendor_id:\t\t\t0x{:04x}", device.vendor_id));
    report.out(format_args!(
        "\tvendor_part_id:\t\t\t{}",
        device.vendor_part_id
    ));
    report.out(format_args!("\thw_ver:\t\t\t\t0x{:X}", device.hw_ver));
    if let Some(board) = shown.board_id.as_deref().filter(|board| !board.is_empty()) {
        report.out(format_args!("\tboard_id:\t\t\t{board}"));
    }
    report.out(format_args!(
        "\tphys_port_cnt:\t\t\t{}",
        device.phys_port_cnt
    ));
}

/// Limits and capabilities (`-v`).
pub(super) fn print_verbose(report: &mut Report, device: &DeviceAttributes) {
    limits(report, device);
    let extended = &device.extended;
    odp(report, &extended.odp);
    match extended.completion_timestamp_mask {
        0 => report.out(format_args!("\tcompletion_timestamp_mask not supported")),
        mask => report.out(format_args!(
            "\tcompletion timestamp_mask:\t\t\t0x{mask:016x}"
        )),
    }
    match extended.hca_core_clock {
        0 => report.out(format_args!("\tcore clock not supported")),
        clock => report.out(format_args!("\thca_core_clock:\t\t\t{clock}kHZ")),
    }
    if extended.raw_packet_caps != 0 {
        report.out(format_args!("\traw packet caps:"));
        flags::print_known(report, flags::RAW_PACKET, extended.raw_packet_caps.into());
    }
    let above = extended.device_cap_flags_ex;
    report.out(format_args!("\tdevice_cap_flags_ex:\t\t0x{above:X}"));
    flags::print(report, flags::DEVICE_EX, above & !u64::from(u32::MAX));
    offloads(report, extended);
    report.out(format_args!(
        "\tnum_comp_vectors:\t\t{}",
        extended.num_comp_vectors
    ));
}

fn limits(report: &mut Report, device: &DeviceAttributes) {
    // The original prints them as signed numbers.
    let number = |report: &mut Report, label: &str, value: u32| {
        report.out(format_args!("\t{label}{}", value.cast_signed()));
    };
    report.out(format_args!(
        "\tmax_mr_size:\t\t\t{:#x}",
        device.max_mr_size
    ));
    report.out(format_args!(
        "\tpage_size_cap:\t\t\t{:#x}",
        device.page_size_cap
    ));
    number(report, "max_qp:\t\t\t\t", device.max_qp);
    number(report, "max_qp_wr:\t\t\t", device.max_qp_wr);
    report.out(format_args!(
        "\tdevice_cap_flags:\t\t0x{:08x}",
        device.device_cap_flags
    ));
    flags::print(report, flags::DEVICE, device.device_cap_flags.into());
    number(report, "max_sge:\t\t\t", device.max_sge);
    number(report, "max_sge_rd:\t\t\t", device.max_sge_rd);
    number(report, "max_cq:\t\t\t\t", device.max_cq);
    number(report, "max_cqe:\t\t\t", device.max_cqe);
    number(report, "max_mr:\t\t\t\t", device.max_mr);
    number(report, "max_pd:\t\t\t\t", device.max_pd);
    number(report, "max_qp_rd_atom:\t\t\t", device.max_qp_rd_atom);
    number(report, "max_ee_rd_atom:\t\t\t", device.max_ee_rd_atom);
    number(report, "max_res_rd_atom:\t\t", device.max_res_rd_atom);
    number(
        report,
        "max_qp_init_rd_atom:\t\t",
        device.max_qp_init_rd_atom,
    );
    number(
        report,
        "max_ee_init_rd_atom:\t\t",
        device.max_ee_init_rd_atom,
    );
    report.out(format_args!(
        "\tatomic_cap:\t\t\t{} ({})",
        atomic_word(device.atomic_cap),
        device.atomic_cap as u32
    ));
    number(report, "max_ee:\t\t\t\t", device.max_ee);
    number(report, "max_rdd:\t\t\t", device.max_rdd);
    number(report, "max_mw:\t\t\t\t", device.max_mw);
    number(report, "max_raw_ipv6_qp:\t\t", device.max_raw_ipv6_qp);
    number(report, "max_raw_ethy_qp:\t\t", device.max_raw_ethy_qp);
    number(report, "max_mcast_grp:\t\t\t", device.max_mcast_grp);
    number(
        report,
        "max_mcast_qp_attach:\t\t",
        device.max_mcast_qp_attach,
    );
    number(
        report,
        "max_total_mcast_qp_attach:\t",
        device.max_total_mcast_qp_attach,
    );
    number(report, "max_ah:\t\t\t\t", device.max_ah);
    number(report, "max_fmr:\t\t\t", device.max_fmr);
    if device.max_fmr != 0 {
        number(report, "max_map_per_fmr:\t\t", device.max_map_per_fmr);
    }
    number(report, "max_srq:\t\t\t", device.max_srq);
    if device.max_srq != 0 {
        number(report, "max_srq_wr:\t\t\t", device.max_srq_wr);
        number(report, "max_srq_sge:\t\t\t", device.max_srq_sge);
    }
    number(report, "max_pkeys:\t\t\t", device.max_pkeys.into());
    number(
        report,
        "local_ca_ack_delay:\t\t",
        device.local_ca_ack_delay.into(),
    );
}

fn odp(report: &mut Report, odp: &OdpCapabilities) {
    report.out(format_args!("\tgeneral_odp_caps:"));
    flags::print(report, flags::ODP_GENERAL, odp.general);
    for (name, transport) in [
        ("rc", odp.rc),
        ("uc", odp.uc),
        ("ud", odp.ud),
        ("xrc", odp.xrc),
    ] {
        report.out(format_args!("\t{name}_odp_caps:"));
        match transport {
            0 => report.out(format_args!("\t\t\t\t\tNO SUPPORT")),
            caps => flags::print(report, flags::ODP_TRANSPORT, caps.into()),
        }
    }
}

fn offloads(report: &mut Report, extended: &ExtendedAttributes) {
    report.out(format_args!("\ttso_caps:"));
    // The original prints this one as a signed number.
    let max_tso = extended.max_tso.cast_signed();
    report.out(format_args!("\t\tmax_tso:\t\t\t{max_tso}"));
    if max_tso != 0 {
        supported_qp(report, extended.tso_qp_types);
    }
    let rss = &extended.rss;
    report.out(format_args!("\trss_caps:"));
    report.out(format_args!(
        "\t\tmax_rwq_indirection_tables:\t\t\t{}",
        rss.max_rwq_indirection_tables
    ));
    report.out(format_args!(
        "\t\tmax_rwq_indirection_table_size:\t\t\t{}",
        rss.max_rwq_indirection_table_size
    ));
    report.out(format_args!(
        "\t\trx_hash_function:\t\t\t\t0x{:x}",
        rss.rx_hash_function
    ));
    report.out(format_args!(
        "\t\trx_hash_fields_mask:\t\t\t\t0x{:X}",
        rss.rx_hash_fields_mask
    ));
    if rss.qp_types != 0 {
        supported_qp(report, rss.qp_types);
    }
    report.out(format_args!(
        "\tmax_wq_type_rq:\t\t\t{}",
        extended.max_wq_type_rq
    ));
    report.out(format_args!("\tpacket_pacing_caps:"));
    report.out(format_args!(
        "\t\tqp_rate_limit_min:\t{}kbps",
        extended.qp_rate_limit_min
    ));
    report.out(format_args!(
        "\t\tqp_rate_limit_max:\t{}kbps",
        extended.qp_rate_limit_max
    ));
    if extended.qp_rate_limit_max != 0 {
        supported_qp(report, extended.rate_limit_qp_types);
    }
    tag_matching(report, extended);
    let (count, period) = (
        extended.max_cq_moderation_count,
        extended.max_cq_moderation_period,
    );
    if count != 0 && period != 0 {
        report.out(format_args!("\n\tcq moderation caps:"));
        report.out(format_args!("\t\tmax_cq_count:\t{count}"));
        report.out(format_args!("\t\tmax_cq_period:\t{period} us\n"));
    }
    if extended.max_dm_size != 0 {
        report.out(format_args!(
            "\tmaximum available device memory:\t{}Bytes\n",
            extended.max_dm_size
        ));
    }
}

fn supported_qp(report: &mut Report, types: u32) {
    const KNOWN: &[Flag] = flags::QP_TYPES;
    report.out(format_args!("\t\tsupported_qp:"));
    flags::print(report, KNOWN, types.into());
}

fn tag_matching(report: &mut Report, extended: &ExtendedAttributes) {
    let caps = &extended.tag_matching;
    if caps.max_num_tags == 0 {
        report.out(format_args!("\ttag matching not supported"));
        return;
    }
    report.out(format_args!(
        "\tmax_rndv_hdr_size:\t\t{}",
        caps.max_rndv_hdr_size
    ));
    report.out(format_args!("\tmax_num_tags:\t\t\t{}", caps.max_num_tags));
    report.out(format_args!("\tmax_ops:\t\t\t{}", caps.max_ops));
    report.out(format_args!("\tmax_sge:\t\t\t{}", caps.max_sge));
    report.out(format_args!("\tflags:"));
    flags::print_known(report, flags::TAG_MATCHING, caps.flags.into());
}

fn transport_word(transport: Transport) -> &'static str {
    match transport {
        Transport::Ib => "InfiniBand",
        Transport::Iwarp => "iWARP",
        Transport::Usnic => "usNIC",
        Transport::UsnicUdp => "usNIC UDP",
        Transport::Unspecified => "unspecified",
        Transport::Unknown => "invalid transport",
    }
}

fn atomic_word(capability: AtomicCapability) -> &'static str {
    match capability {
        AtomicCapability::None => "ATOMIC_NONE",
        AtomicCapability::Hca => "ATOMIC_HCA",
        AtomicCapability::Global => "ATOMIC_GLOB",
    }
}
