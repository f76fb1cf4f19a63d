//! What a policy grants, whole: after composition, with the place of each part.

use std::fmt;

use runner_policy::effective::Effective;
use runner_policy::finding::At;
use runner_policy::limits::Limit;
use runner_policy::model::{NetRule, Policy, Rule, Subject, Verdict, Writes};
use runner_policy::net::{Reach, Secret};
use serde::Serialize;

use crate::cli::style;
use crate::cli::visible::visible;
use crate::environment::Environment;
use crate::policy_files::{Layer, Loaded};
use crate::registries;

/// A policy as `show` and `trust` show it.
#[derive(Debug, Serialize)]
pub struct Summary {
    name: String,
    layer: Layer,
    file: String,
    digest: String,
    owner: Option<String>,
    description: Option<String>,
    /// What it is composed of, nearest first.
    made_of: Vec<String>,
    /// What it never exceeds.
    within: Vec<String>,
    image: String,
    isolation: String,
    engines: Vec<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    demand: Vec<String>,
    writes: Writes,
    limits: serde_json::Value,
    files: Vec<Line>,
    commands: Vec<Line>,
    net: Vec<Line>,
    secrets: Vec<Line>,
    env: Vec<Line>,
    /// What its `registry` rules stand for on this machine at this moment.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    registries: Vec<Line>,
}

/// One entry and where it stands.
#[derive(Debug, Serialize)]
struct Line {
    /// `policy/id`, or the list.
    id: String,
    /// What it says.
    text: String,
    /// What it grants, or why it is there.
    #[serde(skip_serializing_if = "Option::is_none")]
    about: Option<String>,
    file: String,
    line: u32,
}

impl Summary {
    /// Of a loaded policy.
    pub fn of(loaded: &Loaded) -> Self {
        let policy = &loaded.policy;
        let own = policy.layers.first();
        Self {
            name: policy.name().to_owned(),
            layer: loaded.layer,
            file: loaded.file.clone(),
            digest: policy.digest.to_hex().to_string(),
            owner: policy.owner().map(str::to_owned),
            description: own.and_then(|own| own.description.clone()),
            made_of: policy.layers.iter().map(|layer| layer.name.clone()).collect(),
            within: policy.within.iter().map(|other| other.name().to_owned()).collect(),
            image: policy.image().to_owned(),
            isolation: format!("{:?}", policy.isolation()).to_lowercase(),
            writes: policy.writes(),
            engines: {
                let there = |name: &&str| crate::engine::EngineName::named(name).is_some();
                policy.engines().into_iter().filter(there).map(str::to_owned).collect()
            },
            demand: policy.demands().into_iter().map(str::to_owned).collect(),
            limits: serde_json::to_value(policy.limits(&[])).unwrap_or_default(),
            files: files(policy),
            commands: each(policy, |layer| {
                layer.commands.iter().map(|rule| command(layer, rule)).collect()
            }),
            net: each(policy, net),
            secrets: each(policy, secrets),
            env: env(policy),
            registries: Vec::new(),
        }
    }

    /// With the registries that its rules stand for, where the caller has this environment.
    #[must_use]
    pub fn with_registries(mut self, policy: &Effective, environment: &Environment) -> Self {
        self.registries = registries_of(policy, environment);
        self
    }
}

fn registries_of(policy: &Effective, environment: &Environment) -> Vec<Line> {
    let line = |id: &str, text: String, about: Option<String>| Line {
        id: id.to_owned(),
        text,
        about,
        file: String::new(),
        line: 0,
    };
    let wanted = policy.registries(jiff::Timestamp::now());
    let found = match registries::find(&wanted, environment) {
        Ok(found) => found,
        Err(error) => return vec![line("error", error.to_string(), None)],
    };
    let sources = found.sources.iter().map(|source| {
        let sent = source.credential.as_ref().filter(|_| source.tls);
        let about = sent.map(|_| "the host adds this machine's credential".to_owned());
        line(source.registry.word(), source.url(), about)
    });
    let files = found
        .files
        .iter()
        .map(|file| line("read", file.path.display().to_string(), Some(file.digest.clone())));
    sources.chain(files).collect()
}

fn each(policy: &Effective, lines: impl Fn(&Policy) -> Vec<Line>) -> Vec<Line> {
    policy.layers.iter().flat_map(|layer| lines(layer)).collect()
}

fn files(policy: &Effective) -> Vec<Line> {
    each(policy, |layer| {
        let files = &layer.files;
        [
            ("read", &files.read),
            ("write", &files.write),
            ("readonly", &files.readonly),
            ("deny", &files.deny),
        ]
        .into_iter()
        .flat_map(|(key, list)| {
            list.patterns.iter().map(move |(text, at)| Line {
                id: key.to_owned(),
                text: text.clone(),
                about: None,
                file: layer.file.clone(),
                line: at.line,
            })
        })
        .chain(files.create.iter().map(|companion| Line {
            id: "create".to_owned(),
            text: companion.file.clone(),
            about: Some(format!("where {} is and it is missing", companion.beside)),
            file: layer.file.clone(),
            line: companion.at.line,
        }))
        .chain(files.packages.iter().map(|package| {
            let patterns = package.write.patterns.iter().map(|(text, _)| text.as_str());
            Line {
                id: "packages".to_owned(),
                text: patterns.collect::<Vec<_>>().join(" "),
                about: Some(format!("in each folder that has {}", package.manifest)),
                file: layer.file.clone(),
                line: package.at.line,
            }
        }))
        .collect()
    })
}

