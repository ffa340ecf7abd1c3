//! Shows a test as it goes on: header, addresses, rows, report file.

use std::path::Path;

use crate::counters::Counters;
use crate::exchange::{BandwidthReport, KeyRecord};
use crate::options::{Length, Output, Params, Sizes};
use crate::report::address::{AddressStyle, Whose, address_lines};
use crate::report::columns::{self, Columns};
use crate::report::file;
use crate::report::json::{Document, Results, Row, SingleNumber};
use crate::report::{HeaderInfo, notes};
use crate::screen::{ErrorStream, Screen, ScreenError};
use crate::stats::{Distribution, LatencyFigures, LatencySamples, Repeats, Scale, TimedLatency};
use crate::words::{Units, Verb};

/// Shows one end's test on its screen, and writes its report file.
pub(crate) struct Reporter<'a> {
    screen: &'a mut Screen,
    params: &'a Params,
    info: HeaderInfo,
    columns: Columns,
    titled: bool,
    judged: Judged,
    counters: Counters,
    /// The last row of the report file, and all of them where there may be
    /// several.
    last: Option<Row>,
    rows: Vec<Row>,
    /// What the runs of this size gave, and what those of earlier sizes had in
    /// common (`--repeat`).
    repeated: Vec<f64>,
    repeats: Vec<Row>,
}

/// The rows to which the limits of `-w` and `-y` apply.
#[derive(Clone, Copy, Default)]
struct Judged {
    rows: u64,
    /// One at least reached the limit.
    reach_bandwidth: bool,
    reach_rate: bool,
}

/// What a timed latency run gave.
pub(crate) struct TimedRow {
    pub(crate) size: u64,
    pub(crate) iterations: u64,
    pub(crate) figures: TimedLatency,
    /// Use of the processors in percent, if it was watched.
    pub(crate) cpu: Option<f32>,
    /// The spans from post to post, if they were wanted.
    pub(crate) distribution: Option<Distribution>,
    /// Those are shown whole, not halved.
    pub(crate) round_trip: bool,
}

impl<'a> Reporter<'a> {
    /// Shows the header.
    pub(crate) fn begin(
        screen: &'a mut Screen,
        params: &'a Params,
        info: HeaderInfo,
        counters: Counters,
    ) -> Result<Self, ScreenError> {
        let timed = params.length.is_timed();
        let columns = match (params.tool.is_bandwidth(), timed) {
            (true, _) => Columns::Bandwidth(params.units()),
            (false, false) => Columns::Latency,
            (false, true) => Columns::LatencyTimed,
        };
        let mut reporter = Self {
            screen,
            params,
            info,
            columns,
            titled: false,
            judged: Judged::default(),
            counters,
            last: None,
            rows: Vec::new(),
            repeated: Vec::new(),
            repeats: Vec::new(),
        };
        let header = reporter.info.render(params.report.style);
        reporter.full(&header)?;
        Ok(reporter)
    }

    /// Shows a text unless only a number is wanted.
    pub(crate) fn full(&mut self, text: &str) -> Result<(), ScreenError> {
        match self.params.report.output {
            Output::Full => self.screen.out(text),
            Output::Bandwidth | Output::MessageRate | Output::Latency => Ok(()),
        }
    }

    /// Shows a text in any case.
    pub(crate) fn note(&mut self, text: &str) -> Result<(), ScreenError> {
        self.screen.out(text)
    }

    /// Shows a text on stderr.
    pub(crate) fn warn(&mut self, text: &str) -> Result<(), ScreenError> {
        self.screen.err(text)
    }

    /// Standard error, for those who write while a test runs.
    pub(crate) fn error_stream(&self) -> ErrorStream {
        self.screen.error_stream()
    }

    /// Shows the addresses of all queue pairs of one end.
    pub(crate) fn addresses(
        &mut self,
        whose: Whose,
        keys: &[KeyRecord],
    ) -> Result<(), ScreenError> {
        let style = AddressStyle {
            verb: match self.info.cm_exchange {
                true => Verb::Send,
                false => self.info.verb,
            },
            connection: self.info.connection,
            multicast: self.info.multicast && (whose == Whose::Local) == self.params.is_in_group(),
        };
        let lines: String = keys
            .iter()
            .map(|key| address_lines(whose, key, style))
            .collect();
        self.full(&lines)
    }

