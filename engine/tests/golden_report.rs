//! Reads the numbers out of every recorded screen and report file, gives them
//! to our functions, and compares what comes out byte for byte.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

mod records;
#[path = "records/report_file.rs"]
mod report_file;
#[path = "records/screen.rs"]
mod screen;

use std::fs;

use engine::report::address::{Whose, address_lines};
use engine::report::columns::{
    Columns, bandwidth_row, bandwidth_row_per_port, both_results, counter_lines, latency_row,
    latency_timed_row, sample_list, shows_six_decimals, single_number,
};
use engine::report::{HeaderInfo, Style};

use engine::report::notes;
use engine::stats::{LatencyFigures, LatencySamples, Scale};
use records::{entries, golden_folder, stock_cases};
use report_file::report_files;
use screen::{ALL_COLUMNS, Row, c_number};

/// What a recorded program wrote to stdout.
struct Screen {
    name: String,
    text: String,
}

fn screens() -> Vec<Screen> {
    let mut all = Vec::new();
    for folder in ["output", "output-6.29"] {
        let Some(folder) = golden_folder(folder) else {
            continue;
        };
        all.extend(entries(&folder, "txt").into_iter().map(|path| {
            let record = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
            // The command, then stdout, then stderr if there was any.
            let (_, output) = record.split_once('\n').unwrap_or_default();
            let output = match output.find("[stderr]\n") {
                Some(end) => &output[..end],
                None => output,
            };
            Screen {
                name: path.display().to_string(),
                text: output.to_owned(),
            }
        }));
    }
    all.extend(stock_cases().iter().flat_map(|case| {
        entries(case, "out").into_iter().map(|path| Screen {
            name: path.display().to_string(),
            text: fs::read_to_string(&path).unwrap(),
        })
    }));
    all.retain(|screen| !is_help(&screen.text));
    all
}

/// Help and version texts are not reports.
fn is_help(text: &str) -> bool {
    text.contains("Usage:") || text.starts_with("Version: ")
}

/// Walks through a screen and checks each part it knows.
struct Walk<'a> {
    name: &'a str,
    rest: &'a str,
    style: Style,
    info: Option<HeaderInfo>,
    columns: Option<(Columns, bool)>,
    checked: usize,
}

impl<'a> Walk<'a> {
    fn new(screen: &'a Screen) -> Self {
        Self {
            name: &screen.name,
            rest: &screen.text,
            style: screen::style_of(&screen.text),
            info: None,
            columns: None,
            checked: 0,
        }
    }

    /// Our text must come next. A killed program may have left half of it.
    fn expect(&mut self, ours: &str) {
        if ours.starts_with(self.rest) {
            self.rest = "";
        } else if let Some(rest) = self.rest.strip_prefix(ours) {
            self.rest = rest;
        } else {
            let theirs: String = self.rest.chars().take(ours.len()).collect();
            assert_eq!(ours, theirs, "{}", self.name);
        }
        self.checked += 1;
    }

    fn run(mut self) -> usize {
        // Shown with a failure only.
        println!("{}", self.name);
        while !self.rest.is_empty() {
            self.part();
        }
        self.checked
    }

    fn part(&mut self) {
        let line = self.rest.split_inclusive('\n').next().unwrap();
        if self.rest.starts_with(notes::BANNER) {
            self.expect(notes::BANNER);
        } else if let Some(header) = self.header() {
            let info = screen::header(header);
            self.expect(&info.render(self.style));
            self.info = Some(info);
        } else if line == notes::LINE {
            self.expect(notes::LINE);
        } else if line == notes::LINE_PER_PORT {
            self.expect(notes::LINE_PER_PORT);
        } else if let Some(whose) = whose(line) {
            let info = self.info.as_ref().unwrap();
            let (key, style) = screen::address(self.rest, info);
            self.expect(&address_lines(whose, &key, style));
        } else if line.starts_with(" #") {
            self.titles();
        } else if line == "#, usec\n" || line == "#, cycles\n" {
            self.list();
        } else if line.starts_with("\n") && self.rest.contains(" Local results:") {
            self.both();
        } else if line.starts_with('\t') && line.contains('=') {
            self.counters();
        } else if is_row(line) && self.columns.is_some() {
            self.row(line);
        } else if line.trim_end().parse::<f64>().is_ok() {
            self.expect(&single_number(line.trim_end().parse().unwrap()));
        } else {
            self.note(line);
        }
    }

