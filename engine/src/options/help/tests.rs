use super::*;
use crate::options::tool::{READ_BW, WRITE_BW, WRITE_LAT};

#[test]
fn help_lists_what_the_tool_has() {
    let bandwidth = text(WRITE_BW, "ib_write_bw");
    assert!(bandwidth.starts_with(
        "Usage:\n  ib_write_bw            start a server and wait for connection\n  \
         ib_write_bw <host>     connect to server at <host>\n"
    ));
    assert!(bandwidth.contains("-n, --iters=<iters>"));
    assert!(bandwidth.contains("[5000] (both)"));
    assert!(bandwidth.contains("WRITE with immediate data (both)\n"));
    assert!(bandwidth.contains("Not in stock perftest:\n"));
    assert!(!bandwidth.contains("--latency_gap"));
    assert!(!bandwidth.contains("  7   "));
    let latency = text(WRITE_LAT, "ib_write_lat");
    assert!(latency.contains("--latency_gap"));
    assert!(!latency.contains("--report_gbits"));
    assert!(text(READ_BW, "ib_read_bw").contains("  7   no such device"));
}

#[test]
fn help_fits_a_terminal() {
    for tool in Tool::ALL {
        for line in text(tool, tool.name()).lines() {
            assert!(line.len() <= WIDTH, "{line}");
        }
    }
}
