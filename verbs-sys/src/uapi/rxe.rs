//! What rxe puts into its answers and its mapped queues (`rdma_user_rxe.h`).

/// `RXE_NETWORK_TYPE_IPV4`, `_IPV6`.
pub(crate) const NETWORK_TYPE_IPV4: u8 = 1;
/// See [`NETWORK_TYPE_IPV4`].
pub(crate) const NETWORK_TYPE_IPV6: u8 = 2;

kernel_structs! {
    /// `mminfo`: where a queue can be mapped.
    MmInfo(16) { offset: u64, size: u32, pad: u32 }

    /// `rxe_create_cq_resp`.
    CreateCqResp(16) { mi: MmInfo }

    /// `rxe_create_qp_resp`.
    CreateQpResp(32) { rq_mi: MmInfo, sq_mi: MmInfo }

    /// `rxe_create_srq_resp`.
    CreateSrqResp(24) { mi: MmInfo, srq_num: u32, reserved: u32 }

    /// `rxe_modify_srq_cmd`.
    ModifySrqCmd(8) { mmap_info_addr: u64 }

    /// `rxe_create_ah_resp`. Kernels before 5.16 leave it alone.
    CreateAhResp(8) { ah_num: u32, reserved: u32 }

    /// `rxe_av`: a path, for kernels that don't number their address handles.
    Av(88) {
        port_num: u8,
        network_type: u8,
        dmac: [u8; 6],
        dgid: [u8; 16],
        flow_label: u32,
        sgid_index: u8,
        hop_limit: u8,
        traffic_class: u8,
        reserved: u8,
        /// `sockaddr_in` or `sockaddr_in6` of our side.
        source: [u8; 28],
        /// That of the peer.
        destination: [u8; 28],
    }

    /// The head of `rxe_send_wr`, up to its union.
    SendWr(24) {
        wr_id: u64,
        /// `num_sge` of kernels before 5.15.
        reserved: u32,
        opcode: u32,
        send_flags: u32,
        /// Immediate data as on the wire, or a key as a number.
        imm_or_rkey: [u8; 4],
    }

    /// `wr.rdma` of `rxe_send_wr`.
    RdmaWr(16) { remote_addr: u64, rkey: u32, reserved: u32 }

    /// `wr.atomic`.
    AtomicWr(32) { remote_addr: u64, compare_add: u64, swap: u64, rkey: u32, reserved: u32 }

    /// `wr.ud`, with the address vector that follows it (at the same place in
    /// kernels that have it elsewhere in their declaration).
    UdWr(120) {
        remote_qpn: u32,
        remote_qkey: u32,
        pkey_index: u16,
        reserved: u16,
        ah_num: u32,
        pad: [u32; 4],
        av: Av,
    }

    /// `wr.mw`.
    MwWr(32) {
        addr: u64,
        length: u64,
        mr_lkey: u32,
        mw_rkey: u32,
        rkey: u32,
        access: u32,
    }

    /// `rxe_dma_info`, without the entries.
    DmaInfo(24) {
        length: u32,
        resid: u32,
        cur_sge: u32,
        num_sge: u32,
        sge_offset: u32,
        reserved: u32,
    }

    /// `rxe_sge`.
    Sge(16) { addr: u64, length: u32, lkey: u32 }

    /// `rxe_send_wqe` after its work request.
    SendWqeTail(64) {
        status: u32,
        state: u32,
        iova: u64,
        mask: u32,
        first_psn: u32,
        last_psn: u32,
        ack_length: u32,
        ssn: u32,
        has_rd_atomic: u32,
        dma: DmaInfo,
    }

    /// `rxe_send_wqe` up to its entries or inline data.
    SendWqe(208) {
        wr: SendWr,
        /// The union of `rxe_send_wr`, and the address vector with it.
        operands: [u64; 15],
        tail: SendWqeTail,
    }

    /// `rxe_recv_wqe`, without the entries.
    RecvWqe(40) { wr_id: u64, reserved: u32, padding: u32, dma: DmaInfo }
}

/// `enum ib_wr_opcode` (`rdma/ib_user_verbs.h`, `ib_uverbs_wr_opcode`).
pub(crate) mod opcode {
    pub(crate) const RDMA_WRITE: u32 = 0;
    pub(crate) const RDMA_WRITE_WITH_IMM: u32 = 1;
    pub(crate) const SEND: u32 = 2;
    pub(crate) const SEND_WITH_IMM: u32 = 3;
    pub(crate) const RDMA_READ: u32 = 4;
    pub(crate) const ATOMIC_CMP_AND_SWP: u32 = 5;
    pub(crate) const ATOMIC_FETCH_AND_ADD: u32 = 6;
    pub(crate) const LOCAL_INV: u32 = 7;
    pub(crate) const BIND_MW: u32 = 8;
    pub(crate) const SEND_WITH_INV: u32 = 9;
}

/// `IB_SEND_INLINE`; the other flags are those of [`crate::SendFlags`].
pub(crate) const SEND_INLINE: u32 = 1 << 3;

/// `struct rxe_queue_buf`: offsets of its fields, each on lines of its own.
pub(crate) mod queue {
    pub(crate) const LOG2_ELEM_SIZE: usize = 0;
    pub(crate) const INDEX_MASK: usize = 4;
    pub(crate) const PRODUCER_INDEX: usize = 128;
    pub(crate) const CONSUMER_INDEX: usize = 256;
    pub(crate) const DATA: usize = 384;
}
