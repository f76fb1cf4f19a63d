//! The required cases of the official test suite for JSON Schema 2020-12 (`tests/cases/json-schema`), for every
//! part that checks by a schema.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;

use serde_json::{Value, json};

/// Schemas of the suite that refer to documents of their own, as the suite's server would give them. Without the documents
/// each is refused; with them under `$defs`, each with the `$id` by which it is referred to, it is not. Nothing is fetched
/// in either case.
#[rustfmt::skip]
pub(crate) const WITH_DOCUMENTS: &[(&str, &str, &[&str])] = &[
    ("dynamicRef", "strict-tree schema, guards against misspelled properties", &["draft2020-12/tree.json"]),
    ("dynamicRef", "tests for implementation dynamic anchor and reference link", &["draft2020-12/extendible-dynamic-ref.json"]),
    ("dynamicRef", "$ref and $dynamicAnchor are independent of order - $defs first", &["draft2020-12/extendible-dynamic-ref.json"]),
    ("dynamicRef", "$ref and $dynamicAnchor are independent of order - $ref first", &["draft2020-12/extendible-dynamic-ref.json"]),
    ("dynamicRef", "$ref to $dynamicRef finds detached $dynamicAnchor", &["draft2020-12/detached-dynamicref.json"]),
    ("refRemote", "remote ref", &["draft2020-12/integer.json"]),
    ("refRemote", "fragment within remote ref", &["draft2020-12/subSchemas.json"]),
    ("refRemote", "anchor within remote ref", &["draft2020-12/locationIndependentIdentifier.json"]),
    ("refRemote", "ref within remote ref", &["draft2020-12/subSchemas.json"]),
    ("refRemote", "base URI change", &["draft2020-12/baseUriChange/folderInteger.json"]),
    ("refRemote", "base URI change - change folder", &["draft2020-12/baseUriChangeFolder/folderInteger.json"]),
    ("refRemote", "base URI change - change folder in subschema", &["draft2020-12/baseUriChangeFolderInSubschema/folderInteger.json"]),
    ("refRemote", "root ref in remote ref", &["draft2020-12/name-defs.json"]),
    ("refRemote", "remote ref with ref to defs", &["draft2020-12/ref-and-defs.json"]),
    ("refRemote", "Location-independent identifier in remote ref", &["draft2020-12/locationIndependentIdentifier.json"]),
    ("refRemote", "retrieved nested refs resolve relative to their URI not $id", &["draft2020-12/nested/foo-ref-string.json", "draft2020-12/nested/string.json"]),
    ("refRemote", "remote HTTP ref with different $id", &["different-id-ref-string.json"]),
    ("refRemote", "remote HTTP ref with different URN $id", &["urn-ref-string.json"]),
    ("refRemote", "remote HTTP ref with nested absolute ref", &["nested-absolute-ref-to-string.json"]),
    ("refRemote", "$ref to $ref finds detached $anchor", &["draft2020-12/detached-ref.json"]),
];

/// What stays refused, and why.
#[rustfmt::skip]
pub(crate) const REFUSED: &[(&str, &str, &str)] = &[
    ("vocabulary", "schema that uses custom metaschema with with no validation vocabulary", "schemas are read as JSON Schema 2020-12"),
    ("vocabulary", "ignore unrecognized optional vocabulary", "schemas are read as JSON Schema 2020-12"),
];

/// One group of the suite.
pub(crate) struct Group {
    /// File and group.
    pub name: (String, String),
    /// As the suite has it.
    pub alone: Value,
    /// With the documents that it refers to.
    pub schema: Value,
    /// What is tried, the value, and whether it fits.
    pub tests: Vec<(String, Value, bool)>,
}

impl Group {
    /// Whether the schema refers to other documents.
    pub(crate) fn has_documents(&self) -> bool {
        self.alone != self.schema
    }

    /// Why it stays refused, if it does.
    pub(crate) fn refused(&self) -> Option<&'static str> {
        let (file, group) = (self.name.0.as_str(), self.name.1.as_str());
        let found = REFUSED.iter().find(|(at, name, _)| (*at, *name) == (file, group));
        found.map(|(_, _, why)| *why)
    }
}

fn read(path: PathBuf) -> Value {
    serde_json::from_str(&fs::read_to_string(&path).unwrap()).unwrap()
}

/// Every group of the required set.
pub(crate) fn groups() -> Vec<Group> {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/cases/json-schema");
    let mut files: BTreeMap<String, PathBuf> = BTreeMap::new();
    for entry in fs::read_dir(folder.join("draft2020-12")).unwrap() {
        let path = entry.unwrap().path();
        files.insert(path.file_stem().unwrap().to_str().unwrap().to_owned(), path);
    }
    let mut groups = Vec::new();
    for (file, path) in files {
        for group in read(path).as_array().unwrap() {
            let name = group["description"].as_str().unwrap().to_owned();
            let alone = group["schema"].clone();
            let mut schema = alone.clone();
            let documents =
                WITH_DOCUMENTS.iter().find(|(at, known, _)| (*at, *known) == (&file, &name));
            for document in documents.map_or(&[][..], |(_, _, documents)| documents) {
                let mut contents = read(folder.join("remotes").join(document));
                let id = format!("http://localhost:1234/{document}");
                contents["$id"] = json!(id);
                schema["$defs"][id] = contents;
            }
            let tests = group["tests"].as_array().unwrap().iter().map(|test| {
                let text = test["description"].as_str().unwrap().to_owned();
                (text, test["data"].clone(), test["valid"].as_bool().unwrap())
            });
            groups.push(Group {
                name: (file.clone(), name),
                alone,
                schema,
                tests: tests.collect(),
            });
        }
    }
    groups
}
