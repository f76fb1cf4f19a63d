//! The table of policies that do not load.

use runner_policy::finding::Finding;
use runner_policy::{Origin, Source, parse};

const TABLE: &str = include_str!("../../../../tests/cases/loading.txt");

#[test]
fn every_mistake_is_found_with_its_place_and_the_right_form() {
    let mut wrong = Vec::new();
    let mut codes: Vec<&str> = Vec::new();
    for case in TABLE.split("\n=== ").skip(1) {
        let (name, rest) = case.split_once('\n').unwrap();
        let (text, expected) = rest.rsplit_once("---\n").unwrap();
        let findings =
            parse(Source { file: "p.yml", text, origin: Origin::User }).err().unwrap_or_default();
        codes.extend(findings.iter().map(|finding| finding.code));
        let seen: Vec<String> = findings.iter().map(shown).collect();
        let seen = seen.join("\n");
        if seen.trim() != expected.trim() || seen.is_empty() {
            wrong.push(format!("=== {name}\n{text}---\n{seen}\n"));
        }
    }
    assert!(wrong.is_empty(), "seen:\n{}", wrong.join("\n"));
    codes.sort_unstable();
    codes.dedup();
    assert!(codes.len() > 20, "{codes:?}");
}

fn shown(finding: &Finding) -> String {
    let help = finding.help.as_ref().map(|help| format!("; {help}")).unwrap_or_default();
    let line = format!(
        "{}:{} {}: {}{help}",
        finding.at.line, finding.at.column, finding.code, finding.message
    );
    line.replace('\n', " ")
}

#[test]
fn a_finding_shows_the_line_it_is_about() {
    let text = "policy: 1\nname: p\nfils: {}\n";
    let findings = parse(Source { file: "p.yml", text, origin: Origin::User }).unwrap_err();
    assert_eq!((findings[0].excerpt.as_str(), findings[0].at.width), ("fils: {}", 4));
    assert_eq!(
        findings[0].to_string(),
        "p.yml:3:1: unknown key `fils` [unknown_key]; did you mean `files`?"
    );
}

#[test]
fn only_a_managed_policy_is_a_ceiling() {
    let text = "policy: 1\nname: p\nceiling: true\n";
    let codes = |origin| parse(Source { file: "p.yml", text, origin }).err().map(|all| all[0].code);
    assert_eq!(codes(Origin::Managed), None);
    for origin in [Origin::Shipped, Origin::User, Origin::Project, Origin::Path] {
        assert_eq!(codes(origin), Some("not_managed"));
    }
}
