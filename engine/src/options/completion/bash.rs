//! Completion for bash, without the bash-completion library.

use super::{Argument, DEVICES, INTERFACES, argument, offered};
use crate::words::Tool;

/// The file to source, or to put where bash-completion finds it under the
/// name of the tool.
pub fn script(tool: Tool) -> String {
    let mut words = String::new();
    let mut cases = String::new();
    let mut free = Vec::new();
    for row in offered(tool) {
        let long = format!("--{}", row.long);
        let mut pattern = long.clone();
        if let Some(letter) = row.short {
            words.push_str(&format!("-{letter} "));
            pattern = format!("-{letter}|{long}");
        }
        words.push_str(&format!("{long} "));
        let reply = match argument(row) {
            Argument::None => continue,
            Argument::Free => {
                free.push(pattern);
                continue;
            }
            Argument::Choice(choices) => format!("compgen -W '{}'", choices.join(" ")),
            Argument::File => "compgen -f".to_owned(),
            Argument::Device => "compgen -W \"$(__DEVICES__)\"".to_owned(),
        };
        let reply = reply.replace("__DEVICES__", &devices());
        cases.push_str(&format!(
            "    {pattern}) mapfile -t COMPREPLY < <({reply} -- \"$word\"); return ;;\n"
        ));
    }
    let name = tool.name();
    format!(
        "# bash completion for {name}, made from its option table\n\
         _{name}() {{\n\
         \x20   local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n\
         \x20   # bash takes --option=value apart at the equals sign\n\
         \x20   if [[ $word == '=' ]]; then\n\
         \x20       word=\n\
         \x20   elif [[ $before == '=' && COMP_CWORD -ge 2 ]]; then\n\
         \x20       before=${{COMP_WORDS[COMP_CWORD-2]}}\n\
         \x20   fi\n\
         \x20   COMPREPLY=()\n\
         \x20   case $before in\n\
         {cases}\
         \x20   {}) return ;;\n\
         \x20   esac\n\
         \x20   case $word in\n\
         \x20   -*) mapfile -t COMPREPLY < <(compgen -W '{}' -- \"$word\") ;;\n\
         \x20   *) mapfile -t COMPREPLY < <(compgen -A hostname -- \"$word\") ;;\n\
         \x20   esac\n\
         }}\n\
         complete -F _{name} {name}\n",
        free.join("|"),
        words.trim_end()
    )
}

/// Prints the names of the devices.
fn devices() -> String {
    format!("ls {DEVICES} 2>/dev/null; ls {INTERFACES} 2>/dev/null | sed 's/^/urxe_/'")
}
