//! Numbers of the verbs as the originals name them.

/// The word with this index, or `other`.
pub(super) fn word(
    words: &[&'static str],
    index: impl Into<u64>,
    other: &'static str,
) -> &'static str {
    let index = usize::try_from(index.into()).unwrap_or(usize::MAX);
    words.get(index).copied().unwrap_or(other)
}

/// The names of the bits that are set; those without a name are `unknown`.
pub(super) fn flags(
    names: &'static [(u32, &'static str)],
    value: u64,
    unknown: &'static str,
) -> impl Iterator<Item = &'static str> {
    (0..u64::BITS)
        .filter(move |bit| value >> bit & 1 == 1)
        .map(move |bit| {
            let named = names.iter().find(|(number, _)| *number == bit);
            named.map_or(unknown, |(_, name)| name)
        })
}

/// A GUID in groups: `0000:00ff:fe00:0001`.
pub(super) fn guid(guid: u64) -> String {
    let [a, b, c, d] = [48, 32, 16, 0].map(|shift| guid >> shift & 0xffff);
    format!("{a:04x}:{b:04x}:{c:04x}:{d:04x}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_have_a_word_too() {
        assert_eq!(word(&["RESET", "INIT"], 1_u8, "UNKNOWN"), "INIT");
        assert_eq!(word(&["RESET", "INIT"], 2_u8, "UNKNOWN"), "UNKNOWN");
        assert_eq!(word(&[], u64::MAX, "?"), "?");
    }

    #[test]
    fn flags_are_named_from_the_lowest() {
        let names: Vec<&str> = flags(&[(0, "A"), (63, "Z")], 1 << 63 | 3, "?").collect();
        assert_eq!(names, ["A", "?", "Z"]);
    }

    #[test]
    fn guids_are_grouped() {
        assert_eq!(guid(0x0000_00ff_fe00_0001), "0000:00ff:fe00:0001");
    }
}
