//! What an answer is about.

use std::collections::BTreeMap;

use runner_glob::{fits_within, star_tokens};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

/// What a call asks for, whole.
#[derive(Debug, Clone)]
pub struct Asked {
    /// Who is called: `exec`, `tool:NAME`, or what a tool wants to do: `tool:NAME/exec`.
    pub subject: String,
    /// The digest of the tool with every input of its compile; empty for a command.
    pub digest: String,
    /// Every file of the tool, with its content's digest; nothing for a command.
    pub inputs: Vec<(String, String)>,
    /// Under what it would run.
    pub terms: Terms,
    /// Its arguments by name.
    pub arguments: Map<String, Value>,
    /// What it would do, as far as that is known before it does it.
    pub deeds: Vec<Deed>,
    /// Files of the workspace that its code comes from, as far as they are known, each with its content's digest.
    pub files: Vec<(String, String)>,
    /// The workspace.
    pub workspace: String,
}

/// Something that a call would do, in one spelling for all callers: a command, a removal, a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Deed {
    /// What, as `run git commit`, `remove a.txt` or `reach GET https://…`.
    pub what: String,
    /// Which part of it.
    pub part: Part,
    /// Whether it is what the call is about.
    pub weight: Weight,
}

/// Which part of a deed. A command is kept item by item: with further ones it is still that command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Part {
    /// All of it.
    Whole,
    /// One option, operand or redirection of a command.
    Item(String),
    /// An argument of a command that can be anything.
    Unknown,
}

/// Whether a deed is what a call is about.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Weight {
    /// The call does this itself: `--never` is about it.
    Itself,
    /// It stands around that: `cd`, `timeout 5`. It is done too, so that a never to it counts.
    Around,
}

/// Under what a call would run. The same words do something else under another policy, in another image or folder.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Terms {
    /// The digest of the policy, within the tool's permissions.
    pub policy: String,
    /// The image that the caller names; `None` is the policy's.
    pub image: Option<String>,
    /// The folder.
    pub cwd: String,
}

/// What an answer covers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Binding {
    /// Who may be called.
    pub subject: String,
    /// Its digest.
    pub digest: String,
    /// Its files, to say which has changed.
    pub inputs: Vec<(String, String)>,
    /// Under what it may run.
    pub terms: Terms,
    /// Its arguments.
    pub arguments: BTreeMap<String, Bound>,
    /// What the call is about, by digests, as far as it was known.
    #[serde(default)]
    pub deeds: Vec<String>,
    /// Files of the workspace that its code comes from, with their digests.
    #[serde(default)]
    pub files: Vec<(String, String)>,
    /// The workspace.
    pub workspace: String,
}

/// What an argument may be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Bound {
    /// This very value, by its digest: values can be secrets, and are not kept.
    Exactly(String),
    /// Any text that this pattern matches: `*` stands for anything that stays inside a name.
    Like(String),
}

/// Whether an answer covers a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Covers {
    /// It does.
    Yes,
    /// It is about something else.
    No,
    /// It would, but the tool is not what was approved.
    Changed {
        /// The file that differs, as the tool's folder has it.
        file: String,
    },
    /// It would, but the code that the command runs is not what was approved.
    Stale {
        /// The file of the workspace that differs.
        file: String,
    },
}

impl Asked {
    /// An answer to exactly this.
    #[must_use]
    pub fn exactly(&self) -> Binding {
        let bound =
            |(name, value): (&String, &Value)| (name.clone(), Bound::Exactly(digest(value)));
        Binding {
            subject: self.subject.clone(),
            digest: self.digest.clone(),
            inputs: self.inputs.clone(),
            terms: self.terms.clone(),
            arguments: self.arguments.iter().map(bound).collect(),
            deeds: self
                .deeds
                .iter()
                .filter(|deed| deed.weight == Weight::Itself)
                .map(Deed::digest)
                .collect(),
            files: self.files.clone(),
            workspace: self.workspace.clone(),
        }
    }
}

impl Deed {
    /// Something that has no parts.
    #[must_use]
    pub fn whole(what: String, weight: Weight) -> Self {
        Self { what, part: Part::Whole, weight }
    }

    /// Values can be secrets, and are not kept.
    fn digest(&self) -> String {
        let what = digest(&Value::from(self.what.as_str()));
        match &self.part {
            Part::Whole => what,
            Part::Item(item) => format!("{what}.{}", digest(&Value::from(item.as_str()))),
            Part::Unknown => format!("{what}{UNKNOWN}"),
        }
    }
}

/// What stands for an argument that can be anything, behind the digest of its command.
const UNKNOWN: &str = ".?";

