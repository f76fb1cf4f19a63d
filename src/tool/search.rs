//! Finding a tool by words: name, tags, category, capabilities, description; the best first.

use strsim::damerau_levenshtein;

use super::definition::Definition;
use crate::ids::ToolName;

/// What a word counts where it is found. A name says most, a sentence least.
const NAME: u32 = 100;
const NAME_BEGINS: u32 = 60;
const NAME_HOLDS: u32 = 40;
const NAME_NEAR: u32 = 15;
const TAG: u32 = 35;
const CATEGORY: u32 = 25;
const ACTION: u32 = 25;
const SENTENCE: u32 = 10;
const PART: u32 = 4;

/// Words of a question that are looked at; each is compared with everything.
const MAX_WORDS: usize = 16;
/// Longest word that is compared for misspelling.
const MAX_NEAR: usize = 32;

/// The words of a question.
#[derive(Debug)]
pub struct Question(Vec<String>);

impl Question {
    /// From what was typed.
    #[must_use]
    pub fn new(text: &str) -> Self {
        Self(words(text).take(MAX_WORDS).collect())
    }

    /// How well a tool fits; 0 if a word is nowhere. `glimpsed` is the description of a tool that was never asked.
    #[must_use]
    pub fn score(
        &self,
        name: &ToolName,
        definition: Option<&Definition>,
        glimpsed: Option<&str>,
    ) -> u32 {
        let mut each = self.0.iter().map(|word| one(word, name, definition, glimpsed));
        let sum = each.try_fold(0u32, |sum, found| (found > 0).then(|| sum.saturating_add(found)));
        sum.unwrap_or(0)
    }
}

fn words(text: &str) -> impl Iterator<Item = String> + '_ {
    let split = |c: char| !c.is_alphanumeric();
    text.split(split).filter(|word| !word.is_empty()).map(str::to_lowercase)
}

fn one(word: &str, name: &ToolName, it: Option<&Definition>, glimpsed: Option<&str>) -> u32 {
    let mut best = in_name(word, &name.as_str().to_lowercase());
    let description = it.map(|it| it.description.as_str()).or(glimpsed).unwrap_or_default();
    best += in_text(word, description, SENTENCE);
    if let Some(it) = it {
        let tags = it.metadata.tags.iter().map(|tag| in_text(word, tag, TAG));
        let actions = it.metadata.capabilities.iter().map(|capability| {
            let about = capability.description.as_deref().unwrap_or_default();
            in_text(word, &capability.action, ACTION).max(in_text(word, about, SENTENCE))
        });
        best += tags.max().unwrap_or(0) + actions.max().unwrap_or(0);
        best += in_text(word, it.category.word(), CATEGORY);
    }
    best
}

fn in_name(word: &str, name: &str) -> u32 {
    let parts = || words(name);
    if name == word {
        NAME
    } else if name.starts_with(word) || parts().any(|part| part == word) {
        NAME_BEGINS
    } else if name.contains(word) {
        NAME_HOLDS
    } else if word.len() <= MAX_NEAR && parts().any(|part| is_near(word, &part)) {
        NAME_NEAR
    } else {
        0
    }
}

/// Whether one is the other, misspelt.
fn is_near(word: &str, part: &str) -> bool {
    let longest = word.chars().count().max(part.chars().count());
    longest >= 4 && damerau_levenshtein(word, part) <= longest / 4
}

/// A whole word counts in full, a part of one little.
fn in_text(word: &str, text: &str, whole: u32) -> u32 {
    let lower = text.to_lowercase();
    if words(&lower).any(|part| part == word) {
        whole
    } else if lower.contains(word) {
        PART
    } else {
        0
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, more: &str) -> (ToolName, Definition) {
        let name: ToolName = name.parse().unwrap();
        let text = format!("name: {name}\n{more}\ncode: export const execute = 1\n");
        let definition = super::super::read::parse("t.yml", &text, &name).unwrap();
        (name, definition)
    }

    fn ranked<'t>(question: &str, tools: &'t [(ToolName, Definition)]) -> Vec<&'t str> {
        let question = Question::new(question);
        let score = |it: &(ToolName, Definition)| question.score(&it.0, Some(&it.1), None);
        let mut found: Vec<_> = tools.iter().map(|it| (score(it), it.0.as_str())).collect();
        found.retain(|(score, _)| *score > 0);
        found.sort_by(|a, b| b.0.cmp(&a.0).then(a.1.cmp(b.1)));
        found.into_iter().map(|(_, name)| name).collect()
    }

    #[test]
    fn names_come_before_tags_and_tags_before_sentences() {
        let tools = [
            tool("notes", "description: Deploy nothing at all."),
            tool("deploy", "description: Puts a site on the net."),
            tool("site_push", "description: Publishes.\ntags: [deploy]"),
            tool("publish", "description: x\ncategory: deployment"),
            tool("release", "description: x\ncapabilities: [{ action: deploy }]"),
        ];
        assert_eq!(
            ranked("Deploy", &tools),
            ["deploy", "site_push", "release", "notes", "publish"]
        );
        assert_eq!(ranked("deploy net", &tools), ["deploy"], "every word counts");
        assert_eq!(ranked("site", &tools), ["site_push", "deploy"]);
        assert_eq!(ranked("realease", &tools), ["release"], "misspelt");
        assert_eq!(ranked("nowhere", &tools), [""; 0]);
        assert_eq!(ranked(" - ", &tools).len(), 0, "a question without words finds nothing");
    }
}
