//! Objects of devices: queue pairs, completion queues, regions, ...

use std::net::SocketAddr;

use super::attribute::{
    Attribute, DEV_DIM, DEV_INDEX, DRIVER, DRIVER_PRINT_TYPE, DRIVER_S32, DRIVER_S64,
    DRIVER_STRING, DRIVER_U32, DRIVER_U64, MAX_RANGE, MIN_RANGE, PORT_INDEX, RES_CM_ID, RES_CM_IDN,
    RES_CQ, RES_CQE, RES_CQN, RES_CTX, RES_CTXN, RES_DST_ADDR, RES_IOVA, RES_KERN_NAME, RES_LKEY,
    RES_LOCAL_DMA_LKEY, RES_LQPN, RES_MR, RES_MRLEN, RES_MRN, RES_PATH_MIG_STATE, RES_PD, RES_PDN,
    RES_PID, RES_POLL_CTX, RES_PS, RES_QP, RES_RAW, RES_RKEY, RES_RQ_PSN, RES_RQPN, RES_SQ_PSN,
    RES_SRC_ADDR, RES_SRQ, RES_SRQN, RES_STATE, RES_SUMMARY, RES_SUMMARY_ENTRY_CURR,
    RES_SUMMARY_ENTRY_NAME, RES_TYPE, RES_UNSAFE_GLOBAL_RKEY, RES_USECNT,
};
use super::parse::{Attributes, required};
use super::{Command, Nldev, NldevError, Request, Scope, Transport};

/// A kind of object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Table {
    /// Queue pairs.
    Qp,
    /// Connection manager ids.
    CmId,
    /// Completion queues.
    Cq,
    /// Memory regions.
    Mr,
    /// Protection domains.
    Pd,
    /// Contexts.
    Ctx,
    /// Shared receive queues.
    Srq,
}

impl Table {
    fn command(self, raw: bool) -> Command {
        match (self, raw) {
            (Self::Qp, false) => Command::ResQpGet,
            (Self::Qp, true) => Command::ResQpGetRaw,
            (Self::Cq, false) => Command::ResCqGet,
            (Self::Cq, true) => Command::ResCqGetRaw,
            (Self::Mr, false) => Command::ResMrGet,
            (Self::Mr, true) => Command::ResMrGetRaw,
            (Self::CmId, _) => Command::ResCmIdGet,
            (Self::Pd, _) => Command::ResPdGet,
            (Self::Ctx, _) => Command::ResCtxGet,
            (Self::Srq, _) => Command::ResSrqGet,
        }
    }

    /// The attribute that holds the objects of an answer.
    fn list(self) -> Attribute {
        match self {
            Self::Qp => RES_QP,
            Self::CmId => RES_CM_ID,
            Self::Cq => RES_CQ,
            Self::Mr => RES_MR,
            Self::Pd => RES_PD,
            Self::Ctx => RES_CTX,
            Self::Srq => RES_SRQ,
        }
    }

    /// The attribute that numbers an object.
    fn number(self) -> Attribute {
        match self {
            Self::Qp => RES_LQPN,
            Self::CmId => RES_CM_IDN,
            Self::Cq => RES_CQN,
            Self::Mr => RES_MRN,
            Self::Pd => RES_PDN,
            Self::Ctx => RES_CTXN,
            Self::Srq => RES_SRQN,
        }
    }

    /// What every object of this kind has to have.
    fn required(self, raw: bool) -> &'static [Attribute] {
        match self {
            _ if raw => &[RES_RAW],
            Self::Qp => &[RES_LQPN, RES_SQ_PSN, RES_TYPE, RES_STATE],
            Self::CmId => &[RES_STATE, RES_PS],
            Self::Cq => &[RES_CQE, RES_USECNT],
            Self::Mr => &[RES_MRLEN],
            Self::Pd => &[RES_USECNT],
            Self::Ctx => &[RES_CTXN],
            Self::Srq => &[RES_SRQN],
        }
    }
}

