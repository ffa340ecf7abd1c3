mod multicast;

use std::net::Ipv6Addr;
use std::time::{Duration, Instant};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use proptest::prelude::*;

use super::super::testing::{Packet, Packets, loopback_address, push, receive, route};
use super::super::{IpId, ROCE_PORT, Route};
use super::*;

fn bind(address: IpAddr, batching: Batching, gro: bool) -> UdpLink {
    let options = UdpOptions {
        batching,
        gro,
        ..UdpOptions::default()
    };
    UdpLink::bind(&[address], &options).unwrap()
}

fn pair() -> (UdpLink, UdpLink, Route) {
    let (src, dst) = (loopback_address(), loopback_address());
    let sender = bind(src, Batching::Segments, true);
    (sender, bind(dst, Batching::Segments, true), route(src, dst))
}

fn queue(route: Route, sizes: &[usize]) -> TxQueue {
    let mut tx = TxQueue::new(sizes.iter().sum(), sizes.len());
    for (seed, &size) in (0..).zip(sizes) {
        push(&mut tx, route, size, seed);
    }
    tx
}

/// Sends packets of these sizes; what went and what came.
fn exchange(
    sender: &mut UdpLink,
    receiver: &mut UdpLink,
    route: Route,
    sizes: &[usize],
) -> (Vec<Packet>, Vec<Packet>) {
    let mut tx = queue(route, sizes);
    let mut sent = Packets::default();
    sender.send_tapped(&mut tx, &mut sent).unwrap();
    assert!(tx.is_empty());
    (sent.0, receive(receiver, sizes.len()))
}

fn bytes_of(packets: &[Packet]) -> Vec<&[u8]> {
    packets
        .iter()
        .map(|packet| packet.bytes.as_slice())
        .collect()
}

/// Runs of equal packets, odd ones between, tails, and the extremes.
fn mixed_sizes() -> Vec<usize> {
    let mut sizes = vec![16];
    sizes.extend([4112; 40]);
    sizes.extend([100, 4128, 4112, 4112, 900]);
    sizes.extend([24; 150]);
    sizes.extend([20, 28, 20, 28]);
    sizes.extend([65507, 65507, 4096, 16]);
    sizes
}

#[test]
fn every_size_arrives_with_a_right_icrc() {
    let (mut sender, mut receiver, route) = pair();
    for sizes in (16..4200_usize).step_by(4).collect::<Vec<_>>().chunks(200) {
        let (sent, received) = exchange(&mut sender, &mut receiver, route, sizes);
        assert_eq!(bytes_of(&sent), bytes_of(&received));
        assert!(received.iter().all(Packet::is_sealed));
    }
}

#[test]
fn runs_arrive_in_order_whatever_the_kernel_offers() {
    let sizes = mixed_sizes();
    for batching in [Batching::Segments, Batching::Messages, Batching::None] {
        for gro in [true, false] {
            let (src, dst) = (loopback_address(), loopback_address());
            let mut sender = bind(src, batching, gro);
            let mut receiver = bind(dst, batching, gro);
            let (sent, received) = exchange(&mut sender, &mut receiver, route(src, dst), &sizes);
            assert_eq!(bytes_of(&sent), bytes_of(&received), "{batching:?} {gro}");
            let lens: Vec<_> = sent.iter().map(|packet| packet.bytes.len()).collect();
            assert_eq!(lens, sizes, "{batching:?} {gro}");
            for (sent, received) in sent.iter().zip(&received) {
                assert!(sent.is_sealed());
                let id = received.solve().unwrap();
                assert_eq!(sent.ip_id, IpId::Known(id));
                assert_eq!(received.src_port, ROCE_PORT);
                assert_eq!(received.route, route(src, dst));
                // What is merged comes with the index in the run; what isn't may
                // have been cut by the kernel before.
                assert!(received.is_sealed() || batching == Batching::Segments && !gro);
            }
            let (tx, rx) = (sender.counters(), receiver.counters());
            assert_eq!(tx.sent_packets, sizes.len() as u64);
            assert_eq!(rx.received_packets, sizes.len() as u64);
            let batched = batching == Batching::Segments;
            assert_eq!(tx.sent_messages < tx.sent_packets, batched);
            assert_eq!(rx.received_datagrams < rx.received_packets, batched && gro);
        }
    }
}

#[test]
fn segments_of_a_run_are_numbered_from_0() {
    let (mut sender, mut receiver, route) = pair();
    let (sent, received) = exchange(
        &mut sender,
        &mut receiver,
        route,
        &[1040, 1040, 1040, 500, 1040],
    );
    let expected = [0, 1, 2, 3, 0];
    assert_eq!(
        sent.iter().map(|packet| packet.ip_id).collect::<Vec<_>>(),
        expected.map(IpId::Known)
    );
    assert_eq!(
        received
            .iter()
            .map(|packet| packet.ip_id)
            .collect::<Vec<_>>(),
        expected.map(IpId::Likely)
    );
    assert_eq!(sender.counters().sent_messages, 2);
}

