//! `rdma resource`: the objects of devices.

mod lines;
mod tables;

use verbs_sys::nldev::Object;

use super::filter::Filters;
use super::session::{Place, Session, Verb};
use super::{Step, help};
pub(super) use lines::{link, owner, qp_type_word};
pub(super) use tables::Kind;

pub(super) fn command(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("show", show),
        Verb("list", show),
        Verb("help", help::resource),
    ];
    session.dispatch(show, VERBS, "resource command")
}

fn show(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("qp", |session| table(session, &tables::QP)),
        Verb("cm_id", |session| table(session, &tables::CM_ID)),
        Verb("cq", |session| table(session, &tables::CQ)),
        Verb("mr", |session| table(session, &tables::MR)),
        Verb("pd", |session| table(session, &tables::PD)),
        Verb("ctx", |session| table(session, &tables::CTX)),
        Verb("srq", |session| table(session, &tables::SRQ)),
    ];
    if session.only_word_is_device()? {
        return session.for_devices(summary);
    }
    session.dispatch(|session| session.for_devices(summary), VERBS, "parameter")
}

/// How many objects of each kind there are.
fn summary(session: &mut Session<'_>, place: &Place) -> Step {
    let counts = session.ask(|nldev| nldev.summary(place.device))?;
    let document = &mut session.document;
    let (index, name) = (place.device, &place.name);
    document.open_object();
    document.number("ifindex", index, format_args!("{index}: "));
    document.string("ifname", name, format_args!("{name}: "));
    for (name, count) in counts {
        document.named_number(&name, Some(count));
    }
    document.close_object();
    Ok(())
}

fn table(session: &mut Session<'_>, kind: &'static Kind) -> Step {
    take_filters(session, kind.names)?;
    session.kind = Some(kind);
    if kind.of_ports {
        session.for_ports(false, objects)
    } else {
        session.for_devices(objects)
    }
}

/// Reads `[FILTER-NAME FILTER-VALUE]...`, and leaves what stands behind `dev` or
/// `link` as the next word.
pub(super) fn take_filters(session: &mut Session<'_>, names: &[super::filter::Name]) -> Step {
    if !session.words.is_empty() {
        let words: Vec<String> = session.words.iter().cloned().collect();
        match Filters::parse(&words, names) {
            Ok(filters) => session.filters = filters,
            Err(refusal) => return session.refuse(&refusal),
        }
    }
    while let Some(word) = session.take() {
        if "dev".starts_with(&word) || "link".starts_with(&word) {
            if session.words.is_empty() {
                return session.refuse("No device name was supplied");
            }
            return Ok(());
        }
    }
    Ok(())
}

fn objects(session: &mut Session<'_>, place: &Place) -> Step {
    let Some(kind) = session.kind else {
        return Ok(());
    };
    let (table, device, port) = (kind.table, place.device, place.port());
    let raw = session.options.raw && kind.has_raw;
    if let Some(number) = session.filters.object() {
        match session.try_ask(|nldev| nldev.object(table, device, port, raw, number))? {
            Ok(object) => return line(session, kind, place, &object),
            // Kernels before 5.3 can't be asked for one object: look for it.
            Err(_) if !raw => {
                let found = session.try_ask(|nldev| nldev.objects(table, device, port, raw))?;
                let objects = found.map_err(|_| super::session::Failed)?;
                return lines(session, kind, place, &objects);
            }
            Err(_) => return Err(super::session::Failed),
        }
    }
    let objects = session.ask(|nldev| nldev.objects(table, device, port, raw))?;
    lines(session, kind, place, &objects)
}

fn lines(session: &mut Session<'_>, kind: &Kind, place: &Place, objects: &[Object]) -> Step {
    objects
        .iter()
        .try_for_each(|object| line(session, kind, place, object))
}

fn line(session: &mut Session<'_>, kind: &Kind, place: &Place, object: &Object) -> Step {
    if let (Some(bytes), true) = (&object.raw, session.options.raw && kind.has_raw) {
        lines::raw(&mut session.document, kind, place, object, bytes);
    } else if kind.admits(&session.filters, place, object) {
        (kind.print)(session, place, object);
    }
    Ok(())
}
