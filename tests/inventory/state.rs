//! What a recorded screen of `rdma` says about the kernel: objects of keys and
//! values, be the screen JSON or plain.

use serde_json::Value;

/// An object: keys and values as texts.
pub(crate) type Fields = Vec<(String, String)>;

pub(crate) fn field<'a>(fields: &'a Fields, key: &str) -> Option<&'a str> {
    let found = fields.iter().find(|(name, _)| name == key);
    found.map(|(_, value)| value.as_str())
}

/// The objects of a screen.
pub(crate) fn objects(screen: &str) -> Vec<Fields> {
    match serde_json::from_str::<Value>(screen) {
        Ok(Value::Array(objects)) => objects.iter().map(json_object).collect(),
        _ => plain_objects(screen),
    }
}

fn json_object(object: &Value) -> Fields {
    let fields = object.as_object().unwrap().iter();
    fields
        .map(|(key, value)| {
            let text = match value {
                Value::String(text) => text.clone(),
                Value::Bool(true) => "on".to_owned(),
                Value::Bool(false) => "off".to_owned(),
                Value::Array(values) => {
                    let texts: Vec<&str> = values.iter().filter_map(Value::as_str).collect();
                    texts.join(",")
                }
                other => other.to_string(),
            };
            (key.clone(), text)
        })
        .collect()
}

/// Lines that begin with blanks belong to the line before.
fn plain_objects(screen: &str) -> Vec<Fields> {
    let mut lines: Vec<String> = Vec::new();
    for line in screen.lines() {
        match (line.strip_prefix("    "), lines.last_mut()) {
            (Some(more), Some(last)) => {
                last.push(' ');
                last.push_str(more);
            }
            _ => lines.push(line.to_owned()),
        }
    }
    lines.iter().map(|line| plain_object(line)).collect()
}

fn plain_object(line: &str) -> Fields {
    let mut fields = Fields::new();
    let (line, caps) = line.split_once("caps: <").unwrap_or((line, ""));
    let mut put = |key: &str, value: &str| fields.push((key.to_owned(), value.to_owned()));
    let mut words = line.split_whitespace();
    match words.next() {
        Some("link") => {
            let (name, port) = words.next().unwrap().rsplit_once('/').unwrap();
            put("ifname", name);
            if port != "-" {
                put("port", port);
            }
        }
        Some("dev") => put("ifname", words.next().unwrap()),
        Some(index) if index.ends_with(':') => {
            put("ifindex", index.trim_end_matches(':'));
            put("ifname", words.next().unwrap().trim_end_matches(':'));
        }
        Some(first) => put(first, words.next().unwrap_or_default()),
        None => {}
    }
    while let (Some(key), Some(value)) = (words.next(), words.next()) {
        put(key, value);
    }
    let caps: Vec<&str> = caps.trim_end_matches('>').split(", ").collect();
    if caps != [""] {
        put("caps", &caps.join(","));
    }
    fields
}
