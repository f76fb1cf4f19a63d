//! What a tool says of itself beyond what runs: what it can do, which credentials it needs, what it costs, where more is
//! written. It is shown and searched, and can make a call need more approval, never less.

use runner_policy::finding::Report;
use runner_policy::yaml::{Entry, Node};
use serde::Serialize;

use super::read::{count, find, missing, word};
use super::words::{AuthKind, CostModel};

/// Most capabilities, and most tags.
const MAX_ITEMS: usize = 100;
/// Longest single text.
const MAX_TEXT: usize = 1024;

const CAPABILITY: &[&str] =
    &["action", "description", "requiresConfirmation", "estimatedCost", "estimatedTime"];
const AUTH: &[&str] = &["type", "required", "configKey", "setupUrl"];
const COST: &[&str] = &["model", "estimatedCost", "billingUrl", "freeTierLimit"];

/// Everything that is only told.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metadata {
    /// Where its documentation is.
    pub documentation: Option<String>,
    /// What it can do.
    pub capabilities: Vec<Capability>,
    /// The credentials that it needs.
    pub required_auth: Option<Auth>,
    /// What it costs.
    pub cost_info: Option<Cost>,
    /// Words to find it by.
    pub tags: Vec<String>,
}

/// One thing that a tool can do.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Capability {
    /// In a word.
    pub action: String,
    /// In a sentence.
    pub description: Option<String>,
    /// Whether it needs an approval.
    pub requires_confirmation: bool,
    /// What it costs, in US dollars.
    pub estimated_cost: Option<f64>,
    /// How long it takes, in milliseconds.
    pub estimated_time: Option<u64>,
}

/// Credentials.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Auth {
    /// Of which kind.
    #[serde(rename = "type")]
    pub kind: AuthKind,
    /// Whether it does nothing without them.
    pub required: bool,
    /// The variable that holds them.
    pub config_key: String,
    /// Where to get them.
    pub setup_url: Option<String>,
}

/// What a tool costs.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Cost {
    /// By which model.
    pub model: CostModel,
    /// One call, in US dollars.
    pub estimated_cost: Option<f64>,
    /// Where the bill is.
    pub billing_url: Option<String>,
    /// Calls that are free.
    pub free_tier_limit: Option<u64>,
}

impl Metadata {
    /// Whether something that it can do wants approval.
    #[must_use]
    pub fn wants_confirmation(&self) -> bool {
        self.capabilities.iter().any(|capability| capability.requires_confirmation)
    }

    /// What it can do under this word.
    #[must_use]
    pub fn capability(&self, action: &str) -> Option<&Capability> {
        self.capabilities.iter().find(|capability| capability.action == action)
    }

    /// The credentials that it cannot do without and that are not there. `has` says whether a variable is set.
    #[must_use]
    pub fn lacks(&self, has: impl Fn(&str) -> bool) -> Option<&Auth> {
        self.required_auth.as_ref().filter(|auth| auth.required && !has(&auth.config_key))
    }
}

/// Reads it from the entries of a tool, whatever its form.
pub(super) fn read(entries: &[Entry], report: &mut Report<'_>) -> Metadata {
    let node = |key: &str| find(entries, key).map(|entry| &entry.value);
    Metadata {
        documentation: node("documentation").and_then(|node| page(node, report)),
        capabilities: node("capabilities").map(|it| capabilities(it, report)).unwrap_or_default(),
        required_auth: node("requiredAuth").and_then(|node| auth(node, report)),
        cost_info: node("costInfo").and_then(|node| cost(node, report)),
        tags: node("tags").map(|node| tags(node, report)).unwrap_or_default(),
    }
}

fn capabilities(node: &Node, report: &mut Report<'_>) -> Vec<Capability> {
    let items = report.list(node).unwrap_or_default();
    if items.len() > MAX_ITEMS {
        report.add("too_large", node.at, format!("more than {MAX_ITEMS} capabilities"), None);
        return Vec::new();
    }
    items.iter().filter_map(|item| capability(item, report)).collect()
}

