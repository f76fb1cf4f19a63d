//! The profile read as plainly as it can be: no ranges, no tree, a loop over its entries for each call.

use serde_json::Value;
use std::str::FromStr;

/// A comparison of an argument.
pub struct Condition {
    pub argument: usize,
    mask: u64,
    value: u64,
}

struct Entry {
    numbers: Vec<u32>,
    verdict: u32,
    conditions: Vec<Condition>,
}

/// The profile.
pub struct Profile {
    /// The verdict about what no entry is about.
    pub default: u32,
    entries: Vec<Entry>,
}

impl Profile {
    pub fn read(text: &str) -> Self {
        let profile: Value = serde_json::from_str(text).unwrap();
        let default = verdict(&profile["defaultAction"], &profile["defaultErrnoRet"]);
        let entries = profile["syscalls"].as_array().unwrap().iter().map(entry).collect();
        Self { default, entries }
    }

    /// What happens to a call.
    pub fn verdict(&self, number: u32, args: &[u64; 6]) -> u32 {
        let holds =
            |condition: &Condition| args[condition.argument] & condition.mask == condition.value;
        self.about(number)
            .find(|entry| entry.conditions.iter().all(holds))
            .map_or(self.default, |entry| entry.verdict)
    }

    /// The conditions of each entry about a call that has some.
    pub fn conditions(&self, number: u32) -> Vec<&[Condition]> {
        let all = self.about(number).map(|entry| &entry.conditions[..]);
        all.filter(|conditions| !conditions.is_empty()).collect()
    }

    /// Masks and values that decide about a call.
    pub fn interesting(&self, number: u32) -> Vec<u64> {
        let both = |condition: &Condition| [condition.mask, condition.value];
        self.about(number).flat_map(|entry| entry.conditions.iter().flat_map(both)).collect()
    }

    fn about(&self, number: u32) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.numbers.contains(&number))
    }
}

fn entry(entry: &Value) -> Entry {
    let number = |name: &Value| {
        let known = syscalls::x86_64::Sysno::from_str(name.as_str().unwrap()).unwrap();
        u32::try_from(known.id()).unwrap()
    };
    let condition = |arg: &Value| {
        let value = arg["value"].as_u64().unwrap();
        let (mask, value) = match arg["op"].as_str().unwrap() {
            "SCMP_CMP_EQ" => (u64::MAX, value),
            "SCMP_CMP_MASKED_EQ" => (value, arg["valueTwo"].as_u64().unwrap()),
            other => panic!("{other}"),
        };
        Condition {
            argument: usize::try_from(arg["index"].as_u64().unwrap()).unwrap(),
            mask,
            value,
        }
    };
    Entry {
        numbers: entry["names"].as_array().unwrap().iter().map(number).collect(),
        verdict: verdict(&entry["action"], &entry["errnoRet"]),
        conditions: entry["args"].as_array().into_iter().flatten().map(condition).collect(),
    }
}

fn verdict(action: &Value, errno: &Value) -> u32 {
    match action.as_str().unwrap() {
        "SCMP_ACT_ALLOW" => 0x7fff_0000,
        "SCMP_ACT_ERRNO" => 0x0005_0000 | u32::try_from(errno.as_u64().unwrap_or(1)).unwrap(),
        "SCMP_ACT_KILL_PROCESS" => 0x8000_0000,
        other => panic!("{other}"),
    }
}
