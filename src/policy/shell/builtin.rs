//! Names that are special to a shell: reserved words, builtins, and its own variables.
//!
//! Lists are those of bash 5.2. A reserved word counts only where nothing of it is quoted; a builtin
//! counts however it is quoted.

use super::script::{Expansion, Part, SimpleCommand, Word};
use super::stop::{Construct, Stop};

/// Builtins that also exist as programs, or that the guest knows: they change nothing unseen.
#[rustfmt::skip]
const ORDINARY: [&str; 17] = [
    ":", "[", "break", "cd", "continue", "echo", "exit", "export", "false", "kill", "printf", "pwd", "read", "set",
    "test", "true", "unset",
];

/// Builtins that change the shell, ask it about itself, or run what is not written in the line.
#[rustfmt::skip]
const CHANGING: [&str; 42] = [
    ".", "alias", "bg", "bind", "builtin", "caller", "compgen", "complete", "compopt",
    "declare", "dirs", "disown", "enable", "eval", "exec", "fc", "fg", "getopts", "help", "history",
    "jobs", "let", "local", "logout", "mapfile", "popd", "pushd", "readarray", "readonly", "return",
    "shift", "shopt", "source", "suspend", "times", "trap", "typeset", "ulimit", "umask", "unalias",
    "wait", "command",
];

/// Variables that bash computes or keeps from being set.
#[rustfmt::skip]
const COMPUTED: [&str; 17] = [
    "UID", "EUID", "PPID", "SHELLOPTS", "RANDOM", "SRANDOM", "SECONDS", "EPOCHSECONDS", "EPOCHREALTIME",
    "LINENO", "DIRSTACK", "FUNCNAME", "GROUPS", "HISTCMD", "PIPESTATUS", "COMP_WORDBREAKS", "_",
];

/// Variables that bash sets by itself when it starts or on the way: their values are not those of the environment.
#[rustfmt::skip]
const SET_BY_BASH: [&str; 16] = [
    "COLUMNS", "HOSTNAME", "HOSTTYPE", "IFS", "LINES", "MACHTYPE", "MAPFILE", "OLDPWD", "OPTARG", "OPTERR", "OPTIND",
    "OSTYPE", "PS4", "REPLY", "SHELL", "SHLVL",
];

/// Variables that change how later commands of the line are read, found or run.
#[rustfmt::skip]
const GOVERNING: [&str; 10] = [
    "IFS", "HOME", "PATH", "CDPATH", "PWD", "OLDPWD", "GLOBIGNORE", "GLOBSORT", "EXECIGNORE", "POSIXLY_CORRECT",
];

/// Whether `$NAME` of this name is the variable of that name, which a line or the environment set.
pub(super) fn is_plain_variable(name: &str) -> bool {
    is_name(name)
        && !COMPUTED.contains(&name)
        && !SET_BY_BASH.contains(&name)
        && !name.starts_with("BASH")
        && !name.starts_with("COMP_")
}

/// Whether a line cannot set this variable and stay readable.
pub(crate) fn governs(name: &str) -> bool {
    COMPUTED.contains(&name)
        || GOVERNING.contains(&name)
        || SET_BY_BASH.contains(&name)
        || name.starts_with("BASH")
        || name.starts_with("COMP_")
}

/// Whether a shell does this by itself, or reads more into the word than a name.
pub(crate) fn is_builtin(name: &str) -> bool {
    // These are programs as well, with the same meaning.
    let program =
        matches!(name, "[" | "echo" | "false" | "kill" | "printf" | "pwd" | "test" | "true");
    !program
        && (ORDINARY.contains(&name)
            || CHANGING.contains(&name)
            || matches!(name, "type" | "hash" | "command"))
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with(|c: char| c.is_ascii_digit())
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
}

/// What a reserved word at the start of a command begins, where the parser does not expect one.
pub(super) fn reserved(word: &str) -> Option<Construct> {
    Some(match word {
        "function" => Construct::Function,
        "coproc" => Construct::Coprocess,
        "select" => Construct::Compound,
        "{" | "[[" | "time" | "if" | "for" | "while" | "until" | "case" => Construct::Compound,
        "then" | "else" | "elif" | "fi" | "do" | "done" | "esac" | "in" | "}" | "!" | "]]" => {
            Construct::Syntax
        }
        _ => return None,
    })
}

