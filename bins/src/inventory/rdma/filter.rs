//! Filters behind `resource show`: `lqpn 17,20-30 type RC`.

/// A name that can be filtered by.
#[derive(Debug, Clone, Copy)]
pub(super) struct Name {
    /// The name.
    pub(super) name: &'static str,
    /// Whether its values are numbers and ranges.
    pub(super) is_number: bool,
    /// Whether it numbers the object, so that the kernel can be asked for it.
    pub(super) is_key: bool,
}

/// A name with numbers as its values.
pub(super) const fn number(name: &'static str) -> Name {
    Name {
        name,
        is_number: true,
        is_key: false,
    }
}

/// A name with words as its values.
pub(super) const fn word(name: &'static str) -> Name {
    Name {
        name,
        is_number: false,
        is_key: false,
    }
}

/// The name that numbers the object.
pub(super) const fn key(name: &'static str) -> Name {
    Name {
        name,
        is_number: true,
        is_key: true,
    }
}

/// The filters of a command.
#[derive(Debug, Clone, Default)]
pub(super) struct Filters {
    list: Vec<Filter>,
}

#[derive(Debug, Clone)]
struct Filter {
    /// As the user wrote it: the beginning of a name.
    name: String,
    value: String,
    is_key: bool,
}

impl Filters {
    /// Reads pairs of name and value.
    ///
    /// # Errors
    /// What to tell the user.
    pub(super) fn parse(words: &[String], names: &[Name]) -> Result<Self, String> {
        if let [only] = words {
            return Err(format!(
                "No filter data was supplied to filter option {only}"
            ));
        }
        if !words.len().is_multiple_of(2) {
            return Err("There is filter option without data".to_owned());
        }
        let pairs = words.chunks_exact(2);
        let list = pairs.map(|pair| match pair {
            [name, value] => Filter::parse(name, value, names),
            _ => Err(String::new()),
        });
        let list = list.collect::<Result<_, _>>()?;
        Ok(Self { list })
    }

    /// The number of the only object that is wanted.
    pub(super) fn object(&self) -> Option<u32> {
        let found = self.list.iter().find(|filter| filter.is_key)?;
        // The kernel is asked for the low 32 bits, as by `atoi`.
        found.value.parse::<i64>().ok().map(|number| number as u32)
    }

    /// Whether an object with this number, or without one, is wanted.
    pub(super) fn admits_number(&self, name: &str, value: Option<impl Into<u64>>) -> bool {
        let Some(filter) = self.by_name(name) else {
            return true;
        };
        value.is_some_and(|value| in_ranges(&filter.value, value.into()))
    }

    /// Whether an object with this word is wanted.
    pub(super) fn admits_word(&self, name: &str, value: &str) -> bool {
        let Some(filter) = self.by_name(name) else {
            return true;
        };
        let mut words = filter.value.split(',');
        words.any(|word| word.eq_ignore_ascii_case(value))
    }

    /// Whether there is a filter of this name.
    pub(super) fn has(&self, name: &str) -> bool {
        self.by_name(name).is_some()
    }

    fn by_name(&self, name: &str) -> Option<&Filter> {
        self.list
            .iter()
            .find(|filter| name.starts_with(&filter.name))
    }
}

impl Filter {
    fn parse(name: &str, value: &str, names: &[Name]) -> Result<Self, String> {
        const DIGITS: &str = "1234567890,-";
        let Some(known) = names.iter().find(|known| known.name.starts_with(name)) else {
            return Err(format!("Unsupported filter option: {name}"));
        };
        if known.is_number && !value.chars().all(|c| DIGITS.contains(c)) {
            return Err(format!(
                "{name} filter accepts \"{DIGITS}\" characters only"
            ));
        }
        Ok(Self {
            name: name.to_owned(),
            value: value.to_ascii_lowercase(),
            is_key: known.is_key && value.parse::<i64>().is_ok(),
        })
    }
}

/// Whether a number is in a list of numbers and ranges. The original leaves the
/// ends of a range in, and takes `1,3-5` as one would think.
fn in_ranges(list: &str, value: u64) -> bool {
    list.split(',').any(|item| {
        let mut numbers = item.split('-').filter(|number| !number.is_empty());
        let Some(first) = numbers.next().and_then(|number| number.parse::<u64>().ok()) else {
            return false;
        };
        let from = if item.starts_with('-') { 0 } else { first };
        let to = numbers
            .next_back()
            .map_or(Some(first), |number| number.parse().ok());
        to.is_some_and(|to| (from..=to).contains(&value))
    })
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    const NAMES: &[Name] = &[word("link"), key("lqpn"), number("pid"), word("type")];

    fn parse(line: &str) -> Result<Filters, String> {
        let words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        Filters::parse(&words, NAMES)
    }

    #[test]
    fn numbers_and_ranges() {
        let filters = parse("link rxe_a/1 pid 3,10-12,20").unwrap();
        for (pid, expected) in [(3, true), (4, false), (10, true), (11, true), (12, true)] {
            assert_eq!(
                filters.admits_number("pid", Some(pid as u32)),
                expected,
                "{pid}"
            );
        }
        assert!(!filters.admits_number("pid", None::<u32>));
        assert!(filters.admits_number("lqpn", None::<u32>));
        assert!(parse("pid -5").unwrap().admits_number("pid", Some(2_u32)));
        assert!(!parse("pid ,").unwrap().admits_number("pid", Some(0_u32)));
    }

    #[test]
    fn words_in_any_case() {
        let filters = parse("type rc,UD").unwrap();
        assert!(filters.admits_word("type", "RC"));
        assert!(filters.admits_word("type", "UD"));
        assert!(!filters.admits_word("type", "GSI"));
        assert!(filters.admits_word("state", "RTS"));
        assert!(filters.has("type") && !filters.has("state"));
    }

    #[test]
    fn one_object_is_asked_for_by_its_number() {
        assert_eq!(parse("lqpn 17").unwrap().object(), Some(17));
        assert_eq!(parse("l 1 lq 18").unwrap().object(), Some(18));
        assert_eq!(parse("lqpn 17,18").unwrap().object(), None);
        assert_eq!(parse("pid 17").unwrap().object(), None);
    }

    #[test]
    fn refusals() {
        let refusal = |line| parse(line).unwrap_err();
        assert_eq!(
            refusal("pid"),
            "No filter data was supplied to filter option pid"
        );
        assert_eq!(refusal("pid 1 type"), "There is filter option without data");
        assert_eq!(refusal("foo 1"), "Unsupported filter option: foo");
        assert_eq!(
            refusal("pid one"),
            "pid filter accepts \"1234567890,-\" characters only"
        );
    }
}
