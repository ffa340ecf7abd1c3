//! The test's queue pairs, connected by the connection manager (`-R`).

use std::time::{Duration, Instant};

use verbs_sys::cm::{
    CmError, CmEventKind, CmId, CmOption, CmRequest, CmResult, ConnectParameters, DatagramPeer,
    PortSpace, Wait, accept_datagram, accept_qp, connect_datagram, connect_qp, datagram_qp_ready,
    qp_to_init,
};
use verbs_sys::{
    AddressHandle, Completion, QpAttributes, QpState, QueuePair, SendOp, SendRequest, Sge, UdTarget,
};

use super::{MIN_RNR_TIMER, Manager, retries, space};
use crate::failure::Failure;
use crate::interrupt::Interrupt;
use crate::options::Params;
use crate::setup::{Adapter, Path, Resources};
use crate::words::Side;

/// How often a server is asked that doesn't listen yet, and how long apart:
/// stock's begins to listen when the client is already told to connect.
const TRIES: u32 = 10;
const PAUSE: Duration = Duration::from_millis(100);

/// How long the farewells of all queue pairs may take.
const FAREWELL_TIME: Duration = Duration::from_millis(500);

/// Bytes of the datagram by which stock's server learns of its client.
const GREETING: u32 = 4;

/// The connections of the test's queue pairs, in their order.
#[derive(Default)]
pub(crate) struct Connections {
    ids: Vec<Box<dyn CmId>>,
    /// Whether this end accepted them.
    listened: bool,
}

impl Connections {
    /// Ends them all. The end that listened goes first, as stock's does from
    /// 6.21 on; the other waits a little for that. Queue pairs stay as they
    /// are until both know: the peer's last message may want an
    /// acknowledgement.
    pub(crate) fn end(&mut self, qps: &mut [Box<dyn QueuePair>]) {
        let wait = Wait::at_most(FAREWELL_TIME);
        if self.listened {
            self.say_farewell();
        }
        for id in &mut self.ids {
            hear_the_end(&mut **id, &wait);
        }
        if !self.listened {
            self.say_farewell();
        }
        for (qp, _) in qps.iter_mut().zip(self.ids.drain(..)) {
            if let Err(error) = qp.modify(&QpAttributes::to_state(QpState::Error)) {
                log::debug!("after the end of a connection: {error}");
            }
        }
    }

    fn say_farewell(&mut self) {
        for id in &mut self.ids {
            // The peer may have gone already.
            if let Err(error) = id.disconnect() {
                log::debug!("ending a connection: {error}");
            }
        }
    }
}

/// Waits until the connection has ended.
fn hear_the_end(id: &mut dyn CmId, wait: &Wait<'_>) {
    while id.port_space() == PortSpace::Tcp {
        match id.next_event(wait) {
            Ok(event) if event.kind != CmEventKind::Disconnected => {}
            _ => return,
        }
    }
}

/// What the queue pairs of a test are connected with.
pub(crate) struct Meeting<'a> {
    pub(crate) params: &'a Params,
    pub(crate) adapter: &'a Adapter,
    pub(crate) path: &'a Path,
    pub(crate) interrupt: &'a Interrupt,
}

impl Manager {
    /// Before the client is told to connect: the server listens.
    pub(crate) fn get_ready(&mut self, params: &Params) -> Result<(), Failure> {
        if self.side == Side::Server {
            let listener = self.manager.listen(space(params), self.address, params.qps);
            self.listener = Some(listener.map_err(not_connected)?);
        }
        Ok(())
    }

    /// Connects all queue pairs, in their order, and makes the ways to the
    /// peer's where datagrams need them and the manager tells.
    pub(crate) fn connect_all(
        &mut self,
        meeting: &Meeting<'_>,
        resources: &mut Resources,
    ) -> Result<(Connections, Vec<Box<dyn AddressHandle>>), Failure> {
        let mut connections = Connections {
            ids: Vec::new(),
            listened: self.side == Side::Server,
        };
        let mut handles = Vec::new();
        let asked = || meeting.interrupt.requested();
        for index in 0..resources.queues.qps.len() {
            let qp = &mut *resources.queues.qps[index];
            let time = meeting.params.control.peer_timeout;
            let wait = Wait::at_most(time).or(&asked);
            let parameters = meeting.parameters();
            let (id, peer) = match self.side {
                Side::Client => self.call(meeting, qp, &parameters, &wait),
                Side::Server => self.answer(qp, &parameters, &wait),
            }
            .map_err(not_connected)?;
            connections.ids.push(id);
            if let Some(peer) = peer {
                let handle = resources.address_handle(meeting.adapter, &peer.av)?;
                meeting.greet(resources, index, &peer, &*handle)?;
                handles.push(handle);
            }
        }
        self.listener = None;
        Ok((connections, handles))
    }

