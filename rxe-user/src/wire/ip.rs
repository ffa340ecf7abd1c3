//! IPv4 or IPv6, and UDP, around a packet: views of whole IP packets, and their headers.
//!
//! RoCEv2 uses IPv4 without options, IPv6 without extension headers, and no fragments
//! (IBTA vol. 1, Annex A17). Fields are those of RFC 791, RFC 8200 and RFC 768.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::byteorder::big_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned, transmute};

/// Bytes of an IPv4 header without options.
pub const IPV4_HEADER_LEN: usize = 20;
/// Bytes of an IPv6 header.
pub const IPV6_HEADER_LEN: usize = 40;
/// Bytes of a UDP header.
pub const UDP_HEADER_LEN: usize = 8;

pub(super) const IPV4_UDP_LEN: usize = IPV4_HEADER_LEN + UDP_HEADER_LEN;
pub(super) const IPV6_UDP_LEN: usize = IPV6_HEADER_LEN + UDP_HEADER_LEN;

pub(super) const PROTOCOL_UDP: u8 = 17;
const VERSION_4_IHL_5: u8 = 0x45;
pub(super) const DONT_FRAGMENT: u16 = 0x4000;

/// Why bytes are no IP packet that could carry RoCEv2, or why headers could not be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum IpError {
    /// Fewer bytes than the headers need or announce.
    #[error("IP packet cut short: {len} bytes where {needed} are needed")]
    Truncated {
        /// Bytes there are.
        len: usize,
        /// Bytes there should be.
        needed: usize,
    },
    /// Neither IPv4 nor IPv6.
    #[error("IP version {0}; RoCEv2 is IPv4 or IPv6")]
    Version(u8),
    /// IPv4 with options, or with a header length below the minimum.
    #[error("peer sent an IPv4 header of {0} words; RoCEv2 has no IP options, so 5 are expected")]
    HeaderLength(u8),
    /// A fragment, or the reserved flag set; the flags and the offset as on the wire.
    #[error("peer sent an IPv4 fragment (flags and offset 0x{0:04x}); lower its path MTU")]
    Fragment(u16),
    /// Not UDP, or an IPv6 extension header.
    #[error("IP protocol {0}; RoCEv2 is UDP (17) right after the IP header")]
    NotUdp(u8),
    /// The UDP length is not what the IP header leaves for it.
    #[error("peer sent a UDP length of {udp} in an IP packet with room for {ip}")]
    LengthMismatch {
        /// The UDP header's length field.
        udp: usize,
        /// Bytes behind the IP header according to it.
        ip: usize,
    },
    /// Source and destination of different IP versions (a mistake of ours).
    #[error("cannot write an IP header from {src} to {dst}: one is IPv4, the other IPv6")]
    MixedFamilies {
        /// Source address.
        src: IpAddr,
        /// Destination address.
        dst: IpAddr,
    },
    /// The payload does not fit an IP packet (a mistake of ours).
    #[error("a UDP payload of {0} bytes does not fit an IP packet of at most 65535")]
    TooLong(usize),
}

/// What the IP and UDP headers of a packet say, lengths and IPv4 header checksum aside.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct IpUdp {
    /// Source address.
    pub src: IpAddr,
    /// Destination address, of the same IP version.
    pub dst: IpAddr,
    /// IPv4 type of service or IPv6 traffic class: 6 bits DSCP, 2 bits ECN.
    pub tos: u8,
    /// IPv4 time to live or IPv6 hop limit.
    pub ttl: u8,
    /// IPv4 identification; 0 with IPv6.
    pub ipv4_id: u16,
    /// IPv4 "don't fragment"; true with IPv6.
    pub dont_fragment: bool,
    /// IPv6 flow label, 20 bits; 0 with IPv4.
    pub flow_label: u32,
    /// UDP source port.
    pub src_port: u16,
    /// UDP destination port.
    pub dst_port: u16,
    /// UDP checksum; 0 is none.
    pub udp_checksum: u16,
}

/// An IP packet with UDP in it, its lengths checked; not its checksums.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IpPacket<'a> {
    /// The fields of the headers.
    pub header: IpUdp,
    /// What UDP carries, without whatever an Ethernet frame adds behind the IP packet.
    pub udp_payload: &'a [u8],
    header_bytes: HeaderBytes<'a>,
}

