//! Any text is a policy or a list of findings that point into it; what loads can be composed, checked and
//! asked without a panic.
#![no_main]

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use runner_policy::check::check;
use runner_policy::{Origin, PolicySet, Query, Source, What, decide, parse};

/// One byte chooses one of these, so that short inputs already make whole sections.
const PIECES: &[&str] = &[
    "policy: 1\nname: p\n", "\n", "  ", "- ", ": ", "{ ", " }", "[", "]", ", ", "\"", "'", "#", "!", "&a ", "*a", "<<: ", "---\n", "|\n",
    "files:\n", "  read: [\"**\"]\n", "  write: [\"a/**\", \"!a/b\"]\n", "  deny: [\"**/.env\"]\n", "  readonly: [x]\n", "commands:\n",
    "  - { id: a, allow: catalog }\n", "  - { id: b, deny: \"sort ...\" }\n", "  - { id: c, ask: \"git push ...\", args: { ref: [main] } }\n",
    "  - id: d\n    allow: \"cargo {build,test} ...\"\n    effects: [read, write, code]\n", "    until: 2026-12-31\n", "    where: host\n",
    "    limits: { wall: 40m, memory: 1GiB }\n", "    examples: { match: [\"cat a\"], reject: [\"rm a\"] }\n", "net:\n",
    "  - { id: n1, allow: \"connect a.example:443\" }\n", "  - { id: n2, deny: \"GET https://a.example/**\" }\n", "env: { pass: [LANG], set: { A: b }, accept: [\"C*\"] }\n",
    "programs:\n", "  mytool: { options: { \"-v, --verbose\": none, \"-o FILE\": write }, operands: \"read...\" }\n", "tests: { allow: [\"cat a\"], deny: [\"rm a\"] }\n",
    "mode: observe\nuntil: 2027-01-01\n", "extends: [base]\n", "within: [base]\n", "ceiling: true\n", "sandbox: { isolation: strict, limits: { memory: 64MiB } }\n",
    "name: q\n", "no", "1", "~", "é", "{a,b}", "...", "\t", "\u{0}", "style: { ends: first-operand }", "subcommands: { a: {} }", "exec...", "set-env...",
];

const BASE: &str = "policy: 1\nname: base\nfiles: { read: [\"**\"] }\ncommands:\n  - { allow: catalog }\n";

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else {
        return;
    };
    let text: String = if mode % 2 == 0 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        rest.iter().map(|byte| PIECES[usize::from(*byte) % PIECES.len()]).collect()
    };
    let source = |text| Source { file: "p.yml", text, origin: Origin::Managed };
    match parse(source(&text)) {
        Err(findings) => {
            assert!(!findings.is_empty());
            let lines = text.split(['\n', '\r']).count() + 1;
            for finding in findings {
                let line = usize::try_from(finding.at.line).unwrap_or(usize::MAX);
                assert!((1..=lines).contains(&line), "{finding}");
                assert!(finding.at.column > 0 && !finding.message.is_empty(), "{finding}");
            }
        }
        Ok(policy) => {
            let name = policy.name.clone();
            let mut set = PolicySet::default();
            if let Ok(base) = parse(source(BASE)) {
                let _ = set.add(base);
            }
            if set.add(policy).is_err() {
                return;
            }
            let Ok(effective) = set.effective(&name) else { return };
            let now: Timestamp = Timestamp::UNIX_EPOCH;
            let _ = check(&effective, &text, now);
            for what in [What::Line("sort -o x a && git push origin main"), What::Read("a"), What::Net("https://a.example/x")] {
                let query = Query { workspace: "/w", cwd: "/w", now, what };
                assert_eq!(decide(&effective, &query), decide(&effective, &query));
            }
        }
    }
});
