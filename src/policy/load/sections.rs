//! The sections of a policy but its rules: identity, sandbox, files, environment, programs, tests.

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;

use super::{Origin, Source, commands, net, secrets};
use crate::finding::{At, Report};
use crate::grammar;
use crate::limits::{Isolation, Limit, TABLE};
use crate::model::{
    Companion, Env, Expectation, Expected, Files, PROTECTIONS, Package, Policy, Sandbox, Verdict,
    Writes,
};
use crate::paths::{List, Meaning, check_pattern};
use crate::yaml::{Entry, Node};
use crate::{catalog, variables};

const KEYS: &[&str] = &[
    "policy",
    "name",
    "owner",
    "description",
    "extends",
    "within",
    "ceiling",
    "mode",
    "until",
    "sandbox",
    "files",
    "commands",
    "programs",
    "net",
    "secrets",
    "env",
    "tests",
];
const SANDBOX: &[&str] =
    &["image", "runtime", "isolation", "engines", "demand", "writes", "limits"];

/// Settings of other systems that would open a sandbox. They cannot be expressed here.
const FORBIDDEN: &[&str] = &[
    "privileged",
    "network",
    "network_mode",
    "network-mode",
    "cap_add",
    "cap-add",
    "capAdd",
    "capabilities",
    "devices",
    "device",
    "mounts",
    "mount",
    "volumes",
    "volume",
    "binds",
    "seccomp",
    "apparmor",
    "security_opt",
    "security-opt",
    "securityOpt",
    "user",
    "userns",
    "pid",
    "ipc",
    "uts",
    "cgroup",
    "cgroupns",
    "docker_socket",
    "docker-socket",
    "socket",
    "sysctls",
    "oom_kill_disable",
    "read_only",
    "readonly_rootfs",
    "no_new_privileges",
    "host",
];

pub(super) fn policy(root: &Node, source: Source<'_>, report: &mut Report<'_>) -> Option<Policy> {
    let entries = report.map(root)?;
    for entry in entries {
        if FORBIDDEN.contains(&entry.key.as_str()) {
            forbidden(entry, report);
        } else if !KEYS.contains(&entry.key.as_str()) {
            report.unknown_key(entry, KEYS);
        }
    }
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    match find("policy") {
        None => report.add(
            "missing_key",
            root.at,
            "`policy: 1` is missing",
            "the first line of a policy says its version: `policy: 1`".to_owned(),
        ),
        Some(entry) => {
            if report.figure(&entry.value) != Some("1") {
                report.add(
                    "unknown_version",
                    entry.value.at,
                    "this version of the format is not known",
                    "write `policy: 1`".to_owned(),
                );
            }
        }
    }
    let name = match find("name") {
        None => {
            report.add(
                "missing_key",
                root.at,
                "`name` is missing",
                "a policy has a name: `name: project`".to_owned(),
            );
            String::new()
        }
        Some(entry) => identifier(&entry.value, "name", report).unwrap_or_default(),
    };
    let text = |key: &str, report: &mut Report<'_>| {
        find(key).and_then(|entry| report.text(&entry.value).map(str::to_owned))
    };
    let owner = text("owner", report);
    let description = text("description", report);
    let names = |key: &str, report: &mut Report<'_>| -> Vec<(String, At)> {
        find(key)
            .and_then(|entry| report.one_or_more(&entry.value))
            .unwrap_or_default()
            .into_iter()
            .map(|(name, at)| (name.to_owned(), at))
            .collect()
    };
    let extends = names("extends", report);
    let within = names("within", report);
    let ceiling = find("ceiling").and_then(|entry| {
        let set = report.flag(&entry.value)?;
        if set && source.origin != Origin::Managed {
            report.add(
                "not_managed",
                entry.at,
                "only a managed policy can be a ceiling",
                "remove it, or use `within` in the policies it is for".to_owned(),
            );
        }
        Some(set)
    });
    let observe_until = mode(find("mode"), find("until"), report);
    let sandbox = find("sandbox").map(|entry| sandbox(&entry.value, report)).unwrap_or_default();
    let files = files(find("files").map(|entry| &entry.value), report);
    let programs = find("programs").map(|entry| programs(&entry.value, report)).unwrap_or_default();
    let commands =
        find("commands").map(|entry| commands::rules(&entry.value, report)).unwrap_or_default();
    let env = find("env").map(|entry| env(&entry.value, report)).unwrap_or_default();
    let secrets = find("secrets")
        .map(|entry| secrets::declared(entry, source.origin, &env.pass, report))
        .unwrap_or_default();
    let net = find("net")
        .map(|entry| net::rules(&entry.value, source.origin, &secrets, report))
        .unwrap_or_default();
    let tests = find("tests").map(|entry| tests(&entry.value, report)).unwrap_or_default();
    Some(Policy {
        name,
        file: source.file.to_owned(),
        owner,
        description,
        extends,
        within,
        ceiling: ceiling.unwrap_or(false),
        observe_until,
        sandbox,
        files,
        commands,
        programs,
        net,
        env,
        secrets,
        tests,
        digest: blake3::hash(source.text.as_bytes()),
    })
}

