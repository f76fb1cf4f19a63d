//! Paths: `*`, `?` and `[…]` stay inside a component, `**` crosses, `{a,b}` are alternatives.
//!
//! Matched component by component as written: nothing is compiled, because a process that decides one
//! command would pay more for that than for the decision. A test holds it equal to `globset`, which says what
//! a pattern is; but `?` is a character here and a byte there.

use std::fmt;

use crate::braces::{BraceError, Braces, Grammar};
use crate::name::{Token, Unclosed, fits, path_tokens};

/// A pattern of paths.
#[derive(Debug)]
pub struct Glob {
    alternatives: Vec<Vec<Component>>,
}

/// Why a text is no pattern of paths.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GlobError {
    /// A bracket or brace is not closed, or a backslash has nothing behind it.
    Unclosed,
    /// The braces make too many alternatives.
    TooMany,
}

impl fmt::Display for GlobError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Unclosed => "a bracket or brace is not closed",
            Self::TooMany => "the braces make too many alternatives",
        })
    }
}

impl std::error::Error for GlobError {}

impl From<Unclosed> for GlobError {
    fn from(Unclosed: Unclosed) -> Self {
        Self::Unclosed
    }
}

impl From<BraceError> for GlobError {
    fn from(error: BraceError) -> Self {
        match error {
            BraceError::TooMany => Self::TooMany,
            BraceError::Unclosed | BraceError::Unopened | BraceError::NotAlternatives => {
                Self::Unclosed
            }
        }
    }
}

/// Whether marks cover a dot at the beginning of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dots {
    /// They do.
    Covered,
    /// Only a dot does that is written.
    Written,
}

/// What a path is to a pattern.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fit {
    /// It is covered.
    pub matches: bool,
    /// Something below it can be.
    pub below: bool,
}

#[derive(Debug, PartialEq, Eq)]
enum Component {
    /// `**`: any number of components, at least one at the end.
    Deep,
    /// Exactly this name.
    Name(String),
    /// What these cover.
    Marks(Vec<Token>),
}

impl Glob {
    /// Most alternatives that the braces of one pattern may make.
    pub const MAX_ALTERNATIVES: usize = 256;

    /// Reads a pattern.
    ///
    /// # Errors
    /// It leaves a bracket or brace open, or makes too many alternatives.
    pub fn new(pattern: &str) -> Result<Self, GlobError> {
        let texts = Braces::parse(pattern, Grammar::Path)?.expand(Self::MAX_ALTERNATIVES)?;
        Self::of(texts.iter().map(|text| text.split('/')))
    }

    /// Takes alternatives that are written out, each by its components.
    ///
    /// # Errors
    /// A bracket is left open.
    pub fn of<'c, A: IntoIterator<Item = &'c str>>(
        alternatives: impl IntoIterator<Item = A>,
    ) -> Result<Self, GlobError> {
        let read = |components: A| components.into_iter().map(Component::new).collect();
        let alternatives = alternatives.into_iter().map(read).collect::<Result<_, _>>()?;
        Ok(Self { alternatives })
    }

    /// The same as [`new`](Self::new), and the folder whose content it names: `folder/**` is the folder too.
    ///
    /// # Errors
    /// As [`new`](Self::new).
    pub fn with_folder(pattern: &str) -> Result<Self, GlobError> {
        let mut glob = Self::new(pattern)?;
        if let Some(folder) = pattern.strip_suffix("/**").filter(|folder| !folder.ends_with("**")) {
            glob.alternatives.extend(Self::new(folder)?.alternatives);
        }
        Ok(glob)
    }

    /// Whether it covers a path, given by its components.
    #[must_use]
    pub fn matches(&self, path: &[&str]) -> bool {
        self.any(|pattern| covers(pattern, path, Extent::Whole))
    }

    /// Whether it covers a path or a folder above it.
    #[must_use]
    pub fn matches_or_above(&self, path: &[&str]) -> bool {
        self.any(|pattern| covers(pattern, path, Extent::Beginning))
    }

