//! Commands and answers against what rdma-core and the kernel exchanged.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod record;

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::time::Duration;

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::answer::{Delivered, qp_attributes, route};
use super::{address, command};
use crate::uapi::ucma::{ConnParam, Event, QUERY_ADDR, QUERY_GID, QpAttr, QueryAddrResponse};
use crate::verbs::cm::{
    CmError, CmEventKind, CmOption, CmStatus, ConnectParameters, PortSpace, RejectReason, UDP_QKEY,
};
use crate::verbs::{AccessFlags, AttributeMask, Gid, PathMtu, QpState};
use record::{Buffer, Record, records};

/// Fields by their offsets in a command, header included.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn u8(&self, at: usize) -> u8 {
        self.0[at]
    }
    fn u16(&self, at: usize) -> u16 {
        u16::from_ne_bytes(self.0[at..at + 2].try_into().unwrap())
    }
    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.0[at..at + 4].try_into().unwrap())
    }
    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.0[at..at + 8].try_into().unwrap())
    }
    fn address(&self, at: usize) -> Option<SocketAddr> {
        address::parse(self.0[at..at + 128].try_into().unwrap())
    }
    /// `struct rdma_ucm_conn_param`.
    fn parameters(&self, at: usize) -> ConnectParameters<'_> {
        let length = usize::from(self.u8(at + 264));
        ConnectParameters {
            qpn: self.u32(at),
            srq: self.u8(at + 265) != 0,
            responder_resources: self.u8(at + 266),
            initiator_depth: self.u8(at + 267),
            retry_count: self.u8(at + 269),
            rnr_retry_count: self.u8(at + 270),
            private_data: &self.0[at + 8..at + 8 + length],
        }
    }
}

fn space(number: u16) -> Option<PortSpace> {
    [PortSpace::Tcp, PortSpace::Udp]
        .into_iter()
        .find(|space| *space as u16 == number)
}

/// The command again, from its arguments; `None` for what we never send.
fn again(bytes: &[u8]) -> Option<Vec<u8>> {
    let fields = Fields(bytes);
    let milliseconds = |at| Duration::from_millis(fields.u32(at).into());
    Some(match fields.u32(0) {
        0 => {
            let request = command::create_id(fields.u64(8), space(fields.u16(24))?);
            command::encode(request, fields.u64(16))
        }
        1 => command::encode(command::destroy_id(fields.u32(16)), fields.u64(8)),
        4 => command::encode(command::resolve_route(fields.u32(8), milliseconds(12)), 0),
        6 => {
            let request = command::connect(fields.u32(280), &fields.parameters(8)).unwrap();
            command::encode(request, 0)
        }
        7 => command::encode(command::listen(fields.u32(8), fields.u32(12)), 0),
        8 if fields.u8(16 + 271) == 0 => command::encode(command::establish(fields.u32(288)), 0),
        8 => {
            let (uid, id) = (fields.u64(8), fields.u32(288));
            let request = command::accept(id, uid, &fields.parameters(16)).unwrap();
            command::encode(request, 0)
        }
        9 => {
            let length = usize::from(fields.u8(12));
            let request = command::reject(fields.u32(8), &bytes[16..16 + length]).unwrap();
            command::encode(request, 0)
        }
        10 => command::encode(command::disconnect(fields.u32(8)), 0),
        11 => {
            let state = [QpState::Init, QpState::Rtr, QpState::Rts]
                .into_iter()
                .find(|state| *state as u32 == fields.u32(20))?;
            let request = command::init_qp_attr(fields.u32(16), state);
            command::encode(request, fields.u64(8))
        }
        12 => command::encode(command::get_event(), fields.u64(8)),
        19 => {
            let option = [QUERY_ADDR, QUERY_GID]
                .into_iter()
                .find(|option| *option == fields.u32(20))?;
            command::encode(command::query(fields.u32(16), option), fields.u64(8))
        }
        20 => command::encode(command::bind(fields.u32(8), fields.address(16)?), 0),
        21 => {
            let request = command::resolve_addr(
                fields.u32(8),
                fields.address(24),
                fields.address(24 + 128)?,
                milliseconds(12),
            );
            command::encode(request, 0)
        }
        _ => return None,
    })
}

#[test]
fn golden_commands_are_those_of_rdma_core() {
    let mut seen = HashSet::new();
    let records = records();
    for Record { name, buffers } in &records {
        for buffer in buffers {
            if let Buffer::Command(recorded) = buffer
                && let Some(ours) = again(recorded)
            {
                assert_eq!(ours, *recorded, "{name}");
                seen.insert(recorded[0]);
            }
        }
    }
    // Whatever records there are have these.
    for number in [0, 1, 4, 6, 7, 8, 10, 11, 12, 19, 20, 21] {
        assert!(records.is_empty() || seen.contains(&number), "{number}");
    }
}

