//! The transport over [`crate::link::sim`], through a link as it is
//! used with sockets: batches, hidden IPv4 identifications, real ICRCs.

use std::time::Duration;

use verbs_sys::{SendOp, WcStatus};

use super::harness::{A, B, Host, Lan, Setup, outcomes, pattern};
use crate::link::sim::{Faults, IpIds, Network};

const TARGET: usize = 0x8_0000;
const MESSAGES: u64 = 30;

/// Bytes of message `index`: from none to several packets.
fn length(index: u64) -> usize {
    (index * 337 % 1400) as usize
}

/// Two connected hosts on a network that goes wrong.
fn faulty_lan(seed: u64, ids: IpIds) -> Lan {
    let setup = Setup {
        timeout: 8,
        psn: [0xff_fff0, 0x7f_fff0],
        ..Setup::default()
    };
    let faults = Faults {
        loss: 0.05,
        duplicate: 0.05,
        reorder: 0.05,
        reorder_by: Duration::from_micros(10),
        corrupt: 0.02,
        delay: Duration::from_micros(2),
        jitter: Duration::from_micros(1),
        ..Faults::default()
    };
    let network = Network::new(seed, faults);
    network.set_ip_ids(ids);
    let mut hosts = [Host::new(1, &setup), Host::new(2, &setup)];
    let [a, b] = &mut hosts;
    a.connect(a.qpn, b.address, b.qpn, setup.psn);
    b.connect(b.qpn, a.address, a.qpn, [setup.psn[1], setup.psn[0]]);
    Lan::new(network, hosts.into())
}

#[test]
fn messages_cross_the_simulated_link() {
    let (mut corrupted, mut retransmitted) = (0, 0);
    for seed in 0..20 {
        for ids in [IpIds::Zero, IpIds::Hidden] {
            let mut run = faulty_lan(seed, ids);
            for host in [A, B] {
                run.hosts[host].write(0, &pattern(host as u64, 2000));
                for index in 0..MESSAGES {
                    let place = TARGET + 1400 * index as usize;
                    let own = &mut run.hosts[host];
                    own.recv(index, place, 1400);
                    own.post(2 * index, SendOp::Send, index as usize, length(index));
                    let read_to = 0x1_0000 + 1400 * index as usize;
                    let remote = run.hosts[1 - host].remote(index as usize);
                    let read = SendOp::Read { remote };
                    run.hosts[host].post(2 * index + 1, read, read_to, length(index));
                }
            }
            run.drive();
            for host in [A, B] {
                let context = format!("seed {seed}, {ids:?}, host {host}");
                let own = &mut run.hosts[host];
                let successes =
                    |count| -> Vec<_> { (0..count).map(|id| (id, WcStatus::Success)).collect() };
                assert_eq!(outcomes(&own.sent()), successes(2 * MESSAGES), "{context}");
                assert_eq!(outcomes(&own.received()), successes(MESSAGES), "{context}");
                let source = pattern(1 - host as u64, 2000);
                for index in 0..MESSAGES as usize {
                    let length = length(index as u64);
                    let expected = &source[index..index + length];
                    for start in [TARGET, 0x1_0000] {
                        let seen = own.read(start + 1400 * index, length);
                        assert_eq!(seen, expected, "{context}, message {index}");
                    }
                }
                retransmitted += own.nic.counters().retransmitted;
            }
            corrupted += run.network.counters().corrupted;
        }
    }
    assert!(
        corrupted > 100 && retransmitted > 1000,
        "{corrupted} {retransmitted}"
    );
}
