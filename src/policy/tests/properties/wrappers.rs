//! Wrappers are transparent: a command is as allowed with them as without, at any depth.

use proptest::prelude::*;
use proptest::sample::select;
use runner_policy::decide::Code;
use runner_policy::{Verdict, What};

use super::make::{argv, ask, policies, shape};

const WRAPPERS: &[&[&str]] = &[
    &["timeout", "5"],
    &["timeout", "-k", "1", "--signal=KILL", "5"],
    &["nice"],
    &["nice", "-n", "5"],
    &["env"],
    &["env", "-u", "X"],
    &["setsid"],
    &["stdbuf", "-o0"],
    &["ionice", "-c", "3"],
    &["timeout", "--", "5"],
];

fn wrapped(wrappers: &[&[&str]], argv: &[String]) -> Vec<String> {
    let words = wrappers.iter().flat_map(|words| words.iter().map(|word| (*word).to_owned()));
    words.chain(argv.iter().cloned()).collect()
}

/// Whether a wrapper takes the first word for the command and nothing else.
fn begins_plainly(argv: &[String]) -> bool {
    !argv[0].starts_with('-') && !argv[0].contains('=') && !argv[0].is_empty()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn a_wrapped_command_is_decided_as_itself(
        shape in shape(),
        argv in argv().prop_filter("plain", |argv| begins_plainly(argv)),
        wrappers in prop::collection::vec(select(WRAPPERS), 1..4),
    ) {
        // `s*` and `**` name wrappers too, and an ask or deny about a wrapper holds.
        let mut shape = shape;
        let names_all = |rule: &String| rule.contains("**") || rule.contains("catalog");
        shape.rules.retain(|rule| !rule.contains("s* ...") && (rule.contains("allow") || !names_all(rule)));
        let p = policies(&[shape.text("p", "")], "p");
        let (bare, around) = (ask(&p, What::Argv(&argv)), wrapped(&wrappers, &argv));
        let around = ask(&p, What::Argv(&around));
        prop_assert_eq!((bare.decision, bare.code, bare.grant), (around.decision, around.code, around.grant));
    }

    #[test]
    fn a_deny_holds_at_every_depth(
        wrappers in prop::collection::vec(select(WRAPPERS), 1..=64),
        program in select(vec!["sort", "rm", "nosuch", "/usr/bin/sort", "git"]),
    ) {
        let text = "policy: 1\nname: p\nfiles: { read: [\"**\"], write: [\"**\"] }\ncommands:\n  - { id: all, allow: \"** ...\", effects: any }\n  - { id: never, deny: [\"sort ...\", \"rm ...\", \"nosuch ...\", \"git ...\"] }\n";
        let p = policies(&[text.to_owned()], "p");
        let argv = wrapped(&wrappers, &[program.to_owned(), "a".to_owned()]);
        let decision = ask(&p, What::Argv(&argv));
        prop_assert_eq!((decision.decision, decision.code), (Verdict::Deny, Code::DeniedByRule));
    }
}

#[test]
fn deeper_than_the_bound_is_denied_too() {
    let text = "policy: 1\nname: p\ncommands:\n  - { id: all, allow: \"** ...\", effects: any }\n";
    let p = policies(&[text.to_owned()], "p");
    for depth in [65, 100, 1_000, 16_000] {
        let argv = wrapped(&vec![["nice"].as_slice(); depth], &["sort".to_owned()]);
        assert_eq!(ask(&p, What::Argv(&argv)).code, Code::TooDeep, "{depth}");
    }
}
