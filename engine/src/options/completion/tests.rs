#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;
use crate::options::tool::{ATOMIC_LAT, READ_LAT, SEND_BW, WRITE_BW, WRITE_LAT};

/// Feeds a script to a shell; `None` when there is no such shell here.
fn shell(program: &str, args: &[&str], script: &str) -> Option<String> {
    let child = Command::new(program)
        .args(args)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("no {program} here: its completion is not tried");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(script.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    let complaints = String::from_utf8(output.stderr).unwrap();
    assert!(output.status.success(), "{program}: {complaints}");
    assert_eq!(complaints, "", "{program}");
    Some(String::from_utf8(output.stdout).unwrap())
}

/// What bash offers for the last of these words, which it has taken apart
/// at the blanks and the equals signs.
fn offered_by_bash(tool: Tool, words: &str) -> Vec<String> {
    let call = format!(
        "{}\nCOMP_WORDS=({words} )\nCOMP_CWORD=$((${{#COMP_WORDS[@]}} - 1))\n\
         _{tool}\nprintf '%s\\n' \"${{COMPREPLY[@]}}\"\n",
        bash::script(tool)
    );
    let Some(offered) = shell("bash", &["--norc", "--noprofile"], &call) else {
        return Vec::new();
    };
    offered
        .lines()
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

fn has_bash() -> bool {
    shell("bash", &["--norc"], "").is_some()
}

#[test]
fn bash_completes_names_and_arguments() {
    if !has_bash() {
        return;
    }
    for (tool, words, expected) in [
        (WRITE_BW, "ib_write_bw --lim", "--limit_bw --limit_msgrate"),
        (READ_LAT, "ib_read_lat --report-u", "--report-unsorted"),
        (WRITE_BW, "ib_write_bw --rate_limit_type = ''", "HW SW"),
        (WRITE_BW, "ib_write_bw --rate_limit_type = S", "SW"),
        (WRITE_BW, "ib_write_bw -m ''", "256 512 1024 2048 4096"),
        (ATOMIC_LAT, "ib_atomic_lat -A F", "FETCH_AND_ADD"),
        // A number: nothing to offer, not even host names.
        (WRITE_LAT, "ib_write_lat -n ''", ""),
    ] {
        let offered = offered_by_bash(tool, words);
        assert_eq!(offered.join(" "), expected, "{words}");
    }
    let reports = offered_by_bash(WRITE_BW, "ib_write_bw --rep");
    assert!(reports.iter().any(|name| name == "--report_gbits"));
    assert!(reports.iter().all(|name| name.starts_with("--rep")));
    let devices = offered_by_bash(SEND_BW, "ib_send_bw -d urxe_l");
    assert!(devices.iter().any(|name| name == "urxe_lo"), "{devices:?}");
    let files = offered_by_bash(WRITE_BW, "ib_write_bw --capture /etc/host");
    assert!(files.iter().any(|name| name == "/etc/hosts"), "{files:?}");
}

#[test]
fn the_shells_understand_their_scripts() {
    for tool in Tool::ALL {
        shell("bash", &["-n"], &bash::script(tool));
        shell("zsh", &["-f", "-n"], &zsh::script(tool));
        shell(
            "fish",
            &["--no-config", "--no-execute"],
            &fish::script(tool),
        );
    }
}

#[test]
fn fish_completes_names_and_arguments() {
    let call = format!(
        "{}\ncomplete -C 'ib_write_bw --limit'\ncomplete -C 'ib_write_bw -c U'\n",
        fish::script(WRITE_BW)
    );
    let Some(offered) = shell("fish", &["--no-config"], &call) else {
        return;
    };
    let words: Vec<&str> = offered
        .lines()
        .filter_map(|line| line.split('\t').next())
        .collect();
    assert_eq!(words, ["--limit_bw", "--limit_msgrate", "UC", "UD"]);
}

#[test]
fn every_option_that_works_is_offered_and_no_other() {
    for script in [bash::script, zsh::script] as [fn(Tool) -> String; 2] {
        let text = script(WRITE_BW);
        assert!(text.contains("--report_gbits"));
        assert!(!text.contains("--latency_gap"));
        assert!(!text.contains("--use_cuda"));
        assert!(script(WRITE_LAT).contains("--latency_gap"));
    }
    let text = fish::script(WRITE_BW);
    assert!(text.contains("-l report_gbits"));
    assert!(!text.contains("use_cuda"));
    let text = bash::script(WRITE_BW);
    for row in table::rows() {
        let refused = unsupported::is_listed(row.long) || row.section == Section::Hardware;
        if refused {
            assert!(
                !text.contains(&format!("--{} ", row.long)),
                "--{}",
                row.long
            );
        } else if row.section == Section::Traffic && row.tools.contains(WRITE_BW) {
            assert!(text.contains(&format!("--{} ", row.long)), "--{}", row.long);
        }
    }
}
