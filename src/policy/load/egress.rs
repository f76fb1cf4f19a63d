//! The keys of a `net` rule that is for commands.

use super::Origin;
use super::net::reach;
use super::sections::{date, identifier};
use crate::finding::{At, Report};
use crate::model::{NetRule, Verdict};
use crate::net::{Audience, BOUNDS, Bounds, Figures, Fixed, ForCommands, Registry, Target};
use crate::yaml::{Entry, Node};

/// Whom the rule is for; without a word, for tools.
pub(super) fn audience(entries: &[Entry], report: &mut Report<'_>) -> Audience {
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let audience = match find("for") {
        None => Audience::Tools,
        Some(entry) => match report.text(&entry.value) {
            Some("commands") => Audience::Commands,
            Some("tools") | None => Audience::Tools,
            Some(other) => {
                report.unknown_word("audience", other, entry.value.at, &["commands", "tools"]);
                Audience::Tools
            }
        },
    };
    if audience == Audience::Tools {
        for entry in ["registry", "inspect", "at"].into_iter().filter_map(find) {
            report.add(
                "not_for_tools",
                entry.at,
                format!("`{}` is about connections of commands", entry.key),
                "add `for: commands`, or remove it".to_owned(),
            );
        }
    }
    audience
}

/// A rule whose targets are the registries of this machine's package manager.
pub(super) fn registry_rule(
    node: &Node,
    entries: &[Entry],
    origin: Origin,
    report: &mut Report<'_>,
) -> Option<NetRule> {
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let registry = find("registry").and_then(|entry| registry(entry, report))?;
    for entry in ["at", "send"].into_iter().filter_map(find) {
        report.add(
            "conflict",
            entry.at,
            format!("`{}` does not go with `registry`", entry.key),
            "the package manager's own configuration says where its registries are".to_owned(),
        );
    }
    let commands = ForCommands {
        registry: Some(registry),
        ..for_commands(Verdict::Allow, entries, &[], origin, report)
    };
    Some(NetRule {
        id: find("id").and_then(|entry| identifier(&entry.value, "id", report)),
        verb: Verdict::Allow,
        targets: Vec::new(),
        figures: Figures::default(),
        reach: reach(find("private"), origin, &[], report),
        send: Vec::new(),
        commands: Some(commands),
        reason: find("reason").and_then(|entry| report.text(&entry.value).map(str::to_owned)),
        until: find("until").and_then(|entry| date(&entry.value, report)),
        at: node.at,
        text: format!("allow registry {}", registry.word()),
    })
}

/// What the rule says of connections; its targets are checked for what a command can ask for.
pub(super) fn for_commands(
    verb: Verdict,
    entries: &[Entry],
    targets: &[Target],
    origin: Origin,
    report: &mut Report<'_>,
) -> ForCommands {
    let find = |key: &str| entries.iter().find(|entry| entry.key == key);
    let inspected = find("inspect").filter(|_| verb != Verdict::Deny);
    let inspect = inspected.and_then(|entry| report.flag(&entry.value)).unwrap_or_default();
    if verb == Verdict::Ask {
        let at = find("ask").map_or(At::default(), |entry| entry.at);
        report.add(
            "bad_verb",
            at,
            "no connection waits for an answer",
            "say `allow` here, and `ask` in the rule for the command that connects".to_owned(),
        );
    }
    if verb == Verdict::Deny {
        for entry in ["inspect", "at", "registry"].into_iter().filter_map(find) {
            report.add(
                "not_for_deny",
                entry.at,
                format!("a deny has no `{}`", entry.key),
                "a deny lets nothing through that could be bounded or added to".to_owned(),
            );
        }
    } else if let Some(entry) = find("registry")
        && !targets.is_empty()
    {
        report.add(
            "conflict",
            entry.at,
            "`registry` stands in place of targets",
            "make two rules of it".to_owned(),
        );
    }
    let place = ["allow", "ask", "deny"].into_iter().find_map(find).map(|entry| entry.value.at);
    for target in targets.iter().filter(|_| verb == Verdict::Allow) {
        if let Some(help) = unreachable(target, inspect) {
            report.add(
                "bad_target",
                place.unwrap_or_default(),
                format!("a command cannot reach the target `{}`", target.host),
                help.to_owned(),
            );
        }
    }
    if let Some(entry) = inspected.filter(|_| inspect)
        && targets.iter().any(|target| target.host == "*")
    {
        report.add(
            "bad_target",
            entry.at,
            "`inspect` needs names: its certificates could stand for every host",
            "name the hosts, or write `*.` before a domain".to_owned(),
        );
    }
    ForCommands {
        inspect,
        registry: None,
        at: find("at").and_then(|entry| fixed(entry, targets, origin, report)),
        bounds: find("limits").map(|entry| bounds(&entry.value, report)).unwrap_or_default(),
    }
}

