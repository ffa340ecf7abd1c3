//! What a device makes of the parameters: adjustments with their texts.
//!
//! Each function takes the facts it needs and returns the value to use and
//! what is to be said about it, so that the order is the caller's: link,
//! inline, outstanding reads and partition key before the peer is there; MTU
//! and datagram size after versions are exchanged.

use verbs_sys::PathMtu;

use super::device_class::DeviceClass;
use super::message::{EXIT_FAILURE, ExitReason, LINE, Messages, Outcome, Resolved};
use super::params::{MtuRequest, Params, Sizes};
use crate::words::Connection;
use crate::words::Tool;

/// A value, and what there is to say about how it was arrived at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Adjusted<T> {
    /// The value to use.
    pub value: T,
    /// To print, in order.
    pub messages: Messages,
}

impl<T> Adjusted<T> {
    fn silent(value: T) -> Adjusted<T> {
        Adjusted {
            value,
            messages: Messages::new(),
        }
    }
}

/// The path MTU to announce: what `-m` asks for, up to the port's active MTU.
pub fn path_mtu(request: MtuRequest, active: PathMtu, class: DeviceClass) -> Adjusted<PathMtu> {
    let mut messages = Messages::new();
    let value = match request {
        MtuRequest::PortActive => class.default_mtu(active),
        MtuRequest::Invalid(number) => {
            messages.err(format!(
                " Invalid MTU - {number} \n Please choose mtu from {{256,512,1024,2048,4096}}\n \
                 Will run with the port active mtu - {}\n",
                active as u8
            ));
            active
        }
        MtuRequest::Exactly(mtu) if mtu > active => {
            messages.out(format!(
                "Requested mtu is higher than active mtu \nChanging to active mtu - {}\n",
                active as u8
            ));
            active
        }
        MtuRequest::Exactly(mtu) => mtu,
    };
    Adjusted { value, messages }
}

/// The largest message, cut to one packet for UD. `None` when the user
/// insists on more: the run ends there with exit code 1.
pub fn largest_message(params: &Params, mtu: PathMtu) -> Adjusted<Option<u32>> {
    let wanted = params.sizes.largest();
    if params.connection != Connection::Ud || wanted <= mtu.bytes() {
        return Adjusted::silent(Some(wanted));
    }
    let mut messages = Messages::new();
    if matches!(params.sizes, Sizes::All { .. }) || !params.size_given {
        messages.err(format!(
            " Max msg size in UD is MTU {}\n Changing to this MTU\n",
            mtu.bytes()
        ));
        return Adjusted {
            value: Some(mtu.bytes()),
            messages,
        };
    }
    messages.err(
        " Max message size in UD cannot be greater than MTU \n \
         Couldn't get context for the device\n",
    );
    Adjusted {
        value: None,
        messages,
    }
}

/// Reads and atomics in flight: `-o`, up to `max_qp_rd_atom` of the device;
/// 1 for a test that has neither (`used`).
pub fn outstanding_reads(used: bool, asked: Option<u32>, device_max: u32) -> Adjusted<u32> {
    match (used, asked) {
        (false, _) => Adjusted::silent(1),
        (_, None) => Adjusted::silent(device_max),
        (_, Some(asked)) if asked <= device_max => Adjusted::silent(asked),
        (_, Some(_)) => {
            let mut messages = Messages::new();
            messages.out(LINE);
            messages.err(format!(
                " Number of outstanding reads is above max = {device_max}\n \
                 Changing to that max value\n"
            ));
            Adjusted {
                value: device_max,
                messages,
            }
        }
    }
}

/// Inline bytes to ask the queue pair for. An unknown device gets none, and a
/// remark when some number had been chosen, which it is for READ and atomics.
pub fn inline_size(params: &Params, class: DeviceClass) -> Adjusted<u32> {
    match (class, params.inline_size) {
        (DeviceClass::Unknown, Some(_)) => {
            let mut messages = Messages::new();
            messages.out(LINE);
            messages.err("Device not recognized to implement inline feature. Disabling it\n");
            Adjusted { value: 0, messages }
        }
        (_, Some(inline)) => Adjusted::silent(inline),
        (_, None) => Adjusted::silent(class.default_inline(params.tool, params.connection)),
    }
}

/// Inline bytes the queue pair was granted, when it was asked for more.
pub fn granted_inline(requested: u32, granted: u32) -> Adjusted<u32> {
    if granted >= requested {
        return Adjusted::silent(requested);
    }
    let mut messages = Messages::new();
    messages.out(format!(
        "  Actual inline-size({granted}) < requested inline-size({requested})\n"
    ));
    Adjusted {
        value: granted,
        messages,
    }
}

/// The partition key's index, 0 when the device's table is too short.
pub fn pkey_index(asked: u16, max_pkeys: u32) -> Adjusted<u16> {
    if asked == 0 || u32::from(asked) < max_pkeys {
        return Adjusted::silent(asked);
    }
    let mut messages = Messages::new();
    messages.out(LINE);
    messages.err(format!(
        " Specified PKey Index, {asked}, greater than allowed max, {}\n Changing to 0\n",
        i64::from(max_pkeys) - 1
    ));
    Adjusted { value: 0, messages }
}

/// Why no port can be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceProblem {
    /// There is no RDMA device.
    NoDevice,
    /// There are, but none of this name.
    UnknownDevice(String),
    /// The port does not exist.
    UnreadablePort(u8),
    /// The port is not active; `ibv_port_state`, 0 to 5.
    PortNotActive(u8, u8),
    /// The port's link layer is neither InfiniBand nor Ethernet.
    UnknownLink(u8),
}

/// Stock perftest's text and exit code for a device that cannot be used.
pub fn refuse(tool: Tool, problem: &DeviceProblem) -> Resolved {
    const STATES: [&str; 6] = ["Nop", "Down", "Init", "Armed", "", "Active Defer"];
    let mut messages = Messages::new();
    let mut code = EXIT_FAILURE;
    match problem {
        DeviceProblem::NoDevice => {
            messages.err(" Did not detect devices \n If device exists, check if driver is up\n");
        }
        DeviceProblem::UnknownDevice(name) => messages.err(format!("IB device {name} not found\n")),
        DeviceProblem::UnreadablePort(port) => {
            messages.err(format!(" Unable to query port {port} attributes\n"));
        }
        DeviceProblem::PortNotActive(port, state) => {
            let state = STATES.get(usize::from(*state)).copied().unwrap_or("");
            messages.err(format!(" Port number {port} state is {state}\n"));
        }
        DeviceProblem::UnknownLink(port) => {
            messages.err(format!("Link layer on port {port} is Unknown\n"));
        }
    }
    match problem {
        DeviceProblem::NoDevice | DeviceProblem::UnknownDevice(_) => {
            code = tool.exit_code_without_device();
            if code == EXIT_FAILURE {
                messages.err(" Unable to find the Infiniband/RoCE device\n");
            }
        }
        _ => messages.err(" Couldn't set the link layer\n Couldn't get context for the device\n"),
    }
    Resolved {
        messages,
        outcome: Outcome::Exit {
            code,
            reason: ExitReason::Refused,
        },
    }
}

#[cfg(test)]
mod tests;
