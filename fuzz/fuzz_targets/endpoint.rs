//! A connected endpoint, RC and both halves of XRC, that is given packets with the right ICRC and PSNs near the expected ones,
//! everything else as the input says: it must not panic, touch memory outside its registration,
//! or answer one packet with more than a Read of all its memory.

#![no_main]

use std::net::IpAddr;

use libfuzzer_sys::fuzz_target;
use rxe_user::link::{IpId, RxPacket, TxQueue};
use rxe_user::time::Time;
use rxe_user::transport::{
    Acks, CqId, Keys, Nic, NicConfig, NicLimits, QpSettings, SrqId, SrqSettings, XrcQueue,
};
use rxe_user::wire::icrc::{self, Envelope};
use rxe_user::wire::{DEFAULT_PKEY, Opcode, Service, header_len};
use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, AddressVector, Completion, Gid, PathMtu, QpAttributes, QpCapabilities, QpState,
    QpType, ReceiveRequest, RemoteAddress, SendOp, SendRequest, Sge,
};

/// Memory: a guard, the registration, a guard.
const GUARD: usize = 1 << 14;
const REGION: usize = 1 << 14;
const WINDOW: u32 = 16;
const MTU: u64 = 256;
const SQ_PSN: u32 = 0xff_fffc;
const RQ_PSN: u32 = 0x7f_fffe;
const SRC_PORT: u16 = 0xc000;
const ENVELOPE: Envelope = Envelope {
    src: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 2)),
    dst: IpAddr::V4(std::net::Ipv4Addr::new(10, 0, 0, 1)),
    src_port: SRC_PORT,
    ipv4_id: 0,
    dont_fragment: true,
};

/// Takes numbers off the front of the input.
struct Input<'a>(&'a [u8]);

impl Input<'_> {
    fn byte(&mut self) -> Option<u8> {
        let (first, rest) = self.0.split_first()?;
        self.0 = rest;
        Some(*first)
    }

    fn word(&mut self) -> Option<u16> {
        Some(u16::from_be_bytes([self.byte()?, self.byte()?]))
    }
}

struct Endpoint {
    nic: Nic,
    cq: CqId,
    buffer: Buffer,
    keys: Keys,
    rc: u32,
    /// XRC initiator and target, and the queue that the target draws from.
    initiator: u32,
    target: u32,
    srq: SrqId,
    now: u64,
    tx: TxQueue,
}

