//! Who holds the UDP port of RoCEv2, for the error that says so.

use std::fmt;
use std::fs;
use std::net::IpAddr;
use std::path::Path;

use super::super::ROCE_PORT;

/// Who holds the port, as far as it can be told.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Holder {
    /// A process.
    Process {
        /// Process id.
        pid: u32,
        /// Its name (`/proc/PID/comm`).
        name: String,
    },
    /// Kernel `rdma_rxe`, which takes the port for all addresses of the host.
    KernelRxe,
    /// It can't be told: a process of another user or in another PID
    /// namespace, or one that has gone meanwhile.
    Unknown {
        /// User id of the socket's owner, if the socket was seen.
        uid: Option<u32>,
    },
}

impl fmt::Display for Holder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Process { pid, name } => write!(f, "{name} (pid {pid})"),
            Self::KernelRxe => f.write_str("kernel rdma_rxe, for every address of this host"),
            Self::Unknown { uid: Some(uid) } => write!(f, "a process of user id {uid}"),
            Self::Unknown { uid: None } => f.write_str("a process that can't be identified"),
        }
    }
}

impl Holder {
    /// What the user can do about it.
    #[must_use]
    pub fn way_out(&self, address: IpAddr) -> String {
        let other_address = if address.is_loopback() {
            "use another address of lo (all of 127.0.0.0/8 is local)"
        } else {
            "use another local address (on one host: 127.0.0.1, 127.0.0.2, ...)"
        };
        match self {
            Self::KernelRxe => {
                "remove its links with `rdma link del NAME` (see `rdma link`), unload rdma_rxe, \
                 or run in another network namespace"
                    .to_owned()
            }
            Self::Process { .. } | Self::Unknown { .. } => {
                format!("stop it, {other_address}, or run in another network namespace")
            }
        }
    }

    /// Looks for the holder of port 4791 on `address`.
    pub(super) fn find(address: IpAddr) -> Self {
        Self::find_in(Path::new("/proc"), Path::new("/sys"), address)
    }

    fn find_in(proc: &Path, sys: &Path, address: IpAddr) -> Self {
        let entries = ["net/udp", "net/udp6"]
            .iter()
            .filter_map(|table| fs::read_to_string(proc.join(table)).ok())
            .flat_map(|table| table.lines().filter_map(Entry::parse).collect::<Vec<_>>())
            .filter(|entry| entry.port == ROCE_PORT && entry.conflicts_with(address))
            .collect::<Vec<_>>();
        if let Some((pid, name)) = entries.iter().find_map(|entry| owner(proc, entry.inode)) {
            return Self::Process { pid, name };
        }
        // A socket of the kernel is in no process; rxe's are bound to all addresses.
        let wildcard = entries.iter().any(|entry| entry.address.is_unspecified());
        if wildcard && sys.join("module/rdma_rxe").exists() {
            return Self::KernelRxe;
        }
        Self::Unknown {
            uid: entries.first().map(|entry| entry.uid),
        }
    }
}

/// A line of `/proc/net/udp` or `/proc/net/udp6` (`proc_net(5)`).
#[derive(Debug, PartialEq, Eq)]
struct Entry {
    address: IpAddr,
    port: u16,
    uid: u32,
    inode: u64,
}

impl Entry {
    fn parse(line: &str) -> Option<Self> {
        let mut fields = line.split_ascii_whitespace();
        let (address, port) = fields.nth(1)?.split_once(':')?;
        let uid = fields.nth(5)?.parse().ok()?;
        let inode = fields.nth(1)?.parse().ok()?;
        Some(Self {
            address: parse_address(address)?,
            port: u16::from_str_radix(port, 16).ok()?,
            uid,
            inode,
        })
    }

    fn conflicts_with(&self, address: IpAddr) -> bool {
        self.address == address
            || self.address.is_unspecified()
                // `::` takes IPv4 too, unless the socket is for IPv6 only.
                && (self.address.is_ipv6() || address.is_ipv4())
    }
}

/// An address as the table has it: words of four bytes in host order.
fn parse_address(hex: &str) -> Option<IpAddr> {
    let word = |at: usize| {
        let word = u32::from_str_radix(hex.get(at * 8..at * 8 + 8)?, 16).ok()?;
        Some(word.to_ne_bytes())
    };
    match hex.len() {
        8 => Some(IpAddr::from(word(0)?)),
        32 => {
            let mut bytes = [0; 16];
            for (at, to) in bytes.chunks_exact_mut(4).enumerate() {
                to.copy_from_slice(&word(at)?);
            }
            Some(IpAddr::from(bytes))
        }
        _ => None,
    }
}

