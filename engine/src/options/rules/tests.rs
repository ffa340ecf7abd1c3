#![allow(clippy::unwrap_used, reason = "tests")]

use crate::options::message::{ExitReason, LINE, Outcome, Resolved, Stream};
use crate::options::params::{Length, Machine, Params, Polling, RateLimiter, Sizes};
use crate::options::tool::{ATOMIC_BW, READ_BW, READ_LAT, SEND_BW, SEND_LAT, WRITE_BW, WRITE_LAT};
use crate::options::{Output, from_command_line};
use crate::words::Tool;

const NO_PEAK: &str = " WARNING: BW peak won't be measured in this run.\n";
const FIXED: &str = "Disabling dynamic polling\n";

fn resolve(tool: Tool, line: &str) -> Resolved {
    let args: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
    from_command_line(tool, tool.name(), &args, 4)
}

fn run(tool: Tool, line: &str) -> (Params, String, String) {
    let resolved = resolve(tool, line);
    let out = resolved.messages.text(Stream::Stdout);
    let err = resolved.messages.text(Stream::Stderr);
    match resolved.outcome {
        Outcome::Run(params) => (*params, out, err),
        Outcome::Exit { .. } => panic!("{tool} {line}: {out}{err}"),
    }
}

/// The refusal as it looks: stdout, then stderr.
fn refusal(tool: Tool, line: &str) -> (String, String) {
    let resolved = resolve(tool, line);
    let Outcome::Exit { code, reason } = resolved.outcome else {
        panic!("{tool} {line} runs");
    };
    assert_eq!((code, reason), (1, ExitReason::Refused), "{tool} {line}");
    (
        resolved.messages.text(Stream::Stdout),
        resolved.messages.text(Stream::Stderr),
    )
}

#[test]
fn depths_are_cut_to_the_iterations() {
    let depths = |tool, line: &str| {
        let (params, _, _) = run(tool, line);
        (params.tx_depth, params.rx_depth)
    };
    assert_eq!(depths(WRITE_BW, ""), (128, 1));
    assert_eq!(depths(WRITE_BW, "-n 100"), (100, 1));
    assert_eq!(depths(WRITE_BW, "-D 3"), (128, 1));
    assert_eq!(depths(WRITE_LAT, "-n 100"), (1, 1));
    assert_eq!(depths(WRITE_BW, "-n 100 --write_with_imm"), (100, 100));
    assert_eq!(depths(SEND_BW, ""), (128, 512));
    assert_eq!(depths(SEND_BW, "-n 101"), (101, 102));
    assert_eq!(depths(SEND_BW, "-n 101 -a"), (101, 101));
    assert_eq!(depths(SEND_BW, "-c UD -s 64"), (128, 1000));
    assert_eq!(depths(SEND_BW, "-c UC -n 20000"), (128, 16000));
    assert_eq!(depths(READ_BW, "-n 100"), (100, 1));
}

#[test]
fn moderation_follows_size_depth_and_list() {
    let cq_mod = |tool, line: &str| run(tool, line).0.cq_mod;
    assert_eq!(cq_mod(WRITE_BW, ""), 1);
    assert_eq!(cq_mod(WRITE_BW, "-s 8192"), 100);
    assert_eq!(cq_mod(WRITE_BW, "-s 8193"), 1);
    assert_eq!(cq_mod(WRITE_BW, "-a"), 100);
    assert_eq!(cq_mod(WRITE_BW, "-s 64 -t 16"), 16);
    assert_eq!(cq_mod(WRITE_BW, "-s 64 -n 50"), 50);
    assert_eq!(cq_mod(WRITE_BW, "-l 4"), 4);
    let (params, out, _) = run(WRITE_BW, "-Q 10");
    assert_eq!(params.cq_mod, 10);
    assert_eq!(
        out,
        format!(
            "{LINE}Warning: Large message requested and CQ moderation enabled\n\
             Warning: It can lead to inaccurate results\n"
        )
    );
    let (_, out, _) = run(WRITE_BW, "-l 4 -s 64");
    assert_eq!(
        out,
        format!("{LINE}Post List requested - CQ moderation will be the size of the post list\n")
    );
}

#[test]
fn the_last_group_is_counted_when_it_is_short() {
    let fill = |line: &str| run(WRITE_BW, line).0.fill_count;
    assert!(fill("-n 105 -Q 10 -s 64"));
    assert!(!fill("-n 110 -Q 10 -s 64"));
    assert!(fill("-n 130 -t 128 -Q 128 -s 64"));
    assert!(!fill("-D 2 -Q 10 -s 64"));
    assert!(!fill("-n 100"));
}

