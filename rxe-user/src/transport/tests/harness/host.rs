//! One NIC with one queue pair and one registered buffer.

use std::net::IpAddr;

use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, AddressVector, AsyncEvent, Completion, Gather, Gid, PathMtu, PostError,
    QpAttributes, QpCapabilities, QpState, QpType, ReceiveRequest, RemoteAddress, Result,
    SendFlags, SendOp, SendRequest, Sge, WindowBinding,
};

use crate::link::TxQueue;
use crate::transport::{
    Acks, CqId, Keys, Nic, NicConfig, NicLimits, PdId, QpSettings, RoutedAddress, SrqId,
    SrqSettings, XrcQueue, XrcdId,
};

/// Bytes of each host's buffer.
pub(crate) const BUFFER: usize = 1 << 20;

/// Q_Key of the UD queue pairs.
pub(crate) const QKEY: u32 = 0x1122_3344;

/// What the queue pairs of a test are made from.
#[derive(Debug, Clone)]
pub(crate) struct Setup {
    pub(crate) qp_type: QpType,
    pub(crate) mtu: PathMtu,
    /// First PSN of A and of B.
    pub(crate) psn: [u32; 2],
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) min_rnr_timer: u8,
    /// Reads and atomics outstanding, as requester and as responder.
    pub(crate) rd_atomic: [u8; 2],
    pub(crate) access: AccessFlags,
    pub(crate) window: u32,
    pub(crate) ipv6: bool,
    pub(crate) cq_depth: u32,
    pub(crate) shared_receive_queue: bool,
    pub(crate) sq_sig_all: bool,
}

impl Default for Setup {
    fn default() -> Self {
        Self::DEFAULT
    }
}

impl Setup {
    pub(crate) const DEFAULT: Self = Self {
        qp_type: QpType::Rc,
        mtu: PathMtu::Mtu256,
        psn: [0x11_1111, 0x22_2222],
        timeout: 14,
        retry_cnt: 7,
        rnr_retry: 7,
        min_rnr_timer: 1,
        rd_atomic: [4, 4],
        access: AccessFlags::all(),
        window: 128,
        ipv6: false,
        cq_depth: 1024,
        shared_receive_queue: false,
        sq_sig_all: false,
    };
}

pub(crate) struct Host {
    pub(crate) nic: Nic,
    pub(crate) address: IpAddr,
    pub(crate) pd: PdId,
    pub(crate) send_cq: CqId,
    pub(crate) recv_cq: CqId,
    pub(crate) srq: Option<SrqId>,
    pub(crate) buffer: Buffer,
    pub(crate) keys: Keys,
    pub(crate) qpn: u32,
    /// The XRC target beside an XRC initiator.
    pub(crate) target: Option<u32>,
    /// Where XRC requests go.
    pub(crate) peer_srqn: Option<u32>,
    pub(crate) xrcd: Option<XrcdId>,
    pub(crate) tx: TxQueue,
    setup: Setup,
}

