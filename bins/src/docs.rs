//! Manual pages and shell completions, written out for packagers.

use std::fs;
use std::io;
use std::path::Path;

use engine::options::{Tool, completion, manual};

/// Writes into `folder`, which is made if need be:
///
/// - `man/<tool>.1`
/// - `completions/bash/<tool>`, `completions/zsh/_<tool>`, `completions/fish/<tool>.fish`
///
/// # Errors
/// What the system says to making the folders or writing the files.
pub fn write(folder: &Path) -> io::Result<()> {
    let file = |name: String, text: String| {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            fs::create_dir_all(parent)?;
        }
        fs::write(path, text)
    };
    for tool in Tool::ALL {
        file(format!("man/{tool}.1"), manual::page(tool))?;
        let completions = [
            (format!("bash/{tool}"), completion::bash::script(tool)),
            (format!("zsh/_{tool}"), completion::zsh::script(tool)),
            (format!("fish/{tool}.fish"), completion::fish::script(tool)),
        ];
        for (name, text) in completions {
            file(format!("completions/{name}"), text)?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, reason = "tests fail by panicking")]

    use super::*;

    #[test]
    fn every_tool_gets_its_page_and_its_completions() {
        let folder = std::env::temp_dir().join(format!("ironverbs-docs-{}", std::process::id()));
        write(&folder).unwrap();
        for tool in Tool::ALL {
            for (name, begin) in [
                (format!("man/{tool}.1"), ".TH "),
                (format!("completions/bash/{tool}"), "# bash completion for "),
                (format!("completions/zsh/_{tool}"), "#compdef "),
                (
                    format!("completions/fish/{tool}.fish"),
                    "# fish completion for ",
                ),
            ] {
                let text = fs::read_to_string(folder.join(&name)).unwrap();
                assert!(text.starts_with(begin), "{name}");
            }
        }
        assert!(write(Path::new("/dev/null/docs")).is_err());
        fs::remove_dir_all(&folder).unwrap();
    }
}
