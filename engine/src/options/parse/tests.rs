#![allow(clippy::unwrap_used, reason = "tests")]

use verbs_sys::{LinkLayer, PathMtu};

use super::*;
use crate::options::message::Stream;
use crate::options::params::MtuRequest;
use crate::options::tool::{ATOMIC_BW, READ_BW, SEND_BW, SEND_LAT, WRITE_BW, WRITE_LAT};
use crate::words::Connection;

fn parse_line(tool: Tool, line: &str) -> Result<Settings, Stop> {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    parse(tool, tool.name(), &args, 4)
}

fn settings(line: &str) -> Settings {
    parse_line(WRITE_BW, line).unwrap_or_else(|stop| panic!("{line}: {:?}", stop.messages))
}

/// What is said on stderr, without the last line of parse errors.
fn complaint(tool: Tool, line: &str) -> String {
    let stop = parse_line(tool, line).unwrap_err();
    let text = stop.messages.text(Stream::Stderr);
    text.strip_suffix(PARSER_LINE).unwrap_or(&text).to_owned()
}

#[test]
fn options_come_in_any_order_and_any_spelling() {
    for line in [
        "10.0.0.1 -s 4096 -a -b",
        "-s 4096 10.0.0.1 -ab",
        "-abs4096 10.0.0.1",
        "--size=4096 --all --bidirectional 10.0.0.1",
        "--siz 4096 --al --bid 10.0.0.1",
        "-ab -s 4096 -- 10.0.0.1",
    ] {
        let s = settings(line);
        assert_eq!(s.host.as_deref(), Some("10.0.0.1"), "{line}");
        assert_eq!((s.size, s.bidirectional), (4096, true), "{line}");
    }
    assert_eq!(settings("-- -s").host.as_deref(), Some("-s"));
    assert_eq!(settings("-").host.as_deref(), Some("-"));
    assert_eq!(settings("-d --all").device.as_deref(), Some("--all"));
    assert_eq!(settings("").host, None);
}

#[test]
fn getopt_complains_in_its_own_words() {
    let rest = " Invalid Command or flag.\n Please check command line and run again.\n\n";
    for (line, text) in [
        ("--no-such=1", "unrecognized option '--no-such=1'"),
        ("-Y 1", "invalid option -- 'Y'"),
        ("-aY", "invalid option -- 'Y'"),
        ("-n", "option requires an argument -- 'n'"),
        ("--iters", "option '--iters' requires an argument"),
        ("--iter", "option '--iters' requires an argument"),
        ("--al=1", "option '--all' doesn't allow an argument"),
        (
            "--rep=1",
            "option '--rep=1' is ambiguous; possibilities: '--report-cycles' \
             '--report-histogrm' '--report-unsorted' '--report-counters' '--report_gbits' \
             '--report-both' '--report-per-port' '--reply_every'",
        ),
    ] {
        let expected = format!("ib_write_bw: {text}\n{rest}");
        assert_eq!(complaint(WRITE_BW, line), expected);
        let stop = parse_line(WRITE_BW, line).unwrap_err();
        let help = stop.messages.text(Stream::Stdout);
        assert!(help.starts_with("Usage:\n  ib_write_bw  "));
    }
}

#[test]
fn an_option_is_given_once() {
    let text = |line| complaint(WRITE_BW, line);
    assert_eq!(text("-n 100 --iters 200"), " Duplicated argument: -n \n");
    assert_eq!(
        text("--tclass 1 --tclass 1"),
        " Duplicated argument: tclass \n"
    );
    assert_eq!(text("--seed 1 --seed 1"), " Duplicated argument: seed \n");
}

