//! One end of a recorded conversation: a NIC with one queue pair and the
//! memory of the record's program.

use std::net::IpAddr;

use rxe_user::link::{IpId, Route, RxPacket, TxQueue};
use rxe_user::time::Time;
use rxe_user::transport::{Acks, CqId, Keys, Nic, NicConfig, NicLimits, PdId, QpSettings};
use rxe_user::wire::icrc::{self, Envelope};
use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, AddressVector, Completion, Gid, PathMtu, QpAttributes, QpCapabilities, QpState,
    QpType, ReceiveRequest, SendOp, SendRequest, Sge, WcStatus, WindowBinding,
};

/// Bytes of memory at each end.
pub(crate) const MEMORY: usize = 1 << 20;

/// The Q_Key of the records.
pub(crate) const QKEY: u32 = 0x1122_3344;

const SRC_PORT: u16 = 0xc000;

/// What the queue pair is connected to, and how.
pub(crate) struct Connection {
    pub(crate) qp_type: QpType,
    pub(crate) own: IpAddr,
    pub(crate) peer: IpAddr,
    pub(crate) peer_qpn: u32,
    pub(crate) sq_psn: u32,
    pub(crate) rq_psn: u32,
    pub(crate) mtu: PathMtu,
    /// What the peer may do through the queue pair, and with the memory.
    pub(crate) qp_access: AccessFlags,
    pub(crate) memory_access: AccessFlags,
    pub(crate) max_dest_rd_atomic: u8,
    pub(crate) timeout: u8,
    pub(crate) retry_cnt: u8,
    pub(crate) rnr_retry: u8,
    pub(crate) traffic_class: u8,
}

pub(crate) struct Endpoint {
    pub(crate) nic: Nic,
    pub(crate) now: Time,
    pub(crate) qpn: u32,
    pub(crate) memory: Buffer,
    pub(crate) keys: Keys,
    pub(crate) route: Route,
    pd: PdId,
    send_cq: CqId,
    recv_cq: CqId,
}

