//! What is refused, and how that is told.

use std::net::{Ipv4Addr, TcpListener, UdpSocket};

use crate::support::{Turn, WRITE_BW, WRITE_LAT, free_port, run};

#[test]
fn what_the_options_refuse() {
    for (line, text) in [
        ("--frobnicate", "unrecognized option '--frobnicate'"),
        ("-n abc", " Iteration num argument abc should be uint64_t\n"),
        ("-n 4", " Iteration num should be between 5 and"),
        ("-s 0", " Message Size should be between 1 and 2147483647\n"),
        (
            "-s 2147483648",
            " Message Size should be between 1 and 2147483647\n",
        ),
        ("-x 65", " Gid index should be between 0 and 64\n"),
        ("-c XX", " Invalid Connection type."),
        ("-n 100 -n 200", " Duplicated argument: -n \n"),
    ] {
        for tool in [WRITE_BW, WRITE_LAT] {
            let ended = run(tool, line);
            assert_eq!(ended.code, Some(1), "{line}: {ended:#?}");
            assert!(ended.err.contains(text), "{line}: {ended:#?}");
        }
    }
}

#[test]
fn a_missing_device_is_told_with_those_there_are() {
    let ended = run(WRITE_BW, "-d nosuch0");
    ended.assert_failed(1, 10);
    assert!(
        ended.err.starts_with(
            "IB device nosuch0 not found\n Unable to find the Infiniband/RoCE device\n"
        )
    );
    assert!(ended.complaints()[0].contains("urxe_lo"), "{ended:#?}");
}

#[test]
fn a_missing_port_is_told() {
    let ended = run(WRITE_BW, "-d urxe_lo -i 2");
    ended.assert_failed(1, 10);
    assert!(
        ended.err.contains(" Unable to query port 2 attributes\n"),
        "{ended:#?}"
    );
}

#[test]
fn a_missing_gid_is_told() {
    let _turn = Turn::take();
    let ended = run(WRITE_BW, "--loopback -x 60");
    ended.assert_failed(1, 10);
    assert!(
        ended.err.contains(" Unable to set up socket connection\n"),
        "{ended:#?}"
    );
    let complaint = ended.complaints()[0];
    assert!(complaint.contains("60"), "{ended:#?}");
    assert!(complaint.contains("0 (127.0.0."), "{ended:#?}");
}

#[test]
fn a_tcp_port_in_use_is_told() {
    let holder = TcpListener::bind((Ipv4Addr::UNSPECIFIED, 0)).unwrap();
    let port = holder.local_addr().unwrap().port();
    let ended = run(WRITE_BW, &format!("-p {port}"));
    ended.assert_failed(1, 10);
    assert!(
        ended
            .err
            .starts_with(&format!("Couldn't listen to port {port}\n")),
        "{ended:#?}"
    );
}

#[test]
fn counters_of_a_device_without_them_are_refused_before_anything_is_shown() {
    let ended = run(WRITE_BW, "-d urxe_lo -W counters/port_xmit_data");
    ended.assert_failed(1, 10);
    assert_eq!(
        ended.out.lines().find(|line| line.contains("Waiting")),
        None
    );
    assert!(
        ended.err.starts_with(
            " Unable to access performance counters\n Unable to create RDMA_CM resources\n"
        ),
        "{ended:#?}"
    );
    assert!(
        ended.complaints()[0].contains("urxe_lo/ports/1"),
        "{ended:#?}"
    );
}

/// All addresses of `lo` that the provider would try can't be held here; but
/// those of any other interface have one port 4791 only.
#[test]
fn a_udp_port_in_use_is_told_with_its_holder() {
    let _turn = Turn::take();
    let Some(address) = own_address() else {
        eprintln!("skipped: no network interface but lo");
        return;
    };
    let Ok(_holder) = UdpSocket::bind((address, 4791)) else {
        eprintln!("skipped: somebody else holds UDP port 4791");
        return;
    };
    let ended = run(
        WRITE_BW,
        &format!("-p {} --loopback -d {}", free_port(), device_of(address)),
    );
    ended.assert_failed(1, 10);
    let complaint = ended.complaints()[0];
    assert!(complaint.contains("4791"), "{ended:#?}");
    assert!(
        complaint.contains(&std::process::id().to_string()),
        "{ended:#?}"
    );
}

/// An IPv4 address of an interface other than `lo`.
fn own_address() -> Option<Ipv4Addr> {
    nix::ifaddrs::getifaddrs()
        .ok()?
        .filter_map(|interface| Some(interface.address?.as_sockaddr_in()?.ip()))
        .find(|address| !address.is_loopback())
}

fn device_of(address: Ipv4Addr) -> String {
    let interface = nix::ifaddrs::getifaddrs()
        .unwrap()
        .find(|interface| {
            let found = interface.address.as_ref().and_then(|a| a.as_sockaddr_in());
            found.is_some_and(|found| found.ip() == address)
        })
        .unwrap();
    format!("urxe_{}", interface.interface_name)
}

#[test]
fn nobody_listens() {
    let port = free_port();
    for tool in [WRITE_BW, WRITE_LAT] {
        let ended = run(tool, &format!("-p {port} 127.0.0.1"));
        ended.assert_failed(1, 10);
        assert!(
            ended
                .err
                .starts_with(&format!("Couldn't connect to 127.0.0.1:{port}\n")),
            "{ended:#?}"
        );
    }
}

#[test]
fn an_unresolvable_host_is_told() {
    let ended = run(WRITE_BW, "no-such-host.invalid");
    ended.assert_failed(1, 30);
    assert!(
        ended
            .err
            .contains("Problem in resolving basic address and port\n"),
        "{ended:#?}"
    );
}

#[test]
fn what_needs_other_hardware_is_refused() {
    let _turn = Turn::take();
    for line in ["-O", "--use-null-mr"] {
        let ended = run(WRITE_BW, line);
        assert_eq!(ended.code, Some(1), "{line}: {ended:#?}");
        assert!(ended.err.contains("not supported"), "{line}: {ended:#?}");
    }
}

#[test]
fn options_for_special_hardware_are_refused_with_what_they_need() {
    for (line, text) in [
        ("--use_cuda=0", "--use_cuda needs an NVIDIA GPU"),
        ("--use_rocm=0", "--use_rocm needs an AMD GPU"),
        ("--aes_xts", "--aes_xts needs an mlx5 adapter"),
        (
            "--numa_node=0",
            "--numa_node needs a build of perftest with libnuma",
        ),
        (
            "--congest_type=DIP",
            "--congest_type needs a HiSilicon adapter",
        ),
        ("-c DC", "it needs a Mellanox adapter (mlx5)"),
        ("-c SRD", "it needs an Elastic Fabric Adapter (EFA)"),
    ] {
        let ended = run(WRITE_BW, line);
        assert_eq!(ended.code, Some(1), "{line}: {ended:#?}");
        assert!(ended.err.contains(text), "{line}: {ended:#?}");
    }
    let _turn = Turn::take();
    let ended = run(WRITE_BW, "--loopback -n 100 --tcp");
    assert_eq!(ended.code, Some(0), "{ended:#?}");
    assert!(
        ended.err.contains("note: --tcp has no effect"),
        "{ended:#?}"
    );
}