fn forbidden(entry: &Entry, report: &mut Report<'_>) {
    report.add(
        "forbidden_setting",
        entry.at,
        format!("`{}` would open the sandbox; no policy can set it", entry.key),
        "remove it: capabilities, devices, sockets, namespaces and seccomp are fixed".to_owned(),
    );
}

/// A name: lower-case letters, digits, dashes and underscores.
pub(super) fn identifier(node: &Node, what: &str, report: &mut Report<'_>) -> Option<String> {
    let text = report.text(node)?;
    let plain = |byte: u8| {
        byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-' || byte == b'_'
    };
    if text.is_empty()
        || text.len() > 64
        || !text.bytes().all(plain)
        || !text.as_bytes()[0].is_ascii_lowercase()
    {
        report.add(
            "bad_name",
            node.at,
            format!("`{text}` is no {what}"),
            "a lower-case letter, then up to 63 lower-case letters, digits, `-` or `_`".to_owned(),
        );
        return None;
    }
    Some(text.to_owned())
}

/// `mode: observe` with the date at which it ends.
fn mode(mode: Option<&Entry>, until: Option<&Entry>, report: &mut Report<'_>) -> Option<Timestamp> {
    let end = until.and_then(|entry| date(&entry.value, report));
    match mode.and_then(|entry| report.text(&entry.value).map(|text| (text, entry))) {
        None | Some(("enforce", _)) => {
            if let Some(entry) = until {
                report.add(
                    "unknown_key",
                    entry.at,
                    "`until` ends `mode: observe`; a rule has its own",
                    None,
                );
            }
            None
        }
        Some(("observe", entry)) => {
            if until.is_none() {
                report.add(
                    "missing_key",
                    entry.at,
                    "`mode: observe` needs an end",
                    "add `until: 2027-01-31`".to_owned(),
                );
            }
            end
        }
        Some((other, entry)) => {
            report.unknown_word("mode", other, entry.value.at, &["enforce", "observe"]);
            None
        }
    }
}

/// `2026-12-31` (to the end of that day, UTC) or a full timestamp.
pub(super) fn date(node: &Node, report: &mut Report<'_>) -> Option<Timestamp> {
    let text = report.figure(node)?;
    let day = text.parse::<Date>().ok().and_then(|day| {
        day.tomorrow().ok()?.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
    });
    let moment = if text.len() == 10 { day } else { text.parse().ok() };
    if moment.is_none() {
        report.add(
            "wrong_type",
            node.at,
            format!("`{text}` is no date"),
            "write `2026-12-31`, or a moment such as `2026-12-31T18:00:00Z`".to_owned(),
        );
    }
    moment
}