/// An object of any kind. What the kernel didn't tell, because the kind hasn't
/// got it or the caller lacks `CAP_NET_ADMIN`, is `None`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Object {
    /// Port, counted from 1.
    pub port: Option<u32>,
    /// Number of the queue pair.
    pub lqpn: Option<u32>,
    /// Number of the peer's queue pair.
    pub rqpn: Option<u32>,
    /// Next PSN of the receive queue.
    pub rq_psn: Option<u32>,
    /// Next PSN of the send queue.
    pub sq_psn: Option<u32>,
    /// `enum ib_mig_state`.
    pub path_mig_state: Option<u8>,
    /// `enum ib_qp_type` or `enum ib_srq_type`.
    pub kind: Option<u8>,
    /// `enum ib_qp_state` or `enum rdma_cm_state`.
    pub state: Option<u8>,
    /// Process that made it.
    pub pid: Option<u32>,
    /// Kernel module that made it.
    pub kern_name: Option<String>,
    /// `enum rdma_ucm_port_space`.
    pub port_space: Option<u32>,
    /// Own address.
    pub source: Option<SocketAddr>,
    /// Peer's address.
    pub destination: Option<SocketAddr>,
    /// Entries of the completion queue.
    pub cqe: Option<u32>,
    /// Users.
    pub users: Option<u64>,
    /// `enum ib_poll_context`.
    pub poll_context: Option<u8>,
    /// Adaptive moderation: 0 off, 1 on.
    pub adaptive_moderation: Option<u8>,
    /// Remote key.
    pub rkey: Option<u32>,
    /// Local key.
    pub lkey: Option<u32>,
    /// Start of the region.
    pub iova: Option<u64>,
    /// Bytes of the region.
    pub length: Option<u64>,
    /// Key for local DMA.
    pub local_dma_lkey: Option<u32>,
    /// Key to all memory.
    pub unsafe_global_rkey: Option<u32>,
    /// Number of the protection domain.
    pub pdn: Option<u32>,
    /// Number of the completion queue.
    pub cqn: Option<u32>,
    /// Number of the memory region.
    pub mrn: Option<u32>,
    /// Number of the connection manager id.
    pub cm_idn: Option<u32>,
    /// Number of the context.
    pub ctxn: Option<u32>,
    /// Number of the shared receive queue.
    pub srqn: Option<u32>,
    /// Queue pairs of the shared receive queue.
    pub qps: Vec<QpRange>,
    /// What the driver says.
    pub driver: Vec<DriverField>,
    /// The object as the driver holds it.
    pub raw: Option<Vec<u8>>,
}

/// Queue pair numbers of a shared receive queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum QpRange {
    /// One.
    One(u32),
    /// From the first to the last.
    Range(u32, u32),
}

/// A value of the driver with its name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DriverField {
    /// Name.
    pub key: String,
    /// Value.
    pub value: DriverValue,
    /// `enum rdma_nldev_print_type`: 0 decimal, 1 hexadecimal.
    pub print_type: u8,
}

/// A value of the driver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum DriverValue {
    /// Text.
    Text(String),
    /// 32 bits, signed.
    S32(i32),
    /// 32 bits.
    U32(u32),
    /// 64 bits, signed.
    S64(i64),
    /// 64 bits.
    U64(u64),
}

impl Object {
    fn read(table: Table, raw: bool, attributes: &Attributes<'_>) -> Result<Self, NldevError> {
        for attribute in table.required(raw) {
            if attributes.bytes(*attribute).is_none() {
                return Err(NldevError::Missing(*attribute));
            }
        }
        let qps = match table {
            Table::Srq if attributes.bytes(RES_QP).is_some() => qp_ranges(attributes)?,
            _ => Vec::new(),
        };
        Ok(Self {
            port: attributes.u32(PORT_INDEX)?,
            lqpn: attributes.u32(RES_LQPN)?,
            rqpn: attributes.u32(RES_RQPN)?,
            rq_psn: attributes.u32(RES_RQ_PSN)?,
            sq_psn: attributes.u32(RES_SQ_PSN)?,
            path_mig_state: attributes.u8(RES_PATH_MIG_STATE)?,
            kind: attributes.u8(RES_TYPE)?,
            state: attributes.u8(RES_STATE)?,
            pid: attributes.u32(RES_PID)?,
            kern_name: attributes.string(RES_KERN_NAME)?,
            port_space: attributes.u32(RES_PS)?,
            source: attributes.socket_address(RES_SRC_ADDR)?,
            destination: attributes.socket_address(RES_DST_ADDR)?,
            cqe: attributes.u32(RES_CQE)?,
            users: attributes.u64(RES_USECNT)?,
            poll_context: attributes.u8(RES_POLL_CTX)?,
            adaptive_moderation: attributes.u8(DEV_DIM)?,
            rkey: attributes.u32(RES_RKEY)?,
            lkey: attributes.u32(RES_LKEY)?,
            iova: attributes.u64(RES_IOVA)?,
            length: attributes.u64(RES_MRLEN)?,
            local_dma_lkey: attributes.u32(RES_LOCAL_DMA_LKEY)?,
            unsafe_global_rkey: attributes.u32(RES_UNSAFE_GLOBAL_RKEY)?,
            pdn: attributes.u32(RES_PDN)?,
            cqn: attributes.u32(RES_CQN)?,
            mrn: attributes.u32(RES_MRN)?,
            cm_idn: attributes.u32(RES_CM_IDN)?,
            ctxn: attributes.u32(RES_CTXN)?,
            srqn: attributes.u32(RES_SRQN)?,
            qps,
            driver: driver_fields(attributes)?,
            raw: attributes.bytes(RES_RAW).map(<[u8]>::to_vec),
        })
    }
}

