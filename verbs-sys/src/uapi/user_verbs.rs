//! Commands of a uverbs device and what belongs to them (`ib_user_verbs.h`).
//!
//! Where a command is answered, its first field is the address of the answer.
//! `INVOKE_WRITE` ignores it.

/// `IB_USER_VERBS_CMD_*`: numbers of the commands.
pub(crate) mod command {
    /// `IB_USER_VERBS_CMD_FLAG_EXTENDED`: marks the extended commands.
    pub(crate) const EXTENDED: u32 = 0x8000_0000;

    pub(crate) const GET_CONTEXT: u32 = 0;
    pub(crate) const QUERY_DEVICE: u32 = 1;
    pub(crate) const QUERY_PORT: u32 = 2;
    pub(crate) const ALLOC_PD: u32 = 3;
    pub(crate) const DEALLOC_PD: u32 = 4;
    pub(crate) const CREATE_AH: u32 = 5;
    pub(crate) const DESTROY_AH: u32 = 8;
    pub(crate) const REG_MR: u32 = 9;
    pub(crate) const DEREG_MR: u32 = 13;
    pub(crate) const ALLOC_MW: u32 = 14;
    pub(crate) const DEALLOC_MW: u32 = 16;
    pub(crate) const CREATE_COMP_CHANNEL: u32 = 17;
    pub(crate) const CREATE_CQ: u32 = 18;
    pub(crate) const DESTROY_CQ: u32 = 20;
    pub(crate) const REQ_NOTIFY_CQ: u32 = 23;
    pub(crate) const CREATE_QP: u32 = 24;
    pub(crate) const QUERY_QP: u32 = 25;
    pub(crate) const MODIFY_QP: u32 = 26;
    pub(crate) const DESTROY_QP: u32 = 27;
    pub(crate) const POST_SEND: u32 = 28;
    pub(crate) const ATTACH_MCAST: u32 = 30;
    pub(crate) const DETACH_MCAST: u32 = 31;
    pub(crate) const CREATE_SRQ: u32 = 32;
    pub(crate) const MODIFY_SRQ: u32 = 33;
    pub(crate) const DESTROY_SRQ: u32 = 35;
    pub(crate) const OPEN_XRCD: u32 = 37;
    pub(crate) const CLOSE_XRCD: u32 = 38;
    pub(crate) const CREATE_XSRQ: u32 = 39;
    pub(crate) const EX_QUERY_DEVICE: u32 = EXTENDED | QUERY_DEVICE;
}

/// `enum ib_uverbs_qp_type`.
pub(crate) mod qp_type {
    pub(crate) const RC: u8 = 2;
    pub(crate) const UC: u8 = 3;
    pub(crate) const UD: u8 = 4;
    pub(crate) const XRC_INI: u8 = 9;
    pub(crate) const XRC_TGT: u8 = 10;
}

/// `enum ib_uverbs_srq_type`.
pub(crate) mod srq_type {
    pub(crate) const BASIC: u32 = 0;
    pub(crate) const XRC: u32 = 1;
}

/// `IB_SRQ_LIMIT` of `enum ib_srq_attr_mask`: which attribute is changed.
pub(crate) const SRQ_LIMIT: u32 = 2;

