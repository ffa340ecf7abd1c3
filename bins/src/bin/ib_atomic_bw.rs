//! Bandwidth of atomic operations.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::run(engine::options::ATOMIC_BW)
}
