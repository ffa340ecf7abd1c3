//! Reading one attribute: a short text in a file of its own.

use std::fs::File;
use std::io::Read;
use std::path::Path;

use super::SysfsError;

/// A page, which is the longest attribute that sysfs can have.
const LONGEST: usize = 4096;

/// The content without the newline at its end. Bytes that aren't UTF-8 become
/// replacement characters.
pub(super) fn text(path: &Path) -> Result<String, SysfsError> {
    let mut bytes = Vec::with_capacity(LONGEST + 1);
    File::open(path)
        .and_then(|file| file.take(LONGEST as u64 + 1).read_to_end(&mut bytes))
        .map_err(|source| SysfsError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
    if bytes.len() > LONGEST {
        return Err(SysfsError::TooLong {
            path: path.to_owned(),
            limit: LONGEST,
        });
    }
    let text = String::from_utf8_lossy(&bytes);
    Ok(text.strip_suffix('\n').unwrap_or(&text).to_owned())
}

/// The content as `parse` reads it.
pub(super) fn parsed<T>(
    path: &Path,
    expected: &'static str,
    parse: impl FnOnce(&str) -> Option<T>,
) -> Result<T, SysfsError> {
    let seen = text(path)?;
    parse(&seen).ok_or_else(|| SysfsError::Unexpected {
        path: path.to_owned(),
        seen,
        expected,
    })
}

/// A decimal number.
pub(super) fn number(path: &Path, expected: &'static str) -> Result<u32, SysfsError> {
    parsed(path, expected, |text| text.parse().ok())
}

/// The number before the colon of `4: ACTIVE`.
pub(super) fn numbered_word(path: &Path, expected: &'static str) -> Result<u8, SysfsError> {
    parsed(path, expected, |text| text.split_once(": ")?.0.parse().ok())
}

/// `None` for an attribute that this kernel or device hasn't got.
pub(super) fn optional<T>(read: Result<T, SysfsError>) -> Result<Option<T>, SysfsError> {
    match read {
        Ok(value) => Ok(Some(value)),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

/// `groups` groups of four hexadecimal digits between colons, as bytes in the
/// order of the wire.
pub(super) fn hex_groups<const BYTES: usize>(text: &str) -> Option<[u8; BYTES]> {
    let mut bytes = [0; BYTES];
    let mut groups = text.split(':');
    for pair in bytes.chunks_exact_mut(2) {
        let group = groups.next().filter(|group| group.len() == 4)?;
        if !group.bytes().all(|byte| byte.is_ascii_hexdigit()) {
            return None;
        }
        pair.copy_from_slice(&u16::from_str_radix(group, 16).ok()?.to_be_bytes());
    }
    groups.next().is_none().then_some(bytes)
}
