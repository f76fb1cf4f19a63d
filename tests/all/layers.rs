//! Dependencies between the parts of the host program point one way.
//!
//! [`LAYERS`] is the order, from the fronts down to the leaves. A part may import parts of the layers
//! below its own, and those beside it that [`BESIDE`] names. There is no exception.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

/// The parts, from the fronts down. Crates (`policy`, `wire`, `compiler`, `finding`, `glob`) are held by the compiler.
const LAYERS: [&[&str]; 6] = [
    &["agent", "bench", "cli", "doctor", "mcp"],
    &["call"],
    &["audit", "broker", "mcp_client", "pool", "queue", "tool"],
    &["approvals", "config", "latency", "sandbox", "stage", "undo", "workspace"],
    &["engine", "policy_files", "registries", "store"],
    &["caller", "codes", "environment", "error", "exit", "git_index", "ids", "json", "sys", "text"],
];

/// Imports within a layer: the first may import the second.
const BESIDE: [(&str, &str); 22] = [
    ("approvals", "config"),
    ("broker", "audit"),
    ("caller", "ids"),
    ("cli", "agent"),
    ("cli", "bench"),
    ("cli", "doctor"),
    ("cli", "mcp"),
    ("error", "codes"),
    ("error", "exit"),
    ("exit", "codes"),
    ("ids", "sys"),
    ("sandbox", "workspace"),
    ("stage", "config"),
    ("stage", "undo"),
    ("stage", "workspace"),
    ("sys", "codes"),
    ("sys", "error"),
    ("sys", "exit"),
    ("tool", "broker"),
    ("tool", "mcp_client"),
    ("undo", "config"),
    ("undo", "workspace"),
];

/// Names of implementations of an engine, which only `engine` uses: all other code is about any engine.
const IMPLEMENTATIONS: [&str; 2] = ["Docker", "docker::"];

/// Files outside of `engine` that use such a name, and why.
const NAMED: [(&str, &str); 2] = [
    ("bench/peers.rs", "`docker run` is measured beside a call"),
    ("codes.rs", "what the embedded engine lacks is told with the engine that has it"),
];

/// The crates beside the host program, in folders of `src`.
const CRATES: [&str; 7] = ["compiler", "filter", "finding", "glob", "guest", "policy", "wire"];