impl Host {
    /// A host with a queue pair in RESET. `number` is the end of its address.
    pub(crate) fn new(number: u8, setup: &Setup) -> Self {
        let address: IpAddr = if setup.ipv6 {
            [0xfd00, 0, 0, 0, 0, 0, 0, u16::from(number)].into()
        } else {
            [10, 0, 0, number].into()
        };
        let config = NicConfig {
            gids: vec![Gid::from_ip(address)],
            port_mtu: PathMtu::Mtu4096,
            window: setup.window,
            limits: NicLimits::default(),
        };
        // Numbers that differ, and between the hosts too: splitmix64.
        let mut seed = u64::from(number);
        let random = Box::new(move || {
            seed = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (seed ^ (seed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 27)) as u32
        });
        let mut nic = Nic::new(config, random);
        let pd = nic.alloc_pd().unwrap();
        let send_cq = nic.create_cq(setup.cq_depth).unwrap();
        let recv_cq = nic.create_cq(setup.cq_depth).unwrap();
        let buffer = Buffer::allocate(BUFFER).unwrap();
        let access = AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE | AccessFlags::MW_BIND;
        let keys = nic.register(pd, buffer.whole(), access).unwrap();
        let is_xrc = matches!(setup.qp_type, QpType::XrcSend | QpType::XrcReceive);
        let xrcd = is_xrc.then(|| nic.alloc_xrcd().unwrap());
        let srq = (is_xrc || setup.shared_receive_queue).then(|| {
            let settings = SrqSettings {
                pd,
                depth: 64,
                max_sge: 4,
                limit: 0,
                xrc: xrcd.map(|domain| XrcQueue {
                    domain,
                    cq: recv_cq,
                }),
            };
            nic.create_srq(settings).unwrap()
        });
        let mut host = Self {
            nic,
            address,
            pd,
            send_cq,
            recv_cq,
            srq,
            buffer,
            keys,
            qpn: 0,
            target: None,
            peer_srqn: None,
            xrcd,
            tx: TxQueue::new(1 << 17, 64),
            setup: setup.clone(),
        };
        host.qpn = host.create_qp();
        if setup.qp_type == QpType::XrcSend {
            let settings = host.target_settings();
            host.target = Some(host.nic.create_qp(settings).unwrap());
        }
        host
    }

    /// One more queue pair like the first.
    pub(crate) fn create_qp(&mut self) -> u32 {
        let settings = self.settings();
        self.nic.create_qp(settings).unwrap()
    }

    pub(crate) fn settings(&self) -> QpSettings {
        QpSettings {
            qp_type: self.setup.qp_type,
            pd: self.pd,
            send_cq: self.send_cq,
            recv_cq: self.recv_cq,
            srq: self.srq.filter(|_| self.xrcd.is_none()),
            xrcd: self
                .xrcd
                .filter(|_| self.setup.qp_type == QpType::XrcReceive),
            cap: QpCapabilities {
                max_send_wr: 256,
                max_recv_wr: 256,
                max_send_sge: 4,
                max_recv_sge: 4,
                max_inline_data: 256,
            },
            sq_sig_all: self.setup.sq_sig_all,
        }
    }

    /// An XRC target in the host's domain.
    pub(crate) fn target_settings(&self) -> QpSettings {
        QpSettings {
            qp_type: QpType::XrcReceive,
            xrcd: self.xrcd,
            ..self.settings()
        }
    }

    /// The queue pair that takes the peer's requests.
    pub(crate) fn responder_qpn(&self) -> u32 {
        self.target.unwrap_or(self.qpn)
    }

    /// The attributes that lead from RESET to `state`, one transition each.
    pub(crate) fn path_to(
        &self,
        state: QpState,
        peer: IpAddr,
        dest_qpn: u32,
        psn: [u32; 2],
    ) -> Vec<QpAttributes> {
        self.path_of(self.setup.qp_type, state, peer, dest_qpn, psn)
    }

    fn path_of(
        &self,
        qp_type: QpType,
        state: QpState,
        peer: IpAddr,
        dest_qpn: u32,
        psn: [u32; 2],
    ) -> Vec<QpAttributes> {
        let setup = &self.setup;
        let [sq_psn, rq_psn] = psn;
        let connected = qp_type != QpType::Ud;
        let requests = matches!(qp_type, QpType::Rc | QpType::XrcSend);
        let responds = matches!(qp_type, QpType::Rc | QpType::XrcReceive);
        let init = QpAttributes {
            pkey_index: Some(0),
            port: Some(1),
            access_flags: connected.then_some(setup.access),
            qkey: (!connected).then_some(QKEY),
            ..QpAttributes::to_state(QpState::Init)
        };
        let rtr = QpAttributes {
            av: connected.then(|| address_vector(peer)),
            path_mtu: connected.then_some(setup.mtu),
            dest_qpn: connected.then_some(dest_qpn),
            rq_psn: connected.then_some(rq_psn),
            max_dest_rd_atomic: responds.then_some(setup.rd_atomic[1]),
            min_rnr_timer: responds.then_some(setup.min_rnr_timer),
            ..QpAttributes::to_state(QpState::Rtr)
        };
        let rts = QpAttributes {
            sq_psn: Some(sq_psn),
            timeout: (requests || responds).then_some(setup.timeout),
            retry_cnt: requests.then_some(setup.retry_cnt),
            rnr_retry: requests.then_some(setup.rnr_retry),
            max_qp_rd_atomic: requests.then_some(setup.rd_atomic[0]),
            ..QpAttributes::to_state(QpState::Rts)
        };
        let all = [init, rtr, rts];
        let count = all.iter().position(|step| step.state == Some(state));
        all[..count.map_or(0, |count| count + 1)].to_vec()
    }