fn sandbox(node: &Node, report: &mut Report<'_>) -> Sandbox {
    let mut sandbox = Sandbox::default();
    for entry in report.map(node).unwrap_or_default() {
        let value = &entry.value;
        match entry.key.as_str() {
            "image" => {
                sandbox.image = report.text(value).and_then(|text| image(text, value.at, report))
            }
            "runtime" => sandbox.runtime = identifier(value, "runtime", report),
            "isolation" => {
                sandbox.isolation = match report.text(value) {
                    Some("basic") => Some(Isolation::Basic),
                    Some("strict") => Some(Isolation::Strict),
                    Some("paranoid") => Some(Isolation::Paranoid),
                    Some(other) => {
                        report.unknown_word(
                            "isolation",
                            other,
                            value.at,
                            &["basic", "strict", "paranoid"],
                        );
                        None
                    }
                    None => None,
                }
            }
            "engines" => {
                let names = report.texts(value).unwrap_or_default();
                for (name, at) in &names {
                    if !["docker", "embedded"].contains(name) {
                        report.unknown_word("engine", name, *at, &["docker", "embedded"]);
                    }
                }
                sandbox.engines =
                    Some(names.into_iter().map(|(name, _)| name.to_owned()).collect());
            }
            "demand" => {
                for (name, at) in report.texts(value).unwrap_or_default() {
                    if PROTECTIONS.contains(&name) {
                        sandbox.demand.push(name.to_owned());
                    } else {
                        report.unknown_word("protection", name, at, &PROTECTIONS);
                    }
                }
            }
            "writes" => {
                let text = report.text(value);
                sandbox.writes = Writes::ALL.into_iter().find(|it| Some(it.word()) == text);
                if let (Some(other), None) = (text, sandbox.writes) {
                    report.unknown_word("writes", other, value.at, &Writes::ALL.map(Writes::word));
                }
            }
            "limits" => sandbox.limits = limits(value, report),
            key if FORBIDDEN.contains(&key) => forbidden(entry, report),
            _ => report.unknown_key(entry, SANDBOX),
        }
    }
    sandbox
}

/// `host`, or a reference of safe characters.
fn image(text: &str, at: At, report: &mut Report<'_>) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/:@".contains(&byte);
    if text.is_empty()
        || text.len() > 256
        || !text.bytes().all(plain)
        || !text.as_bytes()[0].is_ascii_alphanumeric()
    {
        report.add(
            "bad_image",
            at,
            format!("`{text}` is no image"),
            "`host`, or a reference such as `debian:12` or `name@sha256:…`".to_owned(),
        );
        return None;
    }
    Some(text.to_owned())
}

pub(super) fn limits(node: &Node, report: &mut Report<'_>) -> Vec<(Limit, u64)> {
    let known = TABLE.map(|row| row.key);
    let mut limits = Vec::new();
    for entry in report.keys(node, &known).unwrap_or_default() {
        let (Some(limit), Some(text)) = (Limit::by_key(&entry.key), report.figure(&entry.value))
        else {
            continue;
        };
        let row = limit.row();
        match row.unit.parse(text) {
            Ok(figure) if limit.tighter(row.ceiling, figure) => {
                report.add(
                    "over_ceiling",
                    entry.value.at,
                    format!("`{}: {text}` is beyond the ceiling", row.key),
                    match limit {
                        Limit::FreeSpace => format!("at least {}", row.unit.show(row.ceiling)),
                        _ => format!("at most {}", row.unit.show(row.ceiling)),
                    },
                );
            }
            Ok(figure) => limits.push((limit, figure)),
            Err(form) => report.add(
                "bad_figure",
                entry.value.at,
                format!("`{text}` is no figure for `{}`", row.key),
                format!("write {form}"),
            ),
        }
    }
    limits
}

