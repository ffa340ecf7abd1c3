//! What is beside the originals' output: devices of the userspace NIC, and why a
//! device of the kernel can't be used.

use std::fs;
use std::sync::Arc;

use ironverbs::inventory::{
    Report, System, UserspaceDevice, ibv_devices, ibv_devinfo, rdma, show_gids,
};
use verbs_sys::nldev::NldevError;
use verbs_sys::nldev::attribute::{DEV_INDEX, DEV_NAME, PORT_INDEX};
use verbs_sys::{Context, Device, Result, VerbsError};

use crate::host::Host;
use crate::netlink::{Answer, Kernel, Node};

/// A device of the userspace NIC that can't be opened.
#[derive(Debug)]
struct Held;

impl Device for Held {
    fn name(&self) -> &str {
        "urxe_eth0"
    }

    fn node_guid(&self) -> u64 {
        0x20
    }

    fn open(&self) -> Result<Arc<dyn Context>> {
        Err(VerbsError::PortHeld {
            address: [192, 0, 2, 1].into(),
            port: 4791,
            holder: "rdma_rxe".to_owned(),
            way_out: "use rxe0".to_owned(),
        })
    }
}

fn userspace() -> UserspaceDevice {
    UserspaceDevice {
        netdev: "eth0".to_owned(),
        netdev_index: 2,
        running: true,
        addresses: vec![[192, 0, 2, 1].into(), "fd00::1".parse().unwrap()],
        device: Box::new(Held),
    }
}

/// A host without device management, as a kernel without `ib_core` is.
fn system(host: &Host) -> System<'static> {
    System {
        sysfs: host.sysfs(),
        proc: host.proc(),
        netlink: Box::new(|| {
            let error = std::io::Error::from_raw_os_error(nix::libc::EPROTONOSUPPORT);
            Err(NldevError::NoSocket(error))
        }),
        open: Box::new(|_| Err(VerbsError::Unsupported { what: "opening" })),
        userspace: Ok(vec![userspace()]),
    }
}

fn run(command: ironverbs::inventory::Command, line: &str, system: &System<'_>) -> Report {
    let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    command("name", &words, system)
}

/// A host with an rxe device.
fn with_device() -> Host {
    let host = Host::new();
    host.add_device(0, "rxe0", 1, "1: CA");
    host
}

#[test]
fn without_devices_of_the_kernel_those_of_userspace_are_the_list() {
    let host = Host::new();
    let system = system(&host);
    for (command, line, expected) in [
        (
            ibv_devices as ironverbs::inventory::Command,
            "",
            "    urxe_eth0       \t0000000000000020\t(userspace)\n",
        ),
        (
            ibv_devinfo,
            "-l",
            "1 HCA found:\n\turxe_eth0 (userspace)\n\n",
        ),
        (
            rdma,
            "link",
            "link urxe_eth0/1 state ACTIVE physical_state LINK_UP netdev eth0 (userspace)\n",
        ),
        (
            rdma,
            "dev",
            "-: urxe_eth0: node_type ca node_guid 0000:0000:0000:0020 \
             sys_image_guid 0000:0000:0000:0020 (userspace)\n",
        ),
        (
            show_gids,
            "",
            "urxe_eth0\t1\t0\t0000:0000:0000:0000:0000:ffff:c000:0201\t192.0.2.1  \tv2\teth0\t\
             (userspace)\n\
             urxe_eth0\t1\t1\tfd00:0000:0000:0000:0000:0000:0000:0001\t\t\tv2\teth0\t\
             (userspace)\nn_gids_found=2\n",
        ),
    ] {
        let report = run(command, line, &system);
        assert!(
            report.stdout.ends_with(expected),
            "{line}: {}",
            report.stdout
        );
        assert_eq!((report.code, report.stderr.as_str()), (0, ""), "{line}");
    }
}

#[test]
fn json_lists_of_userspace_devices_are_marked() {
    let host = Host::new();
    let report = run(rdma, "-j link", &system(&host));
    let links: serde_json::Value = serde_json::from_str(&report.stdout).unwrap();
    assert_eq!(links[0]["ifname"], "urxe_eth0");
    assert_eq!(links[0]["userspace"], true);
    assert_eq!(links[0]["netdev_index"], 2);
}

#[test]
fn beside_devices_of_the_kernel_those_of_userspace_are_a_note() {
    let host = with_device();
    for (command, line) in [
        (ibv_devices as ironverbs::inventory::Command, ""),
        (ibv_devinfo, "-l"),
        (show_gids, ""),
    ] {
        let report = run(command, line, &system(&host));
        assert!(!report.stdout.contains("urxe"), "{}", report.stdout);
        assert!(report.stderr.contains("urxe_eth0"), "{}", report.stderr);
        assert!(report.stderr.contains("(userspace)"), "{}", report.stderr);
    }
}

