//! A tool for people: what it is, what it takes and gives, what it asks for. Everything shown is foreign text.

use std::fmt;

use serde_json::{Map, Value};

use super::list::lacking;
use crate::cli::audit::moment;
use crate::cli::style;
use crate::cli::visible::visible;
use crate::queue::{Breaker, Standing};
use crate::text::counted;
use crate::tool::{
    Auth, Body, Cost, Definition, Metadata, Origin, Permissions, Removal, RetryPolicy, Schema,
    Switch, Tokens, Tool,
};

/// A tool and what it says.
pub struct View<'a> {
    /// Where it was found.
    pub tool: &'a Tool,
    /// What it says.
    pub definition: &'a Definition,
    /// Whether it is called, if it ever was.
    pub circuit: Option<Standing>,
    /// What it costs in a context.
    pub tokens: Tokens,
    /// The credentials that it lacks.
    pub lacks: Option<&'a Auth>,
}

impl fmt::Display for View<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (strong, faint) = (style::STRONG, style::FAINT);
        let it = self.definition;
        let version = it.version.as_deref().map(|text| format!(" {text}")).unwrap_or_default();
        writeln!(f, "{strong}{}{strong:#}{}", it.name, visible(&version))?;
        for line in it.description.lines() {
            writeln!(f, "  {}", visible(line))?;
        }
        let file = visible(&self.tool.file).into_owned();
        let badge = self.tool.origin().badge();
        field(f, "source", &format!("{badge}  {faint}{file}{faint:#}"))?;
        state(f, self)?;
        field(f, "tier", &format!("{}, {} risk", it.tier.word(), it.risk.word()))?;
        field(f, "category", it.category.word())?;
        field(f, "approval", &approval(it))?;
        let tokens = match self.tokens {
            Tokens::Said(figure) => format!("{figure} tokens (by its author)"),
            Tokens::Counted(figure) => format!("{figure} tokens"),
            Tokens::Estimated(figure) => format!("~{figure} tokens (estimated)"),
        };
        field(f, "costs", &tokens)?;
        if let Some(text) = self.circuit.and_then(standing) {
            field(f, "circuit", &text)?;
        }
        retries(f, &it.retry)?;
        metadata(f, &it.metadata, self.tool.origin())?;
        if let Body::Module(described) = &it.body
            && !described.hooks.is_empty()
        {
            field(f, "hooks", &described.hooks.join(", "))?;
        }
        if let Body::Mcp(from) = &it.body {
            let policy = from.server.policy.as_deref().unwrap_or("the call's");
            let command = visible(&from.command()).into_owned();
            field(
                f,
                "server",
                &format!("{}  {faint}{command}, under policy {policy}{faint:#}", from.name),
            )?;
        }
        schema(f, "takes", &it.schema)?;
        match &it.returns {
            Some(returns) => schema(f, "gives", returns)?,
            None => field(f, "gives", "anything")?,
        }
        permissions(f, &it.permissions)
    }
}

/// What needs an approval before the tool runs, or while it runs.
fn approval(it: &Definition) -> String {
    let each: Vec<&str> = match &it.body {
        Body::BuiltIn(_) => {
            let asked = it.metadata.capabilities.iter().filter(|it| it.requires_confirmation);
            asked.map(|capability| capability.action.as_str()).collect()
        }
        Body::Yaml { .. } | Body::Module(_) | Body::Mcp(_) => Vec::new(),
    };
    let all = each.len() == it.metadata.capabilities.len();
    let said = match it.waiver.why_not() {
        Some(why) => format!("; its `autoAccept: true` does not count: {why}"),
        None => String::new(),
    };
    let asked = match (it.auto_accept, it.removal) {
        (false, _) if !each.is_empty() && !all => format!("asked for {}", each.join(", ")),
        (false, _) => "asked for each call".to_owned(),
        (true, Removal::Asked) => "asked for what it removes or moves away".to_owned(),
        (true, Removal::Free) => "not needed by the tool".to_owned(),
    };
    asked + &said
}

