//! The screens of older versions (`--output_style`), for scripts that were
//! written for them.
//!
//! What differs is asked for here, one question each; the layout itself stays
//! where the newest style has it.

/// The version of perftest whose screens are shown.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Style {
    /// 4.5-0.17 (Debian 12).
    V6_06,
    /// 24.01.0.
    V6_20,
    /// 26.04.17.
    #[default]
    V6_29,
}

impl Style {
    /// The versions as `--output_style` takes them, oldest first.
    pub const NAMES: &'static [&'static str] = &["6.06", "6.20", "6.29"];

    /// All styles, in the order of [`Style::NAMES`].
    pub const ALL: [Style; 3] = [Style::V6_06, Style::V6_20, Style::V6_29];

    /// The style of a version.
    pub fn from_name(name: &str) -> Option<Style> {
        let index = Style::NAMES.iter().position(|known| *known == name)?;
        Style::ALL.get(index).copied()
    }

    /// The unit of 2^20 bytes per second; its name has an `i` since 6.22.
    pub(super) fn mib_per_second(self) -> &'static str {
        match self {
            Style::V6_06 | Style::V6_20 => "MB/sec",
            Style::V6_29 => "MiB/sec",
        }
    }

    /// Between bandwidth and message rate; two blanks more since 6.22.
    pub(super) fn before_message_rate(self) -> &'static str {
        match self {
            Style::V6_06 | Style::V6_20 => "\t\t   ",
            Style::V6_29 => "\t\t     ",
        }
    }

    /// The header's fields since 6.23: locks, reordering, completions per
    /// poll, NUMA node.
    pub(super) fn has_newer_fields(self) -> bool {
        self >= Style::V6_29
    }

    /// The report file's key `Use_ROCm_memory`.
    pub(super) fn has_rocm_key(self) -> bool {
        self >= Style::V6_20
    }

    /// The report file's key `Use_MUSA_memory`.
    pub(super) fn has_musa_key(self) -> bool {
        self >= Style::V6_29
    }

    /// That the peak won't be measured is said since 6.20.
    pub(crate) fn says_no_peak(self) -> bool {
        self >= Style::V6_20
    }

    /// Whether polling adapts is said since 6.27.
    pub(crate) fn says_polling(self) -> bool {
        self >= Style::V6_29
    }

    /// A complaint of 6.29 in the words of this style. The status of a failed
    /// completion has a name since 6.28, an unresolvable host an address
    /// family since 6.13.
    pub fn complaint(self, text: &str) -> String {
        if self == Style::V6_29 {
            return text.to_owned();
        }
        text.split_inclusive('\n')
            .map(|line| self.older_line(line).unwrap_or_else(|| line.to_owned()))
            .collect()
    }

    fn older_line(self, line: &str) -> Option<String> {
        if let Some(named) = line.strip_prefix(" Failed status-") {
            let (status, rest) = named.split_once("): ")?;
            let (_, number) = status.rsplit_once('(')?;
            return Some(format!(" Failed status {number}: {rest}"));
        }
        if line.starts_with(" scnt=") {
            return Some(line[1..].to_owned());
        }
        if self == Style::V6_06 {
            let (reason, rest) = line.split_once(" for ai_family: ")?;
            let (_, rest) = rest.split_once(" service: ")?;
            let (host, port) = rest.split_once(" port: ")?;
            return Some(format!("{reason} for {host}:{port}"));
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn styles_are_named_by_their_versions() {
        for (name, style) in Style::NAMES.iter().zip(Style::ALL) {
            assert_eq!(Style::from_name(name), Some(style));
        }
        assert_eq!(Style::from_name("6.28"), None);
        assert_eq!(Style::default(), Style::V6_29);
    }

    #[test]
    fn complaints_lose_what_is_newer() {
        let newest = " Completion with error at client\n \
                      Failed status-transport retry counter exceeded (12): wr_id 0 syndrom 0x81\n \
                      scnt=100, ccnt=20\n";
        assert_eq!(Style::V6_29.complaint(newest), newest);
        let older = " Completion with error at client\n \
                     Failed status 12: wr_id 0 syndrom 0x81\nscnt=100, ccnt=20\n";
        assert_eq!(Style::V6_20.complaint(newest), older);
        assert_eq!(Style::V6_06.complaint(newest), older);
        let host = "Name or service not known for ai_family: 2 service: nosuch port: 18515\n\
                    Problem in resolving basic address and port\n";
        assert_eq!(Style::V6_20.complaint(host), host);
        assert_eq!(
            Style::V6_06.complaint(host),
            "Name or service not known for nosuch:18515\n\
             Problem in resolving basic address and port\n"
        );
    }
}
