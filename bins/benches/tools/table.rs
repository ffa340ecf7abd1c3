//! The figures, side by side.

use serde_json::{Value, json};

/// Whether more is better.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Goal {
    High,
    Low,
}

/// What a command should reach.
#[derive(Clone, Copy)]
pub(crate) enum Target {
    /// Of the ceiling.
    Ratio(f64),
    /// By itself.
    Value(f64),
    /// One of both, value and ratio.
    ValueOrRatio(f64, f64),
}

/// Figures that are compared in the same way.
pub(crate) struct Table {
    /// Titles of what a command is compared with, and of what is between.
    pub(crate) titles: [&'static str; 2],
    pub(crate) figures: Vec<Figure>,
}

/// One figure, in all rounds.
pub(crate) struct Figure {
    pub(crate) what: &'static str,
    pub(crate) unit: &'static str,
    pub(crate) goal: Goal,
    pub(crate) target: Option<Target>,
    /// By plain UDP, or another command; empty where there is nothing to
    /// compare with.
    pub(crate) ceiling: Vec<f64>,
    /// By `UdpLink`, which the commands use; empty where nobody asks.
    pub(crate) link: Vec<f64>,
    pub(crate) command: Vec<f64>,
}

/// The figures of one row.
struct Row {
    ceiling: Option<f64>,
    link: Option<f64>,
    command: Option<f64>,
    /// Of the command to the ceiling.
    ratio: Option<f64>,
}

impl Figure {
    /// The best of the rounds; the ratio is that of the best to the best.
    fn best(&self) -> Row {
        let best = |rounds: &[f64]| {
            let rounds = rounds.iter().copied();
            match self.goal {
                Goal::High => rounds.reduce(f64::max),
                Goal::Low => rounds.reduce(f64::min),
            }
        };
        let (ceiling, command) = (best(&self.ceiling), best(&self.command));
        Row {
            ceiling,
            link: best(&self.link),
            command,
            ratio: command
                .zip(ceiling)
                .map(|(command, ceiling)| command / ceiling),
        }
    }

    /// The medians; that of the ratios is of those within each round.
    fn median(&self) -> Row {
        let pairs = self.command.iter().zip(&self.ceiling);
        let ratios: Vec<f64> = pairs.map(|(command, ceiling)| command / ceiling).collect();
        Row {
            ceiling: median(&self.ceiling),
            link: median(&self.link),
            command: median(&self.command),
            ratio: median(&ratios),
        }
    }

    fn reaches(&self, value: f64, target: f64) -> bool {
        match self.goal {
            Goal::High => value >= target,
            Goal::Low => value <= target,
        }
    }

    /// Whether a row reaches the target, and the target.
    fn verdict(&self, row: &Row) -> Option<(bool, String)> {
        let sign = match self.goal {
            Goal::High => ">=",
            Goal::Low => "<=",
        };
        let unit = self.unit;
        let ratio = |target| row.ratio.is_some_and(|ratio| self.reaches(ratio, target));
        let value = |target| {
            row.command
                .is_some_and(|command| self.reaches(command, target))
        };
        Some(match self.target? {
            Target::Ratio(target) => (ratio(target), format!("ratio {sign} {target}")),
            Target::Value(target) => (value(target), format!("{sign} {target} {unit}")),
            Target::ValueOrRatio(absolute, relative) => (
                value(absolute) || ratio(relative),
                format!("{sign} {absolute} {unit}, or ratio {sign} {relative}"),
            ),
        })
    }
}

fn median(rounds: &[f64]) -> Option<f64> {
    let mut rounds = rounds.to_vec();
    rounds.sort_by(f64::total_cmp);
    rounds.get(rounds.len() / 2).copied()
}

/// For people, the best rounds of each table above the medians.
pub(crate) fn print(tables: &[Table], rounds: usize) {
    if let Ok(load) = std::fs::read_to_string("/proc/loadavg") {
        println!("{rounds} rounds; load average now {}", load.trim());
    }
    for table in tables {
        print_table(table);
    }
}

fn print_table(table: &Table) {
    let Table {
        titles: [ceiling, link],
        figures,
    } = table;
    let rows_of = |kind: fn(&Figure) -> Row| figures.iter().map(kind).collect::<Vec<Row>>();
    for (name, rows) in [
        ("best", rows_of(Figure::best)),
        ("median", rows_of(Figure::median)),
    ] {
        println!(
            "{name:<28}{:<6}{ceiling:>10}{link:>10}{:>10}{:>8}  target",
            "", "command", "ratio"
        );
        for (figure, row) in figures.iter().zip(&rows) {
            let number = |value: Option<f64>, decimals: usize| {
                value.map_or("-".to_owned(), |value| format!("{value:.decimals$}"))
            };
            let target = match figure.verdict(row) {
                Some((true, target)) => format!("{target}: reached"),
                Some((false, target)) => format!("{target}: MISSED"),
                None => "-".to_owned(),
            };
            println!(
                "{:<28}{:<6}{:>10}{:>10}{:>10}{:>8}  {target}",
                figure.what,
                figure.unit,
                number(row.ceiling, 3),
                number(row.link, 3),
                number(row.command, 3),
                number(row.ratio, 3),
            );
        }
    }
}

/// The same for programs.
pub(crate) fn json(tables: &[Table]) -> Value {
    let row = |figure: &Figure, row: Row| {
        let verdict = figure.verdict(&row);
        json!({
            "plain": row.ceiling,
            "link": row.link,
            "command": row.command,
            "ratio": row.ratio,
            "reached": verdict.map(|(reached, _)| reached),
        })
    };
    tables
        .iter()
        .flat_map(|table| &table.figures)
        .map(|figure| {
            json!({
                "figure": figure.what,
                "unit": figure.unit,
                "best": row(figure, figure.best()),
                "median": row(figure, figure.median()),
            })
        })
        .collect()
}
