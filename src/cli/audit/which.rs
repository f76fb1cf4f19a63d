//! Which calls: the filters that the subcommands share.

use jiff::{SignedDuration, Timestamp};

use crate::audit::{Filter, Outcome};
use crate::cli::usage::UsageError;

/// As typed.
#[derive(Debug, Default, clap::Args)]
#[command(next_help_heading = "Which calls")]
pub(super) struct Which {
    /// Only calls of this tool
    #[arg(long, value_name = "NAME")]
    tool: Option<String>,
    /// Only calls that were decided so, at the start or while they ran
    #[arg(long, value_name = "WORD", value_enum)]
    decision: Option<Decision>,
    /// Only calls that were denied; the same as --decision deny
    #[arg(long, conflicts_with = "decision")]
    denied: bool,
    /// Only calls by this user: a name or a number
    #[arg(long, value_name = "USER")]
    actor: Option<String>,
    /// Not before this: a time ago (90s, 20m, 4h, 7d, 2w), or a moment (2026-01-31, 2026-01-31T12:00:00Z)
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Not after this, written in the same way
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
}

/// How a call was decided.
#[derive(Debug, Clone, Copy, clap::ValueEnum)]
enum Decision {
    /// It ran, or runs
    Allow,
    /// It needs approval
    Ask,
    /// It was denied
    Deny,
}

impl Which {
    /// The filter that it says.
    pub(super) fn filter(&self) -> Result<Filter, UsageError> {
        let decision = if self.denied { Some(Decision::Deny) } else { self.decision };
        let outcomes = decision.map(|decision| match decision {
            Decision::Allow => &[Outcome::Ran][..],
            Decision::Ask => &[Outcome::NeedsApproval][..],
            Decision::Deny => &[Outcome::Denied][..],
        });
        let time = |option, text: &Option<String>| {
            text.as_deref().map(|text| time(option, text)).transpose()
        };
        Ok(Filter {
            outcomes,
            tool: self.tool.clone(),
            actor: self.actor.clone(),
            since: time("--since", &self.since)?,
            until: time("--until", &self.until)?,
            most: None,
        })
    }
}

/// A moment in milliseconds since 1970, from a time ago or a moment.
fn time(option: &str, text: &str) -> Result<i64, UsageError> {
    let wrong = || UsageError::Option {
        option: option.to_owned(),
        why: format!(
            "`{text}` is not a time; write 90s, 20m, 4h, 7d, 2w, 2026-01-31 or 2026-01-31T12:00:00Z"
        ),
    };
    let unit = text.chars().last().ok_or_else(wrong)?;
    let seconds = match unit {
        's' => 1,
        'm' => 60,
        'h' => 3_600,
        'd' => 86_400,
        'w' => 604_800,
        _ => {
            let moment = text.parse::<Timestamp>().or_else(|_| format!("{text}T00:00:00Z").parse());
            return moment.map(Timestamp::as_millisecond).map_err(|_| wrong());
        }
    };
    let count: i64 = text[..text.len() - 1].parse().map_err(|_| wrong())?;
    let ago = count.checked_mul(seconds).map(SignedDuration::from_secs).ok_or_else(wrong)?;
    Timestamp::now().checked_sub(ago).map(Timestamp::as_millisecond).map_err(|_| wrong())
}
