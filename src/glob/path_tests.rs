use globset::GlobBuilder;
use proptest::prelude::*;

use super::*;

fn path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "ab", "bc", ".env", ".a", "x.rs"]);
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.join("/"))
}

fn pattern() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec![
        "a",
        "b",
        "*",
        "**",
        "**",
        "?",
        "a*",
        "*b",
        "*.rs",
        "{a,b}",
        "{a,b*}c",
        "[ab]",
        "[!a]",
        "[a-z]*",
        ".env",
        ".e?v",
        ".*",
        "é",
        "{a/b,x.rs}",
        "\\a",
        "{,a}b",
        "ab",
    ]);
    prop::collection::vec(part, 1..6).prop_map(|parts| parts.join("/"))
}

/// What fitting means: all positions in the pattern at which the rest of a path can begin.
fn plainly(pattern: &[Component], path: &[&str], dots: Dots) -> Fit {
    let skip = |at: &mut Vec<bool>| {
        for position in 0..pattern.len().saturating_sub(1) {
            // `**` before something else also stands for nothing.
            at[position + 1] |= at[position] && pattern[position] == Component::Deep;
        }
    };
    let mut at = vec![false; pattern.len() + 1];
    at[0] = true;
    skip(&mut at);
    for name in path {
        let mut next = vec![false; pattern.len() + 1];
        for (position, part) in pattern.iter().enumerate() {
            if at[position] && part.fits(name, dots) {
                let deep = *part == Component::Deep;
                next[position] |= deep;
                next[position + 1] |= !deep || position + 1 == pattern.len();
            }
        }
        skip(&mut next);
        at = next;
    }
    Fit { matches: at[pattern.len()], below: at[..pattern.len()].contains(&true) }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(8_192))]

    #[test]
    fn patterns_mean_what_globset_says(pattern in pattern(), path in path()) {
        let reference = GlobBuilder::new(&pattern)
            .literal_separator(true)
            .backslash_escape(true)
            .empty_alternates(true)
            .build()
            .unwrap();
        let own = Glob::new(&pattern).unwrap();
        let components: Vec<&str> = path.split('/').collect();
        let expected = reference.compile_matcher().is_match(&path);
        prop_assert_eq!(own.matches(&components), expected, "{} {}", pattern, path);
        prop_assert_eq!(own.fit(&components, Dots::Covered).matches, expected, "{} {}", pattern, path);
    }

    #[test]
    fn a_path_is_covered_from_above_if_one_of_its_beginnings_is_covered(pattern in pattern(), path in path()) {
        let glob = Glob::new(&pattern).unwrap();
        let components: Vec<&str> = path.split('/').collect();
        let beginnings = (1..=components.len()).any(|end| glob.matches(&components[..end]));
        prop_assert_eq!(glob.matches_or_above(&components), beginnings, "{} {}", pattern, path);
    }

    #[test]
    fn a_walk_finds_every_position(pattern in pattern(), path in path()) {
        let components: Vec<&str> = path.split('/').collect();
        for alternative in Glob::new(&pattern).unwrap().alternatives {
            for dots in [Dots::Covered, Dots::Written] {
                prop_assert_eq!(
                    walk(&alternative, &components, Extent::Whole, dots),
                    plainly(&alternative, &components, dots),
                    "{} {} {:?}", pattern, path, dots
                );
            }
        }
    }
}

#[test]
fn what_is_left_open_is_no_pattern() {
    for text in ["{a", "a}", "[a", "*[a", "{a,{b}", "a/[b/c]", "a\\"] {
        assert_eq!(Glob::new(text).unwrap_err(), GlobError::Unclosed, "{text}");
    }
    assert_eq!(Glob::new(&"{a,b}".repeat(9)).unwrap_err(), GlobError::TooMany);
    assert!(Glob::new("{a,{b,c}}/[{]").is_ok());
}

#[test]
fn a_long_pattern_costs_little() {
    let deep = "**/".repeat(1_000) + "x";
    let path = vec!["a"; 100];
    assert!(!Glob::new(&deep).unwrap().fit(&path, Dots::Written).matches);
    let stars = "*a".repeat(100);
    assert!(!Glob::new(&stars).unwrap().matches(&[&"a".repeat(99)]));
}
