//! cargo's configuration: TOML tables `source`, `registries`, and tokens in a file of their own. Pure.

use runner_policy::net::Registry;
use toml::Table;

use super::source::{Credential, Secret, Source, Use};

/// Where cargo installs from if no file says anything else: the index and the crates of crates.io.
const DEFAULT: [(&str, Use); 2] =
    [("https://index.crates.io/", Use::Default), ("https://static.crates.io/", Use::Files)];

/// Most sources that replace each other in turn.
const STEPS: usize = 16;

/// What `config.toml` and `credentials.toml` say.
///
/// # Errors
/// Why a source cannot be used.
pub(super) fn read(config: &str, credentials: &str) -> Result<Vec<Source>, String> {
    let parse = |text: &str, name: &str| {
        text.parse::<Table>().map_err(|error| format!("{name} is no TOML: {}", error.message()))
    };
    let (config, credentials) =
        (parse(config, "config.toml")?, parse(credentials, "credentials.toml")?);
    let mut sources = replaced(&config)?;
    if let Some(registries) = table(&config, "registries") {
        for (name, registry) in registries {
            let Some(index) = registry.get("index").and_then(|index| index.as_str()) else {
                continue;
            };
            sources.push(sparse(Use::Scope(name.clone()), index)?);
        }
    }
    for source in &mut sources {
        let token = match &source.used {
            Use::Scope(name) => table(&credentials, "registries")
                .and_then(|all| all.get(name))
                .and_then(|registry| registry.get("token")),
            // crates.io's token is for publishing; reading needs none.
            _ => None,
        };
        source.credential = token
            .and_then(|token| token.as_str())
            .map(|token| Credential::Plain(Secret(token.to_owned())));
    }
    Ok(sources)
}

/// What stands for crates.io.
fn replaced(config: &Table) -> Result<Vec<Source>, String> {
    let all = table(config, "source");
    let named = |name: &str| all.and_then(|all| all.get(name)).and_then(|source| source.as_table());
    let mut name = "crates-io".to_owned();
    for _ in 0..STEPS {
        let source = named(&name);
        let text = |key: &str| source.and_then(|source| source.get(key)?.as_str());
        if let Some(next) = text("replace-with") {
            next.clone_into(&mut name);
            continue;
        }
        if name == "crates-io" {
            let own = DEFAULT.iter().map(|(url, used)| {
                Source::parse(Registry::Cargo, used.clone(), url)
                    .ok_or_else(|| "crates.io has no URL".to_owned())
            });
            return own.collect();
        }
        let by_registry = table(config, "registries")
            .and_then(|all| all.get(&name))
            .and_then(|registry| registry.get("index")?.as_str());
        return match text("registry").or(by_registry) {
            Some(url) => Ok(vec![sparse(Use::Default, url)?]),
            // A folder of this machine needs no network.
            None => Ok(Vec::new()),
        };
    }
    Err("the sources of cargo replace each other in a circle".to_owned())
}

fn sparse(used: Use, index: &str) -> Result<Source, String> {
    let url = index.strip_prefix("sparse+").ok_or_else(|| {
        "a registry of cargo is a git repository; only sparse registries are offered".to_owned()
    })?;
    let mut source = Source::parse(Registry::Cargo, used, url)
        .ok_or_else(|| "a registry of cargo is no plain http or https URL".to_owned())?;
    if !source.path.ends_with('/') {
        source.path.push('/');
    }
    Ok(source)
}

fn table<'t>(of: &'t Table, key: &str) -> Option<&'t Table> {
    of.get(key)?.as_table()
}
