//! The kinds of objects: by what they can be filtered, and how they are printed.

use verbs_sys::nldev::{Object, Table};

use super::super::filter::{Filters, Name, key, number, word};
use super::super::session::{Place, Session};
use super::lines;

/// A kind of object.
pub(in super::super) struct Kind {
    pub(super) table: Table,
    /// Whether its objects belong to ports.
    pub(super) of_ports: bool,
    /// Whether drivers can show it as they hold it.
    pub(super) has_raw: bool,
    /// By what it can be filtered.
    pub(super) names: &'static [Name],
    /// Prints an object.
    pub(super) print: fn(&mut Session<'_>, &Place, &Object),
}

pub(super) const QP: Kind = Kind {
    table: Table::Qp,
    of_ports: true,
    has_raw: true,
    names: &[
        word("link"),
        key("lqpn"),
        number("rqpn"),
        number("pid"),
        number("sq-psn"),
        number("rq-psn"),
        word("type"),
        word("path-mig-state"),
        word("state"),
        number("pdn"),
    ],
    print: lines::qp,
};

pub(super) const CM_ID: Kind = Kind {
    table: Table::CmId,
    of_ports: true,
    has_raw: false,
    names: &[
        word("link"),
        number("lqpn"),
        word("qp-type"),
        word("state"),
        word("ps"),
        word("dev-type"),
        word("transport-type"),
        number("pid"),
        word("src-addr"),
        number("src-port"),
        word("dst-addr"),
        number("dst-port"),
        key("cm-idn"),
    ],
    print: lines::cm_id,
};

pub(super) const CQ: Kind = Kind {
    table: Table::Cq,
    of_ports: false,
    has_raw: true,
    names: &[
        word("dev"),
        number("users"),
        word("poll-ctx"),
        number("pid"),
        key("cqn"),
        number("ctxn"),
    ],
    print: lines::cq,
};

pub(super) const MR: Kind = Kind {
    table: Table::Mr,
    of_ports: false,
    has_raw: true,
    names: &[
        word("dev"),
        number("rkey"),
        number("lkey"),
        number("mrlen"),
        number("pid"),
        key("mrn"),
        number("pdn"),
    ],
    print: lines::mr,
};

pub(super) const PD: Kind = Kind {
    table: Table::Pd,
    of_ports: false,
    has_raw: false,
    names: &[
        word("dev"),
        number("users"),
        number("pid"),
        number("ctxn"),
        key("pdn"),
    ],
    print: lines::pd,
};

pub(super) const CTX: Kind = Kind {
    table: Table::Ctx,
    of_ports: false,
    has_raw: false,
    names: &[word("dev"), number("pid"), key("ctxn")],
    print: lines::ctx,
};

pub(super) const SRQ: Kind = Kind {
    table: Table::Srq,
    of_ports: false,
    has_raw: false,
    names: &[
        word("dev"),
        number("pid"),
        key("srqn"),
        word("type"),
        number("pdn"),
        number("cqn"),
        number("lqpn"),
    ],
    print: lines::srq,
};

impl Kind {
    /// Whether an object is of this place and passes the filters.
    pub(super) fn admits(&self, filters: &Filters, place: &Place, object: &Object) -> bool {
        let of_place = match self.table {
            Table::Qp => object.port.unwrap_or(0) == place.port,
            Table::CmId => object
                .port
                .is_none_or(|port| port == 0 || port == place.port),
            _ => true,
        };
        let names = self.names.iter();
        of_place
            && names
                .map(|name| name.name)
                .all(|name| self.passes(filters, name, object))
    }

    fn passes(&self, filters: &Filters, name: &str, object: &Object) -> bool {
        let number = |value: Option<u32>| filters.admits_number(name, value);
        let port = |address: Option<std::net::SocketAddr>| {
            filters.admits_number(name, address.map(|address| u32::from(address.port())))
        };
        let ip = |address: Option<std::net::SocketAddr>| {
            let text = address.map(|address| address.ip().to_string());
            filters.admits_word(name, text.as_deref().unwrap_or_default())
        };
        match name {
            "lqpn" if self.table == Table::Srq => {
                !filters.has(name) || !lines::srq_qps(filters, object).is_empty()
            }
            "lqpn" => number(object.lqpn),
            "rqpn" => number(object.rqpn),
            "pid" => number(object.pid),
            "sq-psn" => number(object.sq_psn),
            "rq-psn" => number(object.rq_psn),
            "pdn" => number(object.pdn),
            "cqn" => number(object.cqn),
            "mrn" => number(object.mrn),
            "ctxn" => number(object.ctxn),
            "srqn" => number(object.srqn),
            "cm-idn" => number(object.cm_idn),
            "users" => filters.admits_number(name, object.users),
            "mrlen" => filters.admits_number(name, object.length),
            "src-port" => port(object.source),
            "dst-port" => port(object.destination),
            "src-addr" => ip(object.source),
            "dst-addr" => ip(object.destination),
            "type" if self.table == Table::Srq => {
                filters.admits_word(name, lines::srq_type_word(object))
            }
            "type" | "qp-type" => {
                let kind = object.kind.unwrap_or(0);
                filters.admits_word(name, lines::qp_type_word(kind))
            }
            "state" if self.table == Table::CmId => {
                filters.admits_word(name, lines::cm_id_state_word(object))
            }
            "state" => filters.admits_word(name, lines::qp_state_word(object)),
            "path-mig-state" => filters.admits_word(name, lines::path_mig_word(object)),
            "ps" => filters.admits_word(name, lines::port_space_word(object)),
            "poll-ctx" => filters.admits_word(name, lines::poll_context_word(object)),
            // `dev` and `link` choose the place; by the others nothing is
            // chosen, as the original has it.
            _ => true,
        }
    }
}
