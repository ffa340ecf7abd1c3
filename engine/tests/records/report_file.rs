//! Recorded report files, read into the numbers our own functions take.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::PathBuf;

use engine::exchange::BandwidthReport;
use engine::report::header::Limit;
use engine::report::json::{self, Results, SingleNumber};
use engine::report::{HeaderInfo, Style};
use engine::stats::{LatencyFigures, TimedLatency};

use crate::records::{entries, golden_folder, stock_cases};
use crate::screen::{self, c_number};

/// A report file as the record has it.
pub(crate) struct ReportFile {
    pub(crate) name: String,
    text: String,
}

impl ReportFile {
    fn get(&self, key: &str) -> Option<&str> {
        self.text.lines().find_map(|line| {
            let (found, value) = line.trim().trim_end_matches(',').split_once(": ")?;
            (found.trim().trim_matches('"') == key).then_some(value.trim_matches('"'))
        })
    }

    fn number<T: std::str::FromStr>(&self, key: &str) -> Option<T> {
        let text = self.get(key)?;
        Some(
            text.parse()
                .ok()
                .unwrap_or_else(|| panic!("{}: {key} is {text}", self.name)),
        )
    }

    fn figure(&self, key: &str) -> f64 {
        c_number(self.get(key).unwrap())
    }

    /// The version that wrote the file, by its form.
    fn style(&self) -> Style {
        match (self.is_quoted(), self.get("Use_MUSA_memory")) {
            (false, _) => Style::V6_06,
            (true, None) => Style::V6_20,
            (true, Some(_)) => Style::V6_29,
        }
    }

    /// Up to 6.19 keys were not quoted.
    fn is_quoted(&self) -> bool {
        self.text.starts_with("{\n\"test_info\"")
    }

    /// What a stock file would be if stock wrote JSON in all cases.
    pub(crate) fn as_json(&self) -> String {
        let mut text = match self.is_quoted() {
            true => self.text.clone(),
            false => quoted(&self.text),
        };
        text = text.replace(",\n\n}", "\n}");
        text = text.replace(",\n,\n", ",\n").replace("{\n \"", "{\n\"");
        text = text.replace(",\n \"", ",\n\"");
        for number in [": -nan", ": nan", ": -inf", ": inf"] {
            text = text.replace(number, ": null");
        }
        text
    }

    /// The fields of the header; what the file leaves out does not matter.
    fn info(&self) -> HeaderInfo {
        let title = screen::Title::parse(self.get("test").unwrap());
        HeaderInfo {
            verb: title.verb,
            atomic: title.atomic,
            measurement: title.measurement,
            duplex: title.duplex,
            multicast: title.multicast,
            events: self
                .get("Test with events")
                .map(|text| text.rsplit_once("_comp").unwrap().1.parse().unwrap()),
            dual_port: self.get("Dual_port") == Some("ON"),
            device: self.get("Device").unwrap().to_owned(),
            qps: self.number("Number_of_qps").unwrap(),
            transport: screen::transport(self.get("Transport_type").unwrap()),
            connection: screen::connection(self.get("Connection_type").unwrap()),
            srq: self.get("Using_SRQ") == Some("ON"),
            relaxed_ordering: screen::feature(self.get("PCIe_relax_order")),
            relaxed_ordering_warning: self.get("WARNING1").is_some(),
            lock_free: screen::feature(None),
            wr_api: self.get("ibv_wr_API") == Some("ON"),
            enhanced_reorder: false,
            tx_depth: self.number("TX_depth"),
            post_list: self.number("Post_List").unwrap_or(1),
            recv_post_list: self.number("Recv_Post_List").unwrap_or(1),
            rx_depth: self.number("RX_depth"),
            cq_moderation: self.number("CQ_Moderation"),
            cqe_poll: None,
            mtu: self.number("Mtu").unwrap(),
            link: screen::link(self.get("Link_type").unwrap()),
            gid_index: self.number("GID_index"),
            gid_index2: self.number("GID_index2"),
            limit: match self.number("Max_inline_data") {
                Some(bytes) => Limit::Inline(bytes),
                None => Limit::OutstandingReads(self.number("Outstand_reads").unwrap()),
            },
            cm_qps: self.get("rdma_cm_QPs") == Some("ON"),
            cm_exchange: self.get("Data_ex_method") == Some("rdma_cm"),
            tos: self.number("TOS"),
            awaits_cm_client: false,
            numa_node: None,
        }
    }

