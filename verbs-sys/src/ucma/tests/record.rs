//! The recorded calls of rdma-core: `strace/*.ioctl.txt`.

use std::fs;
use std::path::{Path, PathBuf};

/// What one program wrote to the device, and what it got.
pub(super) struct Record {
    pub(super) name: String,
    pub(super) buffers: Vec<Buffer>,
}

/// A buffer of a call.
pub(super) enum Buffer {
    /// Header and body of a command.
    Command(Vec<u8>),
    /// The kernel's answer.
    Answer(Vec<u8>),
}

/// All records in which the device appears; none, said on stderr, when the
/// folder isn't there.
pub(super) fn records() -> Vec<Record> {
    let root = std::env::var_os("GOLDEN_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden"),
        PathBuf::from,
    );
    let folder = root.join("strace");
    let Ok(entries) = fs::read_dir(&folder) else {
        eprintln!("skipped: no golden data in {}", folder.display());
        return Vec::new();
    };
    let mut paths: Vec<PathBuf> = entries.map(|entry| entry.unwrap().path()).collect();
    paths.sort();
    paths
        .iter()
        .filter(|path| path.to_string_lossy().ends_with(".ioctl.txt"))
        .map(|path| Record {
            name: path.file_name().unwrap().to_string_lossy().into_owned(),
            buffers: buffers(&fs::read_to_string(path).unwrap()),
        })
        .filter(|record| !record.buffers.is_empty())
        .collect()
}

/// The buffers of the device's calls. A call begins with its number; what
/// belongs to it is indented.
fn buffers(text: &str) -> Vec<Buffer> {
    let mut ours = false;
    let mut found = Vec::new();
    for line in text.lines() {
        if line.starts_with(|first: char| first.is_ascii_digit()) {
            ours = line.contains("write(/dev/infiniband/rdma_cm");
        } else if ours {
            let line = line.trim_start();
            if let Some(bytes) = hex(line, "in[") {
                found.push(Buffer::Command(bytes));
            } else if let Some(bytes) = hex(line, "out[") {
                found.push(Buffer::Answer(bytes));
            }
        }
    }
    found
}

/// `in[8] 0c000000 08005001`: groups of bytes in memory order.
fn hex(line: &str, prefix: &str) -> Option<Vec<u8>> {
    let (length, groups) = line.strip_prefix(prefix)?.split_once("] ")?;
    let digits: String = groups.split_whitespace().collect();
    let bytes: Vec<u8> = (0..digits.len())
        .step_by(2)
        .map(|at| u8::from_str_radix(&digits[at..at + 2], 16).unwrap())
        .collect();
    assert_eq!(bytes.len(), length.parse::<usize>().unwrap(), "{line}");
    Some(bytes)
}
