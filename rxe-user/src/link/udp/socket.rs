//! One UDP socket: the system calls that no library offers without allocating,
//! behind safe functions. All of the link's `unsafe` is here.

use std::ffi::c_int;
use std::mem;
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::ptr;

use nix::errno::Errno;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, socket};

use super::sockaddr::SockAddr;

/// Messages of one `sendmmsg`.
pub(super) const MAX_MESSAGES: usize = 16;
/// Datagrams of one `recvmmsg`.
pub(super) const MAX_DATAGRAMS: usize = 16;

/// Bytes of a receive buffer: the largest UDP datagram, or what GRO makes of several.
const BUFFER_BYTES: usize = 1 << 16;
/// Bytes for the control messages of a datagram: segment size, ToS and TTL.
const CONTROL_BYTES: usize = 96;

/// A datagram to send.
#[derive(Clone, Copy)]
pub(super) struct Message<'a> {
    pub(super) to: &'a SockAddr,
    pub(super) bytes: &'a [u8],
    /// Cut into datagrams of this many bytes (`UDP_SEGMENT`, `udp(7)`).
    pub(super) segment: Option<u16>,
}

impl Message<'_> {
    /// The header of the message, which points to `iovec` and `control`.
    fn header(&self, iovec: &mut libc::iovec, control: &mut SegmentControl) -> libc::msghdr {
        *iovec = libc::iovec {
            iov_base: self.bytes.as_ptr().cast_mut().cast(),
            iov_len: self.bytes.len(),
        };
        let mut header = empty_header();
        header.msg_name = self.to.as_ptr().cast_mut().cast();
        header.msg_namelen = self.to.len();
        header.msg_iov = iovec;
        header.msg_iovlen = 1;
        if let Some(size) = self.segment {
            control.size = size;
            control.header.cmsg_level = libc::SOL_UDP;
            control.header.cmsg_type = libc::UDP_SEGMENT;
            control.header.cmsg_len =
                (mem::offset_of!(SegmentControl, size) + size_of::<u16>()) as _;
            header.msg_control = ptr::from_mut(control).cast();
            header.msg_controllen = size_of::<SegmentControl>() as _;
        }
        header
    }
}

/// Place for a datagram that arrives.
pub(super) struct Slot {
    from: SockAddr,
    control: Control,
    buffer: Box<[u8]>,
}

/// What the kernel says about a datagram besides its bytes.
#[derive(Clone, Copy)]
pub(super) struct Datagram {
    /// Bytes in the slot's buffer.
    pub(super) len: usize,
    /// The datagram didn't fit the buffer.
    pub(super) truncated: bool,
    /// Bytes of each of the datagrams that it was made of (`UDP_GRO`), all but the last.
    pub(super) segment: Option<usize>,
    /// IPv4 ToS or IPv6 traffic class, if asked for.
    pub(super) traffic_class: Option<u8>,
    /// IPv4 TTL or IPv6 hop limit, if asked for.
    pub(super) hop_limit: Option<u8>,
}

#[repr(C, align(8))]
struct Control([u8; CONTROL_BYTES]);

/// The control message that asks for segmentation.
#[repr(C)]
#[derive(Clone, Copy)]
struct SegmentControl {
    header: libc::cmsghdr,
    size: u16,
}

impl Slot {
    pub(super) fn new() -> Self {
        Self {
            from: SockAddr::EMPTY,
            control: Control([0; CONTROL_BYTES]),
            buffer: vec![0; BUFFER_BYTES].into_boxed_slice(),
        }
    }

    /// Where the datagram came from.
    pub(super) fn from(&self) -> Option<SocketAddr> {
        self.from.get()
    }

    /// The bytes of the datagram that was received into this slot.
    pub(super) fn bytes(&self, datagram: &Datagram) -> &[u8] {
        self.buffer.get(..datagram.len).unwrap_or_default()
    }

    /// A header for `recvmsg`, valid while `iovec` and the slot are.
    fn header(&mut self, iovec: &mut libc::iovec) -> libc::msghdr {
        *iovec = libc::iovec {
            iov_base: self.buffer.as_mut_ptr().cast(),
            iov_len: self.buffer.len(),
        };
        let mut header = empty_header();
        header.msg_name = self.from.as_mut_ptr();
        header.msg_namelen = SockAddr::CAPACITY;
        header.msg_iov = iovec;
        header.msg_iovlen = 1;
        header.msg_control = self.control.0.as_mut_ptr().cast();
        header.msg_controllen = CONTROL_BYTES as _;
        header
    }
}

/// A non-blocking, unconnected UDP socket.
pub(super) struct Socket(OwnedFd);

