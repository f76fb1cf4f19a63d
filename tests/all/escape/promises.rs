//! What each runtime promises, row by row, and why not the rest. The one place that says so.

use runner::engine::EngineName;

use crate::support::{choose_engine, needs_engine};

/// What runs the sandboxes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Runtime {
    /// The engine's default: the host's kernel behind namespaces.
    Runc,
    /// gVisor: a kernel of its own.
    Gvisor,
    /// The embedded engine: the host's kernel, without a daemon.
    Embedded,
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
    /// With the embedded engine.
    pub embedded: Promise,
}

const fn all(row: u8, part: &'static str) -> Claim {
    Claim { row, part, runc: Holds, gvisor: Holds, embedded: Holds }
}

const fn not_gvisor(row: u8, part: &'static str, why: &'static str) -> Claim {
    Claim { gvisor: Not(why), ..all(row, part) }
}

/// Every part of every row.
pub const CLAIMS: &[Claim] = &[
    all(1, "links"),
    not_gvisor(
        1,
        "swapped and swapped back",
        "it shows device and inode numbers of its own, so mounts are compared on the host, before the command is sent",
    ),
    all(3, "lines"),
    all(3, "arguments"),
    all(3, "shells"),
    all(4, "mounts"),
    Claim {
        embedded: Not(
            "there is no daemon that could confirm anything; the part `kernel` looks from inside",
        ),
        ..all(5, "daemon")
    },
    not_gvisor(
        5,
        "kernel",
        "its own kernel answers: there is no host seccomp state to read in /proc",
    ),
    all(7, "environment"),
    all(10, "settings"),
    all(11, "programs"),
    all(11, "folders"),
    all(12, "wrappers"),
    all(15, "canaries"),
    all(16, "streams"),
    not_gvisor(
        16,
        "the guest's descriptors",
        "a process of the same user can open the pipes of an undumpable one; what it writes is refused by its MAC",
    ),
    not_gvisor(
        16,
        "the guest's life",
        "a process of the same user can end the guest's, and with it the call, as an error",
    ),
    all(16, "frames without the MAC"),
    all(18, "timeout"),
    all(18, "the guest's processor"),
    all(19, "descriptors"),
    not_gvisor(
        19,
        "processes",
        "its own threads are counted with the command's, so the bomb meets the wall clock or the memory limit first",
    ),
    all(19, "others stay fast"),
    all(20, "heap"),
    not_gvisor(
        20,
        "told apart by child",
        "exceeding memory ends its whole kernel, so that no child is left to have been killed",
    ),
    all(21, "bytes"),
    not_gvisor(21, "inodes", "it ignores nr_inodes; memory bounds them"),
    all(21, "workspace"),
    all(22, "flood"),
    all(24, "probes"),
    all(24, "setuid files"),
    not_gvisor(
        24,
        "setuid bits",
        "our seccomp profile is ignored; bits that are set stay in a stage that is mounted nosuid",
    ),
    all(26, "peers"),
    all(31, "tools"),
    all(35, "terminal"),
    all(41, "moved"),
    all(42, "later"),
    all(43, "covers"),
    all(44, "known words"),
    all(44, "learned words"),
    all(44, "executed"),
    all(44, "code"),
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
        Runtime::Embedded => claim.embedded,
    };
    if let Not(why) = promise {
        println!("row {row}, {part}: not promised by {runtime:?}: {why}");
        return;
    }
    choose_engine(match runtime {
        Runtime::Runc | Runtime::Gvisor => EngineName::Docker,
        Runtime::Embedded => EngineName::Embedded,
    });
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

            #[test]
            fn on_embedded() {
                try_on(Runtime::Embedded, $row, $part, super::$attack);
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
        [1, 3, 4, 5, 7, 10, 11, 12, 15, 16, 18, 19, 20, 21, 22, 24, 26, 31, 35, 41, 42, 43, 44]
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
