//! What the README says is what the code does.

use runner::codes::{self, Recoverable};
use runner::engine::plan::{Protection, ProtectionStatus};
use runner::engine::runtime_kind::RuntimeKind;
use runner::exit;
use runner::policy_files::{Choice, Places, Trust, load};
use runner::sandbox::protection::{Machine, demanded_from, protections};
use runner::workspace::protected::table::{self as protected, Class};
use runner_policy::Code;

const README: &str = include_str!("../../README.md");

/// The rows of the Markdown table below a heading, cells trimmed.
fn table(heading: &str) -> Vec<Vec<String>> {
    let section =
        README.split_once(heading).unwrap_or_else(|| panic!("no {heading:?} in the README")).1;
    section
        .lines()
        .skip_while(|line| !line.starts_with('|'))
        .take_while(|line| line.starts_with('|'))
        .skip(2)
        .map(|line| line.trim_matches('|').split('|').map(|cell| cell.trim().to_owned()).collect())
        .collect()
}

#[test]
fn the_table_of_exit_codes_is_the_codes() {
    let code: Vec<_> = exit::TABLE
        .iter()
        .map(|(code, meaning)| vec![code.get().to_string(), (*meaning).to_owned()])
        .collect();
    assert_eq!(table("## Exit codes"), code);
}

#[test]
fn the_table_of_limits_is_the_limits() {
    let code: Vec<_> = runner_policy::limits::TABLE
        .iter()
        .map(|row| {
            let show = |figure| row.unit.show(figure);
            vec![
                format!("`{}`", row.key),
                show(row.basic),
                show(row.strict),
                show(row.paranoid),
                show(row.ceiling),
                row.about.to_owned(),
            ]
        })
        .collect();
    assert_eq!(table("### Limits"), code);
}

#[test]
fn the_table_of_decision_codes_is_the_codes() {
    let code: Vec<_> = Code::ALL
        .iter()
        .map(|(_, word, about)| vec![format!("`{word}`"), (*about).to_owned()])
        .collect();
    assert_eq!(table("## A denial"), code);
}

#[test]
fn the_table_of_what_a_sandbox_keeps_is_the_kinds() {
    let code: Vec<_> = runner::call::ShortfallKind::TABLE
        .iter()
        .map(|(_, word, about)| vec![format!("`{word}`"), (*about).to_owned()])
        .collect();
    assert_eq!(table("### What the sandbox kept"), code);
}

/// `RUNNER_BLESS=1` writes it anew.
#[test]
fn the_table_of_error_codes_is_the_codes() {
    let heading = "## Error codes";
    let rows: Vec<_> = codes::TABLE
        .iter()
        .map(|row| {
            let again = match row.recoverable {
                Recoverable::Yes => "yes",
                Recoverable::No => "no",
            };
            let code = format!("`{}`", row.code);
            let cells = [&code, row.group.words(), row.about, again, row.suggestion];
            cells.map(str::to_owned).to_vec()
        })
        .collect();
    if std::env::var_os("RUNNER_BLESS").is_some() {
        bless(
            heading,
            "| code | from | meaning | again? | next step |\n| --- | --- | --- | --- | --- |",
            &rows,
        );
        return;
    }
    assert_eq!(table(heading), rows, "RUNNER_BLESS=1 writes it anew");
}

/// `RUNNER_BLESS=1` writes it anew.
#[test]
fn the_table_of_words_of_others_is_theirs() {
    let heading = "The words of other systems";
    let rows: Vec<Vec<String>> = codes::ALIASES
        .iter()
        .map(|(other, ours)| vec![format!("`{}`", other.to_uppercase()), format!("`{ours}`")])
        .collect();
    if std::env::var_os("RUNNER_BLESS").is_some() {
        bless(heading, "| theirs | ours |\n| --- | --- |", &rows);
        return;
    }
    assert_eq!(table(heading), rows, "RUNNER_BLESS=1 writes it anew");
}

/// `RUNNER_BLESS=1` writes it anew.
#[test]
fn the_table_of_findings_is_the_findings() {
    let heading = "The codes of findings";
    let rows: Vec<Vec<String>> = codes::FINDINGS
        .iter()
        .map(|(code, about)| vec![format!("`{code}`"), (*about).to_owned()])
        .collect();
    if std::env::var_os("RUNNER_BLESS").is_some() {
        bless(heading, "| code | meaning |\n| --- | --- |", &rows);
        return;
    }
    assert_eq!(table(heading), rows, "RUNNER_BLESS=1 writes it anew");
}

