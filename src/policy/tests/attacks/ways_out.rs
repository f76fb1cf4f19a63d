//! What a refusal offers instead: every alternative is allowed, and no other policy goes around somebody's word.

use runner_policy::{
    Effective, Explanation, Network, Origin, PolicySet, Query, Source, Verdict, What,
};
use runner_policy::{explain, parse};

use super::{line, moment, policy};

const SHIPPED: [&str; 7] = [
    include_str!("../../../../policies/base.yml"),
    include_str!("../../../../policies/readonly.yml"),
    include_str!("../../../../policies/develop.yml"),
    include_str!("../../../../policies/edit.yml"),
    include_str!("../../../../policies/install.yml"),
    include_str!("../../../../policies/contained.yml"),
    include_str!("../../../../policies/paranoid.yml"),
];

/// Tables of lines, each for another purpose: what is refused in them by some policy is asked about here.
const TABLES: [&str; 13] = [
    include_str!("../catalog/archives.txt"),
    include_str!("../catalog/awk.txt"),
    include_str!("../catalog/change.txt"),
    include_str!("../catalog/conditions.txt"),
    include_str!("../catalog/files.txt"),
    include_str!("../catalog/git.txt"),
    include_str!("../catalog/kubectl.txt"),
    include_str!("../catalog/look.txt"),
    include_str!("../catalog/processes.txt"),
    include_str!("../catalog/system.txt"),
    include_str!("../catalog/toolchains.txt"),
    include_str!("../catalog/transfer.txt"),
    include_str!("../catalog/wrappers.txt"),
];
const DECISIONS: [&str; 5] = [
    include_str!("../../../../tests/cases/decisions/env.txt"),
    include_str!("../../../../tests/cases/decisions/lines.txt"),
    include_str!("../../../../tests/cases/decisions/options.txt"),
    include_str!("../../../../tests/cases/decisions/paths.txt"),
    include_str!("../../../../tests/cases/decisions/wrappers.txt"),
];

/// Every line of every table.
fn lines() -> Vec<&'static str> {
    let plain = |row: &&str| !row.trim().is_empty() && !row.starts_with('#');
    let read = TABLES.iter().flat_map(|table| table.lines().filter(plain));
    let read = read.filter_map(|row| row.split_once(" => ").map(|(line, _)| line.trim()));
    let decided = DECISIONS.iter().flat_map(|table| table.lines().filter(plain));
    let decided = decided.filter_map(|row| {
        let columns: Vec<&str> = row.splitn(5, '|').map(str::trim).collect();
        matches!(columns.get(3), Some(&"argv" | &"line")).then(|| columns[4])
    });
    read.chain(decided).collect()
}

fn shipped() -> Vec<Effective> {
    let mut set = PolicySet::default();
    for text in SHIPPED {
        set.add(parse(Source { file: "t.yml", text, origin: Origin::Shipped }).unwrap()).unwrap();
    }
    let names: Vec<String> = set.iter().map(|policy| policy.name.clone()).collect();
    names.iter().map(|name| set.effective(name).unwrap()).collect()
}

fn named<'p>(policies: &'p [Effective], name: &str) -> &'p Effective {
    policies.iter().find(|policy| policy.name() == name).unwrap()
}

fn explained(policy: &Effective, text: &str, others: &[Effective]) -> Explanation {
    let what = What::Line(text);
    explain(policy, &Query { workspace: "/w", cwd: "/w", now: moment(), what }, others)
}

