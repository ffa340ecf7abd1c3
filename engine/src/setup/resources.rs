//! Memory, completion queue and queue pairs of a test.

use rustix::rand::{GetRandomFlags, getrandom};
use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, CompletionQueue, CqInit, MemoryRegion, ProtectionDomain, QpCapabilities, QpInit,
    QpType, QueuePair, VerbsError,
};

use super::adapter::Adapter;
use super::layout::{Layout, Place};
use crate::failure::Failure;
use crate::options::{Machine, Params};
use crate::words::{Connection, Verb};

/// Registered blocks of memory.
pub(crate) struct Memory {
    pub(crate) layout: Layout,
    blocks: Vec<Block>,
}

struct Block {
    region: Box<dyn MemoryRegion>,
    buffer: Buffer,
}

/// The queues of a test. Work requests carry the index of their queue pair.
pub(crate) struct Queues {
    pub(crate) send_cq: Box<dyn CompletionQueue>,
    /// Where receives complete, if messages consume any.
    pub(crate) recv_cq: Option<Box<dyn CompletionQueue>>,
    pub(crate) qps: Vec<Box<dyn QueuePair>>,
    /// Inline bytes that every queue pair grants.
    pub(crate) inline: u32,
}

/// Everything a test needs of the device.
pub(crate) struct Resources {
    pub(crate) queues: Queues,
    pub(crate) memory: Memory,
    _domain: Box<dyn ProtectionDomain>,
}

impl Resources {
    /// Allocates and registers memory, and makes the queues; queue pairs are
    /// left in RESET.
    pub(crate) fn new(adapter: &Adapter, params: &Params, layout: Layout) -> Result<Self, Failure> {
        let context = &*adapter.context;
        let domain = context.alloc_pd().map_err(|error| {
            failed(
                "Couldn't allocate PD\n",
                "making a protection domain",
                error,
            )
        })?;
        let memory = Memory::new(adapter, &*domain, params, layout)?;
        let queues = Queues::new(adapter, &*domain, params)?;
        Ok(Self {
            queues,
            memory,
            _domain: domain,
        })
    }
}

impl Memory {
    fn new(
        adapter: &Adapter,
        domain: &dyn ProtectionDomain,
        params: &Params,
        layout: Layout,
    ) -> Result<Self, Failure> {
        let length = layout.block_len().unwrap_or(usize::MAX);
        let blocks = (0..layout.blocks())
            .map(|_| {
                let buffer = Buffer::allocate(length).map_err(|source| Failure::Memory {
                    bytes: length as u64,
                    source,
                })?;
                let region = adapter
                    .context
                    .reg_mr(domain, buffer.whole(), region_access(params))
                    .map_err(|error| {
                        let stock = format!("Couldn't allocate MR with error={}\n", error.errno());
                        failed(&stock, "registering the memory of the messages", error)
                    })?;
                Ok(Block { region, buffer })
            })
            .collect::<Result<_, Failure>>()?;
        let memory = Self { layout, blocks };
        // A passive end sends nothing; ib_write_lat starts from zeroes.
        let sends = params.machine == Machine::Client
            || params.bidirectional
            || !params.tool.is_bandwidth();
        if sends && !params.polls_memory() {
            for qp in 0..layout.qps {
                memory.fill_with_noise(layout.sends_from(qp))?;
            }
        }
        Ok(memory)
    }

    /// Fills an area with bytes that don't compress.
    fn fill_with_noise(&self, area: Place) -> Result<(), Failure> {
        let mut noise = [0; 64 << 10];
        // A signal may cut this short, which leaves zeros: they do as well.
        getrandom(&mut noise[..], GetRandomFlags::empty()).map_err(std::io::Error::from)?;
        let length = self.layout.area();
        for start in (0..length).step_by(noise.len()) {
            let rest = noise.len().min(length - start);
            // Inside the buffer by the layout.
            let _ = self.buffer(area).write(area.offset + start, &noise[..rest]);
        }
        Ok(())
    }

