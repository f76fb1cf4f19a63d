//! The catalog is positive: an option that it does not list is never allowed where only reading is.

use runner_policy::grammar::{Command, OptValue, OptionStyle, OptionsEnd, Role};
use runner_policy::{Effective, Verdict, What, catalog};

use super::make::{ask, policies};

const LOOK: &str = "policy: 1\nname: look\nfiles: { read: [\"**\"] }\ncommands:\n  - { id: look, allow: catalog }\n";

/// The catalog is large, so it is tried in parts, side by side.
macro_rules! parts {
    ($($name:ident $part:literal)*) => {
        $(#[test]
        fn $name() {
            an_option_that_the_catalog_lacks_is_never_allowed($part);
        })*

        const PARTS: usize = [$($part),*].len();
    };
}

parts! { part_0 0 part_1 1 part_2 2 part_3 3 part_4 4 part_5 5 }

fn an_option_that_the_catalog_lacks_is_never_allowed(part: usize) {
    let look = policies(&[LOOK.to_owned()], "look");
    let mut tried = 0;
    let mut at = 0;
    let mut wrong = Vec::new();
    for program in catalog::programs() {
        each(&program.command, &mut vec![program.name.clone()], &mut |words, command| {
            at += 1;
            let mine = at % PARTS == part;
            for argv in misspelt(words, command).into_iter().filter(|_| mine) {
                tried += 1;
                if let Some(shown) = allowed(&look, &argv) {
                    wrong.push(shown);
                }
            }
        });
    }
    assert!(wrong.is_empty(), "{} of {tried}:\n{}", wrong.len(), wrong.join("\n"));
    assert!(tried > 1_000, "{tried}");
}

fn allowed(policy: &Effective, argv: &[String]) -> Option<String> {
    let decision = ask(policy, What::Argv(argv));
    (decision.decision == Verdict::Allow).then(|| argv.join(" "))
}

/// Every command with subcommands, and the words that lead to it.
fn each(command: &Command, words: &mut Vec<String>, see: &mut impl FnMut(&[String], &Command)) {
    see(words, command);
    for sub in &command.subcommands {
        words.push(sub.names[0].clone());
        each(&sub.command, words, see);
        words.pop();
    }
}

/// The command with an option that is not listed, in every spelling and position that could matter.
fn misspelt(words: &[String], command: &Command) -> Vec<Vec<String>> {
    let mut out = Vec::new();
    if command.style.options == OptionStyle::None {
        return out;
    }
    // Without a subcommand, the options of the one that is meant count.
    let meant =
        command.subcommands.iter().find(|sub| command.default.as_ref() == sub.names.first());
    let listed = command.options.iter().chain(meant.iter().flat_map(|sub| &sub.command.options));
    let names: Vec<&str> = listed.flat_map(|option| &option.names).map(String::as_str).collect();
    let mut spellings = vec!["--zz".to_owned(), "--zz=a".to_owned(), "--zz-top".to_owned()];
    if command.style.options != OptionStyle::Go {
        let operands = command.style.dash_operands.as_deref().unwrap_or_default();
        let letters = ('a'..='z').chain('A'..='Z');
        let missing: Vec<char> = letters
            .filter(|letter| {
                !names.contains(&format!("-{letter}").as_str()) && !operands.contains(*letter)
            })
            .collect();
        let flag = command
            .options
            .iter()
            .find(|option| option.value == OptValue::Flag && option.does.is_empty());
        let flag = flag.and_then(|option| option.names.iter().find(|name| name.len() == 2));
        for letter in missing.iter().take(2) {
            spellings.push(format!("-{letter}"));
            if let (Some(flag), OptionStyle::Gnu) = (flag, command.style.options) {
                spellings.push(format!("{flag}{letter}"));
                spellings.push(format!("-{letter}{}", &flag[1..]));
            }
        }
    }
    // Abbreviations that a program would take, and the catalog does not.
    for name in names.iter().filter(|name| name.starts_with("--") && name.len() > 6).take(4) {
        let short = &name[..name.len() - 1];
        if name.is_char_boundary(name.len() - 1) && !names.contains(&short) {
            spellings.push(short.to_owned());
            spellings.push(format!("{short}=a"));
        }
    }
    // A word after `exec`, `pass` or the first operand is not this program's option.
    let own_later = command.style.ends == OptionsEnd::Anywhere
        && !command.operands.head.iter().chain(&command.operands.rest).any(Role::takes_rest)
        && command.subcommands.is_empty();
    for spelling in spellings {
        let with = |before: &[&str], after: &[&str]| -> Vec<String> {
            let mut argv = words.to_vec();
            argv.extend(before.iter().map(|word| (*word).to_owned()));
            argv.push(spelling.clone());
            argv.extend(after.iter().map(|word| (*word).to_owned()));
            argv
        };
        out.push(with(&[], &["a"]));
        if own_later {
            out.push(with(&["a"], &[]));
        }
    }
    out
}
