//! Where the golden records are.

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