fn qp_ranges(attributes: &Attributes<'_>) -> Result<Vec<QpRange>, NldevError> {
    let range = |entry: Attributes<'_>| {
        if let Some(number) = entry.u32(RES_LQPN)? {
            return Ok(QpRange::One(number));
        }
        Ok(QpRange::Range(
            required(MIN_RANGE, entry.u32(MIN_RANGE))?,
            required(MAX_RANGE, entry.u32(MAX_RANGE))?,
        ))
    };
    attributes.entries(RES_QP)?.into_iter().map(range).collect()
}

/// Fields come as a name, a print type when it isn't decimal, and a value.
fn driver_fields(attributes: &Attributes<'_>) -> Result<Vec<DriverField>, NldevError> {
    let Some(list) = attributes.bytes(DRIVER) else {
        return Ok(Vec::new());
    };
    let mut fields = Vec::new();
    let mut key: Option<String> = None;
    let mut print_type = 0;
    let list = Attributes::parse(list)?;
    for (number, payload) in list.iter() {
        let one = Attributes::single(number, payload);
        if key.is_none() {
            key = Some(required(DRIVER_STRING, one.string(DRIVER_STRING))?);
            continue;
        }
        if let Some(kind) = one.u8(DRIVER_PRINT_TYPE)? {
            print_type = kind;
            continue;
        }
        let value = if let Some(text) = one.string(DRIVER_STRING)? {
            DriverValue::Text(text)
        } else if let Some(value) = one.u32(DRIVER_S32)? {
            DriverValue::S32(value.cast_signed())
        } else if let Some(value) = one.u32(DRIVER_U32)? {
            DriverValue::U32(value)
        } else if let Some(value) = one.u64(DRIVER_S64)? {
            DriverValue::S64(value.cast_signed())
        } else {
            DriverValue::U64(required(DRIVER_U64, one.u64(DRIVER_U64))?)
        };
        fields.push(DriverField {
            key: key.take().unwrap_or_default(),
            value,
            print_type,
        });
        print_type = 0;
    }
    Ok(fields)
}

impl<T: Transport> Nldev<T> {
    /// How many objects of each kind a device has, in the kernel's order.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn summary(&mut self, device: u32) -> Result<Vec<(String, u64)>, NldevError> {
        let request = Request::new(Command::ResGet, Scope::One).u32(DEV_INDEX, device);
        self.ask_one("count the objects", request, |attributes| {
            let counts = attributes.entries(RES_SUMMARY)?.into_iter();
            let count = |entry: Attributes<'_>| {
                let name = entry.string(RES_SUMMARY_ENTRY_NAME);
                let current = entry.u64(RES_SUMMARY_ENTRY_CURR);
                Ok((
                    required(RES_SUMMARY_ENTRY_NAME, name)?,
                    required(RES_SUMMARY_ENTRY_CURR, current)?,
                ))
            };
            counts.map(count).collect()
        })
    }

    /// The objects of one kind; with `port`, those of one port as far as the
    /// kind has ports. `raw`: as the driver holds them, for queue pairs,
    /// completion queues and memory regions.
    ///
    /// # Errors
    /// When the kernel refuses, or answers something odd.
    pub fn objects(
        &mut self,
        table: Table,
        device: u32,
        port: Option<u32>,
        raw: bool,
    ) -> Result<Vec<Object>, NldevError> {
        let request = Request::new(table.command(raw), Scope::All).u32(DEV_INDEX, device);
        let answers = self.ask("list the objects", with_port(request, port), |attributes| {
            let entries = attributes.entries(table.list())?;
            let read = |entry| Object::read(table, raw, &entry);
            entries.into_iter().map(read).collect::<Result<Vec<_>, _>>()
        })?;
        Ok(answers.into_iter().flatten().collect())
    }

    /// One object by its number.
    ///
    /// # Errors
    /// When the kernel refuses (`ENOENT`, or `EINVAL` before Linux 5.3), or
    /// answers something odd.
    pub fn object(
        &mut self,
        table: Table,
        device: u32,
        port: Option<u32>,
        raw: bool,
        number: u32,
    ) -> Result<Object, NldevError> {
        let request = Request::new(table.command(raw), Scope::One).u32(DEV_INDEX, device);
        let request = with_port(request, port).u32(table.number(), number);
        self.ask_one("tell the object", request, |attributes| {
            Object::read(table, raw, attributes)
        })
    }
}

pub(super) fn with_port(request: Request, port: Option<u32>) -> Request {
    match port {
        Some(port) => request.u32(PORT_INDEX, port),
        None => request,
    }
}
