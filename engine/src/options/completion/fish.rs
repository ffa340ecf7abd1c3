//! Completion for fish.

use super::{Argument, DEVICES, INTERFACES, argument, offered};
use crate::words::Tool;

/// The file to put into a completions directory of fish as `<tool>.fish`.
pub fn script(tool: Tool) -> String {
    let name = tool.name();
    let mut script = format!(
        "# fish completion for {name}, made from its option table\n\
         complete -c {name} -f -a '(__fish_print_hostnames)'\n"
    );
    for row in offered(tool) {
        let letter = row
            .short
            .map_or_else(String::new, |letter| format!(" -s {letter}"));
        let argument = match argument(row) {
            Argument::None => String::new(),
            Argument::Choice(choices) => format!(" -x -a '{}'", choices.join(" ")),
            Argument::File => " -r -F".to_owned(),
            Argument::Device => format!(
                " -x -a '(command ls {DEVICES} 2>/dev/null; \
                 string replace -r \"^\" urxe_ (command ls {INTERFACES}))'"
            ),
            Argument::Free => " -x".to_owned(),
        };
        let help = row.help.replace('\\', "\\\\").replace('\'', "\\'");
        script.push_str(&format!(
            "complete -c {name}{letter} -l {}{argument} -d '{help}'\n",
            row.long
        ));
    }
    script
}
