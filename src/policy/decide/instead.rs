//! Alternatives to a refused command: the same command, with less.
//!
//! Four forms are tried: the program by its name instead of its path, a shell's line in a form that the guest
//! executes itself, the command without the wrapper that was refused, and the command without one option. What is left must still be the same command: it reads the same
//! operands for the same purpose. Each form is decided by the same policy, and offered only if it is allowed.

use super::judge::reading;
use super::{Code, Decision, Query, What, decide};
use crate::effect::{Class, Effect};
use crate::effective::Effective;
use crate::model::Verdict;
use crate::reading::{Arg, Given, Level, Reading, Standing};
use crate::shell;
use crate::word::{Word, quoted};

/// Most forms that are offered.
const MAX_OFFERED: usize = 3;
/// Longest command for which other forms are tried.
const MAX_TRIED: usize = 64;
/// Where the system's programs are. A program of the same name elsewhere is another program.
const SYSTEM: [&str; 6] =
    ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/", "/usr/local/bin/", "/usr/local/sbin/"];

/// Close forms of a refused command that the policy allows, the closest first.
pub(super) fn forms(policy: &Effective, query: &Query<'_>, decision: &Decision) -> Vec<String> {
    let Some((argv, given)) = single(policy, query) else { return Vec::new() };
    if argv.len() > MAX_TRIED {
        return Vec::new();
    }
    let mut forms: Vec<Vec<String>> = Vec::new();
    forms.extend(by_name(&argv, decision));
    forms.extend(executable(&argv));
    forms.extend(unwrapped(&argv, &given));
    forms.extend(without_option(policy, query, &argv, &given, decision));
    let mut offered: Vec<String> = Vec::new();
    for form in forms {
        let shown = form.iter().map(|word| quoted(word)).collect::<Vec<_>>().join(" ");
        if offered.len() < MAX_OFFERED
            && !offered.contains(&shown)
            && is_allowed(policy, query, What::Argv(&form))
            && is_allowed(policy, query, What::Line(&shown))
        {
            offered.push(shown);
        }
    }
    offered
}

/// Whether a form is allowed, and not merely observed; and whether it can work, which needs no network. It is
/// printed as a line, so it is judged as one too.
fn is_allowed(policy: &Effective, query: &Query<'_>, what: What<'_>) -> bool {
    let decision = decide(policy, &Query { what, ..*query });
    decision.decision == Verdict::Allow && decision.would.is_none() && !decision.reaches_out
}

/// The words of a question about one command whose words are all known, and how it is read.
fn single(policy: &Effective, query: &Query<'_>) -> Option<(Vec<String>, Reading)> {
    let argv: Vec<String> = match query.what {
        What::Argv(argv) => argv.to_vec(),
        What::Bytes(argv) => {
            argv.iter().map(|word| String::from_utf8(word.clone()).ok()).collect::<Option<_>>()?
        }
        What::Line(line) => plain(line)?,
        What::Read(_) | What::Write(_) | What::Net(_) | What::Connect(..) | What::Env(_) => {
            return None;
        }
    };
    let given = reading(policy, &Query { what: What::Argv(&argv), ..*query })?.ok()?;
    Some((argv, given))
}

/// The words of a line that is one command and nothing else.
fn plain(line: &str) -> Option<Vec<String>> {
    let shell::Line::Readable(script) = shell::parse(line) else { return None };
    let [list] = script.lists.as_slice() else { return None };
    let [shell::Command::Simple(command)] = list.first.commands.as_slice() else { return None };
    let alone = list.rest.is_empty()
        && !list.first.negated
        && !list.first.timed
        && command.assignments.is_empty()
        && command.redirects.is_empty();
    let word = |word: &shell::Word| match word.parts.as_slice() {
        [] => Some(String::new()),
        [shell::Part::Text(text)] => Some(text.clone()),
        _ => None,
    };
    if alone { command.words.iter().map(word).collect() } else { None }
}

/// The same program by its name.
fn by_name(argv: &[String], decision: &Decision) -> Option<Vec<String>> {
    let called = argv.first().filter(|_| decision.code == Code::ProgramPath)?;
    let name = SYSTEM.iter().find_map(|folder| called.strip_prefix(folder))?;
    let mut words = argv.to_vec();
    words[0] = name.to_owned();
    (!name.contains('/')).then_some(words)
}

/// Forms in which the guest executes the line of a shell: behind what starts the shell, and alone.
fn executable(argv: &[String]) -> Vec<Vec<String>> {
    let Some(shell) = argv.iter().position(|word| crate::reading::is_shell(word)) else {
        return Vec::new();
    };
    let lines = argv[shell + 1..].iter().filter(|word| !word.starts_with(['-', '+']));
    let forms = lines.flat_map(|line| {
        let plain = ["bash", "-c", line].map(str::to_owned);
        [[&argv[..shell], &plain].concat(), plain.to_vec()]
    });
    forms.collect()
}

