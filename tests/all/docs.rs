//! What the README says is what the code does.

use runner::exit;
use runner::policies::{Choice, Places, Trust, load};
use runner::sandbox::protection::{RuntimeKind, protections};
use runner::sandbox::{Protection, ProtectionStatus, UserChoice, WhyUser};
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
fn the_table_of_protections_is_the_protections() {
    let user = UserChoice { uid: 1000, gid: 1000, why: WhyUser::Caller };
    let of = |kind| protections(kind, &user);
    let cell = |protection: &Protection| match protection.status {
        ProtectionStatus::Enforced => format!("yes: {}", protection.enforced_by),
        ProtectionStatus::BestEffort(ends) => format!("partly: {}; {ends}", protection.enforced_by),
        ProtectionStatus::Absent(why) => format!("no: {why}"),
    };
    let (runc, gvisor) = (of(RuntimeKind::SharedKernel), of(RuntimeKind::Gvisor));
    let rows = runc
        .iter()
        .zip(&gvisor)
        .map(|(runc, gvisor)| vec![runc.name.to_owned(), cell(runc), cell(gvisor)]);
    let documented = table("## Guarantees and limits").into_iter().map(|row| row[..3].to_vec());
    assert_eq!(documented.collect::<Vec<_>>(), rows.collect::<Vec<_>>());
}

#[test]
fn the_policy_in_the_readme_loads_and_passes_its_tests() {
    let text = README.split_once("```yaml\n").unwrap().1.split_once("```").unwrap().0;
    let home = tempfile::tempdir().unwrap();
    let path = home.path().join("project.yml");
    std::fs::write(&path, text).unwrap();
    let places = Places::from_env(|_| None, None);
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