    /// Shows the titles, once.
    pub(crate) fn titles(&mut self) -> Result<(), ScreenError> {
        if self.titled {
            return Ok(());
        }
        self.titled = true;
        let text = self.title_text();
        self.full(&text)
    }

    fn title_text(&self) -> String {
        format!(
            "{}{}",
            self.columns.line(),
            self.columns
                .titles(self.params.report.cpu_utilization, self.params.report.style)
        )
    }

    /// Shows the line below the rows.
    pub(crate) fn end_of_rows(&mut self) -> Result<(), ScreenError> {
        self.full(self.columns.line())
    }

    /// Shows a bandwidth row. `local` decides its format; `shown` are its
    /// numbers; `judged`: the limits of `-w` and `-y` apply to it.
    pub(crate) fn bandwidth(
        &mut self,
        local: &BandwidthReport,
        shown: &BandwidthReport,
        cpu: Option<f32>,
        judged: bool,
    ) -> Result<(), ScreenError> {
        let six_decimals = columns::shows_six_decimals(self.params.units(), local.average);
        let cpu = self.cpu_column(cpu);
        if judged {
            self.judge(shown);
        }
        let (text, single) = match self.params.report.output {
            Output::Bandwidth => (
                columns::single_number(shown.average),
                Some(SingleNumber::Bandwidth(shown.average)),
            ),
            Output::MessageRate => (
                columns::single_number(shown.message_rate),
                Some(SingleNumber::MessageRate(shown.message_rate)),
            ),
            Output::Full | Output::Latency => (
                columns::bandwidth_row(shown, six_decimals, cpu, self.params.report.style),
                None,
            ),
        };
        self.screen.out(&text)?;
        self.show_counters()?;
        let row = Results::Bandwidth {
            row: shown,
            six_decimals,
        };
        let row = Row::new(&single.map_or(row, Results::Single), cpu);
        if judged {
            let unit = match self.params.units() {
                Units::Gbits => "Gb/sec",
                Units::Mib => "MiB/sec",
            };
            self.repeat(shown.size, "BW_average", unit, shown.average)?;
        }
        self.report_file(row, None)
    }

    /// Shows both ends' parts of a row (`--report-both`).
    pub(crate) fn both_directions(
        &mut self,
        local: &BandwidthReport,
        remote: &BandwidthReport,
        cpu: Option<f32>,
    ) -> Result<(), ScreenError> {
        let units = self.params.units();
        let style = self.params.report.style;
        let cpu = self.cpu_column(cpu);
        let six_decimals =
            |report: &BandwidthReport| columns::shows_six_decimals(units, report.average);
        let row = |report: &BandwidthReport| {
            columns::bandwidth_row(report, six_decimals(report), cpu, style)
        };
        let text = columns::both_results(
            self.columns,
            [&row(local), &row(remote)],
            self.params.verb() == Verb::Atomic,
            self.params.report.cpu_utilization,
            style,
        );
        self.screen.out(&text)?;
        let Some(sum) = self.last.clone() else {
            return Ok(());
        };
        let results = |report| {
            let results = Results::Bandwidth {
                row: report,
                six_decimals: six_decimals(report),
            };
            Row::new(&results, cpu)
        };
        self.report_file(sum, Some([results(local), results(remote)]))
    }