/// Which port space the identifiers of a program have, by what it said.
#[derive(Default)]
struct Spaces {
    by_uid: HashMap<u64, PortSpace>,
    by_id: HashMap<u32, PortSpace>,
}

impl Spaces {
    fn learn(&mut self, command: &[u8]) {
        let fields = Fields(command);
        match fields.u32(0) {
            0 => {
                if let Some(space) = space(fields.u16(24)) {
                    self.by_uid.insert(fields.u64(8), space);
                }
            }
            8 => {
                if let Some(space) = self.by_id.get(&fields.u32(288)) {
                    self.by_uid.insert(fields.u64(8), *space);
                }
            }
            _ => {}
        }
    }
}

#[test]
fn golden_events_read_as_what_happened() {
    let mut kinds = HashSet::new();
    let records = records();
    for Record { name, buffers } in &records {
        let mut spaces = Spaces::default();
        for buffer in buffers {
            let bytes = match buffer {
                Buffer::Command(bytes) => {
                    spaces.learn(bytes);
                    continue;
                }
                Buffer::Answer(bytes) => bytes,
            };
            let Ok(raw) = Event::read_from_bytes(bytes) else {
                continue;
            };
            let delivered = Delivered::new(raw);
            let Some(space) = spaces.by_uid.get(&delivered.uid).copied() else {
                continue;
            };
            spaces.by_id.insert(delivered.id, space);
            let event = delivered.event(space).unwrap();
            kinds.insert((space, event.kind));
            let context = format!("{name}: {event:?}");
            assert_eq!(event.status, CmStatus::Success, "{context}");
            let siw = name.contains("siw");
            match (event.kind, space) {
                (CmEventKind::ConnectRequest, PortSpace::Tcp) => {
                    // iWARP has exact lengths and no numbers.
                    assert_eq!(event.private_data.len(), if siw { 0 } else { 56 });
                    assert_eq!(event.parameters.qpn != 0, !siw, "{context}");
                }
                (CmEventKind::ConnectResponse, _) => {
                    assert_eq!(event.private_data.len(), 196, "{context}");
                    assert_ne!(event.parameters.qpn, 0, "{context}");
                }
                (CmEventKind::Established, PortSpace::Udp) => {
                    let peer = event.datagram.unwrap();
                    assert_eq!(peer.qkey, UDP_QKEY, "{context}");
                    assert!(peer.av.dgid.is_v4_mapped(), "{context}");
                    assert_eq!(peer.av.hop_limit, 64, "{context}");
                }
                _ => {}
            }
        }
    }
    for wanted in [
        (PortSpace::Tcp, CmEventKind::AddressResolved),
        (PortSpace::Tcp, CmEventKind::RouteResolved),
        (PortSpace::Tcp, CmEventKind::ConnectRequest),
        (PortSpace::Tcp, CmEventKind::ConnectResponse),
        (PortSpace::Tcp, CmEventKind::Established),
        (PortSpace::Tcp, CmEventKind::Disconnected),
        (PortSpace::Udp, CmEventKind::ConnectRequest),
        (PortSpace::Udp, CmEventKind::Established),
    ] {
        assert!(records.is_empty() || kinds.contains(&wanted), "{wanted:?}");
    }
}

