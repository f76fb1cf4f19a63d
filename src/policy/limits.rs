//! What a sandbox may use: every limit with its key, unit, preset and ceiling, in one table.
//!
//! Duty: the names, the order (what is tighter), and the figures. Enforcing them is the sandbox's
//! duty. A policy sets a limit up to its ceiling; a caller may only tighten.

use std::fmt;

/// One thing that is limited. The order is the order of [`TABLE`].
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[allow(missing_docs, reason = "the table beside it says what each one is")]
pub enum Limit {
    Memory,
    Cpus,
    Pids,
    Wall,
    CpuTime,
    OpenFiles,
    FileSize,
    Scratch,
    Inodes,
    SharedMemory,
    Output,
    OutputMax,
    FreeSpace,
    BrokerCalls,
    BrokerBytes,
}

/// How a figure is written in a policy, and what its number counts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unit {
    /// Bytes, written `256MiB`.
    Bytes,
    /// Bytes, or 0 for nothing at all, written `64MiB` or `none`.
    BytesOrNone,
    /// Milliseconds, written `30s`, `20m`, `1h`.
    Time,
    /// A plain count, written `128`.
    Count,
    /// Thousandths of a processor, written `1` or `0.5`.
    Processors,
}

/// How strongly a sandbox is closed. A preset for limits, and a set of protections that must hold.
#[derive(
    Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, serde::Serialize, serde::Deserialize,
)]
#[serde(rename_all = "lowercase")]
pub enum Isolation {
    /// A locked-down container with working figures for builds.
    Basic,
    /// The default: a locked-down container with small figures; every named protection must hold.
    Strict,
    /// The smallest figures, and a runtime with a kernel of its own (gVisor, Kata).
    Paranoid,
}

/// One row of the table of limits.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// Which limit.
    pub limit: Limit,
    /// Its key in a policy's `limits`.
    pub key: &'static str,
    /// How it is written.
    pub unit: Unit,
    /// Default under `isolation: basic`.
    pub basic: u64,
    /// Default under `isolation: strict`.
    pub strict: u64,
    /// Default under `isolation: paranoid`.
    pub paranoid: u64,
    /// The loosest figure that any policy can set.
    pub ceiling: u64,
    /// What it bounds.
    pub about: &'static str,
}

const KIB: u64 = 1 << 10;
const MIB: u64 = 1 << 20;
const GIB: u64 = 1 << 30;
const SECOND: u64 = 1_000;
const MINUTE: u64 = 60 * SECOND;
const HOUR: u64 = 60 * MINUTE;

/// Every limit. `docs/reference` is generated from it.
#[rustfmt::skip]
pub const TABLE: [Row; 15] = [
    Row { limit: Limit::Memory,      key: "memory",       unit: Unit::Bytes,      basic: 4 * GIB,   strict: 256 * MIB, paranoid: 128 * MIB, ceiling: 256 * GIB,  about: "memory of all processes together; no swap" },
    Row { limit: Limit::Cpus,        key: "cpus",         unit: Unit::Processors, basic: 4_000,     strict: 1_000,     paranoid: 500,       ceiling: 256_000,    about: "processors" },
    Row { limit: Limit::Pids,        key: "pids",         unit: Unit::Count,      basic: 2_048,     strict: 128,       paranoid: 64,        ceiling: 65_536,     about: "processes and threads at once" },
    Row { limit: Limit::Wall,        key: "wall",         unit: Unit::Time,       basic: 20 * MINUTE, strict: 30 * SECOND, paranoid: 10 * SECOND, ceiling: 24 * HOUR, about: "time from start to end" },
    Row { limit: Limit::CpuTime,     key: "cpu-time",     unit: Unit::Time,       basic: HOUR,      strict: 30 * SECOND, paranoid: 10 * SECOND, ceiling: 240 * HOUR, about: "processor time of one process" },
    Row { limit: Limit::OpenFiles,   key: "open-files",   unit: Unit::Count,      basic: 8_192,     strict: 1_024,     paranoid: 256,       ceiling: 1_048_576,  about: "open files of one process" },
    Row { limit: Limit::FileSize,    key: "file-size",    unit: Unit::Bytes,      basic: 4 * GIB,   strict: 256 * MIB, paranoid: 64 * MIB,  ceiling: 1024 * GIB, about: "size of one written file" },
    Row { limit: Limit::Scratch,     key: "scratch",      unit: Unit::Bytes,      basic: GIB,       strict: 64 * MIB,  paranoid: 16 * MIB,  ceiling: 64 * GIB,   about: "bytes in /tmp and HOME" },
    Row { limit: Limit::Inodes,      key: "inodes",       unit: Unit::Count,      basic: 262_144,   strict: 16_384,    paranoid: 4_096,     ceiling: 16_777_216, about: "files in /tmp and HOME" },
    Row { limit: Limit::SharedMemory, key: "shared-memory", unit: Unit::BytesOrNone, basic: GIB,     strict: 0,         paranoid: 0,         ceiling: 64 * GIB,   about: "bytes in /dev/shm, on top of scratch; none: there is no shared memory" },
    Row { limit: Limit::Output,      key: "output",       unit: Unit::Bytes,      basic: MIB,       strict: MIB,       paranoid: 256 * KIB, ceiling: 256 * MIB,  about: "output kept of each stream: head and tail" },
    Row { limit: Limit::OutputMax,   key: "output-max",   unit: Unit::Bytes,      basic: GIB,       strict: 64 * MIB,  paranoid: 16 * MIB,  ceiling: 64 * GIB,   about: "output of both streams at which the call ends" },
    Row { limit: Limit::FreeSpace,   key: "free-space",   unit: Unit::Bytes,      basic: 512 * MIB, strict: 512 * MIB, paranoid: GIB,       ceiling: 16 * MIB,   about: "free space of a writable workspace below which the call ends" },
    Row { limit: Limit::BrokerCalls, key: "broker-calls", unit: Unit::Count,      basic: 10_000,    strict: 1_000,     paranoid: 100,       ceiling: 10_000_000, about: "requests of one tool call" },
    Row { limit: Limit::BrokerBytes, key: "broker-bytes", unit: Unit::Bytes,      basic: GIB,       strict: 64 * MIB,  paranoid: 8 * MIB,   ceiling: 64 * GIB,   about: "bytes that one tool call moves through the broker" },
];

