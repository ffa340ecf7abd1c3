//! `rdma`: what the kernel's device management knows.
//!
//! | file | |
//! |---|---|
//! | `options` | the options before the object |
//! | `session` | a running command: arguments, devices, what it prints |
//! | `filter` | `lqpn 17,20-30 type RC` behind `resource show` |
//! | `help` | the help texts |
//! | `dev`, `link`, `system`, `resource`, `statistic` | the objects |
//!
//! Words are abbreviated as iproute2 takes them: any beginning of a word stands
//! for the first word that begins so.

mod batch;
mod dev;
mod filter;
mod help;
mod link;
mod options;
mod resource;
mod session;
mod statistic;
mod system;

use super::{Report, System};
use options::{Asked, Options};
use session::{Failed, Session, Verb};

/// Whether a command went well. What went wrong has been printed.
type Step = Result<(), Failed>;

const OBJECTS: &[Verb] = &[
    Verb("help", help::general),
    Verb("dev", dev::command),
    Verb("link", link::command),
    Verb("resource", resource::command),
    Verb("system", system::command),
    Verb("statistic", statistic::command),
];

/// `rdma [OPTIONS] OBJECT COMMAND`.
#[must_use]
pub fn rdma(program: &str, arguments: &[String], system: &System<'_>) -> Report {
    let name = program.rsplit('/').next().unwrap_or(program);
    match options::parse(arguments) {
        Ok(Asked::Run(options)) => run(name, &options, system),
        Ok(Asked::Version) => {
            let mut report = Report::default();
            report.out(format_args!("{name} utility, iproute2-6.1.0"));
            report
        }
        Ok(Asked::Help) => Report {
            stdout: help::GENERAL.replace("{}", name),
            ..Report::default()
        },
        Err(refusal) => {
            let mut report = Report::default();
            report.err(format_args!("{}", refusal.text));
            if refusal.shows_help {
                report.stdout = help::GENERAL.replace("{}", name);
            }
            report.exit(1)
        }
    }
}

fn run(name: &str, options: &Options, system: &System<'_>) -> Report {
    let mut session = Session::new(name, options, system);
    let step = match &options.batch {
        Some(file) => batch::run(&mut session, file, options.force),
        None => session.dispatch(help::general, OBJECTS, "object"),
    };
    let report = session.finish();
    match step {
        Ok(()) => report,
        Err(Failed) => report.exit(1),
    }
}
