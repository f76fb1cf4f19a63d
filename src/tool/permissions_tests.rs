//! Permissions take away and never give.

use jiff::Timestamp;
use runner_policy::effective::{Effective, PolicySet};
use runner_policy::load::{Origin, Source, parse};
use runner_policy::{Query, Verdict, What, decide, may};

use crate::ids::ToolName;
use crate::tool::{CommandsWrite, Definition, parse as tool};

fn policy(text: &str) -> Effective {
    let mut set = PolicySet::default();
    let source = Source { file: "p.yml", text, origin: Origin::User };
    set.add(parse(source).unwrap()).unwrap();
    set.effective("p").unwrap()
}

fn definition(lines: &str) -> Definition {
    let text = format!("name: t\ndescription: x\ncode: export const execute = 1\n{lines}\n");
    tool("t.yml", &text, &"t".parse::<ToolName>().unwrap()).unwrap()
}

const WIDE: &str = "policy: 1\nname: p\nfiles: {read: ['**', '/usr/**'], write: ['**'], deny: ['**/.env']}\ncommands:\n  - allow: catalog\n    effects: any\n  - allow: ['vitest ...', 'mytool ...']\n    effects: any\n  - id: blame\n    ask: 'git blame ...'\n  - id: never\n    deny: 'git clean ...'\nnet:\n  - allow: 'GET https://a.example/**'\nenv: {pass: [LANG, CI], accept: [CI, NODE_ENV]}\n";

const QUESTIONS: &[What<'static>] = &[
    What::Line("yarn test a b"),
    What::Line("yarn test:unit --x"),
    What::Line("yarn build"),
    What::Line("npm test -- --watch"),
    What::Line("git status"),
    What::Line("git --version"),
    What::Line("git push"),
    What::Line("git blame a"),
    What::Line("git clean -fd"),
    What::Line("vitest run"),
    What::Line("mytool x"),
    What::Line("rm -rf src"),
    What::Line("cat src/a .env"),
    What::Line("ls | sort"),
    What::Line("timeout 5 yarn test"),
    What::Line("yarn test && rm x"),
    What::Line("sh -c 'yarn test'"),
    What::Line("echo $(id)"),
    What::Line("CI=1 yarn test"),
    What::Line("LD_PRELOAD=x yarn test"),
    What::Read("src/a"),
    What::Read(".env"),
    What::Read("/usr/share/x"),
    What::Read("/etc/shadow"),
    What::Read("../x"),
    What::Write("out/a"),
    What::Write("src/a"),
    What::Write(".git/hooks/x"),
    What::Write("/tmp/x"),
    What::Net("GET https://a.example/x"),
    What::Net("POST https://a.example/x"),
    What::Net("GET https://b.example/"),
    What::Net("a.example:443"),
    What::Env("CI"),
    What::Env("NODE_ENV"),
    What::Env("PATH"),
];

const TOOLS: &[&str] = &[
    "",
    "permissions: {allowlist: ['yarn test*']}",
    "permissions: {allowlist: ['*']}",
    "permissions: {allowlist: ['git *', 'vitest*', 'catalog']}",
    "files: {read: ['src/**']}",
    "files: {write: ['out/**']}\npermissions: {allowlist: ['*']}",
    "files: {read: [], write: ['**']}",
    "net: ['GET https://a.example/**', 'POST https://b.example/**']",
    "net: ['connect a.example:443']",
    "env: [CI, PATH]",
    "env: ['*']\nlimits: {memory: 64MiB}\ntimeout: 1s",
    "permissions: {allowlist: ['sh *', 'rm *', 'echo *']}\nfiles: {write: ['**']}\nnet: ['GET https://*.example/**']\nenv: ['*']",
];

const POLICIES: &[&str] = &[
    WIDE,
    "policy: 1\nname: p\n",
    "policy: 1\nname: p\nfiles: {read: ['src/**']}\ncommands:\n  - allow: catalog\n",
    "policy: 1\nname: p\nmode: observe\nuntil: 2099-01-01\nfiles: {read: ['**']}\ncommands:\n  - allow: 'yarn test ...'\n    effects: any\n",
];

fn ask(policy: &Effective, what: What<'static>) -> runner_policy::Decision {
    decide(policy, &Query { workspace: "/w", cwd: "/w", now: Timestamp::UNIX_EPOCH, what })
}

