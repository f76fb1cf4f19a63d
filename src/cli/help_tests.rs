//! Every `--help` shows two examples or more, and each of them is a command line that runner understands.

use clap::Parser as _;

use super::args::Cli;
use super::completions::built;

/// The examples at the end of a help text, as typed.
fn examples(help: &str) -> Vec<&str> {
    let lines = help.lines().skip_while(|line| *line != "Examples:").skip(1);
    lines.take_while(|line| !line.is_empty()).map(str::trim).collect()
}

/// The words of the first command of a shell line, up to a pipe or a redirection. Quotes are read as a shell reads them.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quote) = (Vec::new(), None::<String>, None);
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => {
                quote = Some(c);
                word.get_or_insert_default();
            }
            (None, '|' | '>' | ';' | '&') => break,
            (None, ' ') => words.extend(word.take()),
            (_, c) => word.get_or_insert_default().push(c),
        }
    }
    assert_eq!(quote, None, "an open quote: {line}");
    words.extend(word);
    words
}

fn look(command: &clap::Command, path: &str, problems: &mut Vec<String>) {
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let examples = examples(&help);
    if examples.len() < 2 {
        problems.push(format!("{path}: {} example(s)", examples.len()));
    }
    for example in examples {
        if let Err(error) = Cli::try_parse_from(words(example)) {
            problems.push(format!("{path}: {example}: {error}"));
        }
        if !example.starts_with("runner ") {
            problems.push(format!("{path}: {example}: it does not start with `runner`"));
        }
    }
    for subcommand in command.get_subcommands() {
        look(subcommand, &format!("{path} {}", subcommand.get_name()), problems);
    }
}

#[test]
fn every_help_text_has_two_examples_that_parse() {
    let mut problems = Vec::new();
    look(&built(), "runner", &mut problems);
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn words_end_at_a_pipe_and_keep_quoted_spaces() {
    assert_eq!(words("runner a 'b c' --d=\"e|f\" | jq ."), ["runner", "a", "b c", "--d=e|f"]);
}
