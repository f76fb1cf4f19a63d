//! README.md and `docs/`: what they say is what the code does.
//!
//! Duty: `docs/reference` is generated from the code's tables and compared with it; links resolve; examples load, and
//! are decided as the page says; command lines parse; prose is short. Non-goal: engines. Nothing here starts a sandbox.

mod commands;
mod decided;
mod examples;
mod links;
mod markdown;
mod prose;
mod reference;

use std::fs;
use std::path::{Path, PathBuf};

use markdown::Markdown;

/// The root of the repository.
const ROOT: &str = env!("CARGO_MANIFEST_DIR");

/// One page.
struct Page {
    /// Its path from the root of the repository.
    path: PathBuf,
    text: String,
}

impl Page {
    fn read(path: &Path) -> Self {
        let text = fs::read_to_string(Path::new(ROOT).join(path))
            .unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        Self { path: path.to_owned(), text }
    }

    fn markdown(&self) -> Markdown<'_> {
        Markdown::of(&self.text)
    }

    /// A line of it, as editors read places.
    fn at(&self, line: usize) -> String {
        format!("{}:{line}", self.path.display())
    }

    fn is_generated(&self) -> bool {
        self.path.starts_with("docs/reference")
    }
}

/// Pages outside of `docs/`.
const OTHERS: [&str; 4] = ["README.md", "CONTRIBUTING.md", "tools/README.md", "images/README.md"];

/// [`OTHERS`], and every page of `docs/`.
fn pages() -> Vec<Page> {
    let mut paths: Vec<PathBuf> = OTHERS.iter().map(PathBuf::from).collect();
    collect(Path::new("docs"), &mut paths);
    paths[OTHERS.len()..].sort();
    paths.iter().map(|path| Page::read(path)).collect()
}

fn collect(folder: &Path, paths: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(Path::new(ROOT).join(folder)).unwrap() {
        let path = folder.join(entry.unwrap().file_name());
        if Path::new(ROOT).join(&path).is_dir() {
            collect(&path, paths);
        } else if path.extension().is_some_and(|ending| ending == "md") {
            paths.push(path);
        }
    }
}

/// Fails with all complaints at once.
fn none(complaints: &[String]) {
    assert!(complaints.is_empty(), "{} complaints:\n{}", complaints.len(), complaints.join("\n"));
}

#[test]
fn the_readme_is_one_page_and_shows_the_commands_that_people_look_for() {
    let readme = Page::read(Path::new("README.md")).text;
    assert!(readme.lines().count() <= 150, "{} lines", readme.lines().count());
    for command in
        ["cargo run --release -- exec -- uname -a", "./tests/run", "runner policy explain"]
    {
        assert!(readme.contains(command), "{command}");
    }
}

#[test]
fn the_index_names_every_page() {
    let index = Page::read(Path::new("docs/README.md")).text;
    let missing: Vec<String> = pages()
        .iter()
        .filter_map(|page| {
            page.path.strip_prefix("docs").ok().map(|path| path.display().to_string())
        })
        .filter(|path| path != "README.md" && !path.contains('/'))
        .filter(|path| !index.contains(&format!("({path})")))
        .collect();
    none(&missing);
}
