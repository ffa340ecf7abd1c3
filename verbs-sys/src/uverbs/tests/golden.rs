//! Every recorded command of rdma-core, made again by this crate and compared
//! with the record: object, method, attributes, flags, lengths and contents.
//! Addresses, descriptors and what rdma-core chose freely are masked. The
//! recorded answer is given, and has to be understood.

mod record;

use std::collections::BTreeMap;
use std::io;

use zerocopy::{FromBytes, IntoBytes};

use self::record::Record;
use super::new_fd;
use super::trace::{Call, calls, records};
use crate::uapi::ioctl::{Method, UHW_IN, UHW_OUT};
use crate::uapi::user_verbs::{
    AllocMw, CreateAh, Doorbell, ModifyQp, QpCap, RegMr, ReqNotifyCq, command,
};
use crate::uverbs::Uverbs;
use crate::uverbs::command::{Ioctl, Value, Write};
use crate::uverbs::events::CompletionEvents;
use crate::uverbs::objects::Registration;
use crate::uverbs::qp::NewQp;
use crate::uverbs::queues::{NewCq, NewSrq};
use crate::{
    AccessFlags, AddressVector, AttributeMask, Gid, Notify, PathMtu, QpAttributes, QpCapabilities,
    QpState, QpType, VerbsError,
};

impl Record {
    /// Makes the recorded command; `false` when this crate doesn't have it.
    fn replay(&self) -> bool {
        let (uverbs, asked) = self.kernel();
        let known = match self.command() {
            Some(number) => self.replay_write(&uverbs, number),
            None => self.replay_method(&uverbs),
        };
        assert!(
            !known || *asked.lock().unwrap() == 1,
            "{}: made {} times",
            self.place,
            asked.lock().unwrap()
        );
        known
    }

    fn replay_write(&self, uverbs: &Uverbs, number: u32) -> bool {
        let ok = self.errno == 0;
        match number {
            command::QUERY_DEVICE | command::EX_QUERY_DEVICE => {
                // rdma-core asks without room for an answer to see whether the
                // kernel has this form at all.
                if self.attribute(1).is_none() {
                    return false;
                }
                assert_eq!(uverbs.query_device().is_ok(), ok, "{}", self.place);
            }
            command::ALLOC_PD => {
                let answered: u32 = self.answered(1);
                assert_eq!(uverbs.alloc_pd().unwrap(), answered, "{}", self.place);
            }
            command::REG_MR => self.replay_reg_mr(uverbs),
            command::ALLOC_MW => {
                let request: AllocMw = self.core_in();
                if request.mw_type != 2 {
                    return false;
                }
                let made = uverbs.alloc_mw(request.pd_handle);
                let [handle, rkey]: [u32; 2] = self.answered(1);
                assert_eq!(made.unwrap(), (handle, rkey), "{}", self.place);
            }
            command::CREATE_AH => {
                let request: CreateAh = self.core_in();
                let av = AddressVector {
                    dgid: Gid(request.attr.dgid),
                    sgid_index: request.attr.sgid_index.into(),
                    flow_label: request.attr.flow_label,
                    hop_limit: request.attr.hop_limit,
                    traffic_class: request.attr.traffic_class,
                    sl: request.attr.sl,
                    port: request.attr.port_num,
                };
                let mut driver = self.driver_answer();
                let made = uverbs.create_ah(request.pd_handle, &av, &mut driver);
                assert_eq!(made.is_ok(), ok, "{}", self.place);
            }
            command::CREATE_COMP_CHANNEL => {
                assert_eq!(uverbs.create_comp_channel().is_ok(), ok, "{}", self.place);
            }
            command::REQ_NOTIFY_CQ => {
                let request: ReqNotifyCq = self.core_in();
                let notify = match request.solicited_only {
                    0 => Notify::Any,
                    _ => Notify::Solicited,
                };
                let armed = uverbs.req_notify_cq(request.cq_handle, notify);
                assert_eq!(armed.is_ok(), ok, "{}", self.place);
            }
            command::QUERY_QP => {
                let handle = u32::read_from_bytes(&self.input(0)[8..12]).unwrap();
                let state = uverbs.query_qp(handle).unwrap().state.unwrap();
                let answered: [u8; 128] = self.answered(1);
                assert_eq!(state as u8, answered[108], "{}", self.place);
            }
            command::MODIFY_QP => {
                let request: ModifyQp = self.core_in();
                let Some(attributes) = attributes(&request) else {
                    return false;
                };
                let modified = uverbs.modify_qp(request.qp_handle, &attributes);
                assert_eq!(modified.is_ok(), ok, "{}", self.place);
            }
            _ => return false,
        }
        true
    }

