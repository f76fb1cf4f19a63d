//! Composition: what `within`, `ask`, `mode: observe` and the order of rules must not loosen.

use runner_policy::decide::Code;
use runner_policy::effect::Class;
use runner_policy::{Verdict, What};

use super::{ask, line, policy};

#[test]
fn an_ask_of_the_net_grants_no_more_than_the_rule() {
    let text = "policy: 1\nname: net\nfiles: { read: [\"**\"] }\ncommands:\n  - { id: c, allow: \"curl ...\", effects: [net] }\nnet:\n  - { id: a, ask: \"GET https://h.example/**\" }\n";
    let decision = line(&policy(&[text]), "curl https://h.example/x");
    assert_eq!((decision.decision, decision.code), (Verdict::Ask, Code::Ask));
    assert!(decision.approvable);
    assert!(
        decision.grant.classes.contains(Class::Net)
            && !decision.grant.classes.contains(Class::Code)
    );
}

#[test]
fn observing_lifts_no_mandatory_deny_wherever_it_stands() {
    let text = "policy: 1\nname: o\nmode: observe\nuntil: 2026-12-31\nfiles: { read: [\"**\"], write: [\"**\"], deny: [\"**/.env\"] }\ncommands:\n  - { id: never, deny: \"sort ...\" }\n";
    let p = policy(&[text]);
    for text in [
        "nosuch; sort -o .git/hooks/x a",
        "sort -o .git/hooks/x a",
        "cat .env; cat .ssh/id_rsa",
        "cat .env .ssh/id_rsa",
        "cat a > .runner/x",
        "nosuch > .git/config",
    ] {
        assert_eq!(line(&p, text).decision, Verdict::Deny, "{text}");
    }
    for text in ["sort a", "cat .env", "nosuch"] {
        assert_eq!(line(&p, text).decision, Verdict::Allow, "{text}");
    }
}

#[test]
fn an_observing_ceiling_still_tells_what_it_would_have_said() {
    let wide = "policy: 1\nname: wide\nfiles: { read: [\"**\"] }\ncommands:\n  - { id: c, allow: catalog }\nwithin: [watch]\n";
    let watch = "policy: 1\nname: watch\nmode: observe\nuntil: 2026-12-31\nfiles: { read: [\"src/**\"] }\ncommands:\n  - { id: c, allow: catalog }\n";
    let seen = line(&policy(&[wide, watch]), "cat a");
    assert_eq!(
        (seen.decision, seen.would),
        (Verdict::Allow, Some((Verdict::Deny, Code::PathNotReadable)))
    );
}

#[test]
fn an_ask_is_not_passed_by_an_allow_in_any_order() {
    let rules = [
        "  - { id: a, allow: \"sort ...\", effects: [read, write] }\n",
        "  - { id: b, ask: \"sort ...\", effects: [read] }\n",
        "  - { id: c, ask: \"sort ...\" }\n",
    ];
    let with = |picked: &[usize]| {
        let list: String = picked.iter().map(|at| rules[*at]).collect();
        policy(&[&format!(
            "policy: 1\nname: p\nfiles: {{ read: [\"**\"], write: [\"**\"] }}\ncommands:\n{list}"
        )])
    };
    for order in [[0, 1], [1, 0]] {
        assert_eq!(line(&with(&order), "sort -o x a").decision, Verdict::Deny);
        assert_eq!(line(&with(&order), "sort a").decision, Verdict::Ask);
    }
    for order in [[0, 1, 2], [2, 1, 0], [1, 2, 0]] {
        assert_eq!(line(&with(&order), "sort -o x a").decision, Verdict::Ask, "{order:?}");
    }
}

