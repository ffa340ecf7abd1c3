//! The rows of group ud that are about multicast, on the simulated network.

use verbs_sys::{Completion, Gid, QpAttributes, QpType, SendOp, SendRequest, UdTarget, WcFlags};

use super::{TARGET, only};
use crate::link::sim::{Faults, Network};
use crate::transport::RoutedAddress;
use crate::transport::multicast::MULTICAST_QPN;
use crate::transport::tests::harness::{Host, Lan, Lone, QKEY, Raw, Setup, pattern};
use crate::wire::{Operation as Op, Service};

/// Group that perftest sends to.
const PERFTEST: &str = "ff01:0:2:c985::";

const SENDER: usize = 0;

fn setup(ipv6: bool) -> Setup {
    Setup {
        qp_type: QpType::Ud,
        ipv6,
        ..Setup::DEFAULT
    }
}

fn gid(text: &str) -> Gid {
    Gid::from_ip(text.parse().unwrap())
}

/// A sender and two more hosts, whose queue pairs are in RTS.
fn lan(ipv6: bool) -> Lan {
    let setup = setup(ipv6);
    let hosts = [1, 2, 3].map(|number| {
        let mut host = Host::new(number, &setup);
        let qpn = host.qpn;
        host.connect(qpn, host.address, 0, [1, 2]);
        host
    });
    Lan::new(Network::new(1, Faults::default()), hosts.into())
}

fn attach(lan: &mut Lan, host: usize, qpn: u32, mgid: Gid) {
    for group in lan.hosts[host].nic.attach_multicast(qpn, mgid).unwrap() {
        lan.links[host].join(group).unwrap();
    }
}

fn detach(lan: &mut Lan, host: usize, qpn: u32, mgid: Gid) {
    for group in lan.hosts[host].nic.detach_multicast(qpn, mgid).unwrap() {
        lan.links[host].leave(group);
    }
}

/// Sends 100 bytes to a group, or whatever else.
fn send(lan: &mut Lan, dgid: Gid, qpn: u32) {
    let sender = &mut lan.hosts[SENDER];
    let route = sender.nic.route(0, dgid, 0, 1).unwrap();
    let ah = RoutedAddress { route };
    let target = UdTarget {
        ah: &ah,
        qpn,
        qkey: QKEY,
    };
    let sges = [sender.sge(0, 100)];
    let request = SendRequest {
        ud: Some(target),
        ..SendRequest::signaled(1, SendOp::Send, &sges)
    };
    sender.write(0, &pattern(5, 100));
    sender.try_post(&[request]).unwrap();
    lan.drive();
    only(lan.hosts[SENDER].sent());
}

/// Who has received, and what of: queue pair and receive.
fn received(lan: &mut Lan) -> Vec<(u32, u64)> {
    let hosts = lan.hosts.iter_mut();
    let all: Vec<Completion> = hosts.flat_map(Host::received).collect();
    for done in &all {
        assert_eq!((done.byte_len, done.flags), (140, WcFlags::GRH));
    }
    all.iter().map(|done| (done.qp_num, done.wr_id)).collect()
}

/// UD-014, T-088.
#[test]
fn multicast_reaches_exactly_attached_qps() {
    for (mgid, ipv6) in [
        (PERFTEST, false),
        (PERFTEST, true),
        ("ff0e::1:2", true),
        ("::ffff:224.9.8.7", false),
    ] {
        let mgid = gid(mgid);
        let mut lan = lan(ipv6);
        let own = lan.hosts[SENDER].qpn;
        let (first, far) = (lan.hosts[1].qpn, lan.hosts[2].qpn);
        // Two more at the first host: one with another Q_Key, one by itself.
        let [other_key, alone] = [(); 2].map(|()| {
            let host = &mut lan.hosts[1];
            let qpn = host.create_qp();
            host.connect(qpn, host.address, 0, [1, 2]);
            qpn
        });
        let change = QpAttributes {
            qkey: Some(QKEY ^ 1),
            ..QpAttributes::default()
        };
        lan.hosts[1].nic.modify_qp(other_key, &change).unwrap();
        for (host, qpn) in [(1, first), (1, other_key), (1, alone), (2, far), (0, own)] {
            let host = &mut lan.hosts[host];
            let before = std::mem::replace(&mut host.qpn, qpn);
            host.recv(u64::from(qpn), TARGET, 200);
            host.recv(u64::from(qpn) + 1, TARGET, 200);
            host.qpn = before;
        }
        for (host, qpn) in [(1, first), (1, first), (1, other_key), (2, far)] {
            attach(&mut lan, host, qpn, mgid);
        }
        send(&mut lan, mgid, MULTICAST_QPN);
        let two = [(first, u64::from(first)), (far, u64::from(far))];
        assert_eq!(received(&mut lan), two, "{mgid}");
        assert_eq!(lan.hosts[2].read(TARGET + 40, 100), pattern(5, 100));
        assert_eq!(lan.hosts[1].nic.counters().rx_bad_qkey, 1);

        // The sender may be one of them; who is detached gets nothing.
        attach(&mut lan, SENDER, own, mgid);
        detach(&mut lan, 1, first, mgid);
        lan.hosts[2].nic.destroy_qp(far);
        send(&mut lan, mgid, MULTICAST_QPN);
        assert_eq!(received(&mut lan), [(own, u64::from(own))], "{mgid}");
        let error = lan.hosts[1].nic.detach_multicast(first, mgid).unwrap_err();
        assert_eq!(error.errno(), libc::EINVAL, "{mgid}");
    }
}

