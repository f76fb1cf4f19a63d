//! A script as canonical shell text: one way to write each plan, which reads back as the same plan.

use std::fmt::{self, Write as _};

use super::builtin;
use super::script::{
    AndOr, Join, Part, Pipeline, Redirect, RedirectTo, Script, SimpleCommand, Word,
};

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Vec::new();
        for (index, list) in self.lists.iter().enumerate() {
            if index > 0 && texts.is_empty() {
                f.write_str("; ")?;
            }
            flush(f, &mut texts)?;
            write_list(f, list, &mut texts)?;
        }
        flush(f, &mut texts)
    }
}

impl fmt::Display for SimpleCommand {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Vec::new();
        write_command(f, self, &mut texts)?;
        flush(f, &mut texts)
    }
}

impl fmt::Display for Word {
    /// The word as an argument.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&quoted(self))
    }
}

/// A here-document that was begun: its delimiter and text stand behind the next newline.
type Waiting<'a> = Vec<(String, &'a str)>;

fn flush(f: &mut fmt::Formatter<'_>, texts: &mut Waiting<'_>) -> fmt::Result {
    if texts.is_empty() {
        return Ok(());
    }
    f.write_char('\n')?;
    for (delimiter, text) in texts.drain(..) {
        writeln!(f, "{text}{delimiter}")?;
    }
    Ok(())
}

fn write_list<'a>(
    f: &mut fmt::Formatter<'_>,
    list: &'a AndOr,
    texts: &mut Waiting<'a>,
) -> fmt::Result {
    write_pipeline(f, &list.first, texts)?;
    for (join, pipeline) in &list.rest {
        f.write_str(match join {
            Join::And => " && ",
            Join::Or => " || ",
        })?;
        write_pipeline(f, pipeline, texts)?;
    }
    Ok(())
}

fn write_pipeline<'a>(
    f: &mut fmt::Formatter<'_>,
    pipeline: &'a Pipeline,
    texts: &mut Waiting<'a>,
) -> fmt::Result {
    if pipeline.negated {
        f.write_str("! ")?;
    }
    for (index, command) in pipeline.commands.iter().enumerate() {
        if index > 0 {
            f.write_str(" | ")?;
        }
        write_command(f, command, texts)?;
    }
    Ok(())
}

fn write_command<'a>(
    f: &mut fmt::Formatter<'_>,
    command: &'a SimpleCommand,
    texts: &mut Waiting<'a>,
) -> fmt::Result {
    let mut gap = "";
    for (name, value) in &command.assignments {
        let value = if value.parts.is_empty() { String::new() } else { quoted(value) };
        write!(f, "{gap}{name}={value}")?;
        gap = " ";
    }
    for (index, word) in command.words.iter().enumerate() {
        f.write_str(gap)?;
        gap = " ";
        match word.literal() {
            Some(name)
                if index == 0 && (name.contains('=') || builtin::reserved(name).is_some()) =>
            {
                f.write_str(&in_quotes(name))?;
            }
            _ => f.write_str(&quoted(word))?,
        }
    }
    for redirect in &command.redirects {
        f.write_str(gap)?;
        gap = " ";
        write_redirect(f, redirect, texts)?;
    }
    Ok(())
}

fn write_redirect<'a>(
    f: &mut fmt::Formatter<'_>,
    redirect: &'a Redirect,
    texts: &mut Waiting<'a>,
) -> fmt::Result {
    let fd = redirect.fd;
    let input = match &redirect.to {
        RedirectTo::Read(_) | RedirectTo::Text(_) => true,
        RedirectTo::Duplicate(_) | RedirectTo::Close => fd == 0,
        RedirectTo::Write(_) | RedirectTo::Append(_) => false,
    };
    if fd != u8::from(!input) {
        write!(f, "{fd}")?;
    }
    f.write_char(if input { '<' } else { '>' })?;
    match &redirect.to {
        RedirectTo::Read(word) | RedirectTo::Write(word) => write!(f, "{word}"),
        RedirectTo::Append(word) => write!(f, ">{word}"),
        RedirectTo::Duplicate(from) => write!(f, "&{from}"),
        RedirectTo::Close => f.write_str("&-"),
        RedirectTo::Text(text) => match text.strip_suffix('\n') {
            Some(line) if !line.contains('\n') => write!(f, "<<{}", quoted_text(line)),
            _ => {
                let delimiter = delimiter(text);
                write!(f, "<'{delimiter}'")?;
                texts.push((delimiter, text));
                Ok(())
            }
        },
    }
}

/// A delimiter that is no line of the text.
fn delimiter(text: &str) -> String {
    let taken: std::collections::HashSet<&str> =
        text.lines().filter(|line| line.starts_with("EOF")).collect();
    let mut delimiter = "EOF".to_owned();
    let mut number = 0_usize;
    while taken.contains(delimiter.as_str()) {
        number += 1;
        delimiter = format!("EOF{number}");
    }
    delimiter
}

fn quoted(word: &Word) -> String {
    // Quotes around these would only puzzle: `[ -f x ]`, `find -exec … {} +`.
    if let Some(text @ ("[" | "]" | "{}")) = word.literal() {
        return text.to_owned();
    }
    if word.parts.is_empty() {
        return in_quotes("");
    }
    let mut out = String::new();
    let mut after_home = false;
    for part in &word.parts {
        match part {
            Part::Text(text) if after_home => {
                // The character that ends a tilde must not be quoted.
                let (end, rest) = text.split_at(text.chars().next().map_or(0, char::len_utf8));
                out += end;
                if !rest.is_empty() {
                    out += &quoted_text(rest);
                }
            }
            Part::Text(text) => out += &quoted_text(text),
            Part::Home => out.push('~'),
            Part::Any => out.push('*'),
            Part::One => out.push('?'),
            Part::Class(class) => class.write(&mut out),
        }
        after_home = *part == Part::Home;
    }
    out
}

fn quoted_text(text: &str) -> String {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"_-./:@%+,=^".contains(&b);
    let is_plain = !text.is_empty() && text.bytes().all(safe);
    if is_plain { text.to_owned() } else { in_quotes(text) }
}

fn in_quotes(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}
