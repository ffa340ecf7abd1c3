//! The announced version: the only knob of compatibility in the dialogue.

use std::fmt;

use super::error::ExchangeError;

/// Length of the version message: ASCII, NUL padded.
pub const VERSION_LEN: usize = 16;

/// The version this implementation announces, and whose dialogue it speaks.
pub const ANNOUNCED: &str = "6.29";

/// What follows the announced version when a test is measured several times.
const REPEATS: &str = "+repeat";

/// What follows it when the receiver of validated data tells how far it has
/// looked: then the messages of a chunk, in hexadecimal digits.
const RING: &str = "+ring";

/// The oldest version stock and we talk to.
const OLDEST: f64 = 5.70;

/// The first version that exchanges the parameter block.
#[expect(clippy::approx_constant, reason = "a version, not a circle")]
const NEGOTIATES: f64 = 6.28;

/// An announced version: its 16 bytes and the number in front.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Version {
    bytes: [u8; VERSION_LEN],
    number: f64,
}

impl Version {
    /// The version we announce.
    pub fn announced() -> Self {
        Self::from_text(ANNOUNCED)
    }

    /// The version we announce when a test is measured `runs` times
    /// (`--repeat`), 1 to 1000. Stock reads the number and no further.
    pub fn repeating(runs: u32) -> Self {
        match runs {
            1 => Self::announced(),
            runs => Self::from_text(&format!("{ANNOUNCED}{REPEATS}{runs}")),
        }
    }

    /// How often the peer measures: once, unless it is one of ours and says
    /// something else.
    pub fn repeats(&self) -> u32 {
        let text = self.to_string();
        text.split_once(REPEATS)
            .and_then(|(_, runs)| runs.parse().ok())
            .unwrap_or(1)
    }

    /// The version we announce under `--data_validation`, with so many
    /// messages in a chunk, at most 20 bits. Stock reads the number and no
    /// further.
    pub fn with_chunks(messages: usize) -> Self {
        Self::from_text(&format!("{ANNOUNCED}{RING}{messages:x}"))
    }

    /// Messages of a chunk of the peer's, which then tells how far it has
    /// validated: `None` unless it is one of ours.
    pub fn chunk(&self) -> Option<usize> {
        let text = self.to_string();
        let (_, messages) = text.split_once(RING)?;
        usize::from_str_radix(messages, 16).ok()
    }

    /// A version from its text; what does not fit 15 characters is cut off.
    pub fn from_text(text: &str) -> Self {
        let mut bytes = [0; VERSION_LEN];
        for (slot, byte) in bytes.iter_mut().take(VERSION_LEN - 1).zip(text.bytes()) {
            *slot = byte;
        }
        Self::from_bytes(bytes)
    }

    fn from_bytes(bytes: [u8; VERSION_LEN]) -> Self {
        let number = leading_number(&bytes);
        Self { bytes, number }
    }

    /// The version of a peer.
    ///
    /// # Errors
    /// [`ExchangeError::TooOld`] below 5.70, which is also what a peer gets
    /// whose message does not begin with a number.
    pub fn parse(bytes: [u8; VERSION_LEN]) -> Result<Self, ExchangeError> {
        let version = Self::from_bytes(bytes);
        if version.number >= OLDEST {
            Ok(version)
        } else {
            Err(ExchangeError::TooOld {
                announced: version.to_string(),
            })
        }
    }

    /// The message.
    pub fn bytes(&self) -> &[u8; VERSION_LEN] {
        &self.bytes
    }

    /// The number as stock compares it (`atof` of the text).
    pub fn number(&self) -> f64 {
        self.number
    }

    /// Whether this end exchanges the parameter block with a peer that does too.
    pub fn negotiates(&self) -> bool {
        self.number >= NEGOTIATES
    }

    /// Whether this may be one of the development snapshots between 6.27 and
    /// 6.28 that announce 6.27 and already send the parameter block.
    pub fn may_negotiate_unannounced(&self) -> bool {
        self.number >= 6.27 && !self.negotiates()
    }
}