/// Asks one policy about every line, and checks all that is offered. Tells how many were refused, and how many
/// alternatives there were.
fn offers(name: &str) -> (usize, usize) {
    let policies = shipped();
    let policy = named(&policies, name);
    let (mut refused, mut offered) = (0, 0);
    for text in lines() {
        let told = explained(policy, text, &policies);
        if told.decision.decision == Verdict::Allow {
            assert!(told.nearest.is_empty() && told.allowed_by.is_empty(), "{text}");
            continue;
        }
        refused += 1;
        for form in &told.nearest {
            offered += 1;
            let again = line(policy, form);
            assert_eq!(again.decision, Verdict::Allow, "{name}: {text}: {form}");
            assert_ne!(form, text);
        }
        for other in &told.allowed_by {
            let again = line(named(&policies, other), text);
            assert_eq!(again.decision, Verdict::Allow, "{text}: {other}");
            assert!(
                !again.reaches_out || again.grant.network == Network::Granted,
                "it gives no network: {text}"
            );
        }
    }
    (refused, offered)
}

/// One test a policy: the tables are large.
macro_rules! every_alternative_is_allowed {
    ($($policy:ident: $refused:literal.., $offered:expr;)*) => {
        mod every_alternative_is_allowed_by {
            $(#[test]
            fn $policy() {
                let (refused, offered) = super::offers(stringify!($policy));
                assert!(refused >= $refused, "{refused}");
                assert!(($offered).contains(&offered), "{offered}");
            })*
        }
    };
}

// How many each refuses and offers, roughly: the tables are about something. `base` allows nothing.
every_alternative_is_allowed! {
    base: 1500.., 0..=0;
    readonly: 800.., 150..=400;
    develop: 600.., 150..=400;
    edit: 50.., 10..=200;
    contained: 50.., 10..=100;
    paranoid: 1000.., 50..=200;
}

#[test]
fn an_alternative_is_the_same_command_with_less() {
    let policies = shipped();
    for (name, text, expected) in [
        ("readonly", "sort -r -o out a", &["sort -r a"][..]),
        ("readonly", "sed -i s/a/b/ a", &["sed s/a/b/ a"]),
        ("readonly", "find . -name x -delete", &["find . -name x"]),
        ("readonly", "find . -exec rm {} +", &["find ."]),
        ("readonly", "git -c core.pager=sh log", &["git log"]),
        ("readonly", "git log --output=x", &["git log"]),
        ("readonly", "rg --pre ./run x", &["rg x"]),
        ("readonly", "/usr/bin/sort a", &["sort a"]),
        ("readonly", "sudo ls", &["ls"]),
        ("contained", "timeout 5 sudo make install", &["timeout 5 make install"]),
        ("readonly", "env LD_PRELOAD=./x.so ls", &["ls"]),
        // Nothing close: another program, another deed, another file, or nothing to work on.
        ("readonly", "./sort a", &[]),
        ("readonly", "/tmp/cat a", &[]),
        ("readonly", "rm -rf /", &[]),
        ("readonly", "git --git-dir x", &[]),
        ("readonly", "curl -K conf", &[]),
        ("readonly", "rg --pr ./run x", &[]),
        ("readonly", "X=1 timeout 5 cat a", &[]),
        ("readonly", "cd src && sort -o x a", &[]),
        ("readonly", "git --git-dir x commit", &[]),
        ("readonly", "git branch -d old", &[]),
        ("readonly", "grep -f .env a", &[]),
        ("readonly", "date -s 2020-01-01", &[]),
        ("readonly", "npm install left-pad", &[]),
        ("develop", "npm install left-pad", &[]),
        ("develop", "npx -y some-mcp-server", &[]),
        ("develop", "tools/bin/server --port 1", &[]),
        ("edit", "curl https://example.org/", &[]),
        ("edit", "git push", &[]),
        ("contained", "sh -c 'ls /sys/kernel > .git/config'", &[]),
        ("contained", "cat .env", &[]),
        ("contained", "env -C / rm x", &[]),
        ("contained", "pip install -i https://example.org/ x", &[]),
        ("base", "git status", &[]),
    ] {
        let told = explained(named(&policies, name), text, &policies);
        assert_ne!(told.decision.decision, Verdict::Allow, "{name}: {text}");
        assert_eq!(told.nearest, expected, "{name}: {text}");
    }
}

