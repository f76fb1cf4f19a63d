//! Rules for an agent's own file tools, made from the policy.
//!
//! Duty: what `files.deny` keeps from commands is also denied to the agent's own tools that read and change files, where
//! the agent has rules for paths. Only Claude Code is given such rules. A pattern that cannot be written as a rule of the
//! agent is counted, not dropped silently; exceptions (`!`) have no form there, so the rule is stricter than the policy.

use std::path::Path;

use runner_policy::Effective;
use runner_policy::lists::FileList;

use super::error::AgentError;
use super::kind::Agent;
use super::place::Place;
use crate::call::Context;
use crate::config;
use crate::policy_files::{Choice, Places, Trust, load};
use crate::workspace::Workspace;

/// The rules of one agent.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Rules {
    /// What is denied, in the agent's own form.
    pub deny: Vec<String>,
    /// Patterns that have no such form.
    pub left_out: usize,
}

impl Rules {
    /// Those of a policy.
    #[must_use]
    pub fn of(agent: Agent, policy: &Effective, place: &Place) -> Self {
        let patterns = policy.patterns(FileList::Deny);
        Self::of_patterns(agent, &patterns, place)
    }

    fn of_patterns(agent: Agent, patterns: &[String], place: &Place) -> Self {
        let mut rules = Self::default();
        let denied = patterns.iter().filter(|pattern| !pattern.starts_with('!'));
        if agent != Agent::Claude {
            rules.left_out = denied.count();
            return rules;
        }
        // Whoever can read the key can write tickets.
        let own = format!("{}/**", place.folder.display());
        for pattern in denied.map(String::as_str).chain([own.as_str()]) {
            // What ends a rule cannot be written in one.
            if pattern.contains(['(', ')', '\n']) || pattern.chars().any(char::is_control) {
                rules.left_out += 1;
                continue;
            }
            // A path from the root has two slashes there; others are found from the folder of the session.
            let path = match pattern.strip_prefix('/') {
                Some(rest) => format!("//{rest}"),
                None => pattern.to_owned(),
            };
            for tool in ["Read", "Edit"] {
                let rule = format!("{tool}({path})");
                if !rules.deny.contains(&rule) {
                    rules.deny.push(rule);
                }
            }
        }
        rules
    }
}

/// The rules of the policy that a pin of this choice would have in the current folder.
///
/// # Errors
/// There is no such policy.
pub fn rules_of(
    agent: Agent,
    choice: Option<Choice>,
    place: &Place,
    context: &Context,
) -> Result<Rules, AgentError> {
    let environment = &context.environment;
    // Outside of any workspace, policies of the user and the machine are all there are.
    let workspace = Workspace::find(None, environment).ok();
    let root = workspace.as_ref().map(Workspace::root);
    let places = Places::of(environment, root);
    let config = config::load(&places)?;
    let choice = config.choice(&choice.unwrap_or_default(), root.unwrap_or(Path::new("/")));
    let loaded = load(&choice, &places, Trust::Required)?;
    Ok(Rules::of(agent, &loaded.policy, place))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn denied_paths_are_denied_to_file_tools_and_the_rest_is_counted() {
        let place =
            Place { home: "/h".into(), folder: "/h/agents".into(), managed: "/etc/r".into() };
        let patterns = ["**/.env", "!**/.env.example", "/etc/secret", "a(b)"].map(str::to_owned);
        let rules = Rules::of_patterns(Agent::Claude, &patterns, &place);
        assert_eq!(rules.left_out, 1);
        assert_eq!(
            rules.deny,
            [
                "Read(**/.env)",
                "Edit(**/.env)",
                "Read(//etc/secret)",
                "Edit(//etc/secret)",
                "Read(//h/agents/**)",
                "Edit(//h/agents/**)"
            ]
        );
        let none = Rules::of_patterns(Agent::Gemini, &patterns, &place);
        assert_eq!((none.deny.len(), none.left_out), (0, 3));
    }
}
