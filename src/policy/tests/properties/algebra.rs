//! The algebra: a deny and a `within` only take away, and every way to ask gives the same answer.

use proptest::prelude::*;
use proptest::sample::select;
use runner_policy::limits::TABLE;
use runner_policy::{Verdict, What, explain, may, paths};

use super::make::{argv, ask, essence, line, no_looser, policies, query, shape};

proptest! {
    #![proptest_config(ProptestConfig::with_cases(192))]

    #[test]
    fn a_further_deny_never_allows_more(shape in shape(), argv in argv(), line in line(), denied in select(vec![
        "deny: \"sort ...\"", "deny: catalog", "deny: \"** ...\"", "deny: \"cat ...\", args: { path: [a] }",
        "deny: \"git push ...\", args: { ref: [\"!main\"] }", "deny: \"sort -r ...\", args: { option: [\"-u\"] }",
    ])) {
        let mut more = shape.clone();
        more.rules.push(format!("id: further, {denied}"));
        let (one, two) = (policies(&[shape.text("p", "")], "p"), policies(&[more.text("p", "")], "p"));
        for what in [What::Argv(&argv), What::Line(&line)] {
            let (before, after) = (ask(&one, what), ask(&two, what));
            prop_assert!(no_looser(&after, before.decision), "{:?} then {:?}", before, after);
        }
    }

    #[test]
    fn a_further_denied_file_never_allows_more(shape in shape(), argv in argv(), line in line(), denied in select(vec![
        "a", "src/**", "**", "*.x", "**/.e*",
    ])) {
        let mut more = shape.clone();
        more.lists[3].push(denied);
        let (one, two) = (policies(&[shape.text("p", "")], "p"), policies(&[more.text("p", "")], "p"));
        for what in [What::Argv(&argv), What::Line(&line), What::Read("src/a"), What::Write("out/x")] {
            prop_assert!(no_looser(&ask(&two, what), ask(&one, what).decision));
        }
    }

    #[test]
    fn within_is_the_strictest_of_both(own in shape(), other in shape(), argv in argv(), line in line()) {
        let together = policies(&[own.text("p", "within: [q]\n"), other.text("q", "")], "p");
        let (p, q) = (policies(&[own.text("p", "")], "p"), policies(&[other.text("q", "")], "q"));
        for what in [What::Argv(&argv), What::Line(&line), What::Read("src/a"), What::Env("CI"), What::Net("a.example:443")] {
            let (both, one, two) = (ask(&together, what), ask(&p, what), ask(&q, what));
            prop_assert_eq!(both.decision, one.decision.max(two.decision));
            for grant in [one.grant, two.grant] {
                prop_assert_eq!(both.grant.classes.intersection(grant.classes), both.grant.classes);
                prop_assert!(TABLE.iter().all(|row| !row.limit.tighter(grant.limits.get(row.limit), both.grant.limits.get(row.limit))));
            }
        }
    }

    #[test]
    fn terms_within_are_never_looser(own in shape(), other in shape(), path in select(vec!["v1/x", "x", ""])) {
        let together = policies(&[own.text("p", "within: [q]\n"), other.text("q", "")], "p");
        let (p, q) = (policies(&[own.text("p", "")], "p"), policies(&[other.text("q", "")], "q"));
        let target = format!("GET https://a.example/{path}");
        let (both, one, two) = (ask(&together, What::Net(&target)), ask(&p, What::Net(&target)), ask(&q, What::Net(&target)));
        prop_assert_eq!(both.decision, one.decision.max(two.decision));
        prop_assert_eq!(both.terms.is_some(), both.decision != Verdict::Deny);
        for alone in [one, two] {
            let (Some(both), Some(alone)) = (&both.terms, alone.terms) else { continue };
            prop_assert!(both.size <= alone.size && both.time <= alone.time && both.reach <= alone.reach);
            prop_assert!(alone.counts.iter().all(|count| both.counts.contains(count)));
        }
    }

    #[test]
    fn extending_nothing_changes_nothing(own in shape(), argv in argv()) {
        let empty = "policy: 1\nname: empty\n".to_owned();
        let (one, two) = (policies(&[own.text("p", "")], "p"), policies(&[own.text("p", "extends: [empty]\n"), empty], "p"));
        prop_assert_eq!(essence(ask(&one, What::Argv(&argv))), essence(ask(&two, What::Argv(&argv))));
    }

    #[test]
    fn explaining_is_deciding(own in shape(), other in shape(), argv in argv(), line in line()) {
        let (p, q) = (policies(&[own.text("p", "")], "p"), policies(&[other.text("q", "")], "q"));
        for what in [What::Argv(&argv), What::Line(&line), What::Read("a"), What::Env("CI")] {
            let explained = explain(&p, &query(what), std::slice::from_ref(&q));
            prop_assert_eq!(&explained.decision, &ask(&p, what));
            if !explained.allowed_by.is_empty() {
                prop_assert_eq!(ask(&q, what).decision, Verdict::Allow);
            }
        }
    }

    #[test]
    fn a_broker_and_a_question_agree(own in shape(), other in shape(), path in path()) {
        let p = policies(&[own.text("p", "within: [q]\n"), other.text("q", "")], "p");
        let full = paths::join("/w", &path);
        prop_assert_eq!(may(&p, "/w", &full, false), ask(&p, What::Read(&path)).decision == Verdict::Allow);
        prop_assert_eq!(may(&p, "/w", &full, true), ask(&p, What::Write(&path)).decision == Verdict::Allow);
    }
}

fn path() -> impl Strategy<Value = String> {
    let part = select(vec![
        "a", "src", "..", ".", "", ".env", ".git", "hooks", "config", ".ssh", "out", "x",
        ".runner", "etc", "tmp", "dev", "null",
    ]);
    (any::<bool>(), prop::collection::vec(part, 1..5)).prop_map(|(absolute, parts)| {
        let joined = parts.join("/");
        if absolute || joined.is_empty() { format!("/{joined}") } else { joined }
    })
}
