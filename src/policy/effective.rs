//! Composition: a policy with all that it extends, and within what it must stay.
//!
//! `extends` is the union of rules and lists; for single values the nearest wins. `within`, and every
//! managed policy that is a ceiling, is an intersection: each of them decides for itself and the
//! strictest answer holds.

use std::sync::Arc;

use jiff::Timestamp;

use crate::finding::{At, Finding};
use crate::limits::{Isolation, Limits};
use crate::model::Policy;

/// A policy ready to decide.
#[derive(Debug, Clone)]
pub struct Effective {
    /// The policy itself, then what it extends, nearest first, each once.
    pub layers: Vec<Arc<Policy>>,
    /// What it never exceeds.
    pub within: Vec<Effective>,
    /// Covers the text of everything above.
    pub digest: blake3::Hash,
    /// Only this rule of the policy itself is considered: an example is about its rule.
    only: Option<usize>,
}

/// Policies by name, as far as they were loaded.
#[derive(Debug, Default, Clone)]
pub struct PolicySet {
    policies: Vec<Arc<Policy>>,
}

/// Deepest chain of `extends` and `within`.
const MAX_CHAIN: usize = 32;

impl PolicySet {
    /// Adds a policy; a name stands once.
    ///
    /// # Errors
    /// The name is taken.
    #[expect(clippy::result_large_err, reason = "it is the end of loading, not a hot path")]
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
        let effective = self.compose(name, &mut Vec::new(), &mut findings);
        match effective {
            Some(mut effective) if findings.is_empty() => {
                for ceiling in
                    self.policies.iter().filter(|policy| policy.ceiling && policy.name != name)
                {
                    effective.within.extend(self.compose(
                        &ceiling.name,
                        &mut Vec::new(),
                        &mut findings,
                    ));
                }
                effective.digest = digest(&effective.layers, &effective.within);
                if findings.is_empty() { Ok(effective) } else { Err(findings) }
            }
            _ => Err(findings),
        }
    }

    fn compose(
        &self,
        name: &str,
        chain: &mut Vec<String>,
        findings: &mut Vec<Finding>,
    ) -> Option<Effective> {
        let policy = self.get(name)?;
        let mut layers = Vec::new();
        let mut inside: Vec<(String, At, Arc<Policy>)> = Vec::new();
        self.collect(policy, &mut layers, &mut inside, &mut Vec::new(), findings);
        chain.push(name.to_owned());
        let mut within = Vec::new();
        for (other, at, by) in inside {
            if chain.contains(&other) || chain.len() > MAX_CHAIN {
                findings.push(finding(
                    &by,
                    at,
                    "cycle",
                    format!("`{other}` leads back to `{name}`"),
                    None,
                ));
                continue;
            }
            within.extend(self.compose(&other, chain, findings));
        }
        chain.pop();
        let digest = digest(&layers, &within);
        Some(Effective { layers, within, digest, only: None })
    }

    /// The policy and what it extends, nearest first.
    fn collect(
        &self,
        policy: &Arc<Policy>,
        layers: &mut Vec<Arc<Policy>>,
        inside: &mut Vec<(String, At, Arc<Policy>)>,
        chain: &mut Vec<String>,
        findings: &mut Vec<Finding>,
    ) {
        if layers.iter().any(|layer| layer.name == policy.name) {
            return;
        }
        layers.push(Arc::clone(policy));
        chain.push(policy.name.clone());
        for (name, at) in &policy.within {
            match self.get(name) {
                Some(_) => inside.push((name.clone(), *at, Arc::clone(policy))),
                None => findings.push(self.unknown(policy, name, *at)),
            }
        }
        for (name, at) in &policy.extends {
            match self.get(name) {
                _ if chain.contains(name) => {
                    findings.push(finding(
                        policy,
                        *at,
                        "cycle",
                        format!("`{name}` extends `{}` in turn", policy.name),
                        Some("one of them must stand alone".to_owned()),
                    ));
                }
                Some(other) => self.collect(other, layers, inside, chain, findings),
                None => findings.push(self.unknown(policy, name, *at)),
            }
        }
        chain.pop();
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

fn finding(
    policy: &Policy,
    at: At,
    code: &'static str,
    message: String,
    help: Option<String>,
) -> Finding {
    Finding { code, file: policy.file.clone(), at, message, help, excerpt: String::new() }
}

fn digest(layers: &[Arc<Policy>], within: &[Effective]) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    for layer in layers {
        hasher.update(layer.name.as_bytes());
        hasher.update(&[0]);
        hasher.update(layer.digest.as_bytes());
    }
    for other in within {
        hasher.update(b"within");
        hasher.update(other.digest.as_bytes());
    }
    hasher.finalize()
}