    /// Shows a latency row, after the samples if they are wanted.
    pub(crate) fn latency(
        &mut self,
        size: u64,
        iterations: u64,
        samples: &mut LatencySamples,
        scale: Scale,
    ) -> Result<(), ScreenError> {
        let mut lists = String::new();
        let report = &self.params.report;
        if report.unsorted {
            let list = samples.in_time_order(scale);
            lists.push_str(&columns::sample_list(list, report.cycles));
        }
        if report.hdr_file.is_some()
            && let Some(distribution) = samples.distribution()
        {
            self.histogram_file(size, &distribution.hgrm(scale))?;
        }
        // With five messages at least there are enough samples.
        let Some(sorted) = samples.sorted(scale) else {
            return Ok(());
        };
        if report.histogram {
            let list = sorted.in_order_of_size();
            lists.push_str(&columns::sample_list(list, report.cycles));
        }
        if !lists.is_empty() {
            lists.push_str(&self.title_text());
            self.screen.out(&lists)?;
        }
        let figures: LatencyFigures = sorted.figures();
        let percentiles = self.percentiles(|percent| sorted.percentile_of_all(percent));
        let cpu = self.cpu_column(None);
        let (text, single) = match self.params.report.output {
            Output::Latency => (
                columns::single_number(figures.average),
                Some(SingleNumber::Latency(figures.average)),
            ),
            _ => (columns::latency_row(size, iterations, &figures, cpu), None),
        };
        self.screen.out(&text)?;
        self.show_counters()?;
        self.show_percentiles(size, self.time_unit(), &percentiles)?;
        let row = Results::Latency {
            size,
            iterations,
            figures: &figures,
        };
        let row = Row::new(&single.map_or(row, Results::Single), cpu);
        let typical = figures.typical;
        self.repeat(size, "t_typical", self.time_unit(), typical)?;
        self.report_file(row.with_percentiles(&percentiles), None)
    }

    /// Shows a timed latency row.
    pub(crate) fn latency_timed(&mut self, timed: &TimedRow) -> Result<(), ScreenError> {
        let TimedRow {
            size,
            iterations,
            ref figures,
            ..
        } = *timed;
        let cpu = self.cpu_column(timed.cpu);
        let scale = Scale {
            cycles: None,
            round_trip: timed.round_trip,
        };
        let percentiles = match &timed.distribution {
            Some(distribution) => {
                if self.params.report.hdr_file.is_some() {
                    self.histogram_file(size, &distribution.hgrm(scale))?;
                }
                self.percentiles(|percent| distribution.percentile(percent, scale))
            }
            None => Vec::new(),
        };
        let (text, single) = match self.params.report.output {
            Output::Latency => (
                columns::single_number(figures.average),
                Some(SingleNumber::LatencyTimed(figures.average)),
            ),
            _ => (
                columns::latency_timed_row(size, iterations, figures, cpu),
                None,
            ),
        };
        self.screen.out(&text)?;
        self.show_counters()?;
        self.show_percentiles(size, "usec", &percentiles)?;
        let row = Results::LatencyTimed {
            size,
            iterations,
            figures,
        };
        let row = Row::new(&single.map_or(row, Results::Single), cpu);
        self.report_file(row.with_percentiles(&percentiles), None)
    }

    /// Below a row: by how much the counters of `-W` have grown.
    fn show_counters(&mut self) -> Result<(), ScreenError> {
        if self.params.report.counters.is_empty() {
            return Ok(());
        }
        match self.counters.growth() {
            Ok(growth) => self.screen.out(&columns::counter_lines(&growth)),
            Err(error) => self.screen.err(&format!("{}: {error}\n", self.params.tool)),
        }
    }

    /// The percentiles that are wanted, with their values.
    fn percentiles(&self, value: impl Fn(f64) -> f64) -> Vec<(f64, f64)> {
        let wanted = self.params.report.percentiles.iter();
        wanted.map(|&percent| (percent, value(percent))).collect()
    }

    /// Shows percentiles on stderr, where no script takes them for rows.
    fn show_percentiles(
        &mut self,
        size: u64,
        unit: &str,
        percentiles: &[(f64, f64)],
    ) -> Result<(), ScreenError> {
        if percentiles.is_empty() {
            return Ok(());
        }
        let values: Vec<String> = percentiles
            .iter()
            .map(|(percent, value)| format!("{percent}% {value:.2}"))
            .collect();
        self.screen.err(&format!(
            "{}: percentiles of {size} bytes [{unit}]: {}\n",
            self.params.tool,
            values.join(", ")
        ))
    }

