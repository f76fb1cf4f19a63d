//! A script as canonical shell text: one way to write each plan, which reads back as the same plan.

use std::fmt::{self, Write as _};

use super::builtin;
use super::script::{
    AndOr, Command, Compound, CompoundKind, Condition, Expansion, Join, Part, Pipeline, Redirect,
    RedirectTo, Script, SimpleCommand, Word,
};

impl fmt::Display for Script {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut texts = Vec::new();
        write_lists(f, self, &mut texts)?;
        flush(f, &mut texts)
    }
}

/// Lists, without what ends the last one.
fn write_lists<'a>(
    f: &mut fmt::Formatter<'_>,
    script: &'a Script,
    texts: &mut Waiting<'a>,
) -> fmt::Result {
    for (index, list) in script.lists.iter().enumerate() {
        if index > 0 {
            end(f, texts)?;
        }
        write_list(f, list, texts)?;
    }
    Ok(())
}

/// Ends a list: by `;`, or by the texts that stand behind its line.
fn end(f: &mut fmt::Formatter<'_>, texts: &mut Waiting<'_>) -> fmt::Result {
    if texts.is_empty() { f.write_str("; ") } else { flush(f, texts) }
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
type Waiting<'a> = Vec<(String, &'a Word)>;

fn flush(f: &mut fmt::Formatter<'_>, texts: &mut Waiting<'_>) -> fmt::Result {
    if texts.is_empty() {
        return Ok(());
    }
    f.write_char('\n')?;
    for (delimiter, text) in texts.drain(..) {
        write_text(f, text)?;
        writeln!(f, "{delimiter}")?;
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
    if pipeline.timed {
        f.write_str("time ")?;
    }
    if pipeline.negated {
        f.write_str("! ")?;
    }
    for (index, command) in pipeline.commands.iter().enumerate() {
        if index > 0 {
            f.write_str(" | ")?;
        }
        match command {
            Command::Simple(simple) => write_command(f, simple, texts)?,
            Command::Compound(compound) => write_compound(f, compound, texts)?,
        }
    }
    Ok(())
}

fn write_compound<'a>(
    f: &mut fmt::Formatter<'_>,
    compound: &'a Compound,
    texts: &mut Waiting<'a>,
) -> fmt::Result {
    let mut block = |f: &mut fmt::Formatter<'_>, before: &str, script: &'a Script| {
        write!(f, "{before} ")?;
        write_lists(f, script, texts)?;
        end(f, texts)
    };
    match &compound.kind {
        CompoundKind::Group(script) => {
            block(f, "{", script)?;
            f.write_char('}')?;
        }
        CompoundKind::Subshell(script) => {
            block(f, "(", script)?;
            f.write_char(')')?;
        }
        CompoundKind::If { branches, otherwise } => {
            for (index, (condition, body)) in branches.iter().enumerate() {
                block(f, if index == 0 { "if" } else { "elif" }, condition)?;
                block(f, "then", body)?;
            }
            if let Some(body) = otherwise {
                block(f, "else", body)?;
            }
            f.write_str("fi")?;
        }
        CompoundKind::While { until, condition, body } => {
            block(f, if *until { "until" } else { "while" }, condition)?;
            block(f, "do", body)?;
            f.write_str("done")?;
        }
        CompoundKind::For { name, words, body } => {
            write!(f, "for {name} in")?;
            for word in words {
                write!(f, " {word}")?;
            }
            block(f, "; do", body)?;
            f.write_str("done")?;
        }
        CompoundKind::Case { word, arms } => {
            write!(f, "case {word} in ")?;
            for (patterns, body) in arms {
                for (index, pattern) in patterns.iter().enumerate() {
                    f.write_str(if index == 0 { "(" } else { " | " })?;
                    write!(f, "{pattern}")?;
                }
                f.write_str(") ")?;
                write_lists(f, body, texts)?;
                if texts.is_empty() {
                    f.write_char(' ')?;
                } else {
                    flush(f, texts)?;
                }
                f.write_str(";; ")?;
            }
            f.write_str("esac")?;
        }
        CompoundKind::Test(conditions) => write_test(f, conditions)?,
    }
    for redirect in &compound.redirects {
        f.write_char(' ')?;
        write_redirect(f, redirect, texts)?;
    }
    Ok(())
}

/// From postfix order back, with parentheses around whatever joins.
fn write_test(f: &mut fmt::Formatter<'_>, conditions: &[Condition]) -> fmt::Result {
    let mut stack: Vec<String> = Vec::new();
    for condition in conditions {
        let right = match condition {
            Condition::Not | Condition::And | Condition::Or => stack.pop().unwrap_or_default(),
            _ => String::new(),
        };
        let text = match condition {
            Condition::Unary(operator, word) => format!("{operator} {word}"),
            Condition::Binary(left, operator, right) => format!("{left} {operator} {right}"),
            Condition::Match(left, pattern) => format!("{left} == {pattern}"),
            Condition::Not => format!("! ( {right} )"),
            Condition::And => {
                format!("( {} && {right} )", stack.pop().unwrap_or_default())
            }
            Condition::Or => format!("( {} || {right} )", stack.pop().unwrap_or_default()),
        };
        stack.push(text);
    }
    write!(f, "[[ {} ]]", stack.pop().unwrap_or_default())
}

/// The text of a here-document, each character as it must stand where expansions count.
fn write_text(f: &mut fmt::Formatter<'_>, text: &Word) -> fmt::Result {
    if let Some(text) = text.literal() {
        return f.write_str(text);
    }
    for part in &text.parts {
        match part {
            Part::Text(text) => {
                for c in text.chars() {
                    if matches!(c, '$' | '`' | '\\') {
                        f.write_char('\\')?;
                    }
                    f.write_char(c)?;
                }
            }
            Part::Expansion { of, .. } => write_expansion(f, of)?,
            Part::Home | Part::Any | Part::One | Part::Class(_) => {}
        }
    }
    Ok(())
}

fn write_expansion(f: &mut impl fmt::Write, of: &Expansion) -> fmt::Result {
    match of {
        Expansion::Variable(name) => write!(f, "${{{name}}}"),
        Expansion::Default { name, text, empty } => {
            let mark = if *empty { ":-" } else { "-" };
            write!(f, "${{{name}{mark}{text}}}")
        }
        Expansion::Status => f.write_str("${?}"),
        Expansion::Output(script) => write!(f, "$({script})"),
    }
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
        RedirectTo::Text(text) => match text.literal() {
            Some(literal) => match literal.strip_suffix('\n') {
                Some(line) if !line.contains('\n') => write!(f, "<<{}", quoted_text(line)),
                _ => {
                    let delimiter = delimiter(literal);
                    write!(f, "<'{delimiter}'")?;
                    texts.push((delimiter, text));
                    Ok(())
                }
            },
            None => write_here_string(f, text),
        },
    }
}

/// A text with expansions as a here-string, which adds a newline; as a here-document where that does not fit.
fn write_here_string(f: &mut fmt::Formatter<'_>, text: &Word) -> fmt::Result {
    let mut word = text.clone();
    if let Some(Part::Text(last)) = word.parts.last_mut()
        && last.ends_with('\n')
    {
        last.pop();
        if last.is_empty() {
            word.parts.pop();
        }
    }
    write!(f, "<<{word}")
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
            Part::Text(text) if after_home && !text.is_empty() => {
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
            Part::Expansion { of, quoted } => {
                // Writing into a text does not fail.
                let _ = if *quoted { out.write_char('"') } else { Ok(()) };
                let _ = write_expansion(&mut out, of);
                let _ = if *quoted { out.write_char('"') } else { Ok(()) };
            }
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
