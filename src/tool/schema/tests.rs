//! Whole schemas: what they accept, refuse, and cost.

use runner_policy::finding::{At, Finding, Report};
use serde_json::{Value, json};

use super::*;

fn compiled(json: Value) -> Result<Schema, Vec<Finding>> {
    let mut report = Report::new("t.yml", "");
    let spans = Spans::all_at(At { line: 1, column: 1, width: 1 });
    let schema = Schema::compile(json, Role::Arguments, &spans, &mut report);
    schema.ok_or_else(|| report.finish())
}

fn codes(json: Value) -> Vec<&'static str> {
    match compiled(json) {
        Ok(_) => Vec::new(),
        Err(findings) => findings.iter().map(|finding| finding.code).collect(),
    }
}

/// An object with one property.
fn one(property: Value) -> Value {
    json!({"type": "object", "properties": {"a": property}})
}

fn messages(schema: Value, value: Value) -> Vec<String> {
    let schema = compiled(schema).map_err(|it| format!("{it:?}")).unwrap();
    schema.check(value).unwrap_err().iter().map(ToString::to_string).collect()
}

#[test]
fn all_violations_are_listed_with_their_pointers() {
    let schema = json!({
        "type": "object",
        "properties": {
            "name": {"type": "string", "minLength": 2},
            "age": {"type": "integer", "minimum": 0},
            "tags": {"type": "array", "items": {"enum": ["a", "b"]}},
            "mail": {"type": "string", "format": "email"},
            "deep": {"type": "object", "properties": {"x/y": {"const": 1}}}
        },
        "required": ["name", "id"],
        "additionalProperties": false,
        "x-assert-format": true
    });
    let value = json!({"name": "x", "age": -1, "tags": ["a", "c"], "mail": "no", "deep": {"x/y": 2}, "nmae": 1});
    let mut found = messages(schema, value);
    found.sort();
    let expected = [
        "/age is less than 0",
        "/deep/x~1y is not 1",
        "/mail is not a valid email",
        "/name is shorter than 2 characters",
        "/tags/1 is none of \"a\", \"b\"",
        "the value has `nmae`, which the schema does not know; did you mean `name`?",
        "the value lacks `id`",
    ];
    assert_eq!(found, expected);
}

#[test]
fn a_violation_never_quotes_the_value() {
    let secret = "hunter2-hunter2";
    let schemas = [
        json!({"type": "integer"}),
        json!({"enum": [1]}),
        json!({"const": 1}),
        json!({"maxLength": 3}),
        json!({"pattern": "^a$"}),
        json!({"format": "uri"}),
        json!({"anyOf": [{"type": "integer"}, {"const": 2}]}),
        json!({"not": {"type": "string"}}),
        json!(false),
    ];
    for schema in schemas {
        let mut asserting = one(schema.clone());
        asserting["x-assert-format"] = json!(true);
        for message in messages(asserting, json!({"a": secret})) {
            assert!(!message.contains(secret), "{schema}: {message}");
        }
    }
}

#[test]
fn defaults_are_filled_in_where_they_fit() {
    let schema = compiled(one(json!({"type": "integer", "default": 3}))).unwrap();
    assert_eq!(schema.check(json!({})), Ok(json!({"a": 3})));
    // The standard says nothing of defaults: without this one the value fits.
    let unfit = compiled(one(json!({"type": "integer", "default": "x"}))).unwrap();
    assert_eq!(unfit.check(json!({})), Ok(json!({})));
    assert!(unfit.check(json!({"a": "x"})).is_err());
    // As converters write what may be left out.
    let required =
        json!({"type": "object", "required": ["a"], "properties": {"a": {"default": 3}}});
    let required = compiled(required).unwrap();
    assert_eq!(required.check(json!({})), Ok(json!({"a": 3})));
    // Nothing is filled in where a value is checked as it is.
    assert!(required.validate(&json!({})).is_err() && required.validate(&json!({"a": 1})).is_ok());
}

