//! Finding each other, or not.

use std::net::IpAddr;
use std::time::Duration;

use super::*;

fn listen_options(port: u16) -> ListenOptions {
    ListenOptions {
        port,
        family: Family::V4,
        bind: Some("127.0.0.1".to_owned()),
    }
}

fn connect_options(port: u16) -> ConnectOptions {
    ConnectOptions {
        host: "127.0.0.1".to_owned(),
        port,
        family: Family::V4,
        source: None,
        attempt: Duration::from_secs(5),
        retry: Duration::ZERO,
    }
}

const NO_SOCKET: &str = "Unable to open file descriptor for socket connection\n \
                         Unable to init the socket connection\n";

#[test]
fn client_and_server_find_each_other() {
    for (address, family) in [("127.0.0.1", Family::V4), ("::1", Family::V6)] {
        let mut options = listen_options(0);
        options.family = family;
        options.bind = Some(address.to_owned());
        let listener = match Listener::bind(&options) {
            Ok(listener) => listener,
            // A host without IPv6.
            Err(ExchangeError::Listen { .. }) if family == Family::V6 => continue,
            Err(error) => panic!("{error}"),
        };
        let mut to = connect_options(listener.local_addr().unwrap().port());
        to.host = address.to_owned();
        to.family = family;
        to.source = Some(address.parse().unwrap());
        let client = connect(&to).unwrap();
        let server = listener.accept(Some(Duration::from_secs(5))).unwrap();
        assert_eq!(client.local_addr().unwrap(), server.peer_addr().unwrap());
        // One client only: the listener is gone.
        assert!(connect(&to).is_err());
    }
}

#[test]
fn connection_failures_have_stocks_texts() {
    let listener = Listener::bind(&listen_options(0)).unwrap();
    let port = listener.local_addr().unwrap().port();
    let error = Listener::bind(&listen_options(port)).unwrap_err();
    assert!(
        error.to_string().contains("Address already in use"),
        "{error}"
    );
    assert_eq!(
        error.stock_text(WRITE_BW, Side::Server),
        format!("Couldn't listen to port {port}\n{NO_SOCKET}")
    );
    let error = listener
        .accept(Some(Duration::from_millis(20)))
        .unwrap_err();
    assert!(matches!(error, ExchangeError::NoClient(_)), "{error}");

    let error = connect(&connect_options(port)).unwrap_err();
    assert!(error.to_string().contains("Connection refused"), "{error}");
    assert_eq!(
        error.stock_text(WRITE_BW, Side::Client),
        format!("Couldn't connect to 127.0.0.1:{port}\n{NO_SOCKET}")
    );

    let mut wrong_family = connect_options(port);
    wrong_family.host = "fd00::1".to_owned();
    assert_eq!(
        connect(&wrong_family)
            .unwrap_err()
            .stock_text(WRITE_BW, Side::Client),
        format!(
            "Address family for hostname not supported for ai_family: 2 service: fd00::1 port: {port}\n\
             Problem in resolving basic address and port\n{NO_SOCKET}"
        )
    );
    let mut no_name = connect_options(port);
    no_name.host = "no-such-host.invalid".to_owned();
    no_name.family = Family::V6;
    let text = connect(&no_name)
        .unwrap_err()
        .stock_text(WRITE_BW, Side::Client);
    assert!(
        text.contains(" for ai_family: a service: no-such-host.invalid port: "),
        "{text}"
    );
    assert!(!text.contains("failed to lookup"), "{text}");

    for source in [
        // Documentation addresses are nobody's.
        IpAddr::from([192, 0, 2, 1]),
        "::1".parse().unwrap(),
    ] {
        let mut options = connect_options(port);
        options.source = Some(source);
        let error = connect(&options).unwrap_err();
        assert!(matches!(error, ExchangeError::Source { .. }), "{error}");
        assert!(error.to_string().contains(&source.to_string()), "{error}");
    }
}

#[test]
fn a_patient_client_waits_for_the_server() {
    let reserved = Listener::bind(&listen_options(0)).unwrap();
    let port = reserved.local_addr().unwrap().port();
    drop(reserved);
    std::thread::scope(|scope| {
        let server = scope.spawn(move || {
            std::thread::sleep(Duration::from_millis(250));
            Listener::bind(&listen_options(port))
                .unwrap()
                .accept(Some(Duration::from_secs(5)))
                .unwrap()
        });
        let mut options = connect_options(port);
        options.retry = Duration::from_secs(10);
        let client = connect(&options).unwrap();
        let server = server.join().unwrap();
        assert_eq!(client.peer_addr().unwrap(), server.local_addr().unwrap());
    });
}

#[test]
fn an_ipv6_address_may_have_a_scope() {
    let mut listen = listen_options(0);
    listen.family = Family::V6;
    listen.bind = Some("::1%lo".to_owned());
    let Ok(listener) = Listener::bind(&listen) else {
        eprintln!("no IPv6 here: not tried");
        return;
    };
    let address = listener.local_addr().unwrap();
    assert!(address.ip().is_loopback(), "{address}");
    for host in ["::1%lo", "::1%1"] {
        let mut options = connect_options(address.port());
        options.family = Family::V6;
        options.host = host.to_owned();
        connect(&options).unwrap();
        options.family = Family::V4;
        assert!(connect(&options).is_err(), "{host}");
    }
    let mut options = connect_options(address.port());
    options.family = Family::V6;
    for host in ["::1%nosuchif0", "lo%lo", "%lo"] {
        options.host = host.to_owned();
        let error = connect(&options).unwrap_err();
        assert!(matches!(error, ExchangeError::Resolve { .. }), "{error}");
    }
}
