//! Files with results, never seen half written.

use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// A file with results cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("cannot write {}: {source}; choose a writable place with {option}", path.display())]
pub struct FileError {
    /// The file.
    pub path: PathBuf,
    /// The option that chooses it.
    pub option: &'static str,
    /// What the system said.
    pub source: io::Error,
}

/// Writes the file, which the user chose by `option`, with mode 0600. It is
/// written beside its place and then renamed, so that a reader finds the old
/// file or the new one.
///
/// # Errors
/// [`FileError`]; stock says nothing then.
pub fn write(path: &Path, text: &str, option: &'static str) -> Result<(), FileError> {
    replace(path, text).map_err(|source| FileError {
        path: path.to_owned(),
        option,
        source,
    })
}

fn replace(path: &Path, text: &str) -> io::Result<()> {
    if fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        // A pipe or a terminal: renaming would put a file in its place.
        return OpenOptions::new()
            .write(true)
            .open(path)?
            .write_all(text.as_bytes());
    }
    let mut name = path
        .file_name()
        .ok_or(io::ErrorKind::IsADirectory)?
        .to_owned();
    name.push(format!(".{}.tmp", std::process::id()));
    let temporary = path.with_file_name(name);
    // What lies there is from a process that died; never write through it.
    let _ = fs::remove_file(&temporary);
    let written = OpenOptions::new()
        .write(true)
        .create_new(true)
        .mode(0o600)
        .open(&temporary)
        .and_then(|mut file| file.write_all(text.as_bytes()))
        .and_then(|()| fs::rename(&temporary, path));
    if written.is_err() {
        // It may not even exist; the first error is the one to report.
        let _ = fs::remove_file(&temporary);
    }
    written
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use std::os::unix::fs::PermissionsExt as _;

    use super::*;

    #[test]
    fn replaces_a_file_and_says_which_one_it_cannot_write() {
        let directory = std::env::temp_dir().join(format!("ironverbs-file-{}", std::process::id()));
        fs::create_dir_all(&directory).unwrap();
        let path = directory.join("report.json");
        let write = |path: &Path, text| write(path, text, "--out_json_file");
        write(&path, "old and longer\n").unwrap();
        write(&path, "new\n").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "new\n");
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        // Nothing else is left behind.
        assert_eq!(fs::read_dir(&directory).unwrap().count(), 1);
        let missing = directory.join("missing/report.json");
        let error = write(&missing, "text").unwrap_err().to_string();
        assert!(error.contains("missing/report.json"), "{error}");
        assert!(error.ends_with("with --out_json_file"), "{error}");
        assert!(write(&directory, "text").is_err());
        assert!(write(Path::new("/dev/null"), "text").is_ok());
        assert!(!fs::metadata("/dev/null").unwrap().is_file());
        fs::remove_dir_all(&directory).unwrap();
    }
}
