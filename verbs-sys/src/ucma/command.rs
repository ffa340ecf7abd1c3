//! Commands as bytes: what is written to the device for each call. No I/O.

use std::net::SocketAddr;
use std::time::Duration;

use zerocopy::{FromZeros, IntoBytes};

use super::address::Storage;
use crate::uapi::ucma::{
    Accept, Bind, ConnParam, Connect, CreateId, DestroyId, Disconnect, Ece, GetEvent, Header,
    InitQpAttr, JOIN_FULL_MEMBER, JoinMulticast, Listen, MAX_PRIVATE_DATA, OPTION_LEVEL_ID, Query,
    Reject, Request, ResolveAddr, ResolveRoute, SetOption,
};
use crate::verbs::cm::{CmError, CmOption, CmResult, ConnectParameters, PortSpace};
use crate::verbs::{QpState, QpType};

/// `IB_QPT_RC` and `IB_QPT_UD`.
fn qp_type(space: PortSpace) -> u8 {
    match space.qp_type() {
        QpType::Ud => 4,
        _ => 2,
    }
}

/// A command with its header, whose response goes to `response`, the address
/// of an `R::Response`.
pub(super) fn encode<R: Request>(mut request: R, response: u64) -> Vec<u8> {
    request.set_response(response);
    let header = Header {
        command: R::COMMAND as u32,
        // All structures are short.
        length: size_of::<R>() as u16,
        response_length: size_of::<R::Response>() as u16,
    };
    [header.as_bytes(), request.as_bytes()].concat()
}

/// The kernel counts in milliseconds; less than one would be none.
fn milliseconds(timeout: Duration) -> u32 {
    u32::try_from(timeout.as_millis())
        .unwrap_or(i32::MAX as u32)
        .clamp(1, i32::MAX as u32)
}

pub(super) fn create_id(uid: u64, space: PortSpace) -> CreateId {
    CreateId {
        uid,
        response: 0,
        port_space: space as u16,
        qp_type: qp_type(space),
        reserved: [0; 5],
    }
}

pub(super) fn destroy_id(id: u32) -> DestroyId {
    DestroyId {
        response: 0,
        id,
        reserved: 0,
    }
}

pub(super) fn bind(id: u32, address: SocketAddr) -> Bind {
    let address = Storage::new(address);
    Bind {
        id,
        addr_size: address.length,
        reserved: 0,
        addr: address.bytes,
    }
}

pub(super) fn resolve_addr(
    id: u32,
    source: Option<SocketAddr>,
    destination: SocketAddr,
    timeout: Duration,
) -> ResolveAddr {
    let source = source.map_or(Storage::NONE, Storage::new);
    let destination = Storage::new(destination);
    ResolveAddr {
        id,
        timeout_ms: milliseconds(timeout),
        src_size: source.length,
        dst_size: destination.length,
        reserved: 0,
        src: source.bytes,
        dst: destination.bytes,
    }
}

pub(super) fn resolve_route(id: u32, timeout: Duration) -> ResolveRoute {
    ResolveRoute {
        id,
        timeout_ms: milliseconds(timeout),
    }
}

/// `option`: `QUERY_ADDR` or `QUERY_GID`.
pub(super) fn query(id: u32, option: u32) -> Query {
    Query {
        response: 0,
        id,
        option,
    }
}

pub(super) fn listen(id: u32, backlog: u32) -> Listen {
    Listen { id, backlog }
}

pub(super) fn connect(id: u32, parameters: &ConnectParameters<'_>) -> CmResult<Connect> {
    Ok(Connect {
        param: conn_param(parameters)?,
        id,
        reserved: 0,
        ece: Ece::new_zeroed(),
    })
}

pub(super) fn accept(id: u32, uid: u64, parameters: &ConnectParameters<'_>) -> CmResult<Accept> {
    Ok(Accept {
        uid,
        param: conn_param(parameters)?,
        id,
        reserved: 0,
        ece: Ece::new_zeroed(),
    })
}

/// The active end's word that its queue pair is ready is an accept, too,
/// without parameters.
pub(super) fn establish(id: u32) -> Accept {
    Accept {
        id,
        ..Accept::new_zeroed()
    }
}

pub(super) fn reject(id: u32, private_data: &[u8]) -> CmResult<Reject> {
    let (private_data, private_data_len) = private(private_data)?;
    Ok(Reject {
        id,
        private_data_len,
        private_data,
        ..Reject::new_zeroed()
    })
}

pub(super) fn disconnect(id: u32) -> Disconnect {
    Disconnect { id }
}

pub(super) fn init_qp_attr(id: u32, state: QpState) -> InitQpAttr {
    InitQpAttr {
        response: 0,
        id,
        qp_state: u32::from(state as u8),
    }
}

pub(super) fn get_event() -> GetEvent {
    GetEvent { response: 0 }
}

/// An option's value, whose address goes into the command.
#[derive(Debug, Clone, Copy)]
pub(super) struct OptionValue {
    name: u32,
    bytes: [u8; 4],
    length: u32,
}

impl OptionValue {
    pub(super) fn new(option: CmOption) -> Self {
        let byte = |name, value| Self {
            name,
            bytes: [value, 0, 0, 0],
            length: 1,
        };
        let flag = |name, on| Self {
            name,
            bytes: i32::from(on).to_ne_bytes(),
            length: 4,
        };
        match option {
            CmOption::TypeOfService(value) => byte(0, value),
            CmOption::ReuseAddress(on) => flag(1, on),
            CmOption::Ipv6Only(on) => flag(2, on),
            CmOption::AckTimeout(exponent) => byte(3, exponent),
        }
    }

    /// What the command's address has to point to.
    pub(super) fn bytes(&self) -> &[u8; 4] {
        &self.bytes
    }

    pub(super) fn command(&self, id: u32, address: u64) -> SetOption {
        SetOption {
            optval: address,
            id,
            level: OPTION_LEVEL_ID,
            optname: self.name,
            optlen: self.length,
        }
    }
}

pub(super) fn join_multicast(id: u32, uid: u64, group: SocketAddr) -> JoinMulticast {
    let group = Storage::new(group);
    JoinMulticast {
        response: 0,
        uid,
        id,
        addr_size: group.length,
        join_flags: JOIN_FULL_MEMBER,
        addr: group.bytes,
    }
}

fn conn_param(parameters: &ConnectParameters<'_>) -> CmResult<ConnParam> {
    let (private_data, private_data_len) = private(parameters.private_data)?;
    Ok(ConnParam {
        qp_num: parameters.qpn,
        // The kernel takes one for InfiniBand addresses only.
        qkey: 0,
        private_data,
        private_data_len,
        srq: parameters.srq.into(),
        responder_resources: parameters.responder_resources,
        initiator_depth: parameters.initiator_depth,
        flow_control: 0,
        retry_count: parameters.retry_count,
        rnr_retry_count: parameters.rnr_retry_count,
        valid: 1,
    })
}

/// Private data in its field. Which messages have room for less, the kernel
/// knows: it depends on the kind of network.
fn private(data: &[u8]) -> CmResult<([u8; MAX_PRIVATE_DATA], u8)> {
    let refused = || CmError::PrivateData {
        length: data.len(),
        limit: u8::MAX.into(),
    };
    let length = u8::try_from(data.len()).map_err(|_| refused())?;
    let mut field = [0; MAX_PRIVATE_DATA];
    field[..data.len()].copy_from_slice(data);
    Ok((field, length))
}
