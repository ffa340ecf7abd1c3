//! Latency of RDMA WRITE.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::run(engine::options::WRITE_LAT)
}
