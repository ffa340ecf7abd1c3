//! The invariant CRC behind every packet (IBTA vol. 1, 7.8.1; for RoCEv2 Annex A17).
//!
//! It is CRC-32 of IEEE 802.3 over eight bytes of ones (for the LRH that RoCE does not have), the
//! IP and UDP header with what routers may change set to ones, the BTH with byte 4 set to ones, and
//! all the rest up to the pad. It is little-endian, alone among the fields.
//!
//! # What a UDP socket hides
//! The CRC covers IPv4 identification and flags, which a UDP socket does not reveal to its
//! receiver. A CRC is linear: for a given length, the identification's contribution is a linear
//! map of its 16 bits, and can be solved for ([`solve_ipv4_id`]). No solution means a corrupt
//! packet. As 2^16 of the 2^32 possible errors have a solution this leaves a check of 16 bits;
//! [`verify`] with a known identification, and [`verify_ip_packet`], keep all 32.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crc32fast::Hasher;

use super::bth::Bth;
use super::flow::ROCE_UDP_PORT;
use super::ip::{
    DONT_FRAGMENT, HeaderBytes, IPV4_UDP_LEN, IPV6_UDP_LEN, IpError, IpPacket, IpUdp, PROTOCOL_UDP,
    UDP_HEADER_LEN,
};
use super::packet::ICRC_LEN;

/// CRC-32 of a masked packet with its ICRC at the end: the same for every intact packet.
pub const RESIDUE: u32 = 0x2144_DF1C;

/// CRC-32 of the eight bytes of ones in front; the same number as the residue, because the CRC
/// register begins as ones, too.
const LRH_CRC: u32 = 0x2144_DF1C;

/// The byte of the BTH with FECN, BECN and reserved bits.
const BTH_CONGESTION: usize = 4;

/// What the ICRC covers outside the payload of the UDP datagram.
///
/// The UDP destination port is 4791; lengths follow from the payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Envelope {
    /// Source address. An IPv4-mapped address means IPv4, as in a GID.
    pub src: IpAddr,
    /// Destination address, of the same IP version.
    pub dst: IpAddr,
    /// UDP source port.
    pub src_port: u16,
    /// IPv4 identification; IPv6 has none, and does not look at this.
    pub ipv4_id: u16,
    /// IPv4 "don't fragment"; IPv6 does not look at this.
    pub dont_fragment: bool,
}

impl From<&IpUdp> for Envelope {
    fn from(header: &IpUdp) -> Self {
        Envelope {
            src: header.src,
            dst: header.dst,
            src_port: header.src_port,
            ipv4_id: header.ipv4_id,
            dont_fragment: header.dont_fragment,
        }
    }
}

/// Both addresses in the version that is on the wire.
enum Addresses {
    V4(Ipv4Addr, Ipv4Addr),
    V6(Ipv6Addr, Ipv6Addr),
}

impl Envelope {
    #[inline]
    fn addresses(&self) -> Addresses {
        match (self.src.to_canonical(), self.dst.to_canonical()) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => Addresses::V4(src, dst),
            (src, dst) => Addresses::V6(to_v6(src), to_v6(dst)),
        }
    }

    /// CRC-32 over the masked headers and `ib`, which begins with the BTH, in a datagram whose UDP
    /// payload has `udp_payload_len` bytes.
    #[inline]
    fn crc(&self, udp_payload_len: usize, ib: &[u8]) -> u32 {
        match self.addresses() {
            Addresses::V4(src, dst) => crc(&self.masked_v4(src, dst, udp_payload_len), ib),
            Addresses::V6(src, dst) => crc(&self.masked_v6(src, dst, udp_payload_len), ib),
        }
    }

    /// IPv4 and UDP header with type of service, time to live and both checksums set to ones.
    #[inline]
    fn masked_v4(
        &self,
        src: Ipv4Addr,
        dst: Ipv4Addr,
        udp_payload_len: usize,
    ) -> [u8; IPV4_UDP_LEN] {
        let flags = if self.dont_fragment { DONT_FRAGMENT } else { 0 };
        let mut header = [0xFF; IPV4_UDP_LEN];
        header[0] = 0x45;
        header[2..4].copy_from_slice(&length(IPV4_UDP_LEN, udp_payload_len));
        header[4..6].copy_from_slice(&self.ipv4_id.to_be_bytes());
        header[6..8].copy_from_slice(&flags.to_be_bytes());
        header[9] = PROTOCOL_UDP;
        header[12..16].copy_from_slice(&src.octets());
        header[16..20].copy_from_slice(&dst.octets());
        header[20..22].copy_from_slice(&self.src_port.to_be_bytes());
        header[22..24].copy_from_slice(&ROCE_UDP_PORT.to_be_bytes());
        header[24..26].copy_from_slice(&length(UDP_HEADER_LEN, udp_payload_len));
        header
    }

    /// IPv6 and UDP header with traffic class, flow label, hop limit and checksum set to ones.
    #[inline]
    fn masked_v6(
        &self,
        src: Ipv6Addr,
        dst: Ipv6Addr,
        udp_payload_len: usize,
    ) -> [u8; IPV6_UDP_LEN] {
        let udp_len = length(UDP_HEADER_LEN, udp_payload_len);
        let mut header = [0xFF; IPV6_UDP_LEN];
        header[0] = 0x6F;
        header[4..6].copy_from_slice(&udp_len);
        header[6] = PROTOCOL_UDP;
        header[8..24].copy_from_slice(&src.octets());
        header[24..40].copy_from_slice(&dst.octets());
        header[40..42].copy_from_slice(&self.src_port.to_be_bytes());
        header[42..44].copy_from_slice(&ROCE_UDP_PORT.to_be_bytes());
        header[44..46].copy_from_slice(&udp_len);
        header
    }
}

