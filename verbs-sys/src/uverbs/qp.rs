//! Queue pairs: making, changing, asking, releasing; multicast groups.

use std::os::fd::AsRawFd;

use zerocopy::IntoBytes;

use super::command::{Attribute, Value, Write};
use super::objects::{complain, gid_index};
use super::{Uverbs, failed, is_missing, odd};
use crate::uapi::ioctl::{Method, QP_CREATE_SQ_SIG_ALL, UHW_OUT};
use crate::uapi::user_verbs::{
    AttachMcast, CreateQp, CreateQpResp, DestroyResp, ModifyQp, QpCap, QpDest, QueryQp,
    QueryQpResp, command as number, qp_type,
};
use crate::{
    AccessFlags, AddressVector, AttributeMask, Gid, PathMtu, QpAttributes, QpCapabilities, QpState,
    QpType, Result, VerbsError,
};

/// What a queue pair is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewQp {
    /// Comes back in events.
    pub(crate) user_handle: u64,
    pub(crate) qp_type: QpType,
    pub(crate) pd: u32,
    pub(crate) send_cq: u32,
    pub(crate) recv_cq: u32,
    pub(crate) srq: Option<u32>,
    /// Domain of an XRC target.
    pub(crate) xrcd: Option<u32>,
    pub(crate) cap: QpCapabilities,
    pub(crate) sq_sig_all: bool,
}

/// A queue pair of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeQp {
    pub(crate) handle: u32,
    pub(crate) qpn: u32,
    pub(crate) cap: QpCapabilities,
}

