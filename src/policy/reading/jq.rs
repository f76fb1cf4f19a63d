//! Filters of jq: whether one reads files besides the operands.
//!
//! `import`, `include` and `modulemeta` load files that the filter names; nothing else in the language
//! opens one. A word that only looks like them (inside a text) counts as well.

/// The words of the language that open files.
const OPENS: [&str; 3] = ["import", "include", "modulemeta"];

/// Whether a filter can read files.
pub(super) fn reads_files(filter: &str) -> bool {
    OPENS.iter().any(|word| {
        filter.match_indices(word).any(|(at, _)| {
            let before = filter[..at].chars().next_back();
            let after = filter[at + word.len()..].chars().next();
            // `.import` and `$import` are a field and a variable, `imports` is another word.
            !before.is_some_and(|c| c.is_ascii_alphanumeric() || "_.$".contains(c))
                && !after.is_some_and(|c| c.is_ascii_alphanumeric() || c == '_')
        })
    })
}

#[cfg(test)]
mod tests {
    use super::reads_files;

    #[test]
    fn only_words_that_load_are_found() {
        for filter in [".", ".a.import", ".imports[]", "$include", "reimport", ".include"] {
            assert!(!reads_files(filter), "{filter}");
        }
        for filter in [
            "import \"a\" as $x; .",
            "include\"a\";.",
            "# .\nimport \"a\" as a; .",
            "\"a\"|modulemeta",
            "module {};include \"b\" {search:\"/\"}; .",
        ] {
            assert!(reads_files(filter), "{filter}");
        }
    }
}
