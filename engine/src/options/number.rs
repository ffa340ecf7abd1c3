//! Numbers as stock perftest reads them: `strtol` with base 0.

/// Reads a number the way C's `strtol(text, &rest, 0)` does: blanks, sign,
/// `0x` for hexadecimal, a leading `0` for octal. Out-of-range values
/// saturate. The second part is what was not read; `None` when there is no
/// number at all.
pub(super) fn strtol(text: &str) -> Option<(i64, &str)> {
    let start = text.trim_start_matches([' ', '\t', '\n', '\u{b}', '\u{c}', '\r']);
    let (negative, digits) = match start.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, start.strip_prefix('+').unwrap_or(start)),
    };
    let hexadecimal = digits
        .strip_prefix("0x")
        .or_else(|| digits.strip_prefix("0X"))
        .filter(|rest| rest.starts_with(|c: char| c.is_ascii_hexdigit()));
    let (radix, digits) = match hexadecimal {
        Some(rest) => (16, rest),
        None if digits.starts_with('0') => (8, digits),
        None => (10, digits),
    };
    let end = digits
        .find(|c: char| !c.is_digit(radix))
        .unwrap_or(digits.len());
    if end == 0 {
        return None;
    }
    let magnitude = digits[..end]
        .chars()
        .filter_map(|c| c.to_digit(radix))
        .fold(0i128, |sum, digit| {
            (sum * i128::from(radix) + i128::from(digit)).min(1 << 64)
        });
    let value = if negative { -magnitude } else { magnitude };
    let value = value.clamp(i128::from(i64::MIN), i128::from(i64::MAX));
    // The clamp above makes the conversion exact.
    Some((value as i64, &digits[end..]))
}

/// A number with nothing before or after it.
pub(super) fn whole(text: &str) -> Option<i64> {
    match strtol(text) {
        Some((value, "")) => Some(value),
        _ => None,
    }
}

/// Why a message size was not understood.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SizeError {
    /// Not between 1 and 2147483647.
    OutOfRange,
    /// Something other than digits and one `K` or `M`. Stock perftest reads
    /// `4k` as four bytes.
    Garbage,
}

/// Largest message, in bytes.
pub(super) const MAX_SIZE: u64 = 2_147_483_647;

/// The argument of `-s`: a number, or one with `K` (1024) or `M` (1048576).
pub(super) fn size(text: &str) -> Result<u64, SizeError> {
    let (number, factor) = match text.strip_suffix('K') {
        Some(number) => (number, 1024),
        None => match text.strip_suffix('M') {
            Some(number) => (number, 1 << 20),
            None => (text, 1),
        },
    };
    let value = whole(number).ok_or(SizeError::Garbage)?;
    match u64::try_from(value).map(|value| value.saturating_mul(factor)) {
        Ok(bytes @ 1..=MAX_SIZE) => Ok(bytes),
        _ => Err(SizeError::OutOfRange),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_strtol_with_base_0() {
        assert_eq!(strtol("100"), Some((100, "")));
        assert_eq!(strtol(" +7"), Some((7, "")));
        assert_eq!(strtol("-0x10"), Some((-16, "")));
        assert_eq!(strtol("016"), Some((14, "")));
        assert_eq!(strtol("0"), Some((0, "")));
        assert_eq!(strtol("08"), Some((0, "8")));
        assert_eq!(strtol("0x"), Some((0, "x")));
        assert_eq!(strtol("0xg"), Some((0, "xg")));
        assert_eq!(strtol("12ab"), Some((12, "ab")));
        assert_eq!(strtol("abc"), None);
        assert_eq!(strtol(""), None);
        assert_eq!(strtol("-"), None);
        assert_eq!(strtol("99999999999999999999"), Some((i64::MAX, "")));
        assert_eq!(strtol("-99999999999999999999"), Some((i64::MIN, "")));
        let many = "9".repeat(4000);
        assert_eq!(strtol(&many), Some((i64::MAX, "")));
    }

    #[test]
    fn sizes_take_upper_case_suffixes_only() {
        assert_eq!(size("4096"), Ok(4096));
        assert_eq!(size("4K"), Ok(4096));
        assert_eq!(size("1M"), Ok(1 << 20));
        assert_eq!(size("0x10"), Ok(16));
        assert_eq!(size("2147483647"), Ok(MAX_SIZE));
        assert_eq!(size("2048M"), Err(SizeError::OutOfRange));
        assert_eq!(size("3000M"), Err(SizeError::OutOfRange));
        assert_eq!(size("0"), Err(SizeError::OutOfRange));
        assert_eq!(size("-5"), Err(SizeError::OutOfRange));
        assert_eq!(size("99999999999999999999M"), Err(SizeError::OutOfRange));
        for garbage in ["4k", "3G", "", "K", "4KK", "4MK", "4 K", "x"] {
            assert_eq!(size(garbage), Err(SizeError::Garbage), "{garbage:?}");
        }
    }
}
