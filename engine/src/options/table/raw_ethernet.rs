//! Options of the raw Ethernet tools. Stock perftest's `ib_*` tools take
//! them, check them, and do nothing with them; so do we.

use std::net::{Ipv4Addr, Ipv6Addr};

use super::row::{OptionRow, Section};
use crate::options::refusal::Refusal;
use crate::options::settings::{RawEthernet, Settings};

/// `-B` and `-E`.
pub(super) const fn mac(long: &'static str, letter: char) -> OptionRow {
    OptionRow::text(Section::RawEthernet, long, "<mac>", |s, v| {
        s.raw.old_names = true;
        check_mac(v)
    })
    .letter(letter)
}

/// `--local_mac` and `--remote_mac`.
pub(super) const fn new_mac(long: &'static str) -> OptionRow {
    OptionRow::text(Section::RawEthernet, long, "<mac>", |s, v| {
        s.raw.new_names = true;
        check_mac(v)
    })
}

fn check_mac(text: &str) -> Result<(), Refusal> {
    if text.len() != 17 {
        return Err(Refusal::option("invalid MAC length\n"));
    }
    let fields: Vec<&str> = text.split(':').collect();
    for (index, field) in fields.iter().enumerate() {
        if let Some(letter) = field.chars().find(|c| !c.is_ascii_hexdigit()) {
            return Err(Refusal::option(format!(
                "Non-digit character {letter} ({:x}) detected in field {index}\n",
                u32::from(letter)
            )));
        }
    }
    match fields.len() {
        6 => Ok(()),
        _ => Err(Refusal::option("MAC address longer than six fields\n")),
    }
}

pub(super) fn ethertype(text: &str) -> Result<(), Refusal> {
    if text.len() != 6 {
        return Err(Refusal::option(
            "invalid ethertype length\n Invalid ethertype value\n",
        ));
    }
    let digits = text.strip_prefix("0x").unwrap_or(text);
    match u16::from_str_radix(digits, 16) {
        Ok(1..) => Ok(()),
        _ => Err(Refusal::option(" Invalid ethertype value\n")),
    }
}

/// The checks stock perftest makes after all options are read.
pub(in crate::options) fn check_addresses(settings: &Settings) -> Result<(), Refusal> {
    let RawEthernet {
        new_names,
        ipv6,
        server_ip,
        client_ip,
        local_ip,
        remote_ip,
        ..
    } = &settings.raw;
    let addresses = match new_names {
        true => [("local", local_ip), ("remote", remote_ip)],
        false => [("server", server_ip), ("client", client_ip)],
    };
    for (name, address) in addresses {
        let valid = address.as_deref().is_none_or(|text| match ipv6 {
            true => text.parse::<Ipv6Addr>().is_ok(),
            false => text.parse::<Ipv4Addr>().is_ok(),
        });
        if !valid {
            return Err(Refusal::option(format!(" Invalid {name} IP address\n")));
        }
    }
    Ok(())
}

/// `-B -E -J -j -K -k` and the `--local_*`, `--remote_*` names do not mix.
pub(in crate::options) fn check_names(settings: &Settings) -> Result<(), Refusal> {
    if settings.raw.old_names && settings.raw.new_names {
        return Err(Refusal::rule(
            " Invalid Command line.\nMix of source with local|remote and dest with local|remote \
             is not supported.\n\
             For L2 tests you must enter local and remote mac  by this format \
             --local_mac XX:XX:XX:XX:XX:XX --remote_mac XX:XX:XX:XX:XX:XX\n\
             For L3 tests You must add also local and remote ip  by this format \
             --local_ip X.X.X.X --remote_ip X.X.X.X\n\
             For L4 you need to add also local and remote port  by this format \
             --local_port XXXX  --remote_port XXXX\n",
        )
        .after_line());
    }
    Ok(())
}
