//! What the kernel's RDMA device management knows.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::inventory::run(ironverbs::inventory::rdma)
}
