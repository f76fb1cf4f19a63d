//! Rules by the programs that they name: a command looks at those that could be about it, not at all.

use std::sync::Arc;

use crate::model::{Policy, Subject};
use crate::reading::Level;

/// A rule by its layer and its place in it.
pub(crate) type RuleAt = (usize, usize);

/// The rules of all layers.
#[derive(Debug, Clone, Default)]
pub(super) struct Index {
    /// Rules by the exact name of a program, in order of names.
    named: Vec<(String, RuleAt)>,
    /// Rules about any program, or about names with a star.
    open: Vec<RuleAt>,
}

impl Index {
    pub(super) fn new(layers: &[Arc<Policy>]) -> Self {
        let mut index = Self::default();
        for (at, layer) in layers.iter().enumerate() {
            for (rule_at, rule) in layer.commands.iter().enumerate() {
                let place = (at, rule_at);
                match &rule.subject {
                    Subject::Catalog => index.open.push(place),
                    Subject::Patterns(patterns) => {
                        for program in patterns.iter().flat_map(|pattern| pattern.programs()) {
                            if program.contains('*') {
                                index.open.push(place);
                            } else {
                                index.named.push((program.to_owned(), place));
                            }
                        }
                    }
                }
            }
        }
        index.named.sort_unstable();
        index.named.dedup();
        index.open.dedup();
        index
    }

    /// The rules that could be about a command, by proof or by doubt; each once.
    pub(super) fn about(&self, level: &Level) -> Vec<RuleAt> {
        let mut found = self.open.clone();
        match level.words.first().map(|word| word.text()) {
            // A program whose name is not known could be any.
            Some(None) => found.extend(self.named.iter().map(|(_, place)| *place)),
            called => {
                let called = called.flatten().unwrap_or_default();
                let last = called.rsplit('/').next().unwrap_or_default();
                for name in [level.program.as_str(), called, last] {
                    let from = self.named.partition_point(|(known, _)| known.as_str() < name);
                    let same = self.named[from..].iter().take_while(|(known, _)| known == name);
                    found.extend(same.map(|(_, place)| *place));
                }
            }
        }
        found.sort_unstable();
        found.dedup();
        found
    }
}
