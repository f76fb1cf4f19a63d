//! Any words and any line are decided without a panic; what the shipped `readonly` allows only reads, and
//! nothing in it is unknown.
#![no_main]

use std::sync::LazyLock;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use runner_policy::{
    Decision, Effective, Origin, PolicySet, Query, Source, Verdict, What, catalog, decide, explain, parse,
};

const SHIPPED: &[(&str, &str)] = &[
    ("base", include_str!("../../../policies/base.yml")),
    ("readonly", include_str!("../../../policies/readonly.yml")),
    ("develop", include_str!("../../../policies/develop.yml")),
    ("edit", include_str!("../../../policies/edit.yml")),
    ("contained", include_str!("../../../policies/contained.yml")),
    ("paranoid", include_str!("../../../policies/paranoid.yml")),
];

/// One byte chooses one of these, so that short inputs already make whole commands.
const WORDS: &[&str] = &[
    "a", "b", "src/a", ".env", "../x", "/etc/passwd", "/w/a", "-", "--", "-o", "-ox", "-r", "-c", "-C", "-n", "-e", "-f", "-i", "-x", "-s",
    "--output=x", "--exec", "--help", "-exec", "-delete", "{}", ";", "+", "5", "HEAD", "HEAD:.env", "main", "origin", "push", "status",
    "log", "diff", "show", "config", "p", "1,5p", "s/a/b/w x", "e id", ":a", "FOO=1", "LANG=C", "LD_PRELOAD=x", "sh", "cat", "sort",
    "https://a.example/x", "a.example:22", "*", "src/*", ".e*", "", "é", "core.pager=sh", "-la", "-rn", "if=a", "of=b", "+x", "u+s",
];
const JOINS: &[&str] = &[" && ", " || ", "; ", " | ", " > b; ", " < a; ", "\n", " 2>&1 | ", " > /dev/null; ", " > /tmp/x && "];

static POLICIES: LazyLock<(Vec<Effective>, Vec<&'static str>)> = LazyLock::new(|| {
    let mut set = PolicySet::default();
    for (name, text) in SHIPPED {
        let source = Source { file: name, text, origin: Origin::Shipped };
        let policy = parse(source).unwrap_or_else(|findings| panic!("{findings:?}"));
        set.add(policy).unwrap_or_else(|finding| panic!("{finding}"));
    }
    let all = SHIPPED.iter().map(|(name, _)| set.effective(name).unwrap_or_else(|f| panic!("{f:?}")));
    (all.collect(), catalog::names().collect())
});

fuzz_target!(|data: &[u8]| {
    let [mode, choice, rest @ ..] = data else { return };
    let (policies, names) = &*POLICIES;
    let words: Vec<String> = if mode % 3 == 0 {
        String::from_utf8_lossy(rest).split('\u{1}').map(str::to_owned).collect()
    } else {
        let at = rest.first().map_or(0, |byte| usize::from(*byte)) + 256 * usize::from(choice % 2);
        let program = names[at % names.len()].to_owned();
        let given = rest.iter().skip(1).map(|byte| WORDS[usize::from(*byte) % WORDS.len()].to_owned());
        std::iter::once(program).chain(given).collect()
    };
    let line: String = if mode % 2 == 0 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        let shown: Vec<String> = words
            .iter()
            .map(|word| if word.contains('*') { word.clone() } else { runner_policy::word::quoted(word) })
            .collect();
        let join = JOINS[usize::from(*choice) % JOINS.len()];
        shown.chunks(4).map(|command| command.join(" ")).collect::<Vec<_>>().join(join)
    };
    for (at, policy) in policies.iter().enumerate() {
        for what in [What::Argv(&words), What::Line(&line)] {
            let query = Query { workspace: "/w", cwd: "/w", now: Timestamp::UNIX_EPOCH, what };
            let decision = decide(policy, &query);
            if SHIPPED[at].0 == "readonly" {
                only_reads(&decision, &what);
                assert_eq!(explain(policy, &query, &[]).decision, decision);
            }
        }
    }
});

fn only_reads(decision: &Decision, what: &What<'_>) {
    if decision.decision != Verdict::Allow {
        return;
    }
    for line in &decision.effects {
        let scratch = line.effect == "write" && ["/tmp/", "/dev/"].iter().any(|free| line.object.starts_with(free));
        assert!(["read", "env"].contains(&line.effect) || scratch, "{what:?}: {line:?}");
    }
}
