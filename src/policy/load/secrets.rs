//! `secrets:` of a policy, and `send:` of its `net` rules. Values are never read here.

use super::Origin;
use crate::finding::{At, Report, did_you_mean};
use crate::net::{
    Secret, SecretSource, Send, Target, Template, is_header_name, is_reserved_header,
};
use crate::yaml::Entry;

/// The secrets that a policy declares. `passed` are the variables that it gives to commands.
pub(super) fn declared(
    section: &Entry,
    origin: Origin,
    passed: &[String],
    report: &mut Report<'_>,
) -> Vec<(Secret, At)> {
    if !may_send(section, origin, report) {
        return Vec::new();
    }
    let mut secrets = Vec::new();
    for entry in report.map(&section.value).unwrap_or_default() {
        if !is_name(&entry.key) {
            report.add(
                "bad_name",
                entry.at,
                format!("`{}` is no name of a secret", entry.key),
                "a letter, then up to 63 letters, digits, `-` or `_`".to_owned(),
            );
            continue;
        }
        let Some(text) = report.text(&entry.value) else { continue };
        let Some(source) = SecretSource::parse(text) else {
            // What stands here may be the secret itself: it is not repeated.
            report.add_hidden(
                "bad_secret",
                entry.value.at,
                format!("`{}` does not say where its value is", entry.key),
                "write `env:VARIABLE` or `file:/absolute/path`; a policy never holds the value"
                    .to_owned(),
            );
            continue;
        };
        if let SecretSource::Env(name) = &source
            && passed.contains(name)
        {
            report.add(
                "conflict",
                entry.value.at,
                format!("`{name}` is a secret here and `env.pass` gives it to every command"),
                "remove it from `env.pass`".to_owned(),
            );
        }
        secrets.push((Secret { name: entry.key.clone(), source }, entry.at));
    }
    secrets
}

/// The headers that a rule sends.
pub(super) fn sent(
    section: &Entry,
    origin: Origin,
    targets: &[Target],
    secrets: &[(Secret, At)],
    report: &mut Report<'_>,
) -> Vec<Send> {
    if !may_send(section, origin, report) {
        return Vec::new();
    }
    for target in targets {
        let refused = if target.connect {
            "nothing can be added to a connection; name the request, such as `GET https://HOST/**`"
        } else if !target.is_fixed() {
            "what is sent goes to one host; write its name without a star"
        } else if !target.scheme.as_deref().is_some_and(|scheme| match scheme {
            "https" => true,
            "http" => target.is_loopback(),
            _ => false,
        }) {
            "what is sent is readable on its way; write `https://` (`http://` only to loopback)"
        } else {
            continue;
        };
        report.add(
            "bad_send",
            section.at,
            format!("`send` does not go with the target `{}`", target.host),
            refused.to_owned(),
        );
    }
    let mut send: Vec<Send> = Vec::new();
    for entry in report.map(&section.value).unwrap_or_default() {
        let header = entry.key.to_ascii_lowercase();
        if !is_header_name(&header) || is_reserved_header(&header) {
            let help = "a name such as `Authorization`; how a message travels is the host's";
            report.add(
                "bad_send",
                entry.at,
                format!("`{}` is no header that can be sent", entry.key),
                help.to_owned(),
            );
            continue;
        }
        if send.iter().any(|known| known.header == header) {
            report.add(
                "duplicate_key",
                entry.at,
                format!("`{}` stands twice: case does not matter in headers", entry.key),
                None,
            );
            continue;
        }
        let Some(text) = report.text(&entry.value) else { continue };
        let template = match Template::parse(text) {
            Ok(template) => template,
            Err(why) => {
                report.add_hidden(
                    "bad_send",
                    entry.value.at,
                    format!("the value of `{}` cannot be sent: {why}", entry.key),
                    "such as `Bearer ${secret:NAME}`".to_owned(),
                );
                continue;
            }
        };
        let mut used: Vec<Secret> = Vec::new();
        for name in template.secrets() {
            match secrets.iter().find(|(secret, _)| secret.name == name) {
                Some((secret, _)) if used.contains(secret) => {}
                Some((secret, _)) => used.push(secret.clone()),
                None => unknown(name, entry.value.at, secrets, report),
            }
        }
        send.push(Send { header, template, secrets: used });
    }
    send
}

fn unknown(name: &str, at: At, secrets: &[(Secret, At)], report: &mut Report<'_>) {
    let known = secrets.iter().map(|(secret, _)| secret.name.as_str());
    let help = match did_you_mean(name, known) {
        Some(close) => format!("did you mean `{close}`?"),
        None => format!("declare it in this policy: `secrets: {{ {name}: env:VARIABLE }}`"),
    };
    report.add("unknown_secret", at, format!("there is no secret `{name}` in this policy"), help);
}

fn may_send(section: &Entry, origin: Origin, report: &mut Report<'_>) -> bool {
    if !origin.may_send() {
        let whose = if origin == Origin::Tool { "a tool" } else { "a project's policy" };
        report.add(
            "forbidden_setting",
            section.at,
            format!("{whose} cannot have `{}`", section.key),
            "put it into a policy of the user, the administrator, or one that is given by its path"
                .to_owned(),
        );
    }
    origin.may_send()
}

fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_' || byte == b'-';
    text.len() <= 64
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphabetic)
        && text.bytes().all(plain)
}
