//! The help texts as they were last looked at. A change of the option table
//! shows here; `UPDATE_SNAPSHOTS=1 cargo test -p ironverbs-engine --test
//! help_snapshots` takes the new texts over.

#![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

use std::fs;
use std::path::Path;

use engine::options::{Tool, help};

#[test]
fn help_texts_are_as_last_looked_at() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/snapshots/help");
    for tool in Tool::ALL {
        let file = folder.join(format!("{tool}.txt"));
        let text = help::text(tool, tool.name());
        if std::env::var_os("UPDATE_SNAPSHOTS").is_some() {
            fs::create_dir_all(&folder).unwrap();
            fs::write(&file, &text).unwrap();
        }
        let known = fs::read_to_string(&file).unwrap();
        let changed = text
            .lines()
            .zip(known.lines())
            .find(|(new, old)| new != old);
        assert_eq!(changed, None, "{tool}");
        assert_eq!(text, known, "{tool}");
    }
}
