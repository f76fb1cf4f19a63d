//! Command patterns: `cargo {build,test} ...` compared with the canonical reading of a command.
//!
//! Words; `*` stays inside a word, `{a,b}` are alternatives, a final `...` admits further words. Words
//! that begin with a dash are options, in any order and any spelling that the program has; the others
//! are program, subcommands and operands, in order. For a program that nobody described, words are
//! compared one by one. A program `./**` or `./**/bin/*` is a path of the workspace: the path by which a
//! command is called, joined with the folder that it runs in, must lie in the workspace and fit.

use runner_glob::{BraceError, Braces, Glob, Grammar, fits_within, star_tokens};

use crate::paths;
use crate::reading::Level;

/// Most alternatives that the braces of one pattern may make.
const MAX_ALTERNATIVES: usize = 256;

/// How sure a match must be: an allow needs proof, a deny needs only doubt.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Certainty {
    /// Everything that the pattern says is known to be so.
    Proof,
    /// Nothing that is known rules it out.
    Doubt,
}

/// One pattern, all its alternatives written out.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
pub struct Pattern {
    /// As written.
    pub text: String,
    alternatives: Vec<Alternative>,
}

#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
struct Alternative {
    words: Vec<String>,
    /// `...` admits further words.
    open: bool,
}

impl Pattern {
    /// Reads a pattern; the error says the right form.
    ///
    /// # Errors
    /// The text is no pattern.
    pub fn parse(text: &str) -> Result<Self, String> {
        let alternatives = expand(text)?
            .into_iter()
            .map(|line| {
                let mut words: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
                let open = words.last().is_some_and(|word| word == "...");
                if open {
                    words.pop();
                }
                if words.is_empty() {
                    return Err("a pattern begins with the name of a program".to_owned());
                }
                if words.iter().any(|word| word.contains("...")) {
                    return Err("`...` stands alone, at the end".to_owned());
                }
                if words[0].starts_with('-') {
                    return Err("a pattern begins with the name of a program, not with an option"
                        .to_owned());
                }
                if let Some(path) = workspace_path(&words[0]) {
                    paths::check_pattern(path)?;
                }
                Ok(Alternative { words, open })
            })
            .collect::<Result<_, _>>()?;
        if text.contains(['\'', '"', '`', '$', ';', '|', '&', '<', '>']) {
            return Err(
                "a pattern is words, not a shell line: no quotes and no operators".to_owned()
            );
        }
        Ok(Self { text: text.to_owned(), alternatives })
    }

    /// Whether the command of a level is meant. The workspace is what `./**` stands for.
    #[must_use]
    pub fn matches(&self, level: &Level, workspace: &str, certainty: Certainty) -> bool {
        self.alternatives.iter().any(|alternative| alternative.matches(level, workspace, certainty))
    }

    /// The programs that it names, as written.
    pub fn programs(&self) -> impl Iterator<Item = &str> {
        self.alternatives.iter().map(|alternative| alternative.words[0].as_str())
    }
}

impl Alternative {
    fn matches(&self, level: &Level, workspace: &str, certainty: Certainty) -> bool {
        let called = level.words.first().and_then(|word| word.text());
        let program = &self.words[0];
        let named = program == &level.program
            || called.is_some_and(|called| is_in_workspace(program, called, level, workspace))
            || called.is_some_and(|called| is_program(program, called))
            || (level.known.is_some() && is_program(program, &level.program));
        if !named {
            // A program whose name is not known could be this one, and so could one at the end of a path.
            return certainty == Certainty::Doubt
                && !level.words.is_empty()
                && called.is_none_or(|called| {
                    let last = called.rsplit_once('/').map(|(_, last)| last);
                    // What the catalog knows is read as if it were called by its name.
                    last.is_some_and(|last| {
                        is_program(program, last) && crate::catalog::lookup(last).is_none()
                    }) && self.may_be(level)
                });
        }
        if level.known.is_none() {
            return self.matches_words(level, certainty);
        }
        self.matches_reading(level, certainty)
            || (certainty == Certainty::Doubt && self.is_possible(level))
    }

