//! Why a device that the kernel shows can't be used.

use std::fmt;

use verbs_sys::sysfs::{DriverKind, NodeError, RdmaDevice, SysfsError, UVERBS_ABI};
use verbs_sys::{LinkLayer, PortState};

/// Why a device of the kernel can't be used, or not yet.
#[derive(Debug)]
pub(super) enum Problem {
    /// Sysfs shows it, but not the device management.
    HiddenFromNetlink,
    /// The device management shows it, but not sysfs.
    HiddenFromSysfs,
    /// The uverbs module speaks another ABI.
    UverbsAbi(u32),
    /// It has no uverbs directory, or an odd one.
    Uverbs(String),
    /// Its driver speaks another ABI.
    DriverAbi {
        /// What the kernel has.
        seen: u32,
        /// What we have.
        expected: u32,
    },
    /// There is nothing here to drive its queues.
    Driver(String),
    /// The node can't be opened.
    Node(NodeError),
    /// A port isn't active.
    Port {
        /// Number of the port.
        number: u8,
        /// Its state.
        state: PortState,
        /// Its network interface.
        netdev: Option<String>,
    },
    /// Something of a port can't be read.
    Odd(SysfsError),
}

impl Problem {
    /// Whether libibverbs lists a device with this problem: it looks for the
    /// node and compares ABIs, but opens nothing.
    pub(super) fn is_listed(&self) -> bool {
        match self {
            Self::HiddenFromNetlink
            | Self::HiddenFromSysfs
            | Self::UverbsAbi(_)
            | Self::Uverbs(_)
            | Self::DriverAbi { .. }
            | Self::Node(NodeError::Absent { .. }) => false,
            Self::Driver(_) | Self::Node(_) | Self::Port { .. } | Self::Odd(_) => true,
        }
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::HiddenFromNetlink => f.write_str(
                "sysfs shows it, but the device management doesn't: it is in another network \
                 namespace (see `rdma system`)",
            ),
            Self::HiddenFromSysfs => f.write_str(
                "the device management shows it, but /sys/class/infiniband doesn't: is sysfs mounted?",
            ),
            Self::UverbsAbi(seen) => write!(
                f,
                "the kernel's uverbs ABI is {seen}, this program speaks {UVERBS_ABI}"
            ),
            Self::Uverbs(reason) => f.write_str(reason),
            Self::DriverAbi { seen, expected } => write!(
                f,
                "the ABI of its kernel driver is {seen}, this program speaks {expected}"
            ),
            Self::Driver(module) if module.is_empty() => {
                f.write_str("its driver isn't known: rxe, siw and mlx5 are")
            }
            Self::Driver(module) => {
                write!(f, "there is no driver here for {module}: rxe, siw and mlx5 are")
            }
            Self::Node(error) => error.fmt(f),
            Self::Port {
                number,
                state,
                netdev,
            } => {
                write!(f, "port {number} is {}", state_word(*state))?;
                match netdev {
                    Some(netdev) => write!(f, "; is {netdev} up? (`ip link set {netdev} up`)"),
                    None => f.write_str("; is its link up?"),
                }
            }
            Self::Odd(error) => error.fmt(f),
        }
    }
}

/// All that is wrong with a device. `uverbs_abi`: the ABI of the uverbs module.
pub(super) fn problems(device: &RdmaDevice, uverbs_abi: Option<u32>) -> Vec<Problem> {
    let mut found = Vec::new();
    if let Some(seen) = uverbs_abi.filter(|abi| *abi != UVERBS_ABI) {
        found.push(Problem::UverbsAbi(seen));
    }
    match device.uverbs() {
        Err(error) => found.push(Problem::Uverbs(error.to_string())),
        Ok(node) => {
            let seen = node.driver_abi();
            match (device.driver(), device.driver().abi()) {
                (DriverKind::Other(module), _) => found.push(Problem::Driver(module.clone())),
                (_, Some(expected)) if expected != seen => {
                    found.push(Problem::DriverAbi { seen, expected });
                }
                _ => {}
            }
            if let Err(error) = node.open() {
                found.push(Problem::Node(error));
            }
        }
    }
    if let Err(error) = inactive_ports(device, &mut found) {
        found.push(Problem::Odd(error));
    }
    found
}

/// Ports that carry nothing. A port of InfiniBand may be brought up by the
/// subnet manager yet, one with Ethernet follows its interface.
fn inactive_ports(device: &RdmaDevice, found: &mut Vec<Problem>) -> Result<(), SysfsError> {
    for port in device.ports()? {
        let state = port.state()?;
        if state != PortState::Active {
            let has_netdev = port.link_layer()? == LinkLayer::Ethernet;
            let netdev = if has_netdev {
                device.netdev(&port)?
            } else {
                None
            };
            found.push(Problem::Port {
                number: port.number(),
                state,
                netdev,
            });
        }
    }
    Ok(())
}

fn state_word(state: PortState) -> &'static str {
    match state {
        PortState::Nop => "in an unknown state",
        PortState::Down => "down",
        PortState::Init => "waiting for a subnet manager",
        PortState::Armed => "armed, not active",
        PortState::Active => "active",
        PortState::ActiveDefer => "active with a deferred error",
    }
}
