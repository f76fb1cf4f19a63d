//! Links: every file and anchor that a page names is there.

use std::path::{Component, Path, PathBuf};

use super::{Page, ROOT, none, pages};

#[test]
fn every_link_leads_somewhere() {
    let mut complaints = Vec::new();
    for page in pages() {
        for (line, target) in page.markdown().links() {
            if let Err(why) = resolve(&page.path, target) {
                complaints.push(format!("{}: `{target}`: {why}", page.at(line)));
            }
        }
    }
    none(&complaints);
}

/// Checks one target; addresses of the web are taken as they are.
fn resolve(from: &Path, target: &str) -> Result<(), String> {
    if target.starts_with("https://") {
        return Ok(());
    }
    let (file, anchor) = match target.split_once('#') {
        Some((file, anchor)) => (file, Some(anchor)),
        None => (target, None),
    };
    let path = if file.is_empty() {
        from.to_owned()
    } else {
        plain(&from.parent().unwrap_or(Path::new("")).join(file))
            .ok_or("leads out of the repository")?
    };
    let whole = Path::new(ROOT).join(&path);
    if !whole.exists() {
        return Err("there is no such file".to_owned());
    }
    let Some(anchor) = anchor else { return Ok(()) };
    let anchors = Page::read(&path).markdown().anchors();
    if anchors.iter().any(|known| known == anchor) {
        return Ok(());
    }
    Err(format!("no such heading; there are {}", anchors.join(", ")))
}

/// Without `..`.
fn plain(path: &Path) -> Option<PathBuf> {
    let mut plain = PathBuf::new();
    for component in path.components() {
        match component {
            Component::ParentDir => {
                if !plain.pop() {
                    return None;
                }
            }
            Component::Normal(name) => plain.push(name),
            Component::CurDir | Component::RootDir | Component::Prefix(_) => {}
        }
    }
    Some(plain)
}

/// Paths of the repository that a page names in code, such as `src/lib.rs`.
#[test]
fn every_path_of_the_repository_is_there() {
    let folders = ["src/", "tests/", "images/", "policies/", ".config/"];
    let mut complaints = Vec::new();
    let mut count = 0;
    for page in pages().iter().filter(|page| !page.is_generated()) {
        for (line, text) in page.markdown().lines {
            for span in text.split('`').skip(1).step_by(2) {
                let plain = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
                let is_path = folders.iter().any(|folder| span.starts_with(folder))
                    && span.chars().all(plain);
                count += usize::from(is_path);
                if is_path && !Path::new(ROOT).join(span).exists() {
                    complaints.push(format!("{}: there is no `{span}`", page.at(line)));
                }
            }
        }
    }
    none(&complaints);
    assert!(count > 30, "only {count} paths were found");
}
