//! One host whose peer is a script of raw packets.

use std::net::IpAddr;

use super::{Datagram, Host, Setup};
use crate::link::Route;
use crate::time::Time;
use crate::transport::Acks;
use crate::wire::{
    Aeth, AtomicAckEth, AtomicEth, Bth, DEFAULT_PKEY, Deth, Ieth, ImmDt, Opcode, Operation,
    PacketBuilder, Psn, Reth, Service, Syndrome, XrcEth,
};

/// Queue pair of the peer that isn't there.
pub(crate) const PEER_QPN: u32 = 0x77;

/// A packet to be made, right or wrong.
#[derive(Debug, Clone)]
pub(crate) struct Raw {
    pub(crate) service: Service,
    pub(crate) operation: Operation,
    /// Counted from the first PSN of whoever requests.
    pub(crate) psn: i32,
    pub(crate) ack_request: bool,
    pub(crate) solicited: bool,
    pub(crate) reth: Reth,
    pub(crate) atomic: AtomicEth,
    pub(crate) aeth: Aeth,
    pub(crate) original: u64,
    pub(crate) imm: u32,
    pub(crate) rkey: u32,
    pub(crate) deth: Deth,
    /// Of XRC requests.
    pub(crate) srqn: u32,
    pub(crate) payload: Vec<u8>,
    pub(crate) pkey: u16,
    pub(crate) dest_qpn: Option<u32>,
    /// Changes the finished bytes before they are sealed.
    pub(crate) patch: Option<fn(&mut Vec<u8>)>,
}

impl Raw {
    pub(crate) fn new(operation: Operation, psn: i32) -> Self {
        Self {
            service: Service::Rc,
            operation,
            psn,
            ack_request: true,
            solicited: false,
            reth: Reth {
                va: 0,
                rkey: 0,
                length: 0,
            },
            atomic: AtomicEth {
                va: 0,
                rkey: 0,
                swap_or_add: 0,
                compare: 0,
            },
            aeth: Aeth::new(
                Syndrome::Ack {
                    credits: Syndrome::NO_CREDITS,
                },
                Psn::new(0),
            ),
            original: 0,
            imm: 0,
            rkey: 0,
            deth: Deth {
                qkey: super::QKEY,
                source_qpn: PEER_QPN,
            },
            srqn: 0,
            payload: Vec::new(),
            pkey: DEFAULT_PKEY,
            dest_qpn: None,
            patch: None,
        }
    }

    pub(crate) fn no_ack(self) -> Self {
        Self {
            ack_request: false,
            ..self
        }
    }

    pub(crate) fn payload(self, payload: impl Into<Vec<u8>>) -> Self {
        Self {
            payload: payload.into(),
            ..self
        }
    }

    pub(crate) fn bytes(&self, dest_qpn: u32, base: u32) -> Vec<u8> {
        let opcode = Opcode::new(self.service, self.operation).unwrap();
        let psn = Psn::new(base.wrapping_add(self.psn as u32));
        let bth = Bth {
            ack_request: self.ack_request && self.operation.is_request(),
            solicited: self.solicited,
            pkey: self.pkey,
            ..Bth::new(opcode, self.dest_qpn.unwrap_or(dest_qpn), psn)
        };
        let mut bytes = vec![0; self.payload.len() + 80];
        let mut builder = PacketBuilder::new(&mut bytes, bth).unwrap();
        if self.service == Service::Xrc && self.operation.is_request() {
            builder = builder.xrceth(XrcEth { srqn: self.srqn });
        }
        if self.service == Service::Ud {
            builder = builder.deth(self.deth);
        }
        if self.operation.has_reth() {
            builder = builder.reth(self.reth);
        }
        if matches!(self.operation, Operation::CompareSwap | Operation::FetchAdd) {
            builder = builder.atomic_eth(self.atomic);
        }
        if self.operation.has_aeth() {
            builder = builder.aeth(self.aeth);
        }
        if self.operation == Operation::AtomicAcknowledge {
            builder = builder.atomic_ack_eth(AtomicAckEth {
                original: self.original,
            });
        }
        if self.operation.has_immediate() {
            builder = builder.immediate(ImmDt(self.imm));
        }
        if self.operation.has_invalidate() {
            builder = builder.ieth(Ieth { rkey: self.rkey });
        }
        let builder = builder
            .payload(self.payload.len(), |room| {
                room.copy_from_slice(&self.payload);
            })
            .unwrap();
        let length = builder.finish().unwrap();
        bytes.truncate(length);
        if let Some(patch) = self.patch {
            patch(&mut bytes);
        }
        bytes
    }
}