fn files(node: Option<&Node>, report: &mut Report<'_>) -> Files {
    let mut lists: [Vec<(String, At)>; 4] = Default::default();
    let (mut create, mut packages) = (Vec::new(), Vec::new());
    let keys = ["read", "write", "readonly", "deny", "create", "packages"];
    if let Some(node) = node {
        for entry in report.keys(node, &keys).unwrap_or_default() {
            if entry.key == "create" {
                create = companions(&entry.value, report);
                continue;
            }
            if entry.key == "packages" {
                packages = self::packages(&entry.value, report);
                continue;
            }
            let Some(at) = keys.iter().position(|key| *key == entry.key) else { continue };
            for (text, place) in report.one_or_more_patterns(&entry.value).unwrap_or_default() {
                // Before its form: `/` is no pattern either, and what it asks for is what matters.
                if (entry.key == "read" || entry.key == "write") && opens_the_host(text, &entry.key)
                {
                    report.add("forbidden_setting", place, format!("`{text}` in `files.{}` would open the host", entry.key), "paths are anchored at the workspace; an absolute one names a folder of the image, read only".to_owned());
                } else if let Err(why) = check_pattern(text) {
                    report.add(
                        "bad_pattern",
                        place,
                        format!("`{text}` is no pattern: {why}"),
                        None,
                    );
                } else {
                    lists[at].push((text.to_owned(), place));
                }
            }
        }
    }
    let [read, write, readonly, deny] = lists;
    let files = Files {
        read: List::new(Meaning::Grants, read),
        write: List::new(Meaning::Grants, write),
        create,
        packages,
        readonly: List::new(Meaning::Refuses, readonly),
        deny: List::new(Meaning::Refuses, deny),
    };
    for list in [&files.readonly, &files.deny] {
        for ((text, at), around) in list.without_effect() {
            report.add(
                "bad_pattern",
                *at,
                format!("`{text}` subtracts nothing: `{around}` is about the whole folder around it"),
                "nothing in such a folder can be subtracted; write `folder/*` instead of `folder` or `folder/**`, \
                 and then `!folder/file`"
                    .to_owned(),
            );
        }
    }
    files
}

/// `create: { Cargo.lock: Cargo.toml }`: the file, and what it goes with.
fn companions(node: &Node, report: &mut Report<'_>) -> Vec<Companion> {
    let mut found = Vec::new();
    for entry in report.map(node).unwrap_or_default() {
        let seen = report.is_seen(&entry.key, entry.at);
        let Some(beside) = report.pattern(&entry.value).filter(|_| seen) else { continue };
        for (text, at) in [(entry.key.as_str(), entry.at), (beside, entry.value.at)] {
            if !is_single_name(text) {
                report.add(
                    "bad_pattern",
                    at,
                    format!("`{text}` in `files.create` is no single file of the workspace"),
                    "write `create: { Cargo.lock: Cargo.toml }`; patterns belong in `files.write`"
                        .to_owned(),
                );
            }
        }
        found.push(Companion { file: entry.key.clone(), beside: beside.to_owned(), at: entry.at });
    }
    found
}

/// `packages: { package.json: ["dist/**"] }`: a manifest's name, and what is writable in its folder.
fn packages(node: &Node, report: &mut Report<'_>) -> Vec<Package> {
    let mut found = Vec::new();
    for entry in report.map(node).unwrap_or_default() {
        let seen = report.is_seen(&entry.key, entry.at);
        if seen && (!is_single_name(&entry.key) || entry.key.contains('/')) {
            report.add(
                "bad_pattern",
                entry.at,
                format!("`{}` in `files.packages` is no name of a manifest", entry.key),
                "write `packages: { package.json: [\"dist/**\"] }`; it counts in every folder of the workspace"
                    .to_owned(),
            );
        }
        let mut patterns = Vec::new();
        for (text, at) in report.one_or_more_patterns(&entry.value).unwrap_or_default() {
            let first = text.split('/').next().unwrap_or_default();
            // What does not begin with a name would hold the manifest's whole folder, and every package in it.
            let wrong = if text.starts_with(['/', '!']) || matches!(first, "*" | "**") {
                Some("it begins with the name of a folder or file beside the manifest".to_owned())
            } else {
                check_pattern(text).err()
            };
            match wrong {
                Some(why) => report.add(
                    "bad_pattern",
                    at,
                    format!("`{text}` is no pattern of a package: {why}"),
                    None,
                ),
                None => patterns.push((text.to_owned(), at)),
            }
        }
        let write = List::new(Meaning::Grants, patterns);
        found.push(Package { manifest: entry.key.clone(), write, at: entry.at });
    }
    found
}