impl Effective {
    /// The same lists, with this one rule of the policy itself and nothing that it stays within.
    #[must_use]
    pub fn alone(&self, rule: usize) -> Self {
        Self { only: Some(rule), within: Vec::new(), ..self.clone() }
    }

    /// Whether a rule counts.
    pub(crate) fn considers(&self, layer: usize, rule: usize) -> bool {
        self.only.is_none_or(|only| layer == 0 && only == rule)
    }

    /// The policy that was asked for.
    #[must_use]
    pub fn name(&self) -> &str {
        self.layers.first().map_or("", |layer| &layer.name)
    }

    /// Who answers for it.
    #[must_use]
    pub fn owner(&self) -> Option<&str> {
        self.layers.iter().find_map(|layer| layer.owner.as_deref())
    }

    /// Whether it only observes at this moment. All that it stays within must observe too.
    #[must_use]
    pub fn observes(&self, now: Timestamp) -> bool {
        self.layers.first().and_then(|layer| layer.observe_until).is_some_and(|end| now < end)
    }

    /// The image of its sandboxes.
    #[must_use]
    pub fn image(&self) -> &str {
        self.layers.iter().find_map(|layer| layer.sandbox.image.as_deref()).unwrap_or("host")
    }

    /// The container runtime that it demands. What it stays within can demand one too.
    #[must_use]
    pub fn runtime(&self) -> Option<&str> {
        self.layers
            .iter()
            .find_map(|layer| layer.sandbox.runtime.as_deref())
            .or_else(|| self.within.iter().find_map(Effective::runtime))
    }

    /// How strongly its sandboxes are closed: the strictest of all.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        let own = self
            .layers
            .iter()
            .find_map(|layer| layer.sandbox.isolation)
            .unwrap_or(Isolation::Strict);
        self.within.iter().map(Effective::isolation).fold(own, Isolation::max)
    }

    /// Engines that may run it: those that all agree on.
    #[must_use]
    pub fn engines(&self) -> Vec<&str> {
        let own = self.layers.iter().find_map(|layer| layer.sandbox.engines.as_deref());
        let mut engines: Vec<&str> = match own {
            Some(names) => names.iter().map(String::as_str).collect(),
            None => vec!["docker", "embedded"],
        };
        for other in &self.within {
            let allowed = other.engines();
            engines.retain(|name| allowed.contains(name));
        }
        engines
    }

    /// Figures of a sandbox: preset, then policies, then the rule; the tightest of all that it stays within.
    #[must_use]
    pub fn limits(&self, rule: &[(crate::limits::Limit, u64)]) -> Limits {
        let isolation = self
            .layers
            .iter()
            .find_map(|layer| layer.sandbox.isolation)
            .unwrap_or(Isolation::Strict);
        let mut limits = Limits::preset(isolation);
        for (limit, figure) in
            self.layers.iter().rev().flat_map(|layer| &layer.sandbox.limits).chain(rule)
        {
            limits.set(*limit, *figure);
        }
        limits
    }

    /// Variables that are passed from the caller: those that all agree on.
    #[must_use]
    pub fn env_pass(&self) -> Vec<&str> {
        let mut names: Vec<&str> =
            self.layers.iter().flat_map(|layer| &layer.env.pass).map(String::as_str).collect();
        for other in &self.within {
            let allowed = other.env_pass();
            names.retain(|name| allowed.contains(name));
        }
        names.sort_unstable();
        names.dedup();
        names
    }

    /// Variables that are set; the nearest policy wins.
    #[must_use]
    pub fn env_set(&self) -> Vec<(&str, &str)> {
        let mut set: Vec<(&str, &str)> = Vec::new();
        for (name, value) in self.layers.iter().flat_map(|layer| &layer.env.set) {
            if !set.iter().any(|(known, _)| known == name) {
                set.push((name, value));
            }
        }
        set.sort_unstable();
        set
    }
}
