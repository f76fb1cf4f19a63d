//! Prose: lines within 100 columns, which `RUNNER_BLESS=1` breaks anew, and sentences within 30 words.

use std::path::Path;
use std::{env, fs};

use super::{ROOT, none, pages};

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
        if env::var_os("RUNNER_BLESS").is_some() {
            fs::write(Path::new(ROOT).join(&page.path), broken(&page.text)).unwrap();
            continue;
        }
        for (number, line) in page.markdown().lines {
            let length = line.chars().count();
            // A table's row and indented code are one line, and a link cannot be broken.
            let free = line.starts_with('|')
                || line.starts_with("    ")
                || line.trim_start().split(' ').count() < 3;
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

/// A page with its paragraphs and list items broken anew.
fn broken(text: &str) -> String {
    let mut out = String::new();
    let (mut open, mut fenced) = (None::<(String, String)>, false);
    for line in text.lines() {
        let plain = line.trim();
        let fence = line.starts_with("```");
        fenced ^= fence;
        let aside = plain.is_empty() || plain.starts_with(['|', '#', '<', '>', '!']);
        let indented = line.starts_with("    ") && open.is_none();
        if fence || fenced || aside || indented {
            close(&mut out, &mut open);
            out.push_str(line);
            out.push('\n');
            continue;
        }
        let mark = mark(line);
        match &mut open {
            Some((_, words)) if mark.is_empty() => {
                words.push(' ');
                words.push_str(plain);
            }
            _ => {
                close(&mut out, &mut open);
                open = Some((mark.to_owned(), line[mark.len()..].trim().to_owned()));
            }
        }
    }
    close(&mut out, &mut open);
    out
}

/// The mark of a list's item with what stands before it.
fn mark(line: &str) -> &str {
    let rest = line.trim_start();
    let digits = rest.len() - rest.trim_start_matches(|c: char| c.is_ascii_digit()).len();
    let length = match rest {
        _ if rest.starts_with("- ") => 2,
        _ if digits == 1 && rest[digits..].starts_with(". ") => digits + 2,
        _ => return "",
    };
    &line[..line.len() - rest.len() + length]
}

fn close(out: &mut String, open: &mut Option<(String, String)>) {
    let Some((mark, text)) = open.take() else { return };
    let indent = " ".repeat(mark.chars().count());
    let mut line = mark;
    let mut is_empty = true;
    for word in words(&text) {
        if !is_empty && line.chars().count() + 1 + word.chars().count() > COLUMNS {
            out.push_str(&line);
            out.push('\n');
            line.clone_from(&indent);
            is_empty = true;
        }
        if !is_empty {
            line.push(' ');
        }
        line.push_str(&word);
        is_empty = false;
    }
    out.push_str(&line);
    out.push('\n');
}

/// Words between which a line may end: not within code and links.
fn words(text: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let (mut code, mut link, mut before) = (false, 0_usize, ' ');
    for c in text.chars() {
        match c {
            '`' => code = !code,
            '[' if !code => link += 1,
            '(' if !code && before == ']' => link += 1,
            ']' | ')' if !code => link = link.saturating_sub(1),
            _ => {}
        }
        before = c;
        if c == ' ' && !code && link == 0 {
            words.push(String::new());
        } else {
            words.last_mut().expect("one at least").push(c);
        }
    }
    if code || link > 0 {
        return text.split(' ').map(str::to_owned).collect();
    }
    words.retain(|word| !word.is_empty());
    words
}

#[test]
fn breaking_lines_anew_changes_nothing_that_fits() {
    for page in pages().iter().filter(|page| !page.is_generated()) {
        let again = broken(&page.text);
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        assert_eq!(words(&again), words(&page.text), "{}", page.path.display());
        assert_eq!(broken(&again), again, "{}", page.path.display());
    }
}