/// Whether it can be used, and if not, why and what to do.
fn state(f: &mut fmt::Formatter<'_>, view: &View<'_>) -> fmt::Result {
    let off = |why: &str| format!("{}off{:#}  {why}", style::WARN, style::WARN);
    let text = match (&view.tool.switch, view.lacks) {
        _ if !view.definition.enabled => off("its author switched it off"),
        (Switch::Example, _) => {
            off(&format!("an example; to use it: runner tool enable {}", view.tool.name))
        }
        (Switch::Off(source), _) => {
            let (file, line) = (source.file.as_deref(), source.line.unwrap_or_default());
            off(&format!("{}:{line}", visible(file.unwrap_or_default())))
        }
        (Switch::On, Some(auth)) => {
            format!("{}unavailable{:#}  {}", style::WARN, style::WARN, visible(&lacking(auth)))
        }
        (Switch::On, None) => format!("{}ready{:#}", style::GOOD, style::GOOD),
    };
    field(f, "state", &text)
}

/// When a call that failed is tried again, and who stands in.
fn retries(f: &mut fmt::Formatter<'_>, it: &RetryPolicy) -> fmt::Result {
    if it.retries > 0 {
        let times = counted(usize::try_from(it.retries).unwrap_or(usize::MAX), "time");
        let after = it.only.as_ref().map(|codes| codes.join(", "));
        let after = after.unwrap_or_else(|| "what can pass by itself".to_owned());
        let mut text = format!("up to {times}, {}, after {after}", it.backoff);
        if !it.never.is_empty() {
            text.push_str(&format!("; never after {}", it.never.join(", ")));
        }
        field(f, "retries", &visible(&text))?;
    }
    match &it.fallback {
        Some(other) => field(f, "fallback", other.as_str()),
        None => Ok(()),
    }
}

/// What it says of itself beyond what runs.
fn metadata(f: &mut fmt::Formatter<'_>, it: &Metadata, origin: Origin) -> fmt::Result {
    for (at, capability) in it.capabilities.iter().enumerate() {
        let mut text = visible(&capability.action).into_owned();
        if let Some(about) = &capability.description {
            text.push_str(&format!("  {}{}{:#}", style::FAINT, visible(about), style::FAINT));
        }
        if capability.requires_confirmation {
            text.push_str("  (asked about)");
        }
        if let Some(cost) = capability.estimated_cost {
            text.push_str(&format!("  ${cost}"));
        }
        if let Some(time) = capability.estimated_time {
            text.push_str(&format!("  ~{time} ms"));
        }
        field(f, if at == 0 { "can" } else { "" }, &text)?;
    }
    if let Some(auth) = &it.required_auth {
        let need = if auth.required { "needs" } else { "can use" };
        let url = auth.setup_url.as_deref().map(|url| format!("  {}", visible(url)));
        let text =
            format!("{} in {}{}", auth.kind.word(), auth.config_key, url.unwrap_or_default());
        field(f, need, &text)?;
    }
    if let Some(cost) = &it.cost_info {
        field(f, "price", &price(cost))?;
    }
    if !it.tags.is_empty() {
        field(f, "tags", &visible(&it.tags.join(", ")))?;
    }
    match &it.documentation {
        Some(page) if origin == Origin::BuiltIn && !page.contains("://") => {
            field(f, "more", &format!("{} of runner", visible(page)))
        }
        Some(page) => field(f, "more", &visible(page)),
        None => Ok(()),
    }
}

fn price(cost: &Cost) -> String {
    let mut text = cost.model.word().to_owned();
    if let Some(figure) = cost.estimated_cost {
        text.push_str(&format!(", ${figure} a call"));
    }
    if let Some(free) = cost.free_tier_limit {
        text.push_str(&format!(", {free} calls free"));
    }
    if let Some(url) = &cost.billing_url {
        text.push_str(&format!("  {}", visible(url)));
    }
    text
}