/// The process that has the socket open, and its name.
fn owner(proc: &Path, inode: u64) -> Option<(u32, String)> {
    let link = format!("socket:[{inode}]");
    fs::read_dir(proc).ok()?.flatten().find_map(|entry| {
        let pid: u32 = entry.file_name().to_str()?.parse().ok()?;
        let has_it = fs::read_dir(entry.path().join("fd"))
            .ok()?
            .flatten()
            .any(|fd| {
                fs::read_link(fd.path()).is_ok_and(|target| target.as_os_str() == link.as_str())
            });
        let name = || fs::read_to_string(entry.path().join("comm"));
        has_it.then(|| {
            (
                pid,
                name().map_or_else(|_| "?".to_owned(), |name| name.trim().to_owned()),
            )
        })
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HEADER: &str = "   sl  local_address rem_address   st tx_queue rx_queue tr tm->when \
                          retrnsmt   uid  timeout inode ref pointer drops\n";
    const LOCAL: &str = " 1234: 0201007F:12B7 00000000:0000 07 00000000:00000000 00:00000000 \
                         00000000  1000        0 55501 2 0000000000000000 0\n";
    const WILDCARD: &str = " 1235: 00000000:12B7 00000000:0000 07 00000000:00000000 00:00000000 \
                            00000000     0        0 777 2 0000000000000000 0\n";
    const WILDCARD6: &str = " 1235: 00000000000000000000000000000000:12B7 \
                             00000000000000000000000000000000:0000 07 00000000:00000000 \
                             00:00000000 00000000     0        0 778 2 0000000000000000 0\n";

    /// A made-up `/proc` and `/sys`.
    struct Host(std::path::PathBuf);

    impl Host {
        fn new(name: &str, udp: &str, udp6: &str) -> Self {
            let root = std::env::temp_dir().join(format!("holder-{name}-{}", std::process::id()));
            fs::create_dir_all(root.join("proc/net")).unwrap();
            fs::create_dir_all(root.join("sys/module")).unwrap();
            fs::write(root.join("proc/net/udp"), format!("{HEADER}{udp}")).unwrap();
            fs::write(root.join("proc/net/udp6"), format!("{HEADER}{udp6}")).unwrap();
            Self(root)
        }

        fn with_process(self, pid: u32, name: &str, inode: u64) -> Self {
            let dir = self.0.join(format!("proc/{pid}"));
            fs::create_dir_all(dir.join("fd")).unwrap();
            fs::write(dir.join("comm"), format!("{name}\n")).unwrap();
            std::os::unix::fs::symlink(format!("socket:[{inode}]"), dir.join("fd/3")).unwrap();
            self
        }

        fn with_rxe(self) -> Self {
            fs::create_dir_all(self.0.join("sys/module/rdma_rxe")).unwrap();
            self
        }

        fn holder(&self, address: &str) -> Holder {
            let address = address.parse().unwrap();
            Holder::find_in(&self.0.join("proc"), &self.0.join("sys"), address)
        }
    }

    impl Drop for Host {
        fn drop(&mut self) {
            fs::remove_dir_all(&self.0).unwrap();
        }
    }

    #[test]
    fn a_process_is_named() {
        let host = Host::new("process", LOCAL, "").with_process(42, "ib_write_bw", 55501);
        let holder = host.holder("127.0.1.2");
        assert_eq!(
            holder,
            Holder::Process {
                pid: 42,
                name: "ib_write_bw".to_owned()
            }
        );
        assert_eq!(holder.to_string(), "ib_write_bw (pid 42)");
        assert!(
            holder
                .way_out([127, 0, 1, 2].into())
                .contains("127.0.0.0/8")
        );
        assert_eq!(host.holder("127.0.1.3"), Holder::Unknown { uid: None });
    }

    #[test]
    fn a_process_on_all_addresses_is_named_although_rxe_is_loaded() {
        let host = Host::new("wild", WILDCARD, "")
            .with_process(7, "x", 777)
            .with_rxe();
        assert!(matches!(
            host.holder("10.0.0.1"),
            Holder::Process { pid: 7, .. }
        ));
    }

    #[test]
    fn a_socket_of_no_process_on_all_addresses_is_rxe() {
        let host = Host::new("rxe", WILDCARD, WILDCARD6)
            .with_process(7, "x", 1)
            .with_rxe();
        assert_eq!(host.holder("10.0.0.1"), Holder::KernelRxe);
        assert_eq!(host.holder("fd00::1"), Holder::KernelRxe);
        assert!(
            Holder::KernelRxe
                .way_out([10, 0, 0, 1].into())
                .contains("rdma link del")
        );
    }

    #[test]
    fn without_the_module_the_holder_stays_unknown() {
        let host = Host::new("unknown", LOCAL, "");
        assert_eq!(
            host.holder("127.0.1.2"),
            Holder::Unknown { uid: Some(1000) }
        );
    }

    #[test]
    fn garbage_in_the_table_is_passed_over() {
        for line in [
            "",
            "x",
            "1: 0:0",
            "1: zz:12B7 0:0 7 0 0 0 0 0 1",
            "1: 00:1 0 0 0 0 0 0 0 1",
        ] {
            assert_eq!(Entry::parse(line), None, "{line}");
        }
    }
}