/// `RUNNER_BLESS=1` writes it anew.
#[test]
fn the_table_of_settings_is_the_settings() {
    let figures = runner::config::FIGURES
        .iter()
        .map(|row| [format!("`{}`", row.key), row.unit.show(row.default), row.about.to_owned()]);
    let flags = runner::config::FLAGS
        .iter()
        .map(|row| [format!("`{}`", row.key), row.default.to_string(), row.about.to_owned()]);
    let rows: Vec<Vec<String>> = figures.chain(flags).map(Vec::from).collect();
    let heading = "In the managed file alone";
    if std::env::var_os("RUNNER_BLESS").is_some() {
        bless(heading, "| key | default | meaning |\n| --- | --- | --- |", &rows);
        return;
    }
    assert_eq!(table(heading), rows, "RUNNER_BLESS=1 writes it anew");
}

/// `RUNNER_BLESS=1` writes it anew.
#[test]
fn the_table_of_what_the_host_runs_is_the_table() {
    let mut rows: Vec<Vec<String>> = Vec::new();
    for row in protected::TABLE.iter().chain(protected::GIT) {
        let class = match row.class {
            Class::Never => "never",
            Class::Named => "named",
            Class::Source => "source",
        };
        let name = format!("`{}`", row.pattern);
        match rows.last_mut() {
            Some(last) if last[0] == class && last[1] == row.runs => {
                last[2] = format!("{} {name}", last[2]);
            }
            _ => rows.push(vec![class.to_owned(), row.runs.to_owned(), name]),
        }
    }
    let heading = "### What the host runs later";
    if std::env::var_os("RUNNER_BLESS").is_some() {
        bless(heading, "| class | run by | names |\n| --- | --- | --- |", &rows);
        return;
    }
    assert_eq!(table(heading), rows, "RUNNER_BLESS=1 writes it anew");
}

/// Writes the table below a heading anew.
fn bless(heading: &str, head: &str, rows: &[Vec<String>]) {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/README.md");
    // Another test may have written its own table meanwhile.
    let readme = std::fs::read_to_string(file).expect("the README");
    let (before, after) = readme.split_once(heading).expect("the heading");
    let start = after.find("\n|").expect("a table") + 1;
    let end = start + after[start..].find("\n\n").expect("an end of the table");
    let lines: Vec<String> = rows.iter().map(|row| format!("| {} |", row.join(" | "))).collect();
    let text = format!(
        "{before}{heading}{}{head}\n{}{}",
        &after[..start],
        lines.join("\n"),
        &after[end..]
    );
    std::fs::write(file, text).expect("written");
}

/// `RUNNER_BLESS=1` writes it anew.
#[test]
fn the_table_of_protections_is_the_protections() {
    let cell = |protection: &Protection| match protection.status {
        ProtectionStatus::Enforced => format!("yes: {}", protection.enforced_by),
        ProtectionStatus::BestEffort(ends) => format!("partly: {}; {ends}", protection.enforced_by),
        ProtectionStatus::Absent(why) => format!("no: {why}"),
    };
    let on = |kind, machine| protections(kind, machine);
    let columns = [
        on(RuntimeKind::SharedKernel, Machine::WHOLE),
        on(RuntimeKind::Gvisor, Machine::WHOLE),
        on(RuntimeKind::Direct, Machine::WHOLE),
        on(RuntimeKind::Direct, Machine::WITHOUT_GROUPS),
    ];
    let mut rows: Vec<Vec<String>> = Vec::new();
    for (at, protection) in columns[0].iter().enumerate() {
        let mut cells: Vec<String> = columns.iter().map(|column| cell(&column[at])).collect();
        if cells[2] == cells[3] {
            cells[3] = "the same".to_owned();
        }
        let name = protection.name.to_owned();
        let level = demanded_from(protection.name).unwrap().to_owned();
        rows.push([vec![name], cells, vec![level]].concat());
    }
    let heading = "## Guarantees and limits";
    if std::env::var_os("RUNNER_BLESS").is_some() {
        let head = "| protection | Docker with runc | with gVisor (runsc) | embedded | embedded without control groups | \
                    demanded from |\n| --- | --- | --- | --- | --- | --- |";
        bless(heading, head, &rows);
        return;
    }
    assert_eq!(table(heading), rows, "RUNNER_BLESS=1 writes it anew");
}

#[test]
fn the_policy_in_the_readme_loads_and_passes_its_tests() {
    let text = README.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("project.yml");
    std::fs::write(&path, text).unwrap();
    let places = Places::of(&runner::environment::Environment::default(), None);
    let loaded =
        load(&Choice::File(path), &places, Trust::Required).map_err(|error| error.to_string());
    assert_eq!(loaded.unwrap().policy.name(), "project");
}

#[test]
fn the_readme_shows_the_commands_that_people_look_for() {
    for command in
        ["cargo run --release -- exec -- uname -a", "./tests/run", "runner policy explain"]
    {
        assert!(README.contains(command), "{command}");
    }
}
