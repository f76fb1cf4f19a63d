//! The code of a YAML tool, and where it stands in the file: errors are shown at the author's own line.

use runner_policy::finding::Report;
use runner_policy::yaml::Entry;

/// Code inside a YAML file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Code {
    /// The code, without the indentation of the block.
    pub text: String,
    /// The line of the file on which its first line stands, from 1.
    pub line: u32,
    /// Characters of the file before each of its lines.
    pub indent: u32,
}

const FORM: &str = "write it as a block: `code: |`, and the code indented below";

/// Reads the `code` of a tool.
pub(super) fn read(entry: &Entry, file: &str, report: &mut Report<'_>) -> Option<Code> {
    let node = &entry.value;
    let text = report.text(node)?;
    if text.trim().is_empty() {
        report.add("empty", node.at, "there is no code", FORM.to_owned());
        return None;
    }
    let lines: Vec<&str> = file.split('\n').collect();
    let (first, line) = beginning(entry, &lines)?;
    match first {
        '|' => {
            // Leading empty lines belong to the block; the first other one shows the indentation.
            let mut pairs = text.split('\n').zip(line + 1..);
            let (code, number) = pairs.find(|(code, _)| !code.trim().is_empty())?;
            let spaces = |text: &str| text.chars().take_while(|c| *c == ' ').count();
            let indent = spaces(lines.get(number - 1)?).saturating_sub(spaces(code));
            Some(Code { text: text.to_owned(), line: small(line + 1), indent: small(indent) })
        }
        '>' => {
            report.add(
                "wrong_type",
                node.at,
                "`>` joins lines, which changes code",
                FORM.to_owned(),
            );
            None
        }
        // On one line, with or without quotes.
        first if !text.contains('\n') => {
            let quote = u32::from(matches!(first, '"' | '\''));
            let indent = node.at.column.saturating_sub(1) + quote;
            Some(Code { text: text.to_owned(), line: node.at.line, indent })
        }
        _ => {
            report.add("wrong_type", node.at, "code of several lines is a block", FORM.to_owned());
            None
        }
    }
}

/// The first character of the value and its line, from 1. The value's own place is that of its text, which
/// for a block is below the sign that says how lines are joined.
fn beginning(entry: &Entry, lines: &[&str]) -> Option<(char, usize)> {
    let (line, column) = (entry.at.line as usize, entry.at.column.saturating_sub(1) as usize);
    let from: String = lines.get(line.checked_sub(1)?)?.chars().skip(column).collect();
    let mut rest = from.split_once(':')?.1.trim_start();
    let mut at = line;
    while rest.is_empty() || rest.starts_with('#') {
        rest = lines.get(at)?.trim_start();
        at += 1;
    }
    Some((rest.chars().next()?, at))
}

fn small(figure: usize) -> u32 {
    u32::try_from(figure).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use runner_policy::yaml;

    use super::*;

    fn code(file: &str) -> Result<Code, Vec<&'static str>> {
        let mut report = Report::new("t.yml", file);
        let root = yaml::read(file, &mut report).unwrap();
        let entries = report.map(&root).unwrap();
        let entry = entries.iter().find(|entry| entry.key == "code").unwrap();
        let code = read(entry, file, &mut report);
        code.ok_or_else(|| report.finish().iter().map(|finding| finding.code).collect())
    }

    /// Every line of the code stands in the file where we say it does.
    fn agrees(file: &str) {
        let code = code(file).unwrap();
        let lines: Vec<&str> = file.split('\n').collect();
        for (at, line) in code.text.lines().enumerate().filter(|(_, line)| !line.is_empty()) {
            let shown: String =
                lines[code.line as usize - 1 + at].chars().skip(code.indent as usize).collect();
            assert!(shown.starts_with(line), "{line:?} {shown:?}");
        }
    }

    #[test]
    fn the_place_of_each_line_is_known() {
        agrees("name: x\ncode: |\n  a;\n    b;\n\n  c;\n");
        agrees("code: |\n\n\n      a;\n      b;\n");
        agrees("code: |2\n    a;\n  b;\n");
        agrees("code: |- # note\n a;\n b;");
        agrees("code:\n  |\n  a;\n  b;\nname: x\n");
        agrees("x: {}\ncode: 'export const a = 1'\n");
        agrees("code: export const a = 1\n");
        agrees("code: |+\r\n  a;\r\n  b;\r\n");
    }

    #[test]
    fn what_would_change_the_code_is_refused() {
        assert_eq!(code("code: >\n  a\n  b\n"), Err(vec!["wrong_type"]));
        assert_eq!(code("code: \"a\\nb\"\n"), Err(vec!["wrong_type"]));
        assert_eq!(code("code: |\n\nname: x\n"), Err(vec!["empty"]));
        assert_eq!(code("code: [a]\n"), Err(vec!["wrong_type"]));
        assert_eq!(code("code:\n"), Err(vec!["ambiguous_scalar"]));
    }
}
