//! Address handles.

use std::any::Any;
use std::sync::Arc;

use zerocopy::{FromZeros, IntoBytes};

use crate::drivers::context::Core;
use crate::drivers::objects::DomainHandle;
use crate::uapi::rxe::{Av, CreateAhResp, NETWORK_TYPE_IPV4, NETWORK_TYPE_IPV6, UdWr};
use crate::{AddressHandle, AddressVector, Gid, Result};

/// Hop limit of a path that doesn't say.
const DEFAULT_HOP_LIMIT: u8 = 64;

/// The path of a datagram.
pub(crate) struct RxeAddressHandle {
    domain: Arc<DomainHandle>,
    handle: u32,
    /// What requests carry: the handle's number, or the whole path on kernels
    /// that don't number them (before 5.16).
    operands: UdWr,
}

impl RxeAddressHandle {
    /// # Errors
    /// When there is no way to the peer.
    pub(super) fn new(domain: &Arc<DomainHandle>, av: &AddressVector) -> Result<Self> {
        let uverbs = &domain.core.uverbs;
        let mut answer = CreateAhResp::default();
        let handle = uverbs.create_ah(domain.handle, av, answer.as_mut_bytes())?;
        let mut made = Self {
            domain: Arc::clone(domain),
            handle,
            operands: UdWr {
                ah_num: answer.ah_num,
                ..UdWr::default()
            },
        };
        if answer.ah_num == 0 {
            made.operands.av = path(&domain.core, av)?;
        }
        Ok(made)
    }

    /// The part of a request that says where it goes, but for the peer's queue
    /// pair.
    pub(super) fn operands(&self) -> UdWr {
        self.operands
    }
}

impl Drop for RxeAddressHandle {
    fn drop(&mut self) {
        self.domain.core.uverbs.destroy_ah(self.handle);
    }
}

impl AddressHandle for RxeAddressHandle {
    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// The path for kernels that take it from the request.
fn path(core: &Core, av: &AddressVector) -> Result<Av> {
    let own = core.query_gid(av.port, av.sgid_index)?;
    let local = core
        .query_gid_table()?
        .into_iter()
        .find(|entry| entry.port == av.port && entry.gid == av.dgid);
    Ok(Av {
        port_num: av.port,
        network_type: match av.dgid.is_v4_mapped() {
            true => NETWORK_TYPE_IPV4,
            false => NETWORK_TYPE_IPV6,
        },
        // Such a kernel finds the peer's MAC by itself when it sends. It looks
        // at this one only to see whether the peer is itself.
        dmac: match local {
            Some(entry) => mac(core, entry.netdev_index),
            None => [0; 6],
        },
        dgid: av.dgid.0,
        flow_label: av.flow_label,
        sgid_index: av.sgid_index as u8,
        hop_limit: match av.hop_limit {
            0 => DEFAULT_HOP_LIMIT,
            limit => limit,
        },
        traffic_class: av.traffic_class,
        reserved: 0,
        source: sockaddr(own.gid),
        destination: sockaddr(av.dgid),
    })
}

/// `sockaddr_in` or `sockaddr_in6`, as much of it as rxe looks at.
pub(super) fn sockaddr(gid: Gid) -> [u8; 28] {
    let mut address = <[u8; 28]>::new_zeroed();
    match gid.to_ip() {
        std::net::IpAddr::V4(ip) => {
            address[..2].copy_from_slice((libc::AF_INET as u16).as_bytes());
            address[4..8].copy_from_slice(&ip.octets());
        }
        std::net::IpAddr::V6(ip) => {
            address[..2].copy_from_slice((libc::AF_INET6 as u16).as_bytes());
            address[8..24].copy_from_slice(&ip.octets());
        }
    }
    address
}

/// The MAC address of an interface; zero when it can't be read.
fn mac(core: &Core, netdev: u32) -> [u8; 6] {
    let read = || {
        let name = nix::net::if_::if_indextoname(netdev).ok()?;
        // /sys/class/infiniband/DEVICE -> /sys/class/net/INTERFACE
        let class = core.device.dir().parent()?.parent()?;
        let path = class.join("net").join(name.to_str().ok()?).join("address");
        parse_mac(&std::fs::read_to_string(path).ok()?)
    };
    read().unwrap_or_default()
}

fn parse_mac(text: &str) -> Option<[u8; 6]> {
    let mut mac = [0; 6];
    let mut parts = text.trim().split(':');
    for byte in &mut mac {
        *byte = u8::from_str_radix(parts.next()?, 16).ok()?;
    }
    parts.next().is_none().then_some(mac)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn macs_are_six_hexadecimal_bytes() {
        let mac = parse_mac("02:00:00:0a:ff:01\n");
        assert_eq!(mac, Some([2, 0, 0, 10, 255, 1]));
        for odd in ["", "02:00", "02:00:00:00:00:00:00", "02:00:00:00:00:zz"] {
            assert_eq!(parse_mac(odd), None, "{odd:?}");
        }
    }

    #[test]
    fn gids_become_socket_addresses() {
        let v4 = sockaddr(Gid::from_ip([192, 0, 2, 7].into()));
        assert_eq!(v4[..2], (libc::AF_INET as u16).to_ne_bytes());
        assert_eq!(v4[4..8], [192, 0, 2, 7]);
        let v6 = sockaddr(Gid([0xfd; 16]));
        assert_eq!(v6[..2], (libc::AF_INET6 as u16).to_ne_bytes());
        assert_eq!(v6[8..24], [0xfd; 16]);
    }
}
