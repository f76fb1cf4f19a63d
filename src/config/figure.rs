//! Every figure of the configuration: its key, unit, default, and which way is tighter, in one table.

use runner_policy::limits::Unit as Plain;

use super::layer::Layer;

/// The figure that means "no bound". Nothing is looser.
pub const NONE: u64 = u64::MAX;

/// One figure. The order is the order of [`TABLE`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[allow(missing_docs, reason = "the table beside it says what each one is")]
pub enum Figure {
    PoolSize,
    PoolTtl,
    PoolMemory,
    MaxExecutionTime,
    CallsPerMinute,
    Concurrency,
    Queue,
    TotalTime,
    DailyCost,
    BreakerErrors,
    BreakerCalls,
    BreakerWindow,
    BreakerPause,
    ApprovalPending,
    ApprovalGrant,
    ApprovalSession,
    ApprovalLongest,
    UndoSize,
    UndoAge,
    ContextWindow,
}

/// How a figure is written, and what its number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, written `512MiB`.
    Bytes,
    /// Milliseconds, written `10m`.
    Time,
    /// The same, or `none`.
    TimeOrNone,
    /// A count from 1.
    Count,
    /// A count from 0.
    CountFromZero,
    /// A count from 1, or `none`.
    CountOrNone,
    /// Hundredths, written `50%`.
    Percent,
    /// Millionths of a US dollar, written `10.00`, or `none`.
    Dollars,
}

/// Which of two figures leaves less room.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Tighter {
    /// The smaller one.
    Less,
    /// The larger one.
    More,
    /// Neither: it is only shown.
    Neither,
}

/// One row of the table of figures.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Which figure.
    pub figure: Figure,
    /// Its key, from the top of the file.
    pub key: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// What holds if no file says otherwise.
    pub default: u64,
    /// Which way is tighter.
    pub tighter: Tighter,
    /// The least trusted layer that may set it.
    pub from: Layer,
    /// What it is.
    pub about: &'static str,
}

const MIB: u64 = 1 << 20;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;
const DAY: u64 = 24 * HOUR;
const DOLLAR: u64 = 1_000_000;

/// The longest time that a file can say: ten years.
const LONGEST: u64 = 3_650 * DAY;

