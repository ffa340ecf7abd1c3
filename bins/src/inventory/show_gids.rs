//! `show_gids`: the GID tables of all ports, or of those of one device.

use verbs_sys::sysfs::{GidSlot, RdmaDevice, SysfsError};
use verbs_sys::{Gid, GidType};

use super::devices;
use super::{Report, System, UserspaceDevice};

/// `show_gids [DEVICE]`.
#[must_use]
pub fn show_gids(_program: &str, arguments: &[String], system: &System<'_>) -> Report {
    let mut report = Report::default();
    report.out(format_args!(
        "DEV\tPORT\tINDEX\tGID\t\t\t\t\tIPv4  \t\tVER\tDEV"
    ));
    report.out(format_args!(
        "---\t----\t-----\t---\t\t\t\t\t------------  \t---\t---"
    ));
    let listed = match arguments.first() {
        Some(name) => named(&mut report, name, system),
        None => all(&mut report, system),
    };
    match listed {
        Ok(count) => {
            report.out(format_args!("n_gids_found={count}"));
            report
        }
        Err(error) => {
            report.err(format_args!("show_gids: {error}"));
            report.exit(1)
        }
    }
}

fn all(report: &mut Report, system: &System<'_>) -> Result<usize, SysfsError> {
    let mut count = 0;
    for device in system.sysfs.devices()? {
        count += list(report, &device)?;
    }
    let listing = devices::list(system)?;
    for device in listing.userspace(report, system) {
        let lines = lines_of(device);
        for line in &lines {
            if listing.is_empty() {
                report.out(format_args!("{line}"));
                count += 1;
            } else {
                report.err(format_args!("{line}"));
            }
        }
    }
    listing.explain(report);
    Ok(count)
}

fn named(report: &mut Report, name: &str, system: &System<'_>) -> Result<usize, SysfsError> {
    let userspace = system.userspace.iter().flatten();
    if let Some(device) = userspace.into_iter().find(|d| d.device.name() == name) {
        let lines = lines_of(device);
        for line in &lines {
            report.out(format_args!("{line}"));
        }
        return Ok(lines.len());
    }
    list(report, &system.sysfs.device(name)?)
}

/// Lists the GIDs of a device in the order of `ls`, which the script goes by,
/// and counts them.
fn list(report: &mut Report, device: &RdmaDevice) -> Result<usize, SysfsError> {
    let mut count = 0;
    for port in device.ports()? {
        let mut slots = port.gids()?;
        slots.retain(|slot| slot.gid != UNSET_SUBNET);
        slots.sort_by_key(|slot| slot.index.to_string());
        count += slots.len();
        for slot in slots {
            let line = line(device.name(), port.number(), &slot);
            report.out(format_args!("{line}"));
        }
    }
    Ok(count)
}

/// The GID of an InfiniBand port without a GUID.
const UNSET_SUBNET: Gid = Gid([0xfe, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);

fn line(device: &str, port: u8, slot: &GidSlot) -> String {
    let groups: Vec<String> = slot
        .gid
        .0
        .chunks(2)
        .map(|pair| pair.iter().map(|byte| format!("{byte:02x}")).collect())
        .collect();
    let [.., a, b, c, d] = slot.gid.0;
    let address = match slot.gid.0 {
        [0, 0, ..] => format!("{a}.{b}.{c}.{d}  "),
        _ => "\t".to_owned(),
    };
    let version = match slot.gid_type {
        GidType::Ib | GidType::RoceV1 => "v1",
        GidType::RoceV2 => "v2",
    };
    format!(
        "{device}\t{port}\t{}\t{}\t{address}\t{version}\t{}",
        slot.index,
        groups.join(":"),
        slot.netdev.as_deref().unwrap_or_default(),
    )
}

/// The addresses of the interface, in the order in which an open device has
/// them as GIDs.
fn lines_of(device: &UserspaceDevice) -> Vec<String> {
    let slot = |(index, address): (u32, &std::net::IpAddr)| GidSlot {
        index,
        gid: Gid::from_ip(*address),
        gid_type: GidType::RoceV2,
        netdev: Some(device.netdev.clone()),
    };
    let slots = (0..).zip(&device.addresses).map(slot);
    slots
        .map(|slot| format!("{}\t(userspace)", line(device.device.name(), 1, &slot)))
        .collect()
}