/// A host in RTS, connected to nobody.
pub(crate) struct Lone {
    pub(crate) now: Time,
    pub(crate) host: Host,
    pub(crate) peer: IpAddr,
    /// Where the packets go that it is given.
    pub(crate) to: IpAddr,
    pub(crate) setup: Setup,
}

impl Lone {
    pub(crate) fn new(setup: &Setup) -> Self {
        let mut host = Host::new(1, setup);
        let peer = Host::new(2, setup).address;
        let [sq_psn, rq_psn] = setup.psn;
        host.connect(host.qpn, peer, PEER_QPN, [sq_psn, rq_psn]);
        Self {
            now: Time::ZERO,
            to: host.address,
            host,
            peer,
            setup: setup.clone(),
        }
    }

    /// The way from the peer.
    pub(crate) fn route(&self) -> Route {
        Route {
            src: self.peer,
            dst: self.to,
            traffic_class: 0,
            hop_limit: 64,
        }
    }

    fn datagram(&self, raw: &Raw) -> Datagram {
        // Requests count in the peer's PSNs, responses in the host's own.
        let base = match raw.operation.is_request() {
            true => self.setup.psn[1],
            false => self.setup.psn[0],
        };
        Datagram::sealed(self.route(), raw.bytes(self.host.qpn, base))
    }

    /// Hands a packet to the host.
    pub(crate) fn deliver(&mut self, raw: &Raw) {
        let datagram = self.datagram(raw);
        self.host.nic.receive(self.now, &datagram.arrived());
    }

    /// Hands a packet to the host whose ICRC is wrong.
    pub(crate) fn deliver_broken(&mut self, raw: &Raw) {
        let mut datagram = self.datagram(raw);
        if let Some(last) = datagram.bytes.last_mut() {
            *last ^= 1;
        }
        self.host.nic.receive(self.now, &datagram.arrived());
    }

    /// Hands over packets; returns what the host sends thereupon: answers
    /// with PSNs counted from the peer's first.
    pub(crate) fn answers(&mut self, raws: &[Raw]) -> Vec<String> {
        for raw in raws {
            self.deliver(raw);
        }
        let base = self.setup.psn[1];
        let sent = self.host.transmit(self.now, Acks::All);
        sent.iter().map(|datagram| datagram.text(base)).collect()
    }

    /// Hands over packets; returns what the host sends thereupon: requests,
    /// with PSNs counted from its own first.
    pub(crate) fn requests(&mut self, raws: &[Raw]) -> Vec<String> {
        for raw in raws {
            self.deliver(raw);
        }
        let base = self.setup.psn[0];
        let sent = self.host.transmit(self.now, Acks::All);
        sent.iter().map(|datagram| datagram.text(base)).collect()
    }

    /// Moves the clock to the next deadline; `false` when there is none.
    pub(crate) fn wait(&mut self) -> bool {
        let Some(deadline) = self.host.nic.next_deadline() else {
            return false;
        };
        self.now = self.now.max(deadline);
        self.host.nic.handle_timers(self.now);
        true
    }

    pub(crate) fn reth(&self, offset: usize, length: u32) -> Reth {
        let remote = self.host.remote(offset);
        Reth {
            va: remote.addr,
            rkey: remote.rkey,
            length,
        }
    }
}