    /// Word by word, for a program without grammar.
    fn matches_words(&self, level: &Level, certainty: Certainty) -> bool {
        let wanted = &self.words[1..];
        let given = &level.operands;
        let long_enough =
            if self.open { given.len() >= wanted.len() } else { given.len() == wanted.len() };
        long_enough
            && wanted
                .iter()
                .zip(given)
                .all(|(pattern, word)| fits(pattern, word.as_deref(), certainty))
    }

    /// Whether words that nobody read could be this command: what the pattern names stands there in
    /// order. Options have many spellings, so none of them rules it out.
    fn may_be(&self, level: &Level) -> bool {
        let mut given = level.operands.iter();
        self.words[1..]
            .iter()
            .filter(|word| !is_option(word))
            .all(|pattern| given.any(|word| fits(pattern, word.as_deref(), Certainty::Doubt)))
    }

    fn matches_reading(&self, level: &Level, certainty: Certainty) -> bool {
        let mut positions = level.path[1..]
            .iter()
            .map(|name| Some(name.as_str()))
            .chain(level.operands.iter().map(Option::as_deref));
        let mut used = vec![false; level.options.len()];
        let words = &self.words[1..];
        let mut at = 0;
        while let Some(word) = words.get(at) {
            at += 1;
            if is_option(word) {
                match self.option(word, &words[at..], level, &used, certainty) {
                    Some((option, values)) => {
                        used[option] = true;
                        at += values;
                    }
                    None if cluster(word, level, &mut used) => {}
                    None => return false,
                }
            } else if !positions.next().is_some_and(|given| fits(word, given, certainty)) {
                return false;
            }
        }
        self.open || (positions.next().is_none() && used.iter().all(|used| *used) && level.complete)
    }

    /// An option that is given and not used yet, and how many of the next words are its values: they may
    /// be attached, written as the next words, or left out at the end of an open pattern.
    fn option(
        &self,
        word: &str,
        next: &[String],
        level: &Level,
        used: &[bool],
        certainty: Certainty,
    ) -> Option<(usize, usize)> {
        let (name, attached) = word.split_once('=').map_or((word, None), |(n, v)| (n, Some(v)));
        let mut named =
            level.options.iter().enumerate().filter(|(at, option)| {
                !used[*at] && option.names.iter().any(|known| known == name)
            });
        named.find_map(|(at, option)| {
            let mut values = option.values.iter().map(Option::as_deref);
            if let Some(wanted) = attached {
                return values.any(|value| fits(wanted, value, certainty)).then_some((at, 0));
            }
            let written = option.values.len().min(next.len());
            let enough = written == option.values.len() || self.open;
            (enough && values.zip(next).all(|(value, wanted)| fits(wanted, value, certainty)))
                .then_some((at, written))
        })
    }

    /// Something in the command was not understood, and nothing that was rules this pattern out.
    fn is_possible(&self, level: &Level) -> bool {
        let unknown_words = level.operands.iter().any(Option::is_none);
        if level.complete && !unknown_words {
            return false;
        }
        let mut wanted = self.words[1..].iter().filter(|word| !word.starts_with('-'));
        level.path[1..]
            .iter()
            .all(|name| wanted.next().is_none_or(|pattern| is_word(pattern, name)))
    }
}

fn is_option(word: &str) -> bool {
    word.len() > 1 && word.starts_with('-')
}

/// `-rf` is `-r` and `-f`, wherever both stand.
fn cluster(word: &str, level: &Level, used: &mut [bool]) -> bool {
    let letters = word.strip_prefix('-').filter(|letters| !letters.starts_with('-'));
    letters.is_some_and(|letters| letters.len() > 1)
        && letters.unwrap_or_default().chars().all(|letter| {
            let mut name = String::from('-');
            name.push(letter);
            let found = level.options.iter().position(|option| option.names.contains(&name));
            found.is_some_and(|at| {
                used[at] = true;
                true
            })
        })
}