fn to_v6(address: IpAddr) -> Ipv6Addr {
    match address {
        IpAddr::V4(v4) => v4.to_ipv6_mapped(),
        IpAddr::V6(v6) => v6,
    }
}

/// A length field. A datagram beyond 64 KiB cannot exist; its length is cut.
#[inline]
fn length(headers: usize, udp_payload_len: usize) -> [u8; 2] {
    (headers.wrapping_add(udp_payload_len) as u16).to_be_bytes()
}

/// CRC-32 over eight bytes of ones, `header`, and `ib` with its byte 4 set to ones.
///
/// `ib` is not ours to change, and the CRC is fastest over one contiguous run: the front is
/// assembled in a block on the stack, where small packets fit as a whole.
#[inline]
fn crc<const N: usize>(header: &[u8; N], ib: &[u8]) -> u32 {
    const BLOCK: usize = 256;
    const { assert!(N + Bth::LEN < BLOCK) };

    let mut block = [0; BLOCK];
    let (front, back) = ib.split_at(ib.len().min(BLOCK - N));
    block[..N].copy_from_slice(header);
    let block_ib = &mut block[N..];
    block_ib[..front.len()].copy_from_slice(front);
    // Beyond the end of a run of 4 bytes or less this is not hashed.
    block_ib[BTH_CONGESTION] = 0xFF;
    let mut hasher = Hasher::new_with_initial(LRH_CRC);
    hasher.update(&block[..N + front.len()]);
    if !back.is_empty() {
        hasher.update(back);
    }
    hasher.finalize()
}

/// The ICRC of a packet. `bth_to_pad` is everything in the UDP payload in front of the ICRC.
#[inline]
pub fn compute(envelope: &Envelope, bth_to_pad: &[u8]) -> u32 {
    envelope.crc(bth_to_pad.len() + ICRC_LEN, bth_to_pad)
}

/// Computes the ICRC of `packet`, BTH to ICRC, and writes it to the last four bytes.
///
/// Bytes too few for a BTH and an ICRC are left alone; [`PacketBuilder`](super::PacketBuilder)
/// makes no such packet.
#[inline]
pub fn seal(envelope: &Envelope, packet: &mut [u8]) {
    if let Some((covered, icrc)) = packet.split_last_chunk_mut::<ICRC_LEN>()
        && covered.len() >= Bth::LEN
    {
        *icrc = compute(envelope, covered).to_le_bytes();
    }
}

/// The bytes that the ICRC covers, and the ICRC.
#[inline]
fn split(packet: &[u8]) -> Option<(&[u8], u32)> {
    let (covered, icrc) = packet.split_last_chunk::<ICRC_LEN>()?;
    (covered.len() >= Bth::LEN).then_some((covered, u32::from_le_bytes(*icrc)))
}

/// Whether the ICRC of `packet`, BTH to ICRC, is right.
#[inline]
pub fn verify(envelope: &Envelope, packet: &[u8]) -> bool {
    split(packet).is_some_and(|(covered, icrc)| compute(envelope, covered) == icrc)
}

/// CRC-32 over the masked packet *and* its ICRC: [`RESIDUE`] when the packet is intact.
#[inline]
pub fn residue(envelope: &Envelope, packet: &[u8]) -> u32 {
    envelope.crc(packet.len(), packet)
}

