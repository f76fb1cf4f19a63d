//! Whether a line did in a sandbox what it does in bash, and what is different.

use super::shells::Ran;
use super::state::{Entry, State};
use super::table::Compared;

/// A line that was run, and the project that it left.
pub struct Outcome {
    pub ran: Ran,
    pub state: State,
}

/// What is different first, in a few words; nothing where the line works.
pub fn difference(compared: Compared, bash: &Outcome, sandbox: &Outcome) -> Option<String> {
    let why = refused(&sandbox.ran);
    if bash.ran.code != sandbox.ran.code {
        let codes = format!("exit {} instead of {}", code(&sandbox.ran), code(&bash.ran));
        return Some(why.unwrap_or(codes));
    }
    let (one, two) = (output(compared, bash), output(compared, sandbox));
    if one != two {
        return Some(why.unwrap_or_else(|| format!("output: {}", first_line(&one, &two))));
    }
    let path = first_path(bash, sandbox)?;
    Some(why.unwrap_or_else(|| format!("project: {path}")))
}

fn code(ran: &Ran) -> String {
    ran.code.map_or_else(|| "a signal".to_owned(), |code| code.to_string())
}

/// What the program itself said: a denial, an error, a change that was held back.
fn refused(ran: &Ran) -> Option<String> {
    let line = |start: &str| ran.err.lines().find(|line| line.trim_start().starts_with(start));
    if let Some(first) = line("deny ") {
        let code = first.rsplit_once('[').map_or("", |(_, code)| code.trim_end_matches(']'));
        let because = line("because").unwrap_or_default().trim_start();
        let because = because.strip_prefix("because").unwrap_or(because).trim();
        return Some(format!("denied, {code}: {because}"));
    }
    let said = line("error").or_else(|| line("runner:")).map(|line| line.trim().to_owned());
    let last = || ran.err.lines().last().map(|line| format!("said: {line}"));
    said.or_else(|| (ran.code != Some(0)).then(last).flatten())
}

/// The standard output, as it is compared.
fn output(compared: Compared, outcome: &Outcome) -> Vec<String> {
    let text = outcome.state.without_hashes(&String::from_utf8_lossy(&outcome.ran.out));
    let mut lines: Vec<String> = text.split('\n').map(str::to_owned).collect();
    match compared {
        Compared::All => {}
        Compared::Sorted => lines.sort(),
        Compared::Figures => lines.iter_mut().for_each(|line| *line = without_figures(line)),
        Compared::Listing => lines.iter_mut().for_each(|line| *line = without_owner(line)),
        Compared::Exit => lines.clear(),
    }
    lines
}

/// A line in which every number, with its decimals, is `#`.
fn without_figures(line: &str) -> String {
    let mut plain = String::new();
    for letter in line.chars() {
        let figure = letter.is_ascii_digit() || (letter == '.' && plain.ends_with('#'));
        if !figure {
            plain.push(letter);
        } else if !plain.ends_with('#') {
            plain.push('#');
        }
    }
    plain
}

/// A row of `ls -l`: permissions and name.
fn without_owner(line: &str) -> String {
    if line.starts_with("total ") {
        return "total".to_owned();
    }
    let words: Vec<&str> = line.split_whitespace().collect();
    match words.as_slice() {
        [mode, _links, _owner, _group, _size, _month, _day, _time, name @ ..]
            if mode.len() >= 10 && !name.is_empty() =>
        {
            format!("{mode} {}", name.join(" "))
        }
        _ => line.to_owned(),
    }
}

fn first_line(bash: &[String], sandbox: &[String]) -> String {
    let cut = |line: Option<&String>| match line {
        None => "nothing".to_owned(),
        Some(line) => format!("{:?}", line.chars().take(80).collect::<String>()),
    };
    let at = (0..bash.len().max(sandbox.len())).find(|&at| bash.get(at) != sandbox.get(at));
    let at = at.unwrap_or_default();
    format!("{} instead of {}", cut(sandbox.get(at)), cut(bash.get(at)))
}

/// The first path, or question to git, where two projects differ.
fn first_path(bash: &Outcome, sandbox: &Outcome) -> Option<String> {
    let (one, two) = (&bash.state.files, &sandbox.state.files);
    let paths = one.keys().chain(two.keys());
    for path in paths {
        match (one.get(path), two.get(path)) {
            (one, two) if one == two => {}
            (Some(_), None) => return Some(format!("{path} is missing")),
            (None, Some(_)) => return Some(format!("{path} should not be there")),
            (Some(Entry::File(a, x)), Some(Entry::File(b, y))) if a != b && x == y => {
                return Some(format!("{path} has permissions {b:o} instead of {a:o}"));
            }
            (Some(Entry::Folder(a)), Some(Entry::Folder(b))) => {
                return Some(format!("{path} has permissions {b:o} instead of {a:o}"));
            }
            _ => return Some(format!("{path} differs")),
        }
    }
    let (one, two) = (&bash.state.git, &sandbox.state.git);
    let mut names = one.keys().chain(two.keys());
    names.find(|name| one.get(*name) != two.get(*name)).map(|name| format!("git: {name} differs"))
}

#[test]
fn what_is_not_compared() {
    assert_eq!(without_figures("3 passed in 0.02s, 1.5.2"), "# passed in #s, #");
    assert_eq!(without_owner("drwxr-xr-x 2 root root 4096 Nov 18 19:32 a b"), "drwxr-xr-x a b");
    assert_eq!(without_owner("total 12"), "total");
    assert_eq!(without_owner("src:"), "src:");
}
