#![allow(clippy::unwrap_used, reason = "tests")]

use super::*;
use crate::options::from_command_line;
use crate::options::message::Stream;
use crate::options::tool::{READ_BW, READ_LAT, SEND_BW, SEND_LAT, WRITE_BW, WRITE_LAT};

fn params(tool: Tool, line: &str) -> Params {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    let resolved = from_command_line(tool, tool.name(), &args, 1);
    resolved.params().unwrap().clone()
}

fn out<T>(adjusted: &Adjusted<T>) -> String {
    adjusted.messages.text(Stream::Stdout)
}

fn err<T>(adjusted: &Adjusted<T>) -> String {
    adjusted.messages.text(Stream::Stderr)
}

#[test]
fn mtu_is_at_most_the_active_one() {
    let mtu = |request, active| path_mtu(request, active, DeviceClass::Unknown);
    let adjusted = mtu(MtuRequest::PortActive, PathMtu::Mtu1024);
    assert_eq!(adjusted, Adjusted::silent(PathMtu::Mtu1024));
    let adjusted = mtu(MtuRequest::Exactly(PathMtu::Mtu256), PathMtu::Mtu1024);
    assert_eq!(adjusted, Adjusted::silent(PathMtu::Mtu256));
    let adjusted = mtu(MtuRequest::Exactly(PathMtu::Mtu4096), PathMtu::Mtu1024);
    assert_eq!(adjusted.value, PathMtu::Mtu1024);
    assert_eq!(
        out(&adjusted),
        "Requested mtu is higher than active mtu \nChanging to active mtu - 3\n"
    );
    let adjusted = mtu(MtuRequest::Invalid(1000), PathMtu::Mtu4096);
    assert_eq!(adjusted.value, PathMtu::Mtu4096);
    assert_eq!(
        err(&adjusted),
        " Invalid MTU - 1000 \n Please choose mtu from {256,512,1024,2048,4096}\n \
         Will run with the port active mtu - 5\n"
    );
    let adjusted = path_mtu(
        MtuRequest::PortActive,
        PathMtu::Mtu4096,
        DeviceClass::ConnectX3,
    );
    assert_eq!(adjusted.value, PathMtu::Mtu2048);
}

#[test]
fn datagrams_are_one_packet() {
    let largest = |line| largest_message(&params(SEND_BW, line), PathMtu::Mtu1024);
    assert_eq!(largest("-s 8192").value, Some(8192));
    assert_eq!(largest("-c UD -s 1024").value, Some(1024));
    for line in ["-c UD", "-c UD -a"] {
        let adjusted = largest(line);
        assert_eq!(adjusted.value, Some(1024));
        assert_eq!(
            err(&adjusted),
            " Max msg size in UD is MTU 1024\n Changing to this MTU\n"
        );
    }
    let adjusted = largest("-c UD -s 1025");
    assert_eq!(adjusted.value, None);
    assert_eq!(
        err(&adjusted),
        " Max message size in UD cannot be greater than MTU \n \
         Couldn't get context for the device\n"
    );
}

#[test]
fn outstanding_reads_are_at_most_the_devices() {
    assert_eq!(outstanding_reads(false, None, 16).value, 1);
    assert_eq!(outstanding_reads(true, None, 16).value, 16);
    assert_eq!(outstanding_reads(true, Some(4), 16), Adjusted::silent(4));
    let adjusted = outstanding_reads(true, Some(100), 16);
    assert_eq!((adjusted.value, out(&adjusted).as_str()), (16, LINE));
    assert_eq!(
        err(&adjusted),
        " Number of outstanding reads is above max = 16\n Changing to that max value\n"
    );
}