kernel_structs! {
    /// The request of commands that have nothing but an answer.
    AnswerOnly(8) { response: u64 }

    /// The request of commands that release an object without an answer.
    HandleOnly(4) { handle: u32 }

    /// The request of commands that release an object and count its events.
    Destroy(16) { response: u64, handle: u32, reserved: u32 }

    /// `ib_uverbs_get_context_resp`.
    GetContextResp(8) { async_fd: u32, num_comp_vectors: u32 }

    /// `ib_uverbs_query_device_resp`.
    QueryDeviceResp(176) {
        fw_ver: u64,
        /// Big-endian.
        node_guid: [u8; 8],
        /// Big-endian.
        sys_image_guid: [u8; 8],
        max_mr_size: u64,
        page_size_cap: u64,
        vendor_id: u32,
        vendor_part_id: u32,
        hw_ver: u32,
        max_qp: u32,
        max_qp_wr: u32,
        device_cap_flags: u32,
        max_sge: u32,
        max_sge_rd: u32,
        max_cq: u32,
        max_cqe: u32,
        max_mr: u32,
        max_pd: u32,
        max_qp_rd_atom: u32,
        max_ee_rd_atom: u32,
        max_res_rd_atom: u32,
        max_qp_init_rd_atom: u32,
        max_ee_init_rd_atom: u32,
        atomic_cap: u32,
        max_ee: u32,
        max_rdd: u32,
        max_mw: u32,
        max_raw_ipv6_qp: u32,
        max_raw_ethy_qp: u32,
        max_mcast_grp: u32,
        max_mcast_qp_attach: u32,
        max_total_mcast_qp_attach: u32,
        max_ah: u32,
        max_fmr: u32,
        max_map_per_fmr: u32,
        max_srq: u32,
        max_srq_wr: u32,
        max_srq_sge: u32,
        max_pkeys: u16,
        local_ca_ack_delay: u8,
        phys_port_cnt: u8,
        reserved: [u8; 4],
    }

    /// `ib_uverbs_ex_query_device`.
    ExQueryDevice(8) { comp_mask: u32, reserved: u32 }

    /// `ib_uverbs_ex_query_device_resp`.
    ExQueryDeviceResp(304) {
        base: QueryDeviceResp,
        comp_mask: u32,
        response_length: u32,
        odp_general_caps: u64,
        odp_rc: u32,
        odp_uc: u32,
        odp_ud: u32,
        odp_reserved: u32,
        timestamp_mask: u64,
        /// kHz.
        hca_core_clock: u64,
        device_cap_flags_ex: u64,
        rss_caps: [u32; 4],
        max_wq_type_rq: u32,
        raw_packet_caps: u32,
        tm_caps: [u32; 6],
        cq_moderation: [u32; 2],
        max_dm_size: u64,
        odp_xrc: u32,
        reserved: u32,
    }

    /// `ib_uverbs_query_port`.
    QueryPort(16) { response: u64, port_num: u8, reserved: [u8; 7] }

    /// `ib_uverbs_query_port_resp`.
    QueryPortResp(40) {
        port_cap_flags: u32,
        max_msg_sz: u32,
        bad_pkey_cntr: u32,
        qkey_viol_cntr: u32,
        gid_tbl_len: u32,
        pkey_tbl_len: u16,
        lid: u16,
        sm_lid: u16,
        state: u8,
        max_mtu: u8,
        active_mtu: u8,
        lmc: u8,
        max_vl_num: u8,
        sm_sl: u8,
        subnet_timeout: u8,
        init_type_reply: u8,
        active_width: u8,
        active_speed: u8,
        phys_state: u8,
        link_layer: u8,
        flags: u8,
        reserved: u8,
    }

    /// `ib_uverbs_alloc_pd_resp`.
    AllocPdResp(4) { pd_handle: u32 }

    /// `ib_uverbs_reg_mr`.
    RegMr(40) {
        response: u64,
        start: u64,
        length: u64,
        /// The address that peers use for `start`.
        hca_va: u64,
        pd_handle: u32,
        access_flags: u32,
    }

    /// `ib_uverbs_reg_mr_resp`.
    RegMrResp(12) { mr_handle: u32, lkey: u32, rkey: u32 }

    /// `ib_uverbs_alloc_mw`.
    AllocMw(16) { response: u64, pd_handle: u32, mw_type: u8, reserved: [u8; 3] }

    /// `ib_uverbs_alloc_mw_resp`.
    AllocMwResp(8) { mw_handle: u32, rkey: u32 }

    /// `ib_uverbs_global_route` and `ib_uverbs_ah_attr`: the path of an
    /// address handle. Not the same order as [`QpDest`].
    AhAttr(32) {
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        grh_reserved: u8,
        dlid: u16,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
        reserved: u8,
    }

    /// `ib_uverbs_create_ah`.
    CreateAh(56) {
        response: u64,
        user_handle: u64,
        pd_handle: u32,
        reserved: u32,
        attr: AhAttr,
    }

    /// `ib_uverbs_create_ah_resp`.
    CreateAhResp(4) { ah_handle: u32 }

    /// `ib_uverbs_create_comp_channel_resp`.
    CreateCompChannelResp(4) { fd: i32 }

    /// `ib_uverbs_create_cq`.
    CreateCq(32) {
        response: u64,
        user_handle: u64,
        cqe: u32,
        comp_vector: u32,
        /// -1 is none.
        comp_channel: i32,
        reserved: u32,
    }

    /// `ib_uverbs_create_cq_resp`.
    CreateCqResp(8) { cq_handle: u32, cqe: u32 }

    /// `ib_uverbs_destroy_cq_resp`.
    DestroyCqResp(8) { comp_events_reported: u32, async_events_reported: u32 }

    /// `ib_uverbs_req_notify_cq`.
    ReqNotifyCq(8) { cq_handle: u32, solicited_only: u32 }

    /// `ib_uverbs_qp_cap`.
    QpCap(20) {
        max_send_wr: u32,
        max_recv_wr: u32,
        max_send_sge: u32,
        max_recv_sge: u32,
        max_inline_data: u32,
    }

    /// `ib_uverbs_create_qp`.
    CreateQp(56) {
        response: u64,
        user_handle: u64,
        /// For an XRC target the domain's handle.
        pd_handle: u32,
        send_cq_handle: u32,
        recv_cq_handle: u32,
        srq_handle: u32,
        cap: QpCap,
        sq_sig_all: u8,
        qp_type: u8,
        is_srq: u8,
        reserved: u8,
    }

    /// `ib_uverbs_create_qp_resp`.
    CreateQpResp(32) { qp_handle: u32, qpn: u32, cap: QpCap, reserved: u32 }

    /// `ib_uverbs_qp_dest`: the path of a queue pair. Not the same order as
    /// [`AhAttr`].
    QpDest(32) {
        dgid: [u8; 16],
        flow_label: u32,
        dlid: u16,
        reserved: u16,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        sl: u8,
        src_path_bits: u8,
        static_rate: u8,
        is_global: u8,
        port_num: u8,
    }

    /// `ib_uverbs_modify_qp`.
    ModifyQp(112) {
        dest: QpDest,
        alt_dest: QpDest,
        qp_handle: u32,
        attr_mask: u32,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
        en_sqd_async_notify: u8,
        max_rd_atomic: u8,
        max_dest_rd_atomic: u8,
        min_rnr_timer: u8,
        port_num: u8,
        timeout: u8,
        retry_cnt: u8,
        rnr_retry: u8,
        alt_port_num: u8,
        alt_timeout: u8,
        reserved: [u8; 2],
    }

    /// `ib_uverbs_query_qp`.
    QueryQp(16) { response: u64, qp_handle: u32, attr_mask: u32 }

    /// `ib_uverbs_query_qp_resp`.
    QueryQpResp(128) {
        dest: QpDest,
        alt_dest: QpDest,
        cap: QpCap,
        qkey: u32,
        rq_psn: u32,
        sq_psn: u32,
        dest_qp_num: u32,
        qp_access_flags: u32,
        pkey_index: u16,
        alt_pkey_index: u16,
        qp_state: u8,
        cur_qp_state: u8,
        path_mtu: u8,
        path_mig_state: u8,
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
        sq_sig_all: u8,
        reserved: [u8; 5],
    }

    /// `ib_uverbs_destroy_qp_resp`, `ib_uverbs_destroy_srq_resp`.
    DestroyResp(4) { events_reported: u32 }

    /// `ib_uverbs_attach_mcast`, `ib_uverbs_detach_mcast`.
    AttachMcast(24) { gid: [u8; 16], qp_handle: u32, mlid: u16, reserved: u16 }

    /// `ib_uverbs_create_srq`.
    CreateSrq(32) {
        response: u64,
        user_handle: u64,
        pd_handle: u32,
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
    }

    /// `ib_uverbs_create_xsrq`.
    CreateXsrq(48) {
        response: u64,
        user_handle: u64,
        srq_type: u32,
        pd_handle: u32,
        max_wr: u32,
        max_sge: u32,
        srq_limit: u32,
        max_num_tags: u32,
        xrcd_handle: u32,
        cq_handle: u32,
    }

    /// `ib_uverbs_create_srq_resp`.
    CreateSrqResp(16) { srq_handle: u32, max_wr: u32, max_sge: u32, srqn: u32 }

    /// `ib_uverbs_modify_srq`.
    ModifySrq(16) { srq_handle: u32, attr_mask: u32, max_wr: u32, srq_limit: u32 }

    /// `ib_uverbs_open_xrcd`.
    OpenXrcd(16) { response: u64, fd: i32, oflags: u32 }

    /// `ib_uverbs_open_xrcd_resp`.
    OpenXrcdResp(4) { xrcd_handle: u32 }

    /// `ib_uverbs_post_send`, as a doorbell: without work requests.
    PostSend(24) {
        response: u64,
        qp_handle: u32,
        wr_count: u32,
        sge_count: u32,
        /// At least the size of `ib_uverbs_send_wr`, 56.
        wqe_size: u32,
    }

    /// A doorbell as it is written: `ib_uverbs_cmd_hdr` and its structure.
    Doorbell(32) { command: u32, in_words: u16, out_words: u16, body: PostSend }

    /// `ib_uverbs_post_send_resp`.
    PostSendResp(4) { bad_wr: u32 }

    /// `ib_uverbs_async_event_desc`: what an event descriptor delivers.
    AsyncEventDesc(16) { element: u64, event_type: u32, reserved: u32 }

    /// `ib_uverbs_comp_event_desc`: what a completion channel delivers.
    CompEventDesc(8) { cq_handle: u64 }

    /// `ib_uverbs_wc`: a completion, as rxe's queues hold it.
    Wc(48) {
        wr_id: u64,
        status: u32,
        opcode: u32,
        vendor_err: u32,
        byte_len: u32,
        /// Immediate data as on the wire, or a key as a number.
        imm_or_rkey: [u8; 4],
        qp_num: u32,
        src_qp: u32,
        /// The kernel's bits, `wc_flags`, not those of `ibv_wc_flags`.
        wc_flags: u32,
        pkey_index: u16,
        slid: u16,
        sl: u8,
        dlid_path_bits: u8,
        port_num: u8,
        reserved: u8,
    }
}