    /// The buffer that a place lies in.
    pub(crate) fn buffer(&self, place: Place) -> &Buffer {
        &self.blocks[place.block].buffer
    }

    /// Virtual address of a place.
    pub(crate) fn addr(&self, place: Place) -> u64 {
        self.buffer(place).addr() + place.offset as u64
    }

    /// Local key of a place.
    pub(crate) fn lkey(&self, place: Place) -> u32 {
        self.blocks[place.block].region.lkey()
    }

    /// Remote key of a place.
    pub(crate) fn rkey(&self, place: Place) -> u32 {
        self.blocks[place.block].region.rkey()
    }
}

impl Queues {
    fn new(
        adapter: &Adapter,
        domain: &dyn ProtectionDomain,
        params: &Params,
    ) -> Result<Self, Failure> {
        let context = &*adapter.context;
        let create = |depth: u32, stock, doing| {
            let init = CqInit {
                depth: depth.saturating_mul(params.qps),
                channel: None,
            };
            let created = context.create_cq(&init);
            created.map_err(|error| failed(stock, doing, error))
        };
        let send_cq = create(
            params.tx_depth,
            "Couldn't create CQ\n",
            "making a completion queue; -t and -q decide its size",
        )?;
        let recv_cq = params
            .has_receive_completions()
            .then(|| {
                create(
                    params.rx_depth,
                    "Couldn't create a receiver CQ\n",
                    "making a completion queue for receives; -r and -q decide its size",
                )
            })
            .transpose()?;
        let init = QpInit {
            qp_type: qp_type(params.connection)?,
            send_cq: &*send_cq,
            recv_cq: &**recv_cq.as_ref().unwrap_or(&send_cq),
            srq: None,
            xrcd: None,
            cap: QpCapabilities {
                max_send_wr: params.tx_depth,
                max_recv_wr: params.rx_depth,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: adapter.inline,
            },
            sq_sig_all: false,
        };
        let qps: Vec<_> = (0..params.qps)
            .map(|_| context.create_qp(domain, &init))
            .collect::<Result<_, _>>()
            .map_err(|error| {
                failed(
                    "Unable to create QP.\nFailed to create QP.\n",
                    "making the queue pairs; -q is their number, -t and -I their size",
                    error,
                )
            })?;
        let inline = qps
            .iter()
            .map(|qp| qp.capabilities().max_inline_data)
            .min()
            .unwrap_or(0);
        Ok(Self {
            send_cq,
            recv_cq,
            qps,
            inline,
        })
    }
}

fn failed(stock: &str, doing: &'static str, source: VerbsError) -> Failure {
    Failure::Verbs {
        stock: format!("{stock} Couldn't create IB resources\n"),
        doing,
        source,
    }
}

fn qp_type(connection: Connection) -> Result<QpType, Failure> {
    match connection {
        Connection::Rc => Ok(QpType::Rc),
        Connection::Uc => Ok(QpType::Uc),
        Connection::Ud => Ok(QpType::Ud),
        Connection::RawEth | Connection::Xrc | Connection::Dc | Connection::Srd => Err(
            Failure::Unsupported("this transport service is not supported yet: use -c RC"),
        ),
    }
}

/// What the peer may do in our memory.
fn region_access(params: &Params) -> AccessFlags {
    let mut access = AccessFlags::LOCAL_WRITE
        | match params.verb() {
            Verb::Write | Verb::WriteImm => AccessFlags::REMOTE_WRITE,
            Verb::Read => AccessFlags::REMOTE_READ,
            Verb::Atomic => AccessFlags::REMOTE_ATOMIC,
            Verb::Send | Verb::SendImm => AccessFlags::empty(),
        };
    access.set(AccessFlags::RELAXED_ORDERING, params.relaxed_ordering);
    access
}
