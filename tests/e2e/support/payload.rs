//! Messages whose content is looked at.

use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// Each test has a file of its own.
static COUNT: AtomicU32 = AtomicU32::new(0);

/// A file of words for the messages, removed with the test.
pub(crate) struct PayloadFile(PathBuf);

impl PayloadFile {
    pub(crate) fn new() -> Self {
        let folder = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
        let number = COUNT.fetch_add(1, Ordering::Relaxed);
        let file = folder.join(format!("payload.{}.{number}.txt", std::process::id()));
        // Messages that begin in different places look different.
        let words: Vec<String> = (1..30_u32)
            .map(|word| format!("{:#010x}", word.wrapping_mul(0x9e37_79b9)))
            .collect();
        std::fs::write(&file, words.join(",")).unwrap();
        Self(file)
    }

    /// Send these words, and see that they come.
    pub(crate) fn options(&self) -> String {
        format!("--check_payload --payload_file_path={}", self.0.display())
    }
}

impl Drop for PayloadFile {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.0);
    }
}
