//! Members of a tool that nothing reads: each is a finding, so the tool does not run.
//!
//! Duty: a member that is ignored may be a safeguard in which the author trusts, such as `preconditions` or a mistyped
//! `timeout`. YAML keys and members of modules have the same answer. What counts as a member of a module is decided by
//! the runtime (`images/runtime/members.mjs`), which lists what it does not read:
//!
//! | unread | answer |
//! | --- | --- |
//! | a member that tools may have one day ([`NOT_BUILT`]) | `not_supported`: remove it |
//! | a function in data, an instance of a class, a hook that is no function | `wrong_type` |
//! | a function whose name is close to that of a hook | `unknown_key`: did you mean it? |
//! | any other function | a helper of the author's, allowed |
//! | anything else | `unknown_key` |

use runner_policy::finding::{At, Report, did_you_mean};
use runner_policy::yaml::Entry;
use serde_json::Value;

/// Members that the interface of tools defines and that this version does not have. Spelled as [`plain`] has them.
const NOT_BUILT: &[&str] = &[
    "preconditions",
    "effects",
    "dependencies",
    "composition",
    "aggregationstrategy",
    "implementation",
    "configuration",
    "performance",
    "resourcerequirements",
    "serverconfig",
    "endpointconfig",
    "apispecification",
    "securityconfig",
    "ratelimit",
    "executionhints",
    "examples",
    "contextaware",
    "shouldretry",
];

/// Members that have another name or place, and what to write.
const ELSEWHERE: &[(&str, &str)] = &[
    ("inputschema", "a module has `parameters`, a YAML file `schema`"),
    ("outputschema", "a module has `returnType`, a YAML file `returns`"),
    ("parameters", "a YAML file has `schema`"),
    ("returntype", "a YAML file has `returns`"),
    ("schema", "a module has `parameters`"),
    ("returns", "a module has `returnType`"),
    (
        "requiresconfirmation",
        "write it in a capability: `capabilities: [{ action, description, requiresConfirmation: true }]`",
    ),
    ("autoaccept", "write it in `permissions`"),
    ("risklevel", "write it in `permissions`"),
    ("allowlist", "write it in `permissions`"),
    ("retrypolicy", "write `retry`"),
    ("maxretries", "write it in `retry`"),
    ("maxattempts", "write it in `retry`"),
];

/// Functions that the runtime calls.
const CALLED: &[&str] =
    &["execute", "initialize", "validate", "handleError", "cleanup", "healthCheck"];

/// Changes of letters by which the name of a helper has to differ from that of a hook.
const HELPER_DISTANCE: usize = 3;
/// Longest name that is compared with those of hooks.
const MAX_NAME: usize = 64;
/// Most members that are looked at; the runtime tells fewer.
const MAX_UNREAD: usize = 100;

/// A name without case and underscores: `requires_confirmation` is `requiresConfirmation`.
fn plain(name: &str) -> String {
    name.chars().filter(|c| *c != '_').flat_map(char::to_lowercase).collect()
}

/// Refuses a key or member that is not known here.
pub(super) fn unknown(entry: &Entry, known: &[&'static str], report: &mut Report<'_>) {
    let word = plain(&entry.key);
    if NOT_BUILT.contains(&word.as_str()) {
        not_supported(&entry.key, entry.at, report);
        return;
    }
    let help = match (did_you_mean(&entry.key, known.iter().copied()), elsewhere(&word)) {
        (Some(close), _) if plain(close) == word => format!("did you mean `{close}`?"),
        (_, Some(help)) => help.to_owned(),
        (Some(close), None) => format!("did you mean `{close}`?"),
        (None, None) => format!("known here: {}", known.join(", ")),
    };
    report.add("unknown_key", entry.at, format!("unknown key `{}`", entry.key), help);
}

fn elsewhere(word: &str) -> Option<&'static str> {
    ELSEWHERE.iter().find(|(name, _)| *name == word).map(|(_, help)| *help)
}

fn not_supported(name: &str, at: At, report: &mut Report<'_>) {
    let message = format!("`{name}` is defined but not supported yet");
    report.add("not_supported", at, message, "remove it: it would have no effect".to_owned());
}

