//! What siw puts into its answers and its mapped queues (`siw-abi.h`).

/// `SIW_MAX_SGE`.
pub(crate) const MAX_SGE: usize = 6;

/// `SIW_INVAL_UOBJ_KEY`: there is no such queue.
pub(crate) const NO_KEY: u64 = 0x90000;

kernel_structs! {
    /// `siw_uresp_alloc_ctx`.
    AllocContextResp(8) { dev_id: u32, pad: u32 }

    /// `siw_uresp_create_cq`.
    CreateCqResp(16) { cq_id: u32, num_cqe: u32, cq_key: u64 }

    /// `siw_uresp_create_qp`.
    CreateQpResp(32) {
        qp_id: u32,
        num_sqe: u32,
        num_rqe: u32,
        pad: u32,
        sq_key: u64,
        rq_key: u64,
    }

    /// `siw_uresp_create_srq`.
    CreateSrqResp(16) { num_rqe: u32, pad: u32, srq_key: u64 }

    /// `siw_sge`.
    Sge(16) { laddr: u64, length: u32, lkey: u32 }

    /// `siw_sqe`.
    Sqe(120) {
        id: u64,
        flags: u16,
        num_sge: u8,
        opcode: u8,
        rkey: u32,
        raddr: u64,
        /// Entries, or inline data over all but the first.
        sge: [Sge; MAX_SGE],
    }

    /// `siw_rqe`.
    Rqe(112) {
        id: u64,
        flags: u16,
        num_sge: u8,
        opcode: u8,
        unused: u32,
        sge: [Sge; MAX_SGE],
    }

    /// `siw_cqe`.
    Cqe(32) {
        id: u64,
        flags: u8,
        opcode: u8,
        status: u16,
        bytes: u32,
        /// Immediate data or an invalidated key.
        imm_or_stag: u64,
        qp_id: u64,
    }
}

/// Offset of the flags in all three entries: they decide whose an entry is.
pub(crate) const FLAGS_OFFSET: usize = 8;

/// Where the inline data of a [`Sqe`] begins, and how much fits.
pub(crate) const INLINE_OFFSET: usize = 40;
/// See [`INLINE_OFFSET`].
pub(crate) const MAX_INLINE: usize = 80;

/// `enum siw_wqe_flags`.
pub(crate) mod flags {
    pub(crate) const VALID: u16 = 1;
    pub(crate) const INLINE: u16 = 1 << 1;
    pub(crate) const SIGNALLED: u16 = 1 << 2;
    pub(crate) const SOLICITED: u16 = 1 << 3;
    pub(crate) const READ_FENCE: u16 = 1 << 4;
    pub(crate) const REM_INVAL: u8 = 1 << 5;
}

/// `enum siw_opcode`.
pub(crate) mod opcode {
    pub(crate) const WRITE: u8 = 0;
    pub(crate) const READ: u8 = 1;
    pub(crate) const READ_LOCAL_INV: u8 = 2;
    pub(crate) const SEND: u8 = 3;
    pub(crate) const SEND_REMOTE_INV: u8 = 5;
    pub(crate) const RECEIVE: u8 = 8;
}

/// `enum siw_notify_flags`: the control word behind a completion queue.
pub(crate) mod notify {
    pub(crate) const SOLICITED: u32 = 1;
    pub(crate) const ANY: u32 = 3;
}
