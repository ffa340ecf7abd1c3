//! The kernel's connection manager at work. Needs a device: `CM_SERVER` names
//! an address that a device has, and that another one leads to (the kernel
//! lab's `--net pair`). Without it there is nothing to test, said on stderr.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::net::{IpAddr, SocketAddr};
use std::thread;
use std::time::Duration;

use verbs_sys::QpState;
use verbs_sys::cm::{
    CmError, CmEventKind, CmId, CmOption, CmStatus, ConnectParameters, ConnectionManager,
    PortSpace, RejectReason, SidrStatus, UDP_QKEY, Wait,
};
use verbs_sys::ucma::Ucma;

const PATIENCE: Duration = Duration::from_secs(20);

/// No queue pair has to be behind these numbers for the managers to talk.
const CLIENT_QPN: u32 = 0x111;
const SERVER_QPN: u32 = 0x222;

fn server() -> Option<IpAddr> {
    let Some(address) = std::env::var_os("CM_SERVER") else {
        eprintln!("skipped: CM_SERVER names no address of a device");
        return None;
    };
    Some(address.to_str().unwrap().parse().unwrap())
}

fn patient() -> Wait<'static> {
    Wait::at_most(PATIENCE)
}

/// An identifier with its route resolved.
fn client(space: PortSpace, to: SocketAddr, options: &[CmOption]) -> Box<dyn CmId> {
    let mut id = Ucma::open().unwrap().create_id(space).unwrap();
    id.resolve_addr(None, to, &patient()).unwrap();
    for option in options {
        id.set_option(*option).unwrap();
    }
    id.resolve_route(&patient()).unwrap();
    id
}

fn parameters(qpn: u32, private_data: &[u8]) -> ConnectParameters<'_> {
    ConnectParameters {
        qpn,
        responder_resources: 4,
        initiator_depth: 3,
        retry_count: 7,
        rnr_retry_count: 7,
        private_data,
        ..ConnectParameters::default()
    }
}

#[test]
fn a_connection_is_made_and_ended() {
    let Some(ip) = server() else { return };
    let to = SocketAddr::new(ip, 20001);
    let mut listener = Ucma::open().unwrap().listen(PortSpace::Tcp, to, 1).unwrap();
    assert_eq!(listener.local_addr().unwrap(), to);
    let passive = thread::spawn(move || {
        let mut request = listener.next_request(&patient()).unwrap();
        let peer = request.event.parameters;
        assert_eq!(peer.qpn, CLIENT_QPN);
        assert_eq!((peer.responder_resources, peer.initiator_depth), (3, 4));
        assert!(request.event.private_data.starts_with(b"from the client\0"));
        let route = request.id.route().unwrap();
        assert_eq!(route.local.unwrap(), to);
        request.id.qp_attributes(QpState::Init).unwrap();
        let rtr = request.id.qp_attributes(QpState::Rtr).unwrap();
        assert_eq!(rtr.dest_qpn, Some(CLIENT_QPN));
        let accept = parameters(SERVER_QPN, b"from the server");
        request.id.accept(&accept).unwrap();
        let event = request.id.next_event(&patient()).unwrap();
        assert_eq!(event.kind, CmEventKind::Established);
        let event = request.id.next_event(&patient()).unwrap();
        assert_eq!(event.kind, CmEventKind::Disconnected);
        request.id.disconnect().unwrap();
        rtr
    });
    let options = [CmOption::TypeOfService(16), CmOption::AckTimeout(14)];
    let mut id = client(PortSpace::Tcp, to, &options);
    let route = id.route().unwrap();
    assert_eq!(route.peer, Some(to));
    assert_eq!(route.port, 1);
    let device = route.device.unwrap();
    assert_ne!(device.node_guid, 0);
    let name = device.name.unwrap();
    assert!(
        std::path::Path::new("/sys/class/infiniband")
            .join(name)
            .exists()
    );
    id.connect(&parameters(CLIENT_QPN, b"from the client"))
        .unwrap();
    let event = id.next_event(&patient()).unwrap();
    assert_eq!(event.kind, CmEventKind::ConnectResponse, "{event}");
    assert_eq!(event.parameters.qpn, SERVER_QPN);
    assert!(event.private_data.starts_with(b"from the server\0"));
    let rtr = id.qp_attributes(QpState::Rtr).unwrap();
    let rts = id.qp_attributes(QpState::Rts).unwrap();
    assert_eq!(rtr.dest_qpn, Some(SERVER_QPN));
    assert_eq!(rtr.av.unwrap().traffic_class, 16);
    assert_eq!(rts.timeout, Some(14));
    id.establish().unwrap();
    id.disconnect().unwrap();
    let event = id.next_event(&patient()).unwrap();
    assert_eq!(event.kind, CmEventKind::Disconnected);
    let theirs = passive.join().unwrap();
    assert_eq!(theirs.rq_psn, rts.sq_psn);
    assert_eq!(theirs.path_mtu, rtr.path_mtu);
}

