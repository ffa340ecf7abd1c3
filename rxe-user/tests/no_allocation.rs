//! After set-up, messages of all kinds travel without a single allocation.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    reason = "a test that can't go on has failed"
)]

use std::net::IpAddr;

use rxe_user::link::{IpId, RxPacket, TxQueue};
use rxe_user::time::Time;
use rxe_user::transport::{
    Acks, CqId, Keys, Nic, NicConfig, NicLimits, QpSettings, RoutedAddress, SrqId, SrqSettings,
    XrcQueue,
};
use rxe_user::wire::icrc::{self, Envelope};
use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, AddressVector, Completion, Gather, Gid, PathMtu, QpAttributes, QpCapabilities,
    QpState, QpType, ReceiveRequest, RemoteAddress, SendFlags, SendOp, SendRequest, Sge, UdTarget,
    WindowBinding,
};

const SRC_PORT: u16 = 0xc000;
const QKEY: u32 = 7;

struct Host {
    nic: Nic,
    address: IpAddr,
    cq: CqId,
    buffer: Buffer,
    keys: Keys,
    window: u32,
    qpn: u32,
    /// Takes the peer's requests: the same, or an XRC target.
    responder: u32,
    srq: Option<SrqId>,
    tx: TxQueue,
}

impl Host {
    fn new(number: u8, qp_type: QpType) -> Self {
        let address = IpAddr::from([10, 0, 0, number]);
        let config = NicConfig {
            gids: vec![Gid::from_ip(address)],
            port_mtu: PathMtu::Mtu1024,
            window: 64,
            limits: NicLimits::default(),
        };
        let mut last = u32::from(number);
        let random = Box::new(move || {
            last = last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
            last.rotate_left(16)
        });
        let mut nic = Nic::new(config, random);
        let pd = nic.alloc_pd().unwrap();
        let cq = nic.create_cq(64).unwrap();
        let buffer = Buffer::allocate(1 << 18).unwrap();
        let access = AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE | AccessFlags::MW_BIND;
        let keys = nic.register(pd, buffer.whole(), access).unwrap();
        let window = nic.alloc_window(pd).unwrap();
        let settings = QpSettings {
            qp_type,
            pd,
            send_cq: cq,
            recv_cq: cq,
            srq: None,
            xrcd: None,
            cap: QpCapabilities {
                max_send_wr: 16,
                max_recv_wr: 16,
                max_send_sge: 2,
                max_recv_sge: 2,
                max_inline_data: 64,
            },
            sq_sig_all: false,
        };
        let qpn = nic.create_qp(settings).unwrap();
        let (mut responder, mut srq) = (qpn, None);
        if qp_type == QpType::XrcSend {
            let domain = nic.alloc_xrcd().unwrap();
            let target = QpSettings {
                qp_type: QpType::XrcReceive,
                xrcd: Some(domain),
                ..settings
            };
            responder = nic.create_qp(target).unwrap();
            let queue = SrqSettings {
                pd,
                depth: 16,
                max_sge: 2,
                limit: 0,
                xrc: Some(XrcQueue { domain, cq }),
            };
            srq = Some(nic.create_srq(queue).unwrap());
        }
        Self {
            nic,
            address,
            cq,
            buffer,
            keys,
            window,
            qpn,
            responder,
            srq,
            tx: TxQueue::new(1 << 16, 64),
        }
    }

    fn connect(&mut self, qpn: u32, qp_type: QpType, peer: IpAddr, dest_qpn: u32) {
        let connected = qp_type != QpType::Ud;
        let requests = matches!(qp_type, QpType::Rc | QpType::XrcSend);
        let responds = matches!(qp_type, QpType::Rc | QpType::XrcReceive);
        let init = QpAttributes {
            pkey_index: Some(0),
            port: Some(1),
            access_flags: connected.then_some(AccessFlags::REMOTE),
            qkey: (!connected).then_some(QKEY),
            ..QpAttributes::to_state(QpState::Init)
        };
        let av = AddressVector {
            dgid: Gid::from_ip(peer),
            sgid_index: 0,
            flow_label: 0,
            hop_limit: 64,
            traffic_class: 0,
            sl: 0,
            port: 1,
        };
        let rtr = QpAttributes {
            av: connected.then_some(av),
            path_mtu: connected.then_some(PathMtu::Mtu1024),
            dest_qpn: connected.then_some(dest_qpn),
            rq_psn: connected.then_some(0xff_ff00),
            max_dest_rd_atomic: responds.then_some(4),
            min_rnr_timer: responds.then_some(1),
            ..QpAttributes::to_state(QpState::Rtr)
        };
        let rts = QpAttributes {
            sq_psn: Some(0xff_ff00),
            timeout: (requests || responds).then_some(8),
            retry_cnt: requests.then_some(7),
            rnr_retry: requests.then_some(7),
            max_qp_rd_atomic: requests.then_some(4),
            ..QpAttributes::to_state(QpState::Rts)
        };
        for step in [init, rtr, rts] {
            self.nic.modify_qp(qpn, &step).unwrap();
        }
    }

    fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge {
            addr: self.buffer.addr() + offset,
            length,
            lkey: self.keys.lkey,
        }
    }

    fn remote(&self) -> RemoteAddress {
        RemoteAddress {
            addr: self.buffer.addr() + 0x2_0000,
            rkey: self.keys.rkey,
        }
    }

    fn binding(&self, tag: u8) -> WindowBinding {
        WindowBinding {
            window: self.window,
            tag,
            lkey: self.keys.lkey,
            addr: self.buffer.addr(),
            length: 4096,
            access: AccessFlags::REMOTE,
        }
    }

    fn receive(&mut self) {
        let sges = [self.sge(0x1_0000, 0x8000)];
        let request = ReceiveRequest {
            wr_id: 0,
            sges: &sges,
        };
        match self.srq {
            Some(srq) => self.nic.post_srq_recv(srq, &[request]).unwrap(),
            None => self.nic.post_recv(self.qpn, &[request]).unwrap(),
        }
    }

    fn poll(&mut self) -> usize {
        let mut completions = [Completion::default(); 64];
        self.nic.poll_cq(self.cq, &mut completions)
    }
}

/// Carries packets from one host to the other, but every so many not.
fn carry(from: &mut Host, to: &mut Host, now: Time, lost_every: usize, count: &mut usize) -> bool {
    from.nic.handle_timers(now);
    from.nic.transmit(now, &mut from.tx, Acks::All);
    let packets = from.tx.packets().len();
    let envelope = Envelope {
        src: from.address,
        dst: to.address,
        src_port: SRC_PORT,
        ipv4_id: 0,
        dont_fragment: true,
    };
    for index in 0..packets {
        *count += 1;
        if lost_every != 0 && count.is_multiple_of(lost_every) {
            continue;
        }
        let bytes = from.tx.bytes_mut(index, 1);
        icrc::seal(&envelope, bytes);
        to.nic.receive(
            now,
            &RxPacket {
                src: envelope.src,
                dst: envelope.dst,
                src_port: SRC_PORT,
                traffic_class: 0,
                hop_limit: 64,
                ip_id: IpId::Known(0),
                bytes,
            },
        );
    }
    from.tx.consume(packets);
    packets > 0
}

/// Steps in which a requester that lacks a receive is refused many times, and
/// yet doesn't run out of retries for what is lost.
const WAITING: usize = 200;

/// Steps that are more than enough when every message finds its receive.
const ALL_DONE: usize = 100_000;

/// Runs until both rest, or for so many steps of 10 µs.
fn settle(
    a: &mut Host,
    b: &mut Host,
    now: &mut u64,
    lost_every: usize,
    count: &mut usize,
    steps: usize,
) {
    let mut idle = 0;
    for _ in 0..steps {
        *now += 10_000;
        let time = Time::from_nanos(*now);
        let moved = carry(a, b, time, lost_every, count) | carry(b, a, time, lost_every, count);
        idle = if moved { 0 } else { idle + 1 };
        if idle > 2 && a.nic.next_deadline().is_none() && b.nic.next_deadline().is_none() {
            return;
        }
    }
}

