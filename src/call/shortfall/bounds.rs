//! What is told of every call, whatever ran: limits that were met, processes that ran on, output that is cut.

use runner_policy::limits::{Limit, Limits};
use runner_wire::LimitHit;

use super::entry::{Kind, Shortfall};
use super::find::Ended;
use crate::call::launch::run::Keep;
use crate::call::request::Decided;
use crate::sandbox::outcome::Verdict;

/// Limits that were met.
pub(super) fn limits(ended: &Ended<'_>, decided: Option<&Decided>) -> Vec<Shortfall> {
    let ended_by = match ended.outcome.verdict {
        Verdict::Timeout => Some(Limit::Wall),
        Verdict::Oom => Some(Limit::Memory),
        Verdict::Limit(limit) => Some(limit),
        _ => None,
    };
    let hits = ended.outcome.hits.iter().map(|hit| match hit {
        LimitHit::Memory => Limit::Memory,
        LimitHit::Pids => Limit::Pids,
        LimitHit::OpenFiles => Limit::OpenFiles,
        LimitHit::CpuTime => Limit::CpuTime,
        LimitHit::FileSize => Limit::FileSize,
        LimitHit::Output => Limit::OutputMax,
        LimitHit::Wall => Limit::Wall,
    });
    let mut met: Vec<Limit> = ended_by.into_iter().chain(hits).collect();
    met.dedup();
    let mut entries: Vec<Shortfall> = Vec::new();
    for limit in met {
        let entry = of_limit(limit, &ended.plan.limits, decided, Met::Yes);
        if !entries.contains(&entry) {
            entries.push(entry);
        }
    }
    entries
}

/// Whether a limit was met, or only a lack is felt.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Met {
    /// It was met.
    Yes,
    /// The command says that it has too little.
    Felt,
}

/// The entry of one limit.
pub(super) fn of_limit(
    limit: Limit,
    limits: &Limits,
    decided: Option<&Decided>,
    met: Met,
) -> Shortfall {
    let (row, figure) = (limit.row(), limits.get(limit));
    let shown = row.unit.show(figure);
    let why = match met {
        Met::Yes => format!("is limited to {shown} ({}), and the call met that limit", row.about),
        Met::Felt => format!("is limited to {shown} ({})", row.about),
    };
    let own = decided.filter(|decided| decided.request.tighten.contains(&(limit, figure)));
    let next = match (own, decided) {
        (Some(_), _) => format!("give it more with --limit {}=FIGURE", row.key),
        (None, Some(decided)) => format!(
            "raise `limits.{}` of the policy `{}`, or choose another with --policy",
            row.key,
            decided.policy.name()
        ),
        (None, None) => "choose a policy with a larger limit".to_owned(),
    };
    Shortfall::of_name(Kind::Limit, row.key, why, next)
}

/// What is told of every call: processes that ran on, and output that the result does not hold.
pub(super) fn rest(ended: &Ended<'_>) -> Vec<Shortfall> {
    let left = ended.outcome.left_running;
    let background = (left > 0).then(|| {
        let count = if left == 1 { "1 process".to_owned() } else { format!("{left} processes") };
        Shortfall::of_name(
            Kind::Background,
            "background",
            format!("work ended with the call: {count} still ran when the command had ended"),
            "let the command wait for it, or do all that needs it in the same line".to_owned(),
        )
    });
    let dropped = ended.outcome.stdout.dropped() + ended.outcome.stderr.dropped();
    let cut = ended.keep.filter(|_| dropped > 0).map(|keep| {
        let limits = &ended.plan.limits;
        let most = Limit::Output.row().unit.show(limits.get(Limit::Output));
        let next = match keep {
            Keep::AtMost(bytes) if bytes < limits.get(Limit::Output) => {
                format!("ask for more with --output, at most {most}, or write it into a file")
            }
            Keep::AtMost(_) | Keep::Limit => {
                format!("write it into a file; `limits.output` of the policy is {most}")
            }
        };
        let why = format!("is not whole: {dropped} bytes between its head and tail are left out");
        Shortfall::of_name(Kind::OutputCut, "output", why, next)
    });
    background.into_iter().chain(cut).collect()
}
