//! Reads `strace/*.ioctl.txt`: commands with the buffers before and after.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// An attribute as it was passed.
#[derive(Debug, Clone)]
pub(crate) struct Passed {
    pub(crate) id: u16,
    pub(crate) len: usize,
    pub(crate) flags: u16,
    pub(crate) data: u64,
    /// What `data` points at, if it is an address.
    pub(crate) bytes: Option<Vec<u8>>,
}

/// An attribute after the call.
#[derive(Debug, Clone)]
pub(crate) enum After {
    Data(u64),
    Bytes(Vec<u8>),
}

/// A recorded call.
#[derive(Debug, Clone)]
pub(crate) enum Call {
    Ioctl {
        /// Line, for messages.
        line: usize,
        object: u16,
        method: u16,
        driver: u32,
        attributes: Vec<Passed>,
        /// Attributes that there should be.
        count: usize,
        /// One, unless the rows of two threads are mixed.
        results: usize,
        errno: i32,
        after: BTreeMap<u16, After>,
    },
    /// A write to a uverbs device, and the queues as they were mapped.
    Write {
        line: usize,
        bytes: Vec<u8>,
        rings: Vec<RingDump>,
    },
}

/// The entries of a mapped queue at a doorbell.
#[derive(Debug, Clone)]
pub(crate) struct RingDump {
    pub(crate) offset: u64,
    pub(crate) elements: Vec<Vec<u8>>,
}

/// The records in the golden data, by name; none, said on stderr, when that
/// part isn't here.
pub(crate) fn records() -> Vec<(String, String)> {
    let root = std::env::var_os("GOLDEN_DIR").map_or_else(
        || Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/golden"),
        PathBuf::from,
    );
    let folder = root.join("strace");
    let Ok(entries) = std::fs::read_dir(&folder) else {
        eprintln!("skipped: no golden data in {}", folder.display());
        return Vec::new();
    };
    let mut records: Vec<_> = entries
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.to_string_lossy().ends_with(".ioctl.txt"))
        .map(|path| {
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            (name, std::fs::read_to_string(&path).unwrap())
        })
        .collect();
    records.sort();
    records
}

/// The calls of a record, in order.
pub(crate) fn calls(text: &str) -> Vec<Call> {
    let mut calls = Vec::new();
    for (at, row) in text.lines().enumerate() {
        let line = at + 1;
        if row.starts_with(|c: char| c.is_ascii_digit()) {
            let uverbs = row.contains("/uverbs");
            if uverbs && row.contains(" ioctl(") {
                calls.push(Call::Ioctl {
                    line,
                    object: 0,
                    method: 0,
                    driver: 0,
                    attributes: Vec::new(),
                    count: 0,
                    results: 0,
                    errno: 0,
                    after: BTreeMap::new(),
                });
            } else if uverbs && row.contains(" write(") {
                let (bytes, rings) = (Vec::new(), Vec::new());
                calls.push(Call::Write { line, bytes, rings });
            } else {
                // Another call: what follows isn't ours.
                calls.push(Call::Write {
                    line: 0,
                    bytes: Vec::new(),
                    rings: Vec::new(),
                });
            }
        } else if let Some(call) = calls.last_mut() {
            detail(call, row.trim_start());
        }
    }
    calls.retain(|call| match call {
        Call::Write { line, .. } => *line != 0,
        Call::Ioctl {
            attributes,
            count,
            results,
            ..
        } => attributes.len() == *count && *results == 1,
    });
    calls
}

fn detail(call: &mut Call, row: &str) {
    match call {
        Call::Ioctl {
            object,
            method,
            driver,
            attributes,
            count,
            results,
            errno,
            after,
            ..
        } => {
            if row.starts_with("hdr ") {
                *count = field(row, "num_attrs=") as usize;
                *object = field(row, "object_id=") as u16;
                *method = field(row, "method_id=") as u16;
                *driver = field(row, "driver_id=") as u32;
            } else if row.starts_with("attr ") {
                attributes.push(Passed {
                    id: field(row, "id=") as u16,
                    len: field(row, "len=") as usize,
                    flags: field(row, "flags=") as u16,
                    data: field(row, "data="),
                    bytes: None,
                });
            } else if row.starts_with("in") {
                attributes.last_mut().unwrap().bytes = Some(dump(row));
            } else if row.starts_with("= ") {
                *results += 1;
                *errno = field(row, "errno ") as i32;
            } else if row.starts_with("after ") {
                let value = match row.contains("data=") {
                    true => After::Data(field(row, "data=")),
                    false => After::Bytes(dump(row)),
                };
                after.insert(field(row, "id=") as u16, value);
            }
        }
        Call::Write { bytes, rings, .. } => {
            if row.starts_with("in[") {
                *bytes = dump(row);
            } else if row.starts_with("ring ") {
                rings.push(RingDump {
                    offset: field(row, "offset="),
                    elements: Vec::new(),
                });
            } else if row.starts_with("elem ") {
                rings.last_mut().unwrap().elements.push(dump(row));
            }
        }
    }
}

/// The number after a name.
fn field(row: &str, name: &str) -> u64 {
    let rest = row.split_once(name).expect(row).1;
    let end = rest.find([' ', '(', ',']).unwrap_or(rest.len());
    let text = &rest[..end];
    match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => text.parse(),
    }
    .expect(row)
}

/// The bytes after `[N] `, in memory order.
fn dump(row: &str) -> Vec<u8> {
    let hex: String = row
        .split_once("] ")
        .map_or("", |(_, hex)| hex)
        .split_whitespace()
        .collect();
    let digits = hex.as_bytes().chunks_exact(2);
    digits
        .map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap())
        .collect()
}

/// What follows a name in the comments at the top: `wc A: wr_id=...`.
pub(crate) fn comments<'a>(text: &'a str, name: &'a str) -> impl Iterator<Item = &'a str> {
    let prefix = format!("# {name}");
    text.lines()
        .filter_map(move |row| row.strip_prefix(prefix.as_str()))
}

/// A field of such a comment.
pub(crate) fn comment_field(row: &str, name: &str) -> u64 {
    field(row, name)
}
