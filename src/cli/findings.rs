//! Findings for people: the place, the line, a mark below it, and the right form.

use std::fmt;

use runner_policy::finding::Finding;

use super::style;
use super::visible::visible;

/// Shows one finding.
pub struct Shown<'a>(pub &'a Finding);

impl fmt::Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Finding { code, file, at, message, help, excerpt } = self.0;
        let (bad, note, strong) = (style::BAD, style::NOTE, style::STRONG);
        writeln!(f, "{bad}error[{code}]{bad:#}{strong}: {}{strong:#}", visible(message))?;
        write!(f, " {note}-->{note:#} {}", visible(file))?;
        if at.line == 0 {
            // About the file as a whole.
            writeln!(f)?;
        } else {
            writeln!(f, ":{}:{}", at.line, at.column)?;
            let number = at.line.to_string();
            let margin = " ".repeat(number.len());
            writeln!(f, "{note}{margin} |{note:#}")?;
            writeln!(f, "{note}{number} |{note:#} {}", visible(excerpt))?;
            writeln!(
                f,
                "{note}{margin} |{note:#} {bad}{}{bad:#}",
                mark(excerpt, at.column, at.width)
            )?;
        }
        if let Some(help) = help {
            writeln!(f, " {note}= help:{note:#} {}", visible(help))?;
        }
        Ok(())
    }
}

/// Carets below the marked characters, as wide as those are shown.
fn mark(excerpt: &str, column: u32, width: u32) -> String {
    let shown = |text: &str| visible(text).chars().count();
    let start = column.saturating_sub(1) as usize;
    let before: String = excerpt.chars().take(start).collect();
    let marked: String = excerpt.chars().skip(start).take(width.max(1) as usize).collect();
    format!("{}{}", " ".repeat(shown(&before)), "^".repeat(shown(&marked).max(1)))
}

#[cfg(test)]
mod tests {
    use runner_policy::finding::At;

    use super::*;

    fn plain(finding: &Finding) -> String {
        anstream::adapter::strip_str(&Shown(finding).to_string()).to_string()
    }

    fn finding(excerpt: &str, column: u32, width: u32) -> Finding {
        Finding {
            code: "unknown_key",
            file: "p.yml".to_owned(),
            at: At { line: 12, column, width },
            message: "unknown key comands".to_owned(),
            help: Some("did you mean commands?".to_owned()),
            excerpt: excerpt.to_owned(),
        }
    }

    #[test]
    fn the_mark_stands_below_what_is_wrong() {
        let expected = "\
error[unknown_key]: unknown key comands
 --> p.yml:12:3
   |
12 |   comands: []
   |   ^^^^^^^
 = help: did you mean commands?
";
        assert_eq!(plain(&finding("  comands: []", 3, 7)), expected);
    }

    #[test]
    fn hidden_characters_shift_the_mark_as_they_are_shown() {
        let text = plain(&finding("a\u{202e}b", 3, 1));
        assert!(text.contains("12 | a\\u{202e}b\n   |          ^\n"), "{text}");
    }

    #[test]
    fn a_place_outside_the_line_is_no_panic() {
        for (column, width) in [(0, 0), (1, u32::MAX), (u32::MAX, 1), (u32::MAX, u32::MAX)] {
            plain(&finding("ab", column, width));
        }
    }

    #[test]
    fn a_file_as_a_whole_has_no_line() {
        let whole = Finding { at: At::default(), help: None, ..finding("", 0, 0) };
        assert_eq!(plain(&whole), "error[unknown_key]: unknown key comands\n --> p.yml\n");
    }
}