    /// The client's part for one queue pair.
    fn call(
        &self,
        meeting: &Meeting<'_>,
        qp: &mut dyn QueuePair,
        parameters: &ConnectParameters<'_>,
        wait: &Wait<'_>,
    ) -> CmResult<(Box<dyn CmId>, Option<DatagramPeer>)> {
        let params = meeting.params;
        let space = space(params);
        let mut options: Vec<CmOption> = Vec::new();
        options.extend(params.control.type_of_service.map(CmOption::TypeOfService));
        if space == PortSpace::Tcp {
            options.push(CmOption::AckTimeout(params.path.qp_timeout));
        }
        let mut tries = 1;
        loop {
            let mut id = self.resolved(space, &options, meeting.interrupt)?;
            let connected = match space {
                PortSpace::Tcp => qp_to_init(&*id, qp)
                    .and_then(|()| connect_qp(&mut *id, qp, parameters, MIN_RNR_TIMER, wait))
                    .map(|_| None),
                PortSpace::Udp => {
                    let parameters = ConnectParameters {
                        qpn: qp.qpn(),
                        ..*parameters
                    };
                    datagram_qp_ready(&*id, qp)
                        .and_then(|()| connect_datagram(&mut *id, &parameters, wait))
                        .map(Some)
                }
            };
            match connected {
                Ok(peer) => return Ok((id, peer)),
                Err(error) if error.nobody_listens() && tries < TRIES => {
                    tries += 1;
                    if space == PortSpace::Udp {
                        qp.modify(&QpAttributes::to_state(QpState::Reset))?;
                    }
                    std::thread::sleep(PAUSE);
                }
                Err(error) => return Err(error),
            }
        }
    }

    /// The server's part for one queue pair: whoever comes next gets it.
    fn answer(
        &mut self,
        qp: &mut dyn QueuePair,
        parameters: &ConnectParameters<'_>,
        wait: &Wait<'_>,
    ) -> CmResult<(Box<dyn CmId>, Option<DatagramPeer>)> {
        let Some(listener) = &mut self.listener else {
            return Err(CmError::Unsupported("accepting without listening"));
        };
        let mut request: CmRequest = listener.next_request(wait)?;
        match request.id.port_space() {
            PortSpace::Tcp => {
                qp_to_init(&*request.id, qp)?;
                accept_qp(&mut request, qp, parameters, MIN_RNR_TIMER, wait)?;
            }
            PortSpace::Udp => {
                datagram_qp_ready(&*request.id, qp)?;
                let parameters = ConnectParameters {
                    qpn: qp.qpn(),
                    ..*parameters
                };
                accept_datagram(&mut request, &parameters)?;
            }
        }
        Ok((request.id, None))
    }
}

impl Meeting<'_> {
    /// What this end can do, for the peer to know.
    fn parameters(&self) -> ConnectParameters<'static> {
        let reads = match self.params.asks_peer_memory() {
            true => u8::try_from(self.path.out_reads).unwrap_or(u8::MAX),
            false => 0,
        };
        ConnectParameters {
            srq: self.params.use_srq,
            responder_resources: reads,
            initiator_depth: reads,
            retry_count: retries(self.params),
            rnr_retry_count: retries(self.params),
            ..ConnectParameters::default()
        }
    }

    /// Stock's server, where it sends datagrams, learns from a first one
    /// where to; ours reads it in the key record and has no receive for it.
    fn greet(
        &self,
        resources: &mut Resources,
        index: usize,
        peer: &DatagramPeer,
        handle: &dyn AddressHandle,
    ) -> Result<(), Failure> {
        if self.params.tool.is_bandwidth() && !self.params.bidirectional {
            return Ok(());
        }
        let Resources { queues, memory, .. } = resources;
        let from = memory.layout.sends_from(index);
        let sges = [Sge {
            addr: memory.addr(from),
            length: GREETING,
            lkey: memory.lkey(from),
        }];
        let qp = &mut *queues.qps[index];
        let op = SendOp::SendImm { imm: qp.qpn() };
        let mut request = SendRequest::signaled(index as u64, op, &sges);
        request.ud = Some(UdTarget {
            ah: handle,
            qpn: peer.qpn,
            qkey: peer.qkey,
        });
        let failed = |source| Failure::Verbs {
            stock: String::new(),
            doing: "sending the first datagram",
            source,
        };
        qp.post_send(&[request])
            .map_err(|refused| failed(refused.source))?;
        let give_up = Instant::now() + self.params.control.peer_timeout;
        while queues.send_cq.poll(&mut [Completion::default()]) == 0 {
            if self.interrupt.requested() || Instant::now() > give_up {
                return Err(not_connected(CmError::TimedOut {
                    waited_for: "the completion of the first datagram",
                    waited: self.params.control.peer_timeout,
                }));
            }
            std::hint::spin_loop();
        }
        Ok(())
    }
}

/// Stock has no words for the queue pairs but its own number.
fn not_connected(source: CmError) -> Failure {
    match source {
        CmError::Interrupted => Failure::Interrupted,
        source => Failure::Manager {
            stock: format!("Failed to connect RDMA CM client, tried {TRIES} times.\n"),
            doing: "connecting the queue pairs of the test",
            source,
        },
    }
}