    fn replay_reg_mr(&self, uverbs: &Uverbs) {
        let request: RegMr = self.core_in();
        let registration = Registration {
            pd: request.pd_handle,
            start: request.start,
            length: request.length,
            iova: request.hca_va,
            access: AccessFlags::from_bits_retain(request.access_flags),
        };
        let driver_in = self.input(UHW_IN);
        let mut driver_out = self.driver_answer();
        let registered = uverbs.reg_mr(&registration, &driver_in, &mut driver_out);
        match self.errno {
            0 => {
                let [handle, lkey, rkey]: [u32; 3] = self.answered(1);
                let ours = registered.unwrap();
                let ours = [ours.handle, ours.lkey, ours.rkey];
                assert_eq!(ours, [handle, lkey, rkey], "{}", self.place);
            }
            code => assert_eq!(registered.unwrap_err().errno(), code, "{}", self.place),
        }
    }

    fn replay_method(&self, uverbs: &Uverbs) -> bool {
        let handle = self.number(0);
        match self.method {
            Method::QUERY_PORT => {
                let port = uverbs.query_port(self.number(0) as u8).unwrap();
                let answered: [u8; 48] = self.answered(1);
                assert_eq!(port.state as u8, answered[26], "{}", self.place);
                assert_eq!(port.active_mtu as u8, answered[28], "{}", self.place);
            }
            Method::QUERY_GID_ENTRY => {
                let queried = uverbs.query_gid(self.number(0) as u8, self.number(1));
                match self.errno {
                    0 => {
                        let answered: [u8; 32] = self.answered(3);
                        assert_eq!(queried.unwrap().gid.0, answered[..16], "{}", self.place);
                    }
                    libc::ENODATA => {
                        assert!(matches!(queried, Err(VerbsError::NoEntry { .. })));
                    }
                    _ => assert!(queried.is_err(), "{}", self.place),
                }
            }
            Method::CQ_CREATE => {
                let channel = self.attribute(3).map(|_| channel());
                let new = NewCq {
                    user_handle: self.data(2),
                    depth: self.number(1),
                    channel: channel.as_ref(),
                };
                let mut driver = self.driver_answer();
                let made = uverbs.create_cq(&new, &mut driver);
                // Queues at one completion vector other than the first, and
                // refused sizes, aren't this crate's.
                let made = made.unwrap();
                let depth: u32 = self.answered(6);
                assert_eq!((made.handle, made.depth), (self.made(), depth));
                let answered: Vec<u8> = self.answered::<[u8; 16]>(UHW_OUT).to_vec();
                assert_eq!(driver, answered, "{}", self.place);
            }
            Method::QP_CREATE => self.replay_create_qp(uverbs),
            Method::SRQ_CREATE => {
                let new = NewSrq {
                    user_handle: self.data(4),
                    pd: self.number(1),
                    max_wr: self.number(5),
                    max_sge: self.number(6),
                    limit: self.number(7),
                    xrc: self.attribute(2).map(|_| (self.number(2), self.number(3))),
                };
                let mut driver = self.driver_answer();
                let made = uverbs.create_srq(&new, &mut driver).unwrap();
                let (wr, sge): (u32, u32) = (self.answered(11), self.answered(12));
                assert_eq!(
                    (made.handle, made.max_wr, made.max_sge),
                    (self.made(), wr, sge)
                );
            }
            Method::CQ_DESTROY => uverbs.destroy_cq(handle),
            Method::QP_DESTROY => uverbs.destroy_qp(handle),
            Method::SRQ_DESTROY => uverbs.destroy_srq(handle),
            Method::PD_DESTROY => uverbs.dealloc_pd(handle),
            Method::MR_DESTROY => uverbs.dereg_mr(handle),
            Method::AH_DESTROY => uverbs.destroy_ah(handle),
            Method::MW_DESTROY => uverbs.dealloc_mw(handle),
            _ => return false,
        }
        true
    }

