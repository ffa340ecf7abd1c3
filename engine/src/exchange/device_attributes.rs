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

impl From<&verbs_sys::DeviceAttributes> for DeviceAttributes {
    fn from(own: &verbs_sys::DeviceAttributes) -> Self {
        let mut wire = Self::zeroed();
        let text = own.fw_ver.bytes().take(wire.fw_ver.len() - 1);
        for (slot, byte) in wire.fw_ver.iter_mut().zip(text) {
            *slot = byte;
        }
        wire.node_guid = own.node_guid.to_be_bytes();
        wire.sys_image_guid = own.sys_image_guid.to_be_bytes();
        wire.max_mr_size = own.max_mr_size;
        wire.page_size_cap = own.page_size_cap;
        wire.vendor_id = own.vendor_id;
        wire.vendor_part_id = own.vendor_part_id;
        wire.hw_ver = own.hw_ver;
        wire.max_qp = own.max_qp;
        wire.max_qp_wr = own.max_qp_wr;
        wire.device_cap_flags = own.device_cap_flags;
        wire.max_sge = own.max_sge;
        wire.max_sge_rd = own.max_sge_rd;
        wire.max_cq = own.max_cq;
        wire.max_cqe = own.max_cqe;
        wire.max_mr = own.max_mr;
        wire.max_pd = own.max_pd;
        wire.max_qp_rd_atom = own.max_qp_rd_atom;
        wire.max_res_rd_atom = own.max_res_rd_atom;
        wire.max_qp_init_rd_atom = own.max_qp_init_rd_atom;
        wire.atomic_cap = own.atomic_cap as u32;
        wire.max_mw = own.max_mw;
        wire.max_mcast_grp = own.max_mcast_grp;
        wire.max_mcast_qp_attach = own.max_mcast_qp_attach;
        wire.max_total_mcast_qp_attach = own.max_total_mcast_qp_attach;
        wire.max_ah = own.max_ah;
        wire.max_srq = own.max_srq;
        wire.max_srq_wr = own.max_srq_wr;
        wire.max_srq_sge = own.max_srq_sge;
        wire.max_pkeys = own.max_pkeys;
        wire.local_ca_ack_delay = own.local_ca_ack_delay;
        wire.phys_port_cnt = own.phys_port_cnt;
        wire
    }
}
