//! Real counts of tokens, by the tokenizer of current models, and a list of those that were counted before.
//!
//! The tokenizer's table takes a tenth of a second to load, so only who asks for real counts pays for it; what was
//! counted once is remembered by the digest of its text, in a file that can be lost. Models of others count a little
//! differently; the order of sizes is the same.

use std::collections::HashMap;
use std::fs::{self, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};

use rustix::fs::OFlags;

use super::definition::{Definition, Tokens};
use super::export::shown;

/// The largest list that is read; a longer one begins anew.
const MAX_BYTES: u64 = 4 << 20;
/// Characters of a digest that name a text.
const DIGEST: usize = 32;
/// What the counts are by; another tokenizer is another list.
const FILE: &str = "tokens-o200k";

/// Counts that are known.
#[derive(Debug)]
pub struct Counts {
    file: Option<PathBuf>,
    known: HashMap<String, u32>,
    fresh: Vec<(String, u32)>,
}

impl Counts {
    /// Those in the folder of our state, or none.
    #[must_use]
    pub fn remembered(state: Option<&Path>) -> Self {
        let file = state.map(|state| state.join(FILE));
        let known = file.as_ref().and_then(read).unwrap_or_default();
        Self { file, known, fresh: Vec::new() }
    }

    /// What a tool costs, as far as it is known without counting: what its author says, a count, an estimate.
    #[must_use]
    pub fn known(&self, definition: &Definition) -> Tokens {
        match definition.tokens {
            Tokens::Estimated(_) => {
                let counted = self.known.get(&key(&text(definition)));
                counted.map_or(definition.tokens, |figure| Tokens::Counted(*figure))
            }
            said => said,
        }
    }

    /// What a tool costs; it is counted at the first use.
    pub fn count(&mut self, definition: &Definition) -> Tokens {
        let Tokens::Estimated(_) = self.known(definition) else { return self.known(definition) };
        let text = text(definition);
        let figure = count(&text);
        self.known.insert(key(&text), figure);
        self.fresh.push((key(&text), figure));
        Tokens::Counted(figure)
    }

    /// Keeps what was counted. Failing to costs time only.
    pub fn remember(&mut self) {
        let _ = self.try_remember();
        self.fresh.clear();
    }

    fn try_remember(&self) -> Option<()> {
        let (file, true) = (self.file.as_ref()?, !self.fresh.is_empty()) else { return None };
        fs::DirBuilder::new().recursive(true).mode(0o700).create(file.parent()?).ok()?;
        let lines: String =
            self.fresh.iter().map(|(key, figure)| format!("{key} {figure}\n")).collect();
        let full = fs::symlink_metadata(file).is_ok_and(|meta| meta.len() > MAX_BYTES / 2);
        let mut options = OpenOptions::new();
        // Others may add lines at the same time; each write is one.
        options.create(true).append(!full).mode(0o600).custom_flags(nofollow()?);
        if full {
            options.write(true).truncate(true);
        }
        options.open(file).ok()?.write_all(lines.as_bytes()).ok()
    }
}

fn nofollow() -> Option<i32> {
    i32::try_from((OFlags::NOFOLLOW | OFlags::NONBLOCK).bits()).ok()
}

fn read(file: &PathBuf) -> Option<HashMap<String, u32>> {
    let file = OpenOptions::new().read(true).custom_flags(nofollow()?).open(file).ok()?;
    let meta = file.metadata().ok()?;
    // Only a plain file of this user counts: another user may have made the folder's parents.
    if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
        return None;
    }
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    let pairs = text.lines().filter_map(|line| line.split_once(' '));
    Some(pairs.filter_map(|(key, figure)| Some((key.to_owned(), figure.parse().ok()?))).collect())
}

fn text(definition: &Definition) -> String {
    shown(definition).to_string()
}

fn key(text: &str) -> String {
    blake3::hash(text.as_bytes()).to_hex()[..DIGEST].to_owned()
}

/// Tokens of a text.
#[must_use]
pub fn count_tokens(text: &str) -> usize {
    tiktoken_rs::o200k_base_singleton().count_ordinary(text)
}

fn count(text: &str) -> u32 {
    let tokens = tiktoken_rs::o200k_base_singleton().encode_ordinary(text);
    u32::try_from(tokens.len()).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_count_is_the_tokenizers_and_is_remembered() {
        assert_eq!(count("hello world"), 2);
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("sub").join(FILE);
        let text =
            "name: probe\ndescription: Asks a service how it is.\ncode: export const execute = 1\n";
        let probe = super::super::read::parse("t", text, &"probe".parse().unwrap()).unwrap();
        let mut counts =
            Counts { file: Some(file.clone()), known: HashMap::new(), fresh: Vec::new() };
        assert!(matches!(counts.known(&probe), Tokens::Estimated(_)));
        let counted = counts.count(&probe);
        assert!(matches!(counted, Tokens::Counted(10..80)), "{counted:?}");
        counts.remember();
        let again = Counts { known: read(&file).unwrap(), file: None, fresh: Vec::new() };
        assert_eq!(again.known(&probe), counted);
        let said = text.replace("code:", "tokenCost: 450\ncode:");
        let said = super::super::read::parse("t", &said, &"probe".parse().unwrap()).unwrap();
        assert_eq!(counts.count(&said), Tokens::Said(450), "the author's word is honoured");
    }
}