impl Socket {
    pub(super) fn new(family: AddressFamily) -> nix::Result<Self> {
        let flags = SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK;
        socket(family, SockType::Datagram, flags, None).map(Self)
    }

    pub(super) fn bind(&self, address: &SockAddr) -> nix::Result<()> {
        // SAFETY: `address` gives the pointer and length of an initialised socket address.
        let result = unsafe { libc::bind(self.0.as_raw_fd(), address.as_ptr(), address.len()) };
        Errno::result(result).map(drop)
    }

    /// Sets an option that has an integer value.
    pub(super) fn set(&self, level: c_int, option: c_int, value: c_int) -> nix::Result<()> {
        // SAFETY: the pointer and length are those of `value`, which the kernel only reads.
        let result = unsafe {
            libc::setsockopt(
                self.0.as_raw_fd(),
                level,
                option,
                (&raw const value).cast(),
                size_of_val(&value) as libc::socklen_t,
            )
        };
        Errno::result(result).map(drop)
    }

    /// The socket's memory figures, indexed by `SK_MEMINFO_*` (`linux/sock_diag.h`).
    pub(super) fn memory(&self) -> nix::Result<[u32; 9]> {
        let mut figures = [0_u32; 9];
        let mut len = size_of_val(&figures) as libc::socklen_t;
        // SAFETY: the kernel writes at most `len` bytes, the size of `figures`, of integers.
        let result = unsafe {
            libc::getsockopt(
                self.0.as_raw_fd(),
                libc::SOL_SOCKET,
                libc::SO_MEMINFO,
                figures.as_mut_ptr().cast(),
                &raw mut len,
            )
        };
        Errno::result(result).map(|_| figures)
    }

    /// Sends one datagram; cheaper than [`Self::send_messages`] with one.
    pub(super) fn send_to(&self, to: &SockAddr, bytes: &[u8]) -> nix::Result<()> {
        // SAFETY: both pointers come with the length of what they point to, which is only read.
        let result = unsafe {
            libc::sendto(
                self.0.as_raw_fd(),
                bytes.as_ptr().cast(),
                bytes.len(),
                libc::MSG_DONTWAIT,
                to.as_ptr(),
                to.len(),
            )
        };
        Errno::result(result).map(drop)
    }

    /// Sends one message that is cut into datagrams of `segment` bytes; cheaper
    /// than [`Self::send_messages`] with a single one.
    pub(super) fn send_segments(
        &self,
        to: &SockAddr,
        bytes: &[u8],
        segment: u16,
    ) -> nix::Result<()> {
        let message = Message {
            to,
            bytes,
            segment: Some(segment),
        };
        let mut iovec = EMPTY_IOVEC;
        // SAFETY: `SegmentControl` consists of integers, for which zeros are valid.
        let mut control: SegmentControl = unsafe { mem::zeroed() };
        let header = message.header(&mut iovec, &mut control);
        // SAFETY: `header` points to a name, memory and a control message that
        // outlive the call and whose lengths it gives; sendmsg only reads them.
        let result =
            unsafe { libc::sendmsg(self.0.as_raw_fd(), &raw const header, libc::MSG_DONTWAIT) };
        Errno::result(result).map(drop)
    }

