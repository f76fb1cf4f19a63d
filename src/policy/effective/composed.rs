//! A composed policy: its layers, what it stays within, and the values that they give together.

use std::collections::BTreeSet;
use std::sync::Arc;

use jiff::Timestamp;

use super::index::{Index, RuleAt};
use super::set::finding;
use crate::effect::Classes;
use crate::finding::{At, Finding};
use crate::limits::{Isolation, Limits, TABLE};
use crate::model::{Policy, Verdict, Writes};
use crate::reading::Level;

/// A policy ready to decide.
#[derive(Debug, Clone)]
pub struct Effective {
    /// The policy itself, then what it extends, nearest first, each once.
    pub layers: Vec<Arc<Policy>>,
    /// What it never exceeds.
    pub within: Vec<Effective>,
    /// How many of these, at the end, [`narrowed`](Self::narrowed) put there.
    narrowed: usize,
    /// Covers the text of everything above.
    pub digest: blake3::Hash,
    /// How far each layer is from the policy itself.
    distances: Vec<usize>,
    /// Figures of its sandboxes before a rule sets its own.
    figures: Limits,
    /// Rules by the programs that they name.
    index: Arc<Index>,
    /// Only this rule of the policy itself is considered: an example is about its rule.
    only: Option<usize>,
}

impl Effective {
    pub(super) fn new(
        layers: Vec<(Arc<Policy>, usize)>,
        within: Vec<Effective>,
        findings: &mut Vec<Finding>,
    ) -> Self {
        let (layers, distances): (Vec<_>, Vec<_>) = layers.into_iter().unzip();
        let digest = digest(&layers, &within);
        let figures = Limits::preset(Isolation::Strict);
        let index = Arc::new(Index::new(&layers));
        let mut effective =
            Self { layers, within, narrowed: 0, digest, distances, figures, index, only: None };
        effective.figures = effective.composed_figures();
        effective.check_conflicts(findings);
        effective
    }

    /// What the nearest layers that say something say: several if they are equally near.
    fn nearest<'a, T>(
        &'a self,
        value: impl Fn(&'a Policy) -> Option<T>,
    ) -> impl Iterator<Item = T> {
        let mut decided: Option<usize> = None;
        self.layers
            .iter()
            .zip(&self.distances)
            .map_while(move |(layer, distance)| {
                if decided.is_some_and(|decided| *distance > decided) {
                    return None;
                }
                let found = value(layer);
                if found.is_some() {
                    decided = Some(*distance);
                }
                Some(found)
            })
            .flatten()
    }

    /// The preset, then the policies' own figures; of equally near ones the tightest.
    fn composed_figures(&self) -> Limits {
        let mut limits = Limits::preset(self.own_isolation());
        for row in &TABLE {
            let figures = self.nearest(|layer| {
                let own = layer.sandbox.limits.iter();
                own.filter(|(limit, _)| *limit == row.limit).map(|(_, figure)| *figure).next_back()
            });
            let tightest = figures
                .reduce(|one, other| if row.limit.tighter(one, other) { one } else { other });
            if let Some(figure) = tightest {
                limits.set(row.limit, figure);
            }
        }
        limits
    }

    fn own_isolation(&self) -> Isolation {
        self.nearest(|layer| layer.sandbox.isolation).max().unwrap_or(Isolation::Strict)
    }

    /// Texts have no stricter one: where equally near policies differ, the policy itself must say.
    fn check_conflicts(&self, findings: &mut Vec<Finding>) {
        let Some(own) = self.layers.first() else { return };
        let mut conflict = |what: &str, mut values: Vec<&str>| {
            values.sort_unstable();
            values.dedup();
            if let [first, second, ..] = values.as_slice() {
                let at =
                    own.extends.first().map_or(At { line: 1, column: 1, width: 1 }, |(_, at)| *at);
                let message =
                    format!("what it extends sets `{what}` to `{first}` and to `{second}`");
                let help = format!("set `{what}` here");
                findings.push(finding(own, at, "conflict", message, Some(help)));
            }
        };
        conflict("sandbox.image", self.nearest(|layer| layer.sandbox.image.as_deref()).collect());
        conflict(
            "sandbox.runtime",
            self.nearest(|layer| layer.sandbox.runtime.as_deref()).collect(),
        );
        for name in self.set_names() {
            conflict(&format!("env.set.{name}"), self.set_values(name).collect());
        }
    }

    fn set_names(&self) -> Vec<&str> {
        let mut names: Vec<&str> = self
            .layers
            .iter()
            .flat_map(|layer| &layer.env.set)
            .map(|(name, _)| name.as_str())
            .collect();
        names.sort_unstable();
        names.dedup();
        names
    }

    fn set_values(&self, name: &str) -> impl Iterator<Item = &str> {
        self.nearest(move |layer| {
            layer.env.set.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
        })
    }

