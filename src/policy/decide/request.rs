//! Requests of commands on connections that are inspected: by method, host and path.

use std::cmp::Reverse;

use jiff::Timestamp;

use super::RuleRef;
use super::connect::{allowing, host_matches};
use super::peers::{Found, denying, key, reference};
use crate::effective::Effective;
use crate::net::{self, Audience, BoundKey, Registry, RegistryHost, Send, Target};

/// Methods that only read. A rule that names a registry allows no other.
const READING: [&str; 2] = ["GET", "HEAD"];

/// On what terms a request is sent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sending {
    /// The rule of the policy itself that allows it: `policy/id`.
    pub rule: String,
    /// What the host adds.
    pub send: Vec<Send>,
    /// The package manager whose configuration names the host, if that is why it is allowed.
    pub registry: Option<Registry>,
    /// Most bytes of the answer.
    pub bytes: u64,
    /// How long request and answer may take together, in milliseconds.
    pub time: u64,
}

/// Why a request is not sent.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.sentence())]
pub struct RequestRefused {
    /// What was asked for: `METHOD URL`.
    pub asked: String,
    /// The rule that denies it, if one does.
    pub rule: Option<Box<RuleRef>>,
    /// That rule's reason.
    pub reason: Option<String>,
    /// The policy that says so.
    pub said_by: String,
    /// The package manager whose registry allows only reading, if that is why.
    pub registry: Option<Registry>,
}

impl RequestRefused {
    fn sentence(&self) -> String {
        let Self { asked, rule, said_by, registry, .. } = self;
        match (rule, registry) {
            (Some(rule), _) => format!("`{asked}` is denied by `{}`", rule.id),
            (None, Some(registry)) => format!(
                "registries of {} are read only: `{asked}` would send something there",
                registry.word()
            ),
            (None, None) => format!("no `net` rule of `{said_by}` allows commands `{asked}`"),
        }
    }
}

/// Whether a request of a command may be sent on a connection that is inspected. The policy and all that it
/// stays within must agree; what the host adds is the policy's own.
///
/// # Errors
/// It may not.
pub fn send(
    policy: &Effective,
    now: Timestamp,
    registries: &[RegistryHost],
    method: &str,
    url: &str,
) -> Result<Sending, RequestRefused> {
    let own = alone(policy, now, registries, method, url)?;
    policy.within.iter().try_fold(own, |mut sending, other| {
        let theirs = send(other, now, registries, method, url)?;
        sending.bytes = sending.bytes.min(theirs.bytes);
        sending.time = sending.time.min(theirs.time);
        Ok(sending)
    })
}

fn alone(
    policy: &Effective,
    now: Timestamp,
    registries: &[RegistryHost],
    method: &str,
    url: &str,
) -> Result<Sending, RequestRefused> {
    let refused = |found: Option<Found<'_>>, registry| RequestRefused {
        asked: format!("{method} {url}"),
        rule: found.map(|(layer, rule)| Box::new(reference(layer, rule))),
        reason: found.and_then(|(_, rule)| rule.reason.clone()),
        said_by: policy.name().to_owned(),
        registry,
    };
    let asked = net::request(method, url)
        .filter(|asked| asked.address().is_none())
        .ok_or_else(|| refused(None, None))?;
    if let Some(found) = denying(policy, now, &asked, Audience::Commands) {
        return Err(refused(Some(found), None));
    }
    let own = allowing(policy, now).filter_map(|found| {
        let covering = found.1.targets.iter().filter(|target| target.covers(&asked));
        Some((covering.map(Target::exactness).max()?, found))
    });
    let best = own.min_by_key(|(exact, found)| (Reverse(*exact), key(found)));
    let mut read_only = None;
    let best = best.map(|(_, found)| found).or_else(|| {
        let of_registries = allowing(policy, now).filter(|(_, rule)| {
            rule.commands
                .as_ref()
                .and_then(|own| own.registry)
                .is_some_and(|registry| host_matches(registry, registries, &asked.host, asked.port))
        });
        let found = of_registries.min_by_key(key)?;
        if READING.contains(&method) {
            return Some(found);
        }
        read_only = found.1.commands.as_ref().and_then(|own| own.registry);
        None
    });
    let Some((layer, rule)) = best else { return Err(refused(None, read_only)) };
    let Some(own) = &rule.commands else { return Err(refused(None, None)) };
    Ok(Sending {
        rule: reference(layer, rule).id,
        send: rule.send.clone(),
        registry: own.registry,
        bytes: own.bounds.get(BoundKey::Bytes),
        time: own.bounds.get(BoundKey::Time),
    })
}