/// Masks that the kernel gives for each state.
#[test]
fn golden_attributes_have_what_each_state_needs() {
    use AttributeMask as Mask;
    let rtr = Mask::STATE
        | Mask::AV
        | Mask::PATH_MTU
        | Mask::DEST_QPN
        | Mask::RQ_PSN
        | Mask::MIN_RNR_TIMER
        | Mask::MAX_DEST_RD_ATOMIC;
    let rts = Mask::STATE
        | Mask::TIMEOUT
        | Mask::RETRY_CNT
        | Mask::RNR_RETRY
        | Mask::SQ_PSN
        | Mask::MAX_QP_RD_ATOMIC;
    let init = Mask::STATE | Mask::PKEY_INDEX | Mask::PORT;
    for Record { name, buffers } in records() {
        for buffer in buffers {
            let Buffer::Answer(bytes) = buffer else {
                continue;
            };
            let Ok(raw) = QpAttr::read_from_bytes(&bytes) else {
                continue;
            };
            let attributes = qp_attributes(&raw).unwrap();
            let context = format!("{name}: {attributes:?}");
            assert_eq!(attributes.mask().bits(), raw.attr_mask, "{context}");
            if name.contains("siw") {
                // The kernel moves the queue pair to RTS itself.
                assert_ne!(attributes.state, Some(QpState::Rts), "{context}");
                continue;
            }
            match attributes.state {
                Some(QpState::Init) if attributes.qkey.is_some() => {
                    assert_eq!(attributes.mask(), init | Mask::QKEY, "{context}");
                    assert_eq!(attributes.qkey, Some(UDP_QKEY), "{context}");
                }
                Some(QpState::Init) => {
                    assert_eq!(attributes.mask(), init | Mask::ACCESS_FLAGS, "{context}");
                    assert_eq!(attributes.port, Some(1), "{context}");
                }
                Some(QpState::Rtr) => {
                    assert_eq!(attributes.mask(), rtr, "{context}");
                    assert_eq!(attributes.path_mtu, Some(PathMtu::Mtu4096), "{context}");
                    let av = attributes.av.unwrap();
                    assert!(av.dgid.is_v4_mapped(), "{context}");
                    assert_eq!((av.sgid_index, av.port), (1, 1), "{context}");
                }
                Some(QpState::Rts) => {
                    assert_eq!(attributes.mask(), rts, "{context}");
                    assert_eq!(attributes.retry_cnt, Some(7), "{context}");
                }
                other => panic!("{other:?}: {context}"),
            }
        }
    }
}

/// Of the control connection of `ib_write_bw -R` as client: 10.0.0.2 to
/// 10.0.0.1 port 18515 over device 1.
#[test]
fn golden_routes_name_device_and_addresses() {
    let mut bound = 0;
    let records = records();
    for Record { name, buffers } in &records {
        let answers: Vec<QueryAddrResponse> = buffers
            .iter()
            .filter_map(|buffer| match buffer {
                Buffer::Answer(bytes) => QueryAddrResponse::read_from_bytes(bytes).ok(),
                Buffer::Command(_) => None,
            })
            .collect();
        for pair in answers.windows(2) {
            let route = route(&pair[0], &pair[1], |index| Some(format!("device {index}")));
            let ip = address::parse(&pair[0].src).is_some();
            if !ip || route.local_gid == Gid::ZERO {
                continue;
            }
            let device = route.device.unwrap();
            assert_ne!(device.node_guid, 0, "{name}");
            let named = format!("device {}", pair[0].ibdev_index);
            assert_eq!(device.name, Some(named), "{name}");
            assert_eq!(route.port, 1, "{name}");
            bound += 1;
            if !name.contains("siw") {
                let local = route.local.unwrap().ip();
                assert_eq!(route.local_gid, Gid::from_ip(local), "{name}");
            }
        }
    }
    assert!(records.is_empty() || bound > 0);
}

/// An event with this number, status and parameters.
fn raw_event(event: u32, status: i32, param: &[u8]) -> Delivered {
    let mut raw = Event::new_zeroed();
    raw.event = event;
    raw.status = status;
    raw.param[..param.len()].copy_from_slice(param);
    Delivered::new(raw)
}

#[test]
fn odd_events_are_errors_or_words_and_never_panics() {
    for space in [PortSpace::Tcp, PortSpace::Udp] {
        for number in (0..32).chain([u32::MAX]) {
            for status in [0, 1, -1, i32::MIN, i32::MAX] {
                for fill in [0, 1, 0x7f, 0xff] {
                    let event = raw_event(number, status, &[fill; 304]).event(space);
                    if number >= 16 {
                        let text = event.unwrap_err().to_string();
                        assert!(text.contains(&format!("event {number}")), "{text}");
                    } else if let Ok(event) = event {
                        assert!(!event.to_string().is_empty());
                        assert!(event.private_data.len() <= 255);
                    }
                }
            }
        }
    }
}

#[test]
fn a_refusal_brings_its_reason_and_data() {
    let mut param = ConnParam::new_zeroed();
    param.private_data[..3].copy_from_slice(b"why");
    param.private_data_len = 148;
    let event = raw_event(8, 28, param.as_bytes())
        .event(PortSpace::Tcp)
        .unwrap();
    assert_eq!(event.kind, CmEventKind::Rejected);
    assert_eq!(event.status, CmStatus::Rejected(RejectReason::CONSUMER));
    assert_eq!(event.private_data.len(), 148);
    assert!(event.private_data.starts_with(b"why\0"));
    assert_eq!(event.to_string(), "rejected (consumer reject, reason 28)");
}