/// The properties of a schema, one a line.
fn schema(f: &mut fmt::Formatter<'_>, name: &str, schema: &Schema) -> fmt::Result {
    let json = schema.json();
    let Some(properties) = schema.properties().filter(|properties| !properties.is_empty()) else {
        let empty = json.get("type").and_then(Value::as_str) == Some("object");
        return field(f, name, &if empty { "nothing".to_owned() } else { kind(json) });
    };
    let required = |key: &str| {
        let list = json.get("required").and_then(Value::as_array);
        list.is_some_and(|list| list.iter().any(|item| item == key))
    };
    for (at, (key, _)) in properties.iter().enumerate() {
        let property = schema.property(key).unwrap_or(&Value::Null);
        let default = properties.get(key).and_then(|it| it.get("default"));
        let mut text = format!("{}: {}", visible(key), visible(&kind(property)));
        if let Some(default) = default.or_else(|| property.get("default")) {
            text.push_str(&format!(" = {}", visible(&default.to_string())));
        } else if !required(key) {
            text.push_str(" (optional)");
        }
        if let Some(about) = about(properties, key, property) {
            text.push_str(&format!("  {}{}{:#}", style::FAINT, visible(about), style::FAINT));
        }
        field(f, if at == 0 { name } else { "" }, &text)?;
    }
    Ok(())
}

fn about<'s>(
    properties: &'s Map<String, Value>,
    key: &str,
    property: &'s Value,
) -> Option<&'s str> {
    let own = properties.get(key).and_then(|it| it.get("description"));
    own.or_else(|| property.get("description")).and_then(Value::as_str)
}

/// The type of a value, in short.
fn kind(schema: &Value) -> String {
    if let Some(options) = schema.get("enum").and_then(Value::as_array) {
        return options.iter().map(ToString::to_string).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type") {
        Some(Value::String(one)) if one == "array" => {
            schema.get("items").map_or("array".to_owned(), |items| format!("{}[]", kind(items)))
        }
        Some(Value::String(one)) => one.clone(),
        Some(Value::Array(several)) => {
            several.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" | ")
        }
        _ => "any".to_owned(),
    }
}

fn permissions(f: &mut fmt::Formatter<'_>, it: &Permissions) -> fmt::Result {
    let mut asks: Vec<String> = Vec::new();
    match &it.read {
        None => asks.push("read     whatever the policy lets read".to_owned()),
        Some(patterns) if patterns.is_empty() => {}
        Some(patterns) => asks.push(format!("read     {}", patterns.join(", "))),
    }
    let lists =
        [("write", &it.write), ("run", &it.allowlist), ("reach", &it.net), ("variable", &it.env)];
    for (word, list) in lists {
        if !list.is_empty() {
            asks.push(format!("{word:<8} {}", list.join(", ")));
        }
    }
    if !it.limits.is_empty() {
        let limits = it.limits.iter().map(|(key, figure)| format!("{key} {figure}"));
        asks.push(format!("within   {}", limits.collect::<Vec<_>>().join(", ")));
    }
    for (at, line) in asks.iter().enumerate() {
        field(f, if at == 0 { "asks for" } else { "" }, &visible(line))?;
    }
    Ok(())
}

/// A name in a narrow column and its value. The value is already safe to show.
fn field(f: &mut fmt::Formatter<'_>, name: &str, value: &str) -> fmt::Result {
    writeln!(f, "  {name:<10}  {value}")
}

/// What is said of a tool that failed, or is not called because of it.
fn standing(it: Standing) -> Option<String> {
    let counted = format!("{} of {} calls failed", it.failed, it.calls);
    match it.breaker {
        Breaker::Closed => (it.failed > 0).then(|| format!("closed: {counted}")),
        Breaker::Open => {
            let when = it.retry_at.map(|at| format!("; tried again at {} UTC", moment(at)));
            let when = when.unwrap_or_default();
            Some(format!("open: it failed too often and is not called for a while{when}"))
        }
        Breaker::HalfOpen => Some("half open: the next call is a probe".to_owned()),
    }
}
