//! `ibv_devinfo`: what devices and ports say about themselves.

mod device;
mod flags;
mod port;

use std::sync::Arc;

use verbs_sys::sysfs::NodeType;
use verbs_sys::{Context, VerbsError};

use super::devices::{self, KernelDevice, Listing};
use super::getopt::{self, Item, Opt};
use super::{Report, System, UserspaceDevice};

const OPTIONS: [Opt; 4] = [
    Opt {
        short: 'd',
        long: "ib-dev",
        takes_value: true,
    },
    Opt {
        short: 'i',
        long: "ib-port",
        takes_value: true,
    },
    Opt {
        short: 'l',
        long: "list",
        takes_value: false,
    },
    Opt {
        short: 'v',
        long: "verbose",
        takes_value: false,
    },
];

/// Exit codes; the last is -1 in 8 bits.
const CANNOT_OPEN: u8 = 1;
const CANNOT_QUERY_DEVICE: u8 = 2;
const NO_SUCH_PORT: u8 = 4;
const FAILED: u8 = 255;

/// What the user wants to see.
#[derive(Debug, Default)]
struct Wanted {
    device: Option<String>,
    /// Port number, cut to 8 bits as the original does; 0 is all ports.
    port: u8,
    verbose: bool,
}

/// A device to print.
struct Shown<'a> {
    name: &'a str,
    /// What is behind the name on the first line.
    mark: &'static str,
    /// Whether the list's notes say what is wrong with it.
    explained: bool,
    node_type: Option<NodeType>,
    board_id: Option<String>,
}

/// `ibv_devinfo [-d DEVICE] [-i PORT] [-l] [-v]`.
#[must_use]
pub fn ibv_devinfo(program: &str, arguments: &[String], system: &System<'_>) -> Report {
    let mut report = Report::default();
    let mut wanted = Wanted::default();
    for item in getopt::items(&OPTIONS, arguments) {
        match item {
            Item::Option('d', name) => wanted.device = Some(name),
            Item::Option('i', number) => match strtol(&number) {
                1.. => wanted.port = strtol(&number) as u8,
                _ => return usage(report, program).exit(1),
            },
            Item::Option('v', _) => wanted.verbose = true,
            Item::Option('l', _) => return list_names(report, system),
            Item::Option(..) | Item::Word(_) => {}
            Item::Unknown(text) | Item::NoValue(_, text) => {
                report.err(format_args!("{program}: {text}"));
                return usage(report, program).exit(FAILED);
            }
        }
    }
    show(report, &wanted, system)
}

fn usage(mut report: Report, program: &str) -> Report {
    report.out(format_args!(
        "Usage: {program}             print the ca attributes

Options:
  -d, --ib-dev=<dev>     use IB device <dev> (default first device found)
  -i, --ib-port=<port>   use port <port> of IB device (default all ports)
  -l, --list             print only the IB devices names
  -v, --verbose          print all the attributes of the IB device(s)"
    ));
    report
}

