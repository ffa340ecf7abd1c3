//! SIGINT: the first ends the test in good order, with exit code 130 (or 0
//! where stock perftest, too, takes it for the user's wish to stop an endless
//! test); a second one ends the process at once.

use std::io;
use std::process;
use std::thread;

use engine::failure::EXIT_INTERRUPTED;
use engine::interrupt::Interrupt;
use signal_hook::consts::SIGINT;
use signal_hook::iterator::Signals;

/// Passes the user's interrupts on.
pub(crate) fn watch(interrupt: &Interrupt) -> io::Result<()> {
    let mut signals = Signals::new([SIGINT])?;
    let interrupt = interrupt.clone();
    thread::Builder::new()
        .name("signals".to_owned())
        .spawn(move || {
            for _ in &mut signals {
                let is_second = interrupt.requested();
                if is_second || !interrupt.request() {
                    process::exit(EXIT_INTERRUPTED);
                }
            }
        })?;
    Ok(())
}
