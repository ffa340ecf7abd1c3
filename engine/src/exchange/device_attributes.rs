//! The device attributes inside the parameter block: libibverbs'
//! `struct ibv_device_attr` of a 64-bit host, raw and in host byte order.

use zerocopy::{FromBytes, FromZeros, Immutable, IntoBytes, KnownLayout};

/// `struct ibv_device_attr` (LP64), 232 bytes. Both ends send the real values
/// of their device: stock reads `max_qp_rd_atom` of the peer and lowers its
/// own outstanding reads to it, for every verb.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout)]
#[repr(C)]
#[allow(missing_docs, reason = "the names are libibverbs'")]
pub struct DeviceAttributes {
    /// NUL padded text.
    pub fw_ver: [u8; 64],
    /// Big-endian, as libibverbs keeps it.
    pub node_guid: [u8; 8],
    /// Big-endian, as libibverbs keeps it.
    pub sys_image_guid: [u8; 8],
    pub max_mr_size: u64,
    pub page_size_cap: u64,
    pub vendor_id: u32,
    pub vendor_part_id: u32,
    pub hw_ver: u32,
    pub max_qp: u32,
    pub max_qp_wr: u32,
    pub device_cap_flags: u32,
    pub max_sge: u32,
    pub max_sge_rd: u32,
    pub max_cq: u32,
    pub max_cqe: u32,
    pub max_mr: u32,
    pub max_pd: u32,
    /// RDMA READ and atomic requests a QP can answer at a time.
    pub max_qp_rd_atom: u32,
    pub max_ee_rd_atom: u32,
    pub max_res_rd_atom: u32,
    /// RDMA READ and atomic requests a QP can have outstanding.
    pub max_qp_init_rd_atom: u32,
    pub max_ee_init_rd_atom: u32,
    pub atomic_cap: u32,
    pub max_ee: u32,
    pub max_rdd: u32,
    pub max_mw: u32,
    pub max_raw_ipv6_qp: u32,
    pub max_raw_ethy_qp: u32,
    pub max_mcast_grp: u32,
    pub max_mcast_qp_attach: u32,
    pub max_total_mcast_qp_attach: u32,
    pub max_ah: u32,
    pub max_fmr: u32,
    pub max_map_per_fmr: u32,
    pub max_srq: u32,
    pub max_srq_wr: u32,
    pub max_srq_sge: u32,
    pub max_pkeys: u16,
    pub local_ca_ack_delay: u8,
    pub phys_port_cnt: u8,
    /// The compiler's padding at the end of the C structure.
    pub padding: [u8; 4],
}

/// Length of [`DeviceAttributes`] on the wire.
pub const DEVICE_ATTRIBUTES_LEN: usize = 232;

const _: () = assert!(size_of::<DeviceAttributes>() == DEVICE_ATTRIBUTES_LEN);
const _: () = assert!(std::mem::offset_of!(DeviceAttributes, max_qp_rd_atom) == 144);
const _: () = assert!(std::mem::offset_of!(DeviceAttributes, max_pkeys) == 224);

impl DeviceAttributes {
    /// All zero, to be filled in from a device.
    pub fn zeroed() -> Self {
        Self::new_zeroed()
    }

    /// The bytes on the wire.
    pub fn encode(&self) -> [u8; DEVICE_ATTRIBUTES_LEN] {
        zerocopy::transmute!(*self)
    }

    /// From the bytes of a peer (assumed to have our byte order, as stock assumes).
    pub fn decode(bytes: [u8; DEVICE_ATTRIBUTES_LEN]) -> Self {
        zerocopy::transmute!(bytes)
    }
}
