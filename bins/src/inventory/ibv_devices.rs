//! `ibv_devices`: the names and GUIDs of the devices.

use super::devices::{self, Listing};
use super::{Report, System};

/// `ibv_devices`, which takes no options and ignores what it is given.
#[must_use]
pub fn ibv_devices(_program: &str, _arguments: &[String], system: &System<'_>) -> Report {
    let mut report = Report::default();
    let listing = match devices::list(system) {
        Ok(listing) => listing,
        Err(error) => {
            report.err(format_args!("Failed to get IB devices list: {error}"));
            return report.exit(1);
        }
    };
    report.out(format_args!("    {:<16}\t   node GUID", "device"));
    report.out(format_args!("    {:<16}\t----------------", "------"));
    for device in &listing.listed {
        let guid = device.node_guid();
        report.out(format_args!("    {:<16}\t{guid:016x}", device.name()));
    }
    list_userspace(&mut report, &listing, system);
    listing.explain(&mut report);
    report
}

fn list_userspace(report: &mut Report, listing: &Listing, system: &System<'_>) {
    for userspace in listing.userspace(report, system) {
        let (name, guid) = (userspace.device.name(), userspace.device.node_guid());
        let line = format_args!("    {name:<16}\t{guid:016x}\t(userspace)");
        if listing.is_empty() {
            report.out(line);
        } else {
            report.err(line);
        }
    }
}