/// Every figure. `docs/reference` is generated from it.
#[rustfmt::skip]
pub const TABLE: [Row; 20] = [
    Row { figure: Figure::PoolSize,         key: "pool.size",              unit: Unit::CountFromZero, default: 8,           tighter: Tighter::Less,    from: Layer::Project, about: "sandboxes that wait at most; 0 turns the pool off" },
    Row { figure: Figure::PoolTtl,          key: "pool.ttl",               unit: Unit::Time,          default: 10 * MINUTE, tighter: Tighter::Less,    from: Layer::Project, about: "how long a sandbox waits before it ends itself; 2s or less turns the pool off" },
    Row { figure: Figure::PoolMemory,       key: "pool.memory",            unit: Unit::Bytes,         default: 512 * MIB,   tighter: Tighter::Less,    from: Layer::Project, about: "memory that all waiting sandboxes take together at most" },
    Row { figure: Figure::MaxExecutionTime, key: "maxExecutionTime",       unit: Unit::TimeOrNone,    default: NONE,        tighter: Tighter::Less,    from: Layer::Project, about: "longest run of a tool; a policy's or a tool's own may be shorter" },
    Row { figure: Figure::CallsPerMinute,   key: "limits.callsPerMinute",  unit: Unit::CountOrNone,   default: NONE,        tighter: Tighter::Less,    from: Layer::Project, about: "calls of one tool in a minute" },
    Row { figure: Figure::Concurrency,      key: "limits.concurrency",     unit: Unit::Count,         default: 10,          tighter: Tighter::Less,    from: Layer::Project, about: "calls of one tool that run at once" },
    Row { figure: Figure::Queue,            key: "limits.queue",           unit: Unit::CountFromZero, default: 100,         tighter: Tighter::Less,    from: Layer::Project, about: "calls of one tool that wait for their turn" },
    Row { figure: Figure::TotalTime,        key: "limits.totalTime",       unit: Unit::TimeOrNone,    default: NONE,        tighter: Tighter::Less,    from: Layer::Project, about: "time of a call with its waiting and its retries" },
    Row { figure: Figure::DailyCost,        key: "limits.dailyCost",       unit: Unit::Dollars,       default: 10 * DOLLAR, tighter: Tighter::Less,    from: Layer::Project, about: "US dollars that all calls of a day may cost" },
    Row { figure: Figure::BreakerErrors,    key: "limits.breaker.errors",  unit: Unit::Percent,       default: 50,          tighter: Tighter::Less,    from: Layer::Project, about: "part of a tool's calls that fail at which it is not called any more" },
    Row { figure: Figure::BreakerCalls,     key: "limits.breaker.calls",   unit: Unit::Count,         default: 10,          tighter: Tighter::Less,    from: Layer::Project, about: "calls in the window before that part counts" },
    Row { figure: Figure::BreakerWindow,    key: "limits.breaker.window",  unit: Unit::Time,          default: MINUTE,      tighter: Tighter::More,    from: Layer::Project, about: "how far back calls are counted" },
    Row { figure: Figure::BreakerPause,     key: "limits.breaker.pause",   unit: Unit::Time,          default: 30 * SECOND, tighter: Tighter::More,    from: Layer::Project, about: "pause before one call is let through to try" },
    Row { figure: Figure::ApprovalPending,  key: "approvals.pending",      unit: Unit::Time,          default: HOUR,        tighter: Tighter::Less,    from: Layer::Project, about: "how long a question waits for its answer" },
    Row { figure: Figure::ApprovalGrant,    key: "approvals.grant",        unit: Unit::Time,          default: HOUR,        tighter: Tighter::Less,    from: Layer::Project, about: "how long an approval for a time holds if no time is said" },
    Row { figure: Figure::ApprovalSession,  key: "approvals.session",      unit: Unit::Time,          default: 8 * HOUR,    tighter: Tighter::Less,    from: Layer::Project, about: "how long an approval for the session holds at most" },
    Row { figure: Figure::ApprovalLongest,  key: "approvals.longest",      unit: Unit::Time,          default: 24 * HOUR,   tighter: Tighter::Less,    from: Layer::Project, about: "the longest time that an approval can be given for" },
    Row { figure: Figure::UndoSize,         key: "undo.size",              unit: Unit::Bytes,         default: 1024 * MIB,  tighter: Tighter::Less,    from: Layer::User,    about: "bytes that are kept to undo changes; then the oldest calls go" },
    Row { figure: Figure::UndoAge,          key: "undo.age",               unit: Unit::Time,          default: 7 * DAY,     tighter: Tighter::Less,    from: Layer::User,    about: "how long they are kept" },
    Row { figure: Figure::ContextWindow,    key: "context.window",         unit: Unit::Count,         default: 200_000,     tighter: Tighter::Neither, from: Layer::Project, about: "tokens of the context window that shares are shown of" },
];

impl Figure {
    /// This figure's row of [`TABLE`].
    #[must_use]
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// Whether `a` leaves more room than `b`.
    #[must_use]
    pub fn looser(self, a: u64, b: u64) -> bool {
        match self.row().tighter {
            Tighter::Less => a > b,
            Tighter::More => a < b,
            Tighter::Neither => false,
        }
    }
}

impl Unit {
    /// Reads a figure as a file writes it; the error is the right form.
    ///
    /// # Errors
    /// The text is not a figure of this unit.
    pub fn parse(self, text: &str) -> Result<u64, String> {
        let or_none = |form: Result<u64, String>| form.map_err(|form| format!("`none`, or {form}"));
        match self {
            Self::Bytes => Plain::Bytes.parse(text),
            Self::Time => time(text),
            Self::Count => Plain::Count.parse(text),
            Self::TimeOrNone | Self::CountOrNone | Self::Dollars if text == "none" => Ok(NONE),
            Self::TimeOrNone => or_none(time(text)),
            Self::CountOrNone => or_none(Plain::Count.parse(text)),
            Self::CountFromZero if text == "0" => Ok(0),
            Self::CountFromZero => {
                Plain::Count.parse(text).map_err(|_| "a whole number".to_owned())
            }
            Self::Percent => match text.strip_suffix('%').and_then(|number| number.parse().ok()) {
                Some(figure @ 1..=100) => Ok(figure),
                _ => Err("a part of a hundred, such as 50%".to_owned()),
            },
            Self::Dollars => {
                dollars(text).ok_or_else(|| "`none`, or US dollars, such as 10.00".to_owned())
            }
        }
    }

