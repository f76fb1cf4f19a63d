//! What each runtime promises, row by row, and why not the rest. The one place that says so.

use crate::support::needs_engine;

/// What runs the containers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// The engine's default: the host's kernel behind namespaces.
    Runc,
    /// gVisor: a kernel of its own.
    Gvisor,
}

/// Whether a runtime promises a part of a row.
#[derive(Debug, Clone, Copy)]
pub enum Promise {
    /// The attack fails there too.
    Holds,
    /// It does not, for this reason; the table of protections tells users the same.
    Not(&'static str),
}

use Promise::{Holds, Not};

/// One row, or the part of one that runtimes promise differently.
pub struct Claim {
    /// The row's number.
    pub row: u8,
    /// Which part of it.
    pub part: &'static str,
    /// With the host's kernel.
    pub runc: Promise,
    /// With gVisor.
    pub gvisor: Promise,
}

const fn both(row: u8, part: &'static str) -> Claim {
    Claim { row, part, runc: Holds, gvisor: Holds }
}

const fn runc_alone(row: u8, part: &'static str, why: &'static str) -> Claim {
    Claim { row, part, runc: Holds, gvisor: Not(why) }
}

/// Every part of every row.
pub const CLAIMS: &[Claim] = &[
    both(1, "links"),
    runc_alone(
        1,
        "swapped and swapped back",
        "it shows device and inode numbers of its own, so mounts are compared on the host, before the command is sent",
    ),
    both(3, "lines"),
    both(3, "arguments"),
    both(3, "shells"),
    both(4, "mounts"),
    both(5, "daemon"),
    runc_alone(
        5,
        "kernel",
        "its own kernel answers: there is no host seccomp state to read in /proc",
    ),
    both(7, "environment"),
    both(10, "settings"),
    both(11, "programs"),
    both(11, "folders"),
    both(12, "wrappers"),
    both(15, "canaries"),
    both(16, "streams"),
    runc_alone(
        16,
        "the guest's descriptors",
        "a process of the same user can open the pipes of an undumpable one; what it writes is refused by its MAC",
    ),
    runc_alone(
        16,
        "the guest's life",
        "a process of the same user can end the guest's, and with it the call, as an error",
    ),
    both(16, "frames without the MAC"),
    both(18, "timeout"),
    both(19, "descriptors"),
    runc_alone(
        19,
        "processes",
        "its own threads are counted with the command's, so the bomb meets the wall clock or the memory limit first",
    ),
    both(19, "others stay fast"),
    both(20, "heap"),
    runc_alone(
        20,
        "told apart by child",
        "exceeding memory ends its whole kernel, so that no child is left to have been killed",
    ),
    both(21, "bytes"),
    runc_alone(21, "inodes", "it ignores nr_inodes; memory bounds them"),
    both(21, "workspace"),
    both(22, "flood"),
    both(24, "probes"),
    both(24, "setuid files"),
    runc_alone(
        24,
        "setuid bits",
        "our seccomp profile is ignored; bits that are set stay in a stage that is mounted nosuid",
    ),
    both(26, "peers"),
    both(31, "tools"),
    both(35, "terminal"),
    both(41, "moved"),
    both(42, "later"),
    both(43, "covers"),
];

/// Runs an attack where it is promised to fail, and says aloud why not elsewhere.
pub fn try_on(runtime: Runtime, row: u8, part: &str, attack: fn(Runtime)) {
    let claim = CLAIMS
        .iter()
        .find(|claim| (claim.row, claim.part) == (row, part))
        .unwrap_or_else(|| panic!("no claim about row {row}, {part:?}"));
    let promise = match runtime {
        Runtime::Runc => claim.runc,
        Runtime::Gvisor => claim.gvisor,
    };
    if let Not(why) = promise {
        println!("row {row}, {part}: not promised by {runtime:?}: {why}");
        return;
    }
    needs_engine();
    attack(runtime);
}

/// A test of an attack on each runtime: `attack!(row, part, function)`.
macro_rules! attack {
    ($row:literal, $part:literal, $attack:ident) => {
        mod $attack {
            use crate::escape::promises::{Runtime, try_on};

            #[test]
            fn on_runc() {
                try_on(Runtime::Runc, $row, $part, super::$attack);
            }

            #[test]
            fn on_gvisor() {
                try_on(Runtime::Gvisor, $row, $part, super::$attack);
            }
        }
    };
}
pub(super) use attack;

/// The modules of the suite, as text.
const MAP: &str = include_str!("mod.rs");

#[test]
fn every_row_has_its_module_and_every_claim_its_attack() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/all/escape");
    let mut rows: Vec<u8> = CLAIMS.iter().map(|claim| claim.row).collect();
    rows.dedup();
    assert_eq!(
        rows,
        [1, 3, 4, 5, 7, 10, 11, 12, 15, 16, 18, 19, 20, 21, 22, 24, 26, 31, 35, 41, 42, 43]
    );
    for claim in CLAIMS {
        let start = format!("mod row{:02}_", claim.row);
        let name = MAP
            .lines()
            .find_map(|line| line.strip_prefix("mod ").filter(|_| line.starts_with(&start)));
        let name =
            name.unwrap_or_else(|| panic!("no module of row {}", claim.row)).trim_end_matches(';');
        assert!(
            MAP.contains(&format!("| {} | ", claim.row)),
            "row {} is not in the map",
            claim.row
        );
        let text = std::fs::read_to_string(folder.join(format!("{name}.rs"))).unwrap();
        let call = format!("attack!({}, {:?}, ", claim.row, claim.part);
        assert!(text.contains(&call), "{name}.rs has no {call}…)");
    }
}
