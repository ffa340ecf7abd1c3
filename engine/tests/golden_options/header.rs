//! The values of the header that the option layer decides.

use engine::options::device::largest_message;
use engine::options::{Length, Params, Polling, Sizes};
use verbs_sys::PathMtu;

use crate::records::Record;

/// The word after `label` in the header, if the header has such a line.
fn value<'a>(header: &'a str, label: &str) -> Option<&'a str> {
    let (_, rest) = header.split_once(label)?;
    rest.split_whitespace().next()
}

fn on(flag: bool) -> String {
    if flag { "ON" } else { "OFF" }.to_owned()
}

/// Compares the header of a record with the parameters.
pub(crate) fn check(record: &Record, params: &Params) {
    let polling = match params.polling {
        Polling::Dynamic => "Dynamic".to_owned(),
        Polling::Fixed(batch) => batch.to_string(),
    };
    let expected = [
        (" Number of qps   : ", params.qps.to_string()),
        (" Connection type : ", params.connection.name().to_owned()),
        ("Using SRQ      : ", on(params.use_srq)),
        (" PCIe relax order: ", on(params.relaxed_ordering)),
        ("Lock-free      : ", on(params.no_lock)),
        (" TX depth        : ", params.tx_depth.to_string()),
        (" RX depth        : ", params.rx_depth.to_string()),
        (" Post List       : ", params.post_list.to_string()),
        (" Recv Post List  : ", params.recv_post_list.to_string()),
        (" CQ Moderation   : ", params.cq_mod.to_string()),
        (" CQE Poll Batch  : ", polling),
    ];
    for (label, expected) in expected {
        if let Some(printed) = value(&record.stdout, label) {
            assert_eq!(printed, expected, "{}: {label}", record.name);
        }
    }
    // A passive end of an endless run prints rows of size 0.
    let one_size = matches!(params.sizes, Sizes::One(_)) && !is_endless(params);
    if let (true, Some(row)) = (one_size, row(&record.stdout)) {
        let mtu = value(&record.stdout, " Mtu             : ").unwrap();
        let mtu = mtu.trim_end_matches("[B]").parse().unwrap();
        let mtu = PathMtu::from_bytes(mtu).unwrap();
        let size = largest_message(params, mtu).value.unwrap().to_string();
        let printed = row.split_whitespace().next();
        assert_eq!(printed, Some(size.as_str()), "{}: size", record.name);
    }
}

fn is_endless(params: &Params) -> bool {
    matches!(params.length, Length::Infinite { .. })
}

/// The first row of results.
fn row(stdout: &str) -> Option<&str> {
    let (_, rest) = stdout.split_once(" #bytes")?;
    let row = rest.lines().nth(1)?;
    row.trim_start()
        .starts_with(|c: char| c.is_ascii_digit())
        .then_some(row)
}
