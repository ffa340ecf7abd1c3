//! Completion queues and queue pairs of a test.

use std::sync::Arc;

use verbs_sys::{
    AddressHandle, AddressVector, CompletionChannel, CompletionQueue, CqInit, ProtectionDomain,
    QpCapabilities, QpInit, QpType, QueuePair, SharedReceiveQueue, SrqInit, VerbsError,
};

use super::adapter::Adapter;
use super::credits::CreditMemory;
use super::layout::Layout;
use super::memory::Memory;
use crate::failure::Failure;
use crate::options::{Machine, Params};
use crate::run::{Sleeper, WORDS};
use crate::words::{Connection, Verb};

/// The queues of a test. Work requests carry the index of their queue pair.
pub(crate) struct Queues {
    pub(crate) send_cq: Box<dyn CompletionQueue>,
    /// Where receives complete, if messages consume any.
    pub(crate) recv_cq: Option<Box<dyn CompletionQueue>>,
    pub(crate) qps: Vec<Box<dyn QueuePair>>,
    /// Where all queue pairs take their receives from (`--use-srq`, XRC).
    pub(crate) srq: Option<Box<dyn SharedReceiveQueue>>,
    /// What both completion queues notify (`-e`).
    pub(crate) channel: Option<Arc<dyn CompletionChannel>>,
    /// Inline bytes that every queue pair grants.
    pub(crate) inline: u32,
}

impl Queues {
    /// What a loop over these queues does while there is nothing to do.
    pub(crate) fn sleeper(&self) -> Sleeper {
        Sleeper::new(self.channel.clone())
    }
}

/// Everything a test needs of the device.
pub(crate) struct Resources {
    pub(crate) queues: Queues,
    pub(crate) memory: Memory,
    /// For SEND over iWARP.
    pub(crate) credits: Option<CreditMemory>,
    domain: Box<dyn ProtectionDomain>,
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
        let credits = (adapter.is_iwarp() && params.verb() == Verb::Send)
            .then(|| CreditMemory::new(adapter, &*domain, params.qps as usize))
            .transpose()?;
        let words = credits.as_ref().map_or(0, |_| WORDS);
        let queues = Queues::new(adapter, &*domain, params, words)?;
        Ok(Self {
            queues,
            memory,
            credits,
            domain,
        })
    }

    /// The way to a queue pair for datagrams.
    pub(crate) fn address_handle(
        &self,
        adapter: &Adapter,
        av: &AddressVector,
    ) -> Result<Box<dyn AddressHandle>, Failure> {
        let made = adapter.context.create_ah(&*self.domain, av);
        made.map_err(|source| Failure::Verbs {
            stock: "Failed to create AH for UD\n \
                    Unable to Connect the HCA's through the link\n"
                .to_owned(),
            doing: "making the address handle of the peer",
            source,
        })
    }
}

impl Queues {
    fn new(
        adapter: &Adapter,
        domain: &dyn ProtectionDomain,
        params: &Params,
        words: u32,
    ) -> Result<Self, Failure> {
        let context = &*adapter.context;
        let tx_depth = send_depth(params) + words;
        let channel = params
            .events
            .map(|_| context.create_comp_channel())
            .transpose()
            .map_err(|error| {
                failed(
                    "Couldn't create completion channel\n",
                    "making a completion channel",
                    error,
                )
            })?;
        let create = |depth: u32, stock, doing| {
            let init = CqInit {
                depth: depth.saturating_mul(params.qps),
                channel: channel.as_ref(),
            };
            let created = context.create_cq(&init);
            created.map_err(|error| failed(stock, doing, error))
        };
        let send_cq = create(
            tx_depth,
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
        let receives_to = &**recv_cq.as_ref().unwrap_or(&send_cq);
        let xrcd = (params.connection == Connection::Xrc)
            .then(|| context.alloc_xrcd())
            .transpose()
            .map_err(|error| failed("Couldn't open XRC domain\n", "making an XRC domain", error))?;
        let srq = params
            .use_srq
            .then(|| {
                context.create_srq(
                    domain,
                    &SrqInit {
                        max_wr: params.rx_depth,
                        max_sge: 1,
                        limit: 0,
                        xrc: xrcd.as_deref().map(|xrcd| (xrcd, receives_to)),
                    },
                )
            })
            .transpose()
            .map_err(|error| {
                failed(
                    "Couldn't create SRQ\n",
                    "making a shared receive queue; -r is its size",
                    error,
                )
            })?;
        let qps: Vec<_> = (0..params.qps)
            .map(|index| {
                let qp_type = qp_type(params, index)?;
                let init = QpInit {
                    qp_type,
                    send_cq: &*send_cq,
                    recv_cq: receives_to,
                    srq: srq.as_deref().filter(|_| xrcd.is_none()),
                    xrcd: xrcd.as_deref().filter(|_| qp_type == QpType::XrcReceive),
                    cap: QpCapabilities {
                        max_send_wr: tx_depth,
                        max_recv_wr: if params.use_srq { 0 } else { params.rx_depth },
                        max_send_sge: 1,
                        max_recv_sge: 1,
                        max_inline_data: adapter.inline,
                    },
                    sq_sig_all: false,
                };
                context.create_qp(domain, &init).map_err(|error| {
                    failed(
                        "Unable to create QP.\nFailed to create QP.\n",
                        "making the queue pairs; -q is their number, -t and -I their size",
                        error,
                    )
                })
            })
            .collect::<Result<_, _>>()?;
        // A target sends nothing and grants nothing.
        let inline = qps
            .iter()
            .filter(|qp| qp.qp_type() != QpType::XrcReceive)
            .map(|qp| qp.capabilities().max_inline_data)
            .min()
            .unwrap_or(0);
        Ok(Self {
            send_cq,
            recv_cq,
            qps,
            srq,
            channel,
            inline,
        })
    }
}

/// Requests that the send queue of a queue pair holds: under
/// `--data_validation` those for markers and counters, too, as many as in stock.
fn send_depth(params: &Params) -> u32 {
    match params.data_validation {
        true => params.tx_depth.saturating_mul(3),
        false => params.tx_depth,
    }
}

pub(super) fn failed(stock: &str, doing: &'static str, source: VerbsError) -> Failure {
    Failure::Verbs {
        stock: format!("{stock} Couldn't create IB resources\n"),
        doing,
        source,
    }
}

/// The service of queue pair `index`. XRC has one for each direction.
fn qp_type(params: &Params, index: u32) -> Result<QpType, Failure> {
    let sends = match params.splits_directions() {
        true => index < params.flows(),
        false => params.machine == Machine::Client,
    };
    match (params.connection, sends) {
        (Connection::Rc, _) => Ok(QpType::Rc),
        (Connection::Uc, _) => Ok(QpType::Uc),
        (Connection::Ud, _) => Ok(QpType::Ud),
        (Connection::Xrc, true) => Ok(QpType::XrcSend),
        (Connection::Xrc, false) => Ok(QpType::XrcReceive),
        (Connection::RawEth | Connection::Dc | Connection::Srd, _) => Err(Failure::Unsupported(
            "this transport service is not supported: use -c RC",
        )),
    }
}