    /// Brings queue pair `qpn` from RESET to RTS.
    pub(crate) fn connect(&mut self, qpn: u32, peer: IpAddr, dest_qpn: u32, psn: [u32; 2]) {
        let qp_type = match self.target == Some(qpn) {
            true => QpType::XrcReceive,
            false => self.setup.qp_type,
        };
        for step in self.path_of(qp_type, QpState::Rts, peer, dest_qpn, psn) {
            self.nic.modify_qp(qpn, &step).unwrap();
        }
    }

    pub(crate) fn modify(&mut self, attributes: QpAttributes) -> Result<()> {
        self.nic.modify_qp(self.qpn, &attributes)
    }

    pub(crate) fn state(&self) -> QpState {
        self.state_of(self.qpn)
    }

    pub(crate) fn state_of(&self, qpn: u32) -> QpState {
        self.nic.query_qp(qpn).unwrap().state.unwrap()
    }

    pub(crate) fn sge(&self, offset: usize, length: usize) -> Sge {
        Sge {
            addr: self.buffer.addr() + offset as u64,
            length: length as u32,
            lkey: self.keys.lkey,
        }
    }

    pub(crate) fn remote(&self, offset: usize) -> RemoteAddress {
        RemoteAddress {
            addr: self.buffer.addr() + offset as u64,
            rkey: self.keys.rkey,
        }
    }

    /// Posts one signalled request on `length` bytes of the buffer.
    pub(crate) fn post(&mut self, wr_id: u64, op: SendOp, offset: usize, length: usize) {
        self.post_flags(wr_id, op, offset, length, SendFlags::SIGNALED);
    }

    /// Binding number `tag` of `window` to `length` bytes of the buffer, with
    /// all remote rights.
    pub(crate) fn binding(
        &self,
        window: u32,
        tag: u8,
        offset: usize,
        length: u64,
    ) -> WindowBinding {
        WindowBinding {
            window,
            tag,
            lkey: self.keys.lkey,
            addr: self.buffer.addr() + offset as u64,
            length,
            access: AccessFlags::REMOTE,
        }
    }

    /// Posts one signalled request without memory.
    pub(crate) fn post_bare(&mut self, wr_id: u64, op: SendOp) {
        self.try_post(&[SendRequest::signaled(wr_id, op, &[])])
            .unwrap();
    }

    pub(crate) fn post_flags(
        &mut self,
        wr_id: u64,
        op: SendOp,
        offset: usize,
        length: usize,
        flags: SendFlags,
    ) {
        let sges = [self.sge(offset, length)];
        self.try_post(&[SendRequest {
            flags,
            ..SendRequest::signaled(wr_id, op, &sges)
        }])
        .unwrap();
    }

    pub(crate) fn post_inline(&mut self, wr_id: u64, op: SendOp, bytes: &[u8]) {
        self.try_post(&[SendRequest {
            data: Gather::Inline(bytes),
            ..SendRequest::signaled(wr_id, op, &[])
        }])
        .unwrap();
    }

