//! Definitions in YAML: what loads, what does not, and where the finding points.

use serde_json::json;

use super::*;

const RUN_TESTS: &str = r#"
name: run_tests
description: Runs the project's tests and tells which of them failed.
enabled: true
tokenCost: 450  # a guess

schema:
  type: object
  properties:
    pattern:
      type: string
      description: Which test files, such as "*.test.ts"
    coverage:
      type: boolean
  required: [pattern]

runtime: typescript

permissions:
  # the commands that it may run
  allowlist:
    - "yarn test*"
    - "npm test*"
    - "vitest*"
  autoAccept: false  # somebody is asked
  riskLevel: medium

code: |
  export async function execute(args: { pattern: string }, context: ToolContext): Promise<string> {
    return args.pattern;
  }
"#;

fn read(text: &str) -> Result<Definition, Vec<Finding>> {
    parse("run_tests.yml", text, &"run_tests".parse().unwrap())
}

fn found(text: &str) -> Vec<(&'static str, u32, u32)> {
    match read(text) {
        Ok(_) => Vec::new(),
        Err(findings) => findings.iter().map(|it| (it.code, it.at.line, it.at.column)).collect(),
    }
}

/// The smallest tool, with more lines.
fn with(lines: &str) -> String {
    format!("name: run_tests\ndescription: x\ncode: export const execute = 1\n{lines}\n")
}

#[test]
fn a_tool_of_the_known_form_loads_unchanged() {
    let tool = read(RUN_TESTS).unwrap();
    assert_eq!(tool.name.as_str(), "run_tests");
    assert_eq!((tool.enabled, tool.auto_accept), (true, false));
    assert_eq!(tool.tokens, Tokens::Said(450));
    assert_eq!((tool.tier, tool.risk), (Tier::Execute, Risk::Medium));
    assert_eq!(tool.permissions.allowlist, ["yarn test*", "npm test*", "vitest*"]);
    assert_eq!(tool.permissions.read, None);
    let Body::Yaml { runtime: Runtime::Typescript, code } = &tool.body else { panic!("YAML") };
    assert_eq!((code.line, code.indent), (29, 2));
    assert!(code.text.starts_with("export async function execute"));
    assert!(tool.schema.check(json!({"pattern": "a"})).is_ok());
    assert!(tool.schema.check(json!({})).is_err());
}

#[test]
fn the_smallest_tool_gets_what_is_safe() {
    let tool = read(&with("")).unwrap();
    assert!(tool.enabled && tool.auto_accept);
    assert_eq!((tool.tier, tool.risk), (Tier::ReadOnly, Risk::Low));
    assert!(matches!(tool.tokens, Tokens::Estimated(1..)));
    assert!(tool.schema.check(json!({})).is_ok() && tool.schema.check(json!({"a": 1})).is_err());
    // Writing runs, but what it would remove is asked about; what does more is asked about whole.
    let writes = read(&with("files: {write: ['out/**']}")).unwrap();
    assert_eq!((writes.auto_accept, writes.removal), (true, Removal::Asked));
    assert!(!read(&with("permissions: {allowlist: ['git log*']}")).unwrap().auto_accept);
    assert!(!read(&with("permissions: {riskLevel: high}")).unwrap().auto_accept);
    // A tool waives its approval only below high risk, which is what it has if it names none and reaches the net.
    let net = "net: ['GET https://a.example/**']\npermissions: {autoAccept: true";
    let waives = |risk: &str| read(&with(&format!("{net}{risk}}}"))).unwrap();
    for (risk, waiver) in [
        (", riskLevel: medium", Waiver::Counts),
        ("", Waiver::Risk),
        (", riskLevel: critical", Waiver::Risk),
    ] {
        let it = waives(risk);
        assert_eq!((it.waiver, it.auto_accept), (waiver, waiver == Waiver::Counts), "{risk}");
    }
    let held = waives(", riskLevel: low").without_waiver(Waiver::Stranger);
    assert_eq!((held.waiver, held.auto_accept), (Waiver::Stranger, false));
    let writes =
        read(&with("files: {write: ['out/**']}\npermissions: {autoAccept: true}")).unwrap();
    assert_eq!((writes.auto_accept, writes.removal), (true, Removal::Free));
    assert_eq!(writes.without_waiver(Waiver::Stranger).removal, Removal::Asked);
}

