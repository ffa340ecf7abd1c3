//! T-108: random requests in both directions over a network that loses,
//! repeats, reorders and corrupts: every message arrives once and in order,
//! with its data, and nothing else is touched.

use std::collections::{HashMap, VecDeque};
use std::time::Duration;

use verbs_sys::{
    Completion, Gather, PathMtu, QpState, QpType, SendFlags, SendOp, SendRequest, WcOpcode,
    WcStatus,
};

use super::harness::{A, B, BUFFER, Fate, Faults, Pair, Setup, pattern};
use crate::time::Time;
use crate::wire::{Operation, Psn};

/// Random numbers by splitmix64: the same for a seed on every machine.
#[derive(Clone)]
struct Dice(u64);

impl Dice {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// 0 to `end` - 1.
    fn below(&mut self, end: usize) -> usize {
        (self.next() % end as u64) as usize
    }

    fn percent(&mut self, chance: usize) -> bool {
        self.below(100) < chance
    }

    fn pick<T: Copy>(&mut self, choices: &[T]) -> T {
        choices[self.below(choices.len())]
    }
}

/// Bytes that are sent and read; they stay the same.
const SOURCE: usize = 0x1_0000;
/// The word that atomics count in.
const COUNTER: usize = SOURCE;
/// From here on every message has a place of its own.
const PLACES: usize = SOURCE + 64;

/// What one host still has to do, and what it should see.
struct Plan {
    dice: Dice,
    requests: u64,
    posted: u64,
    /// `wr_id`s of signalled requests, in order.
    signalled: Vec<u64>,
    completed: usize,
    /// What the peer's receives should say: bytes, immediate data, and the
    /// message's bytes if they go to the receive's memory.
    arrivals: VecDeque<Arrival>,
    arrived: usize,
    /// Receives posted: their place, in order.
    receives: Vec<usize>,
    /// Next free place in the own memory.
    free: usize,
    /// The own memory as it should be in the end.
    image: Vec<u8>,
    atomics: u64,
}

struct Arrival {
    length: usize,
    imm: Option<u32>,
    /// Bytes of a Send.
    message: Option<Vec<u8>>,
    /// Writes before it, which must be visible: place and bytes.
    writes: Vec<(usize, Vec<u8>)>,
}

impl Plan {
    fn new(dice: Dice, requests: u64) -> Self {
        let mut image = vec![0xee; BUFFER];
        image[..SOURCE].copy_from_slice(&pattern(dice.0, SOURCE));
        image[COUNTER..COUNTER + 8].fill(0);
        Self {
            dice,
            requests,
            posted: 0,
            signalled: Vec::new(),
            completed: 0,
            arrivals: VecDeque::new(),
            arrived: 0,
            receives: Vec::new(),
            free: PLACES,
            image,
            atomics: 0,
        }
    }

    /// A place of `length` bytes with a gap behind it.
    fn place(&mut self, length: usize) -> usize {
        let place = self.free;
        self.free += length.next_multiple_of(8) + 8;
        assert!(self.free <= BUFFER, "the places don't suffice");
        place
    }
}

struct Chaos {
    pair: Pair,
    plans: [Plan; 2],
    longest: usize,
    writes: [Vec<(usize, Vec<u8>)>; 2],
}

/// Percentages of what goes wrong.
fn faults(mut dice: Dice) -> Faults {
    let (loss, duplicates) = (dice.below(21), dice.below(10));
    let (delays, corruptions) = (dice.below(10), dice.below(5));
    // A connection survives so many losses of one packet; more is another test.
    let mut losses: HashMap<(usize, Operation, Psn), u32> = HashMap::new();
    Box::new(move |from, _, datagram| {
        let later = Duration::from_nanos(dice.below(8_000) as u64);
        let packet = datagram.packet();
        let key = (from, packet.operation(), packet.psn());
        let lost = losses.entry(key).or_default();
        if *lost < 2 && dice.percent(loss + corruptions) {
            *lost += 1;
            return match dice.percent(100 * loss / (loss + corruptions)) {
                true => Fate::Drop,
                false => Fate::Corrupt(dice.below(1 << 16)),
            };
        }
        if dice.percent(duplicates) {
            Fate::Duplicate(later)
        } else if dice.percent(delays) {
            Fate::Delay(later)
        } else {
            Fate::Deliver
        }
    })
}

