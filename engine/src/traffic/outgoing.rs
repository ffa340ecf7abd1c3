//! What is sent, and which way it takes.

use verbs_sys::{AddressHandle, UdTarget};

use crate::exchange::KeyRecord;
use crate::options::Params;
use crate::run::{Granted, Prepared, Returns, Route, Shape};
use crate::setup::{CreditMemory, Memory};
use crate::words::Connection;

/// The peer's queue pairs, and the ways to them.
#[derive(Clone, Copy)]
pub(super) struct Outgoing<'a> {
    pub(super) params: &'a Params,
    pub(super) peers: &'a [KeyRecord],
    pub(super) handles: &'a [Box<dyn AddressHandle>],
    /// Of the peer's queue pairs, for datagrams.
    pub(super) qkey: u32,
}

impl<'a> Outgoing<'a> {
    /// The requests of all queue pairs that send, for messages of one size.
    pub(super) fn prepared(&self, memory: &Memory, size: u32, inline: u32) -> Vec<Prepared<'a>> {
        let shape = Shape {
            size: size as usize,
            list: self.params.post_list as usize,
            inline,
        };
        (0..self.params.flows() as usize)
            .filter_map(|qp| {
                let peer = self.peer(qp)?;
                Some(Prepared::new(
                    memory,
                    qp,
                    peer,
                    &shape,
                    self.route(qp, peer),
                ))
            })
            .collect()
    }

    /// What senders may send and receivers tell them, where that matters. A
    /// new run counts from zero.
    pub(super) fn credits<'m>(
        &self,
        memory: Option<&'m CreditMemory>,
    ) -> (Option<Granted<'m>>, Option<Returns<'m>>) {
        let Some(memory) = memory else {
            return (None, None);
        };
        (
            Some(Granted::new(memory, self.params)),
            Some(Returns::new(memory, self.peers, self.params)),
        )
    }

    /// The queue pair that messages of queue pair `qp` go to.
    pub(super) fn peer(&self, qp: usize) -> Option<&'a KeyRecord> {
        self.peers.get(self.params.partner(qp))
    }

    /// The way there.
    pub(super) fn route(&self, qp: usize, peer: &KeyRecord) -> Route<'a> {
        Route {
            ud: self.handles.get(qp).map(|handle| UdTarget {
                ah: &**handle,
                qpn: peer.qpn,
                qkey: self.qkey,
            }),
            xrc_srqn: (self.params.connection == Connection::Xrc).then_some(peer.srqn),
        }
    }
}
