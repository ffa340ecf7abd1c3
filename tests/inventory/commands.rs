//! The commands themselves, on this host, whatever it has.

use std::process::{Command, Output};

const COMMANDS: [&str; 4] = [
    env!("CARGO_BIN_EXE_ibv_devices"),
    env!("CARGO_BIN_EXE_ibv_devinfo"),
    env!("CARGO_BIN_EXE_rdma"),
    env!("CARGO_BIN_EXE_show_gids"),
];

fn run(command: &str, arguments: &[&str]) -> Output {
    Command::new(command).args(arguments).output().unwrap()
}

#[test]
fn every_list_has_the_loopback_device_of_the_userspace_nic() {
    let [ibv_devices, ibv_devinfo, rdma, show_gids] = COMMANDS;
    for (command, arguments) in [
        (ibv_devices, &[][..]),
        (ibv_devinfo, &["-l"]),
        (rdma, &["dev"]),
        (rdma, &["link"]),
        (show_gids, &[]),
    ] {
        let output = run(command, arguments);
        let all = [output.stdout, output.stderr].concat();
        let text = String::from_utf8(all).unwrap();
        let line = text.lines().find(|line| line.contains("urxe_lo"));
        assert!(line.unwrap().ends_with("(userspace)"), "{command}: {text}");
        assert!(output.status.success(), "{command}: {text}");
    }
}

#[test]
fn the_loopback_device_tells_its_attributes() {
    let [_, ibv_devinfo, _, show_gids] = COMMANDS;
    let output = run(ibv_devinfo, &["-d", "urxe_lo", "-v"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("hca_id:\turxe_lo (userspace)\n"), "{text}");
    assert!(
        text.contains("\t\t\tstate:\t\t\tPORT_ACTIVE (4)\n"),
        "{text}"
    );
    assert!(text.contains(":\t\t::ffff:127."), "{text}");
    let output = run(show_gids, &["urxe_lo"]);
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.contains("\t127.0.0.1  \tv2\tlo"), "{text}");
}

#[test]
fn help_and_version_need_no_device() {
    let rdma = COMMANDS[2];
    let output = run(rdma, &["help"]);
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(text.starts_with("Usage: rdma [ OPTIONS ] OBJECT"), "{text}");
    let output = run(rdma, &["-V"]);
    assert_eq!(output.stdout, b"rdma utility, iproute2-6.1.0\n");
}