#[test]
fn an_ask_about_a_wrapper_is_not_passed_by_what_it_wraps() {
    let text = "policy: 1\nname: p\nfiles: { read: [\"**\"], write: [\"**\"] }\nenv: { accept: [A] }\ncommands:\n  - { id: all, allow: \"** ...\", effects: any }\n  - { id: shell, ask: \"{bash,sh,dash} ...\" }\n  - { id: slow, ask: \"timeout ...\" }\n  - { id: env, ask: \"env ...\" }\n  - { id: kill, ask: \"nice ...\", args: { number: [\"5\"] } }\n  - { id: push, ask: \"git push ...\" }\n  - { id: over, ask: \"git fetch ...\", effects: [read] }\n";
    let p = policy(&[text]);
    for (asked, rule) in [
        ("bash -c 'cat a'", "p/shell"),
        ("sh -c 'cat a | sort'", "p/shell"),
        ("timeout 5 cat a", "p/slow"),
        ("nohup timeout 5 cat a", "p/slow"),
        ("cat a | timeout 5 sort", "p/slow"),
        ("env A=1 cat a", "p/env"),
        ("xargs timeout 5 cat", "p/slow"),
        ("find . -exec timeout 5 cat {} +", "p/slow"),
        ("/usr/bin/timeout 5 cat a", "p/slow"),
        ("/usr/bin/git push", "p/push"),
        ("timeout 5 /usr/bin/git push", "p/push"),
        ("nice -n 5 cat a", "p/kill"),
    ] {
        let decision = line(&p, asked);
        let by = decision.rule.as_ref().map(|rule| rule.id.as_str());
        if asked.starts_with("timeout 5 /usr") {
            assert_eq!(decision.decision, Verdict::Ask, "{asked}");
        } else {
            assert_eq!((decision.decision, by), (Verdict::Ask, Some(rule)), "{asked}");
        }
        assert!(decision.approvable, "{asked}");
    }
    for allowed in ["cat a", "nohup cat a", "nice cat a", "/usr/bin/git status", "xargs cat"] {
        assert_eq!(line(&p, allowed).decision, Verdict::Allow, "{allowed}");
    }
    // An ask that does not cover it is not passed either, and a deny stands above both.
    assert_eq!(line(&p, "/usr/bin/git fetch").decision, Verdict::Deny);
    let denied =
        text.replace("  - { id: push", "  - { id: never, deny: \"rm ...\" }\n  - { id: push");
    assert_eq!(line(&policy(&[&denied]), "timeout 5 rm a").decision, Verdict::Deny);
    // What is approved is granted what the wrapped command is, and no more.
    let narrow = "policy: 1\nname: p\nfiles: { read: [\"**\"] }\ncommands:\n  - { id: look, allow: catalog, limits: { wall: 10s } }\n  - { id: slow, ask: \"timeout ...\" }\n";
    let p = policy(&[narrow]);
    let (bare, wrapped) = (line(&p, "cat a"), line(&p, "timeout 5 cat a"));
    assert_eq!((bare.decision, wrapped.decision), (Verdict::Allow, Verdict::Ask));
    assert_eq!(bare.grant, wrapped.grant);
}

#[test]
fn what_is_granted_does_not_depend_on_the_order_of_rules() {
    let rules = [
        "  - { id: a, allow: \"mytool ...\", effects: [code], limits: { memory: 64MiB } }\n",
        "  - { id: b, allow: \"mytool ...\", effects: [read, write, code], limits: { memory: 1GiB } }\n",
    ];
    let with = |order: [usize; 2]| {
        let list: String = order.iter().map(|at| rules[*at]).collect();
        policy(&[&format!("policy: 1\nname: p\nfiles: {{ read: [\"**\"] }}\ncommands:\n{list}")])
    };
    let (one, two) = (line(&with([0, 1]), "mytool x"), line(&with([1, 0]), "mytool x"));
    assert_eq!(one.grant, two.grant);
    assert_eq!(one.rule.map(|rule| rule.id), two.rule.map(|rule| rule.id));
}

#[test]
fn a_written_tree_is_also_its_top() {
    let text = "policy: 1\nname: p\nfiles: { read: [\"**\"], write: [\"**\"] }\nprograms:\n  wipe: { operands: \"write-tree...\" }\n  cut2: { operands: \"write-prefix\" }\ncommands:\n  - { id: a, allow: [\"wipe ...\", \"cut2 ...\"], effects: [read, write] }\n";
    let p = policy(&[text]);
    assert_eq!(line(&p, "wipe .git").code, Code::ProtectedPath);
    assert_eq!(line(&p, "wipe build").decision, Verdict::Allow);
    let only = text.replace("write: [\"**\"]", "write: [\"out*\"]");
    let p = policy(&[&only]);
    assert_eq!(line(&p, "cut2 out").decision, Verdict::Allow);
    assert_eq!(line(&p, "cut2 out/").decision, Verdict::Deny);
}

#[test]
fn addresses_are_the_same_in_every_spelling() {
    let text = "policy: 1\nname: p\nnet:\n  - { id: a, allow: [\"connect *:*\", \"GET https://h.example/**\"] }\n  - { id: d, deny: [\"connect 127.0.0.1:*\", \"connect [::1]:*\", \"GET https://h.example/admin/**\"] }\n";
    let p = policy(&[text]);
    for target in [
        "127.0.0.1:80",
        "[::1]:80",
        "[0:0:0:0:0:0:0:1]:80",
        "[::ffff:127.0.0.1]:80",
        "127.1:80",
        "2130706433:80",
        "0x7f.0.0.1:80",
        "0177.0.0.1:80",
        "[::ffff:7f00:1]:80",
        "127.0.0.1.:80",
        "https://h.example/admin/x",
        "https://h.example//admin/x",
        "https://h.example/%61dmin/x",
        "https://h.example/a/../admin/x",
        "https://H.EXAMPLE./admin/x",
        "https://h.example/x/%2e%2e/admin",
    ] {
        assert_eq!(ask(&p, "/w", What::Net(target)).decision, Verdict::Deny, "{target}");
    }
    for target in ["10.0.0.1:80", "[::2]:80", "x.example:1", "https://h.example/a"] {
        assert_eq!(ask(&p, "/w", What::Net(target)).decision, Verdict::Allow, "{target}");
    }
}
