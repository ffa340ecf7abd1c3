//! Writes what goes over a link to a pcap file that Wireshark dissects.
//!
//! The IP and UDP headers are not at hand, and are made up as they were on the
//! wire: the link tells what it has sent (see [`Tappable`]); of a received IPv4
//! packet the identification is solved from the ICRC, so that a packet with a
//! right ICRC shows as such, and one with a wrong ICRC too.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::time::{SystemTime, UNIX_EPOCH};

use super::{IpId, Link, PacketSink, ROCE_PORT, RxPacket, Tappable, TxQueue};
use crate::wire::icrc::{self, Envelope};
use crate::wire::ip::{IPV6_HEADER_LEN, IpUdp, UDP_HEADER_LEN, write_ip_udp_headers};

/// Bytes that wait in memory at most.
const BUFFER_BYTES: usize = 1 << 16;

/// Magic number of a pcap file with timestamps in nanoseconds.
const MAGIC: u32 = 0xA1B2_3C4D;
/// Packets begin with an IPv4 or IPv6 header.
const LINKTYPE_RAW: u32 = 101;
/// Bytes of a packet that are kept: all.
const SNAP_LEN: u32 = 1 << 16;

const MAX_HEADERS: usize = IPV6_HEADER_LEN + UDP_HEADER_LEN;
const PROTOCOL_UDP: u64 = 17;

/// Why there is no capture.
#[derive(Debug, thiserror::Error)]
#[error("can't write the capture file {}: {source}", .path.display())]
pub struct CaptureError {
    /// The file.
    pub path: PathBuf,
    /// Why it can't be written.
    pub source: io::Error,
}

/// A link that writes all its packets to a file. When that fails it says so
/// once, as a warning, and goes on without.
pub struct Capture<L> {
    link: L,
    pcap: Pcap,
}

impl<L: Tappable> Capture<L> {
    /// Captures the packets of `link` to a new file.
    ///
    /// # Errors
    /// When the file can't be written.
    pub fn create(link: L, path: impl AsRef<Path>) -> Result<Self, CaptureError> {
        let pcap = Pcap::create(path.as_ref()).map_err(|source| CaptureError {
            path: path.as_ref().to_owned(),
            source,
        })?;
        Ok(Self { link, pcap })
    }

    /// The link that is captured.
    pub fn get_ref(&self) -> &L {
        &self.link
    }
}

impl<L: Tappable> Link for Capture<L> {
    fn send(&mut self, tx: &mut TxQueue) -> io::Result<()> {
        self.link.send_tapped(tx, &mut self.pcap)
    }

    fn receive(&mut self, sink: &mut dyn PacketSink) -> io::Result<usize> {
        self.link.receive(&mut Both(&mut self.pcap, sink))
    }

    fn want_ip_fields(&mut self, wanted: bool) -> io::Result<()> {
        self.link.want_ip_fields(wanted)
    }

    fn join(&mut self, group: IpAddr) -> io::Result<()> {
        self.link.join(group)
    }

    fn leave(&mut self, group: IpAddr) {
        self.link.leave(group);
    }

    fn wait_fds(&self) -> io::Result<Vec<OwnedFd>> {
        self.link.wait_fds()
    }
}

impl<L: Tappable> Tappable for Capture<L> {
    fn send_tapped(&mut self, tx: &mut TxQueue, tap: &mut dyn PacketSink) -> io::Result<()> {
        self.link.send_tapped(tx, &mut Both(&mut self.pcap, tap))
    }
}

/// Shows packets to the file first, then to another.
struct Both<'a>(&'a mut Pcap, &'a mut dyn PacketSink);

impl PacketSink for Both<'_> {
    fn packet(&mut self, packet: &RxPacket<'_>) {
        self.0.packet(packet);
        self.1.packet(packet);
    }
}

/// The file, until writing fails.
struct Pcap {
    file: Option<BufWriter<File>>,
    path: PathBuf,
}