    /// What a path is to it, for a walk through a tree.
    #[must_use]
    pub fn fit(&self, path: &[&str], dots: Dots) -> Fit {
        let none = Fit { matches: false, below: false };
        self.alternatives.iter().fold(none, |fit, pattern| {
            let one = walk(pattern, path, Extent::Whole, dots);
            Fit { matches: fit.matches || one.matches, below: fit.below || one.below }
        })
    }

    fn any(&self, covers: impl Fn(&[Component]) -> bool) -> bool {
        self.alternatives.iter().any(|pattern| covers(pattern))
    }
}

/// How much of a path a pattern has to cover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Extent {
    /// All of it.
    Whole,
    /// Its first component, or more of them.
    Beginning,
}

impl Component {
    fn new(text: &str) -> Result<Self, Unclosed> {
        if text == "**" {
            return Ok(Self::Deep);
        }
        let tokens = path_tokens(text)?;
        let plain = |token: &Token| match token {
            Token::Char(c) => Some(*c),
            Token::Byte(_) | Token::Star | Token::One | Token::Set { .. } => None,
        };
        let name: Option<String> = tokens.iter().map(plain).collect();
        Ok(name.map_or_else(|| Self::Marks(tokens), Self::Name))
    }

    fn fits(&self, name: &str, dots: Dots) -> bool {
        match self {
            Self::Deep => dots == Dots::Covered || !name.starts_with('.'),
            Self::Name(known) => known == name,
            Self::Marks(tokens) => {
                let written = matches!(tokens.first(), Some(Token::Char('.')));
                (dots == Dots::Covered || written || !name.starts_with('.'))
                    && fits(tokens, name.as_bytes())
            }
        }
    }
}

fn covers(pattern: &[Component], path: &[&str], extent: Extent) -> bool {
    // Most patterns are `**/name`: only the names next to each other matter.
    if let [Component::Deep, rest @ ..] = pattern
        && !rest.is_empty()
        && !rest.contains(&Component::Deep)
    {
        let fits = |names: &[&str]| {
            rest.iter().zip(names).all(|(part, name)| part.fits(name, Dots::Covered))
        };
        return match extent {
            Extent::Whole => {
                path.len().checked_sub(rest.len()).is_some_and(|from| fits(&path[from..]))
            }
            Extent::Beginning => path.windows(rest.len()).any(fits),
        };
    }
    walk(pattern, path, extent, Dots::Covered).matches
}

/// Compares from the beginning. On a mismatch only the last `**` is tried anew, with one name more: where
/// a dot stops it, it stops every earlier one too, because only a written dot covers that name.
fn walk(pattern: &[Component], path: &[&str], extent: Extent, dots: Dots) -> Fit {
    let crosses = |names: &[&str]| names.iter().all(|name| Component::Deep.fits(name, dots));
    let (mut p, mut n) = (0, 0);
    let mut back: Option<(usize, usize)> = None;
    while n < path.len() {
        match pattern.get(p) {
            Some(Component::Deep) if p + 1 == pattern.len() => {
                let all = crosses(&path[n..]);
                return Fit { matches: all, below: all };
            }
            Some(Component::Deep) => {
                back = Some((p, n));
                p += 1;
                continue;
            }
            Some(component) if component.fits(path[n], dots) => {
                p += 1;
                n += 1;
                continue;
            }
            None if extent == Extent::Beginning => return Fit { matches: true, below: false },
            Some(_) | None => {}
        }
        match back {
            Some((deep, taken)) if crosses(&path[taken..=taken]) => {
                back = Some((deep, taken + 1));
                p = deep + 1;
                n = taken + 1;
            }
            Some(_) | None => return Fit { matches: false, below: false },
        }
    }
    // What is left of the pattern can be below; so can another match if `**` can take all that is here.
    let again = back.is_some_and(|(_, taken)| crosses(&path[taken..]));
    Fit { matches: p == pattern.len(), below: p < pattern.len() || again }
}

#[cfg(test)]
#[path = "path_tests.rs"]
mod tests;
