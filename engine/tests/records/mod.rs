//! Where the golden records are.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::{Path, PathBuf};

/// The golden data, or `None` (said on stderr) when this part of it is not here.
pub(crate) fn golden_folder(name: &str) -> Option<PathBuf> {
    let root = std::env::var_os("GOLDEN_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden"),
        PathBuf::from,
    );
    let folder = root.join(name);
    if folder.is_dir() {
        return Some(folder);
    }
    eprintln!("skipped: no golden data in {}", folder.display());
    None
}

/// The entries of a folder with this extension (`""`: folders), sorted.
pub(crate) fn entries(folder: &Path, extension: &str) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| match extension {
            "" => path.is_dir(),
            extension => path.extension().is_some_and(|found| found == extension),
        })
        .collect();
    found.sort();
    found
}

/// The case folders of `stock/`.
pub(crate) fn stock_cases() -> Vec<PathBuf> {
    let Some(stock) = golden_folder("stock") else {
        return Vec::new();
    };
    entries(&stock, "")
        .iter()
        .flat_map(|pair| entries(pair, ""))
        .flat_map(|tool| entries(&tool, ""))
        .collect()
}
