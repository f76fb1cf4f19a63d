//! The official suite, for the arguments of tools.

use std::collections::BTreeSet;

use runner_policy::finding::{At, Report};
use serde_json::{Value, json};

use super::suite::{REFUSED, WITH_DOCUMENTS, groups};
use super::*;
use crate::tool::arguments;

/// A tool with one argument of this schema.
fn tool(argument: Value) -> Result<Schema, String> {
    let json = json!({ "type": "object", "properties": { "v": argument } });
    let mut report = Report::new("t.yml", "");
    let spans = Spans::all_at(At::default());
    Schema::compile(json, Role::Arguments, &spans, &mut report)
        .ok_or_else(|| report.finish().iter().map(|it| it.message.clone()).collect())
}

/// With a name of its own, so that `#` inside of it means itself and not the schema around it.
fn named(schema: &Value) -> Value {
    let mut schema = schema.clone();
    if let Value::Object(map) = &mut schema {
        map.entry("$id").or_insert_with(|| json!("urn:runner:argument"));
    }
    schema
}

#[test]
fn the_required_cases_of_the_standard_hold_for_arguments() {
    for group in groups() {
        let (name, refused) = (&group.name, group.refused());
        if group.has_documents() {
            let why = tool(named(&group.alone)).unwrap_err();
            assert!(why.contains("nothing is fetched"), "{name:?} {why}");
        }
        let schema = match (tool(named(&group.schema)), refused) {
            (Ok(schema), None) => schema,
            (Err(why), Some(because)) => {
                assert!(why.contains(because), "{name:?} {why}");
                continue;
            }
            (Ok(_), Some(_)) => panic!("{name:?} is not refused any more"),
            (Err(why), None) => panic!("{name:?}: {why}"),
        };
        for (test, data, valid) in &group.tests {
            let told = arguments::read(&schema, Some(&json!({ "v": data }).to_string()), &[]);
            assert_eq!(told.is_ok(), *valid, "{name:?} {test} {told:?}");
        }
    }
}

#[test]
fn the_lists_of_exceptions_name_what_there_is() {
    let there: BTreeSet<(String, String)> = groups().into_iter().map(|it| it.name).collect();
    let listed = WITH_DOCUMENTS.iter().map(|(file, group, _)| (*file, *group));
    for (file, group) in listed.chain(REFUSED.iter().map(|(file, group, _)| (*file, *group))) {
        assert!(there.contains(&(file.to_owned(), group.to_owned())), "{file}: {group}");
    }
}