impl Uverbs {
    /// Makes a queue pair in RESET; the driver answers where its queues are.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes that the device doesn't allow.
    pub(crate) fn create_qp(&self, new: &NewQp, driver_out: &mut [u8]) -> Result<MadeQp> {
        let cap_in = raw_cap(&new.cap);
        let (mut cap_out, mut qpn) = (QpCap::default(), 0_u32);
        // A target has neither domain nor queues of its own, only an XRC domain.
        let own = |value| (new.qp_type != QpType::XrcReceive).then_some(value);
        let receives = |value| {
            (new.qp_type != QpType::XrcSend)
                .then(|| own(value))
                .flatten()
        };
        let flags = new.sq_sig_all.then_some(QP_CREATE_SQ_SIG_ALL);
        let mut attributes = [
            Attribute::new(0, Value::New(0)),
            Attribute::maybe(1, new.xrcd.map(Value::Object)),
            Attribute::maybe(2, own(Value::Object(new.pd))),
            Attribute::maybe(3, new.srq.map(Value::Object)),
            Attribute::maybe(4, own(Value::Object(new.send_cq))),
            Attribute::maybe(5, receives(Value::Object(new.recv_cq))),
            Attribute::new(7, Value::Number64(new.user_handle)),
            Attribute::input(8, cap_in.as_bytes()),
            Attribute::new(9, Value::Constant(raw_type(new.qp_type).into())),
            Attribute::maybe(10, flags.map(Value::Number32)),
            Attribute::new(12, Value::Fd(self.async_fd().as_raw_fd())),
            Attribute::output(13, cap_out.as_mut_bytes()),
            Attribute::output(14, qpn.as_mut_bytes()),
            Attribute::output(UHW_OUT, driver_out),
        ];
        let created = match self.by_attributes(Method::QP_CREATE, &mut attributes) {
            Err(error) if is_missing(&error) => self.create_qp_by_write(new, driver_out),
            created => {
                let handle = attributes[0].made();
                created.map(|()| MadeQp {
                    handle,
                    qpn,
                    cap: capabilities(&cap_out),
                })
            }
        };
        created.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => VerbsError::InvalidArgument {
                what: "queue pair size",
                seen: format!(
                    "{} sends of {} entries and {} inline bytes, {} receives of {} entries",
                    new.cap.max_send_wr,
                    new.cap.max_send_sge,
                    new.cap.max_inline_data,
                    new.cap.max_recv_wr,
                    new.cap.max_recv_sge
                ),
                expected: self.limits(|device| {
                    format!(
                        "at most {} requests of {} entries, and no more inline bytes than the \
                         driver has",
                        device.max_qp_wr, device.max_sge
                    )
                }),
            },
            Some(libc::EOPNOTSUPP) => VerbsError::Unsupported {
                what: match new.qp_type {
                    QpType::Rc => "RC queue pairs",
                    QpType::Uc => "UC queue pairs",
                    QpType::Ud => "UD queue pairs",
                    QpType::XrcSend | QpType::XrcReceive => "XRC queue pairs",
                },
            },
            _ => failed(format!("make a {} queue pair", new.qp_type), error),
        })
    }

    fn create_qp_by_write(&self, new: &NewQp, driver_out: &mut [u8]) -> std::io::Result<MadeQp> {
        let request = CreateQp {
            response: 0,
            user_handle: new.user_handle,
            pd_handle: new.xrcd.unwrap_or(new.pd),
            send_cq_handle: new.send_cq,
            recv_cq_handle: new.recv_cq,
            srq_handle: new.srq.unwrap_or(0),
            cap: raw_cap(&new.cap),
            sq_sig_all: new.sq_sig_all.into(),
            qp_type: raw_type(new.qp_type),
            is_srq: new.srq.is_some().into(),
            reserved: 0,
        };
        let mut answer = CreateQpResp::default();
        let write = Write::new(number::CREATE_QP, request.as_bytes(), answer.as_mut_bytes());
        self.by_write(write.with_driver(&[], driver_out))?;
        Ok(MadeQp {
            handle: answer.qp_handle,
            qpn: answer.qpn,
            cap: capabilities(&answer.cap),
        })
    }

    /// Changes attributes of a queue pair. To RTR the kernel looks for the way
    /// to the peer, which may take a second.
    ///
    /// # Errors
    /// When the kernel refuses the transition or an attribute, or finds no way.
    pub(crate) fn modify_qp(&self, handle: u32, attributes: &QpAttributes) -> Result<()> {
        let request = modify_request(handle, attributes)?;
        self.by_write(Write::new(number::MODIFY_QP, request.as_bytes(), &mut []))
            .map_err(|error| {
                let action = match attributes.state {
                    Some(state) => format!("take the queue pair to {state}"),
                    None => "change the queue pair".to_owned(),
                };
                failed(action, error)
            })
    }

    /// Asks for all attributes of a queue pair.
    ///
    /// # Errors
    /// When the kernel refuses, or answers oddly.
    pub(crate) fn query_qp(&self, handle: u32) -> Result<QpAttributes> {
        let request = QueryQp {
            response: 0,
            qp_handle: handle,
            attr_mask: AttributeMask::all().bits(),
        };
        let mut answer = QueryQpResp::default();
        self.by_write(Write::new(
            number::QUERY_QP,
            request.as_bytes(),
            answer.as_mut_bytes(),
        ))
        .and_then(|()| attributes(&answer))
        .map_err(|error| failed("query the queue pair", error))
    }

    /// Releases a queue pair.
    pub(crate) fn destroy_qp(&self, handle: u32) {
        let mut answer = DestroyResp::default();
        let released = self.destroy(
            Method::QP_DESTROY,
            number::DESTROY_QP,
            handle,
            answer.as_mut_bytes(),
        );
        complain("queue pair", released);
    }

    /// Joins a multicast group, or leaves it.
    ///
    /// # Errors
    /// When the kernel refuses, or isn't in the group.
    pub(crate) fn multicast(&self, handle: u32, group: Gid, attach: bool) -> Result<()> {
        let request = AttachMcast {
            gid: group.0,
            qp_handle: handle,
            // RoCE has no LIDs.
            mlid: 0,
            reserved: 0,
        };
        let (command, action) = match attach {
            true => (number::ATTACH_MCAST, "attach to"),
            false => (number::DETACH_MCAST, "detach from"),
        };
        self.by_write(Write::new(command, request.as_bytes(), &mut []))
            .map_err(|error| failed(format!("{action} the multicast group {group}"), error))
    }
}

fn raw_type(kind: QpType) -> u8 {
    match kind {
        QpType::Rc => qp_type::RC,
        QpType::Uc => qp_type::UC,
        QpType::Ud => qp_type::UD,
        QpType::XrcSend => qp_type::XRC_INI,
        QpType::XrcReceive => qp_type::XRC_TGT,
    }
}