impl Pcap {
    fn create(path: &Path) -> io::Result<Self> {
        let mut file = BufWriter::with_capacity(BUFFER_BYTES, File::create(path)?);
        // Version 2.4, time zone 0, accuracy 0.
        let fields = [MAGIC, 0x0004_0002, 0, 0, SNAP_LEN, LINKTYPE_RAW];
        for field in fields {
            file.write_all(&field.to_le_bytes())?;
        }
        Ok(Self {
            file: Some(file),
            path: path.to_owned(),
        })
    }

    fn give_up(&mut self, error: &io::Error) {
        let path = self.path.display();
        log::warn!("can't write the capture file {path}: {error}; the capture ends here");
        if let Some(file) = self.file.take() {
            // What could not be written would only fail again.
            let (_file, _rest) = file.into_parts();
        }
    }
}

impl PacketSink for Pcap {
    fn packet(&mut self, packet: &RxPacket<'_>) {
        let Some(file) = &mut self.file else { return };
        if let Err(error) = write_packet(file, packet) {
            self.give_up(&error);
        }
    }
}

impl Drop for Pcap {
    fn drop(&mut self) {
        if let Some(Err(error)) = self.file.as_mut().map(BufWriter::flush) {
            self.give_up(&error);
        }
    }
}

fn write_packet(file: &mut impl Write, packet: &RxPacket<'_>) -> io::Result<()> {
    let header = IpUdp {
        src: packet.src,
        dst: packet.dst,
        tos: packet.traffic_class,
        ttl: packet.hop_limit,
        ipv4_id: ipv4_id(packet),
        dont_fragment: true,
        flow_label: 0,
        src_port: packet.src_port,
        dst_port: ROCE_PORT,
        udp_checksum: udp_checksum(packet),
    };
    let mut headers = [0; MAX_HEADERS];
    let headers_len = write_ip_udp_headers(&mut headers, &header, packet.bytes.len())
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, error))?;
    let len = (headers_len + packet.bytes.len()) as u32;
    let now = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    for field in [now.as_secs() as u32, now.subsec_nanos(), len, len] {
        file.write_all(&field.to_le_bytes())?;
    }
    file.write_all(headers.get(..headers_len).unwrap_or_default())?;
    file.write_all(packet.bytes)
}

/// The identification that the packet had, as far as it can be known.
fn ipv4_id(packet: &RxPacket<'_>) -> u16 {
    let likely = match packet.ip_id {
        IpId::Known(id) => return id,
        IpId::Likely(id) => id,
    };
    let envelope = Envelope {
        src: packet.src,
        dst: packet.dst,
        src_port: packet.src_port,
        ipv4_id: likely,
        dont_fragment: true,
    };
    icrc::solve_ipv4_id(&envelope, packet.bytes).unwrap_or(likely)
}

/// The checksum that a UDP socket gives the packet (RFC 768, RFC 8200 8.1).
fn udp_checksum(packet: &RxPacket<'_>) -> u16 {
    let len = (UDP_HEADER_LEN + packet.bytes.len()) as u64;
    let addresses = match (packet.src, packet.dst) {
        (std::net::IpAddr::V4(src), std::net::IpAddr::V4(dst)) => {
            sum(&src.octets()) + sum(&dst.octets())
        }
        (src, dst) => sum(&as_v6(src)) + sum(&as_v6(dst)),
    };
    // The length counts twice: in the pseudo-header and in the UDP header.
    let ports = u64::from(packet.src_port) + u64::from(ROCE_PORT);
    let mut total = addresses + PROTOCOL_UDP + 2 * len + ports + sum(packet.bytes);
    while total > 0xFFFF {
        total = (total & 0xFFFF) + (total >> 16);
    }
    match !(total as u16) {
        0 => 0xFFFF,
        checksum => checksum,
    }
}

fn as_v6(address: std::net::IpAddr) -> [u8; 16] {
    match address {
        std::net::IpAddr::V4(address) => address.to_ipv6_mapped().octets(),
        std::net::IpAddr::V6(address) => address.octets(),
    }
}