/// UD-015, T-013.
#[test]
fn multicast_address_and_qpn_must_agree() {
    let mut lan = lan(false);
    let mgid = gid(PERFTEST);
    let qpn = lan.hosts[1].qpn;
    lan.hosts[1].recv(7, TARGET, 200);
    attach(&mut lan, 1, qpn, mgid);
    send(&mut lan, mgid, qpn);
    let unicast = Gid::from_ip(lan.hosts[1].address);
    send(&mut lan, unicast, MULTICAST_QPN);
    assert_eq!(received(&mut lan), []);
    assert_eq!(lan.hosts[1].nic.counters().rx_unknown_qp, 2);
    send(&mut lan, mgid, MULTICAST_QPN);
    assert_eq!(received(&mut lan), [(qpn, 7)], "the receive is still there");
}

/// UD-014: groups are for UD, and of the families that the port has.
#[test]
fn multicast_attach_checks_service_and_group() {
    let mut ud = Host::new(1, &setup(false));
    for mgid in ["::ffff:10.0.0.2", "fd00::2", "::"] {
        let error = ud.nic.attach_multicast(ud.qpn, gid(mgid)).unwrap_err();
        assert_eq!(error.errno(), libc::EINVAL, "{mgid}");
    }
    let mut v6 = Host::new(1, &setup(true));
    let error = v6.nic.attach_multicast(v6.qpn, gid("::ffff:224.0.0.9"));
    assert_eq!(error.unwrap_err().errno(), libc::EINVAL, "no IPv4 there");
    let mut rc = Host::new(1, &Setup::default());
    let error = rc.nic.attach_multicast(rc.qpn, gid(PERFTEST)).unwrap_err();
    assert_eq!(error.errno(), libc::EINVAL);
    assert!(ud.nic.attach_multicast(1, gid(PERFTEST)).is_err());
}

/// UD-014: limits are those that the device tells.
#[test]
fn multicast_attach_stops_at_the_limits() {
    let mut host = Host::new(1, &setup(false));
    let limits = host.nic.config().limits;
    let group = |number: u32| gid(&format!("ff0e::{:x}:{:x}", number >> 8, number & 0xff));
    let qpn = host.qpn;
    for number in 0..limits.max_multicast_groups {
        host.nic.attach_multicast(qpn, group(number)).unwrap();
    }
    let one_more = group(limits.max_multicast_groups);
    let error = host.nic.attach_multicast(qpn, one_more).unwrap_err();
    assert_eq!(error.errno(), libc::ENOMEM);
    for _ in 1..limits.max_multicast_members {
        let qpn = host.create_qp();
        host.nic.attach_multicast(qpn, group(0)).unwrap();
    }
    let qpn = host.create_qp();
    let error = host.nic.attach_multicast(qpn, group(0)).unwrap_err();
    assert_eq!(error.errno(), libc::ENOMEM);
}

/// A group's datagrams are checked as all are.
#[test]
fn multicast_with_a_wrong_service_pkey_or_icrc_is_dropped() {
    let mut lone = Lone::new(&setup(false));
    let group = lone
        .host
        .nic
        .attach_multicast(lone.host.qpn, gid(PERFTEST))
        .unwrap();
    lone.host.recv(7, TARGET, 200);
    let good = Raw {
        service: Service::Ud,
        dest_qpn: Some(MULTICAST_QPN),
        ..Raw::new(Op::SendOnly, 0).payload(*b"many")
    };
    let bad_pkey = Raw {
        pkey: 0x8001,
        ..good.clone()
    };
    let wrong_service = Raw {
        service: Service::Uc,
        ..good.clone()
    };
    lone.to = group[0];
    for raw in [bad_pkey, wrong_service] {
        lone.deliver(&raw);
    }
    lone.deliver_broken(&good);
    let counters = *lone.host.nic.counters();
    let drops = (
        counters.rx_bad_pkey,
        counters.rx_unknown_qp,
        counters.rx_icrc_errors,
    );
    assert_eq!(drops, (1, 1, 1));
    assert_eq!(lone.host.received(), []);
    lone.deliver(&good);
    assert_eq!(only(lone.host.received()).wr_id, 7);
}