#[test]
fn refusals_after_the_line_are_on_stderr() {
    for (tool, line, text) in [
        (
            WRITE_BW,
            "-n 10 -l 4",
            "Number of iterations must be a multiple of post list size\n",
        ),
        (
            WRITE_LAT,
            "-l 2",
            "Post list is supported in BW tests only\n",
        ),
        (
            WRITE_BW,
            "-s 64 -n 100 -l 4 -Q 3",
            "Post list size must be a multiple of CQ moderation\n",
        ),
        (
            SEND_LAT,
            "--recv_post_list=2",
            "Receive post list is supported in BW tests only\n",
        ),
        (
            SEND_BW,
            "-n 10 --recv_post_list=4",
            "Number of iterations must be a multiple of receive post list size\n",
        ),
        (
            WRITE_LAT,
            "--run_infinitely",
            " run_infinitely exists only in BW tests for now.\n",
        ),
        (
            WRITE_BW,
            "-e",
            " Events feature not available on WRITE verb\n",
        ),
        (
            WRITE_BW,
            "--output=latency",
            " Output verbosity level for BW can be: bandwidth, message_rate\n",
        ),
        (
            WRITE_LAT,
            "--output=bandwidth",
            " Output verbosity level for LAT can be: latency\n",
        ),
        (
            WRITE_BW,
            "--latency_gap=5",
            " Latency gap feature is only for latency tests\n",
        ),
        (
            WRITE_BW,
            "--burst_size=10",
            " Can't enable burst mode when rate limiter is off\n",
        ),
        (
            WRITE_BW,
            "--typical_pkt_size=10",
            " Typical packet size only supports PP rate limiter\n",
        ),
        (
            WRITE_BW,
            "--rate_limit=10 --rate_units=p",
            " Failed: pps rate limit units is not supported when setting HW rate limit\n",
        ),
        (
            WRITE_LAT,
            "--rate_limit=10 --rate_limit_type=SW --burst_size=4",
            "SW Rate limiter cann't be executed on non-BW, ATOMIC or bidirectional SEND / SEND_IMM \
             tests\n",
        ),
        (WRITE_BW, "-f 3", "please check that DURATION > 2*MARGIN\n"),
        (
            WRITE_BW,
            "--report-per-port",
            "report per port feature work only with Duration and Dualport\n",
        ),
        (
            ATOMIC_BW,
            "--use-null-mr",
            "Perftest supports using a null memory region with write/read verbs only\n",
        ),
        (
            WRITE_BW,
            "--data_validation -c UC",
            " --data_validation requires RC connection type\n",
        ),
        (
            WRITE_LAT,
            "--data_validation",
            " --data_validation is only supported in bandwidth tests\n",
        ),
        (
            WRITE_BW,
            "--log_dci_streams=1",
            " log_dci_streams supported only on DC\n",
        ),
        (WRITE_BW, "-c DC -R", " DC does not support RDMA_CM\n"),
        (WRITE_BW, "-c XRC -R", " XRC does not support RDMA_CM\n"),
        (WRITE_BW, "-c SRD -R", " SRD does not support RDMA_CM\n"),
        (
            WRITE_BW,
            "--aes_xts",
            " Please provide key encryption key file path\n",
        ),
        (
            WRITE_BW,
            "--kek_path=x",
            " giving kek path supported only with enc/dec traffic\n",
        ),
    ] {
        assert_eq!(
            refusal(tool, line),
            (LINE.to_owned(), text.to_owned()),
            "{tool} {line}"
        );
    }
}

