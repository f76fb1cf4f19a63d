//! Versions of programs with known ways out of a sandbox.
//!
//! A version says little where a distribution has mended an older one: what is found here is a note, and never a failure.

/// A known hole.
struct Hole {
    /// The program, as engines name it; `linux` is the kernel.
    program: &'static str,
    id: &'static str,
    /// What it let a sandbox do.
    about: &'static str,
    /// The first version that has it.
    since: [u32; 3],
    /// The first version of each series that is mended. What is newer than all of them is too.
    mended: &'static [[u32; 3]],
}

const HOLES: &[Hole] = &[
    Hole {
        program: "linux",
        id: "CVE-2022-0847",
        about: "a process could write files that it may only read",
        since: [5, 8, 0],
        mended: &[[5, 10, 102], [5, 15, 25], [5, 16, 11]],
    },
    Hole {
        program: "linux",
        id: "CVE-2023-0386",
        about: "an overlay could keep set-user-id bits of another user",
        since: [5, 11, 0],
        mended: &[[5, 15, 91], [6, 1, 9], [6, 2, 0]],
    },
    Hole {
        program: "linux",
        id: "CVE-2024-1086",
        about: "a process with a user namespace could become root",
        since: [3, 15, 0],
        mended: &[
            [5, 4, 269],
            [5, 10, 210],
            [5, 15, 149],
            [6, 1, 76],
            [6, 6, 15],
            [6, 7, 3],
            [6, 8, 0],
        ],
    },
    Hole {
        program: "runc",
        id: "CVE-2024-21626",
        about: "a container could start in a folder of the host",
        since: [1, 0, 0],
        mended: &[[1, 1, 12]],
    },
    Hole {
        program: "runc",
        id: "CVE-2025-31133",
        about: "a container that is being made could write files of the host's /proc",
        since: [1, 0, 0],
        mended: &[[1, 2, 8], [1, 3, 3]],
    },
    Hole {
        program: "containerd",
        id: "CVE-2022-23648",
        about: "an image could show files of the host",
        since: [1, 0, 0],
        mended: &[[1, 4, 13], [1, 5, 10], [1, 6, 1]],
    },
];

/// Known holes of a program at a version, in words; nothing for a version that is not understood.
pub fn of(program: &str, version: &str) -> Vec<String> {
    let Some(found) = parse(version) else { return Vec::new() };
    let has = |hole: &&Hole| hole.program == program && hole.is_in(found);
    HOLES.iter().filter(has).map(|hole| format!("{} ({})", hole.id, hole.about)).collect()
}

impl Hole {
    fn is_in(&self, version: [u32; 3]) -> bool {
        let newest = self.mended.iter().max().copied().unwrap_or([u32::MAX; 3]);
        let is_mended = |from: &[u32; 3]| from[..2] == version[..2] && version >= *from;
        version >= self.since && version < newest && !self.mended.iter().any(is_mended)
    }
}

/// The first three numbers of a version: `6.1.0-18-amd64`, `1.1.5+ds1`, `v1.6.20~ds1`.
fn parse(version: &str) -> Option<[u32; 3]> {
    let mut numbers = version.trim_start_matches('v').splitn(3, '.').map(|part| {
        let digits: String = part.chars().take_while(char::is_ascii_digit).collect();
        digits.parse::<u32>().ok()
    });
    Some([numbers.next()??, numbers.next()??, numbers.next().flatten().unwrap_or(0)])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_series_that_was_mended_is_told_from_one_that_was_not() {
        let ids = |program, version| {
            of(program, version).iter().map(|it| it[..13].to_owned()).collect::<Vec<_>>()
        };
        assert_eq!(ids("runc", "1.1.5+ds1"), ["CVE-2024-2162", "CVE-2025-3113"]);
        assert_eq!(ids("runc", "1.1.12"), ["CVE-2025-3113"]);
        assert_eq!(
            ids("runc", "1.2.8").len() + ids("runc", "1.3.3").len() + ids("runc", "1.4.0").len(),
            0
        );
        assert_eq!(ids("runc", "1.3.2"), ["CVE-2025-3113"]);
        assert_eq!(ids("linux", "5.15.20").len(), 3);
        assert_eq!(ids("linux", "5.15.149-generic").len(), 0);
        assert_eq!(ids("linux", "6.18.44").len(), 0);
        assert_eq!(ids("containerd", "v1.6.20~ds1").len(), 0);
        assert_eq!(ids("runc", "unknown").len(), 0);
    }
}
