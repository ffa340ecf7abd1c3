use super::super::testing::{Packet, Packets, push, route};
use super::*;

const A: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 1));
const B: IpAddr = IpAddr::V4(std::net::Ipv4Addr::new(192, 0, 2, 2));
const US: Duration = Duration::from_micros(1);

struct Pair {
    network: Network,
    a: SimLink,
    b: SimLink,
}

fn pair(seed: u64, faults: Faults) -> Pair {
    let network = Network::new(seed, faults);
    let (a, b) = (network.attach(&[A]), network.attach(&[B]));
    Pair { network, a, b }
}

impl Pair {
    /// Sends packets `from..to` from A to B.
    fn send(&mut self, from: u64, to: u64) {
        let mut tx = TxQueue::new(1 << 16, 1 << 12);
        for seed in from..to {
            push(&mut tx, route(A, B), 40 + 4 * (seed as usize % 3), seed);
            self.a.send(&mut tx).unwrap();
        }
    }

    /// What has arrived at B by now.
    fn arrived(&mut self) -> Vec<Packet> {
        let mut packets = Packets::default();
        while self.b.receive(&mut packets).unwrap() > 0 {}
        packets.0
    }

    /// All that arrive at B, and when.
    fn trace(&mut self) -> Vec<(Time, Packet)> {
        let mut trace = Vec::new();
        while let Some(time) = self.network.next_arrival() {
            self.network.advance_to(time);
            let now = self.network.now();
            trace.extend(self.arrived().into_iter().map(|packet| (now, packet)));
        }
        trace
    }

    fn arrivals(&mut self) -> Vec<Packet> {
        self.trace().into_iter().map(|(_, packet)| packet).collect()
    }
}

/// The packet that `push` makes from a seed, its ICRC aside.
fn content(seed: u64) -> Vec<u8> {
    let mut tx = TxQueue::new(64, 1);
    push(&mut tx, route(A, B), 40 + 4 * (seed as usize % 3), seed);
    let bytes = tx.bytes(0, 1);
    bytes[..bytes.len() - 4].to_vec()
}

/// The seeds of packets, of those sent.
fn seeds(packets: &[Packet], sent: u64) -> Vec<u64> {
    let seed = |packet: &Packet| (0..sent).find(|&seed| packet.bytes.starts_with(&content(seed)));
    packets.iter().map(|packet| seed(packet).unwrap()).collect()
}

fn all_faults() -> Faults {
    Faults {
        loss: 0.1,
        duplicate: 0.1,
        reorder: 0.1,
        reorder_by: 30 * US,
        corrupt: 0.1,
        delay: 5 * US,
        jitter: 3 * US,
        mtu: Some(4200),
        bits_per_second: Some(1_000_000_000),
    }
}

#[test]
fn without_faults_packets_arrive_at_once_in_order_and_sealed() {
    let mut pair = pair(1, Faults::default());
    pair.send(0, 200);
    assert_eq!(pair.network.next_arrival(), Some(Time::ZERO));
    let packets = pair.arrived();
    assert_eq!(seeds(&packets, 200), (0..200).collect::<Vec<_>>());
    assert!(packets.iter().all(Packet::is_sealed));
    assert!(packets.iter().all(|packet| packet.route == route(A, B)));
    let counters = pair.network.counters();
    assert_eq!((counters.sent, counters.delivered), (200, 200));
    assert_eq!(pair.network.next_arrival(), None);
}

#[test]
fn one_seed_gives_one_trace() {
    let run = |seed| {
        let mut pair = pair(seed, all_faults());
        pair.network.set_ip_ids(IpIds::Hidden);
        pair.send(0, 300);
        (pair.trace(), pair.network.counters())
    };
    let first = run(7);
    assert_eq!(first, run(7));
    assert_ne!(first, run(8));
}

