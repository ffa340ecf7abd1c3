//! Protection domains, memory, address handles, XRC domains and completion
//! channels: what has no queue.

use std::os::fd::{AsRawFd, BorrowedFd, RawFd};

use zerocopy::IntoBytes;

use super::command::{Attribute, Value, Write};
use super::events::CompletionEvents;
use super::kernel::own;
use super::{Uverbs, failed};
use crate::uapi::ioctl::{CORE_SUPPORT_OPTIONAL_MR_ACCESS, Method};
use crate::uapi::user_verbs::{
    AhAttr, AllocMw, AllocMwResp, AllocPdResp, AnswerOnly, CreateAh, CreateAhResp,
    CreateCompChannelResp, OpenXrcd, OpenXrcdResp, RegMr, RegMrResp, command as number,
};
use crate::{AccessFlags, AddressVector, Result, VerbsError};

/// `IB_ACCESS_OPTIONAL`: bits 20 to 29, which a kernel may ignore.
const OPTIONAL_ACCESS: u32 = 0x3ff0_0000;

/// `IB_MW_TYPE_2` of `enum ib_mw_type`.
const MW_TYPE_2: u8 = 2;

/// A registration: its handle and its keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registered {
    pub(crate) handle: u32,
    pub(crate) lkey: u32,
    pub(crate) rkey: u32,
}

/// What to register: memory of this process, and the address that peers use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Registration {
    pub(crate) pd: u32,
    pub(crate) start: u64,
    pub(crate) length: u64,
    /// Equal to `start` in the bits inside a page.
    pub(crate) iova: u64,
    pub(crate) access: AccessFlags,
}

impl Uverbs {
    /// Makes a protection domain and returns its handle.
    ///
    /// # Errors
    /// When the kernel refuses.
    pub(crate) fn alloc_pd(&self) -> Result<u32> {
        let mut answer = AllocPdResp::default();
        self.by_write(Write::new(
            number::ALLOC_PD,
            AnswerOnly::default().as_bytes(),
            answer.as_mut_bytes(),
        ))
        .map_err(|error| failed("make a protection domain", error))?;
        Ok(answer.pd_handle)
    }

    /// Releases a protection domain.
    pub(crate) fn dealloc_pd(&self, handle: u32) {
        let released = self.release(Method::PD_DESTROY, number::DEALLOC_PD, handle);
        complain("protection domain", released);
    }

    /// Registers memory, which has to stay as long as the registration.
    ///
    /// # Errors
    /// When the kernel refuses: the limit of locked memory, mostly.
    pub(crate) fn reg_mr(
        &self,
        registration: &Registration,
        driver_in: &[u8],
        driver_out: &mut [u8],
    ) -> Result<Registered> {
        let request = RegMr {
            response: 0,
            start: registration.start,
            length: registration.length,
            hca_va: registration.iova,
            pd_handle: registration.pd,
            access_flags: self.known_access(registration.access),
        };
        let mut answer = RegMrResp::default();
        let write = Write::new(number::REG_MR, request.as_bytes(), answer.as_mut_bytes());
        self.by_write(write.with_driver(driver_in, driver_out))
            .map_err(|error| not_registered(registration.length, error))?;
        Ok(Registered {
            handle: answer.mr_handle,
            lkey: answer.lkey,
            rkey: answer.rkey,
        })
    }

