//! Latency of SEND.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::run(engine::options::SEND_LAT)
}
