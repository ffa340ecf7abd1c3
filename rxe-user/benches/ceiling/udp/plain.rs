//! The least a program can do: CRC, a segmented send; a merged receive, CRC,
//! one copy.

use std::io::{IoSlice, IoSliceMut};
use std::net::{Ipv4Addr, SocketAddrV4, UdpSocket};
use std::os::fd::AsRawFd;

use nix::errno::Errno;
use nix::sys::socket::sockopt::{RcvBuf, RcvBufForce, UdpGroSegment};
use nix::sys::socket::{
    ControlMessage, ControlMessageOwned, MsgFlags, SockaddrIn, recvmsg, sendmsg, sendto, setsockopt,
};

use super::Result;
use super::port::{Arrival, CRC, DATA, Destination, HEADER, Port, SMALL, WORD};

/// Segments of one send.
const MAX_SEGMENTS: usize = 64;
/// Bytes of one send.
const MAX_BYTES: usize = 65507;
const RECEIVE_BUFFER: usize = 8 << 20;

/// A UDP socket of `lo` and its peer.
pub(crate) struct Plain {
    socket: UdpSocket,
    peer: SockaddrIn,
    /// As many packets of payload as one send takes.
    out: Vec<u8>,
    packet_len: usize,
    packets: u64,
    word: [u8; HEADER + SMALL + CRC],
    buffer: Vec<u8>,
    control: Vec<u8>,
    destination: Destination,
}

impl Plain {
    /// Takes a port; packets carry `payload` bytes.
    pub(crate) fn new(payload: usize) -> Result<Self> {
        let socket = UdpSocket::bind((Ipv4Addr::LOCALHOST, 0))?;
        socket.set_nonblocking(true)?;
        setsockopt(&socket, UdpGroSegment, &true)?;
        if setsockopt(&socket, RcvBufForce, &RECEIVE_BUFFER).is_err() {
            setsockopt(&socket, RcvBuf, &RECEIVE_BUFFER)?;
        }
        let packet_len = HEADER + payload + CRC;
        let segments = MAX_SEGMENTS.min(MAX_BYTES / packet_len);
        let mut out: Vec<u8> = (0..segments * packet_len).map(|i| i as u8).collect();
        out.chunks_exact_mut(packet_len)
            .for_each(|packet| packet[0] = DATA);
        Ok(Self {
            socket,
            peer: SockaddrIn::new(127, 0, 0, 1, 0),
            out,
            packet_len,
            packets: 0,
            word: [WORD; HEADER + SMALL + CRC],
            buffer: vec![0; 1 << 16],
            control: nix::cmsg_space!(i32),
            destination: Destination::new(),
        })
    }

    pub(crate) fn port(&self) -> Result<u16> {
        Ok(self.socket.local_addr()?.port())
    }

    pub(crate) fn connect(&mut self, port: u16) {
        self.peer = SocketAddrV4::new(Ipv4Addr::LOCALHOST, port).into();
    }
}

impl Port for Plain {
    fn send_data(&mut self, count: usize) -> Result<()> {
        let mut left = count;
        while left > 0 {
            let count = left.min(self.out.len() / self.packet_len);
            let run = self
                .out
                .get_mut(..count * self.packet_len)
                .unwrap_or_default();
            for packet in run.chunks_exact_mut(self.packet_len) {
                self.packets += 1;
                packet[4..12].copy_from_slice(&self.packets.to_be_bytes());
                seal(packet);
            }
            let segment = self.packet_len as u16;
            sendmsg(
                self.socket.as_raw_fd(),
                &[IoSlice::new(run)],
                &[ControlMessage::UdpGsoSegments(&segment)],
                MsgFlags::MSG_DONTWAIT,
                Some(&self.peer),
            )?;
            left -= count;
        }
        Ok(())
    }

    fn send_word(&mut self, word: u64) -> Result<()> {
        self.word[HEADER..HEADER + 8].copy_from_slice(&word.to_be_bytes());
        seal(&mut self.word);
        let flags = MsgFlags::MSG_DONTWAIT;
        sendto(self.socket.as_raw_fd(), &self.word, &self.peer, flags)?;
        Ok(())
    }

    fn receive(&mut self, mut each: impl FnMut(Arrival)) -> Result<usize> {
        let mut place = [IoSliceMut::new(&mut self.buffer)];
        let received = recvmsg::<SockaddrIn>(
            self.socket.as_raw_fd(),
            &mut place,
            Some(&mut self.control),
            MsgFlags::MSG_DONTWAIT,
        );
        let (len, segment) = match received {
            Ok(message) => {
                let segment = message.cmsgs()?.find_map(|control| match control {
                    ControlMessageOwned::UdpGroSegments(size) => usize::try_from(size).ok(),
                    _ => None,
                });
                (message.bytes, segment)
            }
            Err(Errno::EAGAIN) => return Ok(0),
            Err(errno) => return Err(errno.into()),
        };
        let bytes = self.buffer.get(..len).unwrap_or_default();
        let mut packets = 0;
        for packet in bytes.chunks(segment.unwrap_or(len).max(1)) {
            each(if is_sealed(packet) {
                self.destination.take(packet)
            } else {
                Arrival::Garbage
            });
            packets += 1;
        }
        Ok(packets)
    }
}

fn seal(packet: &mut [u8]) {
    if let Some((covered, crc)) = packet.split_last_chunk_mut::<CRC>() {
        *crc = crc32fast::hash(covered).to_le_bytes();
    }
}

fn is_sealed(packet: &[u8]) -> bool {
    packet
        .split_last_chunk::<CRC>()
        .is_some_and(|(covered, crc)| *crc == crc32fast::hash(covered).to_le_bytes())
}