#[test]
fn formats_are_asserted_where_that_is_asked() {
    for (format, good, bad) in [
        ("date", "2026-02-28", "2026-02-30"),
        ("date-time", "2026-01-01T00:00:00Z", "now"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "x"),
        ("ipv4", "10.0.0.1", "10.0.0.256"),
        ("ipv6", "::1", ":::"),
        ("uri", "https://a/", "a b"),
        ("hostname", "a.example", "-a-"),
        ("email", "a@b.example", "a"),
    ] {
        let asked = |asked: bool| {
            let mut schema = one(json!({"format": format}));
            schema["x-assert-format"] = json!(asked);
            compiled(schema).unwrap()
        };
        assert!(asked(true).check(json!({"a": good})).is_ok(), "{format} {good}");
        assert!(asked(true).check(json!({"a": bad})).is_err(), "{format} {bad}");
        assert!(asked(false).check(json!({"a": bad})).is_ok(), "{format} {bad}");
        assert!(compiled(one(json!({"format": format}))).unwrap().check(json!({"a": bad})).is_ok());
    }
    let mut wrong = one(json!({}));
    wrong["x-assert-format"] = json!("yes");
    assert_eq!(codes(wrong), ["wrong_type"]);
}

#[test]
fn local_references_work_and_others_are_refused() {
    let local = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/n"}}, "$defs": {"n": {"type": "integer"}}});
    let schema = compiled(local).unwrap();
    assert!(schema.check(json!({"a": 1})).is_ok() && schema.check(json!({"a": "x"})).is_err());
    assert_eq!(schema.property("a"), Some(&json!({"type": "integer"})));
    for reference in [
        "http://127.0.0.1:1/x",
        "https://example.org/s.json",
        "file:///etc/passwd",
        "other.json",
        "//h/x",
        "#/nowhere",
        "#anchor",
        "https://json-schema.org/draft/2020-12/other",
        "https://json-schema.org/draft-07/schema",
        "#/a#/b",
        "http://[",
    ] {
        assert_eq!(codes(one(json!({"$ref": reference}))), ["bad_reference"], "{reference}");
    }
    for key in ["$dynamicRef", "$anchor", "$id", "$recursiveRef", "$vocabulary"] {
        assert!(!codes(one(json!({key: "#x"}))).is_empty(), "{key}");
    }
    // What a reference leads to is looked at too, and nothing is fetched.
    let hidden = |inner: Value| {
        codes(json!({"type": "object", "x-y": inner, "properties": {"a": {"$ref": "#/x-y"}}}))
    };
    assert_eq!(hidden(json!({"$ref": "http://127.0.0.1:1/"})), ["bad_reference"]);
    assert_eq!(hidden(json!({"pattern": "(?=a)"})), ["bad_pattern"]);
    assert_eq!(hidden(json!({"$id": "http://a.example/"})), ["bad_reference"]);
    assert_eq!(hidden(json!({"type": "integer"})), [""; 0]);
}

#[test]
fn named_schemas_are_found_and_counted() {
    let named = |properties: Value, defs: Value| json!({"type": "object", "properties": properties, "$defs": defs});
    let schema = named(
        json!({"a": {"$ref": "#n"}, "b": {"$ref": "http://x.example/t#/$defs/u"}, "c": {"$ref": "urn:a:b"}}),
        json!({
            "n": {"$anchor": "n", "type": "integer"},
            "t": {"$id": "http://x.example/t", "$defs": {"u": {"$ref": "#/$defs/v"}, "v": {"type": "string"}}},
            "w": {"$id": "urn:a:b", "type": "null"},
        }),
    );
    let schema = compiled(schema).map_err(|it| format!("{it:?}")).unwrap();
    assert!(schema.check(json!({"a": 1, "b": "x", "c": null})).is_ok());
    for wrong in [json!({"a": "x"}), json!({"b": 1}), json!({"c": 1})] {
        assert!(schema.check(wrong.clone()).is_err(), "{wrong}");
    }
    assert_eq!(schema.property("b"), Some(&json!({"type": "string"})));
    // Which of two is meant would be the library's choice.
    let twice = json!({"x": {"$anchor": "n"}, "y": {"$anchor": "n"}});
    assert_eq!(codes(named(json!({}), twice)), ["bad_reference"]);
    let twice = json!({"x": {"$id": "http://a.example/"}, "y": {"$id": "http://a.example/"}});
    assert_eq!(codes(named(json!({}), twice)), ["bad_reference"]);
    let ours = json!({"x": {"$id": "https://json-schema.org/draft/2020-12/schema"}});
    assert_eq!(codes(named(json!({}), ours)), ["bad_reference"]);
    // Another draft in a part.
    let old = json!({"x": {"$id": "http://a.example/", "$schema": "http://json-schema.org/draft-07/schema#"}});
    assert_eq!(codes(named(json!({}), old)), ["bad_schema"]);
}

