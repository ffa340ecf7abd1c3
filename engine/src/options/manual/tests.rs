#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::io::Write as _;
use std::process::{Command, Stdio};

use super::*;
use crate::options::tool::{READ_BW, WRITE_BW};

/// Formats a page; `None` without groff.
fn formatted(page: &str) -> Option<String> {
    let child = Command::new("groff")
        .args(["-man", "-ww", "-Tascii", "-P-cbou"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn();
    let Ok(mut child) = child else {
        eprintln!("no groff here: the pages are not formatted");
        return None;
    };
    let mut stdin = child.stdin.take().unwrap();
    stdin.write_all(page.as_bytes()).unwrap();
    drop(stdin);
    let output = child.wait_with_output().unwrap();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    assert!(output.status.success());
    Some(String::from_utf8(output.stdout).unwrap())
}

#[test]
fn groff_formats_every_page_without_a_warning() {
    for tool in Tool::ALL {
        let Some(text) = formatted(&page(tool)) else {
            return;
        };
        assert!(text.contains(&format!("{tool} - measure the ")), "{text}");
        for row in Section::EXPLAINED
            .iter()
            .flat_map(|(section, _)| table::section(tool, *section))
        {
            assert!(text.contains(&format!("--{}", row.long)), "--{}", row.long);
        }
    }
}

#[test]
fn a_page_says_what_the_help_text_says() {
    let text = page(WRITE_BW);
    assert!(text.starts_with(".TH IB_WRITE_BW 1 "));
    assert!(text.contains(
        ".TP\n\\fB\\-n\\fR, \\fB\\-\\-iters\\fR=\\fIiters\\fR\n\
         Messages per queue pair, at least 5 [5000] (both)\n"
    ));
    assert!(!text.contains("latency_gap"));
    assert!(page(READ_BW).contains(".TP\n.B 7\nno such device, or none\n"));
}

#[test]
fn roff_takes_text_literally() {
    assert_eq!(escape("a-b\\c"), "a\\-b\\ec");
    assert_eq!(escape(".x"), "\\&.x");
    assert_eq!(escape("'x'"), "\\&\\(aqx\\(aq");
}
