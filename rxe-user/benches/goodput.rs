//! Goodput of RC over a lossy link: RDMA Writes of 64 KiB over the simulated
//! network, by losses, packets in flight, and the requester's timeout.
//!
//! `cargo bench -p rxe-user --bench goodput`
//!
//! The clock is the network's and the losses come from a seed, so the table is
//! the same on every machine and in every run: it shows the protocol, which
//! costs no time by itself. A lost packet costs a round trip and what was sent
//! in vain meanwhile (go-back-N); if what repairs it gets lost too, a timeout.

use std::collections::VecDeque;
use std::error::Error;
use std::net::IpAddr;
use std::time::Duration;

use rxe_user::link::sim::{Faults, Network, SimLink};
use rxe_user::link::{Link, TxQueue};
use rxe_user::time::Time;
use rxe_user::transport::{Acks, CqId, Keys, Nic, NicConfig, NicLimits, QpSettings, Receiver};
use verbs_sys::memory::Buffer;
use verbs_sys::{
    AccessFlags, AddressVector, Completion, Gid, PathMtu, QpAttributes, QpCapabilities, QpState,
    QpType, RemoteAddress, SendOp, SendRequest, Sge,
};

type Result<T, E = Box<dyn Error>> = std::result::Result<T, E>;

/// One way.
const DELAY: Duration = Duration::from_micros(10);
/// Of IP packets.
const BITS_PER_SECOND: u64 = 100_000_000_000;
const LOSSES: [f64; 3] = [0.0, 0.001, 0.01];
/// Packets in flight at most.
const WINDOWS: [u32; 4] = [16, 64, 128, 256];
/// 4.096 us times two to the power of these (IBTA 9.7.6.1.3): about 1 ms, and
/// 67 ms, the default of perftest.
const TIMEOUTS: [u8; 2] = [8, 14];
const MESSAGE: usize = 65536;
const MESSAGES: u64 = 16_000;
/// Messages posted at a time, and places for them in the responder's memory.
const DEPTH: usize = 128;
const SEED: u64 = 4791;

fn main() -> Result<()> {
    println!(
        "RC goodput in 10^9 payload bytes per virtual second; {MESSAGES} Writes of {MESSAGE} \
         bytes, path MTU 4096,\n{} Gb/s, {} us one way; in brackets relative to no loss",
        BITS_PER_SECOND / 1_000_000_000,
        DELAY.as_micros()
    );
    for timeout in TIMEOUTS {
        let seconds = 4.096e-6 * f64::from(1_u32 << timeout);
        println!(
            "\ntimeout {timeout} ({:.1} ms); window in packets",
            seconds * 1e3
        );
        print!("{:<8}", "loss");
        for window in WINDOWS {
            print!("{window:>16}");
        }
        println!();
        let mut without_loss = [None; WINDOWS.len()];
        for loss in LOSSES {
            print!("{:<8}", format!("{} %", loss * 100.0));
            for (window, whole) in WINDOWS.into_iter().zip(&mut without_loss) {
                let goodput = Pair::new(loss, window, timeout)?.goodput()?;
                let whole = whole.get_or_insert(goodput);
                print!("{goodput:>9.3} ({:.2})", goodput / *whole);
            }
            println!();
        }
    }
    Ok(())
}

/// A NIC with one queue pair and one registered buffer.
struct Host {
    nic: Nic,
    link: SimLink,
    tx: TxQueue,
    address: IpAddr,
    cq: CqId,
    qpn: u32,
    buffer: Buffer,
    keys: Keys,
}

impl Host {
    fn new(network: &Network, number: u8, window: u32, bytes: usize) -> Result<Self> {
        let address = IpAddr::from([192, 0, 2, number]);
        let config = NicConfig {
            gids: vec![Gid::from_ip(address)],
            port_mtu: PathMtu::Mtu4096,
            window,
            limits: NicLimits::default(),
        };
        let mut random = fastrand::Rng::with_seed(number.into());
        let mut nic = Nic::new(config, Box::new(move || random.u32(..)));
        let pd = nic.alloc_pd()?;
        let cq = nic.create_cq(2 * DEPTH as u32)?;
        let buffer = Buffer::allocate(bytes)?;
        let access = AccessFlags::LOCAL_WRITE | AccessFlags::REMOTE;
        let keys = nic.register(pd, buffer.whole(), access)?;
        let qpn = nic.create_qp(QpSettings {
            qp_type: QpType::Rc,
            pd,
            send_cq: cq,
            recv_cq: cq,
            srq: None,
            xrcd: None,
            cap: QpCapabilities {
                max_send_wr: DEPTH as u32,
                max_recv_wr: 1,
                max_send_sge: 1,
                max_recv_sge: 1,
                max_inline_data: 0,
            },
            sq_sig_all: false,
        })?;
        Ok(Self {
            nic,
            link: network.attach(&[address]),
            tx: TxQueue::new(2 << 20, 1024),
            address,
            cq,
            qpn,
            buffer,
            keys,
        })
    }

