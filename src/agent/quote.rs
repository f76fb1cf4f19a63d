//! A line as one word of a POSIX shell.
//!
//! Duty: the one function that quotes what a hook writes into an agent's command. The agent gives it to a shell of its
//! choice (`sh`, `bash`, `dash`, `zsh`), and each must give us back exactly the bytes that were quoted.

/// The text in single quotes. Within them a shell reads nothing but the closing quote, so a quote of the text stands
/// outside: `'\''`. A NUL cannot be an argument; the caller refuses it.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut word = String::with_capacity(text.len() + 2);
    word.push('\'');
    for letter in text.chars() {
        match letter {
            '\'' => word.push_str(r"'\''"),
            other => word.push(other),
        }
    }
    word.push('\'');
    word
}

#[cfg(test)]
mod tests {
    use super::quoted;

    #[test]
    fn quotes_stand_outside() {
        assert_eq!(quoted("it's"), r"'it'\''s'");
        assert_eq!(quoted(""), "''");
        assert_eq!(quoted("$(x) `y` \\ \n!"), "'$(x) `y` \\ \n!'");
    }
}
