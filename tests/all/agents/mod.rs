//! Lines as coding agents write them, in real sandboxes, beside plain bash. The tables are in `tests/cases/agents`.
//!
//! - `table` reads the tables; `place` makes a project and restores it between lines.
//! - `shells` runs a line: in bash on the host, and through the program under a policy.
//! - `state` describes what a line left behind, and `compare` says what is different.
//! - `harmless` measures the share of lines that work; `harmful` shows that no attack succeeds.

mod compare;
mod harmful;
mod harmless;
mod leaks;
mod place;
mod shells;
mod state;
mod table;
mod world;

/// The policies under which every line is run. The one place that names them.
const POLICIES: [&str; 4] = ["readonly", "develop", "edit", "contained"];

/// Those of them that this build ships.
fn shipped_policies() -> Vec<&'static str> {
    let shipped = |name: &&str| crate::support::run(["policy", "show", name]).code == Some(0);
    POLICIES.into_iter().filter(shipped).collect()
}