impl Chaos {
    fn new(seed: u64, qp_type: QpType) -> Self {
        let mut dice = Dice(seed);
        let mtu = dice.pick(&[PathMtu::Mtu256, PathMtu::Mtu512, PathMtu::Mtu1024]);
        let depth = dice.pick(&[1, 2, 3, 4, 16]);
        let psn = |dice: &mut Dice| match dice.percent(50) {
            true => 0xff_ffff - dice.below(40) as u32,
            false => dice.below(1 << 24) as u32,
        };
        let setup = Setup {
            qp_type,
            mtu,
            psn: [psn(&mut dice), psn(&mut dice)],
            timeout: 8,
            rd_atomic: [depth, depth],
            window: dice.pick(&[1, 2, 5, 16, 64, 128]),
            ipv6: dice.percent(20),
            min_rnr_timer: 1 + dice.below(6) as u8,
            ..Setup::default()
        };
        let mut pair = Pair::new(&setup);
        pair.faults = faults(Dice(dice.next()));
        let requests = 5 + dice.below(40) as u64;
        let plans = [(); 2].map(|()| Plan::new(Dice(dice.next()), requests));
        for (host, plan) in pair.hosts.iter().zip(&plans) {
            host.write(0, &plan.image);
        }
        Self {
            pair,
            plans,
            longest: 4 * mtu.bytes() as usize,
            writes: [Vec::new(), Vec::new()],
        }
    }

    /// Posts the next request of `host`.
    fn post(&mut self, host: usize) {
        let peer = 1 - host;
        let longest = self.longest;
        let dice = &mut self.plans[host].dice;
        let length = match dice.below(4) {
            0 => dice.below(16),
            1 => longest / 4 * (1 + dice.below(3)),
            _ => dice.below(longest),
        };
        let start = dice.below(SOURCE - length);
        let message = self.plans[host].image[start..start + length].to_vec();
        let dice = &mut self.plans[host].dice;
        let mut flags = SendFlags::empty();
        flags.set(SendFlags::SIGNALED, dice.percent(70));
        flags.set(SendFlags::FENCE, dice.percent(20));
        let inline = length <= 256 && dice.percent(30);
        let imm = dice.percent(40).then(|| dice.next() as u32);
        let kind = dice.below(4);
        let mut own_place = start;
        let mut length_of_list = length;
        let mut arrival = None;
        let op = match kind {
            0 => {
                arrival = Some((length, imm, Some(message.clone())));
                imm.map_or(SendOp::Send, |imm| SendOp::SendImm { imm })
            }
            1 => {
                let place = self.plans[peer].place(length);
                self.plans[peer].image[place..place + length].copy_from_slice(&message);
                self.writes[host].push((place, message.clone()));
                let remote = self.pair.hosts[peer].remote(place);
                arrival = imm.map(|imm| (length, Some(imm), None));
                match imm {
                    Some(imm) => SendOp::WriteImm { remote, imm },
                    None => SendOp::Write { remote },
                }
            }
            2 => {
                own_place = self.plans[host].place(length);
                let read = self.plans[peer].image[start..start + length].to_vec();
                self.plans[host].image[own_place..own_place + length].copy_from_slice(&read);
                let remote = self.pair.hosts[peer].remote(start);
                SendOp::Read { remote }
            }
            _ => {
                own_place = self.plans[host].place(8);
                length_of_list = 8;
                let before = self.plans[host].atomics;
                self.plans[host].atomics += 1;
                let result = before.to_ne_bytes();
                self.plans[host].image[own_place..own_place + 8].copy_from_slice(&result);
                let after = (before + 1).to_ne_bytes();
                self.plans[peer].image[COUNTER..COUNTER + 8].copy_from_slice(&after);
                let remote = self.pair.hosts[peer].remote(COUNTER);
                match self.plans[host].dice.percent(50) {
                    true => SendOp::FetchAdd { remote, add: 1 },
                    false => SendOp::CompareSwap {
                        remote,
                        compare: before,
                        swap: before + 1,
                    },
                }
            }
        };
        if let Some((length, imm, message)) = arrival {
            let writes = std::mem::take(&mut self.writes[host]);
            self.plans[host].arrivals.push_back(Arrival {
                length,
                imm,
                message,
                writes,
            });
        }
        let wr_id = self.plans[host].posted;
        self.plans[host].posted += 1;
        if flags.contains(SendFlags::SIGNALED) {
            self.plans[host].signalled.push(wr_id);
        }
        // Two pieces, so that packets straddle them.
        let cut = length_of_list / 3;
        let endpoint = &mut self.pair.hosts[host];
        let list = [
            endpoint.sge(own_place, cut),
            endpoint.sge(own_place + cut, length_of_list - cut),
        ];
        let data = match inline && kind < 2 {
            true => Gather::Inline(&message),
            false => Gather::Sges(&list),
        };
        let request = SendRequest {
            data,
            flags,
            ..SendRequest::signaled(wr_id, op, &[])
        };
        endpoint.try_post(&[request]).unwrap();
    }

