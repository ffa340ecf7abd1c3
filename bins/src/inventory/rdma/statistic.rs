//! `rdma statistic`: counters.

use verbs_sys::nldev::{CounterSet, HwCounter};

use super::filter::{Filters, Name, key, number, word};
use super::resource::{link, owner, qp_type_word, take_filters};
use super::session::{Failed, Place, Session, Verb};
use super::{Step, help};

const QP_NAMES: &[Name] = &[
    number("cntn"),
    number("lqpn"),
    number("pid"),
    word("qp-type"),
];
const MR_NAMES: &[Name] = &[key("mrn")];

pub(super) fn command(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("show", show),
        Verb("list", show),
        Verb("help", help::statistic),
        Verb("qp", qp),
        Verb("mr", mr),
        Verb("mode", mode),
        Verb("set", refuse_change),
        Verb("unset", refuse_change),
    ];
    session.dispatch(show, VERBS, "statistic command")
}

fn show(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("link", show_links),
        Verb("mr", mr),
        Verb("help", help::statistic),
    ];
    session.dispatch(show_links, VERBS, "parameter")
}

/// Counters are shown here, not changed.
fn refuse_change(session: &mut Session<'_>) -> Step {
    session.refuse("changing counters isn't supported; iproute2's rdma does that")
}

fn show_links(session: &mut Session<'_>) -> Step {
    session.for_ports(false, |session, place| {
        let Some(port) = place.port() else {
            return Ok(());
        };
        let counters = session.ask(|nldev| nldev.counters(place.device, port))?;
        open(session, place, port);
        print_counters(session, &counters);
        session.document.close_object();
        Ok(())
    })
}

fn open(session: &mut Session<'_>, place: &Place, port: u32) {
    let (document, name) = (&mut session.document, &place.name);
    document.open_object();
    document.string("ifname", name, format_args!("link {name}/"));
    document.number("port", port, format_args!("{port} "));
}

fn print_counters(session: &mut Session<'_>, counters: &[HwCounter]) {
    let document = &mut session.document;
    for counter in counters {
        if document.is_plain_pretty() {
            document.plain(format_args!("\n    "));
        }
        document.named_number(&counter.name, Some(counter.value));
    }
}

fn qp(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("show", qp_show),
        Verb("list", qp_show),
        Verb("mode", qp_mode),
        Verb("set", refuse_change),
        Verb("bind", refuse_change),
        Verb("unbind", refuse_change),
        Verb("help", help::statistic),
    ];
    session.dispatch(qp_show, VERBS, "parameter")
}

fn qp_show(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[Verb("link", qp_show_links), Verb("help", help::statistic)];
    session.dispatch(qp_show_links, VERBS, "parameter")
}

fn qp_show_links(session: &mut Session<'_>) -> Step {
    session.for_ports(false, |session, place| {
        let Some(port) = place.port() else {
            return Ok(());
        };
        if !session.words.is_empty() {
            let words: Vec<String> = session.words.iter().cloned().collect();
            match Filters::parse(&words, QP_NAMES) {
                Ok(filters) => session.filters = filters,
                Err(refusal) => return session.refuse(&refusal),
            }
        }
        let sets = session.ask(|nldev| nldev.qp_counters(place.device, port))?;
        for set in &sets {
            if admits(&session.filters, set) {
                print_qp_set(session, place, set);
            }
        }
        Ok(())
    })
}

fn admits(filters: &Filters, set: &CounterSet) -> bool {
    let mut lqpns = set.lqpns.iter();
    filters.admits_number("cntn", set.id)
        && filters.admits_word("qp-type", qp_type_word(set.qp_type.unwrap_or(0)))
        && filters.admits_number("pid", set.pid)
        && lqpns.all(|lqpn| filters.admits_number("lqpn", Some(*lqpn)))
}

fn print_qp_set(session: &mut Session<'_>, place: &Place, set: &CounterSet) {
    let document = &mut session.document;
    document.open_object();
    link(document, place, set.port);
    document.named_number("cntn", set.id);
    if let Some(kind) = set.qp_type {
        document.named_word("qp-type", qp_type_word(kind));
    }
    owner(session, set.pid, set.kern_name.as_deref());
    print_counters(session, &set.counters);
    let lqpns = set.lqpns.iter().copied();
    session
        .document
        .numbers("lqpn", lqpns, ["\n    LQPN: <", ",", ">"]);
    session.document.close_object();
}