#[test]
fn named_references_are_bounded_as_others_are() {
    // Work that doubles level by level, by every way to refer.
    let value = (0..40).fold(json!(1), |value, _| json!({"a": value}));
    for (name, reference) in [
        (json!({}), json!({"$ref": "#/$defs/n"})),
        (json!({"$anchor": "n"}), json!({"$ref": "#n"})),
        (json!({"$dynamicAnchor": "n"}), json!({"$dynamicRef": "#n"})),
        (json!({"$id": "http://a.example/n"}), json!({"$ref": "http://a.example/n"})),
    ] {
        let mut n = name.clone();
        n["properties"] = json!({"a": {"anyOf": [reference, reference, reference]}});
        let schema = json!({"type": "object", "properties": {"a": reference}, "$defs": {"n": n}});
        let schema = compiled(schema).map_err(|it| format!("{it:?}")).unwrap();
        assert_eq!(schema.check(value.clone()).unwrap_err()[0].keyword, "bounds", "{name}");
        assert!(schema.check(json!({"a": {"a": {}}})).is_ok(), "{name}");
        // A circle without a way out ends.
        let mut circle = name.clone();
        circle["allOf"] = json!([reference]);
        let circle =
            json!({"type": "object", "properties": {"a": reference}, "$defs": {"n": circle}});
        let circle = compiled(circle).map_err(|it| format!("{it:?}")).unwrap();
        let told = circle.validate(&json!({"a": 1}));
        assert!(told.is_ok(), "{name} {told:?}");
    }
    // A long chain.
    let chain: Map<_, _> = (0..3_000)
        .map(|at| {
            let link =
                json!({"$anchor": format!("d{at}"), "$ref": format!("#d{}", (at + 1) % 3_000)});
            (format!("d{at}"), link)
        })
        .collect();
    let chain = json!({"type": "object", "properties": {"a": {"$ref": "#d0"}}, "$defs": chain});
    assert_eq!(codes(chain), ["too_deep"]);
    // The schema of schemas, for a schema.
    let meta = one(json!({"$ref": "https://json-schema.org/draft/2020-12/schema"}));
    let meta = compiled(meta).map_err(|it| format!("{it:?}")).unwrap();
    assert!(
        meta.check(json!({"a": {"type": "string", "allOf": [{"not": {"minimum": 1}}]}})).is_ok()
    );
    assert!(meta.check(json!({"a": {"allOf": [{"not": {"minimum": "1"}}]}})).is_err());
}

#[test]
fn patterns_take_linear_time() {
    let schema = compiled(one(json!({"pattern": "^(a+)+$"}))).unwrap();
    let text = format!("{}b", "a".repeat(100_000));
    assert!(schema.check(json!({"a": text})).is_err());
    for pattern in ["(?=a)b", r"(a)\1", "(?<!x)y", "(", "((a{1000}){1000}){1000}"] {
        assert_eq!(codes(one(json!({"pattern": pattern}))), ["bad_pattern"], "{pattern}");
        assert_eq!(
            codes(json!({"type": "object", "patternProperties": {pattern: {}}})),
            ["bad_pattern"]
        );
    }
    // As zod writes an address: the format says the same.
    let both =
        compiled(one(json!({"format": "email", "pattern": "^(?!\\.)[a-z]+@[a-z.]+$"}))).unwrap();
    assert!(
        both.check(json!({"a": "a@b.example"})).is_ok() && both.check(json!({"a": "x"})).is_err()
    );
    let ecma = compiled(one(json!({"pattern": "^[\\w.-]+\\/\\d{2,}$"}))).unwrap();
    assert!(
        ecma.check(json!({"a": "x-y/12"})).is_ok() && ecma.check(json!({"a": "x-y/1"})).is_err()
    );
}

#[test]
fn mistakes_in_a_schema_are_findings() {
    assert_eq!(codes(json!({"type": "string"})), ["bad_schema"]);
    assert_eq!(codes(json!([])), ["wrong_type"]);
    assert_eq!(codes(one(json!({"type": "sting"}))), ["bad_schema"]);
    assert_eq!(codes(one(json!({"typ": "string"}))), ["unknown_key"]);
    assert_eq!(codes(json!({"type": "object", "requird": ["a"]})), ["unknown_key"]);
    assert_eq!(
        codes(json!({"type": "object", "$schema": "http://json-schema.org/draft-07/schema#"})),
        ["bad_schema"]
    );
    assert_eq!(
        codes(
            json!({"type": "object", "$schema": "https://json-schema.org/draft/2020-12/schema", "x-mine": 1})
        ),
        [""; 0]
    );
}

