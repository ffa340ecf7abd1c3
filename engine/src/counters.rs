//! The counters of a port that the kernel shows in sysfs (`-W`).

use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Where the kernel shows RDMA devices.
const DEVICES: &str = "/sys/class/infiniband";

/// Counters, as the user names them, and what they were when they were last read.
#[derive(Debug, Default)]
pub(crate) struct Counters {
    folder: PathBuf,
    names: Vec<String>,
    last: Vec<u64>,
}

/// A counter cannot be read.
#[derive(Debug, thiserror::Error)]
#[error(
    "cannot read the counter {} ({source}); -W takes files below {}, which only devices of the \
     kernel have",
    name, folder.display()
)]
pub struct CounterError {
    /// The counter.
    name: String,
    /// The port's folder in sysfs.
    folder: PathBuf,
    /// What the system said.
    source: io::Error,
}

impl Counters {
    /// Opens the counters of a port; growth counts from now.
    pub(crate) fn open(names: &[String], device: &str, port: u8) -> Result<Self, CounterError> {
        let folder = format!("{DEVICES}/{device}/ports/{port}");
        Self::below(Path::new(&folder), names)
    }

    fn below(folder: &Path, names: &[String]) -> Result<Self, CounterError> {
        let mut counters = Self {
            folder: folder.to_owned(),
            names: names.to_vec(),
            last: Vec::new(),
        };
        counters.last = counters.read()?;
        Ok(counters)
    }

    fn read(&self) -> Result<Vec<u64>, CounterError> {
        let read = |name: &String| {
            let text = fs::read_to_string(self.folder.join(name))?;
            text.trim().parse().map_err(|_| {
                let what = format!("it says {:?}, which is no number", text.trim());
                io::Error::new(io::ErrorKind::InvalidData, what)
            })
        };
        self.names
            .iter()
            .map(|name| {
                read(name).map_err(|source| CounterError {
                    name: name.clone(),
                    folder: self.folder.clone(),
                    source,
                })
            })
            .collect()
    }

    /// By how much each has grown since the last look.
    pub(crate) fn growth(&mut self) -> Result<Vec<(&str, u64)>, CounterError> {
        let now = self.read()?;
        let last = std::mem::replace(&mut self.last, now.clone());
        let growth = now
            .iter()
            .zip(last)
            .map(|(now, last)| now.wrapping_sub(last));
        Ok(self.names.iter().map(String::as_str).zip(growth).collect())
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn counters_grow_from_look_to_look() {
        let port = std::env::temp_dir().join(format!("ironverbs-port-{}", std::process::id()));
        let write = |name: &str, value: &str| {
            let file = port.join(name);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, format!("{value}\n")).unwrap();
        };
        write("counters/sent", "100");
        write("hw_counters/lost", "0");
        let names = ["counters/sent", "hw_counters/lost"].map(str::to_owned);
        let mut counters = Counters::below(&port, &names).unwrap();
        write("counters/sent", "175");
        write("hw_counters/lost", "2");
        let expected = [("counters/sent", 75), ("hw_counters/lost", 2)];
        assert_eq!(counters.growth().unwrap(), expected);
        assert_eq!(counters.growth().unwrap()[0].1, 0);
        write("counters/sent", "many");
        let error = counters.growth().unwrap_err().to_string();
        assert!(
            error.contains("counters/sent") && error.contains("many"),
            "{error}"
        );
        fs::remove_dir_all(&port).unwrap();
        let error = Counters::below(&port, &names).unwrap_err().to_string();
        assert!(error.contains("only devices of the kernel"), "{error}");
        assert!(
            Counters::below(&port, &[])
                .unwrap()
                .growth()
                .unwrap()
                .is_empty()
        );
    }
}