impl Limit {
    /// This limit's row of [`TABLE`].
    #[must_use]
    pub fn row(self) -> &'static Row {
        &TABLE[self as usize]
    }

    /// The limit with this key.
    #[must_use]
    pub fn by_key(key: &str) -> Option<Self> {
        TABLE.iter().find(|row| row.key == key).map(|row| row.limit)
    }

    /// Whether `a` leaves less room than `b`. Free space is a floor: more is tighter.
    #[must_use]
    pub fn tighter(self, a: u64, b: u64) -> bool {
        if self == Self::FreeSpace { a > b } else { a < b }
    }
}

/// A figure for every limit.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct Limits([u64; TABLE.len()]);

impl Limits {
    /// The preset of an isolation level.
    #[must_use]
    pub fn preset(isolation: Isolation) -> Self {
        Self(TABLE.map(|row| match isolation {
            Isolation::Basic => row.basic,
            Isolation::Strict => row.strict,
            Isolation::Paranoid => row.paranoid,
        }))
    }

    /// The figure in force.
    #[must_use]
    pub fn get(&self, limit: Limit) -> u64 {
        self.0[limit as usize]
    }

    /// Sets a figure as a policy does.
    pub fn set(&mut self, limit: Limit, figure: u64) {
        self.0[limit as usize] = figure;
    }

    /// Takes `figure` if it is tighter than what is in force.
    pub fn tighten(&mut self, limit: Limit, figure: u64) {
        if limit.tighter(figure, self.get(limit)) {
            self.set(limit, figure);
        }
    }

    /// The tighter of both, limit by limit.
    #[must_use]
    pub fn tightest(mut self, other: &Self) -> Self {
        for row in &TABLE {
            self.tighten(row.limit, other.get(row.limit));
        }
        self
    }

    /// The looser of both, limit by limit.
    #[must_use]
    pub fn loosest(mut self, other: &Self) -> Self {
        for row in &TABLE {
            if row.limit.tighter(self.get(row.limit), other.get(row.limit)) {
                self.set(row.limit, other.get(row.limit));
            }
        }
        self
    }

    /// Every limit with its figure.
    pub fn iter(&self) -> impl Iterator<Item = (Limit, u64)> + '_ {
        TABLE.iter().map(|row| (row.limit, self.get(row.limit)))
    }
}

impl fmt::Debug for Limits {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_map()
            .entries(
                self.iter().map(|(limit, figure)| (limit.row().key, limit.row().unit.show(figure))),
            )
            .finish()
    }
}

impl serde::Serialize for Limits {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(
            self.iter().map(|(limit, figure)| (limit.row().key, limit.row().unit.show(figure))),
        )
    }
}