#[test]
fn numbers_are_checked_in_stock_words() {
    let int = |name: &str, range: &str| format!(" {name} should be between {range}\n");
    for (line, text) in [
        ("-n 4", int("Iteration num", "5 and 4294967296")),
        ("-n -5", int("Iteration num", "5 and 4294967296")),
        (
            "-n abc",
            " Iteration num argument abc should be uint64_t\n".into(),
        ),
        (
            "-n 12x",
            " Iteration num argument 12x should be uint64_t\n".into(),
        ),
        ("-t 15001", int("Tx depth", "1 and 15000")),
        ("-r 16385", int(" Rx depth", "1 and 16384")),
        ("-q 0", int("num of Qps", "1 and 16384")),
        ("-Q 1025", int("CQ moderation", "1 and 1024")),
        ("-x 65", int("Gid index", "0 and 64")),
        ("-I 2000", int("Max inline", "0 and 1024")),
        ("-i 0", "IB Port can't be less than 1\n".into()),
        ("-i 300", int("IB Port", "0 and 255")),
        ("-S 16", " Only 15 Service levels\n".into()),
        ("-S 256", " Only 15 Service levels\n".into()),
        ("-u 32", int("QP Timeout", "0 and 31")),
        ("-p 65536", int("Port", "1 and 65535")),
        ("-D 0", " Duration period must be positive\n".into()),
        ("-f -1", " Margin must be non-negative int\n".into()),
        (
            "-s 0",
            " Message Size should be between 1 and 2147483647\n".into(),
        ),
        ("-w -5", " Invalid Minimum BW Limit\n".into()),
        ("-y -5", " Invalid Minimum msgRate Limit\n".into()),
        ("--cqe_poll=0", int("CQE Poll", "1 and 65535")),
        ("--tclass=256", int("traffic class", "0 and 255")),
        (
            "--retry_count=-1",
            " Retry Count must be non-negative int\n".into(),
        ),
    ] {
        assert_eq!(complaint(WRITE_BW, line), text, "{line}");
    }
    let s = settings("-n 0x64 -u 016 -s 4K -x 0 -m 1024 -i 2");
    assert_eq!((s.iterations, s.qp_timeout, s.size), (100, 14, 4096));
    assert_eq!((s.gid_index, s.ib_port), (Some(0), 2));
    assert_eq!(s.mtu, MtuRequest::Exactly(PathMtu::Mtu1024));
    assert_eq!(settings("-m 1000").mtu, MtuRequest::Invalid(1000));
    assert_eq!(settings("-m 0").mtu, MtuRequest::PortActive);
}

#[test]
fn what_stock_misreads_is_refused_by_name() {
    for (line, value) in [("-s 4k", "'4k'"), ("-s 3G", "'3G'"), ("-w fast", "'fast'")] {
        let stop = parse_line(WRITE_BW, line).unwrap_err();
        assert_eq!(stop.reason, ExitReason::Stricter);
        assert!(stop.messages.text(Stream::Stderr).contains(value), "{line}");
    }
}

#[test]
fn options_of_other_tools_are_refused_in_stock_words() {
    for (tool, line, text) in [
        (
            WRITE_LAT,
            "-b",
            " Bidirectional is only available in BW test\n",
        ),
        (WRITE_LAT, "-N", " NoPeak only valid for BW tests\n"),
        (
            WRITE_LAT,
            "-q 2",
            " Multiple QPs only available on bw tests\n",
        ),
        (WRITE_BW, "-C", " Available only on Latency tests\n"),
        (WRITE_BW, "-H", " Available only on Latency tests\n"),
        (WRITE_BW, "-U", " is Available only on Latency tests\n"),
        (
            WRITE_BW,
            "-g",
            " MultiCast feature only available on SEND verb\n",
        ),
        (
            SEND_BW,
            "--send_with_imm -g",
            " MultiCast feature only available on SEND verb\n",
        ),
        (
            WRITE_BW,
            "-X 1",
            " Events feature not available on WRITE verb\n",
        ),
        (
            WRITE_BW,
            "-o 1",
            " Setting Outstanding reads only available on READ verb\n",
        ),
        (READ_BW, "-r 2", " On RDMA verbs rx depth can be only 1\n"),
        (
            READ_BW,
            "-I 16",
            " Inline feature not available on READ/Atomic verbs\n",
        ),
        (
            READ_BW,
            "-c UC",
            " UC connection not possible in READ/ATOMIC verbs\n",
        ),
        (
            WRITE_BW,
            "-c UD",
            " UD connection only possible in SEND verb\n",
        ),
        (
            ATOMIC_BW,
            "-c SRD",
            " SRD connection only possible in SEND/READ/WRITE/WRITE_IMM verbs\n",
        ),
        (
            WRITE_BW,
            "--send_with_imm",
            "Send_with_imm can only be used with send_lat and send_bw tests\n",
        ),
        (
            SEND_BW,
            "--write_with_imm",
            "Write_with_imm can only be used with write_lat and write_bw tests\n",
        ),
    ] {
        assert_eq!(complaint(tool, line), text, "{tool} {line}");
    }
    assert!(parse_line(SEND_BW, "-g --send_with_imm").is_ok());
    assert!(parse_line(WRITE_LAT, "-q 1").is_ok());
    assert!(parse_line(READ_BW, "-r 1").is_ok());
    let s = parse_line(SEND_LAT, "-c UD --report-histogram").unwrap();
    assert_eq!((s.connection, s.histogram), (Connection::Ud, true));
}