/// The number at the beginning of a text, in C's notation, as `strtol` with
/// base 0 reads it; 0 when there is none.
fn strtol(text: &str) -> i32 {
    let text = text.trim_start();
    let (negative, digits) = match text.strip_prefix('-') {
        Some(digits) => (true, digits),
        None => (false, text.strip_prefix('+').unwrap_or(text)),
    };
    let hexadecimal = digits.strip_prefix("0x").or(digits.strip_prefix("0X"));
    let (radix, digits) = match hexadecimal {
        Some(digits) => (16, digits),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits.find(|c: char| !c.is_digit(radix));
    let digits = digits
        .get(..end.unwrap_or(digits.len()))
        .unwrap_or_default();
    let value = match i64::from_str_radix(digits, radix) {
        Ok(value) if negative => -value,
        Ok(value) => value,
        Err(_) if digits.is_empty() => 0,
        Err(_) => i64::MAX,
    };
    // The original keeps the low 32 bits.
    value as i32
}

fn list(report: &mut Report, system: &System<'_>) -> Option<Listing> {
    match devices::list(system) {
        Ok(listing) => Some(listing),
        Err(error) => {
            report.err(format_args!("Failed to get IB devices list: {error}"));
            None
        }
    }
}

fn list_names(mut report: Report, system: &System<'_>) -> Report {
    let Some(listing) = list(&mut report, system) else {
        return report.exit(FAILED);
    };
    let userspace = listing.userspace(&mut report, system);
    let on_stdout = if listing.is_empty() { userspace } else { &[] };
    let count = listing.listed.len() + on_stdout.len();
    let plural = if count == 1 { "" } else { "s" };
    report.out(format_args!("{count} HCA{plural} found:"));
    for device in &listing.listed {
        report.out(format_args!("\t{}", device.name()));
    }
    for userspace in on_stdout {
        report.out(format_args!("\t{} (userspace)", userspace.device.name()));
    }
    report.out(format_args!(""));
    if on_stdout.is_empty() {
        note_userspace(&mut report, userspace);
    }
    listing.explain(&mut report);
    report
}

fn note_userspace(report: &mut Report, userspace: &[UserspaceDevice]) {
    for userspace in userspace {
        report.err(format_args!("\t{} (userspace)", userspace.device.name()));
    }
}

fn show(mut report: Report, wanted: &Wanted, system: &System<'_>) -> Report {
    let Some(listing) = list(&mut report, system) else {
        return report.exit(FAILED);
    };
    let userspace = listing.userspace(&mut report, system);
    let mut code = 0;
    if let Some(name) = &wanted.device {
        if let Some(device) = listing.listed.iter().find(|device| device.name() == name) {
            code = show_kernel(&mut report, &listing, device, wanted, system);
        } else if let Some(device) = userspace.iter().find(|d| d.device.name() == name) {
            code = show_userspace(&mut report, device, wanted);
        } else {
            report.err(format_args!("IB device '{name}' wasn't found"));
            code = FAILED;
        }
        let mut explained = listing;
        explained.problems.retain(|(device, _)| device == name);
        explained.explain(&mut report);
        return report.exit(code);
    }
    for device in &listing.listed {
        code |= show_kernel(&mut report, &listing, device, wanted, system);
    }
    if listing.is_empty() && !userspace.is_empty() {
        for device in userspace {
            code |= show_userspace(&mut report, device, wanted);
        }
    } else {
        if listing.listed.is_empty() {
            report.err(format_args!("No IB devices found"));
            code = FAILED;
        }
        note_userspace(&mut report, userspace);
    }
    listing.explain(&mut report);
    report.exit(code)
}

fn show_kernel(
    report: &mut Report,
    listing: &Listing,
    device: &KernelDevice,
    wanted: &Wanted,
    system: &System<'_>,
) -> u8 {
    let mut explained = listing.problems.iter().map(|(name, _)| name);
    let shown = Shown {
        name: device.name(),
        mark: "",
        explained: explained.any(|name| name == device.name()),
        node_type: device.node_type(),
        board_id: device.sysfs.board_id().ok().flatten(),
    };
    let opened = (system.open)(device.name());
    show_opened(report, &shown, opened, wanted)
}

fn show_userspace(report: &mut Report, device: &UserspaceDevice, wanted: &Wanted) -> u8 {
    let shown = Shown {
        name: device.device.name(),
        mark: " (userspace)",
        explained: false,
        node_type: Some(NodeType::Ca),
        board_id: None,
    };
    show_opened(report, &shown, device.device.open(), wanted)
}

/// Prints one device; returns the exit code.
fn show_opened(
    report: &mut Report,
    shown: &Shown<'_>,
    opened: Result<Arc<dyn Context>, VerbsError>,
    wanted: &Wanted,
) -> u8 {
    let context = match opened {
        Ok(context) => context,
        Err(error) => {
            refuse(report, shown, "Failed to open device", &error);
            return CANNOT_OPEN;
        }
    };
    let attributes = match context.query_device() {
        Ok(attributes) => attributes,
        Err(error) => {
            refuse(report, shown, "Failed to query device props", &error);
            return CANNOT_QUERY_DEVICE;
        }
    };
    if wanted.port > attributes.phys_port_cnt {
        report.err(format_args!("Invalid port requested for device"));
        return NO_SUCH_PORT;
    }
    device::print(report, shown, &attributes);
    if wanted.verbose {
        device::print_verbose(report, &attributes);
    }
    for number in 1..=attributes.phys_port_cnt {
        if wanted.port != 0 && wanted.port != number {
            continue;
        }
        let queried = context.query_port(number);
        let port = match queried {
            Ok(port) => port,
            Err(error) => {
                let text = format!("Failed to query port {number} props");
                refuse(report, shown, &text, &error);
                return error.errno() as u8;
            }
        };
        port::print(report, number, &port);
        if wanted.verbose {
            port::print_verbose(report, &port, shown.transport());
            if let Err(error) = port::print_gids(report, &*context, number, &port) {
                report.err(format_args!("{}: {error}", shown.name));
                return error.errno() as u8;
            }
        }
        report.out(format_args!(""));
    }
    0
}

/// Says what the original says, then the reason, unless the notes have it.
fn refuse(report: &mut Report, shown: &Shown<'_>, text: &str, error: &VerbsError) {
    report.err(format_args!("{text}"));
    match error {
        VerbsError::Unusable { .. } if shown.explained => {}
        VerbsError::Unusable { .. } => report.err(format_args!("{error}")),
        _ => report.err(format_args!("{}: {error}", shown.name)),
    }
}

/// `enum ibv_transport_type`, which follows from the node's type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Transport {
    Unknown = -1,
    Ib = 0,
    Iwarp = 1,
    Usnic = 2,
    UsnicUdp = 3,
    Unspecified = 4,
}

impl Shown<'_> {
    fn transport(&self) -> Transport {
        match self.node_type {
            Some(NodeType::Ca | NodeType::Switch | NodeType::Router) => Transport::Ib,
            Some(NodeType::Rnic) => Transport::Iwarp,
            Some(NodeType::Usnic) => Transport::Usnic,
            Some(NodeType::UsnicUdp) => Transport::UsnicUdp,
            Some(NodeType::Unspecified) => Transport::Unspecified,
            Some(NodeType::Unknown(_)) | None => Transport::Unknown,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn port_numbers_are_read_as_strtol_does() {
        for (text, expected) in [
            ("1", 1),
            (" +2x", 2),
            ("0x10", 16),
            ("010", 8),
            ("-3", -3),
            ("", 0),
            ("x", 0),
            ("0", 0),
            ("99999999999999999999", -1),
        ] {
            assert_eq!(strtol(text), expected, "{text}");
        }
    }
}
