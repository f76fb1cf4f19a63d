//! Which names a list of patterns could hold at all.
//!
//! Duty: a look at the last part of a path that rules most of them out, so that the patterns themselves
//! are asked about a few names and not about every file of a workspace. Non-goals: deciding; this errs
//! towards yes, and after a yes the caller asks the list itself.
//!
//! What it stands on: a path that a list holds is held by one of its patterns that do not subtract, and
//! the last part of a pattern covers the last part of the path. A pattern `folder/**` holds the folder,
//! and whatever is below a folder of that name: there nothing can be ruled out by a name.

use super::grants::alternatives;

/// The last parts of the paths that some patterns could hold.
#[derive(Debug)]
pub(crate) struct Names {
    /// What the patterns could hold.
    held: Set,
    /// Folders below which they could hold anything.
    folders: Set,
}

impl Names {
    /// Reads patterns as written; those with a leading `!` only subtract.
    pub(crate) fn new<'p>(patterns: impl IntoIterator<Item = &'p str>) -> Self {
        let mut names = Self { held: Set::default(), folders: Set::default() };
        for pattern in patterns.into_iter().filter(|text| !text.starts_with('!')) {
            match alternatives(pattern) {
                Some(texts) => texts.iter().for_each(|text| names.add(text)),
                None => names.held.any = true,
            }
        }
        names
    }

    fn add(&mut self, pattern: &str) {
        let (folder, last) = pattern.rsplit_once('/').unwrap_or(("", pattern));
        if last == "**" {
            let name = folder.rsplit('/').next().unwrap_or_default();
            self.held.add(name);
            self.folders.add(name);
        } else {
            self.held.add(last);
        }
    }

    /// Whether the patterns could hold a path with this last part, in a folder that
    /// [`is_deep`](Self::is_deep) says no of.
    pub(crate) fn could_hold(&self, name: &[u8]) -> bool {
        self.held.could_hold(name)
    }

    /// Whether the patterns could hold any path below this one, whatever its name.
    pub(crate) fn is_deep<'n>(&self, mut parts: impl Iterator<Item = &'n [u8]>) -> bool {
        self.held.any || parts.any(|name| self.folders.could_hold(name))
    }
}

/// Names, and beginnings and ends of names.
#[derive(Debug)]
struct Set {
    /// Every name.
    any: bool,
    exact: Vec<Vec<u8>>,
    /// What stands before the star, and behind it.
    around: Vec<(Vec<u8>, Vec<u8>)>,
    /// By last byte: bit `n` is set for a name of `n` bytes, the highest bit for all that are longer.
    lengths: [u64; 256],
    /// By first byte: patterns with nothing behind the star.
    begins: [bool; 256],
    /// By last byte: patterns with something behind the star.
    ends: [bool; 256],
}

impl Default for Set {
    fn default() -> Self {
        Self {
            any: false,
            exact: Vec::new(),
            around: Vec::new(),
            lengths: [0; 256],
            begins: [false; 256],
            ends: [false; 256],
        }
    }
}

fn length_bit(name: &[u8]) -> u64 {
    1 << name.len().min(63)
}

impl Set {
    /// Takes one part of a pattern. What is not plainly a name or one star in a name counts as every
    /// name; so does a control character, which the planner's own probing for folders uses.
    fn add(&mut self, part: &str) {
        let odd = |c: char| "?[]{}\\".contains(c) || c.is_control();
        match part.split_once('*') {
            _ if part.is_empty() || part.contains(odd) => self.any = true,
            None => {
                let name = part.as_bytes().to_vec();
                if let Some(last) = name.last() {
                    self.lengths[usize::from(*last)] |= length_bit(&name);
                }
                self.exact.push(name);
            }
            Some((before, after)) => match (before.as_bytes(), after.as_bytes()) {
                (_, after) if after.contains(&b'*') => self.any = true,
                ([], []) => self.any = true,
                (before, after) => {
                    match (after.last(), before.first()) {
                        (Some(last), _) => self.ends[usize::from(*last)] = true,
                        (None, Some(first)) => self.begins[usize::from(*first)] = true,
                        (None, None) => self.any = true,
                    }
                    self.around.push((before.to_vec(), after.to_vec()));
                }
            },
        }
    }

    fn could_hold(&self, name: &[u8]) -> bool {
        let (Some(first), Some(last)) = (name.first(), name.last()) else { return true };
        // Lists see names as text: what is none in a name looks to them like something else.
        if self.any || (!name.is_ascii() && std::str::from_utf8(name).is_err()) {
            return true;
        }
        let (first, last) = (usize::from(*first), usize::from(*last));
        if self.lengths[last] & length_bit(name) != 0
            && self.exact.iter().any(|exact| exact == name)
        {
            return true;
        }
        (self.begins[first] || self.ends[last])
            && self.around.iter().any(|(before, after)| {
                name.len() >= before.len() + after.len()
                    && name.starts_with(before)
                    && name.ends_with(after)
            })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::workspace::grants::PathSet;
    use crate::workspace::grants::tests::globs;
    use crate::workspace::memory::tests::Dice;
    use std::path::Path;

    #[test]
    fn names_are_ruled_out_by_their_ends() {
        let names =
            Names::new(["**/.env", "**/.env.*", "!**/x", "**/*.pem", "**/secrets/**", "a/b*c"]);
        for name in [".env", ".env.local", "k.pem", "secrets", "bc", "bxc"] {
            assert!(names.could_hold(name.as_bytes()), "{name}");
        }
        for name in ["x", "env", ".environment", "pem", "b", "main.rs"] {
            assert!(!names.could_hold(name.as_bytes()), "{name}");
        }
        assert!(names.could_hold(b"\xff"), "what is no text is not ruled out");
        let deep = |path: &str| names.is_deep(path.split('/').map(str::as_bytes));
        assert!(deep("a/secrets") && deep("secrets/b") && !deep("a/b"));
        for any in ["**", "a/*", "a/?", "[ab]", "a\\b", "{a", "a}", "*/**", "**/**", "a*b*"] {
            assert!(Names::new([any]).could_hold(b"zz"), "{any}");
        }
    }

    #[test]
    fn nothing_that_a_list_holds_is_ruled_out() {
        let parts = [
            "a", "b", "*", "**", "?", "a*", "*b", "*.rs", "{a,b}", "{a,b*}c", "[ab]", "[!a]",
            ".env", ".e?v", "é", "ab", "a*b", "**", "**",
        ];
        let names = ["a", "b", "ab", "bc", "axb", ".env", "x.rs", "é", "abc", "zz"];
        let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
        let mut ruled_out = 0;
        for _ in 0..10_000 {
            let mut some = |from: &[&str], most: usize| -> Vec<String> {
                (0..=dice.roll(most)).map(|_| dice.pick(from).to_owned()).collect()
            };
            let patterns = [some(&parts, 3).join("/"), some(&parts, 3).join("/")];
            let path = some(&names, 4);
            let texts: Vec<&str> = patterns.iter().map(String::as_str).collect();
            let (set, known) = (globs(&texts), Names::new(texts.iter().copied()));
            let (last, above) = path.split_last().unwrap();
            if !known.could_hold(last.as_bytes())
                && !known.is_deep(above.iter().map(|part| part.as_bytes()))
            {
                ruled_out += 1;
                let path = path.join("/");
                // Neither the path nor, if it is a folder, all that is below it.
                assert!(!set.matches(Path::new(&path)), "{path} {texts:?}");
                assert!(!set.covers(Path::new(&path)), "below {path} {texts:?}");
            }
        }
        assert!(ruled_out > 500, "{ruled_out}");
    }
}