    fn replay_create_qp(&self, uverbs: &Uverbs) {
        let cap = QpCap::read_from_bytes(&self.input(8)).unwrap();
        let new = NewQp {
            user_handle: self.data(7),
            qp_type: match self.number(9) {
                2 => QpType::Rc,
                3 => QpType::Uc,
                4 => QpType::Ud,
                9 => QpType::XrcSend,
                10 => QpType::XrcReceive,
                other => panic!("{}: service {other}", self.place),
            },
            pd: self.number(2),
            send_cq: self.number(4),
            recv_cq: self.number(5),
            srq: self.attribute(3).map(|srq| srq.data as u32),
            xrcd: self.attribute(1).map(|xrcd| xrcd.data as u32),
            cap: QpCapabilities {
                max_send_wr: cap.max_send_wr,
                max_recv_wr: cap.max_recv_wr,
                max_send_sge: cap.max_send_sge,
                max_recv_sge: cap.max_recv_sge,
                max_inline_data: cap.max_inline_data,
            },
            sq_sig_all: self.data(10) & 1 << 12 != 0,
        };
        let mut driver = self.driver_answer();
        let made = uverbs.create_qp(&new, &mut driver).unwrap();
        let qpn: u32 = self.answered(14);
        assert_eq!(
            (made.handle, made.qpn),
            (self.made(), qpn),
            "{}",
            self.place
        );
        let granted: QpCap = self.answered(13);
        assert_eq!(made.cap.max_inline_data, granted.max_inline_data);
        assert_eq!(driver, self.answered::<[u8; 32]>(UHW_OUT), "{}", self.place);
    }
}

fn channel() -> CompletionEvents {
    let fd: std::os::fd::OwnedFd = nix::sys::eventfd::EventFd::new().unwrap().into();
    CompletionEvents::new(fd).unwrap()
}

/// The attributes of a recorded change; `None` when it has one that this crate
/// doesn't change.
fn attributes(raw: &ModifyQp) -> Option<QpAttributes> {
    let mask = AttributeMask::from_bits(raw.attr_mask)?;
    let given = |flag| mask.contains(flag);
    Some(QpAttributes {
        state: given(AttributeMask::STATE).then(|| QpState::from_code(raw.qp_state).unwrap()),
        en_sqd_async_notify: given(AttributeMask::EN_SQD_ASYNC_NOTIFY)
            .then_some(raw.en_sqd_async_notify != 0),
        access_flags: given(AttributeMask::ACCESS_FLAGS)
            .then(|| AccessFlags::from_bits_retain(raw.qp_access_flags)),
        pkey_index: given(AttributeMask::PKEY_INDEX).then_some(raw.pkey_index),
        port: given(AttributeMask::PORT).then_some(raw.port_num),
        qkey: given(AttributeMask::QKEY).then_some(raw.qkey),
        av: given(AttributeMask::AV).then(|| AddressVector {
            dgid: Gid(raw.dest.dgid),
            sgid_index: raw.dest.sgid_index.into(),
            flow_label: raw.dest.flow_label,
            hop_limit: raw.dest.hop_limit,
            traffic_class: raw.dest.traffic_class,
            sl: raw.dest.sl,
            port: raw.dest.port_num,
        }),
        path_mtu: given(AttributeMask::PATH_MTU).then(|| PathMtu::from_code(raw.path_mtu).unwrap()),
        timeout: given(AttributeMask::TIMEOUT).then_some(raw.timeout),
        retry_cnt: given(AttributeMask::RETRY_CNT).then_some(raw.retry_cnt),
        rnr_retry: given(AttributeMask::RNR_RETRY).then_some(raw.rnr_retry),
        rq_psn: given(AttributeMask::RQ_PSN).then_some(raw.rq_psn),
        max_qp_rd_atomic: given(AttributeMask::MAX_QP_RD_ATOMIC).then_some(raw.max_rd_atomic),
        min_rnr_timer: given(AttributeMask::MIN_RNR_TIMER).then_some(raw.min_rnr_timer),
        sq_psn: given(AttributeMask::SQ_PSN).then_some(raw.sq_psn),
        max_dest_rd_atomic: given(AttributeMask::MAX_DEST_RD_ATOMIC)
            .then_some(raw.max_dest_rd_atomic),
        dest_qpn: given(AttributeMask::DEST_QPN).then_some(raw.dest_qp_num),
    })
}