    /// The text from the title to the line that ends the header, if one is next.
    fn header(&self) -> Option<&'a str> {
        let text = self.rest.strip_prefix(notes::LINE)?;
        if !text.starts_with("                    ") {
            return None;
        }
        let mut end = text.find(notes::LINE)?;
        let waits = format!("{} Waiting for client rdma_cm", notes::LINE);
        if text[end..].starts_with(&waits) {
            end += notes::LINE.len();
            end += text[end..].find(notes::LINE)?;
        }
        Some(&text[..end])
    }

    fn titles(&mut self) {
        for columns in ALL_COLUMNS {
            for cpu_util in [false, true] {
                let ours = columns.titles(cpu_util, self.style);
                if self.rest.starts_with(&ours) {
                    self.columns = Some((columns, cpu_util));
                    return self.expect(&ours);
                }
            }
        }
        panic!(
            "{}: unknown titles {:?}",
            self.name,
            self.rest.lines().next()
        );
    }

    fn list(&mut self) {
        let cycles = self.rest.starts_with("#, cycles");
        let samples: Vec<f64> = self
            .rest
            .lines()
            .skip(1)
            .map_while(|line| {
                let (index, sample) = line.split_once(", ")?;
                index.parse::<u64>().ok().map(|_| c_number(sample))
            })
            .collect();
        self.expect(&sample_list(samples.into_iter(), cycles));
    }

    /// The counters of `-W`.
    fn counters(&mut self) {
        let counters: Vec<(&str, u64)> = self
            .rest
            .lines()
            .map_while(|line| {
                let (name, value) = line.strip_prefix('\t')?.split_once('=')?;
                Some((name, value.parse().ok()?))
            })
            .collect();
        self.expect(&counter_lines(&counters));
    }

    fn row(&mut self, line: &str) {
        let ours = self.render_row(line);
        self.expect(&ours);
    }

    fn render_row(&self, line: &str) -> String {
        let (columns, _) = self.columns.unwrap();
        match screen::row(line, columns) {
            Row::Bandwidth(report, cpu) if report.ports.is_some() => {
                bandwidth_row_per_port(&report, cpu)
            }
            Row::Bandwidth(report, cpu) => {
                let average = line.split_ascii_whitespace().nth(3).unwrap();
                let six_decimals = average.split('.').nth(1).is_some_and(|d| d.len() == 6);
                self.check_decimals(columns, report.average, six_decimals);
                bandwidth_row(&report, six_decimals, cpu, self.style)
            }
            Row::Latency(size, iterations, figures, cpu) => {
                latency_row(size, iterations, &figures, cpu)
            }
            Row::LatencyTimed(size, iterations, figures, cpu) => {
                latency_timed_row(size, iterations, &figures, cpu)
            }
        }
    }

    /// The number of decimals follows the local average, which the row shows
    /// unless it is a sum.
    fn check_decimals(&self, columns: Columns, average: f64, six_decimals: bool) {
        let (Columns::Bandwidth(units), Some(info)) = (columns, &self.info) else {
            return;
        };
        let rounding = (average - 0.1).abs() < 0.005;
        if !info.duplex && !rounding {
            let expected = shows_six_decimals(units, average);
            assert_eq!(expected, six_decimals, "{}: {average}", self.name);
        }
    }

    /// The two tables of `--report-both`.
    fn both(&mut self) {
        let (columns, cpu_util) = self.columns.unwrap();
        let atomic = self.rest.starts_with("\n Local results:\n");
        let rows: Vec<String> = self
            .rest
            .lines()
            .filter(|line| is_row(line))
            .map(|line| self.render_row(line))
            .collect();
        let [local, remote] = &rows[..] else {
            panic!("{}: {} rows of results", self.name, rows.len());
        };
        let ours = both_results(columns, [local, remote], atomic, cpu_util, self.style);
        // Its first line has been taken as an ordinary one.
        self.expect(ours.strip_prefix(notes::LINE).unwrap());
    }

    fn note(&mut self, line: &'a str) {
        let known = [
            notes::NO_PEAK,
            notes::NO_DYNAMIC_POLLING,
            notes::POLL_BATCH_RAISED,
            notes::POST_LIST_MODERATION,
            notes::CLIENT_CLOSED,
            notes::USER_STOPPED,
            engine::exchange::OUT_READS_LOWERED,
        ];
        if let Some(note) = known.iter().find(|note| self.rest.starts_with(**note)) {
            return self.expect(note);
        }
        if let Some(seconds) = line
            .strip_prefix(" Waiting ")
            .and_then(|rest| rest.split(' ').next()?.parse().ok())
        {
            return self.expect(&notes::waiting_to_destroy(seconds));
        }
        // Messages of the option parser and others that are not ours; nothing
        // that looks like a report may end up here.
        let report = ["address:", "GID:", "#bytes", "results:", "---------"];
        assert!(
            !report.iter().any(|word| line.contains(word)),
            "{}: {line:?}",
            self.name
        );
        self.rest = &self.rest[line.len()..];
    }
}