/// The command without each of its wrappers in turn: `timeout 5 sudo ls` is `timeout 5 ls`.
fn unwrapped(argv: &[String], given: &Reading) -> Vec<Vec<String>> {
    let certain = || given.levels.iter().filter(|level| level.standing == Standing::Certain);
    let tail = |level: &Level| -> Option<usize> {
        let words: Vec<&str> = level.words.iter().map(Word::text).collect::<Option<_>>()?;
        let start = argv.len().checked_sub(words.len())?;
        argv[start..].iter().map(String::as_str).eq(words).then_some(start)
    };
    let mut forms = Vec::new();
    for outer in certain() {
        let inner = certain().find(|inner| inner.depth == outer.depth + 1);
        // In another folder its words would name other files.
        let inner = inner.filter(|inner| inner.cwd == outer.cwd);
        let Some((from, to)) = tail(outer).zip(inner.and_then(tail)) else { continue };
        // What a wrapper reads or writes itself can be what the command depends on: `chroot FOLDER ls`.
        let own_files = outer.effects.iter().any(|caused| {
            matches!(caused.effect, Effect::Read(_) | Effect::Write(_) | Effect::Net(_))
        });
        if from < to && !own_files {
            forms.push([&argv[..from], &argv[to..]].concat());
        }
    }
    forms
}

/// The command without one option, where the rest stays what it is.
fn without_option(
    policy: &Effective,
    query: &Query<'_>,
    argv: &[String],
    given: &Reading,
    decision: &Decision,
) -> Vec<Vec<String>> {
    let refused: Vec<&str> =
        decision.effects.iter().filter(|line| line.refused).map(|line| line.effect).collect();
    // Who wants to change the machine is not helped by a command that does not.
    if refused.contains(&Class::System.word()) {
        return Vec::new();
    }
    let mut forms = Vec::new();
    for at in (1..argv.len()).filter(|at| argv[*at].starts_with('-')) {
        for taken in [1, 2, argv.len() - at] {
            if at + taken > argv.len() {
                continue;
            }
            let form = [&argv[..at], &argv[at + taken..]].concat();
            let asked = Query { what: What::Argv(&form), ..*query };
            let Some(Ok(left)) = reading(policy, &asked) else { continue };
            // The word after an option that is not known can be its value.
            let next = argv.get(at + 1).filter(|next| !next.starts_with('-'));
            let whole = taken == 1 && (argv[at].contains('=') || next.is_none());
            if is_same_with_less(given, &left, whole) {
                forms.push(form);
            }
        }
    }
    forms.sort_by_key(|form| std::cmp::Reverse(form.len()));
    forms
}

/// Whether a command is another one with less: the same subcommand and operands, used for the same, one option
/// fewer, and nothing that it did not do before. `whole` tells that an option that is not known takes no value.
fn is_same_with_less(given: &Reading, left: &Reading, whole: bool) -> bool {
    let (Some(before), Some(after)) = (given.levels.first(), left.levels.first()) else {
        return false;
    };
    let reads =
        |level: &Level| level.effects.iter().any(|caused| matches!(caused.effect, Effect::Read(_)));
    let had = |effect: &Effect| before.effects.iter().any(|caused| caused.effect == *effect);
    let place = |level: &Level| (level.words.clone(), level.cwd.clone());
    let mut nested = given.levels[1..].iter().map(place);
    // The options of `test` are its expression.
    before.program != "test"
        && before.path == after.path
        && before.operands == after.operands
        && !(after.operands.is_empty() && after.effects.is_empty() && after.options.is_empty())
        && (!reads(before) || reads(after))
        && after.complete
        && after.effects.iter().all(|caused| had(&caused.effect))
        && one_fewer(&before.options, &after.options, whole)
        && same_purpose(before, after)
        && left.levels[1..].iter().all(|level| nested.any(|known| known == place(level)))
}

/// Whether the options are those from before without one, which may be one that is not known.
fn one_fewer(before: &[Given], after: &[Given], whole: bool) -> bool {
    let mut rest = before.iter();
    let known = before.len() == after.len() + 1 || (whole && before.len() == after.len());
    known && after.iter().all(|option| rest.any(|known| known == option))
}

/// Whether each operand is used for the same as before: what is left of the arguments stood among them, and an
/// operand that was read is still read.
fn same_purpose(before: &Level, after: &Level) -> bool {
    let mut args: Vec<&Arg> = before.args.iter().collect();
    let kept = after.args.iter().all(|arg| match args.iter().position(|known| *known == arg) {
        Some(at) => {
            args.swap_remove(at);
            true
        }
        None => false,
    });
    let by_operand = |level: &Level| -> Vec<Effect> {
        let operands: Vec<String> =
            level.operands.iter().flatten().map(|word| quoted(word)).collect();
        let read = level.effects.iter().filter(|caused| {
            matches!(caused.effect, Effect::Read(_)) && operands.contains(&caused.by)
        });
        read.map(|caused| caused.effect.clone()).collect()
    };
    kept && by_operand(before) == by_operand(after)
}