impl Unit {
    /// Reads a figure as a policy writes it; the error is the right form.
    ///
    /// # Errors
    /// The text is not a figure of this unit.
    pub fn parse(self, text: &str) -> Result<u64, String> {
        match self {
            Self::Bytes => scaled(text, &[("KiB", KIB), ("MiB", MIB), ("GiB", GIB), ("B", 1)])
                .ok_or_else(|| "a size with its unit, such as 256MiB or 4GiB".to_owned()),
            Self::BytesOrNone if text == "none" => Ok(0),
            Self::BytesOrNone => Self::Bytes
                .parse(text)
                .map_err(|_| "`none`, or a size with its unit, such as 64MiB".to_owned()),
            Self::Time => scaled(text, &[("ms", 1), ("s", SECOND), ("m", MINUTE), ("h", HOUR)])
                .ok_or_else(|| "a time with its unit, such as 500ms, 30s, 20m or 1h".to_owned()),
            Self::Count => match text.parse() {
                Ok(figure) if figure > 0 => Ok(figure),
                _ => Err("a whole number above 0".to_owned()),
            },
            Self::Processors => match text.parse::<f64>() {
                #[expect(
                    clippy::cast_possible_truncation,
                    clippy::cast_sign_loss,
                    reason = "the range is checked by the guard"
                )]
                Ok(figure) if (0.01..=100_000.0).contains(&figure) => {
                    Ok((figure * 1000.0).round() as u64)
                }
                _ => Err("a number of processors, such as 1 or 0.5".to_owned()),
            },
        }
    }

    /// Writes a figure as a policy would.
    #[must_use]
    pub fn show(self, figure: u64) -> String {
        let largest = |units: &[(&str, u64)]| {
            units
                .iter()
                .find(|(_, size)| figure >= *size && figure.is_multiple_of(*size))
                .map(|(name, size)| format!("{}{name}", figure / size))
        };
        match self {
            Self::BytesOrNone if figure == 0 => Some("none".to_owned()),
            Self::Bytes | Self::BytesOrNone => {
                largest(&[("GiB", GIB), ("MiB", MIB), ("KiB", KIB), ("B", 1)])
            }
            Self::Time => largest(&[("h", HOUR), ("m", MINUTE), ("s", SECOND), ("ms", 1)]),
            Self::Count => None,
            #[expect(clippy::cast_precision_loss, reason = "figures are far below 2^52")]
            Self::Processors => Some(format!("{}", figure as f64 / 1000.0)),
        }
        .unwrap_or_else(|| figure.to_string())
    }
}

/// `12MiB` with the given units; no sign, no space, no overflow, not zero.
fn scaled(text: &str, units: &[(&str, u64)]) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let (number, unit) = text.split_at(digits);
    let size = units.iter().find(|(name, _)| *name == unit)?.1;
    number.parse::<u64>().ok()?.checked_mul(size).filter(|figure| *figure > 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_in_order_and_presets_never_exceed_ceilings() {
        for (at, row) in TABLE.iter().enumerate() {
            assert_eq!(row.limit as usize, at, "{}", row.key);
            for preset in [row.basic, row.strict, row.paranoid] {
                assert!(!row.limit.tighter(row.ceiling, preset), "{}", row.key);
            }
        }
    }

    #[test]
    fn presets_get_tighter_with_the_level() {
        for row in &TABLE {
            assert!(!row.limit.tighter(row.basic, row.strict), "{}", row.key);
            assert!(!row.limit.tighter(row.strict, row.paranoid), "{}", row.key);
        }
    }

    #[test]
    fn figures_survive_writing_and_reading() {
        for row in &TABLE {
            for figure in [row.basic, row.strict, row.paranoid, row.ceiling] {
                assert_eq!(row.unit.parse(&row.unit.show(figure)), Ok(figure));
            }
        }
    }

    #[test]
    fn bare_zero_signed_and_overflowing_figures_are_refused() {
        for text in
            ["", "256", "0MiB", "-1s", "+1s", "1 s", "99999999999999999999h", "1MB", "1kib", "s"]
        {
            assert!(Unit::Bytes.parse(text).is_err(), "{text}");
            assert!(Unit::Time.parse(text).is_err(), "{text}");
        }
        assert!(Unit::Count.parse("0").is_err());
        assert!(Unit::Bytes.parse("none").is_err());
        assert!(Unit::BytesOrNone.parse("0").is_err() && Unit::BytesOrNone.parse("0MiB").is_err());
        assert!(Unit::Processors.parse("NaN").is_err());
    }
}