#[test]
fn every_import_points_down() {
    let imports = imports();
    let mut problems = Vec::new();
    for ((from, to), files) in &imports {
        if !allowed(from, to) {
            let files: Vec<_> = files.iter().map(|file| file.display().to_string()).collect();
            problems.push(format!("{from} imports {to} in {}", files.join(", ")));
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
}

#[test]
fn the_order_has_no_cycle_and_names_every_part() {
    let there: BTreeSet<String> = sources().iter().map(|(part, _)| part.clone()).collect();
    let named: BTreeSet<String> = LAYERS.concat().into_iter().map(str::to_owned).collect();
    assert_eq!(there, named);
    // Layers are in order by themselves; what is allowed beside must be.
    let mut left: BTreeSet<&str> = LAYERS.concat().into_iter().collect();
    while !left.is_empty() {
        let free = |part: &&str| !BESIDE.iter().any(|(from, to)| from == part && left.contains(to));
        let done: Vec<&str> = left.iter().copied().filter(free).collect();
        assert!(!done.is_empty(), "a cycle among {left:?}");
        left.retain(|part| !done.contains(part));
    }
    for (from, to) in BESIDE {
        assert_eq!(layer(from), layer(to), "{from} and {to} are not beside each other");
    }
}

/// Where JSON is read that nobody but this program wrote. All other JSON comes from outside, and the part
/// `json` reads it: bounded, and no key twice.
const OWN_JSON: [(&str, &str); 18] = [
    ("approvals/book.rs", "rows of the database"),
    ("audit/read.rs", "rows of the database"),
    ("audit/verify.rs", "rows of the database; the chain over their bytes is what is verified"),
    ("bench/call.rs", "the output of this program"),
    ("broker/client/", "frames of the host, in the same process"),
    ("call/launch/watchdog/", "orders that the parent process writes"),
    ("call/tool/describe.rs", "rows of the database, bounded when they were written"),
    ("engine/docker/cache.rs", "a file of the caller's cache"),
    ("engine/embedded/waiting/", "orders and answers between two processes of this program"),
    ("mcp_client/memory.rs", "rows of the database"),
    (
        "policy_files/trust.rs",
        "a file of ours, checked for its owner, of types without free values",
    ),
    ("pool/", "files of the caller's state folder"),
    ("tool/compile/cache.rs", "a file of the caller's state folder, under its own digest"),
    ("tool/schema/suite.rs", "cases of the standard, for tests only"),
    ("stage/folder.rs", "files of the caller's state folder"),
    ("stage/journal.rs", "files of the caller's state folder"),
    ("undo/rows.rs", "rows of the database"),
    ("undo/state.rs", "rows of the database"),
];

#[test]
fn json_from_outside_is_read_in_one_place() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let readers = ["serde_json::from_s", "serde_json::from_r", "serde_json::Deserializer"];
    let mut found: BTreeSet<&str> = BTreeSet::new();
    for (part, file) in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        let program = text.split("mod tests {").next().unwrap();
        if part == "json" || !readers.iter().any(|word| program.contains(word)) {
            continue;
        }
        let below = file.strip_prefix(&src).unwrap().to_str().unwrap();
        match OWN_JSON.iter().find(|(place, _)| below.starts_with(place)) {
            Some((place, _)) => found.insert(*place),
            None => panic!("{below} reads JSON: use crate::json, or say who wrote it"),
        };
    }
    assert_eq!(found.len(), OWN_JSON.len(), "only {found:?} read JSON");
}

/// Every advisory lock is a lease: one place knows of removed files, links, signals and inheritance.
#[test]
fn only_leases_lock_files() {
    let locks = ["FlockOperation", "fs::flock", "lock_shared(", "fcntl_lock"];
    let holds = |(_, file): &(String, PathBuf)| {
        let text = std::fs::read_to_string(file).unwrap();
        locks.iter().any(|word| text.contains(word))
    };
    let found: Vec<PathBuf> = sources().into_iter().filter(holds).map(|(_, file)| file).collect();
    let lease = Path::new(env!("CARGO_MANIFEST_DIR")).join("src/sys/lease.rs");
    assert_eq!(found, [lease]);
}

/// The only files that ask the process for its environment: the fronts, each for its own, and two programs of their own: the
/// watchdog, and the doctor's probe, which looks at the environment of its sandbox.
const READS_ENVIRONMENT: [&str; 4] =
    ["bench/peers.rs", "call/launch/watchdog/watch.rs", "cli/front.rs", "doctor/inside/strain.rs"];

#[test]
fn only_the_front_reads_the_environment() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let reads = |(_, file): &(String, PathBuf)| {
        let text = std::fs::read_to_string(file).unwrap();
        text.split("#[cfg(test)]").next().unwrap().contains("env::var")
    };
    let found = sources().into_iter().filter(reads);
    let mut found: Vec<_> =
        found.map(|(_, file)| file.strip_prefix(&src).unwrap().display().to_string()).collect();
    found.sort();
    assert_eq!(found, READS_ENVIRONMENT);
}

#[test]
fn only_the_engine_names_its_implementations() {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut problems = Vec::new();
    let mut named = BTreeSet::new();
    for (_, file) in sources().into_iter().filter(|(part, _)| part != "engine") {
        let code = code_in(&std::fs::read_to_string(&file).unwrap());
        let below = file.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
        for word in IMPLEMENTATIONS.into_iter().filter(|word| code.contains(word)) {
            match NAMED.iter().find(|(excepted, _)| *excepted == below) {
                Some((excepted, _)) => drop(named.insert(*excepted)),
                None => problems.push(format!("{below} says `{word}`")),
            }
        }
    }
    assert!(problems.is_empty(), "{}", problems.join("\n"));
    assert_eq!(named, NAMED.map(|(file, _)| file).into(), "an exception that is not needed");
}

