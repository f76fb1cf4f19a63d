//! No text reaches a real shell unless the decision says `code`.

use std::sync::LazyLock;

use proptest::prelude::*;
use runner_policy::{Effective, Verdict, What};

use super::make::{ask, policies};
use super::text::{Choices, argv, line, real_shell};

/// Everything runs, whatever is said of it: so that everything has a plan.
static OBSERVED: LazyLock<Effective> =
    LazyLock::new(|| grants("any", "mode: observe\nuntil: 2026-12-31\n"));

/// Everything is granted but `code`.
static NO_CODE: LazyLock<Effective> = LazyLock::new(|| grants("[read, write, net, system]", ""));

fn grants(effects: &str, mode: &str) -> Effective {
    let text = format!(
        "policy: 1\nname: p\n{mode}files: {{ read: [\"**\"], write: [\"**\"] }}\nenv: {{ accept: [\"*\"] }}\ncommands:\n  - {{ id: all, allow: \"** ...\", effects: {effects} }}\n"
    );
    policies(&[text], "p")
}

fn check(what: What<'_>) -> Result<(), TestCaseError> {
    let decision = ask(&OBSERVED, what);
    // What nobody described may start anything: only a rule that grants `code` grants `unknown`.
    let code = decision.effects.iter().any(|line| ["code", "unknown"].contains(&line.effect));
    let shell = decision.plan.as_ref().and_then(real_shell);
    prop_assert!(code || shell.is_none(), "{what:?}: {shell:?} in {decision:?}");
    let decision = ask(&NO_CODE, what);
    let shell = decision.plan.as_ref().and_then(real_shell);
    prop_assert!(shell.is_none(), "{what:?}: {shell:?} in {decision:?}");
    prop_assert_eq!(decision.plan.is_some(), decision.decision != Verdict::Deny);
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1024))]

    #[test]
    fn no_text_reaches_a_real_shell_without_code(bytes in prop::collection::vec(any::<u8>(), 1..40)) {
        check(What::Argv(&argv(&mut Choices(bytes.iter()), 4)))?;
        check(What::Line(&line(&mut Choices(bytes.iter()), 4)))?;
    }
}

/// The oracle sees shells, and what everyday forms become has none.
#[test]
fn everyday_forms_have_a_plan_without_a_shell() {
    let plan = |line: &str| ask(&OBSERVED, What::Line(line)).plan.unwrap();
    for line in [
        "sh -c 'cat a'",
        "bash -lc 'cat a && cat b'",
        "sh -ec 'cat a'",
        "bash -euo pipefail -c 'cat a | sort'",
        "bash -eu -c 'cat a'",
        "timeout 5 sh -c 'cat a'",
        "env A=b sh -c 'cat a'",
        "timeout 5 env A=b nice bash -ec 'sh -c \"cat a\"'",
        "cat a && sh -c 'cat b' | sort",
    ] {
        let plan = plan(line);
        assert_eq!(real_shell(&plan), None, "{line}");
        assert!(plan.words().is_empty() && plan.line().is_some(), "{line}");
    }
    for line in
        ["sh -xc 'cat a'", "xargs sh -c 'cat a'", "sh -c 'cat {a,b}'", "sh x.sh", "cat a && bash"]
    {
        let shell = real_shell(&plan(line));
        assert!(shell.is_some(), "{line}");
    }
    assert_eq!(
        plan("echo $((1))").words(),
        ["sh", "-c", "echo $((1))"].map(|word| word.as_bytes().to_vec())
    );
}

/// Shells within each other, up to the bound and over it.
#[test]
fn deeper_shells_are_real_ones() {
    let mut text = "cat a".to_owned();
    for depth in 1..12 {
        let escaped = text.replace('\\', r"\\").replace(' ', r"\ ");
        text = format!("timeout 5 sh -c {escaped}");
        let plan = ask(&OBSERVED, What::Line(&text)).plan.unwrap();
        assert_eq!(real_shell(&plan).is_none(), depth <= 8, "{depth}");
    }
}

/// A plan is what every policy has judged; one that denies leaves none.
#[test]
fn a_policy_within_another_runs_the_same_plan() {
    let rule = |effects: &str| {
        format!(
            "files: {{ read: [\"**\"] }}\ncommands:\n  - {{ id: all, allow: \"** ...\", effects: {effects} }}\n"
        )
    };
    let texts = [
        format!("policy: 1\nname: outer\n{}", rule("[read]")),
        format!("policy: 1\nname: p\nwithin: [outer]\n{}", rule("any")),
    ];
    let p = policies(&texts, "p");
    for (line, runs) in [("timeout 5 sh -ec 'cat a'", true), ("timeout 5 sh -xc 'cat a'", false)] {
        let decision = ask(&p, What::Line(line));
        assert_eq!(decision.plan.is_some(), runs, "{line}: {decision:?}");
        assert_eq!(decision.decision == Verdict::Deny, !runs, "{line}");
    }
}