#[test]
fn many_connections_share_a_channel() {
    let Some(ip) = server() else { return };
    let to = SocketAddr::new(ip, 20002);
    let mut listener = Ucma::open().unwrap().listen(PortSpace::Tcp, to, 8).unwrap();
    let passive = thread::spawn(move || {
        let mut requests: Vec<_> = (0..8)
            .map(|_| {
                let mut request = listener.next_request(&patient()).unwrap();
                let qpn = request.event.parameters.qpn + 0x100;
                request.id.accept(&parameters(qpn, b"")).unwrap();
                request
            })
            .collect();
        for request in requests.iter_mut().rev() {
            let event = request.id.next_event(&patient()).unwrap();
            assert_eq!(event.kind, CmEventKind::Established);
        }
    });
    let manager = Ucma::open().unwrap();
    let mut ids: Vec<_> = (0..8)
        .map(|number| {
            let mut id = manager.create_id(PortSpace::Tcp).unwrap();
            id.resolve_addr(None, to, &patient()).unwrap();
            id.resolve_route(&patient()).unwrap();
            id.connect(&parameters(number, b"")).unwrap();
            id
        })
        .collect();
    for (number, id) in ids.iter_mut().enumerate().rev() {
        let event = id.next_event(&patient()).unwrap();
        assert_eq!(event.kind, CmEventKind::ConnectResponse, "{event}");
        assert_eq!(event.parameters.qpn as usize, number + 0x100);
        id.establish().unwrap();
    }
    passive.join().unwrap();
}

#[test]
fn refusals_say_why() {
    let Some(ip) = server() else { return };
    // By the consumer, with its words; and by who goes without an answer.
    let to = SocketAddr::new(ip, 20003);
    let mut listener = Ucma::open().unwrap().listen(PortSpace::Tcp, to, 1).unwrap();
    let passive = thread::spawn(move || {
        let mut request = listener.next_request(&patient()).unwrap();
        request.id.reject(b"not today").unwrap();
        drop(listener.next_request(&patient()).unwrap());
    });
    for words in [&b"not today\0"[..], b"\0"] {
        let mut id = client(PortSpace::Tcp, to, &[]);
        id.connect(&parameters(CLIENT_QPN, b"")).unwrap();
        let event = id.next_event(&patient()).unwrap();
        assert_eq!(event.kind, CmEventKind::Rejected);
        assert_eq!(event.status, CmStatus::Rejected(RejectReason::CONSUMER));
        assert!(event.private_data.starts_with(words), "{event:?}");
    }
    passive.join().unwrap();
    // Nobody listens.
    let to = SocketAddr::new(ip, 20004);
    let mut id = client(PortSpace::Tcp, to, &[]);
    id.connect(&parameters(CLIENT_QPN, b"")).unwrap();
    let event = id.next_event(&patient()).unwrap();
    let nobody = CmStatus::Rejected(RejectReason::INVALID_SERVICE_ID);
    assert_eq!((event.kind, event.status), (CmEventKind::Rejected, nobody));
    let mut id = client(PortSpace::Udp, to, &[]);
    id.connect(&parameters(CLIENT_QPN, b"")).unwrap();
    let event = id.next_event(&patient()).unwrap();
    let nobody = CmStatus::Sidr(SidrStatus(1));
    assert_eq!(
        (event.kind, event.status),
        (CmEventKind::Unreachable, nobody)
    );
}

#[test]
fn a_datagram_service_is_found() {
    let Some(ip) = server() else { return };
    let to = SocketAddr::new(ip, 20005);
    let mut listener = Ucma::open().unwrap().listen(PortSpace::Udp, to, 1).unwrap();
    let passive = thread::spawn(move || {
        let mut request = listener.next_request(&patient()).unwrap();
        assert!(request.event.private_data.starts_with(b"hello\0"));
        request.id.accept(&parameters(SERVER_QPN, b"")).unwrap();
        // The kernel answers as long as the identifier is there.
        request
            .id
            .next_event(&Wait::at_most(Duration::from_secs(1)))
    });
    let mut id = client(PortSpace::Udp, to, &[]);
    let init = id.qp_attributes(QpState::Init).unwrap();
    assert_eq!(init.qkey, Some(UDP_QKEY));
    id.connect(&parameters(CLIENT_QPN, b"hello")).unwrap();
    let event = id.next_event(&patient()).unwrap();
    assert_eq!(event.kind, CmEventKind::Established, "{event}");
    let peer = event.datagram.unwrap();
    assert_eq!((peer.qpn, peer.qkey), (SERVER_QPN, UDP_QKEY));
    assert_eq!(peer.av.dgid.to_ip(), ip);
    // The passive end hears no more of a datagram's peer.
    let quiet = passive.join().unwrap();
    assert!(matches!(quiet, Err(CmError::TimedOut { .. })), "{quiet:?}");
}

