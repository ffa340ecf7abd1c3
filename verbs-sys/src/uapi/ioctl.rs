//! The attribute form of the commands: framing (`rdma_user_ioctl_cmds.h`),
//! objects, methods and attributes (`ib_user_ioctl_cmds.h`).

/// `RDMA_VERBS_IOCTL`: `_IOWR(0x1b, 1, struct ib_uverbs_ioctl_hdr)`.
pub(crate) const RDMA_VERBS_IOCTL: u32 = 0xc018_1b01;

/// `UVERBS_ATTR_F_MANDATORY`: the kernel fails when it doesn't know it.
pub(crate) const MANDATORY: u16 = 1;

/// `UVERBS_ATTR_UHW_IN`, `UVERBS_ATTR_UHW_OUT`: what the driver wants and answers.
pub(crate) const UHW_IN: u16 = 0x1000;
/// See [`UHW_IN`].
pub(crate) const UHW_OUT: u16 = 0x1001;

/// `IB_UVERBS_CORE_SUPPORT_OPTIONAL_MR_ACCESS`: optional access flags may be
/// passed to a kernel that doesn't use them.
pub(crate) const CORE_SUPPORT_OPTIONAL_MR_ACCESS: u64 = 1;

/// `enum ib_uverbs_qp_create_flags`: all sends are signalled.
pub(crate) const QP_CREATE_SQ_SIG_ALL: u32 = 1 << 12;

kernel_structs! {
    /// `ib_uverbs_ioctl_hdr`.
    Header(24) {
        /// Bytes, attributes included.
        length: u16,
        object_id: u16,
        method_id: u16,
        num_attrs: u16,
        reserved1: u64,
        driver_id: u32,
        reserved2: u32,
    }

    /// `ib_uverbs_attr`.
    Attr(16) { attr_id: u16, len: u16, flags: u16, attr_data: u16, data: u64 }

    /// `ib_uverbs_gid_entry`.
    GidEntry(32) {
        gid: [u8; 16],
        gid_index: u32,
        port_num: u32,
        gid_type: u32,
        netdev_ifindex: u32,
    }

    /// `ib_uverbs_query_port_resp_ex`.
    QueryPortRespEx(48) {
        legacy: super::user_verbs::QueryPortResp,
        port_cap_flags2: u16,
        reserved: [u8; 2],
        active_speed_ex: u32,
    }
}

/// `enum ib_uverbs_gid_type`.
pub(crate) mod gid_type {
    pub(crate) const IB: u32 = 0;
    pub(crate) const ROCE_V1: u32 = 1;
    pub(crate) const ROCE_V2: u32 = 2;
}

/// A method of an object: `UVERBS_OBJECT_*` and `UVERBS_METHOD_*`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Method {
    pub(crate) object: u16,
    pub(crate) method: u16,
}

impl Method {
    const fn new(object: u16, method: u16) -> Self {
        Self { object, method }
    }

    /// `UVERBS_METHOD_INVOKE_WRITE`: a command of the write interface.
    pub(crate) const INVOKE_WRITE: Self = Self::new(0, 0);
    pub(crate) const QUERY_PORT: Self = Self::new(0, 2);
    pub(crate) const GET_CONTEXT: Self = Self::new(0, 3);
    pub(crate) const QUERY_GID_TABLE: Self = Self::new(0, 5);
    pub(crate) const QUERY_GID_ENTRY: Self = Self::new(0, 6);
    pub(crate) const PD_DESTROY: Self = Self::new(1, 0);
    pub(crate) const CQ_CREATE: Self = Self::new(3, 0);
    pub(crate) const CQ_DESTROY: Self = Self::new(3, 1);
    pub(crate) const QP_CREATE: Self = Self::new(4, 0);
    pub(crate) const QP_DESTROY: Self = Self::new(4, 1);
    pub(crate) const SRQ_CREATE: Self = Self::new(5, 0);
    pub(crate) const SRQ_DESTROY: Self = Self::new(5, 1);
    pub(crate) const AH_DESTROY: Self = Self::new(6, 0);
    pub(crate) const MR_DESTROY: Self = Self::new(7, 1);
    pub(crate) const REG_DMABUF_MR: Self = Self::new(7, 4);
    pub(crate) const MW_DESTROY: Self = Self::new(8, 0);
    pub(crate) const XRCD_DESTROY: Self = Self::new(10, 0);
    pub(crate) const ASYNC_EVENT_ALLOC: Self = Self::new(16, 0);
}
