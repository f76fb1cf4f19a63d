//! `runner man`: the man pages, one for each subcommand. Hidden: packages are made with it.

use std::fs;
use std::io;
use std::path::PathBuf;

use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};
use serde_json::json;

use super::completions::built;
use super::printer::{Format, Printer};
use super::usage::UsageError;
use crate::cli::Error;
use crate::exit::Ending;

/// As typed.
#[derive(Debug, clap::Args)]
#[command(
    after_help = "Examples:\n  runner man /usr/local/share/man/man1\n  runner man ./man1 --json"
)]
pub struct Args {
    /// The folder, which must exist
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes them.
pub(super) fn run(args: &Args, printer: &mut Printer) -> Result<Ending, Error> {
    let mut names = Vec::new();
    for (name, page) in pages() {
        let file = args.folder.join(&name);
        fs::write(&file, page).map_err(|error| UsageError::Option {
            option: "DIR".to_owned(),
            why: format!("cannot write {}: {error}", file.display()),
        })?;
        names.push(name);
    }
    match printer.format() {
        Format::Json => printer.json(&json!({ "pages": names }))?,
        Format::Text => {
            let count = names.len();
            let folder = args.folder.display().to_string();
            let folder = super::visible(&folder);
            printer.data(format_args!("wrote {count} man pages to {folder}\n"))?;
        }
    }
    Ok(Ending::ok())
}

/// The name and text of each page.
fn pages() -> Vec<(String, Vec<u8>)> {
    let mut pages = Vec::new();
    add(&built(), &mut pages);
    pages
}

fn add(command: &clap::Command, pages: &mut Vec<(String, Vec<u8>)>) {
    for subcommand in command.get_subcommands().filter(|it| !it.is_hide_set()) {
        add(subcommand, pages);
    }
    let man = Man::new(command.clone())
        .source(concat!("runner ", env!("CARGO_PKG_VERSION")))
        .manual("runner");
    let mut page = Vec::new();
    // A vector takes all that is written to it.
    let _ = write(&man, command, &mut page);
    pages.push((man.get_filename(), page));
}

/// One page. The end of the help text becomes sections that readers of man pages look for.
fn write(man: &Man, command: &clap::Command, page: &mut Vec<u8>) -> io::Result<()> {
    man.render_title(page)?;
    man.render_name_section(page)?;
    man.render_synopsis_section(page)?;
    man.render_description_section(page)?;
    if command.get_subcommands().any(|it| !it.is_hide_set()) {
        man.render_subcommands_section(page)?;
    }
    if command.get_arguments().any(|it| !it.is_hide_set()) {
        man.render_options_section(page)?;
    }
    let help = command.get_after_help().map(ToString::to_string).unwrap_or_default();
    let mut roff = Roff::new();
    for (title, blocks) in sections(&help) {
        if blocks.is_empty() {
            continue;
        }
        roff.control("SH", [title]);
        for block in blocks {
            roff.control("PP", []);
            if block.contains('\n') || block.starts_with(' ') {
                roff.control("nf", []);
                for line in block.lines() {
                    roff.text([roman(line)]);
                }
                roff.control("fi", []);
            } else {
                roff.text([roman(block)]);
            }
        }
    }
    roff.to_writer(page)
}

/// The paragraphs at the end of a help text, by the section that they belong to.
fn sections(help: &str) -> [(&'static str, Vec<&str>); 3] {
    let (mut notes, mut exits, mut examples) = (Vec::new(), Vec::new(), Vec::new());
    for block in help.split("\n\n").filter(|block| !block.is_empty()) {
        if let Some(lines) = block.strip_prefix("Examples:\n") {
            examples.push(lines);
        } else if let Some(text) =
            ["Exit codes:", "Exit code:"].into_iter().find_map(|title| block.strip_prefix(title))
        {
            exits.push(text.trim_start_matches([' ', '\n']));
        } else {
            notes.push(block);
        }
    }
    [("NOTES", notes), ("EXIT STATUS", exits), ("EXAMPLES", examples)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subcommand_has_a_page_with_its_examples() {
        let pages = pages();
        let names: Vec<&str> = pages.iter().map(|(name, _)| name.as_str()).collect();
        for name in ["runner.1", "runner-exec.1", "runner-tool-run.1", "runner-completions.1"] {
            assert!(names.contains(&name), "{names:?}");
        }
        assert!(!names.contains(&"runner-man.1"));
        for (name, page) in &pages {
            let text = String::from_utf8(page.clone()).unwrap();
            assert!(text.contains(".SH EXAMPLES") && text.contains("runner "), "{name}: {text}");
        }
    }

    #[test]
    fn the_end_of_a_help_text_is_taken_apart() {
        let help =
            "Needs a terminal.\n\nExamples:\n  runner a\n  runner b\n\nExit codes: 0 yes, 1 no.";
        let [notes, exits, examples] = sections(help).map(|(_, blocks)| blocks);
        assert_eq!(notes, ["Needs a terminal."]);
        assert_eq!(exits, ["0 yes, 1 no."]);
        assert_eq!(examples, ["  runner a\n  runner b"]);
    }
}