    /// Posts one receive at `host`, if more messages may come.
    fn post_receive(&mut self, host: usize) {
        let plan = &mut self.plans[host];
        if plan.receives.len() as u64 == plan.requests {
            return;
        }
        let wr_id = plan.receives.len() as u64;
        let place = plan.place(self.longest);
        plan.receives.push(place);
        self.pair.hosts[host].recv(wr_id, place, self.longest);
    }

    fn check_sent(&mut self, host: usize) {
        for done in self.pair.hosts[host].sent() {
            let plan = &mut self.plans[host];
            let expected = plan.signalled.get(plan.completed).copied();
            assert_eq!(done.status, WcStatus::Success);
            assert_eq!(Some(done.wr_id), expected, "once and in order");
            plan.completed += 1;
        }
    }

    fn check_received(&mut self, host: usize) {
        for done in self.pair.hosts[host].received() {
            let index = done.wr_id as usize;
            let sender = &mut self.plans[1 - host];
            assert_eq!(index, sender.arrived, "once and in order");
            let arrival = sender.arrivals.pop_front().unwrap();
            sender.arrived += 1;
            check_arrival(&done, &arrival);
            let endpoint = &self.pair.hosts[host];
            for (place, bytes) in &arrival.writes {
                assert_eq!(endpoint.read(*place, bytes.len()), *bytes, "Write first");
            }
            if let Some(message) = &arrival.message {
                let place = self.plans[host].receives[index];
                self.plans[host].image[place..place + message.len()].copy_from_slice(message);
            }
        }
    }

    fn run(&mut self) {
        let end = Time::from_nanos(10_000_000_000);
        loop {
            for host in [A, B] {
                let plan = &mut self.plans[host];
                if plan.posted < plan.requests && plan.dice.percent(30) {
                    self.post(host);
                }
                if self.plans[host].dice.percent(15) {
                    self.post_receive(host);
                }
            }
            let rests = !self.pair.step(end);
            for host in [A, B] {
                self.check_sent(host);
                self.check_received(host);
            }
            let is_done = |plan: &Plan| plan.posted == plan.requests && plan.arrivals.is_empty();
            if rests && self.plans.iter().all(is_done) {
                break;
            }
        }
        assert!(self.pair.now < end, "no end");
        for host in [A, B] {
            let (endpoint, plan) = (&mut self.pair.hosts[host], &self.plans[host]);
            assert_eq!(plan.completed, plan.signalled.len(), "all complete");
            for qpn in [endpoint.qpn, endpoint.responder_qpn()] {
                assert_eq!(endpoint.state_of(qpn), QpState::Rts);
            }
            assert_eq!(endpoint.events(), []);
            let memory = endpoint.read(0, BUFFER);
            let wrong = memory
                .iter()
                .zip(&plan.image)
                .position(|(is, should)| is != should);
            assert_eq!(wrong, None, "memory of host {host}");
        }
    }
}

fn check_arrival(done: &Completion, arrival: &Arrival) {
    assert_eq!(done.status, WcStatus::Success);
    assert_eq!(done.byte_len as usize, arrival.length);
    assert_eq!(done.immediate(), arrival.imm);
    let opcode = match arrival.message {
        Some(_) => WcOpcode::Receive,
        None => WcOpcode::ReceiveWriteImm,
    };
    assert_eq!(done.opcode, opcode);
}

fn run_seeds(qp_type: QpType) {
    // More by hand: CHAOS_SEEDS=100000.
    let seeds = std::env::var("CHAOS_SEEDS").ok();
    let seeds = seeds.and_then(|seeds| seeds.parse().ok()).unwrap_or(400);
    for seed in 0..seeds {
        let run = std::panic::catch_unwind(|| Chaos::new(seed, qp_type).run());
        assert!(run.is_ok(), "{qp_type}, seed {seed}");
    }
}

#[test]
fn every_message_arrives_once_in_order_and_intact() {
    run_seeds(QpType::Rc);
}

#[test]
fn every_xrc_message_arrives_once_in_order_and_intact() {
    run_seeds(QpType::XrcSend);
}
