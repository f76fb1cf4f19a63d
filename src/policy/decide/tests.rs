//! What the engine says of small policies; the catalog and the shipped policies have tables of their own.

use jiff::Timestamp;

use super::*;
use crate::effective::PolicySet;
use crate::load::{Origin, Source, parse};

const LOOK: &str = r#"
policy: 1
name: look
owner: team@example.org
files:
  read: ["**"]
  write: ["out/**"]
  readonly: ["out/keep"]
  deny: ["**/.env"]
commands:
  - id: look
    allow: catalog
    reason: Looking changes nothing.
  - id: sort-out
    allow: "sort -o * ..."
    effects: [read, write]
  - id: own
    allow: "./gradlew build ..."
    effects: [read, code]
net:
  - { id: api, allow: "GET https://api.example/v1/**" }
env: { accept: [NODE_ENV, "MY_*"] }
"#;

fn policy(texts: &[&str], name: &str) -> Effective {
    let mut set = PolicySet::default();
    for text in texts {
        let source = Source { file: "t.yml", text, origin: Origin::Managed };
        set.add(parse(source).unwrap()).unwrap();
    }
    set.effective(name).unwrap()
}

fn ask(policy: &Effective, what: What<'_>) -> (Verdict, Code) {
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let decision = decide(policy, &Query { workspace: "/w", cwd: "/w", now, what });
    (decision.decision, decision.code)
}

fn line(policy: &Effective, text: &str) -> (Verdict, Code) {
    ask(policy, What::Line(text))
}

#[test]
fn effects_decide_not_text() {
    let look = policy(&[LOOK], "look");
    for (text, code) in [
        ("sort a", Code::Allowed),
        ("sort -rn a b", Code::Allowed),
        ("timeout 5 sort a", Code::Allowed),
        ("env NODE_ENV=test sort a", Code::Allowed),
        ("MY_X=1 sort a | sort -u > /dev/null 2>&1", Code::Allowed),
        ("sort a > /tmp/x", Code::Allowed),
        ("sort -o out/x a", Code::Allowed),
        ("sort -o x a", Code::PathNotWritable),
        ("sort -oout/keep a", Code::PathReadonly),
        ("sort -ro.runner/x a", Code::ProtectedPath),
        ("sort a > x", Code::EffectNotGranted),
        ("sort .env", Code::PathDenied),
        ("sort sub/../.env", Code::PathDenied),
        ("sort .e*", Code::PathDenied),
        ("cat *", Code::Allowed),
        ("sort .env*", Code::PathDenied),
        ("sort < .env", Code::PathDenied),
        ("sort ../x", Code::PathOutside),
        ("sort ~/.ssh/id_rsa", Code::KeyMaterial),
        ("sort --compress-program=sh a", Code::EffectNotGranted),
        ("sort --outp=x a", Code::UnknownArgument),
        ("sort --weird a", Code::UnknownArgument),
        ("env FOO=1 sort a", Code::EnvDenied),
        ("LD_PRELOAD=./x.so sort a", Code::EffectNotGranted),
        ("/usr/bin/sort a", Code::ProgramPath),
        ("nosuch a", Code::UnknownProgram),
        ("sort ${X:-a}", Code::Allowed),
        ("sort ${X:=a}", Code::ShellUnreadable),
        ("./gradlew build --x", Code::EffectNotGranted),
        ("cd sub && sort ../.env", Code::PathDenied),
        ("cd sub; sort x", Code::Allowed),
        ("timeout 5 sh -c 'sort -o x a'", Code::PathNotWritable),
        ("sudo sort a", Code::EffectNotGranted),
    ] {
        if text.starts_with("./gradlew") {
            // Unknown is covered by code, which this rule grants.
            assert_eq!(line(&look, text).1, Code::Allowed, "{text}");
            continue;
        }
        assert_eq!(line(&look, text).1, code, "{text}");
    }
}