#[test]
fn odd_attributes_are_errors() {
    let given = |mask: AttributeMask| {
        let mut attr = QpAttr::new_zeroed();
        attr.attr_mask = mask.bits();
        attr
    };
    let mut attr = given(AttributeMask::STATE);
    attr.qp_state = 7;
    let text = qp_attributes(&attr).unwrap_err().to_string();
    assert!(text.contains("queue pair state 7"), "{text}");
    let mut attr = given(AttributeMask::PATH_MTU);
    attr.path_mtu = 0x101;
    assert!(qp_attributes(&attr).is_err());
    // InfiniBand within a subnet has no GID.
    let attr = given(AttributeMask::AV);
    assert!(matches!(qp_attributes(&attr), Err(CmError::Unsupported(_))));
    let mut attr = QpAttr::read_from_bytes(&[0xff; 144]).unwrap();
    assert!(qp_attributes(&attr).is_err());
    attr.attr_mask = AttributeMask::ACCESS_FLAGS.bits();
    let attributes = qp_attributes(&attr).unwrap();
    assert_eq!(attributes.access_flags, Some(AccessFlags::all()));
}

#[test]
fn private_data_has_its_limit() {
    let parameters = |private_data| ConnectParameters {
        private_data,
        ..ConnectParameters::default()
    };
    let full = [7; 255];
    let request = command::connect(3, &parameters(&full)).unwrap();
    assert_eq!(request.param.private_data_len, 255);
    assert_eq!(request.param.private_data[..255], full);
    for refused in [
        command::connect(3, &parameters(&[7; 256])).err(),
        command::accept(3, 1, &parameters(&[7; 256])).err(),
        command::reject(3, &[7; 256]).err(),
    ] {
        let refused = refused.unwrap();
        assert!(matches!(refused, CmError::PrivateData { length: 256, .. }));
    }
}

/// By the layout of `struct rdma_ucm_set_option`; the values' sizes are what
/// `ucma_set_option_id` insists on.
#[test]
fn options_have_their_names_and_sizes() {
    for (option, name, value) in [
        (CmOption::TypeOfService(16), 0, vec![16]),
        (CmOption::ReuseAddress(true), 1, 1_i32.to_ne_bytes().into()),
        (CmOption::Ipv6Only(false), 2, 0_i32.to_ne_bytes().into()),
        (CmOption::AckTimeout(14), 3, vec![14]),
    ] {
        let option = command::OptionValue::new(option);
        let bytes = command::encode(option.command(5, 0x1234), 0);
        let fields = Fields(&bytes);
        assert_eq!(fields.u64(8), 0x1234);
        assert_eq!((fields.u32(16), fields.u32(20)), (5, 0));
        assert_eq!(fields.u32(24), name);
        assert_eq!(fields.u32(28) as usize, value.len());
        assert_eq!(option.bytes()[..value.len()], value);
    }
}

/// By the layouts of `struct rdma_ucm_reject` and `struct rdma_ucm_join_mcast`,
/// which no record has.
#[test]
fn refusing_and_joining_are_laid_out_as_the_header_says() {
    let bytes = command::encode(command::reject(9, b"no").unwrap(), 0);
    assert_eq!(bytes.len(), 8 + 264);
    assert_eq!(bytes[..8], [9, 0, 0, 0, 8, 1, 0, 0]);
    assert_eq!(bytes[8..18], [9, 0, 0, 0, 2, 0, 0, 0, b'n', b'o']);

    let group: SocketAddr = "239.1.2.3:0".parse().unwrap();
    let bytes = command::encode(command::join_multicast(9, 77, group), 0x5678);
    let fields = Fields(&bytes);
    assert_eq!(bytes.len(), 8 + 152);
    assert_eq!(bytes[..8], [22, 0, 0, 0, 152, 0, 4, 0]);
    assert_eq!((fields.u64(8), fields.u64(16)), (0x5678, 77));
    assert_eq!((fields.u32(24), fields.u16(28), fields.u16(30)), (9, 16, 0));
    assert_eq!(fields.address(32), Some(group));
}

#[test]
fn timeouts_fit_the_kernels_milliseconds() {
    for (time, expected) in [
        (Duration::ZERO, 1),
        (Duration::from_micros(1), 1),
        (Duration::from_secs(2), 2000),
        (Duration::MAX, i32::MAX as u32),
    ] {
        assert_eq!(command::resolve_route(1, time).timeout_ms, expected);
    }
}
