//! What a decision costs, warm and from cold. Targets: one command under 20 µs, with 1,000 rules under 200 µs,
//! loading a shipped policy and deciding once under 1 ms, an alias bomb under 100 ms.
#![allow(missing_docs, clippy::unwrap_used, reason = "a benchmark")]

use std::fmt::Write;
use std::hint::black_box;

use criterion::{Criterion, criterion_group, criterion_main};
use jiff::Timestamp;
use runner_policy::{Effective, Origin, PolicySet, Query, Source, What, decide, parse};

const BASE: &str = include_str!("../../../policies/base.yml");
const READONLY: &str = include_str!("../../../policies/readonly.yml");

fn load(texts: &[&str], name: &str) -> Effective {
    let mut set = PolicySet::default();
    for text in texts {
        set.add(parse(Source { file: "p.yml", text, origin: Origin::Shipped }).unwrap()).unwrap();
    }
    set.effective(name).unwrap()
}

fn query(what: What<'_>) -> Query<'_> {
    Query { workspace: "/w/project", cwd: "/w/project", now: Timestamp::UNIX_EPOCH, what }
}

fn words(line: &str) -> Vec<String> {
    line.split(' ').map(str::to_owned).collect()
}

/// A policy with this many rules, none of which is about the command.
fn many(rules: usize) -> String {
    let mut text = "policy: 1\nname: many\nextends: [readonly]\ncommands:\n".to_owned();
    for n in 0..rules {
        let verb = ["allow", "ask", "deny"][n % 3];
        writeln!(text, "  - {{ id: r{n}, {verb}: \"tool{n} {{build,test}} -x * ...\" }}").unwrap();
    }
    text
}

fn warm(c: &mut Criterion) {
    let readonly = load(&[BASE, READONLY], "readonly");
    for (name, line) in [
        ("cat", "cat README.md"),
        ("sort with options", "sort -k2 -rn --field-separator=, table.csv"),
        ("git log", "git log --oneline -n 5 -- src"),
        ("wrapped", "timeout 5 nice wc -l src/main.rs"),
        ("find -exec", "find . -name x -exec grep -n y {} +"),
        ("denied", "rm -rf target"),
    ] {
        let words = words(line);
        c.bench_function(&format!("decide argv: {name}"), |b| {
            b.iter(|| black_box(decide(&readonly, &query(What::Argv(black_box(&words))))));
        });
    }
    let line = "cd src && grep -rn TODO . | sort -u | head -n 20";
    c.bench_function("decide line of four commands", |b| {
        b.iter(|| black_box(decide(&readonly, &query(What::Line(black_box(line))))));
    });
    let large = many(1_000);
    let large = load(&[BASE, READONLY, &large], "many");
    let cat = words("cat README.md");
    c.bench_function("decide argv: cat, 1,000 rules", |b| {
        b.iter(|| black_box(decide(&large, &query(What::Argv(black_box(&cat))))));
    });
}

fn cold(c: &mut Criterion) {
    let log = words("git log --oneline -n 5 -- src");
    c.bench_function("load readonly and base, decide once", |b| {
        b.iter(|| {
            let policy = load(&[black_box(BASE), black_box(READONLY)], "readonly");
            black_box(decide(&policy, &query(What::Argv(&log))))
        });
    });
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(bomb, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    c.bench_function("alias bomb", |b| {
        b.iter(|| {
            parse(Source { file: "p.yml", text: black_box(&bomb), origin: Origin::Project })
                .is_err()
        });
    });
    let values = format!("a: [{}]\n", "a, ".repeat(150_000));
    c.bench_function("file of 100,000 values", |b| {
        b.iter(|| {
            parse(Source { file: "p.yml", text: black_box(&values), origin: Origin::Project })
                .is_err()
        });
    });
}

criterion_group! {
    name = benches;
    config = Criterion::default().sample_size(30).warm_up_time(std::time::Duration::from_millis(500)).measurement_time(std::time::Duration::from_secs(2));
    targets = warm, cold
}
criterion_main!(benches);
