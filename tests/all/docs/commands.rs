//! Command lines: every `$ runner …` of a console block parses, and names policies and tools that exist.

use std::collections::BTreeSet;

use clap::Parser as _;
use runner::cli::Cli;
use runner::config;
use runner::environment::Environment;
use runner::ids::ToolName;
use runner::policy_files::{Places, shipped};
use runner::tool::Library;

use super::examples::key;
use super::{Page, none, pages};
use crate::words;

#[test]
fn every_command_line_parses_and_names_what_exists() {
    let mut complaints = Vec::new();
    let mut count = 0;
    for page in pages() {
        let names = Names::of(&page);
        for (number, line) in typed(&page) {
            let Some(argv) =
                argv(&line).unwrap_or_else(|why| panic!("{}: {line}: {why}", page.at(number)))
            else {
                continue;
            };
            count += 1;
            if let Err(error) = Cli::try_parse_from(&argv) {
                let help = matches!(
                    error.kind(),
                    clap::error::ErrorKind::DisplayHelp
                        | clap::error::ErrorKind::DisplayVersion
                        | clap::error::ErrorKind::DisplayHelpOnMissingArgumentOrSubcommand
                );
                if !help {
                    complaints.push(format!("{}: {line}: {error}", page.at(number)));
                }
            }
            if let Err(why) = fit(&page, &argv) {
                complaints.push(format!("{}: {line}: {why}", page.at(number)));
            }
            complaints.extend(
                names.missing(&argv).map(|why| format!("{}: {line}: {why}", page.at(number))),
            );
        }
    }
    none(&complaints);
    assert!(count > 60, "only {count} command lines were found");
}

/// The lines behind a prompt, with what `\` continues.
fn typed(page: &Page) -> Vec<(usize, String)> {
    let mut found: Vec<(usize, String)> = Vec::new();
    for block in page.markdown().blocks {
        if !["console", "sh"].contains(&block.info) {
            continue;
        }
        let mut goes_on = false;
        for (at, line) in block.text.lines().enumerate() {
            let plain = line.trim_end_matches('\\');
            match line.strip_prefix("$ ") {
                Some(_) => found.push((block.line + at, plain.trim_start_matches("$ ").to_owned())),
                None if goes_on => found.last_mut().expect("a line before").1.push_str(plain),
                None => {}
            }
            goes_on = line.ends_with('\\');
        }
    }
    found
}

/// The words that `runner` is given; `None` for another program.
fn argv(line: &str) -> Result<Option<Vec<String>>, String> {
    // A comment stands behind two blanks at least, and may hold an apostrophe.
    let mut words = words::split(line.split("  #").next().unwrap_or_default())?;
    while words.first().is_some_and(|word| word.contains('=') && !word.starts_with('-')) {
        words.remove(0);
    }
    if words.starts_with(&["cargo".to_owned(), "run".to_owned()]) {
        let end = words.iter().position(|word| word == "--").ok_or("no `--`")?;
        words.drain(..end);
        words[0] = "runner".to_owned();
    }
    if words.first().is_none_or(|word| word != "runner") {
        return Ok(None);
    }
    let end = words
        .iter()
        .position(|word| ["|", ">", ">>", "<", "&&", ";", "#", "2>&1"].contains(&word.as_str()));
    words.truncate(end.unwrap_or(words.len()));
    Ok(Some(words))
}

/// Checks the arguments of `tool run NAME` against the schema of a built-in tool.
fn fit(page: &Page, argv: &[String]) -> Result<(), String> {
    let words: Vec<&str> = argv.iter().map(String::as_str).collect();
    let ["runner", "tool", "run", name, rest @ ..] = words.as_slice() else { return Ok(()) };
    let Some(tool) = runner::tool::builtin::find(name) else { return Ok(()) };
    let places = Places::of(&Environment::default(), None);
    let library = Library::find(&places, &[], &config::load_files(&[]).unwrap());
    let name: ToolName = tool.name.parse().unwrap();
    let found = library.tool(&name).map_err(|error| error.to_string())?;
    let definition = found.definition().map_err(|error| error.to_string())?;
    let Some(definition) = definition else {
        return Err(format!("{}: no definition", page.path.display()));
    };
    let value = |at: usize| rest.get(at + 1).map(|word| (*word).to_owned());
    let at = |option: &str| rest.iter().position(|word| *word == option);
    let whole = at("--args").and_then(value);
    let pairs: Vec<String> =
        (0..rest.len()).filter(|at| rest[*at] == "--arg").filter_map(value).collect();
    if whole.as_deref() == Some("{…}") {
        return Ok(());
    }
    runner::tool::arguments::read(&definition.schema, whole.as_deref(), &pairs)
        .map(drop)
        .map_err(|violations| format!("{violations:?}"))
}

/// What a page may name.
struct Names {
    policies: BTreeSet<String>,
    tools: BTreeSet<String>,
}

impl Names {
    fn of(page: &Page) -> Self {
        let mut policies: BTreeSet<String> =
            shipped().iter().map(|policy| policy.name().to_owned()).collect();
        let mut tools: BTreeSet<String> =
            runner::tool::builtin::ALL.iter().map(|tool| tool.name.to_owned()).collect();
        for entry in std::fs::read_dir(format!("{}/tools", super::ROOT)).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            let stem = name.strip_suffix(".yml").or_else(|| name.strip_suffix(".tool.ts"));
            tools.extend(stem.map(str::to_owned));
        }
        for block in page.markdown().blocks {
            let name = key(&block.text, "name").map(str::to_owned);
            match block.info {
                "yaml policy" | "yaml managed-policy" => policies.extend(name),
                "yaml tool" => tools.extend(name),
                _ => {}
            }
        }
        // What `tool new` makes on the page is there afterwards.
        for (_, line) in typed(page) {
            let made =
                line.strip_prefix("runner tool new ").and_then(|rest| rest.split(' ').next());
            tools.extend(made.map(str::to_owned));
        }
        Self { policies, tools }
    }

    fn missing(&self, argv: &[String]) -> impl Iterator<Item = String> {
        let own: Vec<&str> =
            argv.iter().map(String::as_str).take_while(|word| *word != "--").collect();
        let mut missing = Vec::new();
        for pair in own.windows(2) {
            let is_name = !pair[1].contains(['/', '.']);
            if ["--policy", "-p"].contains(&pair[0]) && is_name && !self.policies.contains(pair[1])
            {
                missing.push(format!("no policy `{}`", pair[1]));
            }
        }
        if let ["runner", "tool", verb, rest @ ..] = own.as_slice()
            && ["run", "info", "enable", "disable", "check"].contains(verb)
        {
            let many = ["enable", "disable", "check"].contains(verb);
            let words = rest.iter().take_while(|word| !word.starts_with('-')).take(if many {
                usize::MAX
            } else {
                1
            });
            for name in words.filter(|name| !name.contains(['/', '.'])) {
                // Tools of a server have its name before theirs, and no page has the server itself.
                if !name.contains("__") && !self.tools.contains(*name) {
                    missing.push(format!("no tool `{name}`"));
                }
            }
        }
        missing.into_iter()
    }
}