/// Why a command could never get there by this target.
fn unreachable(target: &Target, inspect: bool) -> Option<&'static str> {
    if !target.connect && !inspect {
        return Some(
            "method and path are seen with `inspect: true` only; else write `connect HOST:PORT`",
        );
    }
    if target.address().is_some() {
        return Some(
            "commands reach names, never addresses: name the host, with `at: ADDRESS` if no resolver knows it",
        );
    }
    if target.port.is_none() {
        return Some("a command reaches only ports that are named: write `connect HOST:PORT`");
    }
    if target.host == "localhost" || target.host.ends_with(".localhost") {
        return Some("`localhost` is the sandbox itself; give the host's service another name");
    }
    if target.scheme.as_deref().is_some_and(|scheme| !["http", "https"].contains(&scheme)) {
        return Some("requests are seen over http and https only");
    }
    (!is_name_or_star(&target.host))
        .then_some("a name of letters, digits, `-`, `_` and dots, at most 253 long")
}

/// Whether a resolver can be asked for the name, or for names below it.
fn is_name_or_star(host: &str) -> bool {
    let plain = host.strip_prefix("*.").unwrap_or(host);
    host == "*" || is_name(plain)
}

/// Whether a text is a host name as DNS has them.
#[must_use]
pub(crate) fn is_name(name: &str) -> bool {
    let label = |label: &str| {
        (1..=63).contains(&label.len())
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
    };
    name.len() <= 253 && name.split('.').all(label)
}

/// The address that is dialled.
fn fixed(
    entry: &Entry,
    targets: &[Target],
    origin: Origin,
    report: &mut Report<'_>,
) -> Option<Fixed> {
    if origin == Origin::Tool {
        report.add(
            "forbidden_setting",
            entry.at,
            "a tool cannot have `at`",
            "it names hosts; where they are is for those who grant them to say".to_owned(),
        );
    }
    if targets.iter().any(|target| !target.is_fixed()) {
        report.add(
            "bad_target",
            entry.at,
            "`at` needs a host without a star",
            "one address belongs to one name".to_owned(),
        );
    }
    let text = report.text(&entry.value)?;
    let found = Fixed::parse(text).filter(|fixed| fixed.can_be_named());
    if found.is_none() {
        report.add(
            "bad_target",
            entry.value.at,
            format!("`{text}` is no address that can be dialled"),
            "such as `at: \"10.0.0.5\"` or `at: \"10.0.0.5:8443\"`".to_owned(),
        );
    }
    found
}

fn registry(entry: &Entry, report: &mut Report<'_>) -> Option<Registry> {
    let word = report.text(&entry.value)?;
    let found = Registry::by_word(word);
    if found.is_none() {
        report.unknown_word("registry", word, entry.value.at, &Registry::ALL.map(|(word, _)| word));
    }
    found
}

/// `limits: { connections: 100, bytes: 1GiB, time: 10m }`
fn bounds(node: &Node, report: &mut Report<'_>) -> Bounds {
    let mut bounds = Bounds::default();
    for entry in report.keys(node, &BOUNDS.map(|row| row.key)).unwrap_or_default() {
        let Some(row) = BOUNDS.iter().find(|row| row.key == entry.key) else { continue };
        let Some(text) = report.figure(&entry.value) else { continue };
        match row.unit.parse(text) {
            Ok(figure) if figure > row.ceiling => report.add(
                "over_ceiling",
                entry.value.at,
                format!("`{}: {text}` is beyond the ceiling", row.key),
                format!("at most {}", row.unit.show(row.ceiling)),
            ),
            Ok(figure) => bounds.set(row.bound, figure),
            Err(form) => report.add(
                "bad_figure",
                entry.value.at,
                format!("`{text}` is no figure for `{}`", row.key),
                format!("write {form}"),
            ),
        }
    }
    bounds
}