/// The IPv4 identification with which the ICRC of `packet`, BTH to ICRC, is right, if there is one.
///
/// `envelope.ipv4_id` is a guess: if it is right the check costs no more than [`verify`], so give
/// the one that the sender probably used. With IPv6 there is nothing to solve: the guess comes back
/// when the ICRC is right.
#[inline]
pub fn solve_ipv4_id(envelope: &Envelope, packet: &[u8]) -> Option<u16> {
    let (covered, icrc) = split(packet)?;
    let delta = compute(envelope, covered) ^ icrc;
    if delta == 0 {
        return Some(envelope.ipv4_id);
    }
    match envelope.addresses() {
        Addresses::V4(..) => {
            // The identification ends, and its error enters the register, this far from the end.
            let bytes_after = IPV4_UDP_LEN - IDENTIFICATION_END + covered.len();
            let error = rewind(delta, bytes_after + 2);
            // Two bytes of input touch only the low half of the register, first byte lowest.
            let [first, second, 0, 0] = error.to_le_bytes() else {
                return None;
            };
            Some(envelope.ipv4_id ^ u16::from_be_bytes([first, second]))
        }
        Addresses::V6(..) => None,
    }
}

/// Offset in the IPv4 header of the first byte behind the identification.
const IDENTIFICATION_END: usize = 6;

/// The ICRC of a whole IP packet, from its own headers.
///
/// # Errors
/// It is no IP packet that could carry RoCEv2, or its UDP payload is shorter than a BTH and an ICRC.
pub fn compute_ip_packet(ip_packet: &[u8]) -> Result<u32, IpError> {
    check_ip_packet(ip_packet).map(|(computed, _)| computed)
}

/// Whether the ICRC of a whole IP packet is right: the full check, with everything in its headers.
///
/// # Errors
/// As [`compute_ip_packet`].
pub fn verify_ip_packet(ip_packet: &[u8]) -> Result<bool, IpError> {
    check_ip_packet(ip_packet).map(|(computed, received)| computed == received)
}

/// The ICRC as it should be, and as it is.
fn check_ip_packet(ip_packet: &[u8]) -> Result<(u32, u32), IpError> {
    let packet = IpPacket::parse(ip_packet)?;
    let header_len = packet.header_bytes().len();
    let (covered, received) = split(packet.udp_payload).ok_or(IpError::Truncated {
        len: header_len + packet.udp_payload.len(),
        needed: header_len + Bth::LEN + ICRC_LEN,
    })?;
    let computed = match packet.sized_header_bytes() {
        HeaderBytes::V4(&header) => {
            let mut masked = header;
            masked[1] = 0xFF;
            masked[8] = 0xFF;
            masked[10..12].fill(0xFF);
            masked[26..28].fill(0xFF);
            crc(&masked, covered)
        }
        HeaderBytes::V6(&header) => {
            let mut masked = header;
            masked[0] |= 0x0F;
            masked[1..4].fill(0xFF);
            masked[7] = 0xFF;
            masked[46..48].fill(0xFF);
            crc(&masked, covered)
        }
    };
    Ok((computed, received))
}

/// The CRC-32 polynomial, bits reversed: bit 31 of a register is the coefficient of x^0.
const POLYNOMIAL: u32 = 0xEDB8_8320;
const ONE: u32 = 1 << 31;

/// Takes `bytes` zero bytes of input back from a difference of two CRC registers: what the
/// difference was before them.
///
/// A zero bit of input multiplies the register by x modulo the polynomial; so this multiplies by
/// x^(-8 bytes), put together from two tables, one for each half of the number of bytes. A
/// datagram has less than 2^16; beyond that no answer is expected.
#[inline]
fn rewind(register: u32, bytes: usize) -> u32 {
    let [high, low] = (bytes as u16).to_be_bytes();
    let once = multiply(register, BACK_BY_1[usize::from(low)]);
    if high == 0 {
        once
    } else {
        multiply(once, BACK_BY_256[usize::from(high)])
    }
}

/// x^(-8 i) for every i below 256.
static BACK_BY_1: [u32; 256] = powers(back_one_byte(ONE));
/// x^(-8 · 256 i) for every i below 256.
static BACK_BY_256: [u32; 256] = powers(multiply(BACK_BY_1[255], BACK_BY_1[1]));

const fn powers(base: u32) -> [u32; 256] {
    let mut table = [ONE; 256];
    let mut i = 1;
    while i < table.len() {
        table[i] = multiply(table[i - 1], base);
        i += 1;
    }
    table
}

/// Division by x^8.
const fn back_one_byte(mut register: u32) -> u32 {
    let mut bit = 0;
    while bit < 8 {
        // The bit that was shifted out is in the top bit now, as the polynomial has x^0.
        let carry = register >> 31;
        register = ((register ^ (POLYNOMIAL & carry.wrapping_neg())) << 1) | carry;
        bit += 1;
    }
    register
}

/// The product of two polynomials modulo the CRC-32 polynomial.
#[inline]
const fn multiply(a: u32, mut b: u32) -> u32 {
    let mut product = 0;
    let mut bit = 32;
    while bit > 0 {
        bit -= 1;
        product ^= b & (a >> bit & 1).wrapping_neg();
        b = b >> 1 ^ POLYNOMIAL & (b & 1).wrapping_neg();
    }
    product
}
