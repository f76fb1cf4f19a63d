//! What variables can hold at a point of a line, as far as that is known before it runs.
//!
//! Duty: follow values through a line, and the words that they make. Everything here is a guess that the guest checks:
//! what it expands must be among what was judged (see [`crate::plan::Assumed`]). So a mistake here stops a line; it
//! cannot make it do what nobody judged.

use std::collections::{BTreeMap, BTreeSet};

use super::line::HOME;
use crate::shell::{self, Expansion, Part};
use crate::word::{Later, Word};

/// Most values of one variable, and most combinations of values that one command is judged with.
pub(super) const MAX_VALUES: usize = 16;

/// Most variables that are followed.
const MAX_VARIABLES: usize = 64;

/// The longest value that is followed. The plan carries each of them.
const MAX_LENGTH: usize = 4096;

/// What a variable can hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Value {
    /// One of these.
    Known(BTreeSet<String>),
    /// Anything.
    Unknown,
}

impl Value {
    pub fn one(text: &str) -> Self {
        Self::of([text.to_owned()])
    }

    pub fn of(values: impl IntoIterator<Item = String>) -> Self {
        let values: BTreeSet<String> = values.into_iter().take(MAX_VALUES + 1).collect();
        let fits = values.len() <= MAX_VALUES && values.iter().all(|it| it.len() <= MAX_LENGTH);
        if fits && !values.is_empty() { Self::Known(values) } else { Self::Unknown }
    }

    fn join(&self, other: &Self) -> Self {
        match (self, other) {
            (Self::Known(one), Self::Known(other)) => Self::of(one.union(other).cloned()),
            _ => Self::Unknown,
        }
    }
}

/// What is known at a point of a line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Flow {
    /// Every folder that the line can be in.
    pub folders: Vec<String>,
    /// Whether it can be in any other.
    pub lost: bool,
    /// Names that can be in the environment of commands because the line put them there.
    pub exported: BTreeSet<String>,
    /// Values of the variables that the line sets.
    pub values: BTreeMap<String, Value>,
}

impl Flow {
    pub fn value(&self, name: &str) -> Value {
        match self.values.get(name) {
            Some(value) => value.clone(),
            None if name == "PWD" && !self.lost => Value::of(self.folders.iter().cloned()),
            None if name == "HOME" && !self.exported.contains("HOME") => Value::one(HOME),
            None => Value::Unknown,
        }
    }

    /// Gives a variable a value. Of very many, the later ones are not followed: each way through a line has a copy.
    pub fn set(&mut self, name: String, value: Value) {
        let is_followed = self.values.len() < MAX_VARIABLES || self.values.contains_key(&name);
        self.values.insert(name, if is_followed { value } else { Value::Unknown });
    }

    /// Either of both.
    pub fn join(&mut self, other: &Self) {
        self.folders.extend(other.folders.iter().cloned());
        self.folders.sort();
        self.folders.dedup();
        self.lost |= other.lost;
        self.exported.extend(other.exported.iter().cloned());
        let names: BTreeSet<String> =
            self.values.keys().chain(other.values.keys()).cloned().collect();
        for name in names {
            let value = self.value(&name).join(&other.value(&name));
            self.values.insert(name, value);
        }
    }

    /// Gives up every value that is not the same in both.
    pub fn widen(&mut self, other: &Self) {
        for (name, value) in &mut self.values {
            if other.values.get(name) != Some(value) {
                *value = Value::Unknown;
            }
        }
    }