#[test]
fn unknown_devices_have_no_inline() {
    let remark = "Device not recognized to implement inline feature. Disabling it\n";
    for (tool, line, class, inline, said) in [
        (WRITE_LAT, "", DeviceClass::Unknown, 0, ""),
        (WRITE_LAT, "-I 64", DeviceClass::Unknown, 0, remark),
        (READ_LAT, "", DeviceClass::Unknown, 0, remark),
        (WRITE_LAT, "", DeviceClass::Mlx5, 220, ""),
        (WRITE_BW, "", DeviceClass::Mlx5, 0, ""),
        (WRITE_BW, "-I 64", DeviceClass::Mlx5, 64, ""),
        (SEND_LAT, "", DeviceClass::Mlx5, 236, ""),
        (SEND_LAT, "-c UD", DeviceClass::Mlx5, 188, ""),
        (READ_LAT, "", DeviceClass::Mlx5, 0, ""),
        (WRITE_LAT, "", DeviceClass::Efa, 32, ""),
        (SEND_LAT, "-c UD", DeviceClass::NblDraco, 434, ""),
        (WRITE_LAT, "", DeviceClass::IntelGen2, 101, ""),
    ] {
        let adjusted = inline_size(&params(tool, line), class);
        assert_eq!((adjusted.value, err(&adjusted).as_str()), (inline, said));
        assert_eq!(out(&adjusted), if said.is_empty() { "" } else { LINE });
    }
    let adjusted = granted_inline(220, 64);
    assert_eq!(adjusted.value, 64);
    assert_eq!(
        out(&adjusted),
        "  Actual inline-size(64) < requested inline-size(220)\n"
    );
    assert_eq!(granted_inline(64, 220), Adjusted::silent(64));
}

#[test]
fn devices_are_told_apart_by_vendor_and_part() {
    for (vendor, part, class) in [
        (0x2c9, 4119, DeviceClass::Mlx5),
        (0x2c9, 4099, DeviceClass::ConnectX3),
        (0x2c9, 41692, DeviceClass::Mlx5),
        (0xffff, 0, DeviceClass::Unknown),
        (0x1234, 1, DeviceClass::Unknown),
        (0x8086, 14289, DeviceClass::IntelGen1),
        (0x8086, 1, DeviceClass::IntelGen2),
        (5157, 6 << 12, DeviceClass::Other),
        (5157, 7 << 12, DeviceClass::Unknown),
        (0x1f67, 0x1021, DeviceClass::YunsiliconDiamond),
        (0x1f0f, 0x3500, DeviceClass::NblDraco),
        (0x14e4, 5846, DeviceClass::NetXtreme),
        (0x1d0f, 61344, DeviceClass::Efa),
    ] {
        assert_eq!(DeviceClass::of(vendor, part), class, "{vendor:#x} {part}");
    }
    assert!(DeviceClass::Mlx5.has_extended_post());
    assert!(!DeviceClass::Unknown.has_extended_post());
    assert!(!DeviceClass::ConnectX3.has_extended_post());
}

#[test]
fn partition_keys_beyond_the_table_become_0() {
    assert_eq!(pkey_index(0, 0), Adjusted::silent(0));
    assert_eq!(pkey_index(127, 128), Adjusted::silent(127));
    let adjusted = pkey_index(200, 128);
    assert_eq!((adjusted.value, out(&adjusted).as_str()), (0, LINE));
    assert_eq!(
        err(&adjusted),
        " Specified PKey Index, 200, greater than allowed max, 127\n Changing to 0\n"
    );
}

#[test]
fn missing_devices_exit_as_stock_does() {
    let unknown = DeviceProblem::UnknownDevice("nosuch0".into());
    for (tool, problem, code, text) in [
        (
            WRITE_BW,
            &unknown,
            1,
            "IB device nosuch0 not found\n Unable to find the Infiniband/RoCE device\n",
        ),
        (READ_BW, &unknown, 7, "IB device nosuch0 not found\n"),
        (
            WRITE_BW,
            &DeviceProblem::NoDevice,
            1,
            " Did not detect devices \n If device exists, check if driver is up\n \
             Unable to find the Infiniband/RoCE device\n",
        ),
        (
            READ_BW,
            &DeviceProblem::UnreadablePort(2),
            1,
            " Unable to query port 2 attributes\n Couldn't set the link layer\n \
             Couldn't get context for the device\n",
        ),
        (
            WRITE_BW,
            &DeviceProblem::PortNotActive(1, 2),
            1,
            " Port number 1 state is Init\n Couldn't set the link layer\n \
             Couldn't get context for the device\n",
        ),
        (
            WRITE_BW,
            &DeviceProblem::UnknownLink(1),
            1,
            "Link layer on port 1 is Unknown\n Couldn't set the link layer\n \
             Couldn't get context for the device\n",
        ),
    ] {
        let resolved = refuse(tool, problem);
        assert_eq!(resolved.messages.text(Stream::Stderr), text);
        let exit = Outcome::Exit {
            code,
            reason: ExitReason::Refused,
        };
        assert_eq!(resolved.outcome, exit);
    }
}