/// Refuses commands that only a shell can run; `command NAME` becomes `NAME`.
pub(super) fn check(command: &mut SimpleCommand) -> Result<(), Stop> {
    let wrappers = command
        .words
        .iter()
        .take_while(|word| word.literal() == Some("command"))
        .count()
        .min(command.words.len().saturating_sub(1));
    if wrappers > 0 && command.words[wrappers].may_start_with_dash() {
        let at = command.words[wrappers - 1].at.start as usize;
        return match command.words.as_slice() {
            [_, option, names @ ..]
                if option.literal() == Some("-v")
                    && !names.is_empty()
                    && command.assignments.is_empty()
                    && names.iter().all(|name| name.literal().is_some()) =>
            {
                Ok(())
            }
            _ => Err(Stop::new(at, Construct::WhichBuiltin, "command")),
        };
    }
    command.words.drain(..wrappers);
    let reads = command.words.first().and_then(Word::literal) == Some("read");
    for (name, value) in &command.assignments {
        let alone = command.words.is_empty();
        // `IFS= read` holds for the words that are read alone.
        if reads && name == "IFS" && value.parts.is_empty() {
            continue;
        }
        let computed =
            COMPUTED.contains(&name.as_str()) || (name.starts_with("BASH") && name != "BASH_ENV");
        if computed || (alone && (governs(name) || crate::variables::loads_code(name))) || reads {
            let at = value.at.start as usize;
            return Err(Stop::new(at, Construct::ShellVariable, name.as_str()));
        }
    }
    let Some(first) = command.words.first() else {
        return Ok(());
    };
    let at = first.at.start as usize;
    let Some(name) = first.literal() else {
        let known_later = first.is_expanded() && !first.is_glob();
        return if !known_later && (first.is_glob() || first.parts.first() != Some(&Part::Home)) {
            Err(Stop::new(at, Construct::CommandPattern, first.text("~")))
        } else {
            Ok(())
        };
    };
    let plain = |construct| match command.assignments.is_empty() {
        true => Ok(()),
        false => Err(Stop::new(at, construct, name)),
    };
    match name {
        "type" | "hash" => Err(Stop::new(at, Construct::WhichBuiltin, name)),
        "set" => plain(Construct::SetBuiltin).and_then(|()| set(command)),
        "export" => export(command),
        "cd" => change_folder(command),
        "read" => read(command),
        "unset" => plain(Construct::Builtin).and_then(|()| unset(command)),
        "exit" | "break" | "continue" => plain(Construct::Builtin).and_then(|()| leave(command)),
        "printf" if sets_variable(command) => Err(Stop::new(at, Construct::Builtin, "printf %n")),
        "printf" | "test" | "[" if asks_shell(command, name) => {
            Err(Stop::new(at, Construct::Builtin, format!("{name} -v")))
        }
        _ if ORDINARY.contains(&name) => Ok(()),
        _ if CHANGING.contains(&name) => Err(Stop::new(at, Construct::Builtin, name)),
        _ => Ok(()),
    }
}

/// An option of `set` that the guest knows, and whether it is switched on.
pub(super) fn option(word: &str) -> Option<Vec<(char, bool)>> {
    let (on, letters) = match word.split_at_checked(1)? {
        ("-", letters) => (true, letters),
        ("+", letters) => (false, letters),
        _ => return None,
    };
    let known = !letters.is_empty() && letters.chars().all(|letter| "euo".contains(letter));
    known.then(|| letters.chars().map(|letter| (letter, on)).collect())
}

/// `set -euo pipefail` and its parts.
fn set(command: &SimpleCommand) -> Result<(), Stop> {
    let stop = || {
        let at = command.words[0].at.start as usize;
        Stop::new(at, Construct::SetBuiltin, "set")
    };
    let mut words = command.words[1..].iter().map(Word::literal);
    if words.len() == 0 {
        return Err(stop());
    }
    while let Some(word) = words.next() {
        let letters = word.and_then(option).ok_or_else(stop)?;
        for (letter, _) in letters {
            let named = ["errexit", "nounset", "pipefail"];
            if letter == 'o' && !words.next().flatten().is_some_and(|name| named.contains(&name)) {
                return Err(stop());
            }
        }
    }
    Ok(())
}

/// `read [-r] NAME…`
fn read(command: &SimpleCommand) -> Result<(), Stop> {
    let words: Vec<Option<&str>> = command.words[1..].iter().map(Word::literal).collect();
    let names = match words.as_slice() {
        [Some("-r"), names @ ..] | names => names,
    };
    let is_free = |name: &Option<&str>| {
        name.is_some_and(|name| {
            is_name(name) && !governs(name) && !crate::variables::loads_code(name)
        })
    };
    if names.is_empty() || !names.iter().all(is_free) {
        return Err(Stop::new(command.words[0].at.start as usize, Construct::Read, "read"));
    }
    Ok(())
}