#[test]
fn hidden_identifications_can_be_solved() {
    let mut pair = pair(3, Faults::default());
    pair.network.set_ip_ids(IpIds::Hidden);
    let mut tx = TxQueue::new(1 << 12, 20);
    let mut sent = Packets::default();
    for seed in 0..20 {
        push(&mut tx, route(A, B), 100, seed);
    }
    pair.a.send_tapped(&mut tx, &mut sent).unwrap();
    let received = pair.arrived();
    assert!(!received.iter().all(Packet::is_sealed), "they are hidden");
    for (sent, received) in sent.0.iter().zip(&received) {
        assert!(sent.is_sealed());
        assert_eq!(sent.bytes, received.bytes);
        assert_eq!(received.ip_id, IpId::Likely(0));
        assert_eq!(sent.ip_id, IpId::Known(received.solve().unwrap()));
        assert!(received.src_port >= 0xC000);
    }
}

#[test]
fn faults_happen_as_often_as_they_should() {
    let mut pair = pair(
        5,
        Faults {
            jitter: Duration::ZERO,
            ..all_faults()
        },
    );
    pair.send(0, 4000);
    let arrivals = pair.arrivals();
    let counters = pair.network.counters();
    assert_eq!(counters.sent, 4000);
    let near = |count: u64, expected: u64| count.abs_diff(expected) < expected / 5;
    assert!(near(counters.lost, 400), "{counters:?}");
    assert!(near(counters.duplicated, 360), "{counters:?}");
    assert!(near(counters.corrupted, 360), "{counters:?}");
    assert!(near(counters.held_back, 360), "{counters:?}");
    assert_eq!(counters.delivered, arrivals.len() as u64);
    assert_eq!(
        counters.delivered,
        4000 - counters.lost + counters.duplicated
    );
    assert_eq!(counters.too_large + counters.unreachable, 0);
}

#[test]
fn a_corrupted_packet_fails_its_check() {
    let mut pair = pair(
        5,
        Faults {
            corrupt: 1.0,
            ..Faults::default()
        },
    );
    pair.send(0, 1000);
    let arrivals = pair.arrivals();
    assert_eq!(arrivals.len(), 1000);
    assert!(arrivals.iter().all(|packet| !packet.is_sealed()));
}

#[test]
fn a_packet_held_back_is_overtaken() {
    let faults = Faults {
        reorder: 0.05,
        reorder_by: 10 * US,
        ..Faults::default()
    };
    let mut pair = pair(5, faults);
    for seed in 0..400 {
        pair.send(seed, seed + 1);
        pair.network.advance_to(pair.network.now() + US);
    }
    let order = seeds(&pair.arrivals(), 400);
    assert!(!order.is_sorted());
    let mut sorted = order.clone();
    sorted.sort_unstable();
    assert_eq!(sorted, (0..400).collect::<Vec<_>>());
}

#[test]
fn jitter_keeps_the_order() {
    let mut pair = pair(
        5,
        Faults {
            delay: US,
            jitter: 10 * US,
            ..Faults::default()
        },
    );
    pair.send(0, 100);
    assert!(pair.arrived().is_empty(), "under way");
    let trace = pair.trace();
    assert!(
        trace
            .iter()
            .all(|&(time, _)| (US..=11 * US).contains(&(time - Time::ZERO)))
    );
    assert!(trace.first().unwrap().0 < trace.last().unwrap().0);
    let packets: Vec<_> = trace.into_iter().map(|(_, packet)| packet).collect();
    assert_eq!(seeds(&packets, 100), (0..100).collect::<Vec<_>>());
}

#[test]
fn the_rate_spaces_packets() {
    // 72 bytes of BTH to ICRC in 100 of IPv4 take 800 ns.
    let faults = Faults {
        delay: US,
        bits_per_second: Some(1_000_000_000),
        ..Faults::default()
    };
    let mut pair = pair(5, faults);
    let mut tx = TxQueue::new(1 << 12, 3);
    for seed in 0..3 {
        push(&mut tx, route(A, B), 72, seed);
    }
    pair.a.send(&mut tx).unwrap();
    let times: Vec<_> = pair
        .trace()
        .iter()
        .map(|(time, _)| time.as_nanos())
        .collect();
    assert_eq!(times, [1800, 2600, 3400]);
}

#[test]
fn what_exceeds_the_mtu_is_lost() {
    let mut pair = pair(
        5,
        Faults {
            mtu: Some(100),
            ..Faults::default()
        },
    );
    let mut tx = TxQueue::new(1 << 12, 3);
    for (seed, len) in [(0, 72), (1, 76), (2, 72)] {
        push(&mut tx, route(A, B), len, seed);
    }
    pair.a.send(&mut tx).unwrap();
    assert!(tx.is_empty());
    assert_eq!(pair.arrivals().len(), 2);
    assert_eq!(pair.network.counters().too_large, 1);
}

