//! `Cargo.toml` and `Cargo.lock`.

use toml::{Table, Value};

use super::project::{Direct, Project};

const SECTIONS: [(&str, &str); 3] =
    [("dependencies", "normal"), ("dev-dependencies", "dev"), ("build-dependencies", "build")];

/// Reads both.
pub(super) fn project(manifest: &Table, lock: Option<&Table>) -> Project {
    let package = manifest.get("package");
    let text = |key: &str| package.and_then(|it| it.get(key)?.as_str()).map(str::to_owned);
    let mut project = Project {
        ecosystem: "cargo",
        name: text("name"),
        version: text("version"),
        ..Project::default()
    };
    direct(manifest, &mut project);
    let targets = manifest.get("target").and_then(Value::as_table);
    for target in targets.into_iter().flat_map(|it| it.iter()).filter_map(|(_, it)| it.as_table()) {
        direct(target, &mut project);
    }
    if let Some(workspace) = manifest.get("workspace").and_then(Value::as_table) {
        direct(workspace, &mut project);
    }
    let packages = lock.and_then(|lock| lock.get("package")?.as_array());
    for package in packages.into_iter().flatten() {
        let field = |key: &str| package.get(key).and_then(Value::as_str);
        // A package without a source is the project's own.
        if let (Some(name), Some(version), Some(_)) =
            (field("name"), field("version"), field("source"))
        {
            project.locked.entry(name.to_owned()).or_default().insert(version.to_owned());
        }
    }
    project
}

fn direct(table: &Table, project: &mut Project) {
    for (section, kind) in SECTIONS {
        let entries = table.get(section).and_then(Value::as_table);
        for (name, asked) in entries.into_iter().flat_map(|it| it.iter()) {
            let field = |key: &str| asked.get(key).and_then(Value::as_str);
            let elsewhere =
                ["path", "git"].into_iter().find_map(|key| Some(format!("{key} {}", field(key)?)));
            let requirement = match asked {
                Value::String(text) => text.clone(),
                _ if asked.get("workspace").is_some() => "workspace".to_owned(),
                _ => field("version").map(str::to_owned).or(elsewhere).unwrap_or_default(),
            };
            let name = field("package").unwrap_or(name).to_owned();
            project.direct.push(Direct { name, requirement, kind, locked: None });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn manifests_and_locks_are_read() {
        let manifest: Table = "[package]\nname = 'p'\nversion = '1.0.0'\n[dependencies]\na = '1'\nb = { version = '2', features = [] }\nc = { path = '../c' }\nd = { workspace = true }\nrenamed = { package = 'real', version = '3' }\n[dev-dependencies]\ne = '*'\n[target.'cfg(unix)'.build-dependencies]\nf = '4'\n".parse().unwrap();
        let lock: Table = "[[package]]\nname = 'a'\nversion = '1.1.0'\nsource = 'registry+x'\n[[package]]\nname = 'a'\nversion = '0.9.0'\nsource = 'registry+x'\n[[package]]\nname = 'p'\nversion = '1.0.0'\n".parse().unwrap();
        let project = project(&manifest, Some(&lock));
        let said: Vec<_> = project
            .direct
            .iter()
            .map(|it| (it.name.as_str(), it.requirement.as_str(), it.kind))
            .collect();
        for wanted in [
            ("a", "1", "normal"),
            ("b", "2", "normal"),
            ("c", "path ../c", "normal"),
            ("d", "workspace", "normal"),
            ("real", "3", "normal"),
            ("e", "*", "dev"),
            ("f", "4", "build"),
        ] {
            assert!(said.contains(&wanted), "{wanted:?} {said:?}");
        }
        assert_eq!((project.locked.len(), project.locked["a"].len()), (1, 2));
    }
}