#[test]
fn connection_and_atomic_type_end_without_the_parser_line() {
    for (tool, line) in [
        (WRITE_BW, "-c XX"),
        (WRITE_BW, "-c UD"),
        (ATOMIC_BW, "-A X"),
    ] {
        let stop = parse_line(tool, line).unwrap_err();
        assert!(!stop.messages.text(Stream::Stderr).contains(PARSER_LINE));
    }
}

#[test]
fn words_are_checked_in_stock_words() {
    for (line, text) in [
        (
            "--force-link=X",
            "Invalid link layer value should be IB or ETHERNET.\n",
        ),
        (
            "--rate_units=x",
            " Invalid rate limit units. Please use M,g or p\n",
        ),
        (
            "--rate_limit=0",
            " Rate limit must be non-negative floating point number\n",
        ),
        ("--pin_cores=3-2", " Invalid CPU range: 3-2 (start > end)\n"),
        ("--pin_cores=a", " Invalid CPU number\n"),
        ("--pin_cores=", " Invalid CPU list format\n"),
        ("--pin_cores=0;1", " Invalid character in CPU list: ';'\n"),
        (
            "--pin_cores=2,4",
            " CPU 4 out of range. System has 4 cores (0-3).\n",
        ),
        ("--use_rss", "RSS isn't supported\n"),
        ("--gpu_touch=once", "GPU touch is not supported\n"),
        (
            "--use_cuda_pcie_mapping",
            " CUDA PCIe mapping requires DMA-BUF\n",
        ),
        ("-B 1", "invalid MAC length\n"),
        ("-J 1.2.3", " Invalid server IP address\n"),
        ("--remote_ip=1.2.3", " Invalid remote IP address\n"),
        ("--raw_ipv6 -j 1.2.3.4", " Invalid client IP address\n"),
        (
            "a b",
            " Invalid Command line. Please check command rerun \n",
        ),
    ] {
        assert_eq!(complaint(WRITE_BW, line), text, "{line}");
    }
    assert_eq!(settings("--pin_cores=0-1,3").pin_cores, [0, 1, 3]);
    assert_eq!(settings("--flow_label=1,0x10").flow_labels, [1, 16]);
    assert_eq!(
        settings("--force-link=ib").force_link,
        Some(LinkLayer::InfiniBand)
    );
    assert!(parse_line(WRITE_BW, "-B 00:11:22:33:44:5a -J 1.2.3.4 -K 5").is_ok());
    let stop = parse_line(WRITE_BW, "-B 00:11:22:33:44:5a --local_ip 1.2.3.4").unwrap_err();
    assert!(stop.messages.text(Stream::Stderr).contains("Mix of source"));
}

#[test]
fn memory_of_accelerators_is_refused_on_stdout() {
    let stop = parse_line(WRITE_BW, "--use_cuda=0").unwrap_err();
    assert_eq!(
        stop.messages.text(Stream::Stdout),
        " Unsupported memory type\n"
    );
    assert_eq!(stop.messages.text(Stream::Stderr), PARSER_LINE);
}

#[test]
fn own_options_are_read() {
    let s = settings("--loopback --userspace --capture x.pcap --peer-timeout 2.5 --seed 7");
    assert!(s.loopback && s.userspace);
    assert_eq!(s.capture.as_deref(), Some("x.pcap"));
    assert_eq!(s.peer_timeout.as_millis(), 2500);
    assert_eq!(s.seed, Some(7));
    let s = settings("--debug --verbose --connect-retry=10");
    assert_eq!(s.verbosity, crate::options::params::Verbosity::Debug);
    assert_eq!(s.connect_retry.as_secs(), 10);
    for line in [
        "--peer-timeout=0",
        "--peer-timeout=x",
        "--connect_retry=1e99",
    ] {
        assert!(complaint(WRITE_BW, line).contains(&line[..14]), "{line}");
    }
}

#[test]
fn help_and_version_say_nothing_on_stderr() {
    let stop = parse_line(WRITE_BW, "-h").unwrap_err();
    assert_eq!(stop.reason, ExitReason::Help);
    assert!(stop.messages.text(Stream::Stderr).is_empty());
    let stop = parse_line(WRITE_BW, "-V").unwrap_err();
    assert_eq!(stop.reason, ExitReason::Version);
    assert_eq!(stop.messages.text(Stream::Stdout), "Version: 6.29\n");
    assert!(stop.messages.text(Stream::Stderr).is_empty());
}
