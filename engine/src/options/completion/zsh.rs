//! Completion for zsh.

use super::{Argument, DEVICES, INTERFACES, argument, offered};
use crate::words::Tool;

/// The file to put into a directory of `$fpath` under the name `_<tool>`.
pub fn script(tool: Tool) -> String {
    let specs: String = offered(tool)
        .map(|row| {
            let help = escape(row.help);
            let action = match argument(row) {
                Argument::None => String::new(),
                argument => {
                    let value = row.value.unwrap_or_default().trim_matches(['<', '>']);
                    format!(":{value}:{}", action(&argument))
                }
            };
            let equals = if row.takes_value() { "=" } else { "" };
            let long = format!("--{}", row.long);
            match row.short {
                Some(letter) => {
                    let plus = if row.takes_value() { "+" } else { "" };
                    format!(
                        "    '(-{letter} {long})'{{-{letter}{plus},{long}{equals}}}'[{help}]{action}' \\\n"
                    )
                }
                None => format!("    '{long}{equals}[{help}]{action}' \\\n"),
            }
        })
        .collect();
    let name = tool.name();
    format!(
        "#compdef {name}\n\
         # zsh completion for {name}, made from its option table\n\
         _{name}_devices() {{\n\
         \x20   local -a devices\n\
         \x20   local netdev\n\
         \x20   devices=({DEVICES}/*(N:t))\n\
         \x20   for netdev in {INTERFACES}/*(N:t); do devices+=(urxe_$netdev); done\n\
         \x20   compadd -a devices\n\
         }}\n\
         _{name}() {{\n\
         \x20   _arguments -s -S \\\n{specs}\
         \x20   '::host:_hosts'\n\
         }}\n\
         if [ \"$funcstack[1]\" = \"_{name}\" ]; then\n\
         \x20   _{name} \"$@\"\n\
         else\n\
         \x20   compdef _{name} {name}\n\
         fi\n"
    )
    .replace("__DEVICES__", &format!("_{name}_devices"))
}

fn action(argument: &Argument) -> String {
    match argument {
        Argument::Choice(choices) => format!("({})", choices.join(" ")),
        Argument::File => "_files".to_owned(),
        Argument::Device => "__DEVICES__".to_owned(),
        Argument::Free | Argument::None => String::new(),
    }
}

/// Inside `'[...]'`.
fn escape(text: &str) -> String {
    text.replace('\'', "'\\''")
        .replace('[', "\\[")
        .replace(']', "\\]")
}
