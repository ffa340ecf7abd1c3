//! Completion queues and shared receive queues.

use std::os::fd::AsRawFd;

use zerocopy::IntoBytes;

use super::command::{Attribute, Value, Write};
use super::events::CompletionEvents;
use super::objects::complain;
use super::{Uverbs, failed, is_missing};
use crate::uapi::ioctl::{Method, UHW_OUT};
use crate::uapi::user_verbs::{
    CreateCq, CreateCqResp, CreateSrq, CreateSrqResp, CreateXsrq, Destroy, DestroyCqResp,
    DestroyResp, ModifySrq, ReqNotifyCq, SRQ_LIMIT, command as number, srq_type,
};
use crate::{Notify, Result, VerbsError};

/// What a completion queue is made from.
#[derive(Clone, Copy)]
pub(crate) struct NewCq<'a> {
    /// Comes back in events.
    pub(crate) user_handle: u64,
    pub(crate) depth: u32,
    pub(crate) channel: Option<&'a CompletionEvents>,
}

/// A completion queue of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeCq {
    pub(crate) handle: u32,
    /// Entries, at least those asked for.
    pub(crate) depth: u32,
}

/// What a shared receive queue is made from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NewSrq {
    /// Comes back in events.
    pub(crate) user_handle: u64,
    pub(crate) pd: u32,
    pub(crate) max_wr: u32,
    pub(crate) max_sge: u32,
    pub(crate) limit: u32,
    /// Domain and completion queue, for an XRC queue.
    pub(crate) xrc: Option<(u32, u32)>,
}

/// A shared receive queue of the kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MadeSrq {
    pub(crate) handle: u32,
    pub(crate) max_wr: u32,
    pub(crate) max_sge: u32,
    /// Its number on the wire, for an XRC queue.
    pub(crate) number: u32,
}