#[test]
fn a_script_overrules_chance() {
    let mut pair = pair(
        5,
        Faults {
            delay: US,
            ..Faults::default()
        },
    );
    pair.network.set_script(|packet| {
        assert_eq!((packet.src, packet.dst, packet.time), (A, B, Time::ZERO));
        assert!(packet.bytes.len() >= 40);
        match packet.index {
            1 => Verdict::Drop,
            2 => Verdict::Corrupt(8 * 20 + 3),
            3 => Verdict::Duplicate,
            4 => Verdict::Delay(4 * US),
            _ => Verdict::Pass,
        }
    });
    pair.send(0, 6);
    let trace = pair.trace();
    let times: Vec<_> = trace.iter().map(|(time, _)| time.as_nanos()).collect();
    assert_eq!(times, [1000, 1000, 1000, 1000, 1000, 5000]);
    let packets: Vec<_> = trace.into_iter().map(|(_, packet)| packet).collect();
    let mut corrupt = packets[1].clone();
    assert!(!corrupt.is_sealed());
    corrupt.bytes[20] ^= 8;
    assert!(corrupt.is_sealed());
    assert_eq!(seeds(&packets[..1], 6), [0]);
    assert_eq!(seeds(&packets[2..], 6), [3, 3, 5, 4]);
}

#[test]
fn one_packet_can_be_dropped() {
    let mut pair = pair(5, Faults::default());
    pair.network.set_script(drop_packet(A, B, 2));
    pair.send(0, 4);
    assert_eq!(seeds(&pair.arrivals(), 4), [0, 1, 3]);
    pair.network.set_script(drop_packet(B, A, 4));
    pair.send(4, 5);
    assert_eq!(pair.arrivals().len(), 1, "the other direction");
}

#[test]
fn an_end_that_has_gone_gets_nothing() {
    let Pair { network, mut a, b } = pair(5, Faults::default());
    let mut tx = TxQueue::new(1 << 12, 3);
    let mut send = |to| {
        push(&mut tx, route(A, to), 40, 1);
        a.send(&mut tx).unwrap();
    };
    send(B);
    drop(b);
    assert_eq!(network.next_arrival(), None);
    send(B);
    assert_eq!(network.counters().unreachable, 1);
}

#[test]
fn a_group_address_reaches_all_that_have_it() {
    let group = IpAddr::from([239, 1, 1, 1]);
    let network = Network::new(1, Faults::default());
    let mut sender = network.attach(&[A]);
    let mut members = [network.attach(&[B, group]), network.attach(&[group])];
    let mut tx = TxQueue::new(1 << 12, 1);
    push(&mut tx, route(A, group), 40, 1);
    sender.send(&mut tx).unwrap();
    for member in &mut members {
        let mut packets = Packets::default();
        assert_eq!(member.receive(&mut packets).unwrap(), 1);
        assert_eq!(packets.0[0].route.dst, group);
    }
}

#[test]
fn the_clock_never_goes_back() {
    let network = Network::new(1, Faults::default());
    network.advance_to(Time::from_nanos(10));
    network.advance_to(Time::from_nanos(5));
    assert_eq!(network.now(), Time::from_nanos(10));
}

#[test]
fn ipv6_packets_are_sealed_too() {
    let [a, b]: [IpAddr; 2] = [
        "2001:db8::1".parse().unwrap(),
        "2001:db8::2".parse().unwrap(),
    ];
    let network = Network::new(
        1,
        Faults {
            mtu: Some(88),
            ..Faults::default()
        },
    );
    let (mut sender, mut receiver) = (network.attach(&[a]), network.attach(&[b]));
    let mut tx = TxQueue::new(1 << 12, 2);
    push(&mut tx, route(a, b), 40, 1);
    push(&mut tx, route(a, b), 44, 1);
    sender.send(&mut tx).unwrap();
    let mut packets = Packets::default();
    assert_eq!(receiver.receive(&mut packets).unwrap(), 1);
    assert!(packets.0[0].is_sealed());
    assert_eq!(network.counters().too_large, 1);
}
