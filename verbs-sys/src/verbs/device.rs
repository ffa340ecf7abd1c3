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
    /// Reads and atomics an end-to-end context accepts at a time.
    pub max_ee_rd_atom: u32,
    /// Reads and atomics an end-to-end context starts at a time.
    pub max_ee_init_rd_atom: u32,
    /// End-to-end contexts (Reliable Datagram).
    pub max_ee: u32,
    /// Reliable Datagram domains.
    pub max_rdd: u32,
    /// Raw IPv6 queue pairs.
    pub max_raw_ipv6_qp: u32,
    /// Raw Ethertype queue pairs.
    pub max_raw_ethy_qp: u32,
    /// Fast memory regions.
    pub max_fmr: u32,
    /// Mappings of a fast memory region.
    pub max_map_per_fmr: u32,
    /// What `struct ibv_device_attr_ex` adds.
    pub extended: ExtendedAttributes,
}

/// `struct ibv_device_attr_ex` beyond `struct ibv_device_attr`, and the number
/// of completion vectors of a context. All zero for a device or a kernel that
/// has none of this.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct ExtendedAttributes {
    /// On-demand paging.
    pub odp: OdpCapabilities,
    /// Valid bits of a completion's time stamp.
    pub completion_timestamp_mask: u64,
    /// Clock of the time stamps in kHz.
    pub hca_core_clock: u64,
    /// `enum ibv_device_cap_flags` and, above 32 bits, `IBV_DEVICE_RAW_SCATTER_FCS`
    /// and others.
    pub device_cap_flags_ex: u64,
    /// TCP segmentation offload: longest message in bytes.
    pub max_tso: u32,
    /// TCP segmentation offload: one bit for each `enum ibv_qp_type` that has it.
    pub tso_qp_types: u32,
    /// Receive side scaling.
    pub rss: RssCapabilities,
    /// Receive work queues.
    pub max_wq_type_rq: u32,
    /// Packet pacing: lowest rate in kbit/s.
    pub qp_rate_limit_min: u32,
    /// Packet pacing: highest rate in kbit/s.
    pub qp_rate_limit_max: u32,
    /// Packet pacing: one bit for each `enum ibv_qp_type` that has it.
    pub rate_limit_qp_types: u32,
    /// `enum ibv_raw_packet_caps`.
    pub raw_packet_caps: u32,
    /// Tag matching.
    pub tag_matching: TagMatchingCapabilities,
    /// Completions that a queue can hold back.
    pub max_cq_moderation_count: u16,
    /// Microseconds that a queue can hold a completion back.
    pub max_cq_moderation_period: u16,
    /// Bytes of device memory.
    pub max_dm_size: u64,
    /// Completion vectors (interrupts) of a context.
    pub num_comp_vectors: u32,
}

/// `struct ibv_odp_caps`: on-demand paging.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct OdpCapabilities {
    /// `enum ibv_odp_general_caps`.
    pub general: u64,
    /// `enum ibv_odp_transport_cap_bits` of RC.
    pub rc: u32,
    /// The same of UC.
    pub uc: u32,
    /// The same of UD.
    pub ud: u32,
    /// The same of XRC.
    pub xrc: u32,
}

/// `struct ibv_rss_caps`: receive side scaling.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RssCapabilities {
    /// One bit for each `enum ibv_qp_type` that has it.
    pub qp_types: u32,
    /// Tables.
    pub max_rwq_indirection_tables: u32,
    /// Entries of a table.
    pub max_rwq_indirection_table_size: u32,
    /// `enum ibv_rx_hash_fields`.
    pub rx_hash_fields_mask: u64,
    /// `enum ibv_rx_hash_function_flags`.
    pub rx_hash_function: u8,
}

/// `struct ibv_tm_caps`: tag matching.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TagMatchingCapabilities {
    /// Bytes of a rendezvous header.
    pub max_rndv_hdr_size: u32,
    /// Tagged buffers in a list.
    pub max_num_tags: u32,
    /// `enum ibv_tm_cap_flags`.
    pub flags: u32,
    /// Operations on a list at a time.
    pub max_ops: u32,
    /// Scatter entries of a tagged buffer.
    pub max_sge: u32,
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

/// `enum ibv_transport_type`: what carries the messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Transport {
    /// InfiniBand's transport, RoCE included.
    #[default]
    InfiniBand,
    /// iWARP: RDMA over TCP.
    Iwarp,
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

/// `struct ibv_port_attr`.
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
    /// Local identifier of the subnet manager; 0 on Ethernet.
    pub sm_lid: u16,
    /// Service level of the subnet manager; 0 on Ethernet.
    pub sm_sl: u8,
    /// Low bits of the local identifier that paths may differ in.
    pub lmc: u8,
    /// Virtual lanes, as the code of IBTA PortInfo:VLCap (1 to 5 for 1 to 15).
    pub max_vl_num: u8,
    /// Exponent of the subnet's propagation delay.
    pub subnet_timeout: u8,
    /// What the subnet manager did to the port (IBTA PortInfo:InitTypeReply).
    pub init_type_reply: u8,
    /// Lanes of the link, as `enum ib_port_width` (1 is 1X, 2 is 4X).
    pub active_width: u8,
    /// Rate of a lane, as `enum ib_port_speed` (8 is 10 Gbit/s).
    pub active_speed: u8,
    /// `enum ibv_port_cap_flags2`.
    pub port_cap_flags2: u16,
}
