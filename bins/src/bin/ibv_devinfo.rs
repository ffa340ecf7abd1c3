//! What RDMA devices say about themselves.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::inventory::run(ironverbs::inventory::ibv_devinfo)
}