/// Pairs alike set the socket's own segment size; what comes in between and
/// after must not be cut up by it.
#[test]
fn what_follows_many_small_runs_alike_arrives_whole() {
    let (mut sender, mut receiver, route) = pair();
    let others: [&[usize]; 6] = [
        &[20],
        &[4112],
        &[40],
        &[44, 20],
        &[4112, 4112, 40],
        &[40, 20, 4112],
    ];
    for other in others {
        for sizes in [[40, 20].as_slice(); 40]
            .into_iter()
            .chain([other, &[40, 20]])
        {
            let (sent, received) = exchange(&mut sender, &mut receiver, route, sizes);
            let lens: Vec<_> = received.iter().map(|packet| packet.bytes.len()).collect();
            assert_eq!(lens, sizes, "{other:?}");
            assert_eq!(bytes_of(&sent), bytes_of(&received));
            assert!(received.iter().all(Packet::is_sealed));
        }
    }
}

#[test]
fn a_run_has_64_packets_and_65507_bytes_at_most() {
    let (mut sender, mut receiver, route) = pair();
    exchange(&mut sender, &mut receiver, route, &[24; 65]);
    assert_eq!(sender.counters().sent_messages, 2);
    exchange(&mut sender, &mut receiver, route, &[4112; 16]);
    assert_eq!(sender.counters().sent_messages, 4, "15 and 1 of 4112 bytes");
}

#[test]
fn without_segmentation_packets_go_whole() {
    let (mut sender, mut receiver, route) = pair();
    // The kernel doesn't segment what has no UDP checksum.
    sender.endpoints[0]
        .socket
        .set(libc::SOL_SOCKET, libc::SO_NO_CHECK, 1)
        .unwrap();
    let sizes = mixed_sizes();
    let (sent, received) = exchange(&mut sender, &mut receiver, route, &sizes);
    assert_eq!(bytes_of(&sent), bytes_of(&received));
    assert!(received.iter().all(|packet| packet.solve() == Some(0)));
    assert_eq!(sender.counters().sent_messages, sizes.len() as u64);
    assert_eq!(sender.counters().lost_unreachable, 0);
}

#[test]
fn what_the_network_refuses_is_lost_and_the_rest_goes_on() {
    let (mut sender, mut receiver, to_peer) = pair();
    let broadcast = route(to_peer.src, [255, 255, 255, 255].into());
    let stranger = route([192, 0, 2, 1].into(), to_peer.dst);
    let mut tx = TxQueue::new(1 << 18, 16);
    push(&mut tx, to_peer, 40, 1);
    push(&mut tx, to_peer, 65528, 2);
    push(&mut tx, broadcast, 48, 3);
    push(&mut tx, broadcast, 48, 4);
    push(&mut tx, stranger, 48, 5);
    push(&mut tx, to_peer, 48, 6);
    push(&mut tx, to_peer, 48, 7);
    sender.send(&mut tx).unwrap();
    assert!(tx.is_empty());
    let lens: Vec<_> = receive(&mut receiver, 3)
        .iter()
        .map(|packet| packet.bytes.len())
        .collect();
    assert_eq!(lens, [40, 48, 48]);
    let counters = sender.counters();
    assert_eq!(counters.sent_packets, 3);
    assert_eq!(counters.lost_too_large, 1);
    assert_eq!(counters.lost_unreachable, 3);
    assert_eq!(
        counters.sent_messages, 2,
        "a peer that can't be reached says nothing about segmentation"
    );
}

#[test]
fn several_peers_share_a_batch() {
    let addresses = [loopback_address(), loopback_address(), loopback_address()];
    let mut links = addresses.map(|address| bind(address, Batching::Segments, true));
    let mut tx = TxQueue::new(1 << 16, 40);
    for seed in 0..40 {
        let peer = addresses[1 + seed as usize / 2 % 2];
        push(&mut tx, route(addresses[0], peer), 600, seed);
    }
    links[0].send(&mut tx).unwrap();
    assert_eq!(links[0].counters().sent_messages, 20);
    for link in &mut links[1..] {
        let received = receive(link, 20);
        assert_eq!(received.len(), 20);
        assert!(received.iter().all(Packet::is_sealed));
    }
}

