//! `rdma system`: what holds for all devices.

use verbs_sys::nldev::NetnsMode;

use super::super::words::word;
use super::session::{Session, Verb};
use super::{Step, help};

pub(super) fn command(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[
        Verb("show", show),
        Verb("set", set),
        Verb("help", help::system),
    ];
    session.dispatch(show, VERBS, "system command")
}

fn show(session: &mut Session<'_>) -> Step {
    session.dispatch(show_all, &[Verb("netns", show_all)], "parameter")
}

/// Always plain, as the original has it.
fn show_all(session: &mut Session<'_>) -> Step {
    let system = session.ask(|nldev| nldev.system())?;
    if let Some(mode) = system.netns_mode {
        let mode = word(&["exclusive", "shared"], mode, "unknown");
        session.document.named_word("netns", mode);
    }
    let copied = match system.copy_on_fork {
        None | Some(0) => "off",
        Some(_) => "on",
    };
    session.document.line(format_args!("copy-on-fork {copied}"));
    Ok(())
}

fn set(session: &mut Session<'_>) -> Step {
    const VERBS: &[Verb] = &[Verb("help", help::system_set), Verb("netns", set_netns)];
    session.dispatch(help::system_set, VERBS, "parameter")
}

fn set_netns(session: &mut Session<'_>) -> Step {
    let mode = match session.take().as_deref() {
        Some("shared") => NetnsMode::Shared,
        Some("exclusive") => NetnsMode::Exclusive,
        _ => return session.refuse("valid options are: { shared | exclusive }"),
    };
    session.ask(|nldev| nldev.set_netns_mode(mode))
}