fn whose(line: &str) -> Option<Whose> {
    if line.starts_with(" local address:") {
        Some(Whose::Local)
    } else if line.starts_with(" remote address:") {
        Some(Whose::Remote)
    } else {
        None
    }
}

/// Rows begin with a blank and a number, and have four numbers at least.
fn is_row(line: &str) -> bool {
    line.starts_with(' ')
        && line.split_ascii_whitespace().count() >= 4
        && line
            .split_ascii_whitespace()
            .all(|word| word == "-nan" || word.parse::<f64>().is_ok())
}

#[test]
fn golden_screens_render_byte_for_byte() {
    let screens = screens();
    let checked: usize = screens.iter().map(|screen| Walk::new(screen).run()).sum();
    assert!(
        checked >= screens.len(),
        "{checked} parts of {}",
        screens.len()
    );
}

#[test]
fn golden_report_files_render_byte_for_byte() {
    for file in report_files() {
        let ours = file.render();
        assert_eq!(ours, file.as_json(), "{}", file.name);
        let parsed: Result<serde_json::Value, _> = serde_json::from_str(&ours);
        assert!(parsed.is_ok(), "{}: {parsed:?}", file.name);
    }
}

/// The sample lists of a screen (`-U`, `-H`) with the row below them.
struct Lists {
    samples: Vec<Vec<f64>>,
    figures: LatencyFigures,
}

fn lists(text: &str) -> Option<Lists> {
    let mut samples: Vec<Vec<f64>> = Vec::new();
    for line in text.lines() {
        if line.starts_with("#, ") {
            samples.push(Vec::new());
        } else if let (Some((_, sample)), Some(list)) = (line.split_once(", "), samples.last_mut())
        {
            list.push(c_number(sample));
        } else if is_row(line) && !samples.is_empty() {
            let Row::Latency(_, _, figures, _) = screen::row(line, Columns::Latency) else {
                return None;
            };
            return Some(Lists { samples, figures });
        }
    }
    None
}

/// Six digits are shown of a sample, and two decimals of a figure.
fn close(ours: f64, shown: f64) -> bool {
    (ours - shown).abs() <= 0.0051 + shown.abs() * 1e-5
}

#[test]
fn golden_sample_lists_give_the_figures_of_their_rows() {
    for screen in screens() {
        let Some(Lists { samples, figures }) = lists(&screen.text) else {
            continue;
        };
        let unsorted = samples
            .iter()
            .find(|list| !list.is_sorted())
            .cloned()
            .unwrap_or_else(|| {
                // A sorted list lacks the two largest; one of them is in the row.
                let mut all = samples[0].clone();
                all.extend([figures.max, figures.max]);
                all
            });
        // As whole nanoseconds, the finest that we measure.
        let mut stamps = LatencySamples::new(unsorted.len() + 1);
        let mut now = 0.0;
        stamps.mark_posted(0, 0);
        for (index, sample) in unsorted.iter().enumerate() {
            now += (sample * 1000.0).round();
            stamps.mark_posted(index + 1, now as u64);
        }
        let whole = Scale {
            cycles: None,
            round_trip: true,
        };
        let ours = stamps.sorted(whole).unwrap().figures();
        for (what, ours, shown) in [
            ("t_min", ours.min, figures.min),
            ("t_max", ours.max, figures.max),
            ("t_typical", ours.typical, figures.typical),
            ("t_avg", ours.average, figures.average),
            ("99%", ours.p99, figures.p99),
            ("99.9%", ours.p99_9, figures.p99_9),
        ] {
            assert!(close(ours, shown), "{}: {what} {ours} {shown}", screen.name);
        }
        // Rounding of the list may move a deviation over the edge of a whole
        // microsecond; stock overflows with cycles.
        let edge = unsorted
            .iter()
            .any(|sample| ((ours.average - sample).fract().abs() - 0.5).abs() > 0.49);
        assert!(
            figures.stdev.is_nan() || edge || close(ours.stdev, figures.stdev),
            "{}: t_stdev {} {}",
            screen.name,
            ours.stdev,
            figures.stdev
        );
    }
}