/// `unset NAME…`
fn unset(command: &SimpleCommand) -> Result<(), Stop> {
    // What a sandbox sets keeps git and rustup from running what the project says.
    let is_free =
        |name: &str| is_name(name) && !governs(name) && !crate::variables::loads_code(name);
    for word in &command.words[1..] {
        if !word.literal().is_some_and(is_free) {
            let at = word.at.start as usize;
            return Err(Stop::new(at, Construct::Builtin, format!("unset {}", word.text("~"))));
        }
    }
    Ok(())
}

/// `exit [STATUS]`, `break [COUNT]`, `continue [COUNT]`.
fn leave(command: &SimpleCommand) -> Result<(), Stop> {
    let fits = match &command.words[1..] {
        [] => true,
        [word] => match (command.words[0].literal(), word.parts.as_slice()) {
            (Some("exit"), [Part::Expansion { of: Expansion::Status, .. }]) => true,
            (Some("exit"), _) => word.literal().is_some_and(|text| text.parse::<u8>().is_ok()),
            _ => word.literal().is_some_and(|text| {
                text.parse::<u8>().is_ok_and(|count| count > 0) && !text.starts_with('+')
            }),
        },
        _ => false,
    };
    let shown = command.words[0].literal().unwrap_or_default();
    if fits {
        Ok(())
    } else {
        Err(Stop::new(command.words[0].at.start as usize, Construct::Builtin, shown))
    }
}

/// `printf -v NAME` sets, `test -v NAME` and `test -R NAME` ask for, a variable of the shell. NAME can be
/// `a[$(…)]`, in which bash expands everything. A pattern counts if a file could make it `-v`.
fn asks_shell(command: &SimpleCommand, name: &str) -> bool {
    let mut words = command.words.iter().skip(1);
    match name {
        "printf" => {
            words.next().and_then(|word| word.literal()).is_some_and(|word| word.starts_with("-v"))
        }
        // A value that turns out to be `-v` is no operator that the guest knows.
        _ => words
            .filter(|word| !word.is_expanded())
            .any(|word| word.may_be("-v") || word.may_be("-R")),
    }
}

/// `printf '%n' NAME` sets a variable of bash. A format that files decide could hold anything.
fn sets_variable(command: &SimpleCommand) -> bool {
    let dashes = command.words.get(1).and_then(|word| word.literal()) == Some("--");
    let Some(format) = command.words.get(1 + usize::from(dashes)) else { return false };
    format.literal().map_or(format.is_glob(), |format| {
        // What follows each `%`; of `%%` the second begins nothing.
        let mut pieces = format.split('%').skip(1);
        while let Some(piece) = pieces.next() {
            if piece.is_empty() {
                pieces.next();
                continue;
            }
            let size = |c: char| c.is_ascii_digit() || "#-+ '.*hlLjzt".contains(c);
            if piece.trim_start_matches(size).starts_with('n') {
                return true;
            }
        }
        false
    })
}

/// `cd` and `cd FOLDER`; options and `-` need what only a shell remembers.
fn change_folder(command: &SimpleCommand) -> Result<(), Stop> {
    match command.words.as_slice() {
        [_] => Ok(()),
        [_, folder] if folder.is_expanded() || !folder.may_start_with_dash() => Ok(()),
        [_, word, ..] => {
            let at = command.words[0].at.start as usize;
            Err(Stop::new(at, Construct::ChangeFolder, format!("cd {}", word.text("~"))))
        }
        [] => Ok(()),
    }
}

/// `export NAME=VALUE…`, `export NAME` with nothing that shells expand differently there.
fn export(command: &SimpleCommand) -> Result<(), Stop> {
    if !command.assignments.is_empty() || command.words.len() < 2 {
        return Err(Stop::new(command.at.start as usize, Construct::Export, "export"));
    }
    for (index, word) in command.words.iter().enumerate().skip(1) {
        let stop = |construct| Stop::new(word.at.start as usize, construct, word.text("~"));
        let Some(Part::Text(text)) = word.parts.first() else {
            return Err(stop(Construct::Export));
        };
        let name = match text.split_once('=') {
            Some((name, _)) => name,
            None if word.parts.len() == 1 => text,
            None => "",
        };
        let braced = command.words[index - 1].at == word.at;
        // dash splits an unquoted value here.
        let splits = |part: &Part| matches!(part, Part::Expansion { quoted: false, .. });
        if !is_name(name) || word.is_glob() || braced || word.parts.iter().any(splits) {
            return Err(stop(Construct::Export));
        }
        if governs(name) {
            return Err(Stop::new(word.at.start as usize, Construct::ShellVariable, name));
        }
    }
    Ok(())
}
