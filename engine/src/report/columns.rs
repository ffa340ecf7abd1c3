//! Titles and rows: one function per set of columns.

use super::cformat::{column, fixed, general};
use super::notes::{LINE, LINE_PER_PORT};
use super::style::Style;
use crate::exchange::{BandwidthReport, Units};
use crate::stats::{LatencyFigures, TimedLatency};

/// Which columns a screen has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Columns {
    /// `ib_*_bw`.
    Bandwidth(Units),
    /// `ib_*_bw --report-per-port`.
    BandwidthPerPort(Units),
    /// `ib_*_lat`.
    Latency,
    /// `ib_*_lat -D`.
    LatencyTimed,
}

impl Columns {
    /// The line above the titles and below the rows.
    pub fn line(self) -> &'static str {
        match self {
            Self::BandwidthPerPort(_) => LINE_PER_PORT,
            _ => LINE,
        }
    }

    /// The titles, with their line end; the CPU column with `--cpu_util`.
    pub fn titles(self, cpu_util: bool, style: Style) -> String {
        let mut titles = match self {
            Self::Bandwidth(units) => bandwidth_titles(units, style),
            Self::BandwidthPerPort(units) => {
                let unit = unit_name(units, style);
                format!(
                    "{}   BW Port1[{unit}]   MsgRate Port1[Mpps]   BW Port2[{unit}]   MsgRate Port2[Mpps]",
                    bandwidth_titles(units, style)
                )
            }
            Self::Latency => {
                " #bytes #iterations    t_min[usec]    t_max[usec]  t_typical[usec]    \
                 t_avg[usec]    t_stdev[usec]   99% percentile[usec]   99.9% percentile[usec] "
                    .to_owned()
            }
            Self::LatencyTimed => {
                " #bytes        #iterations       t_avg[usec]    tps average".to_owned()
            }
        };
        titles.push_str(if cpu_util { "    CPU_Util[%]\n" } else { "\n" });
        titles
    }
}

fn bandwidth_titles(units: Units, style: Style) -> String {
    let unit = unit_name(units, style);
    format!(" #bytes     #iterations    BW peak[{unit}]    BW average[{unit}]   MsgRate[Mpps]")
}

fn unit_name(units: Units, style: Style) -> &'static str {
    match units {
        Units::Gbits => "Gb/sec",
        Units::Mib => style.mib_per_second(),
    }
}

/// The end of a row: the CPU column (percent) with `--cpu_util`, and the line end.
fn row_end(cpu_util: Option<f32>) -> String {
    cpu_util.map_or_else(
        || "\n".to_owned(),
        |percent| format!("\t    {}\n", fixed(percent.into(), 2)),
    )
}

/// Whether stock shows bandwidths with six decimals: below 0.1 Gb/s, decided
/// by the local average alone.
pub fn shows_six_decimals(units: Units, local_average: f64) -> bool {
    units == Units::Gbits && local_average < 0.1
}

/// A bandwidth row: size, iterations, peak, average, message rate.
/// `six_decimals`: see [`shows_six_decimals`].
pub fn bandwidth_row(
    row: &BandwidthReport,
    six_decimals: bool,
    cpu_util: Option<f32>,
    style: Style,
) -> String {
    let end = row_end(cpu_util);
    let rate = column(row.message_rate, 6);
    if six_decimals {
        format!(
            " {:<7}    {}           {}            {}            {rate}{end}",
            row.size,
            row.iterations,
            column(row.peak, 6),
            column(row.average, 6),
        )
    } else {
        format!(
            " {:<7}    {:<10}       {}            {}{}{rate}{end}",
            row.size,
            row.iterations,
            column(row.peak, 2),
            column(row.average, 2),
            style.before_message_rate(),
        )
    }
}

/// A bandwidth row with the shares of the two ports.
pub fn bandwidth_row_per_port(row: &BandwidthReport, cpu_util: Option<f32>) -> String {
    let [first, second] = row.ports.unwrap_or_default();
    format!(
        " {:<7}    {:<10}     {}            {}\t\t   {}        {}            {}              {}            {}{}",
        row.size,
        row.iterations,
        column(row.peak, 2),
        column(row.average, 2),
        column(row.message_rate, 6),
        column(first.average, 2),
        column(first.message_rate, 6),
        column(second.average, 2),
        column(second.message_rate, 6),
        row_end(cpu_util),
    )
}

/// A latency row: size, iterations, least, largest, typical, average,
/// standard deviation, 99 %, 99.9 %.
pub fn latency_row(
    size: u64,
    iterations: u64,
    figures: &LatencyFigures,
    cpu_util: Option<f32>,
) -> String {
    format!(
        " {size:<7} {iterations}          {}        {}      {}  \t       {}     \t{}\t\t{} \t\t{}{}",
        column(figures.min, 2),
        column(figures.max, 2),
        column(figures.typical, 2),
        column(figures.average, 2),
        column(figures.stdev, 2),
        column(figures.p99, 2),
        column(figures.p99_9, 2),
        row_end(cpu_util),
    )
}