#[test]
fn deep_wide_and_doubling_work_is_refused_before_it_is_done() {
    let schema = compiled(one(json!({}))).unwrap();
    let mut deep = json!(1);
    for _ in 0..100 {
        deep = json!([deep]);
    }
    assert_eq!(schema.check(json!({"a": deep})).unwrap_err()[0].keyword, "bounds");
    let twice = json!({"$ref": "#/$defs/n"});
    let doubling = json!({
        "type": "object", "properties": {"a": {"$ref": "#/$defs/n"}},
        "$defs": {"n": {"type": "object", "properties": {"a": {"anyOf": [twice, twice, twice]}}}}
    });
    let mut value = json!(1);
    for _ in 0..40 {
        value = json!({"a": value});
    }
    let doubling = compiled(doubling).unwrap();
    assert_eq!(doubling.check(value).unwrap_err()[0].keyword, "bounds");
    assert!(doubling.check(json!({"a": {"a": {}}})).is_ok());
}

#[test]
fn small_schemas_of_large_work_are_refused_and_of_small_work_are_not() {
    let list = |item: Value| one(json!({"type": "array", "items": item}));
    let given = |items: usize| json!({"a": vec![json!({}); items]});
    let heavy = json!({"properties": {"x": {"default": "y".repeat(900_000)}}});
    let wide: Map<_, _> = (0..4_000).map(|at| (format!("p{at}"), json!({}))).collect();
    let mut deep = json!(1);
    for _ in 0..40 {
        deep = json!([deep]);
    }
    let nested = json!({"properties": {"x": {"default": deep}}});
    for (item, few, many) in [(heavy, 4, 45_000), (json!({"properties": wide}), 100, 98_000)] {
        let schema = compiled(list(item)).unwrap();
        assert!(schema.check(given(few)).is_ok());
        assert_eq!(schema.check(given(many)).unwrap_err()[0].keyword, "bounds");
    }
    let schema = compiled(json!({
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/a"}},
        "$defs": {"a": {"properties": {"a": {"$ref": "#/$defs/a"}}, "allOf": [nested]}}
    }))
    .unwrap();
    let at = |depth: usize| (0..depth).fold(json!({}), |value, _| json!({"a": value}));
    assert!(schema.check(at(10)).is_ok());
    let violations = schema.check(at(40)).unwrap_err();
    assert!(violations[0].to_string().contains("nested too deep"), "{violations:?}");
}

#[test]
fn a_long_chain_of_references_is_refused_or_survived() {
    let chain = |length: usize| {
        let mut defs = serde_json::Map::new();
        for at in 0..length {
            defs.insert(format!("d{at}"), json!({"$ref": format!("#/$defs/d{}", at + 1)}));
        }
        defs.insert(format!("d{length}"), json!({"type": "integer"}));
        json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/d0"}}, "$defs": defs})
    };
    assert_eq!(codes(chain(3_000)), ["too_deep"]);
    let long = compiled(chain(300)).unwrap();
    assert!(long.check(json!({"a": 1})).is_ok() && long.check(json!({"a": "x"})).is_err());
}

#[test]
fn circles_end() {
    let schema = compiled(json!({"type": "object", "properties": {"a": {"$ref": "#"}, "b": {"$ref": "#/properties/b"}}})).unwrap();
    assert!(schema.check(json!({"a": {"a": {"b": 1}}, "b": 2})).is_ok());
    assert!(schema.check(json!({"a": {"a": 1}})).is_err());
}

#[test]
fn numbers_of_every_kind_are_compared_as_numbers() {
    let schema =
        one(json!({"type": "number", "minimum": 0.5, "multipleOf": 0.25, "enum": [1, 2.5]}));
    let schema = compiled(schema).unwrap();
    for text in ["1", "1.0", "2.5", "25e-1"] {
        let value = json::read(&format!(r#"{{"a": {text}}}"#)).unwrap();
        assert!(schema.check(value).is_ok(), "{text}");
    }
    for text in ["0.25", "1.1", "3", "1e300"] {
        let value = json::read(&format!(r#"{{"a": {text}}}"#)).unwrap();
        assert!(schema.check(value).is_err(), "{text}");
    }
    let integer =
        compiled(one(json!({"type": "integer", "maximum": 9_007_199_254_740_991_u64}))).unwrap();
    assert!(integer.check(json!({"a": 3.0})).is_ok() && integer.check(json!({"a": 3.5})).is_err());
    assert!(integer.check(json!({"a": u64::MAX})).is_err());
    let huge: Value = serde_json::from_str(r#"{"a": 1e400}"#).unwrap_or(json!({"a": "x"}));
    assert!(integer.check(huge).is_err());
}
