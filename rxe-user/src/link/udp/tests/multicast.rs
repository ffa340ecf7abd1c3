use super::*;
use crate::device::netdev;

fn group(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// What arrives at a link in the next moments.
fn arrivals(link: &mut UdpLink) -> usize {
    let since = Instant::now();
    let mut packets = Packets::default();
    while since.elapsed() < Duration::from_millis(20) {
        link.receive(&mut packets).unwrap();
    }
    packets.0.len()
}

#[test]
fn packets_to_a_group_reach_those_who_joined() {
    let (mut sender, mut receiver, unicast) = pair();
    let mut other = bind(loopback_address(), Batching::Segments, true);
    let address = group("239.1.2.3");
    let to_group = Route {
        dst: address,
        hop_limit: 1,
        ..unicast
    };
    for link in [&mut receiver, &mut other] {
        link.want_ip_fields(true).unwrap();
        link.join(address).unwrap();
        link.join(address).unwrap();
        assert_eq!(link.wait_fds().unwrap().len(), 2, "joined once");
    }
    let sizes = [1040, 1040, 1040, 500, 16];
    let mut tx = queue(to_group, &sizes);
    let mut sent = Packets::default();
    sender.send_tapped(&mut tx, &mut sent).unwrap();
    for link in [&mut receiver, &mut other] {
        let received = receive(link, sizes.len());
        assert_eq!(bytes_of(&received), bytes_of(&sent.0));
        assert!(received.iter().all(Packet::is_sealed));
        assert!(received.iter().all(|packet| packet.route == to_group));
    }
    // A link that has left still gets what is sent to its address.
    receiver.leave(address);
    assert_eq!(receiver.wait_fds().unwrap().len(), 1);
    sender.send(&mut queue(to_group, &[64])).unwrap();
    assert_eq!(receive(&mut other, 1).len(), 1);
    assert_eq!(arrivals(&mut receiver), 0);
    sender.send(&mut queue(unicast, &[64])).unwrap();
    assert_eq!(receive(&mut receiver, 1).len(), 1);
}

#[test]
fn groups_are_told_apart() {
    let (mut sender, mut receiver, unicast) = pair();
    receiver.join(group("239.1.2.4")).unwrap();
    let elsewhere = Route {
        dst: group("239.1.2.5"),
        ..unicast
    };
    sender.send(&mut queue(elsewhere, &[64])).unwrap();
    assert_eq!(arrivals(&mut receiver), 0);
    let error = receiver.join(group("ff01::1")).unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::AddrNotAvailable, "no IPv6");
}

/// A link on an interface with IPv6 multicast, which `lo` has no route for.
fn bind_ipv6_interface() -> Option<(UdpLink, IpAddr)> {
    let netdevs = netdev::list().unwrap();
    let links = netdevs.iter().filter(|netdev| netdev.name != "lo");
    let mut links = links.filter_map(|netdev| {
        let address = IpAddr::from(netdev.ipv6_link_local().next()?);
        let options = UdpOptions {
            interface: netdev.index,
            ..UdpOptions::default()
        };
        let link = UdpLink::bind(&[address], &options);
        let refused = |error: &BindError| eprintln!("{}: {error}", netdev.name);
        Some((link.inspect_err(refused).ok()?, address))
    });
    links.next()
}

#[test]
fn ipv6_groups_belong_to_the_interface() {
    let Some((mut link, own)) = bind_ipv6_interface() else {
        eprintln!("skipped, no interface with IPv6 multicast here");
        return;
    };
    let address = group("ff01:0:2:c985::");
    link.join(address).unwrap();
    let to_group = Route {
        dst: address,
        hop_limit: 1,
        ..route(own, address)
    };
    let sizes = [1040, 1040, 16];
    link.send(&mut queue(to_group, &sizes)).unwrap();
    let received = receive(&mut link, sizes.len());
    let lens: Vec<_> = received.iter().map(|packet| packet.bytes.len()).collect();
    assert_eq!(lens, sizes);
    assert!(received.iter().all(Packet::is_sealed));
    assert!(received.iter().all(|packet| packet.route.dst == address));
    link.leave(address);
    link.send(&mut queue(to_group, &[64])).unwrap();
    assert_eq!(arrivals(&mut link), 0);
}
