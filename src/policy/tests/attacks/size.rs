//! Sizes: hostile input that is small for its cost.

use runner_policy::decide::Code;
use runner_policy::{Origin, PolicySet, Source, Verdict, What, parse};

use super::{LOOK, ask, line, policy};

#[test]
fn folders_of_nested_lines_do_not_multiply() {
    let mut text = "cat a".to_owned();
    for _ in 0..6 {
        text = format!("cd a; cd b; cd c; cd d; sh -c '{}'", text.replace('\'', r"'\''"));
    }
    assert_eq!(line(&policy(&[LOOK]), &text).code, Code::TooLarge);
}

#[test]
fn a_decision_on_many_words_stays_small() {
    let words: Vec<String> = std::iter::once("cat".to_owned())
        .chain((0..12_000).map(|n| format!("file-{n:08}")))
        .collect();
    let decision = ask(&policy(&[LOOK]), "/w", What::Argv(&words));
    assert_eq!(decision.decision, Verdict::Allow);
    let size: usize = decision
        .effects
        .iter()
        .map(|line| line.command.len() + line.object.len() + line.by.len())
        .sum();
    assert!(size < 16 << 20, "{size}");
}

#[test]
fn withins_do_not_multiply() {
    let mut set = PolicySet::default();
    for level in 0..24 {
        for side in ["a", "b"] {
            let within = if level < 23 {
                format!("within: [a{0}, b{0}]\n", level + 1)
            } else {
                String::new()
            };
            let text = format!(
                "policy: 1\nname: {side}{level}\n{within}files: {{ read: [\"**\"] }}\ncommands:\n  - {{ allow: catalog }}\n"
            );
            set.add(parse(Source { file: "t.yml", text: &text, origin: Origin::User }).unwrap())
                .unwrap();
        }
    }
    let p = set.effective("a0").unwrap();
    assert_eq!(line(&p, "cat a").decision, Verdict::Allow);
    assert_eq!(line(&p, "sort -o x a").decision, Verdict::Deny);
}

#[test]
fn a_long_chain_of_extends_is_a_finding() {
    let mut set = PolicySet::default();
    for level in 0..5_000 {
        let extends =
            if level < 4_999 { format!("extends: [p{}]\n", level + 1) } else { String::new() };
        let text = format!("policy: 1\nname: p{level}\n{extends}");
        set.add(parse(Source { file: "t.yml", text: &text, origin: Origin::User }).unwrap())
            .unwrap();
    }
    let findings = set.effective("p0").unwrap_err();
    assert_eq!(findings[0].code, "too_deep");
}
