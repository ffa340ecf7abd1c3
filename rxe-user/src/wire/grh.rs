//! The image of a global routing header in front of what a UD receive delivers.
//!
//! Verbs give the first 40 bytes of every UD receive buffer to the GRH (IBTA vol. 1, 8.3 and
//! 11.4.1.2). RoCEv2 has an IP header in its place: an IPv6 header fills the 40 bytes, an IPv4
//! header is the last 20 of them (Annex A17). Consumers tell which by a valid IPv4 header
//! checksum, so it has to be right.

use core::net::IpAddr;

use super::ip::{IPV4_HEADER_LEN, ipv4_header, ipv6_header};
use super::{IpError, IpUdp};

/// Bytes of the image.
pub const GRH_LEN: usize = 40;

/// The image for a packet with `udp_payload_len` bytes in UDP (BTH to ICRC).
///
/// A UDP socket does not tell all of the header; what it hides may be anything plausible.
/// With IPv4 the first 20 bytes are 0, as rxe has them.
///
/// # Errors
/// The payload is too long, or the addresses are of different IP versions.
pub fn image(header: &IpUdp, udp_payload_len: usize) -> Result<[u8; GRH_LEN], IpError> {
    match (header.src, header.dst) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => {
            let mut image = [0; GRH_LEN];
            image[GRH_LEN - IPV4_HEADER_LEN..].copy_from_slice(&ipv4_header(
                header,
                src,
                dst,
                udp_payload_len,
            )?);
            Ok(image)
        }
        (IpAddr::V6(src), IpAddr::V6(dst)) => ipv6_header(header, src, dst, udp_payload_len),
        (src, dst) => Err(IpError::MixedFamilies { src, dst }),
    }
}
