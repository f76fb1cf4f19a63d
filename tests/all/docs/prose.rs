//! Prose: lines within 100 columns, sentences within 30 words.

use super::{none, pages};

/// Longest line of prose, in characters.
const COLUMNS: usize = 100;
/// Longest sentence.
const WORDS: usize = 30;
/// Beginnings of sentences that need more.
const NEEDED: &[&str] = &[];

#[test]
fn lines_of_prose_fit_a_screen() {
    let mut complaints = Vec::new();
    for page in pages().iter().filter(|page| !page.is_generated()) {
        for (number, line) in page.markdown().lines {
            let length = line.chars().count();
            // A table's row is one line, and a link cannot be broken.
            let free = line.starts_with('|') || line.trim_start().split(' ').count() < 3;
            if length > COLUMNS && !free {
                complaints.push(format!("{}: {length} characters", page.at(number)));
            }
        }
    }
    none(&complaints);
}

#[test]
fn sentences_are_short() {
    let mut complaints = Vec::new();
    for page in pages().iter().filter(|page| !page.is_generated()) {
        for (number, paragraph) in page.markdown().paragraphs() {
            for sentence in sentences(&paragraph) {
                let words = sentence.split_whitespace().count();
                if words > WORDS && !NEEDED.iter().any(|start| sentence.starts_with(start)) {
                    complaints.push(format!("{}: {words} words: {sentence}", page.at(number)));
                }
            }
        }
    }
    none(&complaints);
}

/// Splits at the ends of sentences. Code counts as one word, and what a link leads to as none.
fn sentences(paragraph: &str) -> Vec<String> {
    let mut plain = String::new();
    let (mut code, mut target) = (false, false);
    let mut chars = paragraph.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '`' => {
                code = !code;
                if code {
                    plain.push_str("code");
                }
            }
            _ if code => {}
            ']' if chars.next_if_eq(&'(').is_some() => target = true,
            ')' if target => target = false,
            _ if target => {}
            '[' | '*' => {}
            c => plain.push(c),
        }
    }
    let mut sentences = vec![String::new()];
    for word in plain.split_whitespace() {
        let sentence = sentences.last_mut().expect("one at least");
        sentence.push_str(word);
        sentence.push(' ');
        if word.trim_end_matches([')', '"']).ends_with(['.', '?', '!', ':', ';']) {
            sentences.push(String::new());
        }
    }
    sentences
}