impl fmt::Display for Version {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let text = self.bytes.split(|byte| *byte == 0).next().unwrap_or(&[]);
        write!(f, "{}", text.escape_ascii())
    }
}

/// What `atof` makes of the text for the forms a version can take: blanks,
/// digits, a point, digits; anything after that is ignored. 0 without digits.
fn leading_number(bytes: &[u8]) -> f64 {
    let text: Vec<u8> = bytes
        .iter()
        .copied()
        .skip_while(u8::is_ascii_whitespace)
        .collect();
    let mut seen_point = false;
    let length = text
        .iter()
        .take_while(|byte| match byte {
            b'.' if !seen_point => {
                seen_point = true;
                true
            }
            byte => byte.is_ascii_digit(),
        })
        .count();
    std::str::from_utf8(&text[..length])
        .ok()
        .and_then(|text| text.parse().ok())
        .unwrap_or(0.0)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    fn message(text: &str) -> [u8; VERSION_LEN] {
        *Version::from_text(text).bytes()
    }

    #[test]
    fn reads_numbers_as_atof_does() {
        for (text, number) in [
            ("6.29", 6.29),
            ("6.29+x", 6.29),
            (" 6.06", 6.06),
            ("6.2.9", 6.2),
            ("7", 7.0),
            ("6.", 6.0),
            ("", 0.0),
            ("version", 0.0),
            (".", 0.0),
        ] {
            assert_eq!(Version::from_text(text).number(), number, "{text:?}");
        }
    }

    #[test]
    fn refuses_what_is_too_old_or_no_version() {
        assert!(Version::parse(message("5.70")).is_ok());
        for text in ["5.69", "", "GET / HTTP/1.1"] {
            let error = Version::parse(message(text)).unwrap_err();
            assert!(matches!(error, ExchangeError::TooOld { .. }), "{text:?}");
        }
    }

    #[test]
    fn announces_sixteen_padded_bytes() {
        assert_eq!(
            Version::announced().bytes(),
            b"6.29\0\0\0\0\0\0\0\0\0\0\0\0"
        );
        assert_eq!(
            Version::from_text("6.29+a-long-suffix").bytes(),
            b"6.29+a-long-suf\0"
        );
    }

    #[test]
    fn tells_stock_nothing_and_ours_how_often_it_measures() {
        assert_eq!(Version::repeating(1), Version::announced());
        assert_eq!(Version::announced().repeats(), 1);
        for runs in [2, 30, 1000] {
            let version = Version::parse(*Version::repeating(runs).bytes()).unwrap();
            assert_eq!(version.repeats(), runs);
            assert_eq!(version.number(), 6.29);
            // A NUL at the end, for atof.
            assert_eq!(version.bytes()[VERSION_LEN - 1], 0);
        }
        assert_eq!(Version::from_text("6.29+repeatx").repeats(), 1);
        assert_eq!(Version::from_text("6.06").repeats(), 1);
    }

    #[test]
    fn tells_stock_nothing_and_ours_its_chunks() {
        assert_eq!(Version::announced().chunk(), None);
        for messages in [1, 128, 0x2_0000] {
            let version = Version::parse(*Version::with_chunks(messages).bytes()).unwrap();
            assert_eq!(version.chunk(), Some(messages));
            assert_eq!((version.number(), version.repeats()), (6.29, 1));
            assert_eq!(version.bytes()[VERSION_LEN - 1], 0);
        }
        assert_eq!(Version::from_text("6.29+ringx").chunk(), None);
    }

    #[test]
    fn knows_who_negotiates() {
        for (text, sure, maybe) in [
            ("6.06", false, false),
            ("6.26", false, false),
            ("6.27", false, true),
            ("6.28", true, false),
            ("6.29+x", true, false),
        ] {
            let version = Version::from_text(text);
            assert_eq!(version.negotiates(), sure, "{text}");
            assert_eq!(version.may_negotiate_unannounced(), maybe, "{text}");
        }
    }
}