/// The size of the work requests that a doorbell doesn't have. The kernel wants
/// at least that of `ib_uverbs_send_wr`, 56; this is what rdma-core gives.
const SEND_WR_SIZE: u32 = 128;

impl PostSend {
    /// The doorbell of a queue pair.
    #[inline]
    pub(crate) fn doorbell(qp_handle: u32) -> Self {
        Self {
            qp_handle,
            wqe_size: SEND_WR_SIZE,
            ..Self::default()
        }
    }
}

impl Doorbell {
    /// That of a queue pair, answered at the address `response`.
    #[inline]
    pub(crate) fn new(qp_handle: u32, response: u64) -> Self {
        Self {
            command: command::POST_SEND,
            in_words: (size_of::<Self>() / 4) as u16,
            out_words: (size_of::<PostSendResp>() / 4) as u16,
            body: PostSend {
                response,
                ..PostSend::doorbell(qp_handle)
            },
        }
    }
}

/// `enum ib_wc_flags` (`rdma/ib_verbs.h`), the bits of [`Wc::wc_flags`].
pub(crate) mod wc_flags {
    pub(crate) const GRH: u32 = 1;
    pub(crate) const WITH_IMM: u32 = 2;
    pub(crate) const WITH_INVALIDATE: u32 = 4;
}
