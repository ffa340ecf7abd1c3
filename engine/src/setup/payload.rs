//! What messages consist of when the user says so (`--payload_file_path`).

use std::io;

use verbs_sys::memory::Buffer;

/// Why a payload file is refused.
#[derive(Debug, thiserror::Error)]
pub enum PayloadError {
    /// It can't be read.
    #[error("cannot read the payload file {path}: {source}; give a file that is there")]
    Unreadable {
        /// Its name.
        path: String,
        /// Why not.
        source: io::Error,
    },
    /// It is empty.
    #[error("the payload file {path} is empty; give words like 0x12345678, separated by commas")]
    Empty {
        /// Its name.
        path: String,
    },
    /// A word isn't one.
    #[error(
        "word {index} of the payload file is {word:?}, not like 0x12345678; words have eight \
         hexadecimal digits and are separated by commas"
    )]
    NotAWord {
        /// Counted from 0.
        index: usize,
        /// What is there.
        word: String,
    },
}

impl PayloadError {
    /// What stock prints.
    pub(crate) fn stock_text(&self) -> String {
        let first = match self {
            Self::Unreadable { path, .. } => format!("Failed to open '{path}'\n"),
            Self::Empty { .. } => "Payload size should be greater than 0\n".to_owned(),
            Self::NotAWord { index, word } if has_form(word) => {
                format!("Invalid hex char in DWORD number: {index}\n")
            }
            Self::NotAWord { index, .. } => format!("Failed to parse DWORD number: {index}\n"),
        };
        format!("{first}Failed to create MR\n Couldn't create IB resources\n")
    }
}

/// The pattern that is repeated over the whole buffer.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Payload {
    pattern: Vec<u8>,
}

impl Payload {
    /// Reads a file of words.
    pub(super) fn read(path: &str) -> Result<Self, PayloadError> {
        let text = std::fs::read(path).map_err(|source| PayloadError::Unreadable {
            path: path.to_owned(),
            source,
        })?;
        let text = String::from_utf8_lossy(&text);
        let pattern = Self::parse(&text)?;
        if pattern.is_empty() {
            return Err(PayloadError::Empty {
                path: path.to_owned(),
            });
        }
        Ok(Self { pattern })
    }

    fn parse(text: &str) -> Result<Vec<u8>, PayloadError> {
        let text = text.trim_end_matches(['\n', '\r', ',']);
        if text.is_empty() {
            return Ok(Vec::new());
        }
        let mut pattern = Vec::new();
        for (index, word) in text.split(',').enumerate() {
            let digits = Some(word)
                .filter(|word| has_form(word))
                .and_then(|word| word.strip_prefix("0x"))
                .filter(|digits| digits.bytes().all(|digit| digit.is_ascii_hexdigit()));
            let value = digits.and_then(|digits| u32::from_str_radix(digits, 16).ok());
            let value = value.ok_or_else(|| PayloadError::NotAWord {
                index,
                word: word.chars().take(32).collect(),
            })?;
            pattern.extend(value.to_le_bytes());
        }
        Ok(pattern)
    }

    /// Fills an area with the pattern, which begins at the start of the buffer.
    pub(super) fn fill(&self, buffer: &Buffer, offset: usize, length: usize) {
        const AT_ONCE: usize = 64 << 10;
        for start in (0..length).step_by(AT_ONCE) {
            let piece = self.from(offset + start, AT_ONCE.min(length - start));
            // Inside the buffer by the layout.
            let _ = buffer.write(offset + start, &piece);
        }
    }

    /// So many bytes of the repeated pattern, from this byte of the buffer on.
    pub(crate) fn from(&self, offset: usize, length: usize) -> Vec<u8> {
        let pattern = self.pattern.iter().copied().cycle();
        pattern
            .skip(offset % self.pattern.len())
            .take(length)
            .collect()
    }

    /// Bytes until the pattern begins anew.
    pub(crate) fn period(&self) -> usize {
        self.pattern.len()
    }
}

/// `0x` and eight characters.
fn has_form(word: &str) -> bool {
    word.len() == 10 && word.is_ascii() && word.starts_with("0x")
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn words_are_stored_little_endian_and_repeated() {
        let pattern = Payload::parse("0x12345678,0xdeadbeef\n").unwrap();
        assert_eq!(pattern, [0x78, 0x56, 0x34, 0x12, 0xef, 0xbe, 0xad, 0xde]);
        let payload = Payload { pattern };
        assert_eq!(payload.from(14, 4), [0xad, 0xde, 0x78, 0x56]);
        let buffer = Buffer::allocate(4096).unwrap();
        payload.fill(&buffer, 100, 10);
        let mut bytes = [0; 12];
        buffer.read(99, &mut bytes).unwrap();
        assert_eq!(bytes[0], 0);
        assert_eq!(bytes[1..11], payload.from(100, 10));
        assert_eq!(bytes[11], 0);
    }

    #[test]
    fn what_is_no_word_is_named_as_in_stock() {
        for (text, first) in [
            (
                "0x1234567z,0x00000000",
                "Invalid hex char in DWORD number: 0\n",
            ),
            ("0x00000000,0x12", "Failed to parse DWORD number: 1\n"),
            ("0x00000000,12345678", "Failed to parse DWORD number: 1\n"),
            ("0x+1234567", "Invalid hex char in DWORD number: 0\n"),
            (
                "\u{e9}\u{e9}\u{e9}\u{e9}\u{e9}",
                "Failed to parse DWORD number: 0\n",
            ),
        ] {
            let error = Payload::parse(text).unwrap_err();
            assert!(error.stock_text().starts_with(first), "{text}: {error}");
        }
        assert_eq!(Payload::parse("\n").unwrap(), b"");
        let missing = Payload::read("/nonexistent/payload").unwrap_err();
        assert!(
            missing
                .stock_text()
                .starts_with("Failed to open '/nonexistent/payload'\n")
        );
    }
}
