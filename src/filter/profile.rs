//! The profile as Docker and OCI runtimes read it, and what is left of it for one architecture.
//!
//! Strict where Docker is not: what means something else there, or nothing, is an error here, so that both make the same
//! filter of one text.

use std::collections::BTreeMap;
use std::str::FromStr;

use serde::Deserialize;
use syscalls::x86_64::Sysno;

/// The kernel takes no larger error number (`MAX_ERRNO`).
const ERRNO_MAX: u16 = 4095;

/// The error number that runtimes use where a profile names none: `EPERM`.
const ERRNO_DEFAULT: u16 = 1;

/// A system call has so many arguments.
const ARGS: u32 = 6;

/// Names of system calls that a profile may have although the table of numbers lacks them, because they are in newer
/// kernels than it knows. They have the default action, as in a runtime that does not know them. None is needed now.
const NEWER: [&str; 0] = [];

/// Why a profile is refused.
#[derive(Debug, thiserror::Error)]
pub enum ProfileError {
    /// It is no JSON, or has a key or a word that is not known.
    #[error("the system call profile cannot be read: {0}")]
    Json(#[from] serde_json::Error),
    /// Its default is to allow.
    #[error("the default action of the system call profile must not be SCMP_ACT_ALLOW")]
    AllowsByDefault,
    /// The architecture is not in its map, or with others that share the filter.
    #[error(
        "archMap of the system call profile must have SCMP_ARCH_X86_64 without subArchitectures"
    )]
    Architecture,
    /// A number of an error where none belongs, or one that the kernel does not take.
    #[error("an error number belongs to SCMP_ACT_ERRNO and is 1 to 4095, for {0}")]
    Errno(String),
    /// The table of numbers does not have it.
    #[error("no system call of x86_64 is named {0}")]
    UnknownName(String),
    /// Two entries about one call cannot both be followed.
    #[error("two entries about {0} contradict or repeat each other")]
    Contradiction(String),
    /// An entry is about nothing.
    #[error("an entry of the system call profile names no system call")]
    NoNames,
    /// A condition that no call can meet, or that runtimes read differently.
    #[error("a condition on an argument of {name}: {why}")]
    Condition {
        /// Which call.
        name: String,
        /// What is wrong.
        why: &'static str,
    },
    /// The kernel would refuse the program.
    #[error("the system call filter has {0} instructions; the kernel takes 4096")]
    TooLong(usize),
}

/// What happens to a system call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// The kernel makes it.
    Allow,
    /// It fails with this number.
    Errno(u16),
    /// The process ends.
    Kill,
}

/// One comparison: the argument's bits under a mask with a value. A plain comparison has a mask of all bits.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Condition {
    /// Which argument, from 0.
    pub argument: u32,
    /// The bits that count.
    pub mask: u64,
    /// What they must be.
    pub value: u64,
}

/// What the profile says about one system call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Rule {
    /// What happens if any alternative holds.
    pub verdict: Verdict,
    /// Alternatives, each a list of conditions that must all hold; empty if the verdict is unconditional.
    pub alternatives: Vec<Vec<Condition>>,
}

/// A profile for x86_64.
#[derive(Debug)]
pub(crate) struct Profile {
    /// What happens to a call that no rule is about, or whose conditions do not hold.
    pub default: Verdict,
    /// Rules by the number of the call.
    pub rules: BTreeMap<u32, Rule>,
}

impl Profile {
    /// Reads the text.
    pub(crate) fn read(text: &str) -> Result<Self, ProfileError> {
        let raw: Raw = serde_json::from_str(text)?;
        let ours = raw.arch_map.iter().filter(|entry| entry.architecture == Arch::X8664);
        if !ours.map(|entry| entry.sub_architectures.is_empty()).eq([true]) {
            return Err(ProfileError::Architecture);
        }
        let default = verdict(raw.default_action, raw.default_errno_ret, "the default")?;
        if default == Verdict::Allow {
            return Err(ProfileError::AllowsByDefault);
        }
        let mut rules = BTreeMap::new();
        for entry in &raw.syscalls {
            if entry.names.is_empty() {
                return Err(ProfileError::NoNames);
            }
            for name in &entry.names {
                let Some(number) = number(name)? else { continue };
                add(&mut rules, number, name, entry)?;
            }
        }
        Ok(Self { default, rules })
    }
}

/// The number of a call; `None` for one that only newer kernels have.
fn number(name: &str) -> Result<Option<u32>, ProfileError> {
    match Sysno::from_str(name) {
        Ok(known) => Ok(u32::try_from(known.id()).ok()),
        Err(()) if NEWER.contains(&name) => Ok(None),
        Err(()) => Err(ProfileError::UnknownName(name.to_owned())),
    }
}