#[test]
fn golden_commands_are_made_as_recorded() {
    let (mut replayed, mut left) = (0, BTreeMap::<String, u32>::new());
    for (name, text) in records() {
        for record in calls(&text)
            .into_iter()
            .filter_map(|call| Record::of(&name, call))
        {
            if record.replay() {
                replayed += 1;
            } else {
                let kind = format!("{:?} command {:?}", record.method, record.command());
                *left.entry(kind).or_default() += 1;
            }
        }
        assert!(replayed > 0, "{name}: no command was understood");
    }
    eprintln!("{replayed} commands compared; not made by this crate: {left:?}");
}

/// The context is made by two commands.
#[test]
fn golden_contexts_are_made_as_recorded() {
    for (name, text) in records() {
        let records = calls(&text)
            .into_iter()
            .filter_map(|call| Record::of(&name, call));
        let (mut get, mut event) = (None, None);
        for record in records {
            match record.method {
                Method::GET_CONTEXT => get = Some(record),
                Method::ASYNC_EVENT_ALLOC => event = Some(record),
                _ => {}
            }
        }
        let (Some(get), Some(event)) = (get, event) else {
            continue;
        };
        struct Opening(Record, Record);
        impl crate::uverbs::kernel::Kernel for Opening {
            fn ioctl(&self, ours: &mut Ioctl<'_, '_>) -> io::Result<()> {
                if ours.method == Method::GET_CONTEXT {
                    self.0.compare(ours);
                    return self.0.answer(ours);
                }
                assert_eq!(ours.method, Method::ASYNC_EVENT_ALLOC);
                self.1.compare(ours);
                ours.attributes[0].value = Value::New(new_fd());
                Ok(())
            }
            fn write(&self, _: &mut Write<'_>) -> io::Result<()> {
                panic!("nothing is written")
            }
            fn doorbell(&self, _: u32) -> io::Result<()> {
                panic!("nothing is sent")
            }
            fn map(&self, _: u64, _: usize) -> io::Result<crate::memory::Buffer> {
                panic!("nothing is mapped")
            }
        }
        let mut driver = get.driver_answer();
        let id = get.driver;
        let uverbs = Uverbs::open(Box::new(Opening(get, event)), id, &mut driver).unwrap();
        assert_eq!(uverbs.core_support, 1, "{name}");
    }
}

/// The doorbell, the only command of the data path.
#[test]
fn golden_doorbells_are_written_as_recorded() {
    const ANSWER: std::ops::Range<usize> = 8..16;
    for (name, text) in records() {
        for call in calls(&text) {
            let Call::Write { line, bytes, .. } = call else {
                continue;
            };
            let handle = u32::read_from_bytes(&bytes[16..20]).unwrap();
            let mut ours = Doorbell::new(handle, 0x1122).as_bytes().to_vec();
            assert_eq!(ours[ANSWER], 0x1122_u64.to_ne_bytes());
            ours[ANSWER].copy_from_slice(&bytes[ANSWER]);
            assert_eq!(ours, bytes, "{name}:{line}");
        }
    }
}
