//! Splits a case's command into words by the quoting rules of a shell, expanding nothing.

/// The words of `text`.
pub fn split(text: &str) -> Result<Vec<String>, String> {
    let mut words = Vec::new();
    let mut chars = text.chars().peekable();
    loop {
        while chars.next_if(|c| c.is_ascii_whitespace()).is_some() {}
        if chars.peek().is_none() {
            return Ok(words);
        }
        let mut word = String::new();
        while let Some(c) = chars.next_if(|c| !c.is_ascii_whitespace()) {
            match c {
                '\'' => loop {
                    match chars.next().ok_or("an open '")? {
                        '\'' => break,
                        c => word.push(c),
                    }
                },
                '"' => loop {
                    match chars.next().ok_or("an open \"")? {
                        '"' => break,
                        '\\' => word.push(chars.next().ok_or("a \\ at the end")?),
                        c => word.push(c),
                    }
                },
                '$' if chars.peek() == Some(&'\'') => {
                    chars.next();
                    loop {
                        match chars.next().ok_or("an open $'")? {
                            '\'' => break,
                            '\\' => word.push(escape(&mut chars)?),
                            c => word.push(c),
                        }
                    }
                }
                '\\' => word.push(chars.next().ok_or("a \\ at the end")?),
                c => word.push(c),
            }
        }
        words.push(word);
    }
}

fn escape(chars: &mut impl Iterator<Item = char>) -> Result<char, String> {
    let digits = match chars.next().ok_or("a \\ at the end")? {
        'n' => return Ok('\n'),
        't' => return Ok('\t'),
        'r' => return Ok('\r'),
        c @ ('\\' | '\'') => return Ok(c),
        'x' => 2,
        'u' => 4,
        'U' => 8,
        other => return Err(format!("unknown escape \\{other}")),
    };
    let text: String = chars.by_ref().take(digits).collect();
    u32::from_str_radix(&text, 16)
        .ok()
        .and_then(char::from_u32)
        .ok_or_else(|| format!("{text} is no character"))
}

#[test]
fn words_are_split_as_a_shell_would() {
    let split = |text| split(text).unwrap();
    assert_eq!(split(r"a  'b c' d\ e"), ["a", "b c", "d e"]);
    assert_eq!(split(r#""a b"'c' '' "d\"e""#), ["a bc", "", "d\"e"]);
    assert_eq!(split(r"$'\u202e\n\x1b' $x"), ["\u{202e}\n\u{1b}", "$x"]);
    assert!(super::words::split("'a").is_err());
}