#[test]
fn a_narrowed_policy_never_allows_what_the_policy_does_not() {
    for text in POLICIES {
        let wide = policy(text);
        for lines in TOOLS {
            let narrow = definition(lines).permissions.narrow(&wide);
            assert_ne!(wide.digest, narrow.digest, "{lines}");
            for what in QUESTIONS {
                let (before, after) = (ask(&wide, *what), ask(&narrow, *what));
                assert!(after.decision >= before.decision, "{lines} {what:?}: {after:?}");
                let (own, given) = (before.grant, after.grant);
                assert_eq!(
                    own.classes.intersection(given.classes),
                    given.classes,
                    "{lines} {what:?}"
                );
                assert_eq!(own.limits.tightest(&given.limits), given.limits, "{lines} {what:?}");
            }
            for path in
                ["/w/src/a", "/w/.env", "/w/out/x", "/usr/x", "/etc/passwd", "/w/.git/config"]
            {
                for write in [false, true] {
                    let (before, after) =
                        (may(&wide, "/w", path, write), may(&narrow, "/w", path, write));
                    assert!(before || !after, "{lines} {path}");
                }
            }
            let passed = narrow.env_pass();
            assert!(passed.iter().all(|name| wide.env_pass().contains(name)), "{lines}");
        }
    }
}

fn verdict(lines: &str, what: What<'static>) -> Verdict {
    ask(&definition(lines).permissions.narrow(&policy(WIDE)), what).decision
}

#[test]
fn what_a_tool_leaves_out_it_does_not_get() {
    for what in [
        What::Line("ls"),
        What::Line("yarn test"),
        What::Write("out/a"),
        What::Net("GET https://a.example/x"),
        What::Env("CI"),
    ] {
        assert_eq!(verdict("", what), Verdict::Deny, "{what:?}");
    }
    // But it reads whatever the policy lets read, in the workspace and in the image.
    assert_eq!(verdict("", What::Read("src/a")), Verdict::Allow);
    assert_eq!(verdict("", What::Read("/usr/share/x")), Verdict::Allow);
    assert_eq!(verdict("", What::Read(".env")), Verdict::Deny);
}

#[test]
fn a_star_at_the_end_covers_further_words() {
    let yarn = "permissions: {allowlist: ['yarn test*']}";
    for (line, expected) in [
        ("yarn test", Verdict::Allow),
        ("yarn test a --b", Verdict::Allow),
        ("yarn test:unit x", Verdict::Allow),
        ("timeout 5 yarn test", Verdict::Allow),
        ("yarn build", Verdict::Deny),
        ("yarn", Verdict::Deny),
        ("yarn tes", Verdict::Deny),
        ("npm test", Verdict::Deny),
        ("./yarn test", Verdict::Deny),
        ("yarn test; ls", Verdict::Deny),
    ] {
        assert_eq!(verdict(yarn, What::Line(line)), expected, "{line}");
    }
    let git = "permissions: {allowlist: ['git *']}";
    for (line, expected) in [
        ("git status", Verdict::Allow),
        ("git log --oneline -n 3", Verdict::Allow),
        ("git --version", Verdict::Allow),
        ("git -C . status", Verdict::Allow),
        ("git blame a", Verdict::Ask),
        ("git push", Verdict::Deny),
        ("git clean -fd", Verdict::Deny),
        ("gitk", Verdict::Deny),
    ] {
        assert_eq!(verdict(git, What::Line(line)), expected, "{line}");
    }
    let exact = "permissions: {allowlist: ['git status', 'vitest run ...']}";
    for (line, expected) in [
        ("git status", Verdict::Allow),
        ("git status --short", Verdict::Deny),
        ("vitest run a", Verdict::Allow),
        ("vitest watch", Verdict::Deny),
    ] {
        assert_eq!(verdict(exact, What::Line(line)), expected, "{line}");
    }
    let all = "permissions: {allowlist: ['*']}";
    assert_eq!(verdict(all, What::Line("ls -la")), Verdict::Allow);
    assert_eq!(verdict(all, What::Line("unknown-program")), Verdict::Deny);
    // The policy's one reserved word means a program here.
    assert_eq!(verdict("permissions: {allowlist: [catalog]}", What::Line("ls")), Verdict::Deny);
}

#[test]
fn limits_are_the_tighter_of_both() {
    use runner_policy::limits::{Isolation, Limit, Limits};
    let wide = policy(WIDE);
    let figures = |lines: &str| definition(lines).permissions.narrow(&wide).tightest_limits();
    assert_eq!(figures(""), Limits::preset(Isolation::Strict));
    let tight = figures("limits: {memory: 64MiB, pids: 4096}\ntimeout: 2s");
    assert_eq!((tight.get(Limit::Memory), tight.get(Limit::Pids)), (64 << 20, 128));
    assert_eq!(tight.get(Limit::Wall), 2_000);
    let tool = definition("permissions: {allowlist: ['*']}\ntimeout: 2s");
    let decision = ask(&tool.permissions.narrow(&wide), What::Line("ls"));
    assert_eq!(decision.grant.limits.get(Limit::Wall), 2_000);
}