fn raw_cap(cap: &QpCapabilities) -> QpCap {
    QpCap {
        max_send_wr: cap.max_send_wr,
        max_recv_wr: cap.max_recv_wr,
        max_send_sge: cap.max_send_sge,
        max_recv_sge: cap.max_recv_sge,
        max_inline_data: cap.max_inline_data,
    }
}

fn capabilities(raw: &QpCap) -> QpCapabilities {
    QpCapabilities {
        max_send_wr: raw.max_send_wr,
        max_recv_wr: raw.max_recv_wr,
        max_send_sge: raw.max_send_sge,
        max_recv_sge: raw.max_recv_sge,
        max_inline_data: raw.max_inline_data,
    }
}

/// The mask has the kernel's bits.
fn modify_request(handle: u32, attributes: &QpAttributes) -> Result<ModifyQp> {
    let dest = attributes.av.as_ref().map(raw_path).transpose()?;
    Ok(ModifyQp {
        dest: dest.unwrap_or_default(),
        qp_handle: handle,
        attr_mask: attributes.mask().bits(),
        qkey: attributes.qkey.unwrap_or(0),
        rq_psn: attributes.rq_psn.unwrap_or(0),
        sq_psn: attributes.sq_psn.unwrap_or(0),
        dest_qp_num: attributes.dest_qpn.unwrap_or(0),
        qp_access_flags: attributes.access_flags.map_or(0, |flags| flags.bits()),
        pkey_index: attributes.pkey_index.unwrap_or(0),
        qp_state: attributes.state.map_or(0, |state| state as u8),
        path_mtu: attributes.path_mtu.map_or(0, |mtu| mtu as u8),
        en_sqd_async_notify: attributes.en_sqd_async_notify.unwrap_or(false).into(),
        max_rd_atomic: attributes.max_qp_rd_atomic.unwrap_or(0),
        max_dest_rd_atomic: attributes.max_dest_rd_atomic.unwrap_or(0),
        min_rnr_timer: attributes.min_rnr_timer.unwrap_or(0),
        port_num: attributes.port.unwrap_or(0),
        timeout: attributes.timeout.unwrap_or(0),
        retry_cnt: attributes.retry_cnt.unwrap_or(0),
        rnr_retry: attributes.rnr_retry.unwrap_or(0),
        ..ModifyQp::default()
    })
}

/// A path as queue pairs have it.
fn raw_path(av: &AddressVector) -> Result<QpDest> {
    Ok(QpDest {
        dgid: av.dgid.0,
        flow_label: av.flow_label,
        sgid_index: gid_index(av)?,
        hop_limit: av.hop_limit,
        traffic_class: av.traffic_class,
        sl: av.sl,
        is_global: 1,
        port_num: av.port,
        ..QpDest::default()
    })
}

fn attributes(raw: &QueryQpResp) -> std::io::Result<QpAttributes> {
    let state = QpState::from_code(raw.qp_state)
        .ok_or_else(|| odd("queue pair state", raw.qp_state, "0 to 6"))?;
    Ok(QpAttributes {
        state: Some(state),
        en_sqd_async_notify: None,
        access_flags: Some(AccessFlags::from_bits_truncate(raw.qp_access_flags)),
        pkey_index: Some(raw.pkey_index),
        port: Some(raw.port_num),
        qkey: Some(raw.qkey),
        av: (raw.dest.is_global != 0).then(|| AddressVector {
            dgid: Gid(raw.dest.dgid),
            sgid_index: raw.dest.sgid_index.into(),
            flow_label: raw.dest.flow_label,
            hop_limit: raw.dest.hop_limit,
            traffic_class: raw.dest.traffic_class,
            sl: raw.dest.sl,
            port: raw.dest.port_num,
        }),
        // None before RTR.
        path_mtu: PathMtu::from_code(raw.path_mtu),
        timeout: Some(raw.timeout),
        retry_cnt: Some(raw.retry_cnt),
        rnr_retry: Some(raw.rnr_retry),
        rq_psn: Some(raw.rq_psn),
        max_qp_rd_atomic: Some(raw.max_rd_atomic),
        min_rnr_timer: Some(raw.min_rnr_timer),
        sq_psn: Some(raw.sq_psn),
        max_dest_rd_atomic: Some(raw.max_dest_rd_atomic),
        dest_qpn: Some(raw.dest_qp_num),
    })
}