#[test]
fn some_refusals_are_on_stdout() {
    for (tool, line, text) in [
        (
            ATOMIC_BW,
            "-s 64",
            "Message size cannot be changed for Atomic tests \n",
        ),
        (
            ATOMIC_BW,
            "-a",
            "Message size cannot be changed for Atomic tests \n",
        ),
        (
            WRITE_BW,
            "--use-srq",
            " Using SRQ only avavilible in SEND / SEND_IMM tests.\n",
        ),
        (
            SEND_BW,
            "--use-srq -q 600",
            " Using SRQ depth should be greater than number of QPs.\n",
        ),
        (WRITE_BW, "-c UC -R", " UC is not supported in librdmacm\n"),
        (
            SEND_BW,
            "-g -R",
            " Perftest still doesn't support Multicast with rdma_cm\n",
        ),
        (
            WRITE_BW,
            "-O -R",
            " Perftest still doesn't support Dual Port with rdma_cm\n",
        ),
    ] {
        assert_eq!(
            refusal(tool, line),
            (format!("{LINE}{text}"), String::new()),
            "{tool} {line}"
        );
    }
    for (tool, line, text) in [
        (
            WRITE_BW,
            "-T 8",
            " TOS only valid for rdma_cm based QP and RawEth QP \n",
        ),
        (WRITE_BW, "-L 8", " Hop limit only valid for RawEth QP \n"),
        (SEND_LAT, "-O", " Dual-port mode only supports BW tests.\n"),
        (
            SEND_BW,
            "-g -O",
            " Dual-port mode not supported in multicast feature\n",
        ),
        (
            SEND_BW,
            "-g -b",
            "Bidirectional mode not supported in multicast\n",
        ),
        (SEND_BW, "-g -q 2", "Only 1 QP supported in multicast\n"),
    ] {
        assert_eq!(
            refusal(tool, line),
            (text.to_owned(), String::new()),
            "{tool} {line}"
        );
    }
    let (out, err) = refusal(READ_LAT, "-X 1");
    assert_eq!(out, "");
    assert_eq!(
        err,
        " Events must be enabled to select a completion vector\n"
    );
}

#[test]
fn timed_runs_have_no_peak_and_a_margin() {
    let (params, out, _) = run(WRITE_BW, "-D 8");
    assert_eq!(out, NO_PEAK);
    assert!(!params.report.peak);
    let length = |line| run(WRITE_BW, line).0.length;
    assert_eq!(
        length("-D 8"),
        Length::Timed {
            duration: 8,
            margin: 2
        }
    );
    assert_eq!(
        length("-D 3"),
        Length::Timed {
            duration: 3,
            margin: 0
        }
    );
    assert_eq!(
        length("-D 3 -f 1 -n 7"),
        Length::Timed {
            duration: 3,
            margin: 1
        }
    );
    assert_eq!(length("--run_infinitely"), Length::Infinite { interval: 5 });
    assert_eq!(
        length("-D 2 --run_infinitely -n 9"),
        Length::Infinite { interval: 2 }
    );
    assert_eq!(length("-n 7"), Length::Iterations(7));
    assert!(length("-D 3").is_timed() && !length("-n 7").is_timed());
    assert_eq!(run(WRITE_LAT, "-D 8").1, FIXED);
    let (out, err) = refusal(WRITE_BW, "-D 2 -f 1");
    assert_eq!(out, format!("{NO_PEAK}{LINE}"));
    assert_eq!(err, "please check that DURATION > 2*MARGIN\n");
    let (out, err) = refusal(WRITE_BW, "-D 3 -a");
    assert_eq!(out, format!("{NO_PEAK}{LINE}"));
    assert_eq!(
        err,
        "Duration mode currently doesn't support running on all sizes.\n"
    );
    let (_, err) = refusal(SEND_BW, "-D 3 -e");
    assert_eq!(err, "Duration mode doesn't work with events.\n");
}

#[test]
fn endless_runs_win_over_all_sizes() {
    let (params, out, _) = run(WRITE_BW, "-a --run_infinitely");
    assert_eq!(params.sizes, Sizes::One(65536));
    assert_eq!(out, NO_PEAK);
    let (_, err) = refusal(SEND_BW, "--run_infinitely -b");
    assert!(err.contains("SEND, SEND_IMM or WRITE_IMM Bidirectional BW test\n"));
    let (_, err) = refusal(WRITE_BW, "--run_infinitely --rate_limit=10");
    assert_eq!(
        err,
        " run_infinitely does not support rate limit feature yet\n"
    );
}

#[test]
fn the_peak_goes_with_many_iterations_and_with_receiving_only() {
    let peak = |tool, line: &str| {
        let (params, out, _) = run(tool, line);
        (params.report.peak, out.contains(NO_PEAK))
    };
    assert_eq!(peak(WRITE_BW, ""), (true, false));
    assert_eq!(peak(WRITE_BW, "-N"), (false, false));
    assert_eq!(peak(WRITE_BW, "-n 20000"), (true, false));
    assert_eq!(peak(WRITE_BW, "-n 20001"), (false, true));
    assert_eq!(peak(WRITE_BW, "-n 20001 -N"), (false, false));
    assert_eq!(peak(SEND_BW, ""), (false, true));
    assert_eq!(peak(SEND_BW, "-b"), (true, false));
    assert_eq!(peak(SEND_BW, "host"), (true, false));
    assert_eq!(peak(SEND_BW, "host --reversed"), (false, true));
    assert_eq!(peak(WRITE_BW, "--write_with_imm"), (false, true));
    let both = "--write_with_imm --loopback";
    assert_eq!(peak(WRITE_BW, both), (true, false));
}