/// A path below the workspace that stands for itself alone.
fn is_single_name(text: &str) -> bool {
    !text.starts_with(['/', '!'])
        && !text.contains(['*', '?', '[', ']', '{', '}', '\\'])
        && text.split('/').all(|part| !["", ".", ".."].contains(&part))
}

/// Absolute patterns name folders of the image; these would be more than that.
fn opens_the_host(pattern: &str, list: &str) -> bool {
    if !pattern.starts_with('/') {
        return false;
    }
    let first = pattern[1..].split('/').next().unwrap_or_default();
    list == "write"
        || first.is_empty()
        || first.contains(['*', '?', '[', '{'])
        || ["proc", "sys", "run", "root", "boot"].contains(&first)
        || pattern.starts_with("/var/run")
        || pattern.ends_with(".sock")
}

fn programs(node: &Node, report: &mut Report<'_>) -> Vec<grammar::Program> {
    let mut programs = Vec::new();
    for entry in report.map(node).unwrap_or_default() {
        if catalog::lookup(&entry.key).is_some() {
            report.add(
                "known_program",
                entry.at,
                format!("`{}` is in the catalog and cannot be described anew", entry.key),
                "remove it; `runner policy catalog` shows what is known".to_owned(),
            );
            continue;
        }
        if !report.is_seen(&entry.key, entry.at) {
            continue;
        }
        if entry.key.is_empty() || entry.key.contains(['/', ' ', '*']) {
            report.add(
                "bad_name",
                entry.at,
                format!("`{}` is no name of a program", entry.key),
                None,
            );
            continue;
        }
        programs.extend(grammar::inline(&entry.key, &entry.value, report));
    }
    programs
}

fn env(node: &Node, report: &mut Report<'_>) -> Env {
    let mut env = Env::default();
    for entry in report.keys(node, &["pass", "set", "accept"]).unwrap_or_default() {
        match entry.key.as_str() {
            "set" => {
                for entry in report.map(&entry.value).unwrap_or_default() {
                    if !variables::is_name(&entry.key) {
                        bad_variable(&entry.key, entry.at, report);
                    } else if variables::loads_code(&entry.key) {
                        loader(&entry.key, entry.at, report);
                    } else if let Some(value) = report.text(&entry.value) {
                        env.set.push((entry.key.clone(), value.to_owned()));
                    }
                }
            }
            key => {
                let mut names = Vec::new();
                for (name, at) in report.one_or_more_patterns(&entry.value).unwrap_or_default() {
                    let stem = name.strip_suffix('*').unwrap_or(name);
                    if name != "*" && !variables::is_name(stem) {
                        bad_variable(name, at, report);
                    } else if key == "pass" && (name.contains('*') || variables::loads_code(name)) {
                        loader(name, at, report);
                    } else {
                        names.push(name.to_owned());
                    }
                }
                if key == "pass" {
                    env.pass = names;
                } else {
                    env.accept = names;
                }
            }
        }
    }
    env
}

fn bad_variable(name: &str, at: At, report: &mut Report<'_>) {
    report.add(
        "bad_name",
        at,
        format!("`{name}` is no name of a variable"),
        "letters, digits and `_`".to_owned(),
    );
}

fn loader(name: &str, at: At, report: &mut Report<'_>) {
    report.add(
        "forbidden_setting",
        at,
        format!("`{name}` can make programs load or run code, and is never passed or set"),
        "name single harmless variables".to_owned(),
    );
}

fn tests(node: &Node, report: &mut Report<'_>) -> Vec<Expectation> {
    let mut tests = Vec::new();
    for entry in report.keys(node, &["allow", "ask", "deny"]).unwrap_or_default() {
        let verdict = match entry.key.as_str() {
            "allow" => Verdict::Allow,
            "ask" => Verdict::Ask,
            _ => Verdict::Deny,
        };
        for (line, at) in report.one_or_more(&entry.value).unwrap_or_default() {
            tests.push(Expectation {
                line: line.to_owned(),
                expected: Expected::Verdict(verdict),
                at,
            });
        }
    }
    tests
}