/// Takes one name of an entry into the rules.
fn add(
    rules: &mut BTreeMap<u32, Rule>,
    number: u32,
    name: &str,
    entry: &RawEntry,
) -> Result<(), ProfileError> {
    let verdict = verdict(entry.action, entry.errno_ret, name)?;
    let conditions = conditions(name, entry.args.as_deref())?;
    let Some(known) = rules.get_mut(&number) else {
        let alternatives = conditions.into_iter().collect();
        rules.insert(number, Rule { verdict, alternatives });
        return Ok(());
    };
    // Runtimes let one of two verdicts win by an order of their own; an entry without conditions would hide the others.
    match conditions {
        Some(conditions)
            if known.verdict == verdict
                && !known.alternatives.is_empty()
                && !known.alternatives.contains(&conditions) =>
        {
            known.alternatives.push(conditions);
            Ok(())
        }
        Some(_) | None => Err(ProfileError::Contradiction(name.to_owned())),
    }
}

fn verdict(action: Action, errno: Option<u16>, of: &str) -> Result<Verdict, ProfileError> {
    match (action, errno) {
        (Action::Allow, None) => Ok(Verdict::Allow),
        (Action::Kill, None) => Ok(Verdict::Kill),
        (Action::Errno, None) => Ok(Verdict::Errno(ERRNO_DEFAULT)),
        (Action::Errno, Some(number @ 1..=ERRNO_MAX)) => Ok(Verdict::Errno(number)),
        (Action::Allow | Action::Kill | Action::Errno, Some(_)) => {
            Err(ProfileError::Errno(of.to_owned()))
        }
    }
}