#[test]
fn private_data_has_the_room_of_its_message() {
    let Some(ip) = server() else { return };
    let to = SocketAddr::new(ip, 20006);
    let _listener = Ucma::open().unwrap().listen(PortSpace::Tcp, to, 1).unwrap();
    let mut id = client(PortSpace::Tcp, to, &[]);
    let error = id.connect(&parameters(CLIENT_QPN, &[1; 57])).unwrap_err();
    let CmError::PrivateData { length, limit } = error else {
        panic!("{error}");
    };
    assert_eq!((length, limit), (57, 56));
    id.connect(&parameters(CLIENT_QPN, &[1; 56])).unwrap();
}

#[test]
fn addresses_that_cannot_be_used_are_named() {
    let Some(ip) = server() else { return };
    let manager = Ucma::open().unwrap();
    let to = SocketAddr::new(ip, 20007);
    let _first = manager.listen(PortSpace::Tcp, to, 1).unwrap();
    let second = manager.listen(PortSpace::Tcp, to, 1);
    let error = second.err().unwrap();
    assert!(matches!(error, CmError::AddressInUse { .. }), "{error}");
    let any: SocketAddr = match ip {
        IpAddr::V4(_) => "0.0.0.0:20007".parse().unwrap(),
        IpAddr::V6(_) => "[::]:20007".parse().unwrap(),
    };
    let error = manager.listen(PortSpace::Tcp, any, 1).err().unwrap();
    assert!(matches!(error, CmError::AddressInUse { .. }), "{error}");
    let foreign = "192.0.2.77:20007".parse().unwrap();
    let error = manager.listen(PortSpace::Tcp, foreign, 1).err().unwrap();
    assert!(
        matches!(
            error,
            CmError::AddressNotAvailable { .. } | CmError::NoDevice { .. }
        ),
        "{error}"
    );
    let mut id = manager.create_id(PortSpace::Tcp).unwrap();
    let error = id.resolve_addr(None, foreign, &patient()).unwrap_err();
    assert!(
        matches!(error, CmError::NoRoute { .. } | CmError::NoDevice { .. }),
        "{error}"
    );
}

#[test]
fn waits_end() {
    let Some(ip) = server() else { return };
    let manager = Ucma::open().unwrap();
    let any = SocketAddr::new("0.0.0.0".parse().unwrap(), 20008);
    let mut listener = manager.listen(PortSpace::Tcp, any, 1).unwrap();
    let short = Wait::at_most(Duration::from_millis(20));
    let error = listener.next_request(&short).err().unwrap();
    assert!(matches!(error, CmError::TimedOut { .. }), "{error}");
    let yes = || true;
    let error = listener
        .next_request(&Wait::new(None).or(&yes))
        .err()
        .unwrap();
    assert!(matches!(error, CmError::Interrupted), "{error}");
    // A listener that goes takes the requests that nobody took with it.
    let mut id = client(PortSpace::Tcp, SocketAddr::new(ip, 20008), &[]);
    id.connect(&parameters(CLIENT_QPN, b"")).unwrap();
    thread::sleep(Duration::from_millis(500));
    drop(listener);
    let event = id.next_event(&patient()).unwrap();
    assert_eq!(event.kind, CmEventKind::Rejected, "{event}");
}

#[test]
fn a_group_is_joined() {
    let Some(ip) = server() else { return };
    let manager = Ucma::open().unwrap();
    let mut id = manager.create_id(PortSpace::Udp).unwrap();
    id.resolve_addr(None, SocketAddr::new(ip, 20009), &patient())
        .unwrap();
    let group = "239.1.2.3:0".parse().unwrap();
    let peer = id.join_multicast(group, &patient()).unwrap();
    assert_eq!(peer.qpn, 0xff_ffff);
    assert_eq!(peer.av.dgid.to_ip(), group.ip());
    let error = id
        .join_multicast(SocketAddr::new(ip, 0), &patient())
        .unwrap_err();
    assert!(
        matches!(error, CmError::AddressNotAvailable { .. }),
        "{error}"
    );
}