    /// Every combination of known values of these variables; the rest is not known.
    pub fn combinations<'w>(
        &self,
        words: impl Iterator<Item = &'w shell::Word>,
    ) -> Vec<BTreeMap<String, String>> {
        let mut names = BTreeSet::new();
        for part in words.flat_map(|word| &word.parts) {
            if let Part::Expansion { of, .. } = part
                && let Some(name) = of.name()
            {
                names.insert(name.to_owned());
            }
        }
        let mut all = vec![BTreeMap::new()];
        for name in names {
            let Value::Known(values) = self.value(&name) else { continue };
            if all.len() * values.len() > MAX_VALUES {
                continue;
            }
            all = all
                .into_iter()
                .flat_map(|known: BTreeMap<String, String>| {
                    let name = name.clone();
                    values.iter().map(move |value| {
                        let mut known = known.clone();
                        known.insert(name.clone(), value.clone());
                        known
                    })
                })
                .collect();
        }
        all
    }

    /// What a word can be where nothing splits it and no file is looked for.
    pub fn text(&self, word: &shell::Word) -> Value {
        let texts = self.combinations(std::iter::once(word)).into_iter().map(|known| {
            let mut text = String::new();
            for part in &word.parts {
                match part {
                    Part::Expansion { of, .. } => text += value(of, &known)?,
                    other => {
                        let part = shell::Word { parts: vec![other.clone()], at: word.at };
                        text += &part.text(HOME);
                    }
                }
            }
            Some(text)
        });
        texts.collect::<Option<Vec<String>>>().map_or(Value::Unknown, Value::of)
    }
}

/// What a word becomes.
#[derive(Debug, Clone)]
pub(super) enum Fields {
    /// These words, in which files may still be looked for.
    Known(Vec<shell::Word>),
    /// Something of which only the beginning is known.
    Later(Later),
}

/// What an expansion becomes with these values.
fn value<'v>(of: &'v Expansion, known: &'v BTreeMap<String, String>) -> Option<&'v str> {
    of.with(known.get(of.name()?)?)
}

/// What a word becomes with these values. Blanks of a value that is not quoted split it.
pub(super) fn fields(word: &shell::Word, known: &BTreeMap<String, String>) -> Fields {
    let mut done = Vec::new();
    let mut field: Option<Vec<Part>> = word.parts.is_empty().then(Vec::new);
    let text = |field: &mut Option<Vec<Part>>, text: &str| {
        let parts = field.get_or_insert_default();
        match parts.last_mut() {
            Some(Part::Text(last)) => last.push_str(text),
            _ if text.is_empty() => {}
            _ => parts.push(Part::Text(text.to_owned())),
        }
    };
    for part in &word.parts {
        match part {
            Part::Text(literal) => text(&mut field, literal),
            Part::Home => text(&mut field, HOME),
            Part::Any | Part::One | Part::Class(_) => {
                field.get_or_insert_default().push(part.clone());
            }
            Part::Expansion { of, quoted } => {
                let value = value(of, known);
                // Patterns in a value are looked at when the line runs.
                let odd = |value: &&str| !quoted && value.contains(['*', '?', '[', '\\']);
                let Some(value) = value.filter(|value| !odd(value)) else {
                    return Fields::Later(later(word));
                };
                if *quoted {
                    text(&mut field, value);
                    continue;
                }
                for c in value.chars() {
                    if matches!(c, ' ' | '\t' | '\n') {
                        done.extend(field.take());
                    } else {
                        text(&mut field, c.encode_utf8(&mut [0; 4]));
                    }
                }
            }
        }
    }
    done.extend(field);
    Fields::Known(done.into_iter().map(|parts| shell::Word { parts, at: word.at }).collect())
}

fn later(word: &shell::Word) -> Later {
    let before = match word.parts.first() {
        Some(Part::Text(text)) => text.clone(),
        Some(Part::Home) => HOME.to_owned(),
        _ => String::new(),
    };
    let splits = |part: &Part| matches!(part, Part::Expansion { quoted: false, .. });
    let many = word.is_glob() || word.parts.iter().any(splits);
    Later { site: word.at.start, before, many }
}

/// A word without expansions, as it is judged.
pub(super) fn judged(word: &shell::Word) -> Word {
    match word.pattern(HOME) {
        Some(pattern) => Word::Glob(pattern),
        None => Word::Lit(word.text(HOME)),
    }
}