#[test]
fn every_part_is_read() {
    let tool = read(&with(
        "version: 1.2.3-rc.1+b5\ncategory: search\nsecurityTier: external_api\nreturns: {type: string}\nfiles: {read: 'src/**', write: [out/x]}\n\
         net: ['GET https://a.example/**']\nenv: [CI, 'LC_*']\nlimits: {memory: 128MiB}\ntimeout: 90s\nenabled: false\nruntime: node",
    ))
    .unwrap();
    assert_eq!(tool.version.as_deref(), Some("1.2.3-rc.1+b5"));
    assert_eq!((tool.category, tool.tier), (Category::Search, Tier::ExternalApi));
    assert_eq!((tool.timeout, tool.enabled), (Some(90_000), false));
    assert_eq!(tool.permissions.read.as_deref(), Some(&["src/**".to_owned()][..]));
    assert_eq!(tool.permissions.write, ["out/x"]);
    assert_eq!(tool.permissions.env, ["CI", "LC_*"]);
    let limits = [("memory", "128MiB".to_owned()), ("wall", "90s".to_owned())];
    assert_eq!(tool.permissions.limits, limits);
    assert!(matches!(tool.body, Body::Yaml { runtime: Runtime::Node, .. }));
    assert_eq!(read(&with("timeout: 1500")).unwrap().timeout, Some(1500));
    assert_eq!(read(&with("timeout: 1m\nlimits: {wall: 2s}")).unwrap().timeout, Some(2_000));
}

#[test]
fn mistakes_are_findings_at_their_place() {
    let cases: &[(&str, (&str, u32, u32))] = &[
        ("nmae: x", ("unknown_key", 4, 1)),
        ("description: y", ("duplicate_key", 4, 1)),
        ("enabled: yes", ("wrong_type", 4, 10)),
        ("tokenCost: many", ("bad_figure", 4, 12)),
        ("version: 1.2", ("bad_version", 4, 10)),
        ("category: serch", ("unknown_value", 4, 11)),
        ("securityTier: readonly", ("unknown_value", 4, 15)),
        ("runtime: python", ("unknown_value", 4, 10)),
        ("permissions: {alowlist: []}", ("unknown_key", 4, 15)),
        ("permissions: {riskLevel: none}", ("unknown_value", 4, 26)),
        ("permissions: {autoAccept: maybe}", ("wrong_type", 4, 27)),
        ("permissions:\n  allowlist:\n    - \"ls; rm\"", ("bad_pattern", 6, 7)),
        ("permissions: {allowlist: [5]}", ("ambiguous_scalar", 4, 27)),
        ("permissions: {allowlist: 'ls'}", ("wrong_type", 4, 26)),
        ("files: {read: ['../x']}", ("bad_pattern", 4, 16)),
        ("files: {write: ['/etc/x']}", ("forbidden_setting", 4, 17)),
        ("files: {deny: [a]}", ("unknown_key", 4, 9)),
        ("net: ['https://a.example/']", ("bad_target", 4, 7)),
        ("env: ['a-b']", ("bad_name", 4, 7)),
        ("limits: {memory: lots}", ("bad_figure", 4, 18)),
        ("limits: {memori: 1MiB}", ("unknown_key", 4, 10)),
        ("limits: 5", ("wrong_type", 4, 9)),
        ("timeout: soon", ("bad_figure", 4, 10)),
        ("timeout: 99h", ("over_ceiling", 4, 10)),
        ("schema:\n  type: object\n  properties:\n    a: {type: strng}", ("bad_schema", 7, 9)),
        ("schema: {type: object, default: no}", ("ambiguous_scalar", 4, 33)),
        ("returns: 7", ("wrong_type", 4, 10)),
        ("securityTier: read_only\nfiles: {write: [a]}", ("tier_too_low", 4, 15)),
        ("privileged: true", ("unknown_key", 4, 1)),
    ];
    for (lines, expected) in cases {
        assert_eq!(found(&with(lines)).first(), Some(expected), "{lines}");
    }
}

