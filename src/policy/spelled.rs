//! Shell patterns that spell a name out: `.env*`, `.en?` and `.[de]nv` are requests for `.env`.
//!
//! A pattern that merely could match (`*`, `*.yml`) is not: agents write those all day, and the
//! sandbox covers denied files. Only names are looked at here; nothing is expanded.

use runner_glob::{Token, fits, shell_tokens};

/// Concrete paths that stand for a pattern: its stars as nothing and as a letter, and each of the
/// known names where one component spells it out.
pub fn candidates<'n>(pattern: &str, names: impl Iterator<Item = &'n str> + Clone) -> Vec<String> {
    let components: Vec<&str> = split(pattern);
    let filled = |star: &str| -> Vec<String> {
        components.iter().map(|component| skeleton(component, star)).collect()
    };
    let (bare, lettered) = (filled(""), filled("x"));
    let mut out = vec![bare.join("/"), lettered.join("/")];
    let mut all = lettered.clone();
    for (at, component) in components.iter().enumerate() {
        if !is_pattern(component) {
            continue;
        }
        for name in names.clone().filter(|name| spells(component, name)) {
            for base in [&bare, &lettered] {
                let mut path = base.clone();
                name.clone_into(&mut path[at]);
                out.push(path.join("/"));
            }
            name.clone_into(&mut all[at]);
        }
    }
    out.push(all.join("/"));
    out.sort();
    out.dedup();
    out
}

/// Components between slashes; a slash in brackets is none.
fn split(pattern: &str) -> Vec<&str> {
    pattern.split('/').collect()
}

/// Whether a component has a mark that is not escaped.
fn is_pattern(component: &str) -> bool {
    shell_tokens(component).iter().any(|token| !matches!(token, Token::Char(_)))
}

/// Whether a component asks for this name, and not for just any.
fn spells(component: &str, name: &str) -> bool {
    let tokens = shell_tokens(component);
    let chars = tokens.iter().filter(|token| matches!(token, Token::Char(_))).count();
    let begins = matches!(tokens.first(), Some(Token::Char(_)));
    // A shell's marks never match a leading dot.
    let asked = begins || (chars * 2 >= name.chars().count() && !name.starts_with('.'));
    asked && fits(&tokens, name.as_bytes())
}

/// The component with its marks filled in; the first member stands for a set.
fn skeleton(component: &str, star: &str) -> String {
    let mut out = String::with_capacity(component.len());
    for token in shell_tokens(component) {
        match token {
            Token::Char(c) => out.push(c),
            Token::Star => out.push_str(star),
            Token::One | Token::Byte(_) | Token::Set { negated: true, .. } => out.push('x'),
            Token::Set { ranges, .. } => out.push(ranges.first().map_or('x', |(first, _)| *first)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_out_is_asked_for() {
        for pattern in [".env*", ".en?", ".[de]nv", ".??v", ".e*", ".[!x]nv", ".[a-f]nv"] {
            assert!(spells(pattern, ".env"), "{pattern}");
        }
        for pattern in ["*", "?env", "*nv", "[.]env", ".x*", ".env.*", "a*"] {
            assert!(!spells(pattern, ".env"), "{pattern}");
        }
        assert!(spells("s*", "secrets.yml") && spells("?ecrets.yml", "secrets.yml"));
        assert!(!spells("*.yml", "secrets.yml") && !spells("*", "secrets.yml"));
    }

    #[test]
    fn candidates_hold_the_skeletons_and_the_names() {
        let known = [".env", "secret"];
        let paths = candidates("/w/s*/.en?", known.into_iter());
        for path in ["/w/s/.enx", "/w/sx/.env", "/w/secret/.env", "/w/secret/.enx"] {
            assert!(paths.iter().any(|known| known == path), "{path} in {paths:?}");
        }
        assert_eq!(candidates("*.pem", [].into_iter()), [".pem", "x.pem"]);
        assert_eq!(candidates("a\\*b", [].into_iter()), ["a*b"]);
    }
}
