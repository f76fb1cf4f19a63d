//! The terminal session of this process, as the kernel has it.

use crate::ids::Owner;

/// Names the session of this process by its leader, told apart from any later process with the same number. `None` if the
/// leader cannot be seen: it lives outside of this process namespace, or is gone.
pub(super) fn leader() -> Option<String> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let owner = Owner::of(leader_in(&stat)?).ok()?;
    Some(format!("{}:{}:{}", owner.place, owner.pid, owner.started))
}

/// The session's leader in a process's `stat`. The kernel writes 0 for one of another namespace.
fn leader_in(stat: &str) -> Option<u32> {
    // The name in brackets may hold anything; what follows its end does not.
    let leader = stat.rsplit_once(')')?.1.split_whitespace().nth(3)?.parse().ok()?;
    (leader != 0).then_some(leader)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_stays_in_its_session() {
        assert_eq!(leader(), leader());
    }

    #[test]
    fn a_leader_that_cannot_be_seen_is_none() {
        assert_eq!(leader_in("41 (a) 7 0 (x)) S 40 41 39 34816 41"), Some(39));
        assert_eq!(leader_in("41 (sh) S 40 41 0 34816 41"), None);
        assert_eq!(leader_in(""), None);
    }
}