/// Messages each way, with losses and waits for receives.
fn exchange(a: &mut Host, b: &mut Host, qp_type: QpType, rounds: usize, lost_every: usize) {
    let (mut now, mut count, mut completed) = (0, 0, 0);
    let routes = [(&*a, &*b), (&*b, &*a)].map(|(from, to)| RoutedAddress {
        route: from.nic.route(0, Gid::from_ip(to.address), 0, 64).unwrap(),
    });
    for round in 0..rounds {
        for way in 0..2 {
            let (from, to, ah) = match way {
                0 => (&mut *a, &mut *b, &routes[0]),
                _ => (&mut *b, &mut *a, &routes[1]),
            };
            let (remote, qpn) = (to.remote(), to.qpn);
            let xrc_srqn = to.srq.map(SrqId::number);
            let target = UdTarget {
                ah,
                qpn,
                qkey: QKEY,
            };
            let long = [from.sge(0, 3000), from.sge(8192, 2000)];
            let short = [from.sge(0, 8)];
            let signaled = |op, data| SendRequest {
                data,
                flags: SendFlags::SIGNALED,
                ud: Some(target),
                xrc_srqn,
                ..SendRequest::signaled(0, op, &[])
            };
            let send = signaled(SendOp::Send, Gather::Inline(b"inline"));
            from.nic.post_send(from.qpn, &[send]).unwrap();
            if qp_type != QpType::Ud {
                let write = SendOp::Write { remote };
                let write_imm = SendOp::WriteImm { remote, imm: 1 };
                let requests = [
                    signaled(SendOp::SendImm { imm: 2 }, Gather::Sges(&long)),
                    signaled(write, Gather::Sges(&long)),
                    signaled(write_imm, Gather::Sges(&short)),
                ];
                from.nic.post_send(from.qpn, &requests).unwrap();
            }
            if matches!(qp_type, QpType::Rc | QpType::XrcSend) {
                let requests = [
                    signaled(SendOp::Read { remote }, Gather::Sges(&long)),
                    signaled(SendOp::FetchAdd { remote, add: 1 }, Gather::Sges(&short)),
                ];
                from.nic.post_send(from.qpn, &requests).unwrap();
                let binding = from.binding(round as u8);
                let key = binding.rkey();
                let requests = [
                    signaled(SendOp::BindWindow { binding }, Gather::Sges(&[])),
                    signaled(SendOp::LocalInvalidate { key }, Gather::Sges(&[])),
                ];
                from.nic.post_send(from.qpn, &requests).unwrap();
            }
            to.receive();
        }
        // What else has to be received finds a receive only later.
        settle(a, b, &mut now, lost_every, &mut count, WAITING);
        if qp_type != QpType::Ud {
            for _ in 0..2 {
                a.receive();
                b.receive();
            }
        }
        settle(a, b, &mut now, lost_every, &mut count, ALL_DONE);
        completed += a.poll() + b.poll();
    }
    assert!(completed >= rounds * 2, "{qp_type}: {completed}");
    assert!(count > 0);
}

#[test]
fn messages_travel_without_allocation() {
    let control = allocation_counter::measure(|| drop(std::hint::black_box(Box::new(1))));
    assert_eq!(control.count_total, 1, "allocations are counted");
    for qp_type in [QpType::Rc, QpType::Uc, QpType::Ud, QpType::XrcSend] {
        let (mut a, mut b) = (Host::new(1, qp_type), Host::new(2, qp_type));
        let (address_a, address_b) = (a.address, b.address);
        let (qpn_a, qpn_b) = (a.qpn, b.qpn);
        let (responder_a, responder_b) = (a.responder, b.responder);
        a.connect(qpn_a, qp_type, address_b, responder_b);
        b.connect(qpn_b, qp_type, address_a, responder_a);
        if qp_type == QpType::XrcSend {
            a.connect(responder_a, QpType::XrcReceive, address_b, qpn_b);
            b.connect(responder_b, QpType::XrcReceive, address_a, qpn_a);
        }
        let reliable = matches!(qp_type, QpType::Rc | QpType::XrcSend);
        // Losses are the business of reliable services.
        let lost_every = if reliable { 17 } else { 0 };
        let measured = allocation_counter::measure(|| {
            exchange(&mut a, &mut b, qp_type, 50, lost_every);
        });
        assert_eq!(measured.count_total, 0, "{qp_type}: {measured:?}");
        for host in [&a, &b] {
            for qpn in [host.qpn, host.responder] {
                let state = host.nic.query_qp(qpn).unwrap().state;
                assert_eq!(state, Some(QpState::Rts), "{qp_type}");
            }
        }
        if reliable {
            let counters = a.nic.counters();
            assert!(counters.retransmitted > 0 && counters.rx_rnr_naks > 0);
        }
    }
}
