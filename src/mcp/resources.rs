//! What a client can read: the policy, its own records, sources of tools; and the prompt about working here.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::sync::Arc;

use rmcp::model::{Resource, ResourceTemplate};
use runner_policy::limits::Limit;
use runner_policy::model::{Rule, Verdict};
use serde_json::json;

use super::command::beside;
use super::host::Host;
use super::registry;
use super::who::Who;
use crate::audit::{Filter, Ledger};
use crate::call::CallError;
use crate::policy_files::Loaded;
use crate::store::Store;

/// The policy in words.
pub const POLICY: &str = "runner://policy";
/// The caller's own last calls.
pub const RECORDS: &str = "runner://records";
/// What is before the name of a tool.
pub const TOOL: &str = "runner://tools/";

/// The name of the prompt.
pub const PROMPT: &str = "how_to_work_here";
/// What the prompt is about.
pub const PROMPT_ABOUT: &str =
    "What the policy of this workspace allows, and how to work within it";

/// Calls among which those of a client are looked for.
const LOOKED_AT: usize = 2_000;
/// Rules of one kind that the prompt names.
const RULES: usize = 60;

/// The resources that are always there.
pub fn resources() -> Vec<Resource> {
    vec![
        Resource::new(POLICY, "policy")
            .with_title("The policy in force")
            .with_description("Every rule, file pattern and limit that decides what runs here.")
            .with_mime_type("text/plain"),
        Resource::new(RECORDS, "records")
            .with_title("Your last calls")
            .with_description("What this client ran here, with decisions and outcomes.")
            .with_mime_type("application/json"),
    ]
}

/// The form of the addresses of tools.
pub fn templates() -> Vec<ResourceTemplate> {
    vec![
        ResourceTemplate::new("runner://tools/{name}", "tool source")
            .with_description("The source of a tool, by its name.")
            .with_mime_type("text/plain"),
    ]
}

/// The text of a resource and its type; `None` if there is no such resource.
pub(super) async fn read(
    host: &Arc<Host>,
    who: &Who,
    uri: &str,
) -> Result<Option<(String, &'static str)>, CallError> {
    if let Some(name) = uri.strip_prefix(TOOL) {
        let Ok(name) = name.parse() else { return Ok(None) };
        return Ok(registry::source(host, name).await?.map(|text| (text, "text/plain")));
    }
    let shared = Arc::clone(host);
    match uri {
        POLICY => {
            let text = beside("read the policy", move || {
                Ok((shared.settings.words.policy)(&shared.policy()?))
            });
            Ok(Some((text.await?, "text/plain")))
        }
        RECORDS => {
            let own: BTreeSet<String> = host.history.of(who.owner()).into_iter().collect();
            let text = beside("read records", move || {
                let store = Store::open(shared.places().state.as_deref())?;
                let filter = Filter { most: Some(LOOKED_AT), ..Filter::default() };
                let calls =
                    if own.is_empty() { Vec::new() } else { Ledger::new(store).list(&filter)? };
                let calls: Vec<_> =
                    calls.into_iter().filter(|call| own.contains(&call.call)).collect();
                Ok(json!({ "calls": calls }).to_string())
            });
            Ok(Some((text.await?, "application/json")))
        }
        _ => Ok(None),
    }
}

/// What the policy allows, for a model.
pub(super) async fn prompt(host: &Arc<Host>) -> Result<String, CallError> {
    let host = Arc::clone(host);
    beside("read the policy", move || Ok(how_to_work(&host, &host.policy()?))).await
}

/// In two or three sentences, for clients that show instructions to their model.
pub fn instructions(host: &Host) -> String {
    let root = host.root.display();
    format!(
        "runner runs commands and tools in fresh sandboxes for the workspace {root}, under a policy. Use run_command for shell lines. A refusal names the rule and what is allowed instead: change the command, do not repeat it. The prompt {PROMPT} and the resource {POLICY} say what is allowed."
    )
}

fn how_to_work(host: &Host, loaded: &Loaded) -> String {
    let policy = &loaded.policy;
    let mut text = format!(
        "Commands in {} run through runner, under the policy `{}`. Each call gets a fresh sandbox: nothing but changes in the workspace stays, and each call starts in {}.\n",
        host.root.display(),
        policy.name(),
        host.cwd.display(),
    );
    if let Some(about) = policy.layers.first().and_then(|own| own.description.as_ref()) {
        let _ = writeln!(text, "About the policy: {about}");
    }
    let rules: Vec<&Rule> = policy.layers.iter().flat_map(|layer| &layer.commands).collect();
    for (verb, title) in [
        (Verdict::Allow, "These commands run"),
        (Verdict::Ask, "These need a person's approval"),
        (Verdict::Deny, "These never run"),
    ] {
        let of_verb: Vec<&&Rule> = rules.iter().filter(|rule| rule.verb == verb).collect();
        if of_verb.is_empty() {
            continue;
        }
        let _ = writeln!(text, "\n{title}:");
        for rule in of_verb.iter().take(RULES) {
            let effects: Vec<&str> =
                rule.effects.iter().map(runner_policy::effect::Class::word).collect();
            let effects = match verb {
                Verdict::Allow => format!(" (may {})", effects.join(", ")),
                Verdict::Ask | Verdict::Deny => String::new(),
            };
            let reason = rule.reason.as_ref().map(|it| format!(" {it}")).unwrap_or_default();
            let _ = writeln!(text, "- {}{effects}{reason}", rule.text);
        }
        if of_verb.len() > RULES {
            let _ = writeln!(text, "- and {} more: read {POLICY}", of_verb.len() - RULES);
        }
    }
    let files = |pick: fn(&runner_policy::model::Policy) -> Vec<&str>| {
        let all: Vec<&str> = policy.layers.iter().flat_map(|layer| pick(layer)).collect();
        all.join(", ")
    };
    let write = files(|layer| patterns(&layer.files.write.patterns));
    let deny = files(|layer| patterns(&layer.files.deny.patterns));
    let _ = match write.is_empty() {
        true => writeln!(text, "\nNothing in the workspace can be written."),
        false => writeln!(text, "\nFiles that can be written: {write}"),
    };
    if !deny.is_empty() {
        let _ = writeln!(text, "Files that cannot be seen: {deny}. They read as empty.");
    }
    let net: Vec<&str> =
        policy.layers.iter().flat_map(|layer| &layer.net).map(|rule| rule.text.as_str()).collect();
    let _ = match net.is_empty() {
        true => writeln!(text, "There is no network."),
        false => writeln!(text, "Network rules: {}", net.join("; ")),
    };
    let limits = policy.limits(&[]);
    let shown: Vec<String> = [Limit::Wall, Limit::Memory, Limit::Pids]
        .into_iter()
        .map(|limit| format!("{} {}", limit.row().key, limit.row().unit.show(limits.get(limit))))
        .collect();
    let _ =
        writeln!(text, "Limits of a command, where its rule sets no others: {}.", shown.join(", "));
    text.push_str(
        "\nWhen a command is refused, read the line `allowed instead`, or call explain. Do not try to get around a rule. \
         When it needs approval, tell the user the command that the answer names, wait, and make the same call again. \
         A command that takes long is answered with an id: read_output reads on, cancel ends it.\n",
    );
    text
}

fn patterns<T>(patterns: &[(String, T)]) -> Vec<&str> {
    patterns.iter().map(|(text, _)| text.as_str()).collect()
}
