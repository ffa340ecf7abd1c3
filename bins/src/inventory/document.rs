//! What `rdma` prints: plain text, or JSON laid out as iproute2 lays it out.
//!
//! A field is printed in both forms by one call: its key and value in JSON, its
//! text otherwise.

use std::fmt::{Arguments, Display, Write};

use super::report::append;

/// How to print.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Form {
    /// As JSON.
    pub(super) json: bool,
    /// JSON with line ends; some plain lists with a line for each value.
    pub(super) pretty: bool,
}

/// A text that grows.
#[derive(Debug, Default)]
pub(super) struct Document {
    form: Form,
    text: String,
    /// Whether a list of JSON objects is open. Outside it fields are plain,
    /// whatever was asked for.
    json: bool,
    depth: usize,
    /// Whether the next value needs a comma before it.
    comma: bool,
}

impl Document {
    pub(super) fn new(form: Form) -> Self {
        Self {
            form,
            ..Self::default()
        }
    }

    pub(super) fn into_text(self) -> String {
        self.text
    }

    /// Whether plain lists get a line for each value.
    pub(super) fn is_plain_pretty(&self) -> bool {
        self.form.pretty && !self.form.json
    }

    /// Begins a list of objects.
    pub(super) fn open_list(&mut self) {
        if self.form.json {
            self.json = true;
            self.open_array();
        }
    }

    /// Ends the list.
    pub(super) fn close_list(&mut self) {
        if self.json {
            // What an error has left open is closed, so that JSON stays JSON.
            while self.depth > 1 {
                self.close('}');
            }
            self.close_array();
            self.text.push('\n');
            self.json = false;
            self.comma = false;
        }
    }

    /// Begins an object.
    pub(super) fn open_object(&mut self) {
        if self.json {
            self.open('{');
        }
    }

    /// Ends an object, and the line.
    pub(super) fn close_object(&mut self) {
        if self.json {
            self.close('}');
        } else {
            self.text.push('\n');
        }
    }

    /// A field with a text.
    pub(super) fn string(&mut self, key: &str, value: &str, plain: Arguments<'_>) {
        if self.json {
            self.name(key);
            self.item_string(value);
        } else {
            self.write(plain);
        }
    }

    /// A field with a number.
    pub(super) fn number(&mut self, key: &str, value: impl Display, plain: Arguments<'_>) {
        if self.json {
            self.name(key);
            self.item(format_args!("{value}"));
        } else {
            self.write(plain);
        }
    }

    /// A field that is on or off.
    pub(super) fn on_off(&mut self, key: &str, value: bool, plain: Arguments<'_>) {
        self.number(key, value, plain);
    }

    /// A number of the verbs with its name, in the way of `lqpn 17`.
    pub(super) fn named_number(&mut self, key: &str, value: Option<impl Display>) {
        if let Some(value) = value {
            self.number(key, &value, format_args!("{key} {value} "));
        }
    }

    /// A word with its name, in the way of `state RTS`.
    pub(super) fn named_word(&mut self, key: &str, value: &str) {
        self.string(key, value, format_args!("{key} {value} "));
    }

    /// A hexadecimal number with its name; a string in JSON.
    pub(super) fn named_hex(&mut self, key: &str, value: Option<impl Into<u64>>) {
        if let Some(value) = value.map(Into::into) {
            self.string(
                key,
                &format!("{value:x}"),
                format_args!("{key} 0x{value:x} "),
            );
        }
    }

    /// Text that isn't in JSON.
    pub(super) fn plain(&mut self, text: Arguments<'_>) {
        if !self.json {
            self.write(text);
        }
    }

    /// A field that is only in JSON.
    pub(super) fn json_number(&mut self, key: &str, value: impl Display) {
        self.number(key, value, format_args!(""));
    }