/// Whether one of the digests of what a call does is this one, or could be.
fn is_among(deed: &str, done: &[String]) -> bool {
    let doubted = deed.split_once('.').map(|(what, _)| format!("{what}{UNKNOWN}"));
    done.iter().any(|it| it == deed || doubted.as_ref() == Some(it))
}

impl Bound {
    fn fits(&self, value: &Value) -> bool {
        match self {
            Self::Exactly(expected) => digest(value) == *expected,
            Self::Like(pattern) => value.as_str().is_some_and(|text| like(pattern, text)),
        }
    }
}

impl Binding {
    /// Whether it covers a call.
    #[must_use]
    pub fn covers(&self, asked: &Asked) -> Covers {
        if self.subject != asked.subject
            || self.workspace != asked.workspace
            || (&self.terms.image, &self.terms.cwd) != (&asked.terms.image, &asked.terms.cwd)
            || asked.arguments.len() != self.arguments.len()
            || !self.fits(asked)
        {
            return Covers::No;
        }
        // The permissions of a tool are a part of what its policy's digest is of, so the tool comes first.
        if self.digest != asked.digest {
            return self.changed(asked).map_or(Covers::No, |file| Covers::Changed { file });
        }
        // Under another policy it is another question.
        if self.terms != asked.terms {
            return Covers::No;
        }
        match first_difference(&self.files, &asked.files) {
            Some(file) => Covers::Stale { file },
            None => Covers::Yes,
        }
    }

    /// Whether a never that was said to this is one to a call. Where a yes needs proof, a no needs only doubt: another
    /// folder, image or policy, a changed tool and further arguments make no other call of it, and neither does
    /// another way to do the same.
    #[must_use]
    pub fn forbids(&self, asked: &Asked) -> bool {
        let done: Vec<String> = asked.deeds.iter().map(Deed::digest).collect();
        let does = |deed: &String| is_among(deed, &done);
        let same = self.subject == asked.subject && self.fits(asked);
        let likewise = !self.deeds.is_empty() && self.deeds.iter().all(does);
        self.workspace == asked.workspace && (same || likewise)
    }

    /// Whether a call has all of the arguments, as they may be.
    fn fits(&self, asked: &Asked) -> bool {
        let fits = |(name, bound): (&String, &Bound)| {
            asked.arguments.get(name).is_some_and(|value| bound.fits(value))
        };
        self.arguments.iter().all(fits)
    }

    /// The first file that is not what it was; else one that is new, or gone: who names other files has changed itself.
    fn changed(&self, asked: &Asked) -> Option<String> {
        let now: BTreeMap<_, _> = asked.inputs.iter().cloned().collect();
        let before: BTreeMap<_, _> = self.inputs.iter().cloned().collect();
        let differs = |path: &&String| now.get(*path) != before.get(*path);
        let stayed = before.keys().filter(|path| now.contains_key(*path));
        // The tool's own file if nothing else differs: the code that was made of them does.
        let own = asked.inputs.first().map(|(path, _)| path);
        stayed.chain(before.keys()).chain(now.keys()).find(differs).or(own).cloned()
    }
}

/// The first file whose content is not what it was, or which is known on one side only.
pub(crate) fn first_difference(
    before: &[(String, String)],
    now: &[(String, String)],
) -> Option<String> {
    let missing = |from: &[(String, String)], of: &[(String, String)]| {
        of.iter().find(|it| !from.contains(it)).map(|(path, _)| path.clone())
    };
    missing(now, before).or_else(|| missing(before, now))
}

/// The digest of a value, however its keys are ordered.
fn digest(value: &Value) -> String {
    fn sorted(value: &Value) -> Value {
        match value {
            Value::Object(map) => {
                let keys: BTreeMap<_, _> = map.iter().collect();
                keys.into_iter().map(|(key, value)| (key.clone(), sorted(value))).collect()
            }
            Value::Array(items) => items.iter().map(sorted).collect(),
            other => other.clone(),
        }
    }
    blake3::hash(sorted(value).to_string().as_bytes()).to_hex().to_string()
}

/// What `*` does not stand for: what leads to another folder, and what begins another command in a shell.
const APART: &str = "/;&|<>()$`";