#[test]
fn roles_and_doublings() {
    let machine = |line| run(WRITE_BW, line).0.machine;
    assert_eq!(machine(""), Machine::Server);
    assert_eq!(machine("host"), Machine::Client);
    assert_eq!(machine("--reversed"), Machine::Client);
    assert_eq!(machine("host --reversed"), Machine::Server);
    let queue_pairs = |tool, line| {
        let (params, _, _) = run(tool, line);
        (params.qps, params.flows(), params.partner(0))
    };
    assert_eq!(queue_pairs(WRITE_BW, "-c XRC -q 3"), (3, 3, 0));
    assert_eq!(queue_pairs(WRITE_BW, "-c XRC -q 3 -b"), (6, 3, 3));
    assert_eq!(queue_pairs(SEND_LAT, "-c XRC"), (2, 1, 1));
}

#[test]
fn polling_is_fixed_for_short_runs() {
    let polling = |line| {
        let (params, out, _) = run(WRITE_BW, line);
        (params.polling, out)
    };
    assert_eq!(polling(""), (Polling::Dynamic, String::new()));
    assert_eq!(polling("-n 2999"), (Polling::Fixed(16), FIXED.into()));
    assert_eq!(polling("-n 3000"), (Polling::Dynamic, String::new()));
    assert_eq!(polling("--cqe_poll=9"), (Polling::Fixed(9), String::new()));
    assert_eq!(
        polling("--disable_dynamic_polling"),
        (Polling::Fixed(16), String::new())
    );
    let more = "Increasing CQE polling batch to 64\n";
    assert_eq!(
        polling("-n 100 -q 2049"),
        (Polling::Fixed(64), format!("{FIXED}{more}"))
    );
    assert_eq!(polling("-n 100 -q 2049 --cqe_poll=3").0, Polling::Fixed(3));
    let (params, out, _) = run(SEND_BW, "-b -n 5000");
    assert_eq!((params.polling, out), (Polling::Fixed(16), FIXED.into()));
    let (params, _, _) = run(SEND_BW, "-b -n 5000 --send_with_imm");
    assert_eq!(params.polling, Polling::Dynamic);
}

#[test]
fn rate_limits() {
    let (params, _, err) = run(WRITE_BW, "--rate_limit=1 --rate_limit_type=SW");
    assert_eq!(err, " Setting burst size to tx depth = 128\n");
    let limit = params.rate_limit.unwrap();
    assert_eq!(
        (limit.limiter, limit.burst_size),
        (RateLimiter::Software, 128)
    );
    let limiter = |line| run(WRITE_BW, line).0.rate_limit.unwrap().limiter;
    assert_eq!(limiter("--rate_limit=10"), RateLimiter::HardwareOrSoftware);
    assert_eq!(
        limiter("--rate_limit=10 --rate_limit_type=HW"),
        RateLimiter::Hardware
    );
    assert_eq!(run(WRITE_BW, "").0.rate_limit, None);
    let (out, err) = refusal(WRITE_BW, "--rate_limit=3");
    assert!(out.starts_with("\x1b[31mThe input value for hw rate limit is not supported\x1b[0m\n"));
    assert!(out.ends_with(&format!("\t\t\t MAX Gbps \t\t\n{LINE}")));
    assert_eq!(err, " Failed: Unknown rate limit value\n");
    let (_, err) = refusal(WRITE_BW, "--rate_limit=10 -z");
    assert_eq!(
        err,
        " HW rate limit isn't supported yet with rdma_cm scenarios\n"
    );
    let (_, err) = refusal(WRITE_BW, "--rate_limit=10 --rate_limit_type=PP");
    assert_eq!(err, "Packet Pacing is only supported for Raw Ethernet.\n");
}

