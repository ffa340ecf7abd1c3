//! Writes the manual pages and the completions of bash, zsh and fish:
//! `ironverbs-docs FOLDER`.

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1);
    let (Some(folder), None) = (arguments.next(), arguments.next()) else {
        eprintln!("Usage: ironverbs-docs FOLDER\nWrites man/ and completions/ into it.");
        return ExitCode::FAILURE;
    };
    let folder = PathBuf::from(folder);
    match ironverbs::docs::write(&folder) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!(
                "ironverbs-docs: cannot write into {}: {error}; name a folder that you may write to",
                folder.display()
            );
            ExitCode::FAILURE
        }
    }
}