    /// Registers a part of a buffer of another device, from `start` on
    /// (`ibv_reg_dmabuf_mr`).
    ///
    /// # Errors
    /// When kernel or driver have no such registrations, or the buffer doesn't
    /// suit.
    pub(crate) fn reg_dmabuf_mr(
        &self,
        registration: &Registration,
        buffer: BorrowedFd<'_>,
    ) -> Result<Registered> {
        let (mut lkey, mut rkey) = (0_u32, 0_u32);
        let mut attributes = [
            Attribute::new(0, Value::New(0)),
            Attribute::new(1, Value::Object(registration.pd)),
            Attribute::new(2, Value::Number64(registration.start)),
            Attribute::new(3, Value::Number64(registration.length)),
            Attribute::new(4, Value::Number64(registration.iova)),
            // A plain number, not a descriptor attribute.
            Attribute::new(5, Value::Number32(buffer.as_raw_fd() as u32)),
            Attribute::new(6, Value::Number32(self.known_access(registration.access))),
            Attribute::output(7, lkey.as_mut_bytes()),
            Attribute::output(8, rkey.as_mut_bytes()),
        ];
        match self.by_attributes(Method::REG_DMABUF_MR, &mut attributes) {
            Err(error) if super::is_missing(&error) => {
                return Err(VerbsError::Unsupported {
                    what: "registering dma-buf memory",
                });
            }
            registered => {
                registered.map_err(|error| failed("register dma-buf memory", error))?;
            }
        }
        let handle = attributes[0].made();
        Ok(Registered { handle, lkey, rkey })
    }

    /// The flags that may be passed to this kernel.
    fn known_access(&self, access: AccessFlags) -> u32 {
        // Counting from 0 is done by the address that peers use.
        let access = access.difference(AccessFlags::ZERO_BASED).bits();
        match self.core_support & CORE_SUPPORT_OPTIONAL_MR_ACCESS {
            0 => access & !OPTIONAL_ACCESS,
            _ => access,
        }
    }

    /// Ends a registration.
    pub(crate) fn dereg_mr(&self, handle: u32) {
        complain(
            "memory region",
            self.release(Method::MR_DESTROY, number::DEREG_MR, handle),
        );
    }

    /// Makes a memory window of type 2; returns its handle and first key.
    ///
    /// # Errors
    /// When the kernel refuses, or the driver has no windows.
    pub(crate) fn alloc_mw(&self, pd: u32) -> Result<(u32, u32)> {
        let request = AllocMw {
            pd_handle: pd,
            mw_type: MW_TYPE_2,
            ..AllocMw::default()
        };
        let mut answer = AllocMwResp::default();
        let allocated = self.by_write(Write::new(
            number::ALLOC_MW,
            request.as_bytes(),
            answer.as_mut_bytes(),
        ));
        match allocated {
            Err(error) if super::is_missing(&error) => Err(VerbsError::Unsupported {
                what: "memory windows",
            }),
            Err(error) => Err(failed("make a memory window", error)),
            Ok(()) => Ok((answer.mw_handle, answer.rkey)),
        }
    }

    /// Releases a memory window.
    pub(crate) fn dealloc_mw(&self, handle: u32) {
        complain(
            "memory window",
            self.release(Method::MW_DESTROY, number::DEALLOC_MW, handle),
        );
    }

    /// Makes an address handle. The kernel looks for the way to the peer,
    /// which may take a second.
    ///
    /// # Errors
    /// When there is no way to the peer, or no such GID.
    pub(crate) fn create_ah(
        &self,
        pd: u32,
        av: &AddressVector,
        driver_out: &mut [u8],
    ) -> Result<u32> {
        let request = CreateAh {
            pd_handle: pd,
            attr: ah_attr(av)?,
            ..CreateAh::default()
        };
        let mut answer = CreateAhResp::default();
        let write = Write::new(number::CREATE_AH, request.as_bytes(), answer.as_mut_bytes());
        self.by_write(write.with_driver(&[], driver_out))
            .map_err(|error| failed(format!("make an address handle for {}", av.dgid), error))?;
        Ok(answer.ah_handle)
    }

    /// Releases an address handle.
    pub(crate) fn destroy_ah(&self, handle: u32) {
        complain(
            "address handle",
            self.release(Method::AH_DESTROY, number::DESTROY_AH, handle),
        );
    }