/// Refuses what a module has and nothing reads, as its runtime told it. `place` finds a name in the module.
pub(super) fn unread(
    told: &Value,
    known: &[&'static str],
    place: impl Fn(&str) -> At,
    report: &mut Report<'_>,
) {
    let members = told.as_array().filter(|members| members.len() <= MAX_UNREAD);
    let members =
        members.and_then(|members| members.iter().map(member).collect::<Option<Vec<_>>>());
    let Some(members) = members else {
        report.add("wrong_type", At::default(), "`unread` is a list of members", None);
        return;
    };
    for (path, is) in members {
        match path.as_slice() {
            [name] => top(name, is, known, place(name), report),
            [.., last] => inner(&path, last, is, place(last), report),
            [] => report.add("wrong_type", At::default(), "a member without a name", None),
        }
    }
}

fn member(told: &Value) -> Option<(Vec<&str>, &str)> {
    let path = told.get("path")?.as_array()?;
    let path = path.iter().map(Value::as_str).collect::<Option<_>>()?;
    Some((path, told.get("is")?.as_str()?))
}

/// A member of the tool itself.
fn top(name: &str, is: &str, known: &[&'static str], at: At, report: &mut Report<'_>) {
    let word = plain(name);
    if CALLED.contains(&name) {
        report.add("wrong_type", at, format!("`{name}` is a function, not {}", shown(is)), None);
        return;
    }
    if known.contains(&name) {
        let help = "write plain data".to_owned();
        report.add("wrong_type", at, format!("`{name}` cannot be {}", shown(is)), help);
        return;
    }
    let reserved = NOT_BUILT.contains(&word.as_str()) || elsewhere(&word).is_some();
    if is == "function" && !reserved {
        let close =
            |called: &&&str| strsim::damerau_levenshtein(&word, &plain(called)) < HELPER_DISTANCE;
        if let Some(close) = CALLED.iter().filter(|_| word.len() <= MAX_NAME).find(close) {
            let help = format!("did you mean `{close}`? a helper needs a name of its own");
            report.add("unknown_key", at, format!("unknown function `{name}`"), help);
        }
        return;
    }
    let value = runner_policy::yaml::Value::List(Vec::new());
    let value = runner_policy::yaml::Node { at, value };
    let names: Vec<&'static str> = known.iter().chain(CALLED).copied().collect();
    unknown(&Entry { key: name.to_owned(), at, value }, &names, report);
}

/// Something in the data of a member.
fn inner(path: &[&str], last: &str, is: &str, at: At, report: &mut Report<'_>) {
    let whole = path.join(".");
    if NOT_BUILT.contains(&plain(last).as_str()) {
        not_supported(&whole, at, report);
        return;
    }
    let help = "write plain data: nothing would call or read it here".to_owned();
    report.add("wrong_type", at, format!("`{whole}` cannot be {}", shown(is)), help);
}

/// A type as a sentence has it.
fn shown(is: &str) -> String {
    match is {
        "null" | "undefined" => is.to_owned(),
        "array" | "object" | "accessor" => format!("an {is}"),
        "instance" => "an instance of a class".to_owned(),
        "string" => "a text".to_owned(),
        "function" | "symbol" | "bigint" | "number" | "boolean" => format!("a {is}"),
        other => format!("`{other}`"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    const KNOWN: &[&str] = &["timeout", "retry", "permissions", "capabilities"];

    /// The findings on these members, each as `code message; help`.
    fn told(members: &Value) -> Vec<String> {
        let mut report = Report::new("m.tool.ts", "");
        unread(members, KNOWN, |_| At::default(), &mut report);
        let line = |code, message: &str, help: Option<&str>| {
            format!("{code}: {message}; {}", help.unwrap_or_default())
        };
        let findings = report.finish();
        findings.iter().map(|it| line(it.code, &it.message, it.help.as_deref())).collect()
    }

    fn one(path: &[&str], is: &str) -> String {
        told(&json!([{ "path": path, "is": is }])).pop().unwrap_or_default()
    }

    #[test]
    fn what_nothing_reads_is_refused_by_name() {
        for (name, is) in [("preconditions", "array"), ("effects", "function")] {
            assert!(one(&[name], is).starts_with(&format!("not_supported: `{name}`")), "{name}");
        }
        assert!(one(&["shouldRetry"], "function").starts_with("not_supported: `shouldRetry`"));
        assert!(one(&["retry", "shouldRetry"], "function").contains("`retry.shouldRetry`"));
        let typo = one(&["timout"], "number");
        assert_eq!(typo, "unknown_key: unknown key `timout`; did you mean `timeout`?");
        for name in ["requiresConfirmation", "requires_confirmation"] {
            assert!(one(&[name], "boolean").contains("write it in a capability"), "{name}");
            assert!(one(&[name], "function").contains("write it in a capability"), "{name}");
        }
        assert!(one(&["schema"], "object").contains("`parameters`"));
        assert!(one(&["state"], "number").starts_with("unknown_key: unknown key `state`; known"));
        assert!(one(&["validate"], "boolean").starts_with("wrong_type: `validate` is a function"));
        assert!(one(&["permissions"], "instance").starts_with("wrong_type: `permissions` cannot"));
        let inner = one(&["permissions", "check"], "function");
        assert!(inner.starts_with("wrong_type: `permissions.check` cannot be a function"));
    }

    #[test]
    fn helpers_are_free_unless_a_hook_may_be_meant() {
        for name in ["validateProject", "waitForDeployment", "read", "run", "evaluate", "answer"] {
            assert_eq!(one(&[name], "function"), "", "{name}");
        }
        for (name, hook) in [
            ("valdiate", "validate"),
            ("cleanUp", "cleanup"),
            ("healthcheck", "healthCheck"),
            ("health_check", "healthCheck"),
            ("initialise", "initialize"),
            ("excute", "execute"),
        ] {
            assert!(one(&[name], "function").contains(&format!("`{hook}`?")), "{name}");
        }
    }

    #[test]
    fn a_list_that_cannot_be_read_is_refused() {
        for bad in
            [json!(1), json!([1]), json!([{ "path": ["a"] }]), json!([{ "path": [], "is": "" }])]
        {
            assert_eq!(told(&bad).len(), 1, "{bad}");
        }
        let many = vec![json!({ "path": ["a"], "is": "function" }); MAX_UNREAD + 1];
        assert_eq!(told(&json!(many)).len(), 1);
    }
}
