//! Generated policies, commands and lines. Words come from small sets, so that rules and commands meet.

use jiff::Timestamp;
use proptest::prelude::*;
use proptest::sample::{select, subsequence};
use runner_policy::{
    Decision, Effective, Origin, PolicySet, Query, Source, Verdict, What, decide, parse,
};

/// The shape of a policy; its text is made of it.
#[derive(Debug, Clone)]
pub struct Shape {
    pub rules: Vec<String>,
    pub net: Vec<String>,
    pub lists: [Vec<&'static str>; 4],
    pub accept: Vec<&'static str>,
    pub mode: Mode,
    pub sandbox: &'static str,
    pub programs: Programs,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    Enforces,
    Observes,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Programs {
    None,
    Described,
}

impl Shape {
    pub fn text(&self, name: &str, head: &str) -> String {
        let mut out = format!("policy: 1\nname: {name}\n{head}");
        if self.mode == Mode::Observes {
            out += "mode: observe\nuntil: 2026-12-31\n";
        }
        if !self.sandbox.is_empty() {
            out += &format!("sandbox: {{ {} }}\n", self.sandbox);
        }
        out += "files:\n";
        for (key, list) in ["read", "write", "readonly", "deny"].iter().zip(&self.lists) {
            let items: Vec<String> = list.iter().map(|item| format!("\"{item}\"")).collect();
            out += &format!("  {key}: [{}]\n", items.join(", "));
        }
        if self.programs == Programs::Described {
            out += "programs:\n  mytool: { options: { \"-v, --verbose\": none, \"-o, --output FILE\": write }, operands: \"read...\" }\n";
        }
        out += &format!("env: {{ accept: [{}] }}\n", self.accept.join(", "));
        for (key, rules) in [("commands", &self.rules), ("net", &self.net)] {
            out += &format!("{key}:{}\n", if rules.is_empty() { " []" } else { "" });
            for rule in rules {
                out += &format!("  - {{ {rule} }}\n");
            }
        }
        out
    }
}

pub fn shape() -> impl Strategy<Value = Shape> {
    (
        prop::collection::vec(rule(), 0..6),
        prop::collection::vec(net_rule(), 0..3),
        [list(), list(), list(), list()],
        subsequence(vec!["NODE_ENV", "\"MY_*\"", "CI"], 0..=3),
        prop_oneof![9 => Just(Mode::Enforces), 1 => Just(Mode::Observes)],
        select(vec![
            "",
            "isolation: basic",
            "isolation: paranoid",
            "limits: { memory: 1GiB }",
            "limits: { memory: 64MiB, wall: 5s }",
            "engines: [docker]",
        ]),
        prop_oneof![4 => Just(Programs::None), 1 => Just(Programs::Described)],
    )
        .prop_map(|(rules, net, lists, accept, mode, sandbox, programs)| Shape {
            rules: rules
                .into_iter()
                .enumerate()
                .map(|(at, rule)| format!("id: r{at}, {rule}"))
                .collect(),
            net: net
                .into_iter()
                .enumerate()
                .map(|(at, rule)| format!("id: t{at}, {rule}"))
                .collect(),
            lists,
            accept,
            mode,
            sandbox,
            programs,
        })
}

fn list() -> impl Strategy<Value = Vec<&'static str>> {
    let patterns = vec![
        "**",
        "src/**",
        "*",
        "**/.env",
        "a",
        "out/**",
        "!out/**",
        "!a",
        "{a,b}*",
        "/usr/**",
        "!**/.env.example",
        "src/?",
    ];
    subsequence(patterns, 0..5).prop_map(|mut list| {
        // Absolute patterns are for reading only.
        list.retain(|pattern| !pattern.starts_with('/'));
        list
    })
}

const PATTERNS: &[&str] = &[
    "catalog",
    "cat ...",
    "sort ...",
    "sort -o * ...",
    "sort -ru ...",
    "sort",
    "** ...",
    "git push ...",
    "git {status,log} ...",
    "mytool ...",
    "./own ...",
    "sh ...",
    "find ...",
    "curl ...",
    "s* ...",
];

fn rule() -> impl Strategy<Value = String> {
    let effects = subsequence(vec!["read", "write", "net", "code", "system"], 1..4);
    let verb = prop_oneof![4 => Just("allow"), 1 => Just("ask"), 1 => Just("deny")];
    let extra = select(vec![
        "",
        ", args: { option: [\"!-r\"] }",
        ", args: { ref: [main] }",
        ", args: { path: [\"src/*\", \"!a\"] }",
        ", reason: because",
    ]);
    let more = select(vec![
        "",
        ", until: 2026-01-01",
        ", until: 2027-01-01",
        ", limits: { wall: 2m }",
        ", where: sandbox",
    ]);
    (verb, select(PATTERNS), effects, extra, more, any::<bool>()).prop_map(
        |(verb, pattern, effects, extra, more, given)| {
            let effects =
                if given { format!(", effects: [{}]", effects.join(", ")) } else { String::new() };
            match verb {
                "deny" => format!("deny: \"{pattern}\"{extra}"),
                verb => format!("{verb}: \"{pattern}\"{effects}{extra}{more}"),
            }
        },
    )
}

fn net_rule() -> impl Strategy<Value = String> {
    let verb = prop_oneof![3 => Just("allow"), 1 => Just("ask"), 1 => Just("deny")];
    let target = select(vec![
        "connect a.example:443",
        "connect *:*",
        "GET https://a.example/**",
        "GET,POST https://a.example/v1/**",
        "GET https://*.example/x",
    ]);
    let terms = select(vec![
        "",
        ", limits: { size: 1MiB }",
        ", limits: { count: 3, time: 2s }",
        ", private: true",
        ", private: true, limits: { size: 1KiB, count: 7 }",
    ]);
    (verb, target, terms).prop_map(|(verb, target, terms)| {
        // A deny has no terms, and `private` needs a host.
        let plain = verb == "deny" || (target.contains(" *:") && terms.contains("private"));
        format!("{verb}: \"{target}\"{}", if plain { "" } else { terms })
    })
}

pub const WORDS: &[&str] = &[
    "a",
    "b",
    "src/a",
    ".env",
    "../x",
    "/etc/passwd",
    "/w/a",
    "out/x",
    "-",
    "--",
    "-o",
    "-ox",
    "-r",
    "-ru",
    "-u",
    "--reverse",
    "--output=out/x",
    "--zz",
    "-Z",
    "",
    "--output",
    "-n",
    "5",
    "-k1",
    "origin",
    "main",
    "HEAD:a",
    "push",
    "status",
    "log",
    "-c",
    "https://a.example/v1/x",
    "a.example:443",
    ".",
    "-name",
    "-exec",
    "{}",
    ";",
    "+",
    "-delete",
    "p",
    "s/a/b/w x",
    "FOO=1",
    "NODE_ENV=x",
    "LD_PRELOAD=x",
    "cat",
    "sort",
    "é",
    "a\tb",
    "*",
    "src/*",
    ".e*",
    "-i",
    "-x",
    "=",
    "a=b",
    "\u{0}",
    "~",
    "$X",
    "'",
    "--help",
];

pub const PROGRAMS: &[&str] = &[
    "cat", "sort", "grep", "find", "git", "sed", "curl", "xargs", "sh", "env", "timeout", "nice",
    "mytool", "./own", "/bin/cat", "nosuch", "tar", "rm", "cp", "echo", "test", "true", "npm",
    "node", "cd", "export", "",
];

pub fn argv() -> impl Strategy<Value = Vec<String>> {
    let word = || prop_oneof![12 => select(WORDS).prop_map(str::to_owned), 1 => any::<String>()];
    let program = prop_oneof![12 => select(PROGRAMS).prop_map(str::to_owned), 1 => any::<String>()];
    (program, prop::collection::vec(word(), 0..6)).prop_map(|(program, mut words)| {
        words.insert(0, program);
        words
    })
}

pub fn line() -> impl Strategy<Value = String> {
    let join = select(vec![
        " && ",
        " || ",
        "; ",
        " | ",
        "\n",
        " > out/x; ",
        " < .env && ",
        " 2>&1 | ",
        " & ",
        " $(",
    ]);
    let quoted = argv().prop_map(|words| {
        let shown: Vec<String> =
            words
                .iter()
                .map(|word| {
                    if word.contains('*') {
                        word.clone()
                    } else {
                        runner_policy::word::quoted(word)
                    }
                })
                .collect();
        shown.join(" ")
    });
    let cd =
        select(vec!["cd src", "cd ..", "cd", "export A=1", "! cat a", "X=1 cat a", "cat src/*"])
            .prop_map(str::to_owned);
    let piece = prop_oneof![6 => quoted, 2 => cd, 1 => any::<String>()];
    prop::collection::vec((piece, join), 1..4).prop_map(|pieces| {
        let last = pieces.len() - 1;
        let joined = pieces.iter().enumerate().map(|(at, (piece, join))| {
            if at == last { piece.clone() } else { format!("{piece}{join}") }
        });
        joined.collect()
    })
}

pub fn policies(texts: &[String], name: &str) -> Effective {
    let mut set = PolicySet::default();
    for text in texts {
        let source = Source { file: "t.yml", text, origin: Origin::Managed };
        set.add(parse(source).unwrap_or_else(|findings| panic!("{findings:?}\n{text}"))).unwrap();
    }
    set.effective(name).unwrap()
}

pub fn query(what: What<'_>) -> Query<'_> {
    let now: Timestamp = "2026-06-01T00:00:00Z".parse().unwrap();
    Query { workspace: "/w", cwd: "/w", now, what }
}

pub fn ask(policy: &Effective, what: What<'_>) -> Decision {
    decide(policy, &query(what))
}

/// A decision without what names the policy's text.
pub fn essence(decision: Decision) -> Decision {
    let rule = decision.rule.map(|rule| runner_policy::decide::RuleRef { line: 0, ..rule });
    Decision { rule, digest: String::new(), ..decision }
}

/// At least as strict.
pub fn no_looser(one: &Decision, than: Verdict) -> bool {
    one.decision >= than
}
