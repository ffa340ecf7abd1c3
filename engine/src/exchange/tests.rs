//! What the tests of the dialogue share.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::time::Duration;

use super::*;

mod connecting;
mod dialects;
mod faults;

const STEP_TIME: Duration = Duration::from_millis(600);

fn timeouts() -> Timeouts {
    Timeouts {
        step: STEP_TIME,
        run: Some(STEP_TIME),
        keep_alive: Some(Duration::from_secs(5)),
    }
}

fn host() -> Host {
    Host {
        version: Version::announced(),
        page_size: 4096,
        cache_line: 64,
        mtu: 3,
    }
}

fn parameters() -> TestParameters {
    let mut device = DeviceAttributes::zeroed();
    device.max_qp_rd_atom = 16;
    TestParameters {
        method: Method::Regular,
        connection: Connection::Rc,
        verb: Verb::Write,
        measurement: Measurement::Bandwidth,
        atomic: Atomic::CompareSwap,
        ending: Ending::Iterations,
        units: Units::Mib,
        size: 65536,
        iterations: 1000,
        aes_xts: false,
        qps: 1,
        duration: 5,
        rdma_cm: false,
        no_enhanced_reorder: false,
        sig_offload: false,
        data_validation: false,
        device,
        mlx5_comp_mask: 0,
    }
}

fn key(gid: bool) -> KeyRecord {
    KeyRecord {
        lid: 1,
        out_reads: 1,
        qpn: 17,
        psn: 0xabcdef,
        rkey: 0x1800,
        vaddr: 0x7f00_0000_1000,
        tail_markers: None,
        gid: gid.then_some([0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 255, 255, 10, 0, 0, 1]),
        srqn: 0,
        gid_index: None,
    }
}

const WRITE_BW: Tool = Tool {
    verb: Verb::Write,
    measurement: Measurement::Bandwidth,
};

fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let near = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    let (far, _) = listener.accept().unwrap();
    far.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    (near, far)
}