fn qp_mode(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[Verb("link", qp_mode_links), Verb("help", help::statistic)];
    session.dispatch(qp_mode_links, VERBS, "parameter")
}

fn qp_mode_links(session: &mut Session<'_>) -> Step {
    session.for_ports(false, |session, place| {
        let Some(port) = place.port() else {
            return Ok(());
        };
        let mode = session.ask(|nldev| nldev.qp_counter_mode(place.device, port))?;
        let document = &mut session.document;
        document.open_object();
        link(document, place, Some(port));
        document.named_word("mode", &mode_text(mode));
        document.close_object();
        Ok(())
    })
}

/// By what queue pairs are bound to counters by themselves.
fn mode_text(mask: Option<u32>) -> String {
    let Some(mask) = mask.filter(|mask| *mask != 0) else {
        return "qp auto off".to_owned();
    };
    let criteria = [(1, "type"), (2, "pid")];
    let set = criteria.iter().filter(|(bit, _)| mask & bit != 0);
    let names: Vec<&str> = set.map(|(_, name)| *name).collect();
    match names.as_slice() {
        [] => "qp auto on".to_owned(),
        names => format!("qp auto {} on", names.join(",")),
    }
}

fn mr(session: &mut Session<'_>) -> Step {
    take_filters(session, MR_NAMES)?;
    session.for_devices(|session, place| {
        let device = place.device;
        if let Some(mrn) = session.filters.object()
            && let Ok(set) = session.try_ask(|nldev| nldev.mr_counter(device, mrn))?
        {
            print_mr_set(session, place, &set);
            return Ok(());
        }
        let is_second = session.filters.object().is_some();
        let sets = match session.try_ask(|nldev| nldev.mr_counters(device))? {
            Ok(sets) => sets,
            Err(_) if is_second => return Err(Failed),
            Err(error) => return session.fail(&error),
        };
        for set in &sets {
            if session.filters.admits_number("mrn", set.mrn) {
                print_mr_set(session, place, set);
            }
        }
        Ok(())
    })
}

fn print_mr_set(session: &mut Session<'_>, place: &Place, set: &CounterSet) {
    let (document, name) = (&mut session.document, &place.name);
    document.open_object();
    document.json_number("ifindex", place.device);
    document.string("ifname", name, format_args!("dev {name} "));
    document.named_number("mrn", set.mrn);
    print_counters(session, &set.counters);
    session.document.close_object();
}

fn mode(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("link", enabled_links),
        Verb("show", enabled_links),
        Verb("supported", supported),
        Verb("help", help::statistic),
    ];
    session.dispatch(enabled_links, VERBS, "parameter")
}

fn supported(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[Verb("link", supported_links), Verb("help", help::statistic)];
    session.dispatch(supported_links, VERBS, "parameter")
}

fn enabled_links(session: &mut Session<'_>) -> Step {
    session.for_ports(false, |session, place| optional(session, place, false))
}

fn supported_links(session: &mut Session<'_>) -> Step {
    session.for_ports(false, |session, place| optional(session, place, true))
}

/// The counters of a port that can be switched: those that count, or all.
fn optional(session: &mut Session<'_>, place: &Place, all: bool) -> Step {
    let Some(port) = place.port() else {
        return Ok(());
    };
    let counters = session.ask(|nldev| nldev.optional_counters(place.device, port))?;
    let shown = counters.iter().filter(|counter| all || counter.enabled);
    let names: Vec<&str> = shown.map(|counter| counter.name.as_str()).collect();
    if names.is_empty() {
        return Ok(());
    }
    open(session, place, port);
    let key = if all {
        "supported optional-counters"
    } else {
        "optional-counters"
    };
    let document = &mut session.document;
    let (first, between) = match document.is_plain_pretty() {
        true => ("\n    ", ",\n    "),
        false => ("", ","),
    };
    let begin = format!("{key} {first}");
    document.strings(key, names, [&begin, between, ""]);
    document.close_object();
    Ok(())
}
