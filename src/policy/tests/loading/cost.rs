//! What a hostile file may cost. Memory is the process's own high-water mark: each test is a process.
#![allow(
    clippy::disallowed_methods,
    reason = "the test asks the kernel and a clock what the pure code cost"
)]

use std::fmt::Write;
use std::time::{Duration, Instant};

use runner_policy::{Origin, Source, parse};

const MIB: u64 = 1 << 20;
/// Far above what is measured (see the benchmarks), for machines that are busy with other tests.
const GENEROUS: Duration = Duration::from_secs(60);

/// Parses and gives the codes that were found; memory and time stay in bounds.
fn refused(name: &str, text: &str) -> Vec<&'static str> {
    let (before, start) = (high_water(), Instant::now());
    let findings = parse(Source { file: "p.yml", text, origin: Origin::Project }).unwrap_err();
    let (grown, took) = (high_water() - before, start.elapsed());
    println!("{name}: {} bytes of text, {} KiB of memory, {took:?}", text.len(), grown / 1024);
    assert!(grown < 50 * MIB, "{name}: {grown}");
    assert!(took < GENEROUS, "{name}: {took:?}");
    let mut codes: Vec<&str> = findings.iter().map(|finding| finding.code).collect();
    codes.dedup();
    codes
}

/// The most memory that this process ever had.
fn high_water() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = status.lines().find(|line| line.starts_with("VmHWM:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<u64>().unwrap() * 1024
}

#[test]
fn alias_bombs() {
    let mut laughs = "a0: &a0 [lol, lol, lol, lol, lol, lol, lol, lol, lol]\n".to_owned();
    for level in 1..30 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        writeln!(laughs, "a{level}: &a{level} [{aliases}]").unwrap();
    }
    assert_eq!(refused("laughs", &laughs), ["anchor"]);
    let many = format!("a: [{}]\n", "*x, ".repeat(100_000));
    assert_eq!(refused("many aliases", &many), ["bad_yaml"]);
}

#[test]
fn large_files() {
    assert_eq!(refused("blanks", &" ".repeat(2 << 20)), ["too_large"]);
    assert_eq!(refused("values", &format!("a: [{}]\n", "a, ".repeat(150_000))), ["too_large"]);
    let keys: String = (0..60_000).map(|n| format!("k{n}: 1\n")).collect();
    assert_eq!(refused("keys", &keys), ["too_large"]);
    let rules: String = (0..8_000).map(|_| "  - { id: a, deny: \"a ...\" }\n").collect();
    assert_eq!(
        refused("rules", &format!("policy: 1\nname: p\ncommands:\n{rules}")),
        ["duplicate_id"]
    );
    let mistakes: String = (0..3_000).map(|n| format!("  commandz-of-mine-{n}: 1\n")).collect();
    assert_eq!(
        refused("mistakes", &format!("policy: 1\nname: p\nfiles:\n{mistakes}")),
        ["unknown_key"]
    );
}

#[test]
fn deep_files() {
    for open in ["[", "{ a: ", "- ", "? "] {
        let codes = refused(open, &open.repeat(100_000));
        assert!(["bad_yaml", "too_deep"].contains(&codes[0]), "{codes:?}");
    }
    assert_eq!(refused("quotes", &format!("a: \"{}", "\\\"".repeat(200_000))), ["bad_yaml"]);
}
