//! Bits of capabilities and their names.

use super::super::Report;

/// A bit with its name.
pub(super) type Flag = (u64, &'static str);

/// `enum ibv_device_cap_flags`, as far as rdma-core 44 names them.
pub(super) const DEVICE: &[Flag] = &[
    (1 << 0, "RESIZE_MAX_WR"),
    (1 << 1, "BAD_PKEY_CNTR"),
    (1 << 2, "BAD_QKEY_CNTR"),
    (1 << 3, "RAW_MULTI"),
    (1 << 4, "AUTO_PATH_MIG"),
    (1 << 5, "CHANGE_PHY_PORT"),
    (1 << 6, "UD_AV_PORT_ENFORCE"),
    (1 << 7, "CURR_QP_STATE_MOD"),
    (1 << 8, "SHUTDOWN_PORT"),
    (1 << 9, "INIT_TYPE"),
    (1 << 10, "PORT_ACTIVE_EVENT"),
    (1 << 11, "SYS_IMAGE_GUID"),
    (1 << 12, "RC_RNR_NAK_GEN"),
    (1 << 13, "SRQ_RESIZE"),
    (1 << 14, "N_NOTIFY_CQ"),
    (1 << 17, "MEM_WINDOW"),
    (1 << 18, "UD_IP_CSUM"),
    (1 << 20, "XRC"),
    (1 << 21, "MEM_MGT_EXTENSIONS"),
    (1 << 23, "MEM_WINDOW_TYPE_2A"),
    (1 << 24, "MEM_WINDOW_TYPE_2B"),
    (1 << 25, "RC_IP_CSUM"),
    (1 << 26, "RAW_IP_CSUM"),
    (1 << 29, "MANAGED_FLOW_STEERING"),
];

/// `device_cap_flags_ex` above the low 32 bits.
pub(super) const DEVICE_EX: &[Flag] = &[
    (1 << 34, "RAW_SCATTER_FCS"),
    (1 << 36, "PCI_WRITE_END_PADDING"),
];

/// `enum ibv_odp_general_caps`.
pub(super) const ODP_GENERAL: &[Flag] =
    &[(1 << 0, "ODP_SUPPORT"), (1 << 1, "ODP_SUPPORT_IMPLICIT")];

/// `enum ibv_odp_transport_cap_bits`.
pub(super) const ODP_TRANSPORT: &[Flag] = &[
    (1 << 0, "SUPPORT_SEND"),
    (1 << 1, "SUPPORT_RECV"),
    (1 << 2, "SUPPORT_WRITE"),
    (1 << 3, "SUPPORT_READ"),
    (1 << 4, "SUPPORT_ATOMIC"),
    (1 << 5, "SUPPORT_SRQ"),
];

/// `enum ibv_raw_packet_caps`.
pub(super) const RAW_PACKET: &[Flag] = &[
    (1 << 0, "C-VLAN stripping offload"),
    (1 << 1, "Scatter FCS offload"),
    (1 << 2, "IP csum offload"),
    (1 << 3, "Delay drop"),
];

/// Types of queue pairs that offloads are for: `IBV_QPT_RAW_PACKET` and
/// `IBV_QPT_UD`.
pub(super) const QP_TYPES: &[Flag] = &[(1 << 8, "SUPPORT_RAW_PACKET"), (1 << 4, "SUPPORT_UD")];

/// `enum ibv_tm_cap_flags`.
pub(super) const TAG_MATCHING: &[Flag] = &[(1 << 0, "IBV_TM_CAP_RC")];

/// A line for each bit that is set and named.
pub(super) fn print_known(report: &mut Report, flags: &[Flag], value: u64) {
    for (bit, name) in flags {
        if value & bit != 0 {
            report.out(format_args!("\t\t\t\t\t{name}"));
        }
    }
}

/// The same, and a line for what has no name.
pub(super) fn print(report: &mut Report, flags: &[Flag], value: u64) {
    print_known(report, flags, value);
    let unknown = flags.iter().fold(value, |rest, (bit, _)| rest & !bit);
    if unknown != 0 {
        report.out(format_args!("\t\t\t\t\tUnknown flags: 0x{unknown:X}"));
    }
}
