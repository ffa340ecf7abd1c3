//! The report file (`--out_json`): stock's keys, order and number formats, one
//! item a line. Unlike stock's it is JSON in all cases.

use super::cformat::fixed;
use super::header::{HeaderInfo, Limit, exchange_name, link_name, on_off};
use super::style::Style;
use crate::exchange::BandwidthReport;
use crate::stats::{LatencyFigures, Repeats, TimedLatency};

/// The numbers of the file.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Results<'a> {
    /// A bandwidth row.
    Bandwidth {
        /// The numbers of the row.
        row: &'a BandwidthReport,
        /// See [`super::columns::shows_six_decimals`].
        six_decimals: bool,
    },
    /// A latency row.
    Latency {
        /// Message size in bytes.
        size: u64,
        /// Iterations.
        iterations: u64,
        /// The numbers of the row.
        figures: &'a LatencyFigures,
    },
    /// A timed latency row.
    LatencyTimed {
        /// Message size in bytes.
        size: u64,
        /// Iterations.
        iterations: u64,
        /// The numbers of the row.
        figures: &'a TimedLatency,
    },
    /// The single number of `--output`.
    Single(SingleNumber),
}

/// What `--output` selects.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum SingleNumber {
    /// `--output bandwidth`.
    Bandwidth(f64),
    /// `--output message_rate`.
    MessageRate(f64),
    /// `--output latency`.
    Latency(f64),
    /// `--output latency -D`.
    LatencyTimed(f64),
}

/// One row, as an object of the file.
#[derive(Debug, Clone, PartialEq)]
pub struct Row(Vec<Item>);

impl Row {
    /// The keys of stock. `cpu_util`: percent, with `--cpu_util`.
    pub fn new(results: &Results<'_>, cpu_util: Option<f32>) -> Self {
        let mut items = result_items(results);
        if let Some(percent) = cpu_util.filter(|_| shows_cpu(results)) {
            items.push(("CPU_util", number(percent.into(), 2)));
        }
        Self(items)
    }

    /// What several runs of one size gave (`--repeat`); `figure`: the key whose
    /// values they are.
    pub fn of_repeats(size: u64, figure: &str, repeats: &Repeats) -> Self {
        let confidence = repeats.confidence.map_or_else(
            || "null".to_owned(),
            |(low, high)| format!("[{}, {}]", number(low, 2), number(high, 2)),
        );
        Self(vec![
            ("MsgSize", size.to_string()),
            ("runs", repeats.runs.to_string()),
            ("figure", string(figure)),
            ("median", number(repeats.median, 2)),
            ("min", number(repeats.min, 2)),
            ("max", number(repeats.max, 2)),
            ("confidence_95", confidence),
        ])
    }

    /// With more percentiles than stock has (`--percentiles`): percent, value.
    pub fn with_percentiles(mut self, percentiles: &[(f64, f64)]) -> Self {
        if !percentiles.is_empty() {
            let values: Vec<String> = percentiles
                .iter()
                .map(|(percent, value)| format!("\"{percent}\": {}", number(*value, 2)))
                .collect();
            let object = format!("{{\n{}\n}}", values.join(",\n"));
            self.0.push(("percentiles", object));
        }
        self
    }

    fn render(&self) -> String {
        format!("{{\n{}\n}}", lines(&self.0))
    }
}

/// The file of a test.
#[derive(Debug, Clone, PartialEq)]
pub struct Document {
    test: Vec<Item>,
    /// What stock keeps: the last row.
    results: Row,
    /// All rows, where there may be several.
    rows: Vec<Row>,
    /// The directions of `--report-both`: local, remote.
    both: Option<[Row; 2]>,
    /// What the runs of each size had in common (`--repeat`).
    repeats: Vec<Row>,
}

impl Document {
    /// A file with one row and the keys of stock.
    pub fn new(info: &HeaderInfo, results: Row, style: Style) -> Self {
        Self {
            test: test_items(info, style),
            results,
            rows: Vec::new(),
            both: None,
            repeats: Vec::new(),
        }
    }

    /// With all rows until now (`-a`), of which stock keeps the last.
    pub fn with_rows(self, rows: &[Row]) -> Self {
        Self {
            rows: rows.to_vec(),
            ..self
        }
    }

    /// With the directions by themselves (`--report-both`).
    pub fn with_both(self, local: Row, remote: Row) -> Self {
        Self {
            both: Some([local, remote]),
            ..self
        }
    }

    /// With what the runs of each size had in common (`--repeat`).
    pub fn with_repeats(self, repeats: &[Row]) -> Self {
        Self {
            repeats: repeats.to_vec(),
            ..self
        }
    }

    /// The text: stock's objects, then those stock does not have.
    pub fn render(&self) -> String {
        let mut objects = vec![
            ("test_info", Row(self.test.clone()).render()),
            ("results", self.results.render()),
        ];
        for (key, rows) in [("all_results", &self.rows), ("repeats", &self.repeats)] {
            if !rows.is_empty() {
                let rows: Vec<String> = rows.iter().map(Row::render).collect();
                objects.push((key, format!("[\n{}\n]", rows.join(",\n"))));
            }
        }
        if let Some([local, remote]) = &self.both {
            objects.push(("local_results", local.render()));
            objects.push(("remote_results", remote.render()));
        }
        format!("{{\n{}\n}}\n", lines(&objects))
    }
}

