//! The one table of options: parser, help text, man pages and completions are
//! made from its rows.
//!
//! Rows stand in the order of stock perftest 6.29, because getopt lists the
//! candidates of an ambiguous abbreviation in that order. Options of stock
//! builds with libraries that are rarely there (`--numa_node`,
//! `--disable_numa`, `--use_ooo`, `--no_enhanced_reorder`, `--congest_type`,
//! `--unsolicited_write`, `--ph`, `--tph_mem`, `--cpu_id`) are unknown here as
//! they are in builds without those libraries.

mod accelerators;
mod cpu_list;
mod lettered;
mod long_only;
mod own;
mod raw_ethernet;
mod row;

pub(super) use raw_ethernet::{check_addresses, check_names};
pub(super) use row::Store;
pub use row::{OptionRow, Section, Tools};

use crate::words::Tool;

/// Every option, in order.
pub fn rows() -> impl Iterator<Item = &'static OptionRow> {
    [
        lettered::ROWS,
        long_only::FIRST,
        accelerators::ROWS,
        long_only::SECOND,
        own::ROWS,
    ]
    .into_iter()
    .flatten()
}

/// The options of one section that `tool` has.
pub fn section(tool: Tool, section: Section) -> impl Iterator<Item = &'static OptionRow> {
    rows().filter(move |row| row.section == section && row.tools.contains(tool))
}

/// What a long name, possibly abbreviated, stands for.
#[derive(Debug)]
pub(super) enum Found {
    /// This option.
    One(&'static OptionRow),
    /// No option begins like this.
    None,
    /// Several do.
    Many(Vec<&'static str>),
}

pub(super) fn by_letter(letter: char) -> Option<&'static OptionRow> {
    rows().find(|row| row.short == Some(letter))
}

/// An exact name wins, then the only option that begins with `name`. The
/// project's own options are asked last, so that every abbreviation that is
/// unique in stock perftest stays so.
pub(super) fn by_long_name(name: &str) -> Found {
    if let Some(row) = rows().find(|row| row.names().any(|long| long == name)) {
        return Found::One(row);
    }
    for own in [false, true] {
        let candidates: Vec<_> = rows()
            .filter(|row| (row.section == Section::Own) == own)
            .filter(|row| row.names().any(|long| long.starts_with(name)))
            .collect();
        match candidates.as_slice() {
            [] => {}
            [row] => return Found::One(row),
            rows => return Found::Many(rows.iter().map(|row| row.long).collect()),
        }
    }
    Found::None
}

#[cfg(test)]
mod tests;