    /// A list of texts: `open`, the texts with `separator` in between, `close`
    /// when it isn't JSON.
    pub(super) fn strings<'a>(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = &'a str>,
        [open, separator, close]: [&str; 3],
    ) {
        if self.json {
            self.name(key);
            self.open_array();
            for value in values {
                self.item_string(value);
            }
            self.close_array();
            return;
        }
        let values: Vec<&str> = values.into_iter().collect();
        self.write(format_args!("{open}{}{close}", values.join(separator)));
    }

    /// A list of numbers, as [`Self::strings`].
    pub(super) fn numbers(
        &mut self,
        key: &str,
        values: impl IntoIterator<Item = u32>,
        [open, separator, close]: [&str; 3],
    ) {
        let values: Vec<String> = values.into_iter().map(|value| value.to_string()).collect();
        if self.json {
            self.name(key);
            self.open_array();
            for value in values {
                self.item(format_args!("{value}"));
            }
            self.close_array();
            return;
        }
        self.write(format_args!("{open}{}{close}", values.join(separator)));
    }

    /// A line that is plain whatever was asked for, such as those of the help.
    pub(super) fn line(&mut self, line: Arguments<'_>) {
        append(&mut self.text, line);
    }

    fn write(&mut self, text: Arguments<'_>) {
        // Writing to a string can't fail.
        let _ = self.text.write_fmt(text);
    }

    fn name(&mut self, key: &str) {
        self.separate();
        self.end_of_line();
        self.comma = false;
        self.quote(key);
        self.text.push(':');
        if self.form.pretty {
            self.text.push(' ');
        }
    }

    fn item(&mut self, value: Arguments<'_>) {
        self.separate();
        self.write(value);
    }

    fn item_string(&mut self, value: &str) {
        self.separate();
        self.quote(value);
    }

    fn open(&mut self, bracket: char) {
        self.separate();
        self.text.push(bracket);
        self.depth += 1;
        self.comma = false;
    }

    fn close(&mut self, bracket: char) {
        self.depth = self.depth.saturating_sub(1);
        if self.comma {
            self.end_of_line();
        }
        self.text.push(bracket);
        self.comma = true;
    }

    fn open_array(&mut self) {
        self.open('[');
        if self.form.pretty {
            self.text.push(' ');
        }
    }

    fn close_array(&mut self) {
        if self.form.pretty && self.comma {
            self.text.push(' ');
        }
        self.comma = false;
        self.close(']');
    }

    fn separate(&mut self) {
        if self.comma {
            self.text.push(',');
        }
        self.comma = true;
    }

    fn end_of_line(&mut self) {
        if self.form.pretty {
            self.text.push('\n');
            for _ in 0..self.depth {
                self.text.push_str("    ");
            }
        }
    }

    /// iproute2 leaves other control characters as they are, which no reader
    /// of JSON takes.
    fn quote(&mut self, value: &str) {
        self.text.push('"');
        for character in value.chars() {
            match character {
                '\t' => self.text.push_str("\\t"),
                '\n' => self.text.push_str("\\n"),
                '\r' => self.text.push_str("\\r"),
                '\x0c' => self.text.push_str("\\f"),
                '\x08' => self.text.push_str("\\b"),
                '\\' => self.text.push_str("\\\\"),
                '"' => self.text.push_str("\\\""),
                other if other.is_ascii_control() => {
                    self.write(format_args!("\\u{:04x}", u32::from(other)));
                }
                other => self.text.push(other),
            }
        }
        self.text.push('"');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(json: bool, pretty: bool) -> String {
        let mut document = Document::new(Form { json, pretty });
        document.open_list();
        for (index, name) in [(0, "a\"b"), (1, "c\td\x01")] {
            document.open_object();
            document.json_number("ifindex", index);
            document.string("ifname", name, format_args!("link {name} "));
            document.named_number("lqpn", Some(17));
            document.named_number("rqpn", None::<u32>);
            document.named_hex("rkey", Some(0x1bd_u32));
            document.strings("caps", ["X", "Y"], ["<", ", ", "> "]);
            document.numbers("none", [], ["<", ",", ">"]);
            document.close_object();
        }
        document.close_list();
        document.into_text()
    }

    #[test]
    fn one_call_prints_both_forms() {
        assert_eq!(
            sample(false, false),
            "link a\"b lqpn 17 rkey 0x1bd <X, Y> <>\nlink c\td\x01 lqpn 17 rkey 0x1bd <X, Y> <>\n"
        );
        assert_eq!(
            sample(true, false),
            concat!(
                r#"[{"ifindex":0,"ifname":"a\"b","lqpn":17,"rkey":"1bd","caps":["X","Y"],"none":[]},"#,
                r#"{"ifindex":1,"ifname":"c\td\u0001","lqpn":17,"rkey":"1bd","caps":["X","Y"],"none":[]}]"#,
                "\n"
            )
        );
    }

    #[test]
    fn pretty_json_has_the_lines_of_iproute2() {
        let text = sample(true, true);
        let lines: Vec<&str> = text.lines().take(9).collect();
        assert_eq!(
            lines,
            [
                "[ {",
                "        \"ifindex\": 0,",
                "        \"ifname\": \"a\\\"b\",",
                "        \"lqpn\": 17,",
                "        \"rkey\": \"1bd\",",
                "        \"caps\": [ \"X\",\"Y\" ],",
                "        \"none\": [ ]",
                "    },{",
                "        \"ifindex\": 1,",
            ]
        );
        assert!(text.ends_with("    } ]\n"), "{text}");
    }

    #[test]
    fn an_object_that_an_error_leaves_open_is_closed() {
        let mut document = Document::new(Form {
            json: true,
            pretty: false,
        });
        document.open_list();
        document.open_object();
        document.json_number("ifindex", 0);
        document.close_list();
        assert_eq!(document.into_text(), "[{\"ifindex\":0}]\n");
    }

    #[test]
    fn outside_a_list_everything_is_plain() {
        let mut document = Document::new(Form {
            json: true,
            pretty: true,
        });
        document.string("netns", "shared", format_args!("netns shared\n"));
        assert_eq!(document.into_text(), "netns shared\n");
    }
}