/// Whether a word of a pattern covers a word that may not be known.
fn fits(pattern: &str, word: Option<&str>, certainty: Certainty) -> bool {
    match word {
        Some(word) => is_word(pattern, word),
        None => certainty == Certainty::Doubt,
    }
}

/// A bare name never matches a path: `*` stops at a slash here, `**` does not. A path of the workspace is
/// compared by [`is_in_workspace`] alone.
fn is_program(pattern: &str, name: &str) -> bool {
    if pattern == "**" {
        return true;
    }
    if workspace_path(pattern).is_some() {
        return false;
    }
    pattern == name || (pattern.contains('*') && star(pattern, name, |c| c != Some('/')))
}

/// The path pattern of a program in the workspace: `**` for `./**`. Without `**` a program with a slash is
/// compared as it is written.
fn workspace_path(program: &str) -> Option<&str> {
    program.strip_prefix("./").filter(|path| path.split('/').any(|part| part == "**"))
}

/// Whether a command is called by a path that lies in the workspace and fits `./**`. A bare name is none.
fn is_in_workspace(program: &str, called: &str, level: &Level, workspace: &str) -> bool {
    let Some(pattern) = workspace_path(program).filter(|_| called.contains('/')) else {
        return false;
    };
    let path = paths::join(&level.cwd, called);
    let below = paths::below(workspace, &path).filter(|below| *below != ".");
    below.is_some_and(|below| {
        let names: Vec<&str> = below.split('/').collect();
        Glob::new(pattern).is_ok_and(|glob| glob.matches(&names))
    })
}

/// Whether a word of a pattern covers a word.
#[must_use]
pub fn is_word(pattern: &str, word: &str) -> bool {
    pattern == word || (pattern.contains('*') && star(pattern, word, |_| true))
}

/// `*` is any run of characters that `inside` accepts.
fn star(pattern: &str, word: &str, inside: impl Fn(Option<char>) -> bool) -> bool {
    fits_within(&star_tokens(pattern), word.as_bytes(), inside)
}

/// Writes the alternatives of braces out. They do not nest.
fn expand(text: &str) -> Result<Vec<String>, String> {
    let all =
        Braces::parse(text, Grammar::Command).and_then(|braces| braces.expand(MAX_ALTERNATIVES));
    all.map_err(|error| match error {
        BraceError::Unclosed => "a `{` without its `}`".to_owned(),
        BraceError::Unopened => "a `}` without its `{`".to_owned(),
        BraceError::NotAlternatives => "alternatives are written `{a,b}`".to_owned(),
        BraceError::TooMany => format!("more than {MAX_ALTERNATIVES} alternatives"),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn braces_are_written_out() {
        assert_eq!(expand("a {b,c} {d,e}").unwrap(), ["a b d", "a b e", "a c d", "a c e"]);
        for text in ["a {b", "a b}", "a {b}", "a {b,}", "a {b,{c,d}}"] {
            assert!(expand(text).is_err(), "{text}");
        }
    }

    #[test]
    fn stars_stay_inside_a_word() {
        assert!(is_word("test*", "test:unit") && is_word("*", "x") && is_word("a*c*e", "abcde"));
        assert!(!is_word("test*", "tes") && !is_word("a*c", "ab"));
        assert!(
            is_program("*", "cat")
                && !is_program("*", "./cat")
                && is_program("./*", "./cat")
                && !is_program("./*", "./a/cat")
        );
        assert!(is_program("**", "/x/cat"));
        assert!(!is_program("./**", "./cat") && !is_program("./**/x", "./**/x"));
    }

    #[test]
    fn what_is_no_pattern_is_explained() {
        for text in ["", "...", "-x", "a ... b", "a 'b'", "a; b", "a | b", "$X"] {
            assert!(Pattern::parse(text).is_err(), "{text}");
        }
    }
}
