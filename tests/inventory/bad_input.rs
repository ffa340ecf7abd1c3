//! Odd answers of the kernel, odd files, odd names, odd options.

use ironverbs::inventory::{Command, Report, System, ibv_devices, ibv_devinfo, rdma, show_gids};
use verbs_sys::VerbsError;
use verbs_sys::nldev::attribute::{DEV_INDEX, DEV_NAME, NODE_GUID, PORT_INDEX};

use crate::host::Host;
use crate::netlink::{Answer, Kernel, Node, encode};

fn run(command: Command, line: &str, host: &Host, kernel: Kernel) -> Report {
    let system = System {
        sysfs: host.sysfs(),
        proc: host.proc(),
        netlink: Box::new(move || Ok(Box::new(kernel.clone()))),
        open: Box::new(|_| Err(VerbsError::Unsupported { what: "opening" })),
        userspace: Ok(Vec::new()),
    };
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    command("name", &words, &system)
}

fn device(name: &str) -> Vec<Node> {
    vec![
        Node::u32(DEV_INDEX, 0),
        Node::text(DEV_NAME, name),
        Node::u32(PORT_INDEX, 1),
        Node::u64(NODE_GUID, 1),
    ]
}

fn kernel_with(nodes: Vec<Node>) -> Kernel {
    Kernel::new(move |_| Answer::Objects(vec![nodes.clone()]))
}

#[test]
fn an_odd_answer_is_an_error_that_names_the_attribute() {
    let host = Host::new();
    let odd = [
        (vec![Node::u32(DEV_INDEX, 0)], "DEV_NAME (2)"),
        (
            vec![Node::u8(DEV_INDEX, 0)],
            "DEV_INDEX (1) is 1 bytes long",
        ),
    ];
    for (nodes, expected) in odd {
        let report = run(rdma, "dev", &host, kernel_with(nodes));
        assert!(report.stderr.starts_with("error: "), "{}", report.stderr);
        assert!(report.stderr.contains(expected), "{}", report.stderr);
        assert_eq!((report.code, report.stdout.as_str()), (1, ""));
    }
}

#[test]
fn an_answer_that_is_cut_off_is_an_error() {
    let host = Host::new();
    let whole = encode(&device("rxe0"));
    let kernel = Kernel::new(move |_| Answer::Bytes(whole[..15].to_vec(), true));
    let report = run(rdma, "link", &host, kernel);
    assert!(
        report.stderr.contains("DEV_NAME (2) needs 9 bytes"),
        "{}",
        report.stderr
    );
    assert_eq!(report.code, 1);
    let kernel = Kernel::new(|_| Answer::Bytes(vec![1, 2, 3], false));
    let report = run(rdma, "link", &host, kernel);
    assert!(
        report.stderr.contains("cut off: a message"),
        "{}",
        report.stderr
    );
    assert_eq!(report.code, 1);
}

#[test]
fn a_kernel_that_says_nothing_is_an_error() {
    let host = Host::new();
    let kernel = Kernel::new(|_| Answer::Bytes(Vec::new(), false));
    let report = run(rdma, "system", &host, kernel);
    assert_eq!(report.code, 1);
    assert!(report.stderr.contains("error: "), "{}", report.stderr);
}

#[test]
fn an_answer_half_way_leaves_whole_json() {
    let host = Host::new();
    let kernel = Kernel::new(|question| match question.device {
        None => Answer::Objects(vec![device("rxe0")]),
        Some(_) => Answer::Refusal(nix::libc::ENODEV, None),
    });
    let report = run(rdma, "-j dev show rxe0", &host, kernel);
    assert_eq!(report.stdout, "[]\n");
    assert_eq!(report.stderr, "error: No such device\n");
    assert_eq!(report.code, 1);
}

#[test]
fn strange_names_are_printed_and_found() {
    for name in ["a!b", "ümläut", "%s", "quote\"d", "back\\slash"] {
        let host = Host::new();
        host.add_device(0, name, 1, "1: CA");
        let report = run(ibv_devices, "", &host, kernel_with(device(name)));
        assert!(report.stdout.contains(name), "{}", report.stdout);
        let report = run(
            rdma,
            &format!("-j dev show {name}"),
            &host,
            kernel_with(device(name)),
        );
        let devices: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
        assert_eq!(devices[0]["ifname"], name);
    }
}

#[test]
fn odd_files_are_named() {
    let host = Host::new();
    host.add_device(0, "rxe0", 1, "1: CA");
    let gid = "sys/class/infiniband/rxe0/ports/1/gids/0";
    host.set(gid, "not a gid\n");
    let report = run(show_gids, "", &host, kernel_with(device("rxe0")));
    assert_eq!(report.code, 1);
    assert!(
        report.stderr.contains("gids/0 holds \"not a gid\""),
        "{}",
        report.stderr
    );
    host.set("sys/class/infiniband_verbs/abi_version", "six\n");
    for (command, code) in [(ibv_devices as Command, 1), (ibv_devinfo, 255)] {
        let report = run(command, "", &host, kernel_with(device("rxe0")));
        assert_eq!(report.code, code);
        assert!(
            report.stderr.contains("abi_version holds \"six\""),
            "{}",
            report.stderr
        );
    }
}

#[test]
fn options_that_are_wrong_end_as_the_originals_do() {
    let host = Host::new();
    let kernel = || kernel_with(device("rxe0"));
    for (command, line, code) in [
        (ibv_devinfo as Command, "-d", 255),
        (ibv_devinfo, "-i 0", 1),
        (ibv_devinfo, "-i x", 1),
        (ibv_devinfo, "--ib", 255),
        (ibv_devinfo, "-d rxe7", 255),
        (ibv_devices, "--nonsense", 0),
        (rdma, "-b", 1),
        (rdma, "-b /nonexistent", 1),
        (rdma, "link add x type", 1),
        (rdma, "dev set rxe0 name", 1),
        (rdma, "resource show qp foo", 1),
        (rdma, "resource show qp foo 1", 1),
        (rdma, "resource show qp link", 1),
        (rdma, "link show rxe0/7", 1),
        (rdma, "statistic set link rxe0/1", 1),
        (rdma, "dev shw", 0),
        (rdma, "system set netns private", 1),
    ] {
        let report = run(command, line, &host, kernel());
        assert_eq!(report.code, code, "{line}: {report:?}");
        assert!(
            !(report.stderr.is_empty() && report.stdout.is_empty()),
            "{line}"
        );
    }
}