/// The sum of the 16-bit words of `bytes`, with a zero byte added if they are odd.
fn sum(bytes: &[u8]) -> u64 {
    let word = |pair: &[u8]| match *pair {
        [high, low] => u64::from(u16::from_be_bytes([high, low])),
        [high] => u64::from(high) << 8,
        _ => 0,
    };
    bytes.chunks(2).map(word).sum()
}

#[cfg(test)]
mod tests {
    use std::fs;
    use std::net::IpAddr;

    use etherparse::{NetHeaders, PacketHeaders, TransportHeader};

    use super::super::sim::{Faults, IpIds, Network, Verdict};
    use super::super::testing::{Packets, loopback_address, push, receive, route};
    use super::super::udp::{UdpLink, UdpOptions};
    use super::*;

    /// A file that is gone after the test.
    struct TempFile(PathBuf);

    impl TempFile {
        fn new(name: &str) -> Self {
            let name = format!("capture-{name}-{}.pcap", std::process::id());
            Self(std::env::temp_dir().join(name))
        }

        /// The IP packets in it, and their times.
        fn packets(&self) -> Vec<(f64, Vec<u8>)> {
            let bytes = fs::read(&self.0).unwrap();
            let field = |at: usize| u32::from_le_bytes(*bytes[at..].first_chunk().unwrap());
            assert_eq!(field(0), 0xA1B2_3C4D);
            assert_eq!(bytes[4..8], [2, 0, 4, 0]);
            assert_eq!(field(20), 101);
            let mut packets = Vec::new();
            let mut at = 24;
            while at < bytes.len() {
                let time = f64::from(field(at)) + f64::from(field(at + 4)) / 1e9;
                let len = field(at + 8) as usize;
                assert_eq!(field(at + 12) as usize, len);
                at += 16;
                packets.push((time, bytes[at..at + len].to_vec()));
                at += len;
            }
            packets
        }
    }

    impl Drop for TempFile {
        fn drop(&mut self) {
            let _ = fs::remove_file(&self.0);
        }
    }

    /// Checks all checksums of an IP packet; its addresses, ports and identification.
    fn check(packet: &[u8], icrc_is_right: bool) -> (IpAddr, IpAddr, u16, u16) {
        assert_eq!(icrc::verify_ip_packet(packet), Ok(icrc_is_right));
        let parsed = PacketHeaders::from_ip_slice(packet).unwrap();
        let payload = parsed.payload.slice();
        let Some(TransportHeader::Udp(udp)) = parsed.transport else {
            panic!("not UDP")
        };
        assert_eq!(udp.destination_port, 4791);
        assert_eq!(usize::from(udp.length), 8 + payload.len());
        match parsed.net.unwrap() {
            NetHeaders::Ipv4(ip, _) => {
                assert_eq!(ip.header_checksum, ip.calc_header_checksum());
                assert_eq!(usize::from(ip.total_len), packet.len());
                assert!(ip.dont_fragment);
                assert_eq!(udp.checksum, udp.calc_checksum_ipv4(&ip, payload).unwrap());
                let (src, dst) = (ip.source.into(), ip.destination.into());
                (src, dst, udp.source_port, ip.identification)
            }
            NetHeaders::Ipv6(ip, _) => {
                assert_eq!(udp.checksum, udp.calc_checksum_ipv6(&ip, payload).unwrap());
                let (src, dst) = (ip.source.into(), ip.destination.into());
                (src, dst, udp.source_port, 0)
            }
            NetHeaders::Arp(_) => panic!("ARP"),
        }
    }