    /// Sends the first [`MAX_MESSAGES`] of `messages` and returns how many
    /// went; an error is that of the first of them.
    pub(super) fn send_messages(&self, messages: &[Message<'_>]) -> nix::Result<usize> {
        let count = messages.len().min(MAX_MESSAGES);
        let mut iovecs = [EMPTY_IOVEC; MAX_MESSAGES];
        // SAFETY: `SegmentControl` consists of integers, for which zeros are valid.
        let mut controls: [SegmentControl; MAX_MESSAGES] = unsafe { mem::zeroed() };
        let mut headers = [const { empty_mmsghdr() }; MAX_MESSAGES];
        for (((message, iovec), control), header) in messages
            .iter()
            .zip(&mut iovecs)
            .zip(&mut controls)
            .zip(&mut headers)
        {
            header.msg_hdr = message.header(iovec, control);
        }
        // SAFETY: the first `count` headers point to names, memory and control
        // messages that outlive the call and whose lengths they give; sendmmsg
        // only reads those, and writes `msg_len` of the headers.
        let result = unsafe {
            libc::sendmmsg(
                self.0.as_raw_fd(),
                headers.as_mut_ptr(),
                count as _,
                libc::MSG_DONTWAIT as _,
            )
        };
        Errno::result(result).map(|sent| sent as usize)
    }

    /// Receives one datagram; cheaper than [`Self::receive_many`] when there
    /// is none or one.
    pub(super) fn receive_one(&self, slot: &mut Slot) -> nix::Result<Datagram> {
        let mut iovec = EMPTY_IOVEC;
        let mut header = slot.header(&mut iovec);
        // SAFETY: `header` points to the parts of `slot` and gives their sizes.
        let result =
            unsafe { libc::recvmsg(self.0.as_raw_fd(), &raw mut header, libc::MSG_DONTWAIT) };
        let len = Errno::result(result)?;
        // SAFETY: recvmsg has filled `header`, whose memory is still there.
        Ok(unsafe { datagram(&header, len as usize) })
    }

    /// Receives up to [`MAX_DATAGRAMS`] datagrams, one per slot, says what they
    /// are in `datagrams`, and returns how many there are.
    pub(super) fn receive_many(
        &self,
        slots: &mut [Slot],
        datagrams: &mut [Datagram; MAX_DATAGRAMS],
    ) -> nix::Result<usize> {
        let count = slots.len().min(MAX_DATAGRAMS);
        let mut iovecs = [EMPTY_IOVEC; MAX_DATAGRAMS];
        let mut headers = [const { empty_mmsghdr() }; MAX_DATAGRAMS];
        for ((slot, iovec), header) in slots.iter_mut().zip(&mut iovecs).zip(&mut headers) {
            header.msg_hdr = slot.header(iovec);
        }
        // SAFETY: the first `count` headers point to the parts of as many
        // slots and give their sizes; no time-out is given.
        let result = unsafe {
            libc::recvmmsg(
                self.0.as_raw_fd(),
                headers.as_mut_ptr(),
                count as _,
                libc::MSG_DONTWAIT as _,
                ptr::null_mut(),
            )
        };
        let received = Errno::result(result)? as usize;
        for (header, to) in headers.iter().zip(datagrams.iter_mut()).take(received) {
            // SAFETY: recvmmsg has filled this header, whose memory is still there.
            *to = unsafe { datagram(&header.msg_hdr, header.msg_len as usize) };
        }
        Ok(received)
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.as_fd()
    }
}

impl Datagram {
    pub(super) const EMPTY: Self = Self {
        len: 0,
        truncated: false,
        segment: None,
        traffic_class: None,
        hop_limit: None,
    };
}

const EMPTY_IOVEC: libc::iovec = libc::iovec {
    iov_base: ptr::null_mut(),
    iov_len: 0,
};

const fn empty_header() -> libc::msghdr {
    // SAFETY: a message header of null pointers and zero lengths is valid, and empty.
    unsafe { mem::zeroed() }
}

const fn empty_mmsghdr() -> libc::mmsghdr {
    libc::mmsghdr {
        msg_hdr: empty_header(),
        msg_len: 0,
    }
}

/// What a filled header says.
///
/// # Safety
/// `header` must be as `recvmsg` left it, with its control memory still there.
unsafe fn datagram(header: &libc::msghdr, len: usize) -> Datagram {
    let mut datagram = Datagram {
        len,
        truncated: header.msg_flags & libc::MSG_TRUNC != 0,
        ..Datagram::EMPTY
    };
    // SAFETY: the caller vouches for the header; the kernel aligns and bounds
    // what it puts there, and the macros stay within `msg_controllen`.
    let mut control = unsafe { libc::CMSG_FIRSTHDR(header) };
    // SAFETY: `control` is null or points to a control message within the memory.
    while let Some(message) = unsafe { control.as_ref() } {
        // SAFETY: as above; the data may be unaligned.
        let data = unsafe { libc::CMSG_DATA(control) };
        match (message.cmsg_level, message.cmsg_type) {
            (libc::SOL_UDP, libc::UDP_GRO) => {
                // SAFETY: this message carries an int.
                let size = unsafe { data.cast::<c_int>().read_unaligned() };
                datagram.segment = usize::try_from(size).ok().filter(|&size| size > 0);
            }
            (libc::IPPROTO_IP, libc::IP_TOS) => {
                // SAFETY: this message carries a byte.
                datagram.traffic_class = Some(unsafe { data.read() });
            }
            (libc::IPPROTO_IPV6, libc::IPV6_TCLASS) => {
                // SAFETY: this message carries an int.
                datagram.traffic_class =
                    Some(unsafe { data.cast::<c_int>().read_unaligned() } as u8);
            }
            (libc::IPPROTO_IP, libc::IP_TTL) | (libc::IPPROTO_IPV6, libc::IPV6_HOPLIMIT) => {
                // SAFETY: both messages carry an int.
                datagram.hop_limit = Some(unsafe { data.cast::<c_int>().read_unaligned() } as u8);
            }
            _ => {}
        }
        // SAFETY: `control` is a message of this header.
        control = unsafe { libc::CMSG_NXTHDR(header, control) };
    }
    datagram
}