    fn time_unit(&self) -> &'static str {
        match self.params.report.cycles {
            true => "cycles",
            false => "usec",
        }
    }

    /// One run more has given this figure. After the last of a size (`--repeat`)
    /// it is shown what they have in common.
    fn repeat(
        &mut self,
        size: u64,
        name: &'static str,
        unit: &str,
        figure: f64,
    ) -> Result<(), ScreenError> {
        let runs = self.params.repeat as usize;
        if runs == 1 {
            return Ok(());
        }
        self.repeated.push(figure);
        if self.repeated.len() < runs {
            return Ok(());
        }
        let Some(repeats) = Repeats::of(&self.repeated) else {
            return Ok(());
        };
        self.repeated.clear();
        self.repeats.push(Row::of_repeats(size, name, &repeats));
        let confidence = match repeats.confidence {
            Some((low, high)) => format!("{low:.2} to {high:.2} with 95% confidence"),
            None => "95% confidence needs 6 runs".to_owned(),
        };
        self.screen.err(&format!(
            "{}: {runs} runs of {size} bytes, {name} [{unit}]: median {:.2}, {confidence}; \
             min {:.2}, max {:.2}, spread {:.1}%\n",
            self.params.tool,
            repeats.median,
            repeats.min,
            repeats.max,
            repeats.spread()
        ))
    }

    /// Writes the file of `--hdr_file`; under `-a` there is one for each size.
    fn histogram_file(&mut self, size: u64, text: &str) -> Result<(), ScreenError> {
        let Some(name) = &self.params.report.hdr_file else {
            return Ok(());
        };
        let name = match self.params.sizes {
            Sizes::One(_) => name.clone(),
            Sizes::All { .. } => format!("{name}.{size}"),
        };
        match file::write(Path::new(&name), text, "--hdr_file") {
            Ok(()) => Ok(()),
            Err(error) => self.screen.err(&format!("{}: {error}\n", self.params.tool)),
        }
    }

    /// What stock prints when rows were judged and none reached the limits of
    /// `-w` and `-y`. Like stock, the second is enforced only with the first.
    pub(crate) fn missed_limit(&mut self) -> Result<Option<&'static str>, ScreenError> {
        let Judged {
            rows,
            reach_bandwidth,
            reach_rate,
        } = self.judged;
        if rows == 0 {
            return Ok(None);
        }
        if self.params.report.minimum_bandwidth.is_none() {
            if !reach_rate {
                let note = notes::RATE_LIMIT_ALONE;
                self.warn(&format!("{}: note: {note}\n", self.params.tool))?;
            }
            return Ok(None);
        }
        Ok(match (reach_bandwidth, reach_rate) {
            (false, _) => Some(notes::BELOW_BANDWIDTH_LIMIT),
            (true, false) => Some(notes::BELOW_RATE_LIMIT),
            (true, true) => None,
        })
    }

    fn judge(&mut self, row: &BandwidthReport) {
        let reaches =
            |value: f64, limit: Option<f32>| limit.is_none_or(|limit| value >= limit.into());
        let report = &self.params.report;
        self.judged.rows += 1;
        self.judged.reach_bandwidth |= reaches(row.average, report.minimum_bandwidth);
        self.judged.reach_rate |= reaches(row.message_rate, report.minimum_message_rate);
    }

    /// The CPU column has a number in every row, or in none.
    fn cpu_column(&self, cpu: Option<f32>) -> Option<f32> {
        self.params
            .report
            .cpu_utilization
            .then(|| cpu.unwrap_or(0.0))
    }

    /// Each row replaces the file. That it can't be written is said, and the
    /// test goes on. `both`: the directions that `row` is the sum of, shown
    /// after it.
    fn report_file(&mut self, row: Row, both: Option<[Row; 2]>) -> Result<(), ScreenError> {
        let Some(name) = &self.params.report.json_file else {
            return Ok(());
        };
        let document = Document::new(&self.info, row.clone(), self.params.report.style);
        let document = match both {
            Some([local, remote]) => document.with_both(local, remote),
            None => {
                if self.params.has_many_rows() {
                    self.rows.push(row.clone());
                }
                self.last = Some(row);
                document
            }
        };
        let document = document.with_rows(&self.rows).with_repeats(&self.repeats);
        match file::write(Path::new(name), &document.render(), "--out_json_file") {
            Ok(()) => Ok(()),
            Err(error) => self.screen.err(&format!("{}: {error}\n", self.params.tool)),
        }
    }
}

/// Seconds between the rows of an endless run, seconds and margin of a timed one.
pub(crate) fn announced_duration(length: Length) -> u32 {
    /// Stock's default, which it sends when there is no duration.
    const UNUSED: u32 = 5;
    match length {
        Length::Iterations(_) => UNUSED,
        Length::Timed { duration, .. } => duration,
        Length::Infinite { interval } => interval,
    }
}