#[test]
fn the_name_of_the_file_is_the_name_of_the_tool() {
    assert_eq!(found("name: other\ndescription: x\ncode: a\n"), [("name_differs", 1, 7)]);
    assert_eq!(found("name: 'a b'\ndescription: x\ncode: a\n"), [("bad_name", 1, 7)]);
    let missing = found("version: 1.0.0\n");
    assert_eq!(missing.iter().map(|it| it.0).collect::<Vec<_>>(), ["missing_key"; 3]);
}

#[test]
fn yaml_tricks_are_refused() {
    for text in ["a: &x [1]\nb: *x", "--- a\n--- b", "", "[]", "a: !!str b", "<<: {a: b}"] {
        assert!(read(text).is_err(), "{text}");
    }
    let deep = format!("a: {}", "[".repeat(1000));
    assert!(read(&deep).is_err());
}

/// A plain generator: the same bytes in every run.
fn next(state: &mut u64) -> usize {
    *state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    usize::try_from(*state >> 33).unwrap_or_default()
}

#[test]
fn mutated_definitions_are_read_or_refused_and_never_break_the_reader() {
    let pieces: Vec<&str> = RUN_TESTS
        .split_inclusive(['\n', ' ', ':', '"', '[', ']'])
        .chain([
            "&a ",
            "*a",
            "|",
            ">",
            "- ",
            "\t",
            "\u{feff}",
            "é",
            "{",
            "}",
            "$ref: '#'\n",
            "!!x ",
            "#",
            "\r",
        ])
        .collect();
    let mut state = 7;
    let mut whole = 0;
    for _ in 0..1_000 {
        let mut text: Vec<&str> = RUN_TESTS.split_inclusive([' ', '\n', ':']).collect();
        for _ in 0..=next(&mut state) % 4 {
            let at = next(&mut state) % text.len();
            match next(&mut state) % 3 {
                0 => drop(text.remove(at)),
                1 => text.insert(at, pieces[next(&mut state) % pieces.len()]),
                _ => text[at] = pieces[next(&mut state) % pieces.len()],
            }
        }
        match read(&text.concat()) {
            Ok(tool) => {
                whole += 1;
                assert_eq!(tool.name.as_str(), "run_tests");
            }
            Err(findings) => assert!(!findings.is_empty()),
        }
    }
    assert!(whole > 0, "some mutations are harmless");
}

/// Words that the draft of our own schemas does not know, or knows otherwise.
const NEWER: &[&str] = &[
    "$anchor",
    "$defs",
    "$dynamicRef",
    "dependentRequired",
    "dependentSchemas",
    "maxContains",
    "minContains",
    "prefixItems",
    "unevaluatedItems",
    "unevaluatedProperties",
];

fn holds_newer(value: &serde_json::Value) -> bool {
    match value {
        serde_json::Value::Object(all) => {
            all.iter().any(|(key, inner)| NEWER.contains(&key.as_str()) || holds_newer(inner))
        }
        serde_json::Value::Array(all) => all.iter().any(holds_newer),
        _ => false,
    }
}

#[test]
fn our_own_schemas_stand_what_others_have_to() {
    for tool in crate::tool::builtin::ALL {
        let definition = built_in(tool).unwrap();
        let schemas = [
            (Role::Arguments, Some(&definition.schema)),
            (Role::Result, definition.returns.as_ref()),
        ];
        for (role, schema) in schemas {
            let Some(schema) = schema else { continue };
            let mut report = Report::new(tool.name, "");
            let spans = Spans::all_at(At::default());
            let compiled = Schema::compile(schema.json().clone(), role, &spans, &mut report);
            assert!(compiled.is_some_and(|it| it.json() == schema.json()), "{}", tool.name);
            assert!(report.is_clean(), "{}", tool.name);
            assert!(!holds_newer(schema.json()), "{}", tool.name);
        }
    }
}
