//! Changing and reading the attributes of a queue pair (IBTA 11.2.5).

use verbs_sys::{AddressVector, QpAttributes, QpState, QpType, Result};

use super::{QueuePair, Shared};
use crate::link::Route;
use crate::transport::attributes::{check_ranges, check_transition};
use crate::wire::Psn;

impl QueuePair {
    /// All attributes; the PSNs are the next ones, as rxe reports them.
    pub(crate) fn query(&self) -> QpAttributes {
        let mut attributes = self.attributes;
        attributes.state = Some(self.state);
        attributes.sq_psn = Some(self.requester.next_psn().value());
        attributes.rq_psn = Some(match self.identity.qp_type {
            QpType::Uc => self.unreliable.expected_psn().value(),
            _ => self.responder.expected_psn().value(),
        });
        attributes
    }

    /// The path that a transition to RTR takes, for the NIC to resolve.
    pub(crate) fn check_modify(&self, change: &QpAttributes) -> Result<Option<AddressVector>> {
        check_transition(self.identity.qp_type, self.state, change)?;
        check_ranges(change)?;
        Ok(change.av)
    }

    /// Changes attributes that [`Self::check_modify`] has allowed. `route` is
    /// what the path resolved to, `window` the packets that may be in flight.
    pub(crate) fn modify(
        &mut self,
        change: &QpAttributes,
        route: Option<Route>,
        window: u32,
        shared: &mut Shared,
    ) {
        let to = change.state.unwrap_or(self.state);
        self.window = window;
        self.store(change);
        if route.is_some() {
            self.connection.route = route;
        }
        match to {
            QpState::Reset => self.reset(shared),
            QpState::Error => self.enter_error(shared),
            _ => {
                if self.state == QpState::Rts && to == QpState::Sqd {
                    self.drain_pending = self.attributes.en_sqd_async_notify.unwrap_or(false);
                }
                self.state = to;
                self.connection.starts_requests = to == QpState::Rts;
                self.report_drained(shared);
            }
        }
    }

    fn store(&mut self, change: &QpAttributes) {
        let stored = &mut self.attributes;
        macro_rules! take {
            ($($field:ident),*) => { $(if change.$field.is_some() { stored.$field = change.$field; })* };
        }
        take!(
            en_sqd_async_notify,
            access_flags,
            pkey_index,
            port,
            qkey,
            av,
            path_mtu,
            timeout,
            retry_cnt,
            rnr_retry,
            rq_psn,
            max_qp_rd_atomic,
            min_rnr_timer,
            sq_psn,
            max_dest_rd_atomic,
            dest_qpn
        );
        if let Some(access) = change.access_flags {
            self.responder.set_access(access);
            self.unreliable.set_access(access);
        }
        if let Some(code) = change.min_rnr_timer {
            self.responder.set_min_rnr_timer(code);
        }
        if let Some(depth) = change.max_dest_rd_atomic {
            self.responder.set_depth(depth);
        }
        if let Some(psn) = change.rq_psn {
            self.responder.start(Psn::new(psn));
            self.unreliable.start(Psn::new(psn));
        }
        if let Some(path_mtu) = change.path_mtu {
            self.connection.path_mtu = path_mtu;
        }
        if let Some(dest_qpn) = change.dest_qpn {
            self.connection.dest_qpn = dest_qpn;
        }
        if let Some(qkey) = change.qkey {
            self.connection.qkey = qkey;
        }
        self.requester.configure(change, self.window);
    }

    fn reset(&mut self, shared: &mut Shared) {
        self.state = QpState::Reset;
        self.attributes = QpAttributes::default();
        self.connection.route = None;
        self.connection.starts_requests = false;
        self.established = false;
        self.drain_pending = false;
        self.requester.reset();
        self.responder.reset();
        self.purge(shared);
    }
}