    /// The same policy, never more than the other one too: a tool's permissions, for example.
    #[must_use]
    pub fn narrowed(&self, other: Arc<Policy>) -> Self {
        // One policy alone has nothing to conflict with.
        let other = Self::new(vec![(other, 0)], Vec::new(), &mut Vec::new());
        let mut narrowed = self.clone();
        narrowed.within.push(other);
        narrowed.narrowed += 1;
        narrowed.digest = digest(&narrowed.layers, &narrowed.within);
        narrowed
    }

    /// The same policy, never more than another one and all that the other stays within.
    #[must_use]
    pub fn bounded(&self, other: &Self) -> Self {
        let mut bounded = self.clone();
        let parts = std::iter::once(other).chain(&other.within);
        for part in parts.map(Self::without_bounds) {
            if bounded.within.iter().all(|known| known.digest != part.digest) {
                // What narrows it stays at the end.
                bounded.within.insert(bounded.within.len() - bounded.narrowed, part);
            }
        }
        bounded.digest = digest(&bounded.layers, &bounded.within);
        bounded
    }

    fn without_bounds(&self) -> Self {
        let digest = digest(&self.layers, &[]);
        Self { within: Vec::new(), narrowed: 0, digest, ..self.clone() }
    }

    /// What [`narrowed`](Self::narrowed) put it within.
    pub(crate) fn narrowings(&self) -> &[Self] {
        &self.within[self.within.len() - self.narrowed..]
    }

    /// Figures of a sandbox that no rule speaks for: the tightest of all that it stays within.
    #[must_use]
    pub fn tightest_limits(&self) -> Limits {
        self.within
            .iter()
            .fold(self.figures, |limits, other| limits.tightest(&other.tightest_limits()))
    }

    /// The same lists, with this one rule of the policy itself and nothing that it stays within.
    #[must_use]
    pub fn alone(&self, rule: usize) -> Self {
        Self { only: Some(rule), within: Vec::new(), narrowed: 0, ..self.clone() }
    }

    /// The rules that count and could be about a command.
    pub(crate) fn rules_about(&self, level: &Level) -> Vec<RuleAt> {
        let mut rules = self.index.about(level);
        rules.retain(|at| self.only.is_none_or(|only| *at == (0, only)));
        rules
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

    /// How many classes of effects its rules allow, all together.
    pub(crate) fn breadth(&self) -> usize {
        let allows = self.layers.iter().flat_map(|layer| &layer.commands);
        let allows = allows.filter(|rule| rule.verb == Verdict::Allow);
        allows.fold(Classes::default(), |all, rule| all.union(rule.effects)).iter().count()
    }

    /// Whether it only observes at this moment. All that it stays within must observe too.
    #[must_use]
    pub fn observes(&self, now: Timestamp) -> bool {
        self.layers.first().and_then(|layer| layer.observe_until).is_some_and(|end| now < end)
    }

    /// The image of its sandboxes.
    #[must_use]
    pub fn image(&self) -> &str {
        self.nearest(|layer| layer.sandbox.image.as_deref()).next().unwrap_or("host")
    }

    /// The container runtime that it demands. What it stays within can demand one too.
    #[must_use]
    pub fn runtime(&self) -> Option<&str> {
        self.nearest(|layer| layer.sandbox.runtime.as_deref())
            .next()
            .or_else(|| self.within.iter().find_map(Effective::runtime))
    }

    /// How strongly its sandboxes are closed: the strictest of all.
    #[must_use]
    pub fn isolation(&self) -> Isolation {
        self.within.iter().map(Effective::isolation).fold(self.own_isolation(), Isolation::max)
    }

    /// When changes of its commands are applied: as the strictest of all says.
    #[must_use]
    pub fn writes(&self) -> Writes {
        let own = self.nearest(|layer| layer.sandbox.writes).max().unwrap_or_default();
        self.within.iter().map(Effective::writes).fold(own, Writes::max)
    }

    /// Engines that may run it: those that all agree on.
    #[must_use]
    pub fn engines(&self) -> Vec<&str> {
        let mut engines = vec!["docker", "embedded"];
        for names in self.nearest(|layer| layer.sandbox.engines.as_deref()) {
            engines.retain(|name| names.iter().any(|known| known == name));
        }
        for other in &self.within {
            let allowed = other.engines();
            engines.retain(|name| allowed.contains(name));
        }
        engines
    }

    /// Protections that must hold in full: what any of them demands.
    #[must_use]
    pub fn demands(&self) -> BTreeSet<&str> {
        let own = self.layers.iter().flat_map(|layer| &layer.sandbox.demand);
        let mut all: BTreeSet<&str> = own.map(String::as_str).collect();
        all.extend(self.within.iter().flat_map(Effective::demands));
        all
    }

    /// Figures of a sandbox: preset, then policies, then the rule; the tightest of all that it stays within.
    #[must_use]
    pub fn limits(&self, rule: &[(crate::limits::Limit, u64)]) -> Limits {
        let mut limits = self.figures;
        for (limit, figure) in rule {
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
        let names = self.set_names().into_iter();
        names.filter_map(|name| self.set_values(name).next().map(|value| (name, value))).collect()
    }
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
