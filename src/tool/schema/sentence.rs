//! Violations: where, which keyword, and a sentence.
//!
//! A sentence names what was expected and never quotes the value: it may be a secret, and it may be long.

use jsonschema::ValidationError;
use jsonschema::error::{TypeKind, ValidationErrorKind as Kind};
use runner_policy::finding::did_you_mean;
use serde::Serialize;
use serde_json::Value;

/// Longest list of choices or names in a sentence, in characters.
const LISTED: usize = 200;

/// One thing that does not fit.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Violation {
    /// JSON pointer to the part of the value; empty for the whole.
    pub pointer: String,
    /// The keyword of the schema.
    pub keyword: String,
    /// What is expected there.
    pub message: String,
    /// What may be meant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub help: Option<String>,
}

impl Violation {
    /// About the value as a whole.
    #[must_use]
    pub fn of_the_whole(keyword: &str, message: &str) -> Self {
        Self {
            pointer: String::new(),
            keyword: keyword.to_owned(),
            message: message.to_owned(),
            help: None,
        }
    }
}

impl std::fmt::Display for Violation {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let place = if self.pointer.is_empty() { "the value" } else { &self.pointer };
        write!(f, "{place} {}", self.message)?;
        self.help.as_ref().map_or(Ok(()), |help| write!(f, "; {help}"))
    }
}

/// From the library's error.
pub(super) fn violation(error: &ValidationError<'_>, schema: &Value) -> Violation {
    Violation {
        pointer: error.instance_path().to_string(),
        keyword: error.kind().keyword().to_owned(),
        message: sentence(error),
        help: help(error, schema),
    }
}

/// What is wrong with a schema, for its author. Schemas hold no secrets; pointers say where.
pub(super) fn of_schema(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Format { format } if format == "regex" => "is not a valid pattern".to_owned(),
        _ => sentence(error),
    }
}

fn sentence(error: &ValidationError<'_>) -> String {
    match error.kind() {
        Kind::Type { kind } => {
            let expected = match kind {
                TypeKind::Single(one) => one.to_string(),
                TypeKind::Multiple(several) => {
                    several.iter().map(|one| one.to_string()).collect::<Vec<_>>().join(" or ")
                }
            };
            format!("is {}, expected {expected}", type_word(error.instance()))
        }
        Kind::Required { property } => {
            format!("lacks `{}`", property.as_str().unwrap_or_default())
        }
        Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected } => {
            format!("has {}, which the schema does not know", listed(unexpected))
        }
        Kind::AdditionalItems { limit } => format!("has more than {limit} items"),
        Kind::UnevaluatedItems { .. } => "has items that the schema does not know".to_owned(),
        Kind::Enum { options } => format!("is none of {}", choices(options)),
        Kind::Constant { expected_value } => {
            format!("is not {}", shortened(&expected_value.to_string()))
        }
        Kind::Minimum { limit } => format!("is less than {limit}"),
        Kind::Maximum { limit } => format!("is more than {limit}"),
        Kind::ExclusiveMinimum { limit } => format!("is not more than {limit}"),
        Kind::ExclusiveMaximum { limit } => format!("is not less than {limit}"),
        Kind::MultipleOf { multiple_of } => format!("is not a multiple of {multiple_of}"),
        Kind::MinLength { limit } => format!("is shorter than {limit} characters"),
        Kind::MaxLength { limit } => format!("is longer than {limit} characters"),
        Kind::MinItems { limit } => format!("has fewer than {limit} items"),
        Kind::MaxItems { limit } => format!("has more than {limit} items"),
        Kind::MinProperties { limit } => format!("has fewer than {limit} properties"),
        Kind::MaxProperties { limit } => format!("has more than {limit} properties"),
        Kind::UniqueItems => "has an item twice".to_owned(),
        Kind::Pattern { pattern } => format!("does not match `{}`", shortened(pattern)),
        Kind::Format { format } => format!("is not a valid {format}"),
        Kind::Contains => "has no item of the demanded form".to_owned(),
        Kind::ContentEncoding { content_encoding } => format!("is not {content_encoding}"),
        Kind::ContentMediaType { content_media_type } => format!("is not {content_media_type}"),
        Kind::FromUtf8 { .. } => "is not UTF-8 when decoded".to_owned(),
        Kind::PropertyNames { error } => format!("has a name that {}", sentence(error)),
        Kind::AnyOf { context } | Kind::OneOfNotValid { context } => {
            let nearest =
                context.iter().filter(|errors| !errors.is_empty()).min_by_key(|it| it.len());
            let reason = nearest.and_then(|errors| errors.first()).map(|first| {
                let place = first.instance_path().to_string();
                let place = if place.is_empty() { "it".to_owned() } else { place };
                format!("; for the nearest one {place} {}", sentence(first))
            });
            format!("fits none of {} forms{}", context.len(), reason.unwrap_or_default())
        }
        Kind::OneOfMultipleValid { .. } => "fits more than one of the forms".to_owned(),
        Kind::Not { .. } => "has a form that is excluded".to_owned(),
        Kind::FalseSchema => "is not allowed here".to_owned(),
        Kind::Referencing(_) => "refers to something that is not there".to_owned(),
        Kind::Custom { message, .. } => shortened(message),
        Kind::BacktrackLimitExceeded { .. } | Kind::RegexEngineFailure { .. } => {
            "could not be compared with its pattern".to_owned()
        }
    }
}

/// What may be meant by a name that is not known.
fn help(error: &ValidationError<'_>, schema: &Value) -> Option<String> {
    let (Kind::AdditionalProperties { unexpected } | Kind::UnevaluatedProperties { unexpected }) =
        error.kind()
    else {
        return None;
    };
    let place = error.schema_path().to_string();
    let around = schema.pointer(place.rsplit_once('/').map_or("", |(around, _)| around))?;
    let known = around.get("properties")?.as_object()?;
    let near: Vec<String> = unexpected
        .iter()
        .filter_map(|name| did_you_mean(name, known.keys().map(String::as_str)))
        .map(|near| format!("`{near}`"))
        .collect();
    (!near.is_empty()).then(|| format!("did you mean {}?", near.join(", ")))
}

fn type_word(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number",
        Value::Number(_) => "an integer",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

fn listed(names: &[String]) -> String {
    shortened(&names.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
}

fn choices(options: &Value) -> String {
    let items = options.as_array().map(Vec::as_slice).unwrap_or_default();
    shortened(&items.iter().map(Value::to_string).collect::<Vec<_>>().join(", "))
}

fn shortened(text: &str) -> String {
    match text.char_indices().nth(LISTED) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}