    fn connect(&mut self, peer: &Self, timeout: u8) -> Result<()> {
        let init = QpAttributes {
            pkey_index: Some(0),
            port: Some(1),
            access_flags: Some(AccessFlags::REMOTE_WRITE),
            ..QpAttributes::to_state(QpState::Init)
        };
        let rtr = QpAttributes {
            av: Some(AddressVector {
                dgid: Gid::from_ip(peer.address),
                sgid_index: 0,
                flow_label: 0,
                hop_limit: 64,
                traffic_class: 0,
                sl: 0,
                port: 1,
            }),
            path_mtu: Some(PathMtu::Mtu4096),
            dest_qpn: Some(peer.qpn),
            rq_psn: Some(0),
            max_dest_rd_atomic: Some(1),
            min_rnr_timer: Some(12),
            ..QpAttributes::to_state(QpState::Rtr)
        };
        let rts = QpAttributes {
            sq_psn: Some(0),
            timeout: Some(timeout),
            retry_cnt: Some(7),
            rnr_retry: Some(7),
            max_qp_rd_atomic: Some(1),
            ..QpAttributes::to_state(QpState::Rts)
        };
        for step in [init, rtr, rts] {
            self.nic.modify_qp(self.qpn, &step)?;
        }
        Ok(())
    }

    /// Sends all that wants to leave.
    fn transmit(&mut self, now: Time) -> Result<()> {
        loop {
            let more = self.nic.transmit(now, &mut self.tx, Acks::All);
            self.link.send(&mut self.tx)?;
            if !more {
                return Ok(());
            }
        }
    }

    /// Takes all that has arrived.
    fn receive(&mut self, now: Time) -> Result<()> {
        let Self { nic, link, .. } = self;
        while link.receive(&mut Receiver { nic, now })? > 0 {}
        Ok(())
    }
}

/// A requester and a responder, and the network between them.
struct Pair {
    network: Network,
    requester: Host,
    responder: Host,
}

impl Pair {
    fn new(loss: f64, window: u32, timeout: u8) -> Result<Self> {
        let faults = Faults {
            loss,
            delay: DELAY,
            bits_per_second: Some(BITS_PER_SECOND),
            ..Faults::default()
        };
        let network = Network::new(SEED, faults);
        let mut requester = Host::new(&network, 1, window, DEPTH * MESSAGE)?;
        let mut responder = Host::new(&network, 2, window, DEPTH * MESSAGE)?;
        requester.connect(&responder, timeout)?;
        responder.connect(&requester, timeout)?;
        Ok(Self {
            network,
            requester,
            responder,
        })
    }

    /// Writes all messages; 10^9 payload bytes per second.
    fn goodput(&mut self) -> Result<f64> {
        // Message i goes from place i of the one memory to place i of the
        // other; each time round a different content.
        let mut random = fastrand::Rng::with_seed(SEED);
        let mut message = vec![0; MESSAGE];
        let mut posted = 0;
        let mut in_flight: VecDeque<u64> = VecDeque::with_capacity(DEPTH);
        let mut completed = 0;
        let mut completions = [Completion::default(); 64];
        while completed < MESSAGES {
            let now = self.network.now();
            while posted < MESSAGES && in_flight.len() < DEPTH {
                random.fill(&mut message);
                let offset = posted as usize % DEPTH * MESSAGE;
                self.requester.buffer.write(offset, &message)?;
                self.post(posted, offset)?;
                in_flight.push_back(posted);
                posted += 1;
            }
            self.step(now)?;
            let count = self
                .requester
                .nic
                .poll_cq(self.requester.cq, &mut completions);
            for completion in completions.iter().take(count) {
                let expected = in_flight.pop_front();
                if !completion.is_success() || expected != Some(completion.wr_id) {
                    return Err(format!("expected message {expected:?}, got {completion:?}").into());
                }
                self.check(completion.wr_id)?;
                completed += 1;
            }
        }
        let seconds = self.network.now().since(Time::ZERO).as_secs_f64();
        Ok((MESSAGES * MESSAGE as u64) as f64 / seconds / 1e9)
    }

    fn post(&mut self, message: u64, offset: usize) -> Result<()> {
        let (requester, responder) = (&mut self.requester, &self.responder);
        let sges = [Sge {
            addr: requester.buffer.addr() + offset as u64,
            length: MESSAGE as u32,
            lkey: requester.keys.lkey,
        }];
        let remote = RemoteAddress {
            addr: responder.buffer.addr() + offset as u64,
            rkey: responder.keys.rkey,
        };
        let request = SendRequest::signaled(message, SendOp::Write { remote }, &sges);
        Ok(requester.nic.post_send(requester.qpn, &[request])?)
    }

    /// Lets both send, goes on to when something happens next, and lets it happen.
    fn step(&mut self, now: Time) -> Result<()> {
        let hosts = [&mut self.requester, &mut self.responder];
        let mut next: Option<Time> = None;
        let mut until = |time: Option<Time>| next = next.into_iter().chain(time).min();
        for host in hosts {
            host.transmit(now)?;
            until(host.nic.next_deadline());
        }
        until(self.network.next_arrival());
        self.network
            .advance_to(next.ok_or("nothing moves any more")?);
        let now = self.network.now();
        for host in [&mut self.requester, &mut self.responder] {
            host.nic.handle_timers(now);
            host.receive(now)?;
        }
        Ok(())
    }

    /// A message that has completed is in the responder's memory, and intact.
    fn check(&self, message: u64) -> Result<()> {
        let offset = message as usize % DEPTH * MESSAGE;
        let (mut sent, mut arrived) = (vec![0; MESSAGE], vec![0; MESSAGE]);
        self.requester.buffer.read(offset, &mut sent)?;
        self.responder.buffer.read(offset, &mut arrived)?;
        if sent == arrived {
            return Ok(());
        }
        Err(format!("message {message} did not arrive as it was sent").into())
    }
}