impl Endpoint {
    pub(crate) fn new(connection: &Connection, fill: impl Fn(usize) -> u8) -> Self {
        let config = NicConfig {
            gids: vec![Gid::from_ip(connection.own)],
            port_mtu: PathMtu::Mtu4096,
            window: 128,
            limits: NicLimits::default(),
        };
        let mut last = 0x1234_5678_u32;
        let random = Box::new(move || {
            last = last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            last.rotate_left(16)
        });
        let mut nic = Nic::new(config, random);
        let pd = nic.alloc_pd().unwrap();
        let (send_cq, recv_cq) = (nic.create_cq(256).unwrap(), nic.create_cq(256).unwrap());
        let memory = Buffer::allocate(MEMORY).unwrap();
        let bytes: Vec<u8> = (0..MEMORY).map(fill).collect();
        memory.write(0, &bytes).unwrap();
        let keys = nic
            .register(pd, memory.whole(), connection.memory_access)
            .unwrap();
        let settings = QpSettings {
            qp_type: connection.qp_type,
            pd,
            send_cq,
            recv_cq,
            srq: None,
            xrcd: None,
            cap: QpCapabilities {
                max_send_wr: 128,
                max_recv_wr: 128,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            sq_sig_all: true,
        };
        let qpn = nic.create_qp(settings).unwrap();
        let dgid = Gid::from_ip(connection.peer);
        let route = nic.route(0, dgid, connection.traffic_class, 64).unwrap();
        let mut endpoint = Self {
            nic,
            now: Time::ZERO,
            qpn,
            memory,
            keys,
            route,
            pd,
            send_cq,
            recv_cq,
        };
        endpoint.connect(connection, dgid);
        endpoint
    }

    fn connect(&mut self, connection: &Connection, dgid: Gid) {
        let connected = connection.qp_type != QpType::Ud;
        let reliable = connection.qp_type == QpType::Rc;
        let init = QpAttributes {
            pkey_index: Some(0),
            port: Some(1),
            access_flags: connected.then_some(connection.qp_access),
            qkey: (!connected).then_some(QKEY),
            ..QpAttributes::to_state(QpState::Init)
        };
        let av = AddressVector {
            dgid,
            sgid_index: 0,
            flow_label: 0,
            hop_limit: 64,
            traffic_class: connection.traffic_class,
            sl: 0,
            port: 1,
        };
        let rtr = QpAttributes {
            av: connected.then_some(av),
            path_mtu: connected.then_some(connection.mtu),
            dest_qpn: connected.then_some(connection.peer_qpn),
            rq_psn: connected.then_some(connection.rq_psn),
            max_dest_rd_atomic: reliable.then_some(connection.max_dest_rd_atomic),
            min_rnr_timer: reliable.then_some(14),
            ..QpAttributes::to_state(QpState::Rtr)
        };
        let rts = QpAttributes {
            sq_psn: Some(connection.sq_psn),
            timeout: reliable.then_some(connection.timeout),
            retry_cnt: reliable.then_some(connection.retry_cnt),
            rnr_retry: reliable.then_some(connection.rnr_retry),
            max_qp_rd_atomic: reliable.then_some(4),
            ..QpAttributes::to_state(QpState::Rts)
        };
        for step in [init, rtr, rts] {
            self.nic.modify_qp(self.qpn, &step).unwrap();
        }
    }

    pub(crate) fn sge(&self, offset: usize, length: usize) -> Sge {
        Sge {
            addr: self.memory.addr() + offset as u64,
            length: length as u32,
            lkey: self.keys.lkey,
        }
    }

    /// Binds a new window to all of the memory; returns its key.
    pub(crate) fn bind_window(&mut self, tag: u8) -> u32 {
        let binding = WindowBinding {
            window: self.nic.alloc_window(self.pd).unwrap(),
            tag,
            lkey: self.keys.lkey,
            addr: self.memory.addr(),
            length: MEMORY as u64,
            access: AccessFlags::REMOTE,
        };
        let request = SendRequest::signaled(0, SendOp::BindWindow { binding }, &[]);
        self.nic.post_send(self.qpn, &[request]).unwrap();
        assert_eq!(self.next_packet(), None);
        assert_eq!(self.sent()[0].status, WcStatus::Success);
        binding.rkey()
    }

    pub(crate) fn receive_into(&mut self, sge: Sge) {
        let sges = [sge];
        let request = [ReceiveRequest {
            wr_id: 0,
            sges: &sges,
        }];
        self.nic.post_recv(self.qpn, &request).unwrap();
    }

    /// Hands over a packet whose ICRC has yet to be computed.
    pub(crate) fn deliver(&mut self, mut bytes: Vec<u8>) {
        let (src, dst) = (self.route.dst, self.route.src);
        icrc::seal(&envelope(src, dst), &mut bytes);
        let packet = RxPacket {
            src,
            dst,
            src_port: SRC_PORT,
            traffic_class: 0,
            hop_limit: 64,
            ip_id: IpId::Known(0),
            bytes: &bytes,
        };
        self.nic.receive(self.now, &packet);
    }

    /// The next packet that wants to leave.
    pub(crate) fn next_packet(&mut self) -> Option<Vec<u8>> {
        let mut tx = TxQueue::new(8192, 1);
        while self.nic.transmit(self.now, &mut tx, Acks::All) && tx.is_empty() {}
        (!tx.is_empty()).then(|| tx.bytes(0, 1).to_vec())
    }

    /// Lets time pass until a timer does something; `false` when none is set.
    pub(crate) fn wait(&mut self) -> bool {
        let Some(deadline) = self.nic.next_deadline() else {
            return false;
        };
        self.now = self.now.max(deadline);
        self.nic.handle_timers(self.now);
        true
    }

    pub(crate) fn sent(&mut self) -> Vec<Completion> {
        self.poll(self.send_cq)
    }

    pub(crate) fn received(&mut self) -> Vec<Completion> {
        self.poll(self.recv_cq)
    }

    fn poll(&mut self, cq: CqId) -> Vec<Completion> {
        let mut completions = vec![Completion::default(); 256];
        let count = self.nic.poll_cq(cq, &mut completions);
        completions.truncate(count);
        completions
    }

    pub(crate) fn state(&self) -> QpState {
        let attributes = self.nic.query_qp(self.qpn).unwrap();
        attributes.state.unwrap()
    }

    pub(crate) fn read(&self, offset: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        self.memory.read(offset, &mut bytes).unwrap();
        bytes
    }
}

fn envelope(src: IpAddr, dst: IpAddr) -> Envelope {
    Envelope {
        src,
        dst,
        src_port: SRC_PORT,
        ipv4_id: 0,
        dont_fragment: true,
    }
}
