//! The habits of GNU `getopt_long`: options anywhere among the words, clusters
//! such as `-jp`, abbreviated long options, `--`.

/// An option.
#[derive(Debug, Clone, Copy)]
pub(super) struct Opt {
    /// Letter.
    pub(super) short: char,
    /// Long name.
    pub(super) long: &'static str,
    /// Whether it takes an argument.
    pub(super) takes_value: bool,
}

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Item {
    /// An option by its letter, with its argument when it takes one.
    Option(char, String),
    /// A word.
    Word(String),
    /// No such option: the letter or the long form, and what getopt says of it.
    Unknown(String),
    /// An option without its argument: the letter, and what getopt says of it.
    NoValue(char, String),
}

/// All items of a command line, words last.
pub(super) fn items(options: &[Opt], arguments: &[String]) -> Vec<Item> {
    let mut items = Vec::new();
    let mut words = Vec::new();
    let mut rest = arguments.iter();
    while let Some(argument) = rest.next() {
        if argument == "--" {
            words.extend(rest.by_ref().cloned().map(Item::Word));
        } else if let Some(long) = argument.strip_prefix("--") {
            items.push(long_option(options, long, &mut rest));
        } else if let Some(cluster) = argument.strip_prefix('-').filter(|c| !c.is_empty()) {
            cluster_of(options, cluster, &mut rest, &mut items);
        } else {
            words.push(Item::Word(argument.clone()));
        }
    }
    items.append(&mut words);
    items
}

fn cluster_of<'a>(
    options: &[Opt],
    cluster: &str,
    rest: &mut impl Iterator<Item = &'a String>,
    items: &mut Vec<Item>,
) {
    let mut letters = cluster.chars();
    while let Some(letter) = letters.next() {
        let option = options.iter().find(|option| option.short == letter);
        let Some(option) = option.filter(|_| letter != ':') else {
            items.push(Item::Unknown(format!("invalid option -- '{letter}'")));
            continue;
        };
        if !option.takes_value {
            items.push(Item::Option(letter, String::new()));
            continue;
        }
        let attached = letters.as_str();
        let value = match attached {
            "" => rest.next().cloned(),
            _ => Some(attached.to_owned()),
        };
        items.push(match value {
            Some(value) => Item::Option(letter, value),
            None => Item::NoValue(letter, format!("option requires an argument -- '{letter}'")),
        });
        return;
    }
}

fn long_option<'a>(
    options: &[Opt],
    long: &str,
    rest: &mut impl Iterator<Item = &'a String>,
) -> Item {
    let (name, value) = match long.split_once('=') {
        Some((name, value)) => (name, Some(value.to_owned())),
        None => (long, None),
    };
    let exact = options.iter().find(|option| option.long == name);
    let mut begun = options.iter().filter(|o| o.long.starts_with(name));
    let option = match (exact, begun.next(), begun.next()) {
        (Some(option), ..) | (None, Some(option), None) => option,
        (None, None, _) => return Item::Unknown(format!("unrecognized option '--{long}'")),
        (None, Some(_), Some(_)) => {
            let all = options.iter().filter(|o| o.long.starts_with(name));
            let names: String = all.map(|o| format!(" '--{}'", o.long)).collect();
            return Item::Unknown(format!(
                "option '--{long}' is ambiguous; possibilities:{names}"
            ));
        }
    };
    match (option.takes_value, value) {
        (false, None) => Item::Option(option.short, String::new()),
        (false, Some(_)) => Item::Unknown(format!(
            "option '--{}' doesn't allow an argument",
            option.long
        )),
        (true, value) => match value.or_else(|| rest.next().cloned()) {
            Some(value) => Item::Option(option.short, value),
            None => Item::NoValue(
                option.short,
                format!("option '--{}' requires an argument", option.long),
            ),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const OPTIONS: [Opt; 4] = [
        Opt {
            short: 'd',
            long: "details",
            takes_value: false,
        },
        Opt {
            short: 'j',
            long: "json",
            takes_value: false,
        },
        Opt {
            short: 'b',
            long: "batch",
            takes_value: true,
        },
        Opt {
            short: 'x',
            long: "device",
            takes_value: true,
        },
    ];

    fn parse(line: &str) -> Vec<Item> {
        let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
        items(&OPTIONS, &arguments)
    }

    fn option(letter: char, value: &str) -> Item {
        Item::Option(letter, value.to_owned())
    }

    fn word(text: &str) -> Item {
        Item::Word(text.to_owned())
    }

    #[test]
    fn options_come_anywhere_until_two_dashes() {
        let expected = [option('j', ""), option('d', ""), word("dev"), word("show")];
        assert_eq!(parse("dev -jd show"), expected);
        assert_eq!(parse("-j dev --details show"), expected);
        assert_eq!(
            parse("-j -- -d -"),
            [option('j', ""), word("-d"), word("-")]
        );
        assert_eq!(parse("-"), [word("-")]);
    }

    #[test]
    fn values_are_attached_or_follow() {
        for line in ["-jbfile", "-j -b file", "-j --batch file", "-j --ba=file"] {
            assert_eq!(
                parse(line),
                [option('j', ""), option('b', "file")],
                "{line}"
            );
        }
    }

    #[test]
    fn what_is_wrong_is_said_as_getopt_does() {
        let unknown = |text: &str| vec![Item::Unknown(text.to_owned())];
        assert_eq!(parse("-Z"), unknown("invalid option -- 'Z'"));
        assert_eq!(parse("-:"), unknown("invalid option -- ':'"));
        assert_eq!(parse("--foo"), unknown("unrecognized option '--foo'"));
        assert_eq!(
            parse("--json=1"),
            unknown("option '--json' doesn't allow an argument")
        );
        assert_eq!(
            parse("--de"),
            unknown("option '--de' is ambiguous; possibilities: '--details' '--device'")
        );
        let lacking = |text: &str| vec![Item::NoValue('b', text.to_owned())];
        assert_eq!(parse("-b"), lacking("option requires an argument -- 'b'"));
        assert_eq!(
            parse("--batch"),
            lacking("option '--batch' requires an argument")
        );
    }
}
