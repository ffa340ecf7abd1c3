#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use verbs_sys::LinkLayer;

use super::*;
use crate::exchange::{Atomic, Connection, Measurement, Verb};
use crate::report::header::{CqePoll, Feature, Transport};

fn info() -> HeaderInfo {
    HeaderInfo {
        verb: Verb::Send,
        atomic: Atomic::FetchAdd,
        measurement: Measurement::Bandwidth,
        duplex: true,
        multicast: true,
        events: Some(3),
        dual_port: true,
        device: "a\"b\\c\u{1}".to_owned(),
        qps: 2,
        transport: Transport::Ib,
        connection: Connection::Ud,
        srq: true,
        relaxed_ordering: Feature::On,
        relaxed_ordering_warning: true,
        lock_free: Feature::Off,
        wr_api: true,
        enhanced_reorder: false,
        tx_depth: Some(128),
        post_list: 4,
        recv_post_list: 8,
        rx_depth: Some(512),
        cq_moderation: Some(4),
        cqe_poll: Some(CqePoll::Dynamic),
        mtu: 4096,
        link: LinkLayer::Ethernet,
        gid_index: Some(1),
        gid_index2: Some(2),
        limit: Limit::Inline(0),
        cm_qps: true,
        cm_exchange: true,
        tos: Some(16),
        awaits_cm_client: false,
        numa_node: None,
    }
}

/// The file of one row.
fn render(info: &HeaderInfo, results: &Results<'_>, cpu_util: Option<f32>) -> String {
    Document::new(info, Row::new(results, cpu_util), Style::V6_29).render()
}

fn keys(text: &str, section: &str) -> Vec<String> {
    let value: serde_json::Value = serde_json::from_str(text).unwrap();
    let object = value[section].as_object().unwrap();
    object.keys().cloned().collect()
}

#[test]
fn has_every_conditional_key_in_its_place() {
    let row = BandwidthReport::default();
    let results = Results::Bandwidth {
        row: &row,
        six_decimals: false,
    };
    let text = render(&info(), &results, Some(12.5));
    assert_eq!(
        keys(&text, "test_info").join(" "),
        "test Test with events MultiCast_runs Dual_port Device Number_of_qps Transport_type \
         Connection_type Using_SRQ PCIe_relax_order WARNING1 WARNING2 ibv_wr_API TX_depth \
         Post_List Recv_Post_List RX_depth CQ_Moderation Mtu Link_type GID_index GID_index2 \
         Max_inline_data rdma_cm_QPs Use_ROCm_memory Use_MUSA_memory Data_ex_method TOS"
    );
    assert!(text.contains("\"test\": \"Send_Bidirectional_Post_List_BW_Multicast_Test\",\n"));
    assert!(text.ends_with(
        "\"BW_peak\": 0.00,\n\"BW_average\": 0.00,\n\"MsgRate\": 0.000000,\n\"CPU_util\": 12.50\n}\n}\n"
    ));
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["test_info"]["Device"], info().device);
}

#[test]
fn is_json_with_single_numbers_and_without_numbers() {
    for (single, key, cpu) in [
        (SingleNumber::Bandwidth(1.5), "bw_avg", true),
        (SingleNumber::MessageRate(1.5), "msgRate_avg", true),
        (SingleNumber::Latency(1.5), "avg_lat", false),
        (SingleNumber::LatencyTimed(1.5), "t_avg", false),
    ] {
        let text = render(&info(), &Results::Single(single), Some(1.0));
        let expected: &[&str] = if cpu { &[key, "CPU_util"] } else { &[key] };
        assert_eq!(keys(&text, "results"), expected);
        assert!(text.contains(&format!("\"{key}\": 1.500000")));
    }
    let figures = TimedLatency::new(0, 0, true);
    let results = Results::LatencyTimed {
        size: 2,
        iterations: 0,
        figures: &figures,
    };
    let text = render(&info(), &results, None);
    assert!(text.contains("\"t_avg\": null"), "{text}");
    assert_eq!(
        keys(&text, "results"),
        ["MsgSize", "n_iterations", "t_avg", "tps_average"]
    );
}

fn bandwidth(size: u64) -> Row {
    let row = BandwidthReport {
        size,
        ..BandwidthReport::default()
    };
    let results = Results::Bandwidth {
        row: &row,
        six_decimals: false,
    };
    Row::new(&results, None)
}

#[test]
fn all_sizes_stand_in_an_array_beside_the_last_one() {
    let rows = [2, 4, 8].map(bandwidth);
    let document = Document::new(&info(), bandwidth(8), Style::V6_29);
    let text = document.clone().with_rows(&rows).render();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["results"]["MsgSize"], 8);
    let sizes: Vec<_> = value["all_results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["MsgSize"].as_u64().unwrap())
        .collect();
    assert_eq!(sizes, [2, 4, 8]);
    // What stock has stands first, byte for byte.
    let stock = document.render();
    assert!(text.starts_with(stock.trim_end_matches("\n}\n")), "{text}");
}

#[test]
fn both_directions_stand_in_one_document() {
    let text = Document::new(&info(), bandwidth(1), Style::V6_29)
        .with_both(bandwidth(2), bandwidth(3))
        .render();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let sizes = ["results", "local_results", "remote_results"].map(|key| &value[key]["MsgSize"]);
    assert_eq!(sizes, [1, 2, 3]);
}

#[test]
fn percentiles_stand_in_an_object_of_the_row() {
    let row = bandwidth(2).with_percentiles(&[(50.0, 1.234), (99.99, f64::INFINITY)]);
    let text = Document::new(&info(), row, Style::V6_29).render();
    let value: serde_json::Value = serde_json::from_str(&text).unwrap();
    let percentiles = &value["results"]["percentiles"];
    assert_eq!(percentiles["50"], 1.23);
    assert!(percentiles["99.99"].is_null());
    assert_eq!(bandwidth(2).with_percentiles(&[]), bandwidth(2));
}