#[test]
fn a_refusal_names_the_tool_and_its_line() {
    let tool =
        definition("permissions:\n  allowlist:\n    - 'git status'\nfiles:\n  write: ['out/**']");
    let narrow = tool.permissions.narrow(&policy(WIDE));
    let denied = ask(&narrow, What::Line("ls"));
    assert!(denied.message.contains("tool:t"), "{}", denied.message);
    let allowed = tool.permissions.policy();
    assert_eq!((allowed.commands[0].at.line, allowed.file.as_str()), (6, "t.yml"));
    assert_eq!(allowed.files.write.patterns[0].1.line, 8);
    assert_eq!(denied.policy, "p");
}

#[test]
fn a_pattern_in_which_something_cannot_be_seen_is_a_finding() {
    let found = |lines: &str| -> Vec<String> {
        let text = format!("name: t\ndescription: x\ncode: export const execute = 1\n{lines}\n");
        let refused = tool("t.yml", &text, &"t".parse::<ToolName>().unwrap()).unwrap_err();
        refused.iter().map(|finding| format!("{}:{}", finding.at.line, finding.code)).collect()
    };
    for lines in [
        "permissions:\n  allowlist: ['yarn test ']",
        "permissions:\n  allowlist:\n    - |\n      yarn test",
        "permissions:\n  allowlist: [\"yarn\\u200b test\"]",
        "files:\n  read: ['src/** ']",
        "files:\n  write: |\n    out/**",
        "net: [\"GET https://a.example/x\\n\"]",
        "env: ['CI ']",
    ] {
        let found = found(lines);
        assert!(
            matches!(found.as_slice(), [one] if one.ends_with(":bad_pattern")),
            "{lines}: {found:?}"
        );
    }
    definition("permissions:\n  allowlist: ['yarn test']\nfiles:\n  read: ['src/**']");
}

#[test]
fn commands_of_a_tool_that_says_nothing_of_writing_write_what_the_policy_lets_them() {
    let wide = policy(&WIDE.replace("write: ['**']", "write: ['out/**']"));
    let lists = "permissions: {allowlist: ['sort*', 'git *']}";
    let open = definition(lists).permissions;
    assert_eq!(open.commands_write, CommandsWrite::AsThePolicy);
    let verdict = |policy: &Effective, what| ask(policy, what).decision;
    let (own, commands) = (open.narrow(&wide), open.narrow_commands(&wide));
    // The tool itself writes nothing, whatever its commands do.
    assert_eq!(verdict(&own, What::Write("out/a")), Verdict::Deny);
    assert_eq!(verdict(&own, What::Line("sort -o out/a b")), Verdict::Deny);
    assert_eq!(verdict(&commands, What::Line("sort -o out/a b")), Verdict::Allow);
    assert_ne!(own.digest, commands.digest);
    for denied in [
        "sort -o src/a b",
        "sort -o out/.env b",
        "sort -o out/.git/hooks/x b",
        "cp b out/a",
        "git clean -fd",
    ] {
        assert_eq!(verdict(&commands, What::Line(denied)), Verdict::Deny, "{denied}");
    }
    assert!(!open.has_read_only_commands(&wide));
    assert!(open.has_read_only_commands(&policy(&WIDE.replace("write: ['**']", "write: []"))));
    // A list of its own holds for its commands too, also an empty one.
    for (files, allowed) in [("[]", Verdict::Deny), ("['out/**']", Verdict::Allow)] {
        let own = definition(&format!("{lists}\nfiles: {{write: {files}}}")).permissions;
        assert_eq!(own.commands_write, CommandsWrite::AsTheTool);
        let commands = own.narrow_commands(&wide);
        assert_eq!(verdict(&commands, What::Line("sort -o out/a b")), allowed, "{files}");
        assert_eq!(verdict(&commands, What::Line("sort -o src/a b")), Verdict::Deny, "{files}");
        assert_eq!(own.has_read_only_commands(&wide), allowed == Verdict::Deny);
    }
    // Without commands there is nothing to say.
    assert!(!definition("").permissions.has_read_only_commands(&wide));
}
