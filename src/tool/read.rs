//! From a tree to a [`Definition`], strictly, all findings at once.
//!
//! Trust boundary: the file comes from a repository. Nothing of it is believed beyond what it says
//! about itself; what it asks for can only narrow what a policy allows.

use runner_policy::finding::{At, Finding, Report};
use runner_policy::yaml::{self, Entry, Node};

use super::builtin::BuiltIn;
use super::code;
use super::data::to_json;
use super::definition::{Body, Definition, Tokens};
use super::members;
use super::metadata::{self, Metadata};
use super::permissions::{self, Parts, Permissions};
use super::retry::{BadRetry, RetryPolicy, WORDS};
use super::schema::{Role, Schema, Spans};
use super::words::{Category, Removal, Risk, Runtime, Tier, Waiver};
use crate::ids::ToolName;
use crate::ids::tool_name::FORM;

const KEYS: &[&str] = &[
    "name",
    "description",
    "enabled",
    "tokenCost",
    "schema",
    "runtime",
    "permissions",
    "code",
    "version",
    "category",
    "securityTier",
    "returns",
    "files",
    "net",
    "env",
    "limits",
    "timeout",
    "retry",
    "documentation",
    "capabilities",
    "requiredAuth",
    "costInfo",
    "tags",
];
const PERMISSIONS: &[&str] = &["allowlist", "autoAccept", "riskLevel"];

/// Longest description: it is paid for in every agent's context.
pub(super) const MAX_DESCRIPTION: usize = 8 << 10;
/// Longest version.
const MAX_VERSION: usize = 64;

/// Reads the YAML form. `stem` is the name that the file has.
///
/// # Errors
/// Everything that is wrong with it.
pub fn parse(file: &str, text: &str, stem: &ToolName) -> Result<Definition, Vec<Finding>> {
    let mut report = Report::new(file, text);
    let root = yaml::read(text, &mut report);
    let definition = root.and_then(|root| {
        let entries = known(&root, KEYS, &mut report)?;
        let code = match find(entries, "code") {
            Some(entry) => code::read(entry, text, &mut report),
            None => missing("code", "code: |", root.at, &mut report),
        };
        let runtime = word(entries, "runtime", Runtime::WORDS, Runtime::by_word, &mut report)
            .unwrap_or(Runtime::Typescript);
        let common = common(entries, root.at, stem, (file, text), Author::Others, &mut report);
        let body = code.map(|code| Body::Yaml { runtime, code });
        common.zip(body).map(|(common, body)| common.with(body))
    });
    finish(definition, report)
}

/// Reads the definition of a tool of this program: the same, without code.
///
/// # Errors
/// Everything that is wrong with it.
pub(super) fn built_in(tool: &'static BuiltIn) -> Result<Definition, Vec<Finding>> {
    let file = tool.file();
    let mut report = Report::new(&file, tool.text);
    let root = yaml::read(tool.text, &mut report);
    let definition = root.and_then(|root| {
        let without: Vec<&str> =
            KEYS.iter().copied().filter(|key| !["code", "runtime"].contains(key)).collect();
        let entries = report.keys(&root, &without)?;
        let stem = tool.name.parse().ok()?;
        let source = (file.as_str(), tool.text);
        let common = common(entries, root.at, &stem, source, Author::Us, &mut report)?;
        Some(common.with(Body::BuiltIn(tool)))
    });
    finish(definition, report)
}

/// The keys of a tool; each that is not known is a finding.
fn known<'n>(
    root: &'n Node,
    keys: &[&'static str],
    report: &mut Report<'_>,
) -> Option<&'n [Entry]> {
    let entries = report.map(root)?;
    let unknown = entries.iter().filter(|entry| !keys.contains(&entry.key.as_str()));
    unknown.for_each(|entry| members::unknown(entry, keys, report));
    Some(entries)
}

/// The definition, or every finding once.
pub(super) fn finish(
    definition: Option<Definition>,
    report: Report<'_>,
) -> Result<Definition, Vec<Finding>> {
    match definition {
        Some(definition) if report.is_clean() => Ok(definition),
        _ => {
            let mut findings = report.finish();
            // The permissions are read twice, by us and by the policy's loader.
            findings.dedup();
            Err(findings)
        }
    }
}

/// Who wrote a definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Author {
    /// It is a part of this program.
    Us,
    /// Any source.
    Others,
}

/// What both forms have.
pub(super) struct Common {
    name: ToolName,
    description: String,
    enabled: bool,
    tokens: Option<u32>,
    version: Option<String>,
    category: Category,
    tier: Tier,
    risk: Option<Risk>,
    auto_accept: Option<bool>,
    schema: Schema,
    returns: Option<Schema>,
    permissions: Permissions,
    retry: RetryPolicy,
    metadata: Metadata,
    written: Vec<String>,
}

