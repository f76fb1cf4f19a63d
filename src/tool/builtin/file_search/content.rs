//! The matching lines of one file.

use std::io;

use grep_regex::{RegexMatcher, RegexMatcherBuilder};
use grep_searcher::{
    BinaryDetection, Searcher, SearcherBuilder, Sink, SinkContext, SinkFinish, SinkMatch,
};
use serde_json::{Value, json};

use crate::broker::client::Thrown;
use crate::codes::Code;
use crate::tool::builtin::problem::Problem;

/// Characters of a line that are shown.
const LINE_MAX: usize = 500;
/// Memory of a compiled pattern, and of its cache.
const PATTERN_SIZE: usize = 1 << 20;

/// What is looked for.
#[derive(Clone)]
pub(super) struct Query {
    matcher: RegexMatcher,
    context: usize,
}

/// What was found in a file.
#[derive(Debug, Default)]
pub(super) struct Hits {
    /// The lines, matching or around them.
    pub lines: Vec<Value>,
    /// How many of them match.
    pub matches: usize,
    /// Whether it is not text.
    pub binary: bool,
    /// Whether there may be more.
    pub more: bool,
}

impl Query {
    /// Of exact text, or of a pattern: linear in time for any pattern.
    pub(super) fn new(
        text: &str,
        exact: bool,
        ignore_case: bool,
        context: usize,
    ) -> Result<Self, Thrown> {
        let text = if exact { regex::escape(text) } else { text.to_owned() };
        let matcher = RegexMatcherBuilder::new()
            .case_insensitive(ignore_case)
            .line_terminator(Some(b'\n'))
            .size_limit(PATTERN_SIZE)
            .dfa_size_limit(PATTERN_SIZE)
            .build(&text)
            .map_err(|error| {
                let hint = "a pattern matches within a line and has no look-around; mode grep looks for exact text";
                Problem::Pattern.says(format!("the pattern cannot be used: {error}")).hint(hint)
            })?;
        Ok(Self { matcher, context })
    }

    /// Looks through a file for at most so many matching lines.
    pub(super) fn search(&self, bytes: &[u8], most: usize) -> Result<Hits, Thrown> {
        let mut collector = Collector { hits: Hits::default(), most };
        SearcherBuilder::new()
            .binary_detection(BinaryDetection::quit(0))
            .line_number(true)
            .before_context(self.context)
            .after_context(self.context)
            .build()
            .search_slice(&self.matcher, bytes, &mut collector)
            .map_err(|error| Thrown::new(Code::IoError, error.to_string()))?;
        Ok(collector.hits)
    }
}

struct Collector {
    hits: Hits,
    most: usize,
}

impl Collector {
    fn add(&mut self, number: Option<u64>, bytes: &[u8], matches: bool) {
        let text = String::from_utf8_lossy(bytes);
        let text = text.trim_end_matches(['\n', '\r']);
        let shown = match text.char_indices().nth(LINE_MAX) {
            Some((end, _)) => format!("{}…", &text[..end]),
            None => text.to_owned(),
        };
        self.hits.lines.push(json!({ "line": number, "text": shown, "match": matches }));
    }
}

impl Sink for Collector {
    type Error = io::Error;

    fn matched(&mut self, _: &Searcher, found: &SinkMatch<'_>) -> Result<bool, io::Error> {
        if self.hits.matches >= self.most {
            self.hits.more = true;
            return Ok(false);
        }
        self.hits.matches += 1;
        self.add(found.line_number(), found.bytes(), true);
        Ok(true)
    }

    fn context(&mut self, _: &Searcher, around: &SinkContext<'_>) -> Result<bool, io::Error> {
        self.add(around.line_number(), around.bytes(), false);
        Ok(true)
    }

    fn finish(&mut self, _: &Searcher, end: &SinkFinish) -> Result<(), io::Error> {
        self.hits.binary = end.binary_byte_offset().is_some();
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn search(query: &Query, text: &str, most: usize) -> (Vec<(u64, String, bool)>, bool) {
        let hits = query.search(text.as_bytes(), most).unwrap();
        let line = |it: &Value| {
            (
                it["line"].as_u64().unwrap(),
                it["text"].as_str().unwrap().to_owned(),
                it["match"] == true,
            )
        };
        (hits.lines.iter().map(line).collect(), hits.more)
    }

    #[test]
    fn lines_are_found_with_what_stands_around_them() {
        let exact = Query::new("a.c", true, false, 0).unwrap();
        assert_eq!(search(&exact, "abc\r\na.c\r\n", 9), (vec![(2, "a.c".to_owned(), true)], false));
        let pattern = Query::new("^B$", false, true, 1).unwrap();
        let lines = [(1, "a", false), (2, "b", true), (3, "c", false)];
        let lines = lines.map(|(number, text, matches)| (number, text.to_owned(), matches));
        assert_eq!(search(&pattern, "a\nb\nc\nd\n", 9).0, lines);
        let (lines, more) = search(&exact, "a.c\na.c\na.c\n", 2);
        assert_eq!((lines.len(), more), (2, true));
    }

    #[test]
    fn what_is_not_text_is_said_and_long_lines_are_cut() {
        let query = Query::new("x", true, false, 0).unwrap();
        assert!(query.search(b"x\0x\n", 9).unwrap().binary);
        let long = search(&query, &"x".repeat(10_000), 9).0;
        assert_eq!(long[0].1.chars().count(), LINE_MAX + 1);
    }

    #[test]
    fn a_pattern_that_cannot_be_used_says_why() {
        for text in ["(", "(?=a)", "a\\nb", "(a{1000}){1000}"] {
            assert_eq!(
                Query::new(text, false, false, 0).err().unwrap().code,
                "bad_pattern",
                "{text}"
            );
        }
        let query = Query::new("^(a+)+$", false, false, 0).unwrap();
        assert_eq!(search(&query, &("a".repeat(100_000) + "!"), 9).0, []);
    }
}