fn capability(node: &Node, report: &mut Report<'_>) -> Option<Capability> {
    let entries = report.keys(node, CAPABILITY)?;
    let field = |key: &str| find(entries, key).map(|entry| &entry.value);
    let Some(action) = field("action") else {
        let help = "write `{ action: deploy, description: … }`".to_owned();
        report.add("missing_key", node.at, "a capability has an `action`", help);
        return None;
    };
    Some(Capability {
        action: text(action, report)?,
        description: field("description").and_then(|node| text(node, report)),
        requires_confirmation: field("requiresConfirmation")
            .and_then(|node| report.flag(node))
            .unwrap_or(false),
        estimated_cost: field("estimatedCost").and_then(|node| money(node, report)),
        estimated_time: field("estimatedTime").and_then(|node| count(node, report)),
    })
}

fn auth(node: &Node, report: &mut Report<'_>) -> Option<Auth> {
    let entries = report.keys(node, AUTH)?;
    let field = |key: &str| find(entries, key).map(|entry| &entry.value);
    let kind = match field("type") {
        Some(_) => word(entries, "type", AuthKind::WORDS, AuthKind::by_word, report),
        None => missing("type", "type: api_key", node.at, report),
    };
    let key = match field("configKey") {
        Some(node) => variable(node, report),
        None => missing("configKey", "configKey: SERVICE_TOKEN", node.at, report),
    };
    let required = field("required").and_then(|node| report.flag(node)).unwrap_or(true);
    let setup_url = field("setupUrl").and_then(|node| url(node, report));
    Some(Auth { kind: kind?, required, config_key: key?, setup_url })
}

fn cost(node: &Node, report: &mut Report<'_>) -> Option<Cost> {
    let entries = report.keys(node, COST)?;
    let field = |key: &str| find(entries, key).map(|entry| &entry.value);
    let model = match field("model") {
        Some(_) => word(entries, "model", CostModel::WORDS, CostModel::by_word, report),
        None => missing("model", "model: usage_based", node.at, report),
    };
    let estimated_cost = field("estimatedCost").and_then(|node| money(node, report));
    let billing_url = field("billingUrl").and_then(|node| url(node, report));
    let free_tier_limit = field("freeTierLimit").and_then(|node| count(node, report));
    Some(Cost { model: model?, estimated_cost, billing_url, free_tier_limit })
}

fn tags(node: &Node, report: &mut Report<'_>) -> Vec<String> {
    let tags = report.texts(node).unwrap_or_default();
    if tags.len() > MAX_ITEMS || tags.iter().any(|(tag, _)| tag.len() > MAX_TEXT) {
        report.add("too_large", node.at, format!("at most {MAX_ITEMS} short tags"), None);
        return Vec::new();
    }
    tags.into_iter().map(|(tag, _)| tag.to_owned()).collect()
}

fn text(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let text = report.text(node)?;
    if text.len() > MAX_TEXT {
        report.add("too_large", node.at, format!("longer than {MAX_TEXT} bytes"), None);
        return None;
    }
    Some(text.to_owned())
}

/// Where more is written: a page of the net, or a file of the repository that the tool is in, with or without a heading.
fn page(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-/#".contains(&byte);
    let is_file = |text: &str| {
        let inside = text.split('/').all(|part| !part.is_empty() && part != "..");
        inside && text.bytes().all(plain)
    };
    match report.text(node)? {
        text if is_file(text) => self::text(node, report),
        _ => url(node, report),
    }
}

/// A page of the net: other schemes could make a terminal or an editor do something.
fn url(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let text = text(node, report)?;
    let plain = |c: char| !c.is_whitespace() && !crate::text::is_deceptive(c);
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    if rest.is_some_and(|rest| !rest.is_empty() && rest.chars().all(plain)) {
        return Some(text);
    }
    let help = "write `https://…`".to_owned();
    report.add("bad_url", node.at, format!("`{text}` is not the URL of a page"), help);
    None
}

/// The name of a variable of the environment.
fn variable(node: &Node, report: &mut Report<'_>) -> Option<String> {
    let text = text(node, report)?;
    let begins = text.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || byte == b'_';
    if begins && text.bytes().all(plain) {
        return Some(text);
    }
    let help = "the name of a variable, such as `SERVICE_TOKEN`".to_owned();
    report.add("bad_name", node.at, format!("`{text}` names no variable"), help);
    None
}

fn money(node: &Node, report: &mut Report<'_>) -> Option<f64> {
    let text = report.figure(node)?;
    let figure = text.parse::<f64>().ok().filter(|it| it.is_finite() && *it >= 0.0);
    if figure.is_none() {
        let help = "US dollars, such as `0.30`".to_owned();
        report.add("bad_figure", node.at, format!("`{text}` is not a price"), help);
    }
    figure
}