#[test]
fn a_userspace_device_that_is_named_says_why_it_cannot_be_opened() {
    let host = with_device();
    let report = run(ibv_devinfo, "-d urxe_eth0", &system(&host));
    assert_eq!(report.code, 1);
    assert_eq!(
        report.stderr,
        "Failed to open device\n\
         urxe_eth0: UDP port 4791 on 192.0.2.1 is held by rdma_rxe; use rxe0\n"
    );
    let report = run(show_gids, "urxe_eth0", &system(&host));
    assert!(
        report.stdout.ends_with("n_gids_found=2\n"),
        "{}",
        report.stdout
    );
}

#[test]
fn the_reason_is_given_once() {
    let host = with_device();
    host.set("sys/class/infiniband_verbs/uverbs0/dev", "231:192\n");
    let system = System {
        open: Box::new(|name| {
            Err(VerbsError::Unusable {
                device: name.to_owned(),
                reason: "its node is another device's".to_owned(),
                errno: nix::libc::ENODEV,
            })
        }),
        userspace: Ok(Vec::new()),
        ..system(&host)
    };
    let report = run(ibv_devinfo, "-d rxe0", &system);
    assert_eq!(report.code, 1);
    let lines: Vec<&str> = report.stderr.lines().collect();
    let ["Failed to open device", reason] = lines.as_slice() else {
        panic!("{lines:?}");
    };
    assert!(reason.contains("it is 1:3, expected 231:192"), "{reason}");
}

/// The note of `ibv_devices` on rxe0, and whether the device is listed.
fn note(host: &Host) -> (String, bool) {
    let report = run(ibv_devices, "", &system(host));
    assert_eq!(report.code, 0);
    let mut notes = report.stderr.lines();
    let note = notes.find(|line| line.starts_with("rxe0 ")).unwrap();
    (note.to_owned(), report.stdout.contains("rxe0"))
}

#[test]
fn a_device_without_a_node_is_not_listed_and_says_why() {
    let host = with_device();
    fs::remove_file(host.path("dev/infiniband/uverbs0")).unwrap();
    let (note, listed) = note(&host);
    assert!(
        note.contains("there is no") && note.contains("uverbs0"),
        "{note}"
    );
    assert!(!listed, "as libibverbs has it");
}

#[test]
fn a_device_without_uverbs_says_so() {
    let host = with_device();
    fs::remove_file(host.path("sys/class/infiniband_verbs/uverbs0/ibdev")).unwrap();
    let (note, listed) = note(&host);
    assert!(note.contains("ib_uverbs"), "{note}");
    assert!(!listed);
}

#[test]
fn abis_that_are_too_new_are_named() {
    let host = with_device();
    host.set("sys/class/infiniband_verbs/uverbs0/abi_version", "3\n");
    let (driver, listed) = note(&host);
    assert!(
        driver.contains("kernel driver is 3, this program speaks 2"),
        "{driver}"
    );
    assert!(!listed);
    host.set("sys/class/infiniband_verbs/uverbs0/abi_version", "2\n");
    host.set("sys/class/infiniband_verbs/abi_version", "7\n");
    let (uverbs, listed) = note(&host);
    assert!(
        uverbs.contains("uverbs ABI is 7, this program speaks 6"),
        "{uverbs}"
    );
    assert!(!listed);
}

#[test]
fn a_port_that_is_down_names_its_interface() {
    let host = with_device();
    host.set("sys/class/infiniband/rxe0/ports/1/state", "1: DOWN\n");
    host.set("sys/class/infiniband/rxe0/parent", "eth0\n");
    let (note, listed) = note(&host);
    assert!(note.contains("port 1 is down; is eth0 up?"), "{note}");
    assert!(listed);
}

#[test]
fn an_unknown_driver_is_named() {
    let host = with_device();
    host.set("sys/class/infiniband/rxe0/device/x", "");
    let link = host.path("sys/class/infiniband/rxe0/device/driver");
    std::os::unix::fs::symlink("../bus/bnxt_en", link).unwrap();
    let (note, listed) = note(&host);
    assert!(note.contains("no driver here for bnxt_en"), "{note}");
    assert!(listed, "libibverbs has one");
}

#[test]
fn a_device_of_another_namespace_is_told_apart() {
    let host = with_device();
    host.add_device(1, "rxe1", 2, "1: CA");
    let kernel = Kernel::new(|_| {
        Answer::Objects(vec![vec![
            Node::u32(DEV_INDEX, 0),
            Node::text(DEV_NAME, "rxe1"),
            Node::u32(PORT_INDEX, 1),
        ]])
    });
    let system = System {
        netlink: Box::new(move || Ok(Box::new(kernel.clone()))),
        ..system(&host)
    };
    let report = run(ibv_devices, "", &system);
    let note = report.stderr.lines().find(|line| line.starts_with("rxe0 "));
    assert!(
        note.unwrap().contains("another network namespace"),
        "{note:?}"
    );
    assert!(report.stdout.contains("rxe1") && !report.stdout.contains("rxe0"));
}