impl Effective {
    /// The host names for which rules of the policy itself inspect connections of commands, `*.` before some.
    #[must_use]
    pub fn inspected(&self, now: Timestamp, registries: &[RegistryHost]) -> Vec<String> {
        let mut names = Vec::new();
        for (_, rule) in allowing(self, now) {
            let Some(own) = rule.commands.as_ref().filter(|own| own.inspect) else { continue };
            names.extend(rule.targets.iter().map(|target| target.host.clone()));
            let of = registries.iter().filter(|host| own.registry == Some(host.registry));
            names.extend(of.map(|host| host.host.clone()));
        }
        names.sort();
        names.dedup();
        names
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Origin, PolicySet, Source, parse};

    const RULES: &str = "policy: 1\nname: p\nsecrets: { T: \"env:T\" }\nnet:\n\
        \x20 - { id: npm, for: commands, registry: npm, inspect: true, limits: { bytes: 1MiB } }\n\
        \x20 - { id: git, for: commands, inspect: true, allow: [\"GET https://git.example/**\", \"POST https://git.example/**/git-upload-pack\"], send: { Authorization: \"Bearer ${secret:T}\" } }\n\
        \x20 - { id: never, for: commands, deny: \"GET https://git.example/private/**\", reason: private }\n\
        \x20 - { id: tools, allow: \"PUT https://git.example/**\" }\n";

    fn policy(text: &str) -> Effective {
        let source = Source { file: "p.yml", text, origin: Origin::User };
        let mut set = PolicySet::default();
        set.add(parse(source).unwrap_or_else(|findings| panic!("{findings:?}"))).unwrap();
        set.effective("p").unwrap()
    }

    fn asked(method: &str, url: &str) -> Result<Sending, RequestRefused> {
        let npm = RegistryHost {
            registry: Registry::Npm,
            host: "registry.example".to_owned(),
            port: 443,
        };
        let pip =
            RegistryHost { registry: Registry::Pip, host: "pip.example".to_owned(), port: 443 };
        send(&policy(RULES), Timestamp::UNIX_EPOCH, &[npm, pip], method, url)
    }

    #[test]
    fn methods_and_paths_are_judged() {
        let sending =
            asked("GET", "https://git.example/r/info/refs?service=git-upload-pack").unwrap();
        assert_eq!((sending.rule.as_str(), sending.send.len()), ("p/git", 1));
        assert!(asked("POST", "https://git.example/a/b.git/git-upload-pack").is_ok());
        for (method, url) in [
            ("POST", "https://git.example/a/b.git/git-receive-pack"),
            ("PUT", "https://git.example/a"),
            ("GET", "http://git.example/a"),
            ("GET", "https://git.example:8443/a"),
            ("GET", "https://git.example/private/a"),
            ("GET", "https://sub.git.example/a"),
            ("GET", "https://10.0.0.1/a"),
        ] {
            assert!(asked(method, url).is_err(), "{method} {url}");
        }
        let denied = asked("GET", "https://git.example/private/a").unwrap_err();
        assert_eq!(
            denied.to_string(),
            "`GET https://git.example/private/a` is denied by `p/never`"
        );
    }

    #[test]
    fn a_registry_is_only_read() {
        for method in ["GET", "HEAD"] {
            let sending = asked(method, "https://registry.example/left-pad").unwrap();
            assert_eq!(sending.registry, Some(Registry::Npm));
            assert_eq!((sending.rule.as_str(), sending.bytes), ("p/npm", 1 << 20));
        }
        for method in ["POST", "PUT", "DELETE", "PATCH"] {
            let refused = asked(method, "https://registry.example/left-pad").unwrap_err();
            assert!(
                refused.to_string().starts_with("registries of npm are read only"),
                "{refused}"
            );
        }
        // The other package manager's registry is not this rule's.
        assert!(asked("GET", "https://pip.example/simple").is_err());
    }

    #[test]
    fn the_names_of_an_authority_are_those_of_inspecting_rules() {
        let npm = RegistryHost { registry: Registry::Npm, host: "n.example".to_owned(), port: 443 };
        let names = policy(RULES).inspected(Timestamp::UNIX_EPOCH, &[npm]);
        assert_eq!(names, ["git.example", "n.example"]);
    }

    #[test]
    fn what_cannot_be_inspected_is_no_rule() {
        for rule in [
            "{ id: a, for: commands, inspect: true, allow: \"connect *:443\" }",
            "{ id: a, for: commands, allow: \"GET https://a.example/**\" }",
            "{ id: a, inspect: true, allow: \"GET https://a.example/**\" }",
        ] {
            let text = format!("policy: 1\nname: p\nnet:\n  - {rule}\n");
            assert!(
                parse(Source { file: "p.yml", text: &text, origin: Origin::User }).is_err(),
                "{rule}"
            );
        }
    }
}
