//! The golden records: where they are, and what they say.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

pub(crate) mod folder;

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) use folder::golden_folder;

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
