//! `rdma/rdma_user_cm.h`, and what its answers contain of `rdma/ib_user_sa.h`
//! and `rdma/ib_user_verbs.h`. ABI version 4.

use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// `RDMA_USER_CM_ABI_VERSION`.
pub(crate) const ABI_VERSION: u32 = 4;

/// The private data fields of all structures (`RDMA_MAX_PRIVATE_DATA`).
pub(crate) const MAX_PRIVATE_DATA: usize = 256;

/// `struct sockaddr_storage`.
pub(crate) const SOCKADDR_STORAGE: usize = 128;

/// A command's body. The channel puts the header in front, and the address of
/// the response where [`Request::set_response`] says.
pub(crate) trait Request: IntoBytes + Immutable {
    /// `RDMA_USER_CM_CMD_*`.
    const COMMAND: Command;
    /// What the kernel writes back; `()` if nothing.
    type Response: FromBytes + IntoBytes;

    /// Where the kernel shall write the response. Commands without one ignore it.
    fn set_response(&mut self, _address: u64) {}
}

/// `RDMA_USER_CM_CMD_*`, those that are used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u32)]
pub(crate) enum Command {
    CreateId = 0,
    DestroyId = 1,
    ResolveRoute = 4,
    Connect = 6,
    Listen = 7,
    Accept = 8,
    Reject = 9,
    Disconnect = 10,
    InitQpAttr = 11,
    GetEvent = 12,
    SetOption = 14,
    LeaveMulticast = 17,
    Query = 19,
    Bind = 20,
    ResolveAddr = 21,
    JoinMulticast = 22,
}

impl Command {
    /// The kernel's name, for messages.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::CreateId => "CREATE_ID",
            Self::DestroyId => "DESTROY_ID",
            Self::ResolveRoute => "RESOLVE_ROUTE",
            Self::Connect => "CONNECT",
            Self::Listen => "LISTEN",
            Self::Accept => "ACCEPT",
            Self::Reject => "REJECT",
            Self::Disconnect => "DISCONNECT",
            Self::InitQpAttr => "INIT_QP_ATTR",
            Self::GetEvent => "GET_EVENT",
            Self::SetOption => "SET_OPTION",
            Self::LeaveMulticast => "LEAVE_MCAST",
            Self::Query => "QUERY",
            Self::Bind => "BIND",
            Self::ResolveAddr => "RESOLVE_ADDR",
            Self::JoinMulticast => "JOIN_MCAST",
        }
    }
}

