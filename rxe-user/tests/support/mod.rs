//! Records of real traffic, for the golden tests.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

pub(crate) mod pcap;

/// The folder `name` of the golden records: in `GOLDEN_DIR` if set, else in the project. `None`,
/// and a word on stderr, when there is none.
pub(crate) fn golden_dir(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GOLDEN_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden"),
        PathBuf::from,
    );
    let dir = root.join(name);
    if dir.is_dir() {
        return Some(dir);
    }
    eprintln!("skipped: no golden records in {}", dir.display());
    None
}

/// A row of a table: the cells by the names of their columns.
pub(crate) type Row = BTreeMap<String, String>;

/// The rows of a tab-separated file whose first line names the columns.
pub(crate) fn read_tsv(path: &Path) -> Vec<Row> {
    let text =
        std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split('\t').collect();
    lines
        .map(|line| {
            names
                .iter()
                .map(ToString::to_string)
                .zip(line.split('\t').map(str::to_owned))
                .collect()
        })
        .collect()
}
