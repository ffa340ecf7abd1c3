//! The argument of `--pin_cores`: `0`, `0,2`, `0-3`, `0-3,8`.

use crate::options::refusal::Refusal;

/// The CPUs of `text`, sorted, none twice, on a machine with `cpus` CPUs.
pub(super) fn parse(text: &str, cpus: u32) -> Result<Vec<u32>, Refusal> {
    let cpus = i64::from(cpus);
    let decimal = |text: &str| -> Option<(i64, usize)> {
        let end = text
            .find(|c: char| !c.is_ascii_digit())
            .unwrap_or(text.len());
        (end > 0).then(|| (text[..end].parse().unwrap_or(i64::MAX), end))
    };
    let mut chosen = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        rest = rest.trim_start_matches(' ');
        let (start, used) =
            decimal(rest).ok_or_else(|| Refusal::option(" Invalid CPU number\n"))?;
        rest = &rest[used..];
        let mut end = start;
        if let Some(range) = rest.strip_prefix('-') {
            let (last, used) =
                decimal(range).ok_or_else(|| Refusal::option(" Invalid CPU range end\n"))?;
            rest = &range[used..];
            end = last;
            if start > end {
                return Err(Refusal::option(format!(
                    " Invalid CPU range: {start}-{end} (start > end)\n"
                )));
            }
        }
        if end >= cpus {
            return Err(Refusal::option(format!(
                " CPU {end} out of range. System has {cpus} cores (0-{}).\n",
                cpus - 1
            )));
        }
        chosen.extend((start..=end).map(|cpu| cpu as u32));
        rest = match rest.strip_prefix(',') {
            Some(next) => next,
            None => match rest.chars().next() {
                None => "",
                Some(letter) => {
                    return Err(Refusal::option(format!(
                        " Invalid character in CPU list: '{letter}'\n"
                    )));
                }
            },
        };
    }
    if chosen.is_empty() {
        return Err(Refusal::option(" Invalid CPU list format\n"));
    }
    chosen.sort_unstable();
    chosen.dedup();
    Ok(chosen)
}