#[test]
fn one_link_has_several_addresses() {
    let addresses = [loopback_address(), loopback_address(), loopback_address()];
    let mut link = UdpLink::bind(&addresses, &UdpOptions::default()).unwrap();
    assert_eq!(link.addresses().collect::<Vec<_>>(), addresses);
    let mut tx = TxQueue::new(1 << 16, 9);
    for (seed, src) in (0..).zip(addresses) {
        for dst in addresses {
            push(&mut tx, route(src, dst), 400, seed);
        }
    }
    link.send(&mut tx).unwrap();
    let received = receive(&mut link, 9);
    for src in addresses {
        for dst in addresses {
            assert!(
                received
                    .iter()
                    .any(|packet| packet.route == route(src, dst))
            );
        }
    }
    assert!(received.iter().all(Packet::is_sealed));
}

#[test]
fn traffic_class_and_hop_limit_are_sent_and_shown_when_wanted() {
    let (mut sender, mut receiver, plain) = pair();
    let marked = Route {
        traffic_class: 0x6A,
        hop_limit: 33,
        ..plain
    };
    let unusable = Route {
        hop_limit: 0,
        ..plain
    };
    let mut exchange = |wanted, route| {
        receiver.want_ip_fields(wanted).unwrap();
        let (_, received) = exchange(&mut sender, &mut receiver, route, &[40, 40, 16]);
        assert_eq!(received.len(), 3);
        received[0].route
    };
    assert_eq!(exchange(true, marked), marked);
    assert_eq!(exchange(true, plain), plain);
    assert_eq!(exchange(true, unusable), plain, "a TTL of 0 is replaced");
    assert_eq!(exchange(false, marked), plain, "not asked for");
}

#[test]
fn classes_in_one_queue_stay_apart() {
    let (mut sender, mut receiver, plain) = pair();
    receiver.want_ip_fields(true).unwrap();
    let mut tx = TxQueue::new(1 << 16, 20);
    for seed in 0..20 {
        let traffic_class = (seed as u8 / 3) << 2;
        push(
            &mut tx,
            Route {
                traffic_class,
                ..plain
            },
            100,
            seed,
        );
    }
    sender.send(&mut tx).unwrap();
    let received = receive(&mut receiver, 20);
    let classes: Vec<_> = received
        .iter()
        .map(|packet| packet.route.traffic_class)
        .collect();
    assert_eq!(
        classes,
        (0..20).map(|seed| (seed / 3) << 2).collect::<Vec<u8>>()
    );
    assert!(received.iter().all(Packet::is_sealed));
}

/// `::1` is the only IPv6 address of `lo`, and other tests may have it for a while.
fn bind_ipv6() -> Option<UdpLink> {
    let since = Instant::now();
    loop {
        match UdpLink::bind(&[Ipv6Addr::LOCALHOST.into()], &UdpOptions::default()) {
            Ok(link) => return Some(link),
            Err(BindError::PortHeld { .. }) if since.elapsed() < Duration::from_secs(20) => {
                std::thread::sleep(Duration::from_millis(20));
            }
            Err(error @ BindError::PortHeld { .. }) => panic!("{error}"),
            Err(error) => {
                eprintln!("skipped, no IPv6 here: {error}");
                return None;
            }
        }
    }
}

#[test]
fn ipv6_packets_arrive_with_a_right_icrc() {
    let Some(mut link) = bind_ipv6() else { return };
    let localhost = IpAddr::from(Ipv6Addr::LOCALHOST);
    let marked = Route {
        traffic_class: 0x68,
        hop_limit: 9,
        ..route(localhost, localhost)
    };
    link.want_ip_fields(true).unwrap();
    let mut sizes = mixed_sizes();
    // With IPv6 headers the largest exceed the MTU of lo.
    sizes.retain(|&size| size < 65000);
    let mut tx = queue(marked, &sizes);
    link.send(&mut tx).unwrap();
    let received = receive(&mut link, sizes.len());
    let lens: Vec<_> = received.iter().map(|packet| packet.bytes.len()).collect();
    assert_eq!(lens, sizes);
    assert!(received.iter().all(Packet::is_sealed));
    assert!(received.iter().all(|packet| packet.route == marked));
    // As kernel rxe sends it.
    link.endpoints[0].socket.set(libc::SOL_UDP, 101, 1).unwrap();
    let mut tx = queue(marked, &[40]);
    link.send(&mut tx).unwrap();
    assert_eq!(
        receive(&mut link, 1).len(),
        1,
        "a datagram without a checksum"
    );
}

#[test]
fn a_port_that_is_taken_names_the_holder() {
    let address = loopback_address();
    let _holder = bind(address, Batching::Segments, true);
    let Err(error) = UdpLink::bind(&[loopback_address(), address], &UdpOptions::default()) else {
        panic!("two links have the port")
    };
    let BindError::PortHeld {
        address: seen,
        holder: Holder::Process { pid, .. },
    } = &error
    else {
        panic!("{error:?}")
    };
    assert_eq!((*seen, *pid), (address, std::process::id()));
    assert!(
        error
            .to_string()
            .contains("stop it, use another address of lo"),
        "{error}"
    );
}

