//! What a device and a port say about themselves.

use super::PathMtu;

/// `enum ibv_atomic_cap`: with whom atomics are atomic.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u32)]
pub enum AtomicCapability {
    /// No atomics.
    #[default]
    None = 0,
    /// Among operations through this device.
    Hca = 1,
    /// Also with the CPU and other devices.
    Global = 2,
}

/// `struct ibv_device_attr`: identity and limits of a device.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceAttributes {
    /// Firmware version as text, at most 63 bytes.
    pub fw_ver: String,
    /// EUI-64 of the node.
    pub node_guid: u64,
    /// EUI-64 of the system.
    pub sys_image_guid: u64,
    /// Largest memory region in bytes.
    pub max_mr_size: u64,
    /// Supported page sizes, one bit each.
    pub page_size_cap: u64,
    /// IEEE OUI of the vendor.
    pub vendor_id: u32,
    /// Vendor's part number.
    pub vendor_part_id: u32,
    /// Hardware version.
    pub hw_ver: u32,
    /// Queue pairs.
    pub max_qp: u32,
    /// Work requests per queue.
    pub max_qp_wr: u32,
    /// `enum ibv_device_cap_flags`.
    pub device_cap_flags: u32,
    /// Scatter/gather entries per work request.
    pub max_sge: u32,
    /// Scatter/gather entries per RDMA Read.
    pub max_sge_rd: u32,
    /// Completion queues.
    pub max_cq: u32,
    /// Entries per completion queue.
    pub max_cqe: u32,
    /// Memory regions.
    pub max_mr: u32,
    /// Protection domains.
    pub max_pd: u32,
    /// Reads and atomics a queue pair accepts at a time.
    pub max_qp_rd_atom: u32,
    /// Reads and atomics the device accepts at a time.
    pub max_res_rd_atom: u32,
    /// Reads and atomics a queue pair starts at a time.
    pub max_qp_init_rd_atom: u32,
    /// Atomicity.
    pub atomic_cap: AtomicCapability,
    /// Memory windows.
    pub max_mw: u32,
    /// Multicast groups.
    pub max_mcast_grp: u32,
    /// Queue pairs per multicast group.
    pub max_mcast_qp_attach: u32,
    /// Queue pair attachments in all.
    pub max_total_mcast_qp_attach: u32,
    /// Address handles.
    pub max_ah: u32,
    /// Shared receive queues.
    pub max_srq: u32,
    /// Work requests per shared receive queue.
    pub max_srq_wr: u32,
    /// Scatter/gather entries per shared receive.
    pub max_srq_sge: u32,
    /// P_Keys per port.
    pub max_pkeys: u16,
    /// Exponent of the longest time to acknowledge: 4.096 µs × 2^n.
    pub local_ca_ack_delay: u8,
    /// Ports.
    pub phys_port_cnt: u8,
}

/// `enum ibv_port_state`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum PortState {
    /// Unknown.
    #[default]
    Nop = 0,
    /// Not usable.
    Down = 1,
    /// Physical link up, not configured.
    Init = 2,
    /// Configured, not active.
    Armed = 3,
    /// Usable.
    Active = 4,
    /// Active with a deferred error.
    ActiveDefer = 5,
}

/// `IBV_LINK_LAYER_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(u8)]
pub enum LinkLayer {
    /// Unspecified.
    #[default]
    Unspecified = 0,
    /// InfiniBand.
    InfiniBand = 1,
    /// Ethernet (RoCE, iWARP).
    Ethernet = 2,
}

/// `struct ibv_port_attr`, the parts that mean something on Ethernet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PortAttributes {
    /// Logical state.
    pub state: PortState,
    /// Largest path MTU of the hardware.
    pub max_mtu: PathMtu,
    /// Path MTU of the link as configured.
    pub active_mtu: PathMtu,
    /// Entries of the GID table, used or not.
    pub gid_tbl_len: u32,
    /// Entries of the P_Key table.
    pub pkey_tbl_len: u16,
    /// `enum ibv_port_cap_flags`.
    pub port_cap_flags: u32,
    /// Largest message in bytes.
    pub max_msg_sz: u32,
    /// Packets with a P_Key that no queue pair has.
    pub bad_pkey_cntr: u32,
    /// Packets with a Q_Key that no queue pair has.
    pub qkey_viol_cntr: u32,
    /// Local identifier; 0 on Ethernet.
    pub lid: u16,
    /// Physical state: 5 is link up, 3 disabled.
    pub phys_state: u8,
    /// Link layer.
    pub link_layer: LinkLayer,
}
