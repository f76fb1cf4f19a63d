//! A set of policies by name: following `extends` and `within`, in bounds and never in a circle.

use std::sync::Arc;

use super::composed::Effective;
use crate::finding::{At, Finding};
use crate::model::Policy;

/// Policies by name, as far as they were loaded.
#[derive(Debug, Default, Clone)]
pub struct PolicySet {
    policies: Vec<Arc<Policy>>,
}

/// Longest chain of `extends` and `within`.
const MAX_CHAIN: usize = 32;

/// What is known while names are followed.
#[derive(Debug, Default)]
struct Walk {
    /// The way to the policy that is looked at.
    chain: Vec<String>,
    /// Policies that were looked at, with the length of the chain below each.
    done: Vec<(String, usize)>,
    /// Whether a chain that is too long was reported.
    too_deep: bool,
}

fn named_within(layers: &[(Arc<Policy>, usize)]) -> impl Iterator<Item = String> {
    layers.iter().flat_map(|(layer, _)| &layer.within).map(|(name, _)| name.clone())
}

impl PolicySet {
    /// Adds a policy; a name stands once.
    ///
    /// # Errors
    /// The name is taken.
    #[expect(clippy::result_large_err, reason = "one finding for one policy")]
    pub fn add(&mut self, policy: Policy) -> Result<(), Finding> {
        if let Some(first) = self.get(&policy.name) {
            return Err(finding(
                &policy,
                At { line: 1, column: 1, width: 1 },
                "duplicate_name",
                format!("`{}` is also the name of {}", policy.name, first.file),
                Some("give it a name of its own".to_owned()),
            ));
        }
        self.policies.push(Arc::new(policy));
        Ok(())
    }

    /// The policy of this name.
    #[must_use]
    pub fn get(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.iter().find(|policy| policy.name == name)
    }

    /// Every policy.
    pub fn iter(&self) -> impl Iterator<Item = &Arc<Policy>> {
        self.policies.iter()
    }

    /// The names that loaded policies refer to and that are not here yet.
    #[must_use]
    pub fn missing(&self) -> Vec<String> {
        let mut names: Vec<String> = self
            .policies
            .iter()
            .flat_map(|policy| policy.extends.iter().chain(&policy.within))
            .map(|(name, _)| name.clone())
            .filter(|name| self.get(name).is_none())
            .collect();
        names.sort();
        names.dedup();
        names
    }

    /// Composes the policy of this name.
    ///
    /// # Errors
    /// A name that it refers to is missing, or refers back.
    pub fn effective(&self, name: &str) -> Result<Effective, Vec<Finding>> {
        let mut findings = Vec::new();
        let ceilings: Vec<&str> = self
            .policies
            .iter()
            .filter(|policy| policy.ceiling && policy.name != name)
            .map(|policy| policy.name.as_str())
            .collect();
        let mut walk = Walk::default();
        for root in std::iter::once(name).chain(ceilings.iter().copied()) {
            self.check(root, &mut walk, &mut findings);
        }
        if !findings.is_empty() || self.get(name).is_none() {
            return Err(findings);
        }
        // An intersection does not care how often or by which way a policy is named: each counts once.
        let own = self.layers(name);
        let mut inside: Vec<String> = named_within(&own).collect();
        inside.extend(ceilings.into_iter().map(str::to_owned));
        let mut seen: Vec<String> = Vec::new();
        let mut within: Vec<Effective> = Vec::new();
        while let Some(other) = inside.pop() {
            if seen.contains(&other) {
                continue;
            }
            let layers = self.layers(&other);
            seen.push(other);
            inside.extend(named_within(&layers));
            within.push(Effective::new(layers, Vec::new(), &mut findings));
        }
        within.sort_by(|one, other| one.name().cmp(other.name()));
        let effective = Effective::new(own, within, &mut findings);
        if findings.is_empty() { Ok(effective) } else { Err(findings) }
    }

    /// Every name is known, nothing leads back, and no chain is long. Gives the length of the chain.
    fn check(&self, name: &str, walk: &mut Walk, findings: &mut Vec<Finding>) -> usize {
        let Some(policy) = self.get(name) else { return 0 };
        if let Some((_, height)) = walk.done.iter().find(|(known, _)| known == name) {
            return *height;
        }
        walk.chain.push(name.to_owned());
        let mut height = 0;
        for (other, at) in policy.extends.iter().chain(&policy.within) {
            if walk.chain.contains(other) {
                let help = "one of them must stand alone".to_owned();
                let message = format!("`{other}` leads back to `{name}`");
                findings.push(finding(policy, *at, "cycle", message, Some(help)));
            } else if self.get(other).is_none() {
                findings.push(self.unknown(policy, other, *at));
            } else {
                height = if walk.chain.len() > MAX_CHAIN {
                    MAX_CHAIN
                } else {
                    height.max(self.check(other, walk, findings))
                };
                if height >= MAX_CHAIN && !std::mem::replace(&mut walk.too_deep, true) {
                    let message = format!("a chain of more than {MAX_CHAIN} policies");
                    findings.push(finding(policy, *at, "too_deep", message, None));
                }
            }
        }
        walk.chain.pop();
        walk.done.push((name.to_owned(), height + 1));
        height + 1
    }

    /// The policy and what it extends, nearest first, each once with its distance.
    fn layers(&self, name: &str) -> Vec<(Arc<Policy>, usize)> {
        let mut layers: Vec<(Arc<Policy>, usize)> =
            self.get(name).map(|policy| (Arc::clone(policy), 0)).into_iter().collect();
        let mut at = 0;
        while let Some((layer, distance)) = layers.get(at).cloned() {
            at += 1;
            for (name, _) in &layer.extends {
                if layers.iter().all(|(known, _)| known.name != *name)
                    && let Some(other) = self.get(name)
                {
                    layers.push((Arc::clone(other), distance + 1));
                }
            }
        }
        // Those that are equally near stand by name, so that no order in a file matters.
        layers.sort_by(|(one, near), (other, far)| (near, &one.name).cmp(&(far, &other.name)));
        layers
    }

    fn unknown(&self, policy: &Policy, name: &str, at: At) -> Finding {
        let close = crate::finding::did_you_mean(
            name,
            self.policies.iter().map(|policy| policy.name.as_str()),
        );
        finding(
            policy,
            at,
            "unknown_policy",
            format!("there is no policy `{name}`"),
            close.map(|close| format!("did you mean `{close}`?")),
        )
    }
}

pub(super) fn finding(
    policy: &Policy,
    at: At,
    code: &'static str,
    message: String,
    help: Option<String>,
) -> Finding {
    Finding { code, file: policy.file.clone(), at, message, help, excerpt: String::new() }
}
