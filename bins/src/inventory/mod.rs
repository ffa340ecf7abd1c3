//! The inventory commands: what RDMA devices this host has.
//!
//! They print what the originals of rdma-core and iproute2 print, byte for byte,
//! from sysfs, netlink and the verbs, without their libraries. Two things are
//! added: devices of the userspace NIC, marked as such, and for each device of
//! the kernel that can't be used the reason. Both go to standard error, where
//! they disturb no script, unless the kernel has no device at all: then the
//! devices of the userspace NIC are the list.
//!
//! | file | |
//! |---|---|
//! | `system` | where the commands look: sysfs, netlink, `/proc`, providers |
//! | `devices` | the devices of the kernel and of the userspace NIC |
//! | `usable` | why a device can't be used |
//! | `report` | what a command prints, and its exit code |
//! | `getopt` | the habits of GNU `getopt_long` |
//! | `words` | numbers of the verbs as words |
//! | [`ibv_devices`], [`ibv_devinfo`], [`rdma`], [`show_gids`] | the commands |

mod devices;
mod devinfo;
mod document;
mod getopt;
mod ibv_devices;
mod rdma;
mod report;
mod show_gids;
mod system;
mod usable;
mod words;

pub use devinfo::ibv_devinfo;
pub use ibv_devices::ibv_devices;
pub use rdma::rdma;
pub use report::Report;
pub use show_gids::show_gids;
pub use system::{OpenKernelDevice, OpenNetlink, System, UserspaceDevice};

use std::io::Write;
use std::process::ExitCode;

/// A command: the name it was called by, its arguments, and where it looks.
pub type Command = fn(&str, &[String], &System<'_>) -> Report;

/// Runs a command with the arguments of this process.
#[must_use]
pub fn run(command: Command) -> ExitCode {
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let program = arguments.next().unwrap_or_default();
    let arguments: Vec<String> = arguments.collect();
    let report = command(&program, &arguments, &System::of_host());
    // Who closes our output has seen enough; there is nobody to tell.
    let shown = std::io::stdout().write_all(report.stdout.as_bytes());
    let _ = std::io::stderr().write_all(report.stderr.as_bytes());
    match shown {
        Ok(()) => ExitCode::from(report.code),
        Err(_) => ExitCode::FAILURE,
    }
}
