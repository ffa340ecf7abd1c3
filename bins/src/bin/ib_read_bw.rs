//! Bandwidth of RDMA READ.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::run(engine::options::READ_BW)
}