impl Endpoint {
    fn new() -> Option<Self> {
        let config = NicConfig {
            gids: vec![Gid::from_ip(ENVELOPE.dst)],
            port_mtu: PathMtu::Mtu1024,
            window: WINDOW,
            limits: NicLimits::default(),
        };
        let mut last = 1_u32;
        let mut nic = Nic::new(
            config,
            Box::new(move || {
                last = last.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                last.rotate_left(16)
            }),
        );
        let pd = nic.alloc_pd().ok()?;
        let cq = nic.create_cq(256).ok()?;
        let buffer = Buffer::allocate(2 * GUARD + REGION).ok()?;
        buffer.fill(0, buffer.len(), 0xa5).ok()?;
        let region = buffer.range(GUARD..GUARD + REGION).ok()?;
        let access = AccessFlags::REMOTE | AccessFlags::LOCAL_WRITE;
        let keys = nic.register(pd, region, access).ok()?;
        let settings = QpSettings {
            qp_type: QpType::Rc,
            pd,
            send_cq: cq,
            recv_cq: cq,
            srq: None,
            xrcd: None,
            cap: QpCapabilities {
                max_send_wr: 8,
                max_recv_wr: 8,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            sq_sig_all: true,
        };
        let domain = nic.alloc_xrcd().ok()?;
        let srq = SrqSettings {
            pd,
            depth: 8,
            max_sge: 1,
            limit: 0,
            xrc: Some(XrcQueue { domain, cq }),
        };
        let initiator = QpSettings {
            qp_type: QpType::XrcSend,
            ..settings
        };
        let target = QpSettings {
            qp_type: QpType::XrcReceive,
            xrcd: Some(domain),
            ..settings
        };
        let mut endpoint = Self {
            rc: nic.create_qp(settings).ok()?,
            initiator: nic.create_qp(initiator).ok()?,
            target: nic.create_qp(target).ok()?,
            srq: nic.create_srq(srq).ok()?,
            nic,
            cq,
            buffer,
            keys,
            now: 0,
            tx: TxQueue::new(1 << 14, 64),
        };
        endpoint.connect(endpoint.rc, true, true)?;
        endpoint.connect(endpoint.initiator, true, false)?;
        endpoint.connect(endpoint.target, false, true)?;
        Some(endpoint)
    }

    fn connect(&mut self, qpn: u32, requests: bool, responds: bool) -> Option<()> {
        let init = QpAttributes {
            pkey_index: Some(0),
            port: Some(1),
            access_flags: Some(AccessFlags::REMOTE),
            ..QpAttributes::to_state(QpState::Init)
        };
        let rtr = QpAttributes {
            av: Some(AddressVector {
                dgid: Gid::from_ip(ENVELOPE.src),
                sgid_index: 0,
                flow_label: 0,
                hop_limit: 64,
                traffic_class: 0,
                sl: 0,
                port: 1,
            }),
            path_mtu: Some(PathMtu::Mtu256),
            dest_qpn: Some(0x77),
            rq_psn: Some(RQ_PSN),
            max_dest_rd_atomic: responds.then_some(3),
            min_rnr_timer: responds.then_some(1),
            ..QpAttributes::to_state(QpState::Rtr)
        };
        let rts = QpAttributes {
            sq_psn: Some(SQ_PSN),
            timeout: Some(8),
            retry_cnt: requests.then_some(7),
            rnr_retry: requests.then_some(7),
            max_qp_rd_atomic: requests.then_some(3),
            ..QpAttributes::to_state(QpState::Rts)
        };
        for step in [init, rtr, rts] {
            self.nic.modify_qp(qpn, &step).ok()?;
        }
        Some(())
    }

    /// A place in the registration.
    fn sge(&self, offset: u16, length: u32) -> Sge {
        let room = REGION as u32 - length;
        Sge {
            addr: self.buffer.addr() + GUARD as u64 + u64::from(u32::from(offset) % (room + 1)),
            length,
            lkey: self.keys.lkey,
        }
    }

    /// Posts work; a full queue is fine.
    fn post(&mut self, kind: u8, offset: u16) {
        let kind = kind & 7;
        let sges = [self.sge(offset, if kind == 3 { 8 } else { 700 })];
        let remote = RemoteAddress {
            addr: 0x1000,
            rkey: 1,
        };
        let op = match kind {
            0 | 5 => {
                let request = ReceiveRequest {
                    wr_id: 0,
                    sges: &sges,
                };
                // The queue may be full: then the work isn't there.
                let _ = match kind {
                    0 => self.nic.post_recv(self.rc, &[request]),
                    _ => self.nic.post_srq_recv(self.srq, &[request]),
                };
                return;
            }
            1 | 6 => SendOp::Send,
            2 | 7 => SendOp::Read { remote },
            3 => SendOp::FetchAdd { remote, add: 1 },
            _ => SendOp::Write { remote },
        };
        let request = SendRequest {
            xrc_srqn: Some(1),
            ..SendRequest::signaled(0, op, &sges)
        };
        let qpn = if kind < 5 { self.rc } else { self.initiator };
        let _ = self.nic.post_send(qpn, &[request]);
    }

    /// Builds the packet that the input describes.
    fn packet(&self, opcode: u8, input: &mut Input<'_>) -> Option<Vec<u8>> {
        let (flags, near, aeth, size) =
            (input.byte()?, input.byte()?, input.byte()?, input.byte()?);
        let known = Opcode::from_byte(opcode);
        let is_response = known.is_some_and(|opcode| opcode.operation().is_response());
        let is_xrc = known.is_some_and(|opcode| opcode.service() == Service::Xrc);
        let qpn = match (is_xrc, is_response) {
            (false, _) => self.rc,
            (true, false) => self.target,
            (true, true) => self.initiator,
        };
        let attributes = self.nic.query_qp(qpn).ok()?;
        let base = if is_response {
            attributes.sq_psn?
        } else {
            attributes.rq_psn?
        };
        let psn = match near & 0xc0 {
            0xc0 => base
                .wrapping_add(0x80_0000)
                .wrapping_add(u32::from(near & 0x3f)),
            0x80 => base.wrapping_add(u32::from(near & 7)),
            0x40 => base,
            _ => base.wrapping_sub(u32::from(near)),
        };
        let length = [0, 1, 8, 255, 256, 257, 700, 0xffff_ffff][usize::from(size & 7)];
        let offset = match flags & 3 {
            0 | 1 => u64::from(input.word()?) & !7,
            2 => u64::from(input.word()?),
            _ => u64::MAX - u64::from(input.word()?),
        };
        let va = (self.buffer.addr() + GUARD as u64).wrapping_add(offset);
        let rkey = self.keys.rkey ^ u32::from(flags & 4);
        let headers = known.map_or(12, header_len);
        let payload = [0, 1, 8, 255, 256, 257, 188, 4][usize::from(size >> 3 & 7)];
        let pad = if flags & 0x80 == 0 {
            (payload as u8).wrapping_neg() & 3
        } else {
            size >> 6
        };
        let mut bytes = vec![near; headers + payload + usize::from(pad) + 4];
        bytes[0] = opcode;
        bytes[1] = pad << 4 | flags & 0x80;
        bytes[2..4].copy_from_slice(&DEFAULT_PKEY.to_be_bytes());
        bytes[4..8].copy_from_slice(&qpn.to_be_bytes());
        bytes[8..12].copy_from_slice(&(psn & 0xff_ffff).to_be_bytes());
        bytes[8] = flags << 4 & 0x80;
        let mut extended = bytes.get_mut(12..headers)?;
        if is_xrc && !is_response {
            // Once in four times a queue that isn't there.
            let unknown = u32::from(flags & 0x30 == 0x30) << 16;
            let srqn = (self.srq.number() ^ unknown).to_be_bytes();
            let header;
            (header, extended) = extended.split_at_mut_checked(srqn.len())?;
            header.copy_from_slice(&srqn);
        }
        if is_response {
            if let Some(first) = extended.first_mut() {
                *first = aeth;
            }
        } else if let Some(target) = extended.get_mut(..16) {
            target[..8].copy_from_slice(&va.to_be_bytes());
            target[8..12].copy_from_slice(&rkey.to_be_bytes());
            target[12..].copy_from_slice(&u32::to_be_bytes(length));
        }
        icrc::seal(&ENVELOPE, &mut bytes);
        Some(bytes)
    }

    /// Sends all that wants to leave and returns how much that was.
    fn drain(&mut self) -> usize {
        let mut packets = 0;
        loop {
            let now = Time::from_nanos(self.now);
            let more = self.nic.transmit(now, &mut self.tx, Acks::All);
            let count = self.tx.packets().len();
            packets += count;
            self.tx.consume(count);
            if !more && count == 0 {
                return packets;
            }
        }
    }

    fn check_guards(&self) {
        for start in [0, GUARD + REGION] {
            let mut guard = vec![0; GUARD];
            assert!(self.buffer.read(start, &mut guard).is_ok());
            assert!(
                guard.iter().all(|byte| *byte == 0xa5),
                "a guard was written"
            );
        }
    }
}

fuzz_target!(|data: &[u8]| {
    let Some(mut endpoint) = Endpoint::new() else {
        panic!("the endpoint isn't set up");
    };
    let mut input = Input(data);
    // A repeated Read may be under way already, and all requests of both
    // requesters may go again.
    let most = 2 * (REGION as u64 / MTU) as usize + 4 * WINDOW as usize;
    while let Some(step) = input.byte() {
        match step {
            0xf0..=0xf7 => {
                let Some(offset) = input.word() else { break };
                endpoint.post(step, offset);
            }
            0xf8.. => {
                if let Some(deadline) = endpoint.nic.next_deadline() {
                    endpoint.now = endpoint.now.max(deadline.as_nanos());
                    endpoint.nic.handle_timers(deadline);
                }
            }
            opcode => {
                let Some(bytes) = endpoint.packet(opcode, &mut input) else {
                    break;
                };
                let packet = RxPacket {
                    src: ENVELOPE.src,
                    dst: ENVELOPE.dst,
                    src_port: SRC_PORT,
                    traffic_class: 0,
                    hop_limit: 64,
                    ip_id: IpId::Known(0),
                    bytes: &bytes,
                };
                endpoint
                    .nic
                    .receive(Time::from_nanos(endpoint.now), &packet);
            }
        }
        let packets = endpoint.drain();
        assert!(packets <= most, "{packets} packets for one step");
    }
    let mut completions = [Completion::default(); 256];
    endpoint.nic.poll_cq(endpoint.cq, &mut completions);
    endpoint.check_guards();
});