/// What must hold of the arguments; `None` if nothing must.
fn conditions(name: &str, args: Option<&[RawArg]>) -> Result<Option<Vec<Condition>>, ProfileError> {
    let wrong = |why| ProfileError::Condition { name: name.to_owned(), why };
    let Some(args) = args else { return Ok(None) };
    if args.is_empty() {
        return Err(wrong("a list of conditions is empty"));
    }
    let mut conditions: Vec<Condition> = Vec::new();
    for arg in args {
        if arg.index >= ARGS {
            return Err(wrong("a system call has six arguments, 0 to 5"));
        }
        // runc takes two conditions on one argument as alternatives, libseccomp refuses them.
        if conditions.iter().any(|known| known.argument == arg.index) {
            return Err(wrong("two conditions on one argument belong in two entries"));
        }
        let (mask, value) = match (arg.op, arg.value_two) {
            (Operator::Equal, None) => (u64::MAX, arg.value),
            (Operator::MaskedEqual, Some(value)) => (arg.value, value),
            (Operator::Equal, Some(_)) => return Err(wrong("SCMP_CMP_EQ has no valueTwo")),
            (Operator::MaskedEqual, None) => {
                return Err(wrong("SCMP_CMP_MASKED_EQ needs valueTwo"));
            }
        };
        if value & !mask != 0 {
            return Err(wrong("the value has bits that the mask does not have"));
        }
        if mask == 0 {
            return Err(wrong("a mask of 0 compares nothing"));
        }
        conditions.push(Condition { argument: arg.index, mask, value });
    }
    Ok(Some(conditions))
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct Raw {
    #[serde(rename = "comment", default)]
    _comment: String,
    default_action: Action,
    default_errno_ret: Option<u16>,
    arch_map: Vec<RawArch>,
    syscalls: Vec<RawEntry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawArch {
    architecture: Arch,
    sub_architectures: Vec<Arch>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawEntry {
    #[serde(rename = "comment", default)]
    _comment: String,
    names: Vec<String>,
    action: Action,
    errno_ret: Option<u16>,
    args: Option<Vec<RawArg>>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields, rename_all = "camelCase")]
struct RawArg {
    index: u32,
    value: u64,
    value_two: Option<u64>,
    op: Operator,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Eq)]
enum Arch {
    #[serde(rename = "SCMP_ARCH_X86_64")]
    X8664,
    #[serde(rename = "SCMP_ARCH_AARCH64")]
    Aarch64,
}

#[derive(Deserialize, Clone, Copy)]
enum Action {
    #[serde(rename = "SCMP_ACT_ALLOW")]
    Allow,
    #[serde(rename = "SCMP_ACT_ERRNO")]
    Errno,
    #[serde(rename = "SCMP_ACT_KILL_PROCESS")]
    Kill,
}

#[derive(Deserialize, Clone, Copy)]
enum Operator {
    #[serde(rename = "SCMP_CMP_EQ")]
    Equal,
    #[serde(rename = "SCMP_CMP_MASKED_EQ")]
    MaskedEqual,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A profile with this default and these entries.
    fn with(default: &str, entries: &str) -> Result<Profile, ProfileError> {
        Profile::read(&format!(
            r#"{{"defaultAction": "{default}",
                "archMap": [{{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []}}],
                "syscalls": [{entries}]}}"#
        ))
    }

    fn refused(entries: &str) -> String {
        match with("SCMP_ACT_ERRNO", entries) {
            Ok(profile) => format!("taken: {profile:?}"),
            Err(error) => error.to_string(),
        }
    }

    #[test]
    fn a_profile_is_rules_by_number() {
        let profile = with(
            "SCMP_ACT_ERRNO",
            r#"{"names": ["read", "openat2"], "action": "SCMP_ACT_ERRNO", "errnoRet": 38},
               {"names": ["socket"], "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"}]},
               {"names": ["socket"], "action": "SCMP_ACT_ALLOW",
                "args": [{"index": 2, "value": 6, "valueTwo": 2, "op": "SCMP_CMP_MASKED_EQ"}]}"#,
        );
        let profile = profile.unwrap();
        assert_eq!(profile.default, Verdict::Errno(1));
        let absent = Rule { verdict: Verdict::Errno(38), alternatives: Vec::new() };
        let socket = Rule {
            verdict: Verdict::Allow,
            alternatives: vec![
                vec![Condition { argument: 0, mask: u64::MAX, value: 1 }],
                vec![Condition { argument: 2, mask: 6, value: 2 }],
            ],
        };
        let rules = [(0, absent.clone()), (41, socket), (437, absent)];
        assert_eq!(profile.rules, BTreeMap::from(rules));
    }

    #[test]
    fn what_is_not_understood_completely_is_refused() {
        for (entries, why) in [
            (r#"{"names": ["raed"], "action": "SCMP_ACT_ALLOW"}"#, "no system call of x86_64"),
            (r#"{"names": [], "action": "SCMP_ACT_ALLOW"}"#, "names no system call"),
            (r#"{"names": ["read"], "action": "SCMP_ACT_TRACE"}"#, "unknown variant"),
            (r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "includes": {}}"#, "unknown field"),
            (r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "errnoRet": 1}"#, "error number"),
            (r#"{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 0}"#, "error number"),
            (r#"{"names": ["read"], "action": "SCMP_ACT_ERRNO", "errnoRet": 4096}"#, "4095"),
            (r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW", "args": []}"#, "is empty"),
            (r#"{"names": ["read", "read"], "action": "SCMP_ACT_ALLOW"}"#, "contradict"),
            (
                r#"{"names": ["read"], "action": "SCMP_ACT_ALLOW"},
                   {"names": ["read"], "action": "SCMP_ACT_ERRNO"}"#,
                "contradict",
            ),
        ] {
            assert!(refused(entries).contains(why), "{entries}: {}", refused(entries));
        }
        assert!(matches!(with("SCMP_ACT_ALLOW", ""), Err(ProfileError::AllowsByDefault)));
        assert!(matches!(with("SCMP_ACT_LOG", ""), Err(ProfileError::Json(_))));
    }

    #[test]
    fn a_condition_that_runtimes_could_read_differently_is_refused() {
        for (args, why) in [
            (r#"{"index": 6, "value": 1, "op": "SCMP_CMP_EQ"}"#, "six arguments"),
            (r#"{"index": 0, "value": 1, "op": "SCMP_CMP_NE"}"#, "unknown variant"),
            (r#"{"index": 0, "value": 1, "valueTwo": 0, "op": "SCMP_CMP_EQ"}"#, "no valueTwo"),
            (r#"{"index": 0, "value": 1, "op": "SCMP_CMP_MASKED_EQ"}"#, "needs valueTwo"),
            (r#"{"index": 0, "value": 1, "valueTwo": 2, "op": "SCMP_CMP_MASKED_EQ"}"#, "bits"),
            (r#"{"index": 0, "value": 0, "valueTwo": 0, "op": "SCMP_CMP_MASKED_EQ"}"#, "nothing"),
            (r#"{"index": 0, "value": -1, "op": "SCMP_CMP_EQ"}"#, "cannot be read"),
            (
                r#"{"index": 0, "value": 1, "op": "SCMP_CMP_EQ"},
                   {"index": 0, "value": 2, "op": "SCMP_CMP_EQ"}"#,
                "two entries",
            ),
        ] {
            let entry =
                format!(r#"{{"names": ["socket"], "action": "SCMP_ACT_ALLOW", "args": [{args}]}}"#);
            assert!(refused(&entry).contains(why), "{args}: {}", refused(&entry));
        }
    }

    #[test]
    fn a_profile_is_for_x86_64_alone() {
        for map in [
            "",
            r#"{"architecture": "SCMP_ARCH_AARCH64", "subArchitectures": []}"#,
            r#"{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": ["SCMP_ARCH_AARCH64"]}"#,
        ] {
            let text = format!(
                r#"{{"defaultAction": "SCMP_ACT_ERRNO", "archMap": [{map}], "syscalls": []}}"#
            );
            assert!(matches!(Profile::read(&text), Err(ProfileError::Architecture)), "{map}");
        }
    }
}