#[test]
fn deny_beats_ask_beats_allow_in_any_order() {
    let rules = [
        "  - { id: a, allow: \"sort ...\" }\n",
        "  - { id: b, ask: \"sort -r ...\" }\n",
        "  - { id: c, deny: \"sort -u ...\" }\n",
    ];
    for order in [[0, 1, 2], [2, 1, 0], [1, 0, 2], [0, 2, 1]] {
        let list: String = order.iter().map(|at| rules[*at]).collect();
        let text = format!("policy: 1\nname: p\nfiles: {{ read: [\"**\"] }}\ncommands:\n{list}");
        let p = policy(&[&text], "p");
        assert_eq!(line(&p, "sort a").0, Verdict::Allow);
        assert_eq!(line(&p, "sort a -r").0, Verdict::Ask);
        assert_eq!(line(&p, "sort --reverse a").0, Verdict::Ask);
        assert_eq!(line(&p, "sort -ru a").0, Verdict::Deny);
        assert_eq!(line(&p, "timeout 1 nice sort --unique").1, Code::DeniedByRule);
        // An option that nobody knows could be the denied one.
        assert_eq!(line(&p, "sort --uniq a").1, Code::DeniedByRule);
    }
}

#[test]
fn within_is_an_intersection_and_digests_cover_all() {
    let wide = "policy: 1\nname: wide\nextends: [look]\nwithin: [narrow]\nsandbox: { limits: { memory: 1GiB } }\n";
    let narrow = "policy: 1\nname: narrow\nfiles: { read: [\"src/**\"] }\ncommands:\n  - { allow: catalog }\nsandbox: { limits: { memory: 64MiB } }\n";
    let p = policy(&[LOOK, wide, narrow], "wide");
    assert_eq!(line(&p, "sort src/a").0, Verdict::Allow);
    assert_eq!(line(&p, "sort a").1, Code::PathNotReadable);
    assert_ne!(p.digest, policy(&[LOOK, wide, &narrow.replace("src", "lib")], "wide").digest);
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let decision =
        decide(&p, &Query { workspace: "/w", cwd: "/w", now, what: What::Line("sort src/a") });
    assert_eq!(decision.grant.limits.get(crate::limits::Limit::Memory), 64 << 20);
    assert_eq!(decision.policy, "wide");
}

#[test]
fn a_managed_ceiling_is_a_within_for_everyone() {
    let ceiling = "policy: 1\nname: top\nceiling: true\nfiles: { read: [\"**\"] }\ncommands:\n  - { allow: catalog }\n  - { id: no-sort, deny: \"sort ...\" }\n";
    let p = policy(&[LOOK, ceiling], "look");
    assert_eq!(line(&p, "sort a").1, Code::DeniedByRule);
}

#[test]
fn observe_runs_and_records_but_lifts_no_mandatory_deny() {
    let text = "policy: 1\nname: o\nmode: observe\nuntil: 2026-12-31\nfiles: { read: [\"**\"], write: [\"**\"] }\ncommands: []\n";
    let p = policy(&[text], "o");
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    let query = Query { workspace: "/w", cwd: "/w", now, what: What::Line("sort a") };
    let seen = decide(&p, &query);
    assert_eq!((seen.decision, seen.would), (Verdict::Allow, Some((Verdict::Deny, Code::NoRule))));
    assert_eq!(line(&p, "sort -o .git/hooks/pre-commit a").1, Code::ProtectedPath);
    let later = Query { now: "2027-01-01T00:00:00Z".parse().unwrap(), ..query };
    assert_eq!(decide(&p, &later).decision, Verdict::Deny);
}

#[test]
fn an_allow_ends_with_its_date() {
    let text = "policy: 1\nname: u\nfiles: { read: [\"**\"] }\ncommands:\n  - { allow: catalog, until: 2026-05-31 }\n";
    assert_eq!(line(&policy(&[text], "u"), "sort a").1, Code::RuleExpired);
    let text = text.replace("05-31", "06-01");
    assert_eq!(line(&policy(&[&text], "u"), "sort a").1, Code::Allowed);
}

