//! Findings of a set: names that are missing, taken, in a circle, or at odds.

use runner_policy::{Origin, PolicySet, Source, parse};

fn codes(texts: &[&str], name: &str) -> Vec<(&'static str, u32, u32, Option<String>)> {
    let mut set = PolicySet::default();
    for text in texts {
        set.add(parse(Source { file: "p.yml", text, origin: Origin::Managed }).unwrap()).unwrap();
    }
    let findings = set.effective(name).err().unwrap_or_default();
    findings.into_iter().map(|f| (f.code, f.at.line, f.at.column, f.help)).collect()
}

#[test]
fn unknown_names_are_found_at_their_place_all_at_once() {
    let text = "policy: 1\nname: p\nextends: [bass]\nwithin: [nosuch]\n";
    let base = "policy: 1\nname: base\n";
    assert_eq!(
        codes(&[text, base], "p"),
        [
            ("unknown_policy", 3, 11, Some("did you mean `base`?".to_owned())),
            ("unknown_policy", 4, 10, None),
        ]
    );
}

#[test]
fn circles_are_found_in_extends_and_within() {
    for (a, b) in [
        ("extends: [b]", "extends: [a]"),
        ("within: [b]", "within: [a]"),
        ("extends: [b]", "within: [a]"),
        ("within: [b]", "extends: [a]"),
        ("extends: [a]", ""),
        ("within: [a]", ""),
    ] {
        let texts = [format!("policy: 1\nname: a\n{a}\n"), format!("policy: 1\nname: b\n{b}\n")];
        let found = codes(&[&texts[0], &texts[1]], "a");
        assert_eq!(found.iter().map(|f| f.0).collect::<Vec<_>>(), ["cycle"], "{a} {b}");
    }
}

#[test]
fn a_name_stands_once_and_texts_at_odds_are_found() {
    let mut set = PolicySet::default();
    let again = || {
        parse(Source { file: "p.yml", text: "policy: 1\nname: a\n", origin: Origin::User }).unwrap()
    };
    set.add(again()).unwrap();
    assert_eq!(set.add(again()).unwrap_err().code, "duplicate_name");
    let a = "policy: 1\nname: a\nsandbox: { image: \"debian:12\" }\nenv: { set: { X: one } }\n";
    let b = "policy: 1\nname: b\nsandbox: { image: \"debian:13\" }\nenv: { set: { X: two } }\n";
    let p = "policy: 1\nname: p\nextends: [a, b]\n";
    assert_eq!(
        codes(&[p, a, b], "p").iter().map(|f| f.0).collect::<Vec<_>>(),
        ["conflict", "conflict"]
    );
    let own = "policy: 1\nname: p\nextends: [a, b]\nsandbox: { image: host }\nenv: { set: { X: three } }\n";
    assert_eq!(codes(&[own, a, b], "p"), []);
}