impl Uverbs {
    /// Makes a completion queue; the driver answers where it is.
    ///
    /// # Errors
    /// `InvalidArgument` for a depth that the device doesn't allow.
    pub(crate) fn create_cq(&self, new: &NewCq<'_>, driver_out: &mut [u8]) -> Result<MadeCq> {
        let mut depth = 0_u32;
        let channel = new.channel.map(|channel| channel.fd().as_raw_fd());
        let mut attributes = [
            Attribute::new(0, Value::New(0)),
            Attribute::new(1, Value::Number32(new.depth)),
            Attribute::new(2, Value::Number64(new.user_handle)),
            Attribute::maybe(3, channel.map(Value::Fd)),
            Attribute::new(4, Value::Number32(0)),
            Attribute::output(6, depth.as_mut_bytes()),
            Attribute::new(7, Value::Fd(self.async_fd().as_raw_fd())).ignorable(),
            Attribute::output(UHW_OUT, driver_out),
        ];
        let created = match self.by_attributes(Method::CQ_CREATE, &mut attributes) {
            Err(error) if is_missing(&error) => {
                let request = CreateCq {
                    user_handle: new.user_handle,
                    cqe: new.depth,
                    comp_channel: channel.unwrap_or(-1),
                    ..CreateCq::default()
                };
                let mut answer = CreateCqResp::default();
                let write =
                    Write::new(number::CREATE_CQ, request.as_bytes(), answer.as_mut_bytes());
                self.by_write(write.with_driver(&[], driver_out))
                    .map(|()| MadeCq {
                        handle: answer.cq_handle,
                        depth: answer.cqe,
                    })
            }
            created => {
                let handle = attributes[0].made();
                created.map(|()| MadeCq { handle, depth })
            }
        };
        created.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => VerbsError::InvalidArgument {
                what: "completion queue depth",
                seen: new.depth.to_string(),
                expected: self.limits(|device| format!("1 to {}", device.max_cqe)),
            },
            _ => failed("make a completion queue", error),
        })
    }

    /// Releases a completion queue.
    pub(crate) fn destroy_cq(&self, handle: u32) {
        let mut answer = DestroyCqResp::default();
        let released = self.destroy(
            Method::CQ_DESTROY,
            number::DESTROY_CQ,
            handle,
            answer.as_mut_bytes(),
        );
        complain("completion queue", released);
    }

    /// Asks for one notification.
    ///
    /// # Errors
    /// What the kernel says.
    pub(crate) fn req_notify_cq(&self, handle: u32, notify: Notify) -> std::io::Result<()> {
        let request = ReqNotifyCq {
            cq_handle: handle,
            solicited_only: u32::from(notify == Notify::Solicited),
        };
        self.by_write(Write::new(
            number::REQ_NOTIFY_CQ,
            request.as_bytes(),
            &mut [],
        ))
    }

    /// Makes a shared receive queue; the driver answers where it is.
    ///
    /// # Errors
    /// `InvalidArgument` for sizes that the device doesn't allow.
    pub(crate) fn create_srq(&self, new: &NewSrq, driver_out: &mut [u8]) -> Result<MadeSrq> {
        let kind = match new.xrc {
            Some(_) => srq_type::XRC,
            None => srq_type::BASIC,
        };
        let (mut max_wr, mut max_sge, mut number) = (0_u32, 0_u32, 0_u32);
        // Only XRC queues have a number; the kernel refuses the room for it else.
        let number_out: &mut [u8] = match new.xrc {
            Some(_) => number.as_mut_bytes(),
            None => &mut [],
        };
        let mut attributes = [
            Attribute::new(0, Value::New(0)),
            Attribute::new(1, Value::Object(new.pd)),
            Attribute::maybe(2, new.xrc.map(|(domain, _)| Value::Object(domain))),
            Attribute::maybe(3, new.xrc.map(|(_, cq)| Value::Object(cq))),
            Attribute::new(4, Value::Number64(new.user_handle)),
            Attribute::new(5, Value::Number32(new.max_wr)),
            Attribute::new(6, Value::Number32(new.max_sge)),
            Attribute::new(7, Value::Number32(new.limit)),
            Attribute::new(9, Value::Constant(kind.into())),
            Attribute::new(10, Value::Fd(self.async_fd().as_raw_fd())),
            Attribute::output(11, max_wr.as_mut_bytes()),
            Attribute::output(12, max_sge.as_mut_bytes()),
            Attribute::output(13, number_out),
            Attribute::output(UHW_OUT, driver_out),
        ];
        let created = match self.by_attributes(Method::SRQ_CREATE, &mut attributes) {
            Err(error) if is_missing(&error) => self.create_srq_by_write(new, driver_out),
            created => {
                let handle = attributes[0].made();
                created.map(|()| MadeSrq {
                    handle,
                    max_wr,
                    max_sge,
                    number,
                })
            }
        };
        created.map_err(|error| match error.raw_os_error() {
            Some(libc::EINVAL) => VerbsError::InvalidArgument {
                what: "shared receive queue size",
                seen: format!("{} requests of {} entries", new.max_wr, new.max_sge),
                expected: self.limits(|device| {
                    format!(
                        "at most {} requests of {} entries",
                        device.max_srq_wr, device.max_srq_sge
                    )
                }),
            },
            _ => failed("make a shared receive queue", error),
        })
    }

    fn create_srq_by_write(&self, new: &NewSrq, driver_out: &mut [u8]) -> std::io::Result<MadeSrq> {
        let mut answer = CreateSrqResp::default();
        match new.xrc {
            None => {
                let request = CreateSrq {
                    response: 0,
                    user_handle: new.user_handle,
                    pd_handle: new.pd,
                    max_wr: new.max_wr,
                    max_sge: new.max_sge,
                    srq_limit: new.limit,
                };
                let write = Write::new(
                    number::CREATE_SRQ,
                    request.as_bytes(),
                    answer.as_mut_bytes(),
                );
                self.by_write(write.with_driver(&[], driver_out))?;
            }
            Some((xrcd_handle, cq_handle)) => {
                let request = CreateXsrq {
                    user_handle: new.user_handle,
                    srq_type: srq_type::XRC,
                    pd_handle: new.pd,
                    max_wr: new.max_wr,
                    max_sge: new.max_sge,
                    srq_limit: new.limit,
                    xrcd_handle,
                    cq_handle,
                    ..CreateXsrq::default()
                };
                let write = Write::new(
                    number::CREATE_XSRQ,
                    request.as_bytes(),
                    answer.as_mut_bytes(),
                );
                self.by_write(write.with_driver(&[], driver_out))?;
            }
        }
        Ok(MadeSrq {
            handle: answer.srq_handle,
            max_wr: answer.max_wr,
            max_sge: answer.max_sge,
            number: answer.srqn,
        })
    }

    /// Arms the limit event of a shared receive queue.
    ///
    /// # Errors
    /// `InvalidArgument` for a limit above the queue's depth.
    pub(crate) fn set_srq_limit(&self, handle: u32, limit: u32, driver_in: &[u8]) -> Result<()> {
        let request = ModifySrq {
            srq_handle: handle,
            attr_mask: SRQ_LIMIT,
            max_wr: 0,
            srq_limit: limit,
        };
        let write = Write::new(number::MODIFY_SRQ, request.as_bytes(), &mut []);
        self.by_write(write.with_driver(driver_in, &mut []))
            .map_err(|error| match error.raw_os_error() {
                Some(libc::EINVAL) => VerbsError::InvalidArgument {
                    what: "limit of a shared receive queue",
                    seen: limit.to_string(),
                    expected: "at most the queue's depth".to_owned(),
                },
                _ => failed("set the limit of a shared receive queue", error),
            })
    }

    /// Releases a shared receive queue.
    pub(crate) fn destroy_srq(&self, handle: u32) {
        let mut answer = DestroyResp::default();
        let released = self.destroy(
            Method::SRQ_DESTROY,
            number::DESTROY_SRQ,
            handle,
            answer.as_mut_bytes(),
        );
        complain("shared receive queue", released);
    }

    /// Releases an object that counts its events. They name objects that are
    /// looked up, so late ones do no harm, and the count isn't needed.
    pub(super) fn destroy(
        &self,
        method: Method,
        legacy: u32,
        handle: u32,
        answer: &mut [u8],
    ) -> std::io::Result<()> {
        let destroyed = self.by_attributes(
            method,
            &mut [
                Attribute::new(0, Value::Object(handle)),
                Attribute::output(1, answer),
            ],
        );
        match destroyed {
            Err(error) if is_missing(&error) => {
                let request = Destroy {
                    response: 0,
                    handle,
                    reserved: 0,
                };
                self.by_write(Write::new(legacy, request.as_bytes(), answer))
            }
            destroyed => destroyed,
        }
    }
}
