//! Which programs ran: what each was called by, and the file that it was.

use crate::bytes::Bytes;
use crate::frame::{REPORT_MAX, SMALL_MAX};
use serde::{Deserialize, Serialize};

/// The longest name that is told.
pub const NAME_MAX: usize = 1024;

/// The longest path that the kernel takes.
const PATH_MAX: usize = 4096;

/// Different programs of one call that are told. A line may have more commands; those are counted.
pub const PROGRAMS_MAX: usize = 64;

// A call that ran many programs with the worst of names still has an end that fits its frame: a byte takes at most
// six in JSON.
const _: () = assert!(PROGRAMS_MAX * 6 * (NAME_MAX + PATH_MAX + 16) + SMALL_MAX <= REPORT_MAX);

/// A program that ran.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Ran {
    /// The word that it was called by.
    pub name: Bytes,
    /// The file: absolute, as the sandbox has it, links resolved.
    pub path: Bytes,
}

/// The programs of a call.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Programs {
    /// Each once, in the order of the command.
    pub ran: Vec<Ran>,
    /// Commands that ran beyond [`PROGRAMS_MAX`] different ones.
    pub left_out: u64,
}

impl Programs {
    /// Adds a program that ran.
    pub fn add(&mut self, ran: Ran) {
        if self.ran.contains(&ran) {
            return;
        }
        if self.ran.len() < PROGRAMS_MAX {
            self.ran.push(ran);
        } else {
            self.left_out += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn ran(name: &str) -> Ran {
        Ran { name: Bytes::from(name), path: Bytes::from("/bin/busybox") }
    }

    #[test]
    fn each_is_told_once_and_what_is_too_much_is_counted() {
        let mut programs = Programs::default();
        for at in 0..PROGRAMS_MAX {
            programs.add(ran(&at.to_string()));
            programs.add(ran("0"));
        }
        assert_eq!((programs.ran.len(), programs.left_out), (PROGRAMS_MAX, 0));
        programs.add(ran("one more"));
        programs.add(ran("1"));
        assert_eq!((programs.ran.len(), programs.left_out), (PROGRAMS_MAX, 1));
    }
}