/// IP and UDP header as they are in a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum HeaderBytes<'a> {
    V4(&'a [u8; IPV4_UDP_LEN]),
    V6(&'a [u8; IPV6_UDP_LEN]),
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Ipv4 {
    version_ihl: u8,
    tos: u8,
    total_length: U16,
    identification: U16,
    flags_offset: U16,
    ttl: u8,
    protocol: u8,
    checksum: U16,
    src: [u8; 4],
    dst: [u8; 4],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Ipv6 {
    /// 4 bits of version, 8 of traffic class, 20 of flow label.
    version_class_label: U32,
    payload_length: U16,
    next_header: u8,
    hop_limit: u8,
    src: [u8; 16],
    dst: [u8; 16],
}

#[derive(FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Udp {
    src_port: U16,
    dst_port: U16,
    length: U16,
    checksum: U16,
}

const FLOW_LABEL: u32 = 0x000F_FFFF;

impl<'a> IpPacket<'a> {
    /// Checks an IP packet, from the first byte of its IP header. Bytes behind its end, as an
    /// Ethernet frame of minimal size has them, are ignored.
    ///
    /// # Errors
    /// Not IPv4 or IPv6; options or extension headers; a fragment; not UDP; lengths that
    /// contradict one another or the bytes there are.
    pub fn parse(bytes: &'a [u8]) -> Result<IpPacket<'a>, IpError> {
        match bytes.first().map(|byte| byte >> 4) {
            Some(4) => Self::parse_v4(bytes),
            Some(6) => Self::parse_v6(bytes),
            Some(version) => Err(IpError::Version(version)),
            None => Err(IpError::Truncated {
                len: 0,
                needed: IPV4_HEADER_LEN,
            }),
        }
    }

    fn parse_v4(bytes: &'a [u8]) -> Result<IpPacket<'a>, IpError> {
        let (ip, _) = Ipv4::ref_from_prefix(bytes).map_err(|_| IpError::Truncated {
            len: bytes.len(),
            needed: IPV4_HEADER_LEN,
        })?;
        if ip.version_ihl != VERSION_4_IHL_5 {
            return Err(IpError::HeaderLength(ip.version_ihl & 0x0F));
        }
        let flags_offset = ip.flags_offset.get();
        if flags_offset & !DONT_FRAGMENT != 0 {
            return Err(IpError::Fragment(flags_offset));
        }
        if ip.protocol != PROTOCOL_UDP {
            return Err(IpError::NotUdp(ip.protocol));
        }
        let header = IpUdp {
            src: Ipv4Addr::from(ip.src).into(),
            dst: Ipv4Addr::from(ip.dst).into(),
            tos: ip.tos,
            ttl: ip.ttl,
            ipv4_id: ip.identification.get(),
            dont_fragment: flags_offset & DONT_FRAGMENT != 0,
            flow_label: 0,
            src_port: 0,
            dst_port: 0,
            udp_checksum: 0,
        };
        let total = usize::from(ip.total_length.get());
        Self::parse_udp(bytes, header, total, HeaderBytes::V4)
    }

    fn parse_v6(bytes: &'a [u8]) -> Result<IpPacket<'a>, IpError> {
        let (ip, _) = Ipv6::ref_from_prefix(bytes).map_err(|_| IpError::Truncated {
            len: bytes.len(),
            needed: IPV6_HEADER_LEN,
        })?;
        if ip.next_header != PROTOCOL_UDP {
            return Err(IpError::NotUdp(ip.next_header));
        }
        let class_label = ip.version_class_label.get();
        let header = IpUdp {
            src: Ipv6Addr::from(ip.src).into(),
            dst: Ipv6Addr::from(ip.dst).into(),
            tos: (class_label >> 20) as u8,
            ttl: ip.hop_limit,
            ipv4_id: 0,
            dont_fragment: true,
            flow_label: class_label & FLOW_LABEL,
            src_port: 0,
            dst_port: 0,
            udp_checksum: 0,
        };
        let total = IPV6_HEADER_LEN + usize::from(ip.payload_length.get());
        Self::parse_udp(bytes, header, total, HeaderBytes::V6)
    }

    /// `total` is the length of the packet according to the IP header; IP and UDP header are `N`
    /// bytes.
    fn parse_udp<const N: usize>(
        bytes: &'a [u8],
        header: IpUdp,
        total: usize,
        header_bytes: fn(&'a [u8; N]) -> HeaderBytes<'a>,
    ) -> Result<IpPacket<'a>, IpError> {
        let truncated = IpError::Truncated {
            len: bytes.len().min(total),
            needed: total.max(N),
        };
        let packet = bytes.get(..total).ok_or(truncated)?;
        let (headers, udp_payload) = packet.split_first_chunk::<N>().ok_or(truncated)?;
        let (_, udp) = Udp::ref_from_suffix(headers).map_err(|_| truncated)?;
        let (udp_len, room) = (
            usize::from(udp.length.get()),
            UDP_HEADER_LEN + udp_payload.len(),
        );
        if udp_len != room {
            return Err(IpError::LengthMismatch {
                udp: udp_len,
                ip: room,
            });
        }
        let header = IpUdp {
            src_port: udp.src_port.get(),
            dst_port: udp.dst_port.get(),
            udp_checksum: udp.checksum.get(),
            ..header
        };
        Ok(IpPacket {
            header,
            udp_payload,
            header_bytes: header_bytes(headers),
        })
    }

    /// IP and UDP header as they are in the packet: 28 bytes of IPv4, or 48 of IPv6.
    #[inline]
    pub fn header_bytes(&self) -> &'a [u8] {
        match self.header_bytes {
            HeaderBytes::V4(bytes) => bytes,
            HeaderBytes::V6(bytes) => bytes,
        }
    }

    /// The same, with the length in the type.
    pub(super) fn sized_header_bytes(&self) -> HeaderBytes<'a> {
        self.header_bytes
    }
}

/// The IPv4 header of a packet with `udp_payload_len` bytes in UDP, checksum included.
pub(super) fn ipv4_header(
    header: &IpUdp,
    src: Ipv4Addr,
    dst: Ipv4Addr,
    udp_payload_len: usize,
) -> Result<[u8; IPV4_HEADER_LEN], IpError> {
    let length = length_field(IPV4_UDP_LEN, udp_payload_len)?;
    let mut bytes: [u8; IPV4_HEADER_LEN] = transmute!(Ipv4 {
        version_ihl: VERSION_4_IHL_5,
        tos: header.tos,
        total_length: length,
        identification: U16::new(header.ipv4_id),
        flags_offset: U16::new(if header.dont_fragment {
            DONT_FRAGMENT
        } else {
            0
        }),
        ttl: header.ttl,
        protocol: PROTOCOL_UDP,
        checksum: U16::ZERO,
        src: src.octets(),
        dst: dst.octets(),
    });
    [bytes[10], bytes[11]] = internet_checksum(&bytes).to_be_bytes();
    Ok(bytes)
}

/// The IPv6 header of a packet with `udp_payload_len` bytes in UDP.
pub(super) fn ipv6_header(
    header: &IpUdp,
    src: Ipv6Addr,
    dst: Ipv6Addr,
    udp_payload_len: usize,
) -> Result<[u8; IPV6_HEADER_LEN], IpError> {
    let class_label = 6 << 28 | u32::from(header.tos) << 20 | header.flow_label & FLOW_LABEL;
    Ok(transmute!(Ipv6 {
        version_class_label: U32::new(class_label),
        payload_length: length_field(UDP_HEADER_LEN, udp_payload_len)?,
        next_header: PROTOCOL_UDP,
        hop_limit: header.ttl,
        src: src.octets(),
        dst: dst.octets(),
    }))
}

fn length_field(headers: usize, udp_payload_len: usize) -> Result<U16, IpError> {
    let length = headers.saturating_add(udp_payload_len);
    u16::try_from(length)
        .map(U16::new)
        .map_err(|_| IpError::TooLong(udp_payload_len))
}

/// Ones' complement of the ones' complement sum (RFC 1071) over an IPv4 header whose checksum
/// field is 0; over one with its checksum in place the result is 0 when that is right.
pub(super) fn internet_checksum(header: &[u8; IPV4_HEADER_LEN]) -> u16 {
    let mut sum: u32 = header
        .chunks_exact(2)
        .map(|pair| u32::from(pair[0]) << 8 | u32::from(pair[1]))
        .sum();
    // Ten words add up to less than 2^20: the second fold cannot carry.
    sum = (sum & 0xFFFF) + (sum >> 16);
    sum = (sum & 0xFFFF) + (sum >> 16);
    !(sum as u16)
}

/// Writes IP and UDP header of a packet with `udp_payload_len` bytes in UDP to the front of
/// `buf`; returns their length, 28 (IPv4) or 48 (IPv6).
///
/// The IPv4 header checksum is computed, the UDP checksum is taken from `header`.
///
/// # Errors
/// `buf` is too small, the payload too long, or the addresses are of different IP versions.
pub fn write_ip_udp_headers(
    buf: &mut [u8],
    header: &IpUdp,
    udp_payload_len: usize,
) -> Result<usize, IpError> {
    let udp: [u8; UDP_HEADER_LEN] = transmute!(Udp {
        src_port: U16::new(header.src_port),
        dst_port: U16::new(header.dst_port),
        length: length_field(UDP_HEADER_LEN, udp_payload_len)?,
        checksum: U16::new(header.udp_checksum),
    });
    match (header.src, header.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            put(buf, &ipv4_header(header, src, dst, udp_payload_len)?, &udp)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => {
            put(buf, &ipv6_header(header, src, dst, udp_payload_len)?, &udp)
        }
        (src, dst) => Err(IpError::MixedFamilies { src, dst }),
    }
}

fn put(buf: &mut [u8], ip: &[u8], udp: &[u8]) -> Result<usize, IpError> {
    let needed = ip.len() + udp.len();
    let len = buf.len();
    let place = buf
        .get_mut(..needed)
        .ok_or(IpError::Truncated { len, needed })?;
    let (ip_place, udp_place) = place.split_at_mut(ip.len());
    ip_place.copy_from_slice(ip);
    udp_place.copy_from_slice(udp);
    Ok(needed)
}