    pub(crate) fn render(&self) -> String {
        let size = self.number("MsgSize").unwrap_or(0);
        let iterations = self.number("n_iterations").unwrap_or(0);
        let (row, figures, timed);
        let single = [
            ("bw_avg", SingleNumber::Bandwidth as fn(f64) -> SingleNumber),
            ("msgRate_avg", SingleNumber::MessageRate),
            ("avg_lat", SingleNumber::Latency),
            ("t_avg", SingleNumber::LatencyTimed),
        ];
        let results = if self.get("BW_average").is_some() {
            row = BandwidthReport {
                size,
                iterations,
                peak: self.figure("BW_peak"),
                average: self.figure("BW_average"),
                message_rate: self.figure("MsgRate"),
                ports: None,
            };
            let decimals = self.get("BW_average").unwrap().split('.').nth(1);
            Results::Bandwidth {
                row: &row,
                six_decimals: decimals.is_some_and(|decimals| decimals.len() == 6),
            }
        } else if self.get("t_min").is_some() {
            figures = LatencyFigures {
                min: self.figure("t_min"),
                max: self.figure("t_max"),
                typical: self.figure("t_typical"),
                average: self.figure("t_avg"),
                stdev: self.figure("t_stdev"),
                p99: self.figure("percentile_99"),
                p99_9: self.figure("percentile_99.9"),
            };
            Results::Latency {
                size,
                iterations,
                figures: &figures,
            }
        } else if self.get("tps_average").is_some() {
            timed = TimedLatency {
                average: self.figure("t_avg"),
                transactions: self.figure("tps_average"),
            };
            Results::LatencyTimed {
                size,
                iterations,
                figures: &timed,
            }
        } else {
            let (key, single) = single
                .into_iter()
                .find(|(key, _)| self.get(key).is_some())
                .unwrap();
            Results::Single(single(self.figure(key)))
        };
        let row = json::Row::new(&results, self.number("CPU_util"));
        json::Document::new(&self.info(), row, self.style()).render()
    }
}

/// A file of 6.06 with quotes where JSON wants them, and no comma after the
/// last item.
fn quoted(text: &str) -> String {
    let lines: Vec<String> = text
        .lines()
        .map(|line| {
            let (line, comma) = match line.strip_suffix(',') {
                Some(line) => (line, ","),
                None => (line, ""),
            };
            let Some((key, value)) = line.split_once(':') else {
                return format!("{line}{comma}");
            };
            let (key, value) = (key.trim(), value.trim());
            let bare = value != "{" && !value.starts_with('"') && value.parse::<f64>().is_err();
            match bare {
                true => format!("\"{key}\": \"{value}\"{comma}"),
                false => format!("\"{key}\": {value}{comma}"),
            }
        })
        .collect();
    (lines.join("\n") + "\n").replace(",\n}", "\n}")
}

pub(crate) fn report_files() -> Vec<ReportFile> {
    let mut paths: Vec<PathBuf> = stock_cases()
        .iter()
        .flat_map(|case| entries(case, "json"))
        .collect();
    for folder in ["output", "output-6.29"] {
        let folder = golden_folder(folder);
        paths.extend(folder.iter().flat_map(|folder| entries(folder, "json")));
    }
    paths
        .into_iter()
        .map(|path| ReportFile {
            name: path.display().to_string(),
            text: fs::read_to_string(&path).unwrap(),
        })
        .collect()
}
