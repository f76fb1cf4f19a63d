//! `package.json` and `package-lock.json`.

use serde_json::{Map, Value};

use super::project::{Direct, Project};

const SECTIONS: [(&str, &str); 4] = [
    ("dependencies", "normal"),
    ("devDependencies", "dev"),
    ("optionalDependencies", "optional"),
    ("peerDependencies", "peer"),
];

/// Reads both.
pub(super) fn project(manifest: &Value, lock: Option<&Value>) -> Project {
    let text = |key: &str| manifest.get(key).and_then(Value::as_str).map(str::to_owned);
    let mut project = Project {
        ecosystem: "npm",
        name: text("name"),
        version: text("version"),
        ..Project::default()
    };
    for (section, kind) in SECTIONS {
        for (name, requirement) in object(manifest, section) {
            let requirement = requirement.as_str().unwrap_or_default().to_owned();
            let locked = lock.and_then(|lock| top(lock, name));
            project.direct.push(Direct { name: name.clone(), requirement, kind, locked });
        }
    }
    if let Some(lock) = lock {
        locked(lock, &mut project);
    }
    project
}

fn object<'v>(value: &'v Value, key: &str) -> impl Iterator<Item = (&'v String, &'v Value)> {
    value.get(key).and_then(Value::as_object).into_iter().flat_map(Map::iter)
}

fn version(value: &Value) -> Option<String> {
    value.get("version").and_then(Value::as_str).map(str::to_owned)
}

/// The version that a project itself gets.
fn top(lock: &Value, name: &str) -> Option<String> {
    let new = lock.get("packages").and_then(|it| it.get(format!("node_modules/{name}")));
    let old = || lock.get("dependencies").and_then(|it| it.get(name));
    new.or_else(old).and_then(version)
}

fn locked(lock: &Value, project: &mut Project) {
    for (path, package) in object(lock, "packages") {
        // Packages of the project's own are named by other paths.
        let Some((_, name)) = path.rsplit_once("node_modules/") else { continue };
        let name = package.get("name").and_then(Value::as_str).unwrap_or(name);
        if let Some(version) = version(package) {
            project.locked.entry(name.to_owned()).or_default().insert(version);
        }
    }
    if lock.get("packages").is_some() {
        return;
    }
    // The first form of the file: packages in packages, as deep as the reader lets them be.
    let mut levels = vec![lock];
    while let Some(level) = levels.pop() {
        for (name, package) in object(level, "dependencies") {
            if let Some(version) = version(package) {
                project.locked.entry(name.clone()).or_default().insert(version);
            }
            levels.push(package);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn manifest() -> Value {
        json!({ "name": "p", "version": "1.0.0", "dependencies": { "a": "^1", "@s/b": "2" }, "devDependencies": { "c": "*" } })
    }

    #[test]
    fn a_new_lock_is_read() {
        let lock = json!({ "lockfileVersion": 3, "packages": {
            "": { "name": "p" }, "node_modules/a": { "version": "1.2.0" }, "node_modules/@s/b": { "version": "2.0.0" },
            "node_modules/c": { "version": "3.0.0" }, "node_modules/c/node_modules/a": { "version": "0.9.0" },
            "packages/own": { "version": "0.0.1" } } });
        let project = project(&manifest(), Some(&lock));
        assert_eq!(project.direct.len(), 3);
        assert_eq!(project.direct[0].locked.as_deref(), Some("1.2.0"));
        assert_eq!(project.locked["a"].len(), 2);
        assert_eq!(project.locked.len(), 3);
    }

    #[test]
    fn an_old_lock_and_nonsense_are_read() {
        let lock = json!({ "dependencies": { "a": { "version": "1.0.0", "dependencies": { "d": { "version": "4.0.0" } } } } });
        let it = project(&manifest(), Some(&lock));
        assert_eq!((it.locked.len(), it.direct[0].locked.as_deref()), (2, Some("1.0.0")));
        for odd in [json!(1), json!([]), json!({ "dependencies": [1], "packages": "x" })] {
            assert_eq!(project(&odd, Some(&odd)).direct.len(), 0);
        }
    }
}