    #[test]
    fn both_directions_of_a_udp_link_are_written_as_on_the_wire() {
        let (a, b) = (loopback_address(), loopback_address());
        let bind = |address| UdpLink::bind(&[address], &UdpOptions::default()).unwrap();
        let file = TempFile::new("udp");
        let mut captured = Capture::create(bind(a), &file.0).unwrap();
        let mut peer = bind(b);
        let mut tx = TxQueue::new(1 << 16, 10);
        for seed in 0..5 {
            push(&mut tx, route(a, b), 1040 - usize::from(seed == 4), seed);
        }
        captured.send(&mut tx).unwrap();
        assert_eq!(receive(&mut peer, 5).len(), 5);
        for seed in 5..8 {
            push(&mut tx, route(b, a), 40, seed);
        }
        peer.send(&mut tx).unwrap();
        assert_eq!(receive(&mut captured, 3).len(), 3);
        assert_eq!(captured.get_ref().counters().received_packets, 3);
        drop(captured);

        let packets = file.packets();
        let seen: Vec<_> = packets
            .iter()
            .map(|(_, packet)| check(packet, true))
            .collect();
        let there = (0..5).map(|id| (a, b, 4791, id));
        let back = (0..3).map(|id| (b, a, 4791, id));
        assert_eq!(seen, there.chain(back).collect::<Vec<_>>());
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap()
            .as_secs_f64();
        assert!(packets.is_sorted_by(|a, b| a.0 <= b.0));
        assert!(packets.iter().all(|(time, _)| (now - time).abs() < 60.0));
    }

    #[test]
    fn hidden_identifications_are_solved_and_corruption_shows() {
        for addresses in [["192.0.2.1", "192.0.2.2"], ["2001:db8::1", "2001:db8::2"]] {
            let [a, b]: [IpAddr; 2] = addresses.map(|address| address.parse().unwrap());
            let network = Network::new(1, Faults::default());
            network.set_ip_ids(IpIds::Hidden);
            network.set_script(|packet| match packet.index {
                1 => Verdict::Corrupt(8 * 9),
                _ => Verdict::Pass,
            });
            let file = TempFile::new(&format!("sim-{}", a.is_ipv4()));
            let mut sender = network.attach(&[a]);
            let mut captured = Capture::create(network.attach(&[b]), &file.0).unwrap();
            let mut tx = TxQueue::new(1 << 12, 3);
            for seed in 0..3 {
                push(&mut tx, route(a, b), 63, seed);
            }
            let mut sent = Packets::default();
            sender.send_tapped(&mut tx, &mut sent).unwrap();
            assert_eq!(receive(&mut captured, 3).len(), 3);
            // What is sent goes on to another tap, too.
            push(&mut tx, route(b, a), 40, 4);
            captured.send_tapped(&mut tx, &mut sent).unwrap();
            drop(captured);

            let packets = file.packets();
            assert_eq!((packets.len(), sent.0.len()), (4, 4));
            for (index, ((_, packet), sent)) in packets.iter().zip(&sent.0).enumerate() {
                let (src, dst, src_port, id) = check(packet, index != 1);
                assert_eq!((src, dst), (sent.route.src, sent.route.dst));
                assert_eq!(src_port, sent.src_port);
                if a.is_ipv4() && index != 1 {
                    assert_eq!(IpId::Known(id), sent.ip_id);
                    assert_eq!(packet[28..], sent.bytes);
                }
            }
        }
    }

    #[test]
    fn a_full_disk_stops_the_capture_but_not_the_traffic() {
        let network = Network::new(1, Faults::default());
        let [a, b] = [1, 2].map(|last| IpAddr::from([192, 0, 2, last]));
        let mut captured = Capture::create(network.attach(&[a]), "/dev/full").unwrap();
        let mut peer = network.attach(&[b]);
        let mut tx = TxQueue::new(1 << 20, 100);
        for seed in 0..100 {
            push(&mut tx, route(a, b), 4112, seed);
        }
        captured.send(&mut tx).unwrap();
        assert!(captured.pcap.file.is_none());
        assert_eq!(receive(&mut peer, 100).len(), 100);
    }

    #[test]
    fn the_file_is_named_when_it_cannot_be_created() {
        let network = Network::new(1, Faults::default());
        let path = "/nonexistent/x.pcap";
        let error = Capture::create(network.attach(&[]), path).err().unwrap();
        assert!(error.to_string().contains(path), "{error}");
    }
}