    pub(crate) fn try_post(&mut self, requests: &[SendRequest<'_>]) -> Result<(), PostError> {
        let peer_srqn = self.peer_srqn;
        let requests: Vec<_> = requests
            .iter()
            .map(|request| SendRequest {
                xrc_srqn: request.xrc_srqn.or(peer_srqn),
                ..*request
            })
            .collect();
        self.nic.post_send(self.qpn, &requests)
    }

    /// Posts a receive into `length` bytes of the buffer.
    pub(crate) fn recv(&mut self, wr_id: u64, offset: usize, length: usize) {
        let sges = [self.sge(offset, length)];
        self.recv_into(wr_id, &sges);
    }

    pub(crate) fn recv_into(&mut self, wr_id: u64, sges: &[Sge]) {
        let request = [ReceiveRequest { wr_id, sges }];
        match self.srq {
            Some(srq) => self.nic.post_srq_recv(srq, &request).unwrap(),
            None => self.nic.post_recv(self.qpn, &request).unwrap(),
        }
    }

    /// The way to `peer` for UD requests.
    pub(crate) fn address_of(&self, peer: IpAddr) -> RoutedAddress {
        let route = self.nic.route(0, Gid::from_ip(peer), 0, 64).unwrap();
        RoutedAddress { route }
    }

    pub(crate) fn poll(&mut self, cq: CqId) -> Vec<Completion> {
        let mut all = Vec::new();
        let mut some = [Completion::default(); 16];
        loop {
            let count = self.nic.poll_cq(cq, &mut some);
            if count == 0 {
                return all;
            }
            all.extend_from_slice(&some[..count]);
        }
    }

    /// The completions of send requests since the last call.
    pub(crate) fn sent(&mut self) -> Vec<Completion> {
        self.poll(self.send_cq)
    }

    /// The completions of receive requests since the last call.
    pub(crate) fn received(&mut self) -> Vec<Completion> {
        self.poll(self.recv_cq)
    }

    /// The events since the last call.
    pub(crate) fn events(&mut self) -> Vec<AsyncEvent> {
        std::iter::from_fn(|| self.nic.next_event()).collect()
    }

    pub(crate) fn write(&self, offset: usize, bytes: &[u8]) {
        self.buffer.write(offset, bytes).unwrap();
    }

    pub(crate) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.buffer.read(offset, &mut bytes).unwrap();
        bytes
    }

    pub(crate) fn read_u64(&self, offset: usize) -> u64 {
        u64::from_ne_bytes(self.read(offset, 8).try_into().unwrap())
    }

    /// Packets that want to leave, completed with their ICRC.
    pub(crate) fn transmit(&mut self, now: crate::time::Time, acks: Acks) -> Vec<super::Datagram> {
        let mut datagrams = Vec::new();
        loop {
            let more = self.nic.transmit(now, &mut self.tx, acks);
            let count = self.tx.packets().len();
            for index in 0..count {
                let route = self.tx.packets()[index].route;
                let bytes = self.tx.bytes(index, 1).to_vec();
                datagrams.push(super::Datagram::sealed(route, bytes));
            }
            self.tx.consume(count);
            if !more && count == 0 {
                return datagrams;
            }
        }
    }
}

pub(crate) fn address_vector(peer: IpAddr) -> AddressVector {
    AddressVector {
        dgid: Gid::from_ip(peer),
        sgid_index: 0,
        flow_label: 0,
        hop_limit: 64,
        traffic_class: 0,
        sl: 0,
        port: 1,
    }
}

/// `(wr_id, status)` of completions.
pub(crate) fn outcomes(completions: &[Completion]) -> Vec<(u64, verbs_sys::WcStatus)> {
    completions
        .iter()
        .map(|completion| (completion.wr_id, completion.status))
        .collect()
}

/// Bytes that differ from message to message.
pub(crate) fn pattern(seed: u64, length: usize) -> Vec<u8> {
    (0..length as u64)
        .map(|index| (index.wrapping_mul(31) ^ (index >> 8) ^ seed.wrapping_mul(97)) as u8)
        .collect()
}