    /// Makes an XRC domain that no other process shares.
    ///
    /// # Errors
    /// When the kernel refuses, or the driver has no XRC.
    pub(crate) fn open_xrcd(&self) -> Result<u32> {
        let request = OpenXrcd {
            response: 0,
            fd: -1,
            oflags: libc::O_CREAT as u32,
        };
        let mut answer = OpenXrcdResp::default();
        let opened = self.by_write(Write::new(
            number::OPEN_XRCD,
            request.as_bytes(),
            answer.as_mut_bytes(),
        ));
        match opened {
            Err(error) if super::is_missing(&error) => Err(VerbsError::Unsupported { what: "XRC" }),
            Err(error) => Err(failed("make an XRC domain", error)),
            Ok(()) => Ok(answer.xrcd_handle),
        }
    }

    /// Releases an XRC domain.
    pub(crate) fn close_xrcd(&self, handle: u32) {
        complain(
            "XRC domain",
            self.release(Method::XRCD_DESTROY, number::CLOSE_XRCD, handle),
        );
    }

    /// Makes a completion channel.
    ///
    /// # Errors
    /// When the kernel refuses a descriptor.
    pub(crate) fn create_comp_channel(&self) -> Result<CompletionEvents> {
        let mut answer = CreateCompChannelResp { fd: -1 };
        self.by_write(Write::new(
            number::CREATE_COMP_CHANNEL,
            AnswerOnly::default().as_bytes(),
            answer.as_mut_bytes(),
        ))
        // SAFETY: the command has just made it.
        .and_then(|()| unsafe { own(answer.fd as RawFd) })
        .and_then(CompletionEvents::new)
        .map_err(|error| failed("make a completion channel", error))
    }
}

/// A path as address handles have it.
pub(super) fn ah_attr(av: &AddressVector) -> Result<AhAttr> {
    Ok(AhAttr {
        dgid: av.dgid.0,
        flow_label: av.flow_label,
        sgid_index: gid_index(av)?,
        hop_limit: av.hop_limit,
        traffic_class: av.traffic_class,
        sl: av.sl,
        is_global: 1,
        port_num: av.port,
        ..AhAttr::default()
    })
}

/// The index of the own GID; commands have 8 bits for it.
pub(super) fn gid_index(av: &AddressVector) -> Result<u8> {
    u8::try_from(av.sgid_index).map_err(|_| VerbsError::InvalidArgument {
        what: "GID index",
        seen: av.sgid_index.to_string(),
        expected: "at most 255, which is all that a path has room for".to_owned(),
    })
}

/// Why memory isn't registered: mostly the limit.
fn not_registered(length: u64, source: std::io::Error) -> VerbsError {
    let action = format!("register {length} bytes of memory");
    let advice = match source.raw_os_error() {
        Some(libc::ENOMEM) => format!(
            "registered memory stays locked, and the limit is {}: raise it (`ulimit -l unlimited`, \
             or memlock in /etc/security/limits.conf) or use less (-s, -q)",
            locked_memory_limit()
        ),
        Some(libc::EPERM) => format!(
            "this process may not lock memory, the limit is {}: raise it (`ulimit -l unlimited`)",
            locked_memory_limit()
        ),
        Some(libc::EFAULT) => "the memory is not all there, or can't be written to".to_owned(),
        _ => return failed(action, source),
    };
    VerbsError::Refused {
        action,
        source,
        advice,
    }
}

fn locked_memory_limit() -> String {
    use nix::sys::resource::{RLIM_INFINITY, Resource, getrlimit};
    match getrlimit(Resource::RLIMIT_MEMLOCK) {
        Ok((RLIM_INFINITY, _)) => "the memory of this machine".to_owned(),
        Ok((bytes, _)) => format!("{} KiB", bytes / 1024),
        Err(_) => "unknown".to_owned(),
    }
}

/// Objects are released when they are dropped, where nobody waits for errors.
pub(super) fn complain(what: &str, released: std::io::Result<()>) {
    if let Err(error) = released {
        log::warn!("cannot release a {what}: {error}");
    }
}