fn command(layer: &Policy, rule: &Rule) -> Line {
    let effects: Vec<_> = rule.effects.iter().map(runner_policy::effect::Class::word).collect();
    let mut about = format!("[{}]", effects.join(", "));
    for (limit, figure) in &rule.limits {
        let row = Limit::row(*limit);
        about = format!("{about} {}: {}", row.key, row.unit.show(*figure));
    }
    if let Some(reason) = &rule.reason {
        about = format!("{about} {reason}");
    }
    let subject = match &rule.subject {
        Subject::Catalog => "catalog",
        Subject::Patterns(_) => "",
    };
    let id = rule.id.as_deref().unwrap_or(subject);
    Line {
        id: format!("{}/{id}", layer.name),
        text: rule.text.clone(),
        about: Some(about),
        file: layer.file.clone(),
        line: rule.at.line,
    }
}

fn net(layer: &Policy) -> Vec<Line> {
    let line = |rule: &NetRule| Line {
        id: format!("{}/{}", layer.name, rule.id.as_deref().unwrap_or("net")),
        text: rule.text.clone(),
        about: about_net(rule),
        file: layer.file.clone(),
        line: rule.at.line,
    };
    layer.net.iter().map(line).collect()
}

/// The terms of a rule that lets something through, and its reason.
fn about_net(rule: &NetRule) -> Option<String> {
    let mut parts = Vec::new();
    if rule.verb != Verdict::Deny {
        parts.push(format!("[{}]", rule.figures.show()));
        if rule.reach != Reach::Public {
            parts.push("private addresses too;".to_owned());
        }
        for send in &rule.send {
            parts.push(format!("sends {}: {};", send.header, send.template));
        }
    }
    parts.extend(rule.reason.clone());
    (!parts.is_empty()).then(|| parts.join(" "))
}

/// Names and sources of secrets. Values are never shown.
fn secrets(layer: &Policy) -> Vec<Line> {
    let line = |(secret, at): &(Secret, At)| Line {
        id: format!("{}/{}", layer.name, secret.name),
        text: secret.source.to_string(),
        about: None,
        file: layer.file.clone(),
        line: at.line,
    };
    layer.secrets.iter().map(line).collect()
}

fn env(policy: &Effective) -> Vec<Line> {
    each(policy, |layer| {
        let line = |id: &str, text: String| Line {
            id: id.to_owned(),
            text,
            about: None,
            file: layer.file.clone(),
            line: 0,
        };
        let pass = layer.env.pass.iter().map(|name| line("pass", name.clone()));
        let set = layer.env.set.iter().map(|(name, value)| line("set", format!("{name}={value}")));
        let accept = layer.env.accept.iter().map(|name| line("accept", name.clone()));
        pass.chain(set).chain(accept).collect()
    })
}

impl fmt::Display for Summary {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (strong, faint) = (style::STRONG, style::FAINT);
        write!(f, "{strong}{}{strong:#}", visible(&self.name))?;
        writeln!(f, "  {faint}{}, {}{faint:#}", self.layer.word(), visible(&self.file))?;
        if let Some(description) = &self.description {
            writeln!(f, "{}", visible(description))?;
        }
        let mut field = |name: &str, value: &str| {
            writeln!(f, "  {faint}{name:<10}{faint:#}  {}", visible(value))
        };
        if let Some(owner) = &self.owner {
            field("owner", owner)?;
        }
        field("made of", &self.made_of.join(", "))?;
        if !self.within.is_empty() {
            field("within", &self.within.join(", "))?;
        }
        field("digest", &self.digest)?;
        field("image", &self.image)?;
        field("isolation", &self.isolation)?;
        field("engines", &self.engines.join(", "))?;
        if !self.demand.is_empty() {
            field("demand", &self.demand.join(", "))?;
        }
        field("writes", self.writes.word())?;
        if let Some(limits) = self.limits.as_object() {
            let shown: Vec<_> = limits
                .iter()
                .map(|(key, figure)| format!("{key} {}", figure.as_str().unwrap_or_default()))
                .collect();
            for (at, part) in shown.chunks(5).enumerate() {
                field(if at == 0 { "limits" } else { "" }, &part.join(", "))?;
            }
        }
        for (title, lines) in [
            ("files", &self.files),
            ("commands", &self.commands),
            ("net", &self.net),
            ("secrets", &self.secrets),
            ("env", &self.env),
            ("registries", &self.registries),
        ] {
            section(f, title, lines)?;
        }
        Ok(())
    }
}

fn section(f: &mut fmt::Formatter<'_>, title: &str, lines: &[Line]) -> fmt::Result {
    if lines.is_empty() {
        return Ok(());
    }
    let (strong, faint) = (style::STRONG, style::FAINT);
    writeln!(f, "\n{strong}{title}{strong:#}")?;
    let width = lines.iter().map(|line| line.id.chars().count()).max().unwrap_or(0);
    for line in lines {
        let place = if line.line == 0 {
            String::new()
        } else {
            format!("  {}:{}", visible(&line.file), line.line)
        };
        writeln!(
            f,
            "  {:<width$}  {}{faint}{place}{faint:#}",
            visible(&line.id),
            visible(&line.text)
        )?;
        if let Some(about) = &line.about {
            writeln!(f, "  {:<width$}  {faint}{}{faint:#}", "", visible(about))?;
        }
    }
    Ok(())
}
