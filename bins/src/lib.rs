//! What the commands share: from the arguments of the process to its exit code.

pub mod docs;
pub mod inventory;
mod kernel;
mod signals;
mod userspace;

use std::process::ExitCode;

use engine::device::Provider;
use engine::failure::Failure;
use engine::interrupt::Interrupt;
use engine::options::{self, Outcome, Tool, Verbosity};
use engine::report::Style;
use engine::screen::Screen;
use engine::tool;

use kernel::Kernel;
use userspace::Userspace;

/// Runs one of the tools with the arguments of this process.
#[must_use]
pub fn run(tool: Tool) -> ExitCode {
    let mut arguments = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let program = arguments.next().unwrap_or_else(|| tool.name().to_owned());
    let arguments: Vec<String> = arguments.collect();
    let mut screen = Screen::of_process();
    exit_code(run_with(tool, &program, &arguments, &mut screen))
}

fn run_with(tool: Tool, program: &str, arguments: &[String], screen: &mut Screen) -> i32 {
    let resolved = options::from_command_line(tool, program, arguments, options::configured_cpus());
    if let Err(error) = screen.messages(&resolved.messages) {
        return report(tool, Style::default(), &Failure::Screen(error), screen);
    }
    let remarks = options::remarks(tool, arguments);
    let params = match resolved.outcome {
        Outcome::Run(params) => params,
        Outcome::Exit { code, .. } => {
            say(tool, &remarks.refused, screen);
            return code;
        }
    };
    say(tool, &remarks.without_effect, screen);
    log_to_stderr(params.verbosity);
    let interrupt = Interrupt::new();
    let providers: &[&dyn Provider] = match params.device.userspace {
        true => &[&Userspace],
        false => &[&Kernel, &Userspace],
    };
    let ran = signals::watch(&interrupt)
        .map_err(Failure::System)
        .and_then(|()| tool::run(&params, providers, screen, &interrupt));
    match ran {
        Ok(()) => 0,
        Err(failure) => report(tool, params.report.style, &failure, screen),
    }
}

/// Says what else there is to know about the options.
fn say(tool: Tool, remarks: &[String], screen: &mut Screen) {
    for remark in remarks {
        // When stderr is closed, there is nobody to tell.
        let _ = screen.err(&format!("{tool}: note: {remark}\n"));
    }
}

/// Says what went wrong, first as stock perftest does, then whose fault it is
/// and what to do; returns the exit code.
fn report(tool: Tool, style: Style, failure: &Failure, screen: &mut Screen) -> i32 {
    let stock = style.complaint(&failure.stock_text(tool));
    // When stderr is closed, too, there is nobody left to tell.
    let _ = screen.err(&format!("{stock}{tool}: {failure}\n"));
    failure.exit_code(tool)
}

fn log_to_stderr(verbosity: Verbosity) {
    let level = match verbosity {
        Verbosity::Quiet => log::LevelFilter::Warn,
        Verbosity::Verbose => log::LevelFilter::Info,
        Verbosity::Debug => log::LevelFilter::Debug,
    };
    env_logger::Builder::new().filter_level(level).init();
}

fn exit_code(code: i32) -> ExitCode {
    u8::try_from(code).map_or(ExitCode::FAILURE, ExitCode::from)
}