impl Common {
    pub(super) fn with(self, body: Body) -> Definition {
        let tokens = self.tokens.map_or_else(
            || Tokens::estimate(&self.name, &self.description, &self.schema),
            Tokens::Said,
        );
        let wall = self.permissions.limits.iter().find(|(key, _)| *key == "wall");
        let timeout = wall.and_then(|(_, text)| runner_policy::limits::Unit::Time.parse(text).ok());
        let risk = self.risk.unwrap_or_else(|| self.tier.default_risk());
        let waiver = match self.auto_accept {
            Some(true) if risk >= Risk::High => Waiver::Risk,
            Some(true) => Waiver::Counts,
            Some(false) | None => Waiver::NotSaid,
        };
        let definition = Definition {
            tokens,
            timeout,
            risk,
            waiver,
            auto_accept: self.auto_accept.unwrap_or(true),
            removal: Removal::Free,
            name: self.name,
            description: self.description,
            enabled: self.enabled,
            version: self.version,
            category: self.category,
            tier: self.tier,
            schema: self.schema,
            returns: self.returns,
            permissions: self.permissions,
            retry: self.retry,
            metadata: self.metadata,
            written: self.written,
            body,
        };
        match (self.auto_accept, waiver) {
            (Some(_), Waiver::NotSaid | Waiver::Counts) => definition,
            _ => definition.by_tier(),
        }
    }
}

/// Reads what both forms have.
pub(super) fn common(
    entries: &[Entry],
    root: At,
    stem: &ToolName,
    source: (&str, &str),
    author: Author,
    report: &mut Report<'_>,
) -> Option<Common> {
    let name = match find(entries, "name") {
        Some(entry) => name(&entry.value, stem, report),
        None => missing("name", &format!("name: {stem}"), root, report),
    };
    let description = match find(entries, "description") {
        Some(entry) => description(&entry.value, report),
        None => missing("description", "description: What it does, in a sentence.", root, report),
    };
    let enabled = find(entries, "enabled").and_then(|entry| report.flag(&entry.value));
    let tokens = find(entries, "tokenCost").and_then(|entry| count(&entry.value, report));
    let version = find(entries, "version").and_then(|entry| version(&entry.value, report));
    let category = word(entries, "category", Category::WORDS, Category::by_word, report);
    let asked: &[Entry] = find(entries, "permissions")
        .and_then(|entry| report.keys(&entry.value, PERMISSIONS))
        .unwrap_or_default();
    let node = |key: &str| find(entries, key).map(|entry| &entry.value);
    let parts = Parts {
        allowlist: find(asked, "allowlist").map(|entry| &entry.value),
        files: node("files"),
        net: node("net"),
        env: node("env"),
        limits: node("limits"),
        timeout: node("timeout"),
    };
    let permissions = permissions::read(&parts, name.as_ref(), root, source, report);
    let tier = permissions.as_ref().map(|permissions| tier(entries, permissions, report));
    let metadata = metadata::read(entries, report);
    let risk = word(asked, "riskLevel", Risk::WORDS, Risk::by_word, report);
    let auto_accept = find(asked, "autoAccept").and_then(|entry| report.flag(&entry.value));
    let schema = match find(entries, "schema") {
        Some(entry) => compiled(&entry.value, Role::Arguments, author, report),
        None => Schema::nothing(),
    };
    let returns =
        find(entries, "returns").map(|it| compiled(&it.value, Role::Result, author, report));
    let retry = match find(entries, "retry") {
        Some(entry) => retry(&entry.value, stem, report),
        None => Some(RetryPolicy::default()),
    };
    Some(Common {
        name: name?,
        description: description?,
        enabled: enabled.unwrap_or(true),
        tokens,
        version,
        category: category.unwrap_or(Category::Custom),
        tier: tier?,
        risk,
        auto_accept,
        schema: schema?,
        returns: match returns {
            Some(returns) => Some(returns?),
            None => None,
        },
        permissions: permissions?,
        retry: retry?,
        metadata,
        written: entries.iter().map(|entry| entry.key.clone()).collect(),
    })
}

/// When a call that failed is tried again.
fn retry(node: &Node, stem: &ToolName, report: &mut Report<'_>) -> Option<RetryPolicy> {
    let mut spans = Spans::default();
    let json = to_json(node, "", &mut spans, report)?;
    let read = RetryPolicy::read(&json).and_then(|policy| match &policy.fallback {
        Some(other) if other == stem => {
            Err(BadRetry::at("/fallback", "a tool that failed cannot stand in for itself"))
        }
        _ => Ok(policy),
    });
    match read {
        Ok(policy) => Some(policy),
        Err(BadRetry { pointer, why }) => {
            let help = format!(
                "write one of {}, or `{{ maxRetries: 3, backoff: {{ type: fixed, delay: 1000 }} }}`",
                WORDS.join(", ")
            );
            report.add("bad_retry", spans.at(&pointer), why, help);
            None
        }
    }
}

