//! The table of cases: `tests/cases/shell.txt`, which reads without Rust.

use runner_policy::shell::{Line, parse};

use super::notation::outcome;

const TABLE: &str = include_str!("../../../../tests/cases/shell.txt");
const ARROW: &str = "  =>  ";

/// A case as written: line number, input with its symbols, expectation.
fn cases() -> impl Iterator<Item = (usize, &'static str, &'static str)> {
    TABLE.lines().enumerate().filter(|(_, line)| !line.is_empty() && !line.starts_with("##")).map(
        |(number, line)| {
            // A line without an arrow is a case that fails.
            let (input, expected) = line.split_once(ARROW).unwrap_or((line, ""));
            (number + 1, input, expected)
        },
    )
}

fn input(written: &str) -> String {
    written.replace('⏎', "\n").replace('␍', "\r").replace('␀', "\0").replace('⇥', "\t")
}

#[test]
fn every_case_has_its_outcome() {
    let mut wrong = Vec::new();
    for (number, written, expected) in cases() {
        let text = input(written);
        let found = outcome(&text, &parse(&text));
        if found != expected {
            wrong.push(format!("{number}: {written}\n  expected {expected}\n  found    {found}"));
        }
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(cases().count() >= 150);
}

#[test]
fn every_readable_case_prints_and_reads_back() {
    for (number, written, _) in cases() {
        if let Line::Readable(script) = parse(&input(written)) {
            let printed = script.to_string();
            let Line::Readable(again) = parse(&printed) else {
                panic!("{number}: {written}: {printed}: {:?}", parse(&printed));
            };
            assert_eq!(again.to_string(), printed);
            assert_eq!(again.unplaced(), script.unplaced(), "{number}: {printed}");
        }
    }
}

#[test]
fn every_case_survives_serialisation() {
    for (_, written, _) in cases() {
        let line = parse(&input(written));
        let json = serde_json::to_string(&line).unwrap();
        assert_eq!(serde_json::from_str::<Line>(&json).unwrap(), line);
    }
}