type Item = (&'static str, String);

fn lines(items: &[Item]) -> String {
    let lines: Vec<String> = items
        .iter()
        .map(|(key, value)| format!("\"{key}\": {value}"))
        .collect();
    lines.join(",\n")
}

/// `%.Nf`, or `null`: JSON has no infinity.
fn number(value: f64, decimals: usize) -> String {
    if value.is_finite() {
        fixed(value, decimals)
    } else {
        "null".to_owned()
    }
}

fn string(text: &str) -> String {
    let mut quoted = String::from('"');
    for letter in text.chars() {
        match letter {
            '"' | '\\' => quoted.extend(['\\', letter]),
            letter if u32::from(letter) < 0x20 => {
                quoted.push_str(&format!("\\u{:04x}", u32::from(letter)));
            }
            letter => quoted.push(letter),
        }
    }
    quoted.push('"');
    quoted
}

fn test_items(info: &HeaderInfo, style: Style) -> Vec<Item> {
    let title = info.title_words().join("_").replace(' ', "_");
    let mut items = vec![("test", string(&title))];
    if let Some(vector) = info.events {
        let using = format!("Using_{}_comp{vector}", info.device);
        items.push(("Test with events", string(&using)));
    }
    if info.multicast {
        items.push(("MultiCast_runs", string("on_UD")));
    }
    items.extend([
        ("Dual_port", string(on_off(info.dual_port))),
        ("Device", string(&info.device)),
        ("Number_of_qps", info.qps.to_string()),
        ("Transport_type", string(info.transport.name())),
        ("Connection_type", string(info.connection.name())),
        ("Using_SRQ", string(on_off(info.srq))),
        ("PCIe_relax_order", string(info.relaxed_ordering.name())),
    ]);
    if info.relaxed_ordering_warning {
        items.extend([
            (
                "WARNING1",
                string("CPU is not PCIe relaxed ordering compliant"),
            ),
            (
                "WARNING2",
                string("You should disable PCIe RO with --disable_pcie_relaxed for both server and client"),
            ),
        ]);
    }
    items.push(("ibv_wr_API", string(on_off(info.wr_api))));
    let above_one = |count: u32| Some(count).filter(|count| *count > 1);
    let optional = |key, value: Option<u32>| value.map(|value| (key, value.to_string()));
    items.extend(
        [
            optional("TX_depth", info.tx_depth),
            optional("Post_List", above_one(info.post_list)),
            optional("Recv_Post_List", above_one(info.recv_post_list)),
            optional("RX_depth", info.rx_depth),
            optional("CQ_Moderation", info.cq_moderation),
        ]
        .into_iter()
        .flatten(),
    );
    items.extend([
        ("Mtu", info.mtu.to_string()),
        ("Link_type", string(link_name(info.link))),
    ]);
    items.extend(optional("GID_index", info.gid_index));
    items.extend(optional(
        "GID_index2",
        info.gid_index2.filter(|_| info.dual_port),
    ));
    items.push(match info.limit {
        Limit::Inline(bytes) => ("Max_inline_data", bytes.to_string()),
        Limit::OutstandingReads(count) => ("Outstand_reads", count.to_string()),
    });
    items.push(("rdma_cm_QPs", string(on_off(info.cm_qps))));
    // Accelerator memory is not supported here; stock has the keys in every build.
    if style.has_rocm_key() {
        items.push(("Use_ROCm_memory", string("OFF")));
    }
    if style.has_musa_key() {
        items.push(("Use_MUSA_memory", string("OFF")));
    }
    items.push(("Data_ex_method", string(exchange_name(info.cm_exchange))));
    items.extend(optional("TOS", info.tos.filter(|_| info.cm_qps)));
    items
}

fn result_items(results: &Results<'_>) -> Vec<Item> {
    let head = |size: u64, iterations: u64| {
        vec![
            ("MsgSize", size.to_string()),
            ("n_iterations", iterations.to_string()),
        ]
    };
    match *results {
        Results::Bandwidth { row, six_decimals } => {
            let decimals = if six_decimals { 6 } else { 2 };
            let mut items = head(row.size, row.iterations);
            items.extend([
                ("BW_peak", number(row.peak, decimals)),
                ("BW_average", number(row.average, decimals)),
                ("MsgRate", number(row.message_rate, 6)),
            ]);
            items
        }
        Results::Latency {
            size,
            iterations,
            figures,
        } => {
            let mut items = head(size, iterations);
            items.extend([
                ("t_min", number(figures.min, 2)),
                ("t_max", number(figures.max, 2)),
                ("t_typical", number(figures.typical, 2)),
                ("t_avg", number(figures.average, 2)),
                ("t_stdev", number(figures.stdev, 2)),
                ("percentile_99", number(figures.p99, 2)),
                ("percentile_99.9", number(figures.p99_9, 2)),
            ]);
            items
        }
        Results::LatencyTimed {
            size,
            iterations,
            figures,
        } => {
            let mut items = head(size, iterations);
            items.extend([
                ("t_avg", number(figures.average, 2)),
                ("tps_average", number(figures.transactions, 2)),
            ]);
            items
        }
        Results::Single(single) => {
            let (key, value) = match single {
                SingleNumber::Bandwidth(value) => ("bw_avg", value),
                SingleNumber::MessageRate(value) => ("msgRate_avg", value),
                SingleNumber::Latency(value) => ("avg_lat", value),
                SingleNumber::LatencyTimed(value) => ("t_avg", value),
            };
            vec![(key, number(value, 6))]
        }
    }
}

/// The latency tools leave the processor out when a single number is asked for.
fn shows_cpu(results: &Results<'_>) -> bool {
    !matches!(
        results,
        Results::Single(SingleNumber::Latency(_) | SingleNumber::LatencyTimed(_))
    )
}

#[cfg(test)]
mod tests;