pub(super) fn find<'n>(entries: &'n [Entry], key: &str) -> Option<&'n Entry> {
    entries.iter().find(|entry| entry.key == key)
}

pub(super) fn missing<T>(key: &str, form: &str, at: At, report: &mut Report<'_>) -> Option<T> {
    report.add("missing_key", at, format!("`{key}` is missing"), format!("add `{form}`"));
    None
}

fn name(node: &Node, stem: &ToolName, report: &mut Report<'_>) -> Option<ToolName> {
    let text = report.text(node)?;
    match text.parse::<ToolName>() {
        Ok(name) if name == *stem => Some(name),
        Ok(name) => {
            let message = format!("the file is called {stem} and the tool in it {name}");
            let help = format!("write `name: {stem}`, or rename the file");
            report.add("name_differs", node.at, message, help);
            None
        }
        Err(_) => {
            report.add(
                "bad_name",
                node.at,
                format!("`{text}` is not a valid tool name"),
                FORM.to_owned(),
            );
            None
        }
    }
}

fn description(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let text = report.text(node)?.trim();
    if text.is_empty() {
        report.add("empty", node.at, "the description is empty", None);
        return None;
    }
    if text.len() > MAX_DESCRIPTION {
        let message = format!("the description is longer than {MAX_DESCRIPTION} bytes");
        report.add("too_large", node.at, message, None);
        return None;
    }
    Some(text.to_owned())
}

pub(super) fn count<T: std::str::FromStr>(node: &Node, report: &mut Report<'_>) -> Option<T> {
    let text = report.figure(node)?;
    let figure = text.parse().ok();
    if figure.is_none() {
        let help = "a whole number, such as `450`".to_owned();
        report.add("bad_figure", node.at, format!("`{text}` is not a count"), help);
    }
    figure
}

/// `1.2.3`, with what semantic versions allow after it.
fn version(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let text = report.figure(node)?;
    let (core, build) = text.split_once('+').unwrap_or((text, "0"));
    let (core, pre) = core.split_once('-').unwrap_or((core, "0"));
    let figures: Vec<&str> = core.split('.').collect();
    let number = |part: &&str| {
        !part.is_empty() && part.len() < 10 && part.bytes().all(|byte| byte.is_ascii_digit())
    };
    let word = |part: &str| {
        !part.is_empty() && part.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    let fits = figures.len() == 3
        && figures.iter().all(number)
        && pre.split('.').all(word)
        && build.split('.').all(word)
        && text.len() <= MAX_VERSION;
    if !fits {
        let help = "three numbers, such as `1.2.3`".to_owned();
        report.add("bad_version", node.at, format!("`{text}` is not a version"), help);
    }
    fits.then(|| text.to_owned())
}

pub(super) fn word<T>(
    entries: &[Entry],
    key: &str,
    words: &[&str],
    by_word: fn(&str) -> Option<T>,
    report: &mut Report<'_>,
) -> Option<T> {
    let node = &find(entries, key)?.value;
    let text = report.text(node)?;
    let meant = by_word(text);
    if meant.is_none() {
        report.unknown_word(&format!("`{key}`"), text, node.at, words);
    }
    meant
}

/// The tier that it says, which must cover what it asks for.
fn tier(entries: &[Entry], permissions: &Permissions, report: &mut Report<'_>) -> Tier {
    let needed = permissions.tier();
    let Some(said) = word(entries, "securityTier", Tier::WORDS, Tier::by_word, report) else {
        return needed;
    };
    if said < needed {
        let at = find(entries, "securityTier").map_or(At::default(), |entry| entry.value.at);
        let does = match needed {
            Tier::ExternalApi => "reaches the net",
            Tier::Execute => "runs commands",
            Tier::Write | Tier::ReadOnly => "writes files",
        };
        let message = format!("a tool that {does} is not `{}`", said.word());
        let help = format!("write `securityTier: {}`, or ask for less", needed.word());
        report.add("tier_too_low", at, message, help);
    }
    said
}

fn compiled(node: &Node, role: Role, author: Author, report: &mut Report<'_>) -> Option<Schema> {
    let mut spans = Spans::default();
    let json = to_json(node, "", &mut spans, report)?;
    match author {
        Author::Us => Schema::ours(json),
        Author::Others => Schema::compile(json, role, &spans, report),
    }
}

#[cfg(test)]
#[path = "read_tests.rs"]
mod tests;