#[test]
fn the_narrowest_policy_is_named_first() {
    let policies = shipped();
    for (name, text, expected) in [
        ("base", "ls", &["paranoid", "readonly", "develop", "edit", "install", "contained"][..]),
        ("paranoid", "git status", &["readonly", "develop", "edit", "install", "contained"]),
        ("readonly", "npm test", &["develop", "edit", "install", "contained"]),
        ("readonly", "rm -rf build", &["edit", "install", "contained"]),
        ("develop", "git commit -m x", &["edit", "install", "contained"]),
        ("develop", "./script.sh", &["edit", "install", "contained"]),
        ("edit", "nosuchprogram", &["contained"]),
        // Only a policy that gives it a network.
        ("readonly", "npm install", &["install"]),
        // No policy allows it, or it would only fail without a network.
        ("readonly", "cat .env", &[]),
        ("readonly", "sudo ls", &[]),
        ("readonly", "echo x > .git/config", &[]),
        ("readonly", "curl https://example.org/", &[]),
    ] {
        let told = explained(named(&policies, name), text, &policies);
        assert_eq!(told.allowed_by, expected, "{name}: {text}");
    }
}

/// A policy whose owner wants to be asked, and denies some things.
const OWNED: &str = r#"
policy: 1
name: owned
files: { read: ["**"], write: [".git/**"], deny: ["config/private/**"] }
commands:
  - { id: look, allow: catalog }
  - { id: commit, ask: "git commit ...", args: { option: ["!--no-verify"] } }
  - { id: never, deny: "make deploy ..." }
net:
  - { id: api, ask: "GET https://api.example/**" }
"#;

#[test]
fn no_policy_is_named_that_goes_around_an_ask_or_a_deny() {
    let (owned, policies) = (policy(&[OWNED]), shipped());
    let mut sure = 0;
    for text in [
        "git commit -m x",
        "git commit --no-verify -m x",
        "timeout 5 git commit -m x",
        "make test && git commit -m x",
        "sh -c 'git commit -m x'",
        "make deploy",
        "make all && make deploy",
        "cat config/private/a",
        "make all && cat config/private/a",
    ] {
        let told = explained(&owned, text, &policies);
        assert_ne!(told.decision.decision, Verdict::Allow, "{text}");
        assert_eq!(told.allowed_by, Vec::<String>::new(), "{text}");
        sure += usize::from(line(named(&policies, "contained"), text).decision == Verdict::Allow);
    }
    assert!(sure >= 6, "another policy would allow most of these: {sure}");
    // The control: what nobody asks about and nobody denies.
    assert_eq!(
        explained(&owned, "make test", &policies).allowed_by,
        ["develop", "edit", "install", "contained"]
    );
}

#[test]
fn a_reason_names_what_is_protected() {
    let policies = shipped();
    let contained = named(&policies, "contained");
    for text in [
        "git stash",
        "git stash pop",
        "git merge topic",
        "git switch main",
        "git fetch",
        "git pull",
        "git cherry-pick abc",
        "git commit -m x",
        "git bisect start",
        "git notes add -m x",
        "git update-ref refs/heads/x HEAD",
        "git rebase main",
        "git am x.patch",
        "git cherry-pick a b",
        "git worktree add sub/x",
    ] {
        let decision = line(contained, text);
        assert_eq!(decision.decision, Verdict::Allow, "{text}: {}", decision.message);
    }
    for (text, path) in [
        ("echo x > .git/rebase-merge/git-rebase-todo", ".git/rebase-merge/git-rebase-todo"),
        ("touch .git/sequencer/todo", ".git/sequencer/todo"),
        ("git config core.pager x", ".git/config"),
        ("git remote add x y", ".git/config"),
        ("git sparse-checkout set x", ".git/config.worktree"),
        ("rm -rf .git", ".git"),
    ] {
        let decision = line(contained, text);
        assert_eq!(decision.message, format!("{path} is never writable"), "{text}");
    }
}