    /// Writes a figure as a file would.
    #[must_use]
    pub fn show(self, figure: u64) -> String {
        match self {
            Self::TimeOrNone | Self::CountOrNone | Self::Dollars if figure == NONE => {
                "none".to_owned()
            }
            Self::Bytes => Plain::Bytes.show(figure),
            Self::Time | Self::TimeOrNone => Plain::Time.show(figure),
            Self::Count | Self::CountFromZero | Self::CountOrNone => figure.to_string(),
            Self::Percent => format!("{figure}%"),
            Self::Dollars => {
                let mut text = format!("{}.{:06}", figure / DOLLAR, figure % DOLLAR);
                while text.ends_with('0') && !text.ends_with(".00") && text.len() > 4 {
                    let cents = text.split_once('.').map_or(0, |(_, part)| part.len());
                    if cents <= 2 {
                        break;
                    }
                    text.pop();
                }
                text
            }
        }
    }
}

/// A time that can be added to any date.
fn time(text: &str) -> Result<u64, String> {
    match Plain::Time.parse(text)? {
        figure if figure <= LONGEST => Ok(figure),
        _ => Err("a time of ten years at most".to_owned()),
    }
}

/// `10`, `10.5`, `0.000001`; no sign, no exponent, no overflow.
fn dollars(text: &str) -> Option<u64> {
    let (whole, part) = text.split_once('.').unwrap_or((text, "0"));
    let digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    if !digits(whole) || !digits(part) || part.len() > 6 {
        return None;
    }
    let millionths: u64 = format!("{part:0<6}").parse().ok()?;
    whole.parse::<u64>().ok()?.checked_mul(DOLLAR)?.checked_add(millionths).filter(|it| *it != NONE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_its_figures_survive_writing() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.figure as usize, at, "{}", row.key);
            assert_eq!(row.unit.parse(&row.unit.show(row.default)), Ok(row.default), "{}", row.key);
        }
    }

    #[test]
    fn no_time_is_longer_than_can_be_counted() {
        assert_eq!(Unit::Time.parse("87600h"), Ok(LONGEST));
        for text in ["87601h", "18446744073709551615ms"] {
            assert!(Unit::Time.parse(text).unwrap_err().contains("ten years"), "{text}");
            assert!(Unit::TimeOrNone.parse(text).unwrap_err().contains("ten years"), "{text}");
        }
    }

    #[test]
    fn money_is_exact() {
        for (text, figure, shown) in [
            ("10", 10 * DOLLAR, "10.00"),
            ("0", 0, "0.00"),
            ("0.5", DOLLAR / 2, "0.50"),
            ("0.001", 1_000, "0.001"),
            ("12.345678", 12_345_678, "12.345678"),
        ] {
            assert_eq!(dollars(text), Some(figure));
            assert_eq!(Unit::Dollars.show(figure), shown);
        }
        for text in ["", ".5", "1.", "-1", "1e3", "0.0000001", "99999999999999999999", "$1"] {
            assert_eq!(dollars(text), None, "{text}");
        }
    }

    #[test]
    fn what_is_no_figure_is_refused_with_the_right_form() {
        assert_eq!(Unit::Percent.parse("0.5").unwrap_err(), "a part of a hundred, such as 50%");
        assert!(Unit::Percent.parse("0%").is_err() && Unit::Percent.parse("101%").is_err());
        assert!(Unit::TimeOrNone.parse("60000").unwrap_err().starts_with("`none`, or a time"));
        assert_eq!(Unit::CountFromZero.parse("0"), Ok(0));
        assert!(Unit::CountFromZero.parse("-1").is_err() && Unit::Count.parse("0").is_err());
    }
}
