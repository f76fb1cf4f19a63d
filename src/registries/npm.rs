//! npm's configuration: `KEY = VALUE` lines. yarn 1 and pnpm read the same files. Pure.

use std::collections::BTreeMap;

use runner_policy::net::Registry;

use super::source::{Credential, Secret, Source, Use};
use crate::environment::Environment;

/// Where npm installs from if no file says anything else: its own constant.
const DEFAULT: &str = "https://registry.npmjs.org/";

/// What the files say, the strongest last.
///
/// # Errors
/// The name of a registry that cannot be used, and why.
pub(super) fn read(texts: &[String], variables: &Environment) -> Result<Vec<Source>, String> {
    let mut values: BTreeMap<String, String> = BTreeMap::new();
    for text in texts {
        values.extend(lines(text));
    }
    let mut sources = Vec::new();
    let default = values.get("registry").map_or(DEFAULT, String::as_str);
    sources.push(source(Use::Default, default)?);
    for (key, value) in &values {
        if let Some(scope) = key.strip_suffix(":registry").filter(|key| key.starts_with('@')) {
            sources.push(source(Use::Scope(scope.to_owned()), value)?);
        }
    }
    for source in &mut sources {
        if let Some(credential) = credential(source, &values, variables) {
            source.credential = Some(credential);
        }
    }
    Ok(sources)
}

fn source(used: Use, url: &str) -> Result<Source, String> {
    if url.contains("${") {
        return Err(format!("`{url}` takes its address from a variable"));
    }
    let mut source = Source::parse(Registry::Npm, used, url)
        .ok_or_else(|| "an npm registry is no plain http or https URL".to_owned())?;
    if !source.path.ends_with('/') {
        source.path.push('/');
    }
    Ok(source)
}

/// The assignments before the first section.
fn lines(text: &str) -> Vec<(String, String)> {
    let own = text.lines().map(str::trim).take_while(|line| !line.starts_with('['));
    own.filter(|line| !line.starts_with([';', '#']))
        .filter_map(|line| line.split_once('='))
        .map(|(key, value)| (key.trim().to_owned(), unquoted(value.trim()).to_owned()))
        .collect()
}

fn unquoted(value: &str) -> &str {
    for quote in ['"', '\''] {
        let inner = value.strip_prefix(quote).and_then(|rest| rest.strip_suffix(quote));
        if let Some(inner) = inner {
            return inner;
        }
    }
    value
}

/// The credential of `//HOST/PATH/` or of the nearest path above it, as npm looks it up.
fn credential(
    source: &Source,
    values: &BTreeMap<String, String>,
    variables: &Environment,
) -> Option<Credential> {
    let mut path = source.path.trim_end_matches('/');
    loop {
        let place = format!("//{}{path}/:", source.authority());
        let value = |key: &str| {
            let plain = values.get(&format!("{place}{key}"))?;
            expanded(plain, variables)
        };
        if let Some(token) = value("_authToken") {
            return Some(Credential::Bearer(Secret(token)));
        }
        if let Some(both) = value("_auth") {
            return Some(Credential::Basic(Secret(both)));
        }
        if let (Some(user), Some(password)) = (value("username"), value("_password")) {
            use base64::Engine;
            let decoded = base64::engine::general_purpose::STANDARD.decode(password).ok()?;
            return Some(Credential::of(&user, &String::from_utf8(decoded).ok()?));
        }
        path = path.rsplit_once('/')?.0;
    }
}

/// `${NAME}` stands for a variable of the caller's.
fn expanded(text: &str, variables: &Environment) -> Option<String> {
    let mut out = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("${") {
        let (name, after) = after.split_once('}')?;
        out.push_str(before);
        out.push_str(variables.get(name)?.to_str()?);
        rest = after;
    }
    out.push_str(rest);
    (!out.is_empty()).then_some(out)
}
