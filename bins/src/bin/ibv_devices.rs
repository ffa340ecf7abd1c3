//! Lists the RDMA devices.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::inventory::run(ironverbs::inventory::ibv_devices)
}
