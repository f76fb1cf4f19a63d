//! What a tool asks for beside what a policy would say of it: an example of each entry is put to the policy.
//!
//! It is advice. An entry is a pattern and a policy has conditions, so the answer for one example need not hold
//! for all; whatever really happens is decided request by request.

use jiff::Timestamp;
use runner_glob::{Braces, Grammar};
use runner_policy::decide::{Decision, Query, What, decide};
use runner_policy::effective::Effective;
use serde::Serialize;

use super::permissions::Permissions;

/// One entry, and what the policy says.
#[derive(Debug, Serialize)]
pub struct Asked {
    /// `read`, `write`, `run`, `reach`, `variable`.
    pub kind: &'static str,
    /// The entry as written.
    pub entry: String,
    /// The example.
    pub example: String,
    /// The policy's answer.
    pub decision: Decision,
}

/// Puts every entry to the policy.
#[must_use]
pub fn asked(
    permissions: &Permissions,
    policy: &Effective,
    workspace: &str,
    now: Timestamp,
) -> Vec<Asked> {
    let question = |what: What<'_>| decide(policy, &Query { workspace, cwd: workspace, now, what });
    let mut answers = Vec::new();
    let mut add =
        |kind, entry: &String, example: Option<String>, decision: &dyn Fn(&str) -> Decision| {
            if let Some(example) = example {
                let decision = decision(&example);
                answers.push(Asked { kind, entry: entry.clone(), example, decision });
            }
        };
    for entry in permissions.read.iter().flatten() {
        add("read", entry, path(entry), &|text| question(What::Read(text)));
    }
    for entry in &permissions.write {
        add("write", entry, path(entry), &|text| question(What::Write(text)));
    }
    for entry in &permissions.allowlist {
        add("run", entry, command(entry), &|text| {
            let words: Vec<String> = text.split(' ').map(str::to_owned).collect();
            question(What::Argv(&words))
        });
    }
    for entry in &permissions.net {
        add("reach", entry, peer(entry), &|text| question(What::Net(text)));
    }
    for entry in &permissions.env {
        add("variable", entry, Some(entry.replace('*', "X")), &|text| question(What::Env(text)));
    }
    answers
}

/// The first of alternatives in braces; nothing for what no policy would load.
fn first_choice(text: &str, grammar: Grammar) -> Option<String> {
    Braces::parse(text, grammar).ok().map(|braces| braces.first())
}

/// A path that a pattern means; nothing for one that only takes away.
fn path(pattern: &str) -> Option<String> {
    if pattern.starts_with('!') || pattern.contains(['[', '\\']) {
        return None;
    }
    let text = first_choice(pattern, Grammar::Path)?;
    Some(text.replace("**", "x").replace(['*', '?'], "x"))
}

/// A command that an entry means; nothing for one that names no program.
fn command(entry: &str) -> Option<String> {
    let text = first_choice(entry, Grammar::Command)?.replace("...", "").replace('*', "");
    let words: Vec<&str> = text.split_whitespace().collect();
    (!words.is_empty()).then(|| words.join(" "))
}

/// A request that an entry means.
fn peer(entry: &str) -> Option<String> {
    let (verb, target) = entry.split_once(' ')?;
    let target = first_choice(target, Grammar::Path)?.replace("**", "x").replace('*', "x");
    if verb == "connect" {
        return Some(target);
    }
    Some(format!("{} {target}", verb.split(',').next().unwrap_or(verb)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn examples_are_what_the_entries_mean() {
        assert_eq!(path("build/**"), Some("build/x".to_owned()));
        assert_eq!(path("src/{a,b}/*.ts"), Some("src/a/x.ts".to_owned()));
        assert_eq!(path("!**/x"), None);
        assert_eq!(command("yarn test*"), Some("yarn test".to_owned()));
        assert_eq!(command("cargo {build,test} ..."), Some("cargo build".to_owned()));
        assert_eq!(command("*"), None);
        assert_eq!(
            peer("GET,HEAD https://*.a.example/v1/**"),
            Some("GET https://x.a.example/v1/x".to_owned())
        );
        assert_eq!(peer("connect a.example:443"), Some("a.example:443".to_owned()));
    }

    #[test]
    fn every_entry_is_put_to_the_policy() {
        let policies = crate::policy_files::shipped();
        let readonly = policies.iter().find(|policy| policy.name() == "readonly").unwrap();
        let text = "name: t\ndescription: x\nfiles: {read: ['src/**'], write: ['out/**']}\nnet: ['GET https://a.example/**']\nenv: [CI]\npermissions: {allowlist: ['git log*', 'npm test*', '*']}\ncode: export const a = 1\n";
        let tool = crate::tool::parse("t.yml", text, &"t".parse().unwrap()).unwrap();
        let answers = asked(&tool.permissions, readonly, "/w", Timestamp::UNIX_EPOCH);
        let words: Vec<_> =
            answers.iter().map(|it| (it.entry.as_str(), it.decision.decision.word())).collect();
        assert_eq!(
            words,
            [
                ("src/**", "allow"),
                ("out/**", "deny"),
                ("git log*", "allow"),
                ("npm test*", "deny"),
                ("GET https://a.example/**", "deny"),
                ("CI", "allow")
            ]
        );
    }
}
