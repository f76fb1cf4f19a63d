//! `runner doctor`: what it tries, what it finds, and what it leaves.

use std::fs;

use runner::engine::EngineName;
use runner::engine::runtime_kind::RuntimeKind;
use runner::sandbox::protection::{Machine, protections};
use serde_json::Value;

use crate::everyday::caller::Caller;
use crate::support::{choose_engine, needs_engine, needs_root};

/// The rows of one engine, by name.
fn rows<'a>(report: &'a Value, engine: &str) -> Vec<(&'a str, &'a str)> {
    let mut engines = report["engines"].as_array().unwrap().iter();
    let examined = engines.find(|it| it["engine"] == engine).unwrap();
    assert_eq!(examined.get("unusable"), None, "{examined}");
    let rows = examined["rows"].as_array().unwrap().iter();
    rows.map(|row| (row["name"].as_str().unwrap(), row["result"].as_str().unwrap())).collect()
}

/// Every protection of the table was tried, and holds.
fn proves_every_protection(caller: &Caller, engine: EngineName, kind: RuntimeKind) {
    let project = caller.project("project", &[("a.txt", "a")]);
    let ran = caller.run(&project, &["doctor", "--engine", engine.as_str(), "--json"]);
    assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
    let report = ran.json();
    assert_eq!(report["passed"], true, "{report:#}");

    let found = rows(&report, engine.as_str());
    let promised = protections(kind, Machine::WHOLE);
    let expected: Vec<&str> =
        promised.iter().map(|it| it.name).chain(["output", "orphans"]).collect();
    let names: Vec<&str> = found.iter().map(|(name, _)| *name).collect();
    assert_eq!(names, expected, "the rows are those of the table of protections");
    let other = |(name, result): &(&str, &str)| match *result {
        "holds" | "partly" => false,
        "absent" => !["own-kernel", "landlock"].contains(name),
        _ => *name != "landlock",
    };
    let other: Vec<_> = found.into_iter().filter(other).collect();
    assert!(other.is_empty(), "{other:?} in {report:#}");
    for row in report["engines"][0]["rows"].as_array().unwrap() {
        if row["result"] == "holds" {
            assert!(!row["tried"].as_array().unwrap().is_empty(), "{row}");
        }
    }

    // It is in the ledger, as one call that ended well.
    let list = caller.works(&project, &["audit", "list", "--json"]);
    let records: Vec<Value> =
        list.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let text = serde_json::to_string(&records).unwrap();
    assert_eq!(text.matches("\"command\":\"doctor\"").count(), 1, "{text}");
    caller.works(&project, &["audit", "verify"]);
    // The trials keep their records, stages and pool apart, and take them away.
    let state: Vec<_> = fs::read_dir(caller.state()).unwrap().flatten().collect();
    let foreign = state.iter().map(|entry| entry.file_name()).find(|name| name != "runner");
    assert_eq!(foreign, None, "left in the state folder");
}

#[test]
fn on_the_embedded_engine_root_proves_every_protection() {
    choose_engine(EngineName::Embedded);
    needs_root();
    let caller = Caller::with_home("/var/tmp");
    proves_every_protection(&caller, EngineName::Embedded, RuntimeKind::Direct);
}

#[test]
fn on_the_embedded_engine_an_ordinary_user_proves_every_protection() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::ordinary("/var/tmp");
    proves_every_protection(&caller, EngineName::Embedded, RuntimeKind::Direct);
}

#[test]
fn on_docker_every_protection_is_proved() {
    choose_engine(EngineName::Docker);
    needs_engine();
    let caller = Caller::with_home("/var/tmp");
    proves_every_protection(&caller, EngineName::Docker, RuntimeKind::SharedKernel);
}

#[test]
fn without_an_engine_it_says_why_and_fails() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::with_home("/var/tmp");
    let project = caller.project("project", &[("a.txt", "a")]);
    let mut command = caller.runner(&project);
    command.env("DOCKER_HOST", "unix:///nowhere/docker.sock");
    let ran = crate::support::Ran::from(
        command.args(["doctor", "--engine", "docker", "--json"]).output().unwrap(),
    );
    assert_eq!(ran.code, Some(125), "{}{}", ran.out, ran.err);
    let report = ran.json();
    assert_eq!(report["passed"], false);
    assert_eq!(report["engines"][0]["unusable"]["code"], "engine_missing");
    assert!(report["engines"][0]["unusable"]["change"].is_string());
    let unknown = caller.run(&project, &["doctor", "--engine", "podman"]);
    assert_eq!(unknown.code, Some(2), "{}", unknown.err);
    assert!(unknown.err.contains("use docker or embedded"), "{}", unknown.err);
}

#[test]
fn a_hostile_workspace_changes_nothing_about_it() {
    choose_engine(EngineName::Embedded);
    let caller = Caller::with_home("/var/tmp");
    // A policy of the doctor's name, a configuration, and a program where the probe would be.
    let project = caller.project(
        "project",
        &[
            (".runner/policies/doctor.yml", "policy: 1\nname: doctor\n"),
            (".runner/config.yml", "limits: { nonsense: 1 }\n"),
            ("probe", "#!/bin/sh\ntouch /var/tmp/runner-doctor-was-here\n"),
        ],
    );
    let ran = caller.run(&project, &["doctor", "--engine", "embedded", "--json"]);
    let report = ran.json();
    let bad: Vec<_> =
        rows(&report, "embedded").into_iter().filter(|(_, it)| *it == "unproved").collect();
    assert!(bad.is_empty(), "{bad:?}");
    // The settings of the project cannot be used, which is a finding about this place.
    let settings = report["machine"].as_array().unwrap().iter().find(|it| it["name"] == "settings");
    assert_eq!(settings.unwrap()["result"], "fails");
    assert_eq!(ran.code, Some(125));
}
