//! Two connected hosts, a virtual clock, and a network whose faults the test chooses.

use std::collections::BTreeMap;
use std::time::Duration;

use super::{Datagram, Host, Setup};
use crate::time::Time;
use crate::transport::{Acks, SrqId};

/// Index of the host that mostly requests.
pub(crate) const A: usize = 0;
/// Index of the host that mostly responds.
pub(crate) const B: usize = 1;

/// Time that a packet takes.
const LATENCY: Duration = Duration::from_micros(1);

/// What the network does with a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fate {
    Deliver,
    Drop,
    /// Delivers it twice, the second time so much later.
    Duplicate(Duration),
    /// Delivers it so much later.
    Delay(Duration),
    /// Flips one bit of the byte at this index, modulo the length.
    Corrupt(usize),
}

/// Decides the fate of each packet: which host sends it, and how many it has
/// sent before.
pub(crate) type Faults = Box<dyn FnMut(usize, usize, &Datagram) -> Fate>;

/// A packet that a host has sent.
pub(crate) struct Sent {
    pub(crate) from: usize,
    pub(crate) at: Time,
    pub(crate) datagram: Datagram,
}

pub(crate) struct Pair {
    pub(crate) now: Time,
    pub(crate) hosts: [Host; 2],
    /// Everything that was sent, dropped or not.
    pub(crate) log: Vec<Sent>,
    pub(crate) faults: Faults,
    in_flight: BTreeMap<(Time, u64), (usize, Datagram)>,
    serial: u64,
    count: [usize; 2],
    psn: [u32; 2],
}

impl Pair {
    /// Two hosts whose queue pairs are connected and in RTS.
    pub(crate) fn new(setup: &Setup) -> Self {
        Self::of(Host::new(1, setup), Host::new(2, setup), setup.psn)
    }

    /// Connects two hosts.
    pub(crate) fn of(a: Host, b: Host, psn: [u32; 2]) -> Self {
        let mut hosts = [a, b];
        let [a, b] = &mut hosts;
        let back = [psn[B], psn[A]];
        a.connect(a.qpn, b.address, b.responder_qpn(), psn);
        b.connect(b.qpn, a.address, a.responder_qpn(), back);
        if let (Some(target_a), Some(target_b)) = (a.target, b.target) {
            a.connect(target_a, b.address, b.qpn, psn);
            b.connect(target_b, a.address, a.qpn, back);
            a.peer_srqn = b.srq.map(SrqId::number);
            b.peer_srqn = a.srq.map(SrqId::number);
        }
        let [a, b] = hosts;
        Self::connected(a, b, psn)
    }

    /// Two hosts that are connected already; `psn` are their first ones.
    pub(crate) fn connected(a: Host, b: Host, psn: [u32; 2]) -> Self {
        Self {
            now: Time::ZERO,
            hosts: [a, b],
            log: Vec::new(),
            faults: Box::new(|_, _, _| Fate::Deliver),
            in_flight: BTreeMap::new(),
            serial: 0,
            count: [0; 2],
            psn,
        }
    }

    pub(crate) fn a(&mut self) -> &mut Host {
        &mut self.hosts[A]
    }

    pub(crate) fn b(&mut self) -> &mut Host {
        &mut self.hosts[B]
    }

    /// Drops the packets that `host` sends whose count is in `counts`.
    pub(crate) fn drop_packets(&mut self, host: usize, counts: &'static [usize]) {
        self.faults = Box::new(move |from, count, _| {
            if from == host && counts.contains(&count) {
                Fate::Drop
            } else {
                Fate::Deliver
            }
        });
    }

    /// Runs until nothing is in flight and no timer is set.
    pub(crate) fn drive(&mut self) {
        while self.step(Time::from_nanos(u64::MAX)) {
            assert!(self.log.len() < 100_000, "the endpoints never rest");
        }
    }

    /// Runs for some time.
    pub(crate) fn run_for(&mut self, duration: Duration) {
        let end = self.now + duration;
        while self.step(end) {}
        self.now = end;
    }

    /// Lets both send, then moves on to the next arrival or deadline; `false`
    /// when there is none until `end`.
    pub(crate) fn step(&mut self, end: Time) -> bool {
        for from in [A, B] {
            for datagram in self.hosts[from].transmit(self.now, Acks::All) {
                self.launch(from, datagram);
            }
        }
        let arrival = self.in_flight.keys().next().map(|(at, _)| *at);
        let deadlines = self.hosts.iter().map(|host| host.nic.next_deadline());
        let Some(next) = deadlines.chain([arrival]).flatten().min() else {
            return false;
        };
        if next > end {
            return false;
        }
        self.now = self.now.max(next);
        for host in &mut self.hosts {
            host.nic.handle_timers(self.now);
        }
        while let Some(entry) = self.in_flight.first_entry() {
            if entry.key().0 > self.now {
                break;
            }
            let (to, datagram) = entry.remove();
            self.hosts[to].nic.receive(self.now, &datagram.arrived());
        }
        true
    }

    fn launch(&mut self, from: usize, datagram: Datagram) {
        let count = self.count[from];
        self.count[from] += 1;
        let fate = (self.faults)(from, count, &datagram);
        let sent = datagram.clone();
        self.log.push(Sent {
            from,
            at: self.now,
            datagram: sent,
        });
        let to = 1 - from;
        match fate {
            Fate::Deliver => self.arrive(to, LATENCY, datagram),
            Fate::Drop => {}
            Fate::Duplicate(later) => {
                self.arrive(to, LATENCY, datagram.clone());
                self.arrive(to, LATENCY + later, datagram);
            }
            Fate::Delay(later) => self.arrive(to, LATENCY + later, datagram),
            Fate::Corrupt(index) => {
                let mut datagram = datagram;
                // Byte 4 isn't covered by the ICRC.
                let index = index % datagram.bytes.len();
                datagram.bytes[if index == 4 { 0 } else { index }] ^= 1;
                self.arrive(to, LATENCY, datagram);
            }
        }
    }

    /// Puts a packet on its way.
    pub(crate) fn arrive(&mut self, to: usize, after: Duration, datagram: Datagram) {
        self.serial += 1;
        self.in_flight
            .insert((self.now + after, self.serial), (to, datagram));
    }

    /// Forgets what was sent so far.
    pub(crate) fn clear_log(&mut self) {
        self.log.clear();
    }

    /// What `from` has sent for the requests of A, PSNs counted from A's first.
    pub(crate) fn texts(&self, from: usize) -> Vec<String> {
        self.log
            .iter()
            .filter(|sent| sent.from == from)
            .map(|sent| sent.datagram.text(self.psn[A]))
            .collect()
    }
}
