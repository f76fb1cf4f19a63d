//! Where commands copy, move and remove to: a destination is a file or a folder, and neither may be protected.

use runner_policy::{Origin, PolicySet, Source, check, parse};

const POLICY: &str = r#"
policy: 1
name: destinations
files:
  read: ["**"]
  write: ["**"]
  deny: ["**/.env"]
  readonly: ["Cargo.lock"]
commands:
  - { id: files, allow: catalog, effects: [read, write], reason: All but what is protected. }
tests:
  allow:
    - cp a b
    - cp -r a src
    - mv a src/b
    - rm -rf build
    - ln -s a b
    - install -m 644 a src
  deny:
    - cp a Cargo.lock
    - cp -t .git/hooks a
    - cp --target-directory=.git/hooks a
    - cp -at.vscode a
    - cp a .bashrc
    - mv a .git/config
    - mv Cargo.lock b
    - mv -t src Cargo.lock
    - rm -rf Cargo.lock
    - rm -rf .git
    - rm -r -- .env
    - ln -sf a .profile
    - ln .env b
    - ln Cargo.lock b
    - install a .git/hooks/pre-commit
    - install -m 4755 a b
    - install -s a b
    - tee -a .bashrc
    - touch Cargo.lock
    - truncate -s0 Cargo.lock
    - split a .git/hooks/p
    - cp -l Cargo.lock b
"#;

#[test]
fn protected_paths_are_no_destination() {
    let source = Source { file: "destinations.yml", text: POLICY, origin: Origin::Shipped };
    let mut set = PolicySet::default();
    set.add(parse(source).unwrap()).unwrap();
    let policy = set.effective("destinations").unwrap();
    let checked = check::check(&policy, POLICY, "2026-06-01T00:00:00Z".parse().unwrap());
    let shown: Vec<String> = checked.findings.iter().map(ToString::to_string).collect();
    assert!(shown.is_empty(), "\n{}", shown.join("\n"));
    assert_eq!(checked.ran, 28);
}