/// Declares a structure of the kernel and asserts its size. With a command,
/// it is that command's body; `respond` names the field for the response's address.
macro_rules! structure {
    (
        $(#[$doc:meta])*
        $name:ident, $size:literal
        $(, $command:ident => $response:ty $(, respond $field:ident)?)?
        { $($(#[$fdoc:meta])* $member:ident: $kind:ty,)* }
    ) => {
        $(#[$doc])*
        #[derive(Debug, Clone, Copy, IntoBytes, FromBytes, KnownLayout, Immutable)]
        #[repr(C)]
        pub(crate) struct $name {
            $($(#[$fdoc])* pub(crate) $member: $kind,)*
        }
        const _: () = assert!(size_of::<$name>() == $size);
        $(
            impl Request for $name {
                const COMMAND: Command = Command::$command;
                type Response = $response;
                $(
                    fn set_response(&mut self, address: u64) {
                        self.$field = address;
                    }
                )?
            }
        )?
    };
}

structure! {
    /// `struct rdma_ucm_cmd_hdr`: in front of every command.
    Header, 8 {
        command: u32,
        /// Bytes after this header.
        length: u16,
        /// Bytes of the response.
        response_length: u16,
    }
}

structure! {
    /// `struct rdma_ucm_create_id`.
    CreateId, 24, CreateId => IdNumber, respond response {
        /// Comes back with every event of the identifier.
        uid: u64,
        response: u64,
        port_space: u16,
        qp_type: u8,
        reserved: [u8; 5],
    }
}

structure! {
    /// `struct rdma_ucm_create_id_resp`; also that of the multicast join.
    IdNumber, 4 {
        id: u32,
    }
}

structure! {
    /// `struct rdma_ucm_destroy_id`.
    DestroyId, 16, DestroyId => EventsReported, respond response {
        response: u64,
        id: u32,
        reserved: u32,
    }
}

structure! {
    /// `struct rdma_ucm_destroy_id` with a join's number.
    LeaveMulticast, 16, LeaveMulticast => EventsReported, respond response {
        response: u64,
        id: u32,
        reserved: u32,
    }
}

structure! {
    /// `struct rdma_ucm_destroy_id_resp`.
    EventsReported, 4 {
        /// Events that were delivered for the identifier.
        events: u32,
    }
}

structure! {
    /// `struct rdma_ucm_bind`.
    Bind, 136, Bind => () {
        id: u32,
        addr_size: u16,
        reserved: u16,
        addr: [u8; SOCKADDR_STORAGE],
    }
}

structure! {
    /// `struct rdma_ucm_resolve_addr`.
    ResolveAddr, 272, ResolveAddr => () {
        id: u32,
        timeout_ms: u32,
        /// 0: the kernel chooses.
        src_size: u16,
        dst_size: u16,
        reserved: u32,
        src: [u8; SOCKADDR_STORAGE],
        dst: [u8; SOCKADDR_STORAGE],
    }
}

structure! {
    /// `struct rdma_ucm_resolve_route`.
    ResolveRoute, 8, ResolveRoute => () {
        id: u32,
        timeout_ms: u32,
    }
}

structure! {
    /// `struct rdma_ucm_query`, option `RDMA_USER_CM_QUERY_ADDR` or `_GID`.
    Query, 16, Query => QueryAddrResponse, respond response {
        response: u64,
        id: u32,
        option: u32,
    }
}

/// `RDMA_USER_CM_QUERY_ADDR`: addresses as the user gave them.
pub(crate) const QUERY_ADDR: u32 = 0;
/// `RDMA_USER_CM_QUERY_GID`: the same as `struct sockaddr_ib`.
pub(crate) const QUERY_GID: u32 = 2;

structure! {
    /// `struct rdma_ucm_query_addr_resp`.
    QueryAddrResponse, 280 {
        /// As stored: big endian; 0 while there is no device.
        node_guid: [u8; 8],
        port_num: u8,
        reserved: u8,
        pkey: u16,
        src_size: u16,
        dst_size: u16,
        src: [u8; SOCKADDR_STORAGE],
        dst: [u8; SOCKADDR_STORAGE],
        /// `RDMA_NLDEV_ATTR_DEV_INDEX` of the device.
        ibdev_index: u32,
        reserved2: u32,
    }
}

structure! {
    /// `struct rdma_ucm_conn_param`.
    ConnParam, 272 {
        qp_num: u32,
        qkey: u32,
        private_data: [u8; MAX_PRIVATE_DATA],
        private_data_len: u8,
        srq: u8,
        responder_resources: u8,
        initiator_depth: u8,
        flow_control: u8,
        retry_count: u8,
        rnr_retry_count: u8,
        valid: u8,
    }
}

structure! {
    /// `struct rdma_ucm_ece`: options of vendors, which nobody here uses.
    Ece, 8 {
        vendor_id: u32,
        attr_mod: u32,
    }
}

structure! {
    /// `struct rdma_ucm_connect`.
    Connect, 288, Connect => () {
        param: ConnParam,
        id: u32,
        reserved: u32,
        ece: Ece,
    }
}

structure! {
    /// `struct rdma_ucm_listen`.
    Listen, 8, Listen => () {
        id: u32,
        backlog: u32,
    }
}

structure! {
    /// `struct rdma_ucm_accept`.
    Accept, 296, Accept => () {
        /// From now on comes back with every event of the identifier.
        uid: u64,
        param: ConnParam,
        id: u32,
        reserved: u32,
        ece: Ece,
    }
}

structure! {
    /// `struct rdma_ucm_reject`.
    Reject, 264, Reject => () {
        id: u32,
        private_data_len: u8,
        /// 0: rejected by the consumer.
        reason: u8,
        reserved: [u8; 2],
        private_data: [u8; MAX_PRIVATE_DATA],
    }
}

structure! {
    /// `struct rdma_ucm_disconnect`.
    Disconnect, 4, Disconnect => () {
        id: u32,
    }
}

structure! {
    /// `struct rdma_ucm_init_qp_attr`.
    InitQpAttr, 16, InitQpAttr => QpAttr, respond response {
        response: u64,
        id: u32,
        qp_state: u32,
    }
}

structure! {
    /// `struct ib_uverbs_global_route` and `struct ib_uverbs_ah_attr`.
    AhAttr, 32 {
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        reserved: u8,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
        reserved2: u8,
    }
}

structure! {
    /// `struct ib_uverbs_qp_attr`.
    QpAttr, 144 {
        /// `enum ib_qp_attr_mask`: which of the following are given.
        attr_mask: u32,
        qp_state: u32,
        cur_qp_state: u32,
        path_mtu: u32,
        path_mig_state: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        ah_attr: AhAttr,
        alt_ah_attr: AhAttr,
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        en_sqd_async_notify: u8,
        sq_draining: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        reserved: [u8; 5],
    }
}

structure! {
    /// `struct rdma_ucm_get_event`.
    GetEvent, 8, GetEvent => Event, respond response {
        response: u64,
    }
}

structure! {
    /// `struct rdma_ucm_event_resp`.
    Event, 336 {
        uid: u64,
        id: u32,
        event: u32,
        status: i32,
        /// A [`ConnParam`] or a [`UdParam`].
        param: [u8; 304],
        reserved: u32,
        ece: Ece,
    }
}

structure! {
    /// `struct rdma_ucm_ud_param`.
    UdParam, 304 {
        qp_num: u32,
        qkey: u32,
        ah_attr: AhAttr,
        private_data: [u8; MAX_PRIVATE_DATA],
        private_data_len: u8,
        reserved: [u8; 7],
    }
}

structure! {
    /// `struct rdma_ucm_set_option`.
    SetOption, 24, SetOption => () {
        /// Address of the value.
        optval: u64,
        id: u32,
        level: u32,
        optname: u32,
        optlen: u32,
    }
}

/// `RDMA_OPTION_ID`, the level of all options that are used.
pub(crate) const OPTION_LEVEL_ID: u32 = 0;

structure! {
    /// `struct rdma_ucm_join_mcast`.
    JoinMulticast, 152, JoinMulticast => IdNumber, respond response {
        response: u64,
        uid: u64,
        id: u32,
        addr_size: u16,
        join_flags: u16,
        addr: [u8; SOCKADDR_STORAGE],
    }
}

/// `RDMA_MC_JOIN_FLAG_FULLMEMBER`.
pub(crate) const JOIN_FULL_MEMBER: u16 = 0;