#[test]
fn cpu_utilization_without_duration_is_remarked_on() {
    let (params, out, err) = run(WRITE_BW, "--cpu_util");
    assert_eq!(out, LINE);
    assert_eq!(err, " CPU Utilization works only with Duration mode.\n");
    assert!(!params.report.cpu_utilization);
    assert!(run(WRITE_BW, "--cpu_util -D 2").0.report.cpu_utilization);
}

#[test]
fn versions_are_always_exchanged() {
    let (out, err) = refusal(WRITE_BW, "--dont_xchg_versions -n 100");
    assert_eq!(out, FIXED);
    assert_eq!(
        err,
        "Current implementation is not compatible with versions older than 5.70\n"
    );
}

#[test]
fn defaults_differ_by_tool() {
    let (params, out, err) = run(WRITE_LAT, "host");
    assert_eq!((out.as_str(), err.as_str()), (FIXED, ""));
    assert_eq!(params.sizes, Sizes::One(2));
    assert_eq!(params.length, Length::Iterations(1000));
    assert!(!params.relaxed_ordering, "ib_write_lat polls the last byte");
    let (params, _, _) = run(WRITE_BW, "host");
    assert!(params.relaxed_ordering);
    assert_eq!(params.length, Length::Iterations(5000));
    assert_eq!(
        (params.inline_size, params.report.output),
        (None, Output::Full)
    );
    assert_eq!(run(READ_BW, "").0.inline_size, Some(0));
    assert_eq!(params.report.json_file, None);
    let (params, _, _) = run(WRITE_BW, "--out_json");
    assert_eq!(
        params.report.json_file.as_deref(),
        Some("perftest_out.json")
    );
    assert_eq!(run(WRITE_BW, "--out_json_file=x").0.report.json_file, None);
    let (params, _, _) = run(WRITE_BW, "-W counters/port_xmit_data,hw_counters/x");
    assert_eq!(
        params.report.counters,
        ["counters/port_xmit_data", "hw_counters/x"]
    );
}

#[test]
fn what_is_missing_is_refused_with_the_next_step() {
    for (tool, line, name) in [
        (WRITE_BW, "-c DC", "mlx5"),
        (WRITE_BW, "-c SRD", "EFA"),
        (WRITE_BW, "-O", "--dualport"),
    ] {
        let resolved = resolve(tool, line);
        let Outcome::Exit { code, reason } = resolved.outcome else {
            panic!("{line} runs");
        };
        assert_eq!((code, reason), (1, ExitReason::NotSupported));
        let text = resolved.messages.text(Stream::Stderr);
        assert!(text.contains(name) && text.contains(": "), "{line}: {text}");
        assert_eq!(text.lines().count(), 1);
        assert_eq!(resolved.messages.text(Stream::Stdout), "");
    }
}

#[test]
fn command_lines_that_cannot_work_are_refused() {
    for (line, culprit) in [
        ("--loopback host", "'host'"),
        ("--loopback --reversed", "--reversed"),
        ("-l 200 -s 64", "list of 200"),
        ("--rate_limit_type=SW", "--rate_limit=<rate>"),
        ("--data_validation --repeat=2", "--repeat"),
        ("--data_validation --perform_warm_up", "--perform_warm_up"),
    ] {
        let resolved = resolve(WRITE_BW, line);
        let text = resolved.messages.text(Stream::Stderr);
        assert!(text.contains(culprit), "{line}: {text}");
        assert!(resolved.params().is_none());
    }
    assert!(resolve(WRITE_BW, "--loopback").params().unwrap().loopback);
}

/// Nothing on a command line may end the process but the option layer.
#[test]
fn no_option_and_no_value_panics() {
    let values = [
        "",
        "0",
        "1",
        "-1",
        "5",
        "255",
        "65536",
        "4294967297",
        "99999999999999999999",
        "x",
        "K",
        "0x",
        "1e400",
        "nan",
        "\u{e9}\u{e9}",
        ":",
        "1-",
        ",",
        "SW",
        "RC",
    ];
    for row in crate::options::table::rows() {
        for tool in Tool::ALL {
            for value in values {
                let mut args = vec![format!("--{}", row.long)];
                if row.takes_value() {
                    args = vec![format!("--{}={value}", row.long)];
                }
                let resolved = from_command_line(tool, tool.name(), &args, 4);
                assert!(resolved.params().is_some() || !resolved.messages.is_empty());
            }
        }
    }
    for tool in Tool::ALL {
        for value in values {
            from_command_line(tool, "", &[format!("-{value}"), format!("--{value}")], 1);
        }
    }
}
