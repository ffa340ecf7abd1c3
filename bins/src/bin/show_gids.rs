//! Lists the GIDs of the RDMA devices.

use std::process::ExitCode;

fn main() -> ExitCode {
    ironverbs::inventory::run(ironverbs::inventory::show_gids)
}