#[test]
fn imports_are_found_in_every_form() {
    let text = "use crate::one::A;\npub(crate) use crate::{two::{B, C as D}, three};\n\
                // use crate::comment::X;\nfn f() -> crate::four::E { crate::five::f(\"//\") }\n\
                #[cfg(test)]\nmod tests {\n use crate::six::F;\n}\n";
    let found: Vec<String> = parts_in(text).into_iter().collect();
    assert_eq!(found, ["five", "four", "one", "three", "two"]);
}

fn layer(part: &str) -> Option<usize> {
    LAYERS.iter().position(|parts| parts.contains(&part))
}

fn allowed(from: &str, to: &str) -> bool {
    layer(from) < layer(to) || BESIDE.contains(&(from, to))
}

/// Which part imports which, and in which files. Tests may import what they like.
fn imports() -> BTreeMap<(String, String), Vec<PathBuf>> {
    let mut found: BTreeMap<_, Vec<_>> = BTreeMap::new();
    for (part, file) in sources() {
        let text = std::fs::read_to_string(&file).unwrap();
        for to in parts_in(&text) {
            if to != part {
                found.entry((part.clone(), to)).or_default().push(file.clone());
            }
        }
    }
    found
}

/// Every file of the host program that is not only a test, with the part that it belongs to.
fn sources() -> Vec<(String, PathBuf)> {
    let src = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let mut files = Vec::new();
    let mut folders = vec![src.clone()];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            let below = path.strip_prefix(&src).unwrap();
            let name = path.file_stem().unwrap().to_str().unwrap();
            if path.is_dir() {
                if name != "tests" && !CRATES.iter().any(|krate| below == Path::new(krate)) {
                    folders.push(path);
                }
            } else if path.extension().is_some_and(|ending| ending == "rs")
                && !(name.ends_with("_tests") || ["tests", "testing"].contains(&name))
            {
                let first = below.iter().next().unwrap().to_str().unwrap();
                let part = first.strip_suffix(".rs").unwrap_or(first);
                if !["lib", "main"].contains(&part) {
                    files.push((part.to_owned(), path));
                }
            }
        }
    }
    files
}

/// The parts that a file names in `crate::…` paths, outside of comments and of its tests.
fn parts_in(text: &str) -> BTreeSet<String> {
    let code = code_in(text);
    let mut found = BTreeSet::new();
    for (at, _) in code.match_indices("crate::") {
        let rest = &code[at + "crate::".len()..];
        match rest.strip_prefix('{') {
            Some(group) => found.extend(heads(group)),
            None => found.extend(word(rest)),
        }
    }
    found
}

/// A file without comments and tests.
fn code_in(text: &str) -> String {
    let program = text.split("mod tests {").next().unwrap_or(text);
    let code = program.lines().filter(|line| !line.trim_start().starts_with("//"));
    code.collect::<Vec<_>>().join("\n")
}

/// The first word of each entry of a group of imports.
fn heads(group: &str) -> Vec<String> {
    let (mut depth, mut fresh, mut found) = (0_usize, true, Vec::new());
    for (at, letter) in group.char_indices() {
        match letter {
            '{' => depth += 1,
            '}' if depth == 0 => break,
            '}' => depth -= 1,
            ',' if depth == 0 => fresh = true,
            letter if fresh && !letter.is_whitespace() => {
                found.extend(word(&group[at..]));
                fresh = false;
            }
            _ => {}
        }
    }
    found
}

fn word(text: &str) -> Option<String> {
    let end = text.find(|letter: char| !(letter.is_ascii_alphanumeric() || letter == '_'));
    let word = &text[..end.unwrap_or(text.len())];
    word.starts_with(|letter: char| letter.is_ascii_lowercase()).then(|| word.to_owned())
}
