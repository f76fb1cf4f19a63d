use super::*;

fn fit(pattern: &str, dot: bool, path: &str) -> Fit {
    let names: Vec<&str> = path.split('/').collect();
    Pattern::new(pattern, dot).unwrap().fit(&names)
}

#[test]
fn a_folder_is_entered_only_if_something_below_can_match() {
    assert!(fit("src/*.rs", false, "src").below);
    assert!(!fit("src/*.rs", false, "target").below);
    assert!(!fit("src/*.rs", false, "src/a").below);
    assert!(fit("**/x", false, "a/b/c").below);
    assert!(fit("a/**", false, "a").below && !fit("a/**", false, "a").matches);
}

#[test]
fn names_that_start_with_a_dot_must_be_asked_for() {
    for (pattern, path) in [("*", ".env"), ("**", ".git/config"), ("**/config", ".git/config")] {
        assert!(!fit(pattern, false, path).matches, "{pattern} {path}");
        assert!(fit(pattern, true, path).matches, "{pattern} {path}");
    }
    assert!(fit(".e*", false, ".env").matches);
    assert!(fit(".git/*", false, ".git/config").matches);
}

#[test]
fn bad_patterns_are_told_and_large_ones_cost_little() {
    for (text, bad) in [
        ("", BadPattern::Empty),
        ("./", BadPattern::Empty),
        ("/etc/*", BadPattern::Absolute),
        ("{/etc,a}/*", BadPattern::Absolute),
        ("../*", BadPattern::Upwards),
        ("a/{..,b}/c", BadPattern::Upwards),
        ("[a", BadPattern::Unclosed),
        ("{a", BadPattern::Unclosed),
        ("a}", BadPattern::Unclosed),
        ("{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}{a,b}", BadPattern::TooMany),
    ] {
        assert_eq!(Pattern::new(text, false).err(), Some(bad), "{text}");
    }
    assert_eq!(Pattern::new(&"a".repeat(5000), false).err(), Some(BadPattern::TooLong));
    let stars = "*a".repeat(100);
    assert!(!fit(&stars, false, &"a".repeat(99)).matches);
    let deep = "**/".repeat(1000) + "x";
    assert!(!fit(&deep, false, "a/".repeat(100).trim_end_matches('/')).matches);
}