/// Whether a pattern matches a text whole. `*` stands for anything that stays inside a name, and nothing else is special.
/// A path that climbs is matched by no pattern.
fn like(pattern: &str, text: &str) -> bool {
    if !pattern.contains('*') {
        return pattern == text;
    }
    let inside = |c: Option<char>| c.is_some_and(|c| !APART.contains(c) && !c.is_control());
    text.split('/').all(|part| part != "..")
        && fits_within(&star_tokens(pattern), text.as_bytes(), inside)
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn asked(arguments: Value, digest: &str, inputs: &[(&str, &str)]) -> Asked {
        Asked {
            subject: "tool:t".to_owned(),
            digest: digest.to_owned(),
            inputs: inputs
                .iter()
                .map(|(path, it)| ((*path).to_owned(), (*it).to_owned()))
                .collect(),
            terms: Terms { policy: "p".to_owned(), image: None, cwd: "/w".to_owned() },
            arguments: arguments.as_object().unwrap().clone(),
            deeds: Vec::new(),
            files: Vec::new(),
            workspace: "/w".to_owned(),
        }
    }

    #[test]
    fn a_never_to_a_command_is_kept_item_by_item() {
        let run = |program: &str, items: &[Option<&str>]| -> Vec<Deed> {
            let what = format!("run {program}");
            let part = |item: &Option<&str>| match item {
                Some(text) => Part::Item((*text).to_owned()),
                None => Part::Unknown,
            };
            let deed = |item| Deed { what: what.clone(), part: part(item), weight: Weight::Itself };
            let whole = Deed::whole(what.clone(), Weight::Around);
            items.iter().map(deed).chain([whole]).collect()
        };
        let with = |deeds: Vec<Deed>, words: &str| Asked {
            deeds,
            ..asked(json!({ "words": words }), "", &[])
        };
        let never = with(run("touch", &[Some("/w/out/n")]), "1").exactly();
        for same in [
            run("touch", &[Some("/w/out/n")]),
            run("touch", &[Some("/w/a"), Some("/w/out/n")]),
            run("touch", &[None]),
        ] {
            assert!(never.forbids(&with(same.clone(), "2")), "{same:?}");
        }
        for other in
            [run("touch", &[Some("/w/a")]), run("rm", &[Some("/w/out/n")]), run("rm", &[None])]
        {
            assert!(!never.forbids(&with(other.clone(), "2")), "{other:?}");
        }
    }

    #[test]
    fn an_answer_holds_for_the_files_of_the_code_as_they_were() {
        let file = |path: &str, digest: &str| (path.to_owned(), digest.to_owned());
        let with = |files: &[(String, String)]| Asked {
            files: files.to_vec(),
            ..asked(json!({}), "", &[])
        };
        let binding = with(&[file("GNUmakefile", ""), file("Makefile", "1")]).exactly();
        assert_eq!(
            binding.covers(&with(&[file("GNUmakefile", ""), file("Makefile", "1")])),
            Covers::Yes
        );
        for (now, differs) in [
            ([file("GNUmakefile", ""), file("Makefile", "2")], "Makefile"),
            ([file("GNUmakefile", "3"), file("Makefile", "1")], "GNUmakefile"),
        ] {
            assert_eq!(binding.covers(&with(&now)), Covers::Stale { file: differs.to_owned() });
        }
        assert_eq!(binding.covers(&with(&[])), Covers::Stale { file: "GNUmakefile".to_owned() });
    }

    #[test]
    fn a_never_needs_only_doubt() {
        let does = |what: &[(&str, Weight)]| {
            let deed = |(what, weight): &(&str, Weight)| Deed::whole((*what).to_owned(), *weight);
            what.iter().map(deed).collect::<Vec<_>>()
        };
        let first = Asked {
            deeds: does(&[("run timeout 5 x", Weight::Around), ("run x", Weight::Itself)]),
            ..asked(json!({"a": 1}), "d", &[("t.yml", "1")])
        };
        let never = first.exactly();
        let terms =
            Terms { policy: "q".to_owned(), image: Some("i".to_owned()), cwd: "/w/src".to_owned() };
        let changed = asked(json!({"a": 1, "b": 2}), "e", &[("t.yml", "2")]);
        let subject = "exec".to_owned();
        for same in [
            first.clone(),
            Asked { terms, ..first.clone() },
            changed,
            Asked {
                subject: subject.clone(),
                deeds: does(&[("run x", Weight::Itself), ("run y", Weight::Itself)]),
                ..asked(json!({}), "", &[])
            },
            Asked {
                subject: subject.clone(),
                deeds: does(&[("run x", Weight::Around)]),
                ..asked(json!({}), "", &[])
            },
        ] {
            assert!(never.forbids(&same), "{same:?}");
        }
        for other in [
            Asked { workspace: "/v".to_owned(), ..first.clone() },
            asked(json!({"a": 2}), "d", &[("t.yml", "1")]),
            Asked { subject: subject.clone(), ..asked(json!({"a": 1}), "d", &[]) },
            Asked {
                subject,
                deeds: does(&[("run y", Weight::Itself)]),
                ..asked(json!({}), "", &[])
            },
        ] {
            assert!(!never.forbids(&other), "{other:?}");
        }
    }

    #[test]
    fn an_answer_covers_the_same_call_and_no_other() {
        let files = [("t.yml", "1"), ("lib.ts", "2")];
        let first = asked(json!({"a": 1, "b": {"x": 1, "y": 2}}), "d", &files);
        let binding = first.exactly();
        let again = asked(json!({"b": {"y": 2, "x": 1}, "a": 1}), "d", &files);
        assert_eq!(binding.covers(&again), Covers::Yes, "the order of keys says nothing");
        for other in [
            json!({"a": 2, "b": {"x": 1, "y": 2}}),
            json!({"a": 1}),
            json!({"a": 1, "b": {"x": 1, "y": 2}, "c": 0}),
        ] {
            assert_eq!(binding.covers(&asked(other, "d", &files)), Covers::No);
        }
        let elsewhere = Asked { workspace: "/v".to_owned(), ..first.clone() };
        assert_eq!(binding.covers(&elsewhere), Covers::No);
        let another = Asked { subject: "tool:u".to_owned(), ..first.clone() };
        assert_eq!(binding.covers(&another), Covers::No);
        let terms = first.terms.clone();
        for terms in [
            Terms { policy: "q".to_owned(), ..terms.clone() },
            Terms { image: Some("other".to_owned()), ..terms.clone() },
            Terms { cwd: "/w/src".to_owned(), ..terms },
        ] {
            assert_eq!(binding.covers(&Asked { terms, ..first.clone() }), Covers::No);
        }
    }

    #[test]
    fn a_changed_tool_is_told_by_the_file_that_changed() {
        let binding = asked(json!({}), "d", &[("t.yml", "1"), ("lib.ts", "2")]).exactly();
        for (inputs, file) in [
            (&[("t.yml", "1"), ("lib.ts", "3")][..], "lib.ts"),
            (&[("t.yml", "1"), ("lib.ts", "2"), ("new.ts", "4")], "new.ts"),
            (&[("t.yml", "1")], "lib.ts"),
            (&[("t.yml", "9"), ("lib.ts", "2")], "t.yml"),
            (&[("t.yml", "9")], "t.yml"),
            (&[("t.yml", "9"), ("a.ts", "4")], "t.yml"),
        ] {
            let mut now = asked(json!({}), "e", inputs);
            // Its permissions may have changed with it.
            now.terms.policy = "another".to_owned();
            assert_eq!(binding.covers(&now), Covers::Changed { file: file.to_owned() });
        }
    }

    #[test]
    fn a_pattern_covers_texts_only() {
        let mut binding = asked(json!({"path": "src/a.ts"}), "d", &[]).exactly();
        binding.arguments.insert("path".to_owned(), Bound::Like("src/*.ts".to_owned()));
        for (value, covers) in [
            (json!("src/b.ts"), Covers::Yes),
            (json!("src/b.tsx"), Covers::No),
            (json!("etc/b.ts"), Covers::No),
            (json!(["src/b.ts"]), Covers::No),
        ] {
            assert_eq!(binding.covers(&asked(json!({"path": value}), "d", &[])), covers);
        }
        assert!(
            like("a*b*c", "a--b--c") && like("*", "") && !like("a*a", "a") && !like("a*b*c", "acb")
        );
        assert!(like("src/*/*.ts", "src/a/b.ts") && !like("src/../*", "src/../x"));
    }

    #[test]
    fn a_pattern_stays_inside_a_name() {
        for (pattern, inside, outside) in [
            ("src/*", "src/a b.ts", "src/deep/b.ts"),
            ("src/*", "src/..b", "src/.."),
            ("*", "a", ".."),
            ("*/x", "a/x", "../x"),
            ("src/*.ts", "src/a.ts", "src/../../etc/a.ts"),
            ("npm test*", "npm test --all", "npm test; rm -rf ."),
            ("npm test*", "npm test", "npm test && git push"),
            ("echo *", "echo hi", "echo $(id)"),
            ("echo *", "echo hi", "echo `id`"),
            ("echo *", "echo hi", "echo hi\nid"),
            ("echo *", "echo hi", "echo hi > file"),
        ] {
            assert!(like(pattern, inside), "{pattern} {inside}");
            assert!(!like(pattern, outside), "{pattern} {outside}");
        }
    }
}
