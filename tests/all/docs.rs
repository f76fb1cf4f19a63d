//! What the README says is what the code does.

use runner::exit;

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
