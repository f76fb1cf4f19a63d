//! Conditions on arguments, and policies' own grammars.

use runner_policy::{Verdict, decide::Code};

use super::{line, policy};

#[test]
fn conditions_on_paths_do_not_depend_on_spelling() {
    let text = r#"
policy: 1
name: p
files: { read: ["**"] }
commands:
  - { id: look, allow: catalog }
  - { id: never, deny: "cat ...", args: { path: [src/a] } }
"#;
    let p = policy(&[text]);
    for text in [
        "cat src/a",
        "cat ./src/a",
        "cat src//a",
        "cat x/../src/a",
        "cd src && cat a",
        "cat /w/src/a",
    ] {
        assert_eq!(line(&p, text).code, Code::DeniedByRule, "{text}");
    }
    assert_eq!(line(&p, "cat src/b").decision, Verdict::Allow);
    assert_eq!(line(&p, "cd src && cat src/a").decision, Verdict::Allow);
}

#[test]
fn a_grammar_of_one_policy_hides_nothing_from_the_denies_of_another() {
    let base = "policy: 1\nname: base\ncommands:\n  - { id: never, deny: \"mytool push ...\" }\n";
    let own = "policy: 1\nname: own\nextends: [base]\nfiles: { read: [\"**\"] }\nprograms:\n  mytool: { style: { options: words }, options: { push: none }, operands: \"none...\" }\ncommands:\n  - { id: mine, allow: \"mytool ...\" }\n";
    let p = policy(&[own, base]);
    assert_eq!(line(&p, "mytool push x").code, Code::DeniedByRule);
    assert_eq!(line(&p, "mytool pull x").decision, Verdict::Allow);
}

#[test]
fn a_wrapper_that_a_policy_describes_needs_a_rule_of_its_own() {
    let base = "policy: 1\nname: base\nfiles: { read: [\"**\"] }\ncommands:\n  - { id: look, allow: catalog }\n";
    let own = "policy: 1\nname: own\nextends: [base]\nprograms:\n  wrap: { style: { ends: first-operand }, operands: \"exec...\" }\n";
    assert_eq!(line(&policy(&[own, base]), "wrap cat a").decision, Verdict::Deny);
    let own = format!("{own}commands:\n  - {{ id: mine, allow: \"wrap ...\" }}\n");
    let p = policy(&[&own, base]);
    assert_eq!(line(&p, "wrap cat a").decision, Verdict::Allow);
    assert_eq!(line(&p, "wrap sort -o x a").decision, Verdict::Deny);
}