#[test]
fn other_addresses_are_refused() {
    let options = UdpOptions::default();
    let elsewhere = IpAddr::from([203, 0, 113, 1]);
    let error = UdpLink::bind(&[elsewhere], &options).err().unwrap();
    assert!(matches!(error, BindError::NotLocal(address) if address == elsewhere));
    let error = UdpLink::bind(&[], &options).err().unwrap();
    assert!(matches!(error, BindError::NoAddress));
}

#[test]
fn a_socket_becomes_readable_when_a_packet_arrives() {
    let (mut sender, mut receiver, route) = pair();
    let ready = |link: &UdpLink| {
        let mut fds: Vec<_> = link
            .fds()
            .map(|fd| PollFd::new(fd, PollFlags::POLLIN))
            .collect();
        poll(&mut fds, PollTimeout::ZERO).unwrap()
    };
    assert_eq!(ready(&receiver), 0);
    sender.send(&mut queue(route, &[40])).unwrap();
    assert_eq!(ready(&receiver), 1);
    assert_eq!(receive(&mut receiver, 1).len(), 1);
    assert_eq!(ready(&receiver), 0);
}

#[test]
fn as_many_packets_as_the_window_has_are_not_lost() {
    for (path_mtu, overhead) in [
        (8, 16),
        (256, 28),
        (1024, 16),
        (2048, 28),
        (4096, 16),
        (4096, 64),
    ] {
        for batching in [Batching::Segments, Batching::Messages] {
            let (src, dst) = (loopback_address(), loopback_address());
            let mut sender = bind(src, batching, true);
            let options = UdpOptions {
                buffer_bytes: 100_000,
                ..UdpOptions::default()
            };
            let mut receiver = UdpLink::bind(&[dst], &options).unwrap();
            let window = receiver.receive_window_packets(path_mtu).unwrap();
            assert!(window > 10, "{window} of {path_mtu}");
            // Once more when half is read: the kernel gives memory back late.
            for _ in 0..3 {
                let mut tx = queue(route(src, dst), &vec![path_mtu + overhead; window]);
                sender.send(&mut tx).unwrap();
                assert_eq!(
                    receive(&mut receiver, window).len(),
                    window,
                    "{path_mtu} {batching:?}"
                );
            }
            assert_eq!(receiver.receive_drops().unwrap(), 0);
        }
    }
}

#[test]
fn drops_of_the_kernel_are_seen() {
    let (src, dst) = (loopback_address(), loopback_address());
    let mut sender = bind(src, Batching::Messages, true);
    let options = UdpOptions {
        buffer_bytes: 50_000,
        ..UdpOptions::default()
    };
    let mut receiver = UdpLink::bind(&[dst], &options).unwrap();
    sender
        .send(&mut queue(route(src, dst), &[4112; 100]))
        .unwrap();
    let arrived = receive(&mut receiver, 100).len() as u64;
    assert!(arrived < 100);
    assert_eq!(receiver.receive_drops().unwrap(), 100 - arrived);
}

#[test]
fn links_can_move_to_another_thread() {
    fn sendable<T: Send>() {}
    sendable::<UdpLink>();
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(48))]

    /// Whatever is queued arrives once, in order for each peer, sealed.
    #[test]
    fn any_queue_arrives(
        packets in prop::collection::vec(
            (prop_oneof![Just(24_usize), Just(1040), 16..4200_usize], 0..2_usize, 0..2_u8),
            1..120,
        )
    ) {
        let src = loopback_address();
        let peers = [loopback_address(), loopback_address()];
        let mut sender = bind(src, Batching::Segments, true);
        let mut receivers = peers.map(|peer| bind(peer, Batching::Segments, true));
        let mut tx = TxQueue::new(1 << 20, 120);
        for (seed, &(size, peer, class)) in (0..).zip(&packets) {
            push(&mut tx, Route { traffic_class: class << 2, ..route(src, peers[peer]) }, size, seed);
        }
        let mut sent = Packets::default();
        sender.send_tapped(&mut tx, &mut sent).unwrap();
        prop_assert!(tx.is_empty());
        prop_assert_eq!(sent.0.len(), packets.len());
        for (link, peer) in receivers.iter_mut().zip(peers) {
            let expected: Vec<_> = sent.0.iter().filter(|packet| packet.route.dst == peer).cloned().collect();
            let received = receive(link, expected.len());
            prop_assert_eq!(bytes_of(&expected), bytes_of(&received));
            prop_assert!(received.iter().all(Packet::is_sealed));
        }
    }
}