#[test]
fn a_policys_own_grammar_counts_for_its_own_grants_only() {
    let own = "policy: 1\nname: own\nfiles: { read: [\"**\"] }\nprograms:\n  mytool: { options: { \"-v, --verbose\": none, \"-o, --output FILE\": write }, operands: \"read...\" }\ncommands:\n  - { id: mine, allow: \"mytool ...\" }\n";
    let p = policy(&[own], "own");
    assert_eq!(line(&p, "mytool -v a").1, Code::Allowed);
    assert_eq!(line(&p, "mytool -o x a").1, Code::EffectNotGranted);
    let other = "policy: 1\nname: other\nextends: [own]\nfiles: { read: [\"**\"] }\ncommands:\n  - { id: theirs, allow: \"mytool2 ...\" }\n";
    assert_eq!(line(&policy(&[own, other], "other"), "mytool -v a").1, Code::Allowed);
    let stranger = "policy: 1\nname: stranger\nextends: [desc]\nfiles: { read: [\"**\"] }\ncommands:\n  - { id: theirs, allow: \"mytool ...\" }\n";
    let desc = own
        .replace("name: own", "name: desc")
        .replace("allow: \"mytool ...\"", "allow: \"other ...\"");
    assert_ne!(line(&policy(&[&desc, stranger], "stranger"), "mytool -v a").0, Verdict::Allow);
}

#[test]
fn questions_about_paths_peers_and_variables() {
    let look = policy(&[LOOK], "look");
    assert_eq!(ask(&look, What::Read("src/a")).1, Code::Allowed);
    assert_eq!(ask(&look, What::Read(".env")).1, Code::PathDenied);
    assert_eq!(ask(&look, What::Read("../w2/x")).1, Code::PathOutside);
    assert_eq!(ask(&look, What::Write("out/x")).1, Code::Allowed);
    assert_eq!(ask(&look, What::Write("src/a")).1, Code::PathNotWritable);
    assert_eq!(ask(&look, What::Net("https://api.example/v1/x")).1, Code::Allowed);
    assert_eq!(ask(&look, What::Net("POST https://api.example/v1/x")).1, Code::NetDenied);
    assert_eq!(ask(&look, What::Env("NODE_ENV")).1, Code::Allowed);
    assert_eq!(ask(&look, What::Env("LD_PRELOAD")).1, Code::EffectNotGranted);
    assert_eq!(ask(&look, What::Env("A=B")).1, Code::BadArgument);
}

#[test]
fn too_large_and_too_deep_are_denied_not_shortened() {
    let look = policy(&[LOOK], "look");
    let deep: Vec<String> =
        std::iter::repeat_n("nice".to_owned(), 70).chain(["sort".to_owned()]).collect();
    assert_eq!(ask(&look, What::Argv(&deep)).1, Code::TooDeep);
    let ok: Vec<String> =
        std::iter::repeat_n("nice".to_owned(), 60).chain(["sort".to_owned()]).collect();
    assert_eq!(ask(&look, What::Argv(&ok)).1, Code::Allowed);
    let large = vec!["sort".to_owned(), "x".repeat(300_000)];
    assert_eq!(ask(&look, What::Argv(&large)).1, Code::TooLarge);
    assert_eq!(ask(&look, What::Argv(&[])).1, Code::EmptyCommand);
    assert_eq!(
        ask(&look, What::Argv(&["sort".to_owned(), "a\0b".to_owned()])).1,
        Code::BadArgument
    );
}

#[test]
fn nearest_forms_are_allowed_and_leave_no_value_behind() {
    let look = policy(&[LOOK], "look");
    let nearest = |line: &str| {
        let words: Vec<Vec<u8>> = line.split(' ').map(|word| word.as_bytes().to_vec()).collect();
        let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
        let query = Query { workspace: "/w", cwd: "/w", now, what: What::Bytes(&words) };
        explain(&look, &query, &[]).nearest
    };
    assert_eq!(nearest("sort -r -o x a"), ["sort -r a"]);
    assert_eq!(nearest("sort -r -o x"), ["sort -r"]);
    assert!(nearest("rm -rf /").is_empty(), "`rm` alone is of no help");
    assert_eq!(nearest("find . -exec rm {} +"), ["find ."]);
    assert_eq!(nearest("/usr/bin/sort a"), ["sort a"]);
}