/// A timed latency row: size, iterations, average, transactions per second.
pub fn latency_timed_row(
    size: u64,
    iterations: u64,
    figures: &TimedLatency,
    cpu_util: Option<f32>,
) -> String {
    format!(
        " {size:<7}       {iterations}            {}        {}{}",
        column(figures.average, 2),
        column(figures.transactions, 2),
        row_end(cpu_util),
    )
}

/// The single number of `--output`: the average bandwidth, the message rate,
/// or the average latency.
pub fn single_number(value: f64) -> String {
    format!("{}\n", fixed(value, 6))
}

/// The counters of `-W` below a row: names as given, and by how much they
/// have grown since the last row.
pub fn counter_lines(counters: &[(&str, u64)]) -> String {
    let mut text: String = counters
        .iter()
        .map(|(name, growth)| format!("\t{name}={growth}\n"))
        .collect();
    text.push('\n');
    text
}

/// The list of `-U` (all samples) or `-H` (sorted samples). After the last
/// list follow line and titles again, then the row.
pub fn sample_list(samples: impl Iterator<Item = f64>, cycles: bool) -> String {
    let mut text = format!("#, {}\n", if cycles { "cycles" } else { "usec" });
    for (index, sample) in samples.enumerate() {
        text.push_str(&format!("{}, {}\n", index + 1, general(sample)));
    }
    text
}

/// The parts of `--report-both`, shown after the row with the sums.
/// `rows`: the local row and the remote row; `atomic`: `ib_atomic_bw`, which
/// has no blank behind its headings.
pub fn both_results(
    columns: Columns,
    rows: [&str; 2],
    atomic: bool,
    cpu_util: bool,
    style: Style,
) -> String {
    let blank = if atomic { "" } else { " " };
    let titles = columns.titles(cpu_util, style);
    let [local, remote] = rows;
    format!(
        "{LINE}\n Local results:{blank}\n{LINE}{titles}{local}\
         {LINE}\n Remote results:{blank}\n{LINE}{titles}{remote}"
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::exchange::PortReport;

    fn report() -> BandwidthReport {
        BandwidthReport {
            size: 4096,
            iterations: 1000,
            peak: 2238.171,
            average: 2118.949,
            message_rate: 0.542_451_6,
            ports: None,
        }
    }

    #[test]
    fn shows_the_known_rows() {
        assert_eq!(
            bandwidth_row(&report(), false, None, Style::V6_29),
            " 4096       1000             2238.17            2118.95\t\t     0.542452\n"
        );
        for style in [Style::V6_06, Style::V6_20] {
            assert_eq!(
                bandwidth_row(&report(), false, None, style),
                " 4096       1000             2238.17            2118.95\t\t   0.542452\n"
            );
            let titles = Columns::Bandwidth(Units::Mib).titles(false, style);
            assert!(titles.contains("BW peak[MB/sec]    BW average[MB/sec]"));
        }
        let figures = LatencyFigures {
            min: 1.67,
            max: 48.93,
            typical: 1.7,
            average: 1.8,
            stdev: 0.79,
            p99: 5.1,
            p99_9: 48.93,
        };
        assert_eq!(
            latency_row(2, 1000, &figures, None),
            " 2       1000          1.67           48.93        1.70     \t       1.80        \t0.79   \t\t5.10    \t\t48.93  \n"
        );
        assert!(latency_row(2, 1000, &figures, Some(12.5)).ends_with("48.93  \t    12.50\n"));
        assert!(
            Columns::LatencyTimed
                .titles(true, Style::V6_29)
                .ends_with("average    CPU_Util[%]\n")
        );
    }

    #[test]
    fn small_gigabits_have_six_decimals() {
        assert!(shows_six_decimals(Units::Gbits, 0.099));
        assert!(!shows_six_decimals(Units::Gbits, 0.1));
        assert!(!shows_six_decimals(Units::Mib, 0.01));
        let mut row = report();
        row.peak = 0.001_447;
        row.average = 0.001_177;
        assert_eq!(
            bandwidth_row(&row, true, None, Style::V6_29),
            " 4096       1000           0.001447            0.001177            0.542452\n"
        );
    }

    #[test]
    fn ports_have_columns_of_their_own() {
        let mut row = report();
        row.ports = Some(
            [PortReport {
                average: 1.0,
                message_rate: 0.5,
            }; 2],
        );
        assert!(bandwidth_row_per_port(&row, None).ends_with(
            "\t\t   0.542452        1.00               0.500000              1.00               0.500000\n"
        ));
        let titles = Columns::BandwidthPerPort(Units::Gbits).titles(false, Style::V6_29);
        assert!(titles.ends_with("   BW Port2[Gb/sec]   MsgRate Port2[Mpps]\n"));
        assert_eq!(Columns::BandwidthPerPort(Units::Mib).line().len(), 164);
    }

    #[test]
    fn both_results_name_the_ends() {
        let columns = Columns::Bandwidth(Units::Mib);
        let text = both_results(columns, ["local\n", "remote\n"], false, false, Style::V6_29);
        assert!(text.contains("\n Local results: \n"));
        assert!(text.ends_with("MsgRate[Mpps]\nremote\n"));
        assert!(
            both_results(columns, ["", ""], true, false, Style::V6_29)
                .contains("\n Remote results:\n")
        );
    }
}
