use std::collections::BTreeSet;

use super::*;
use crate::options::tool::{READ_LAT, SEND_BW, WRITE_BW, WRITE_LAT};
use crate::words::Tool;

#[test]
fn no_letter_and_no_name_stands_twice() {
    let mut letters = BTreeSet::new();
    let mut names = BTreeSet::new();
    for row in rows() {
        for name in row.names() {
            assert!(names.insert(name), "--{name}");
        }
        if let Some(letter) = row.short {
            assert!(letters.insert(letter), "-{letter}");
        }
    }
}

#[test]
fn letters_are_those_of_stock_perftest() {
    let with_value = "wypdimsntuSxcqIoMrQAlDfBTLEJjKkXW";
    let flags = "aFegzRvhbNVCHUOZP";
    for letter in with_value.chars() {
        assert!(
            by_letter(letter).is_some_and(OptionRow::takes_value),
            "-{letter}"
        );
    }
    for letter in flags.chars() {
        assert!(
            by_letter(letter).is_some_and(|row| !row.takes_value()),
            "-{letter}"
        );
    }
    let letters = rows().filter(|row| row.short.is_some()).count();
    assert_eq!(letters, with_value.len() + flags.len());
    assert!(by_letter('Y').is_none() && by_letter('G').is_none());
}

#[test]
fn every_option_that_does_something_has_a_help_line() {
    for row in rows() {
        let grouped = matches!(row.section, Section::Hardware | Section::RawEthernet);
        assert_eq!(row.help.is_empty(), grouped, "--{}", row.long);
    }
}

#[test]
fn abbreviations_unique_in_stock_perftest_stay_unique() {
    for (short, long) in [
        ("iter", "iters"),
        ("report_gbit", "report_gbits"),
        ("report-histogram", "report-histogrm"),
        ("connect", ""),
        ("connect-retry", "connect_retry"),
        ("limit_m", "limit_msgrate"),
        ("siz", "size"),
        ("ver", "version"),
        ("conn", ""),
        ("dura", "duration"),
        ("report-hist", "report-histogrm"),
        ("loop", "loopback"),
        ("verb", "verbose"),
        ("rate_limit", "rate_limit"),
        ("ipv6", "ipv6"),
        ("out_json", "out_json"),
    ] {
        match by_long_name(short) {
            Found::One(row) => assert_eq!(row.long, long),
            Found::Many(names) => assert_eq!((long, names.len()), ("", 2), "{names:?}"),
            Found::None => panic!("--{short}"),
        }
    }
}

#[test]
fn tool_sets_hold_the_tools_they_are_named_after() {
    for tool in Tool::ALL {
        assert!(Tools::ALL.contains(tool));
        assert_eq!(Tools::BW.contains(tool), tool.is_bandwidth());
        assert_eq!(Tools::LAT.contains(tool), !tool.is_bandwidth());
    }
    assert!(Tools::WRITE.contains(WRITE_BW) && Tools::WRITE.contains(WRITE_LAT));
    assert!(!Tools::WRITE.contains(SEND_BW) && Tools::WRITE.not().contains(SEND_BW));
    assert!(Tools::READ.or(Tools::SEND).contains(READ_LAT));
    assert!(!Tools::READ.and(Tools::BW).contains(READ_LAT));
}
