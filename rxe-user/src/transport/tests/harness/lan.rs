//! Hosts on the simulated network, through the same [`Link`] that sockets
//! implement.

use super::Host;
use crate::link::Link;
use crate::link::sim::Network;
use crate::time::Time;
use crate::transport::{Acks, Receiver};

pub(crate) struct Lan {
    pub(crate) network: Network,
    pub(crate) hosts: Vec<Host>,
    pub(crate) links: Vec<Box<dyn Link>>,
}

impl Lan {
    pub(crate) fn new(network: Network, hosts: Vec<Host>) -> Self {
        let attach = |host: &Host| -> Box<dyn Link> { Box::new(network.attach(&[host.address])) };
        let links = hosts.iter().map(attach).collect();
        Self {
            network,
            hosts,
            links,
        }
    }

    /// Lets all send and receive until nothing more will happen.
    pub(crate) fn drive(&mut self) {
        loop {
            let now = self.network.now();
            for (host, link) in self.hosts.iter_mut().zip(&mut self.links) {
                host.nic.handle_timers(now);
                while host.nic.transmit(now, &mut host.tx, Acks::All) || !host.tx.is_empty() {
                    link.send(&mut host.tx).unwrap();
                }
            }
            let deadlines = self.hosts.iter().map(|host| host.nic.next_deadline());
            let next = deadlines
                .chain([self.network.next_arrival()])
                .flatten()
                .min();
            let Some(next) = next else { return };
            assert!(next < Time::from_nanos(10_000_000_000), "no end");
            self.network.advance_to(next);
            let now = self.network.now();
            for (host, link) in self.hosts.iter_mut().zip(&mut self.links) {
                let nic = &mut host.nic;
                while link.receive(&mut Receiver { nic, now }).unwrap() > 0 {}
            }
        }
    }
}
