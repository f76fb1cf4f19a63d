//! Which session a call belongs to: the terminal's, as the kernel has it.

use crate::engine::Owner;

/// Names the session of this process: its leader, told apart from any later process with the same number. `None`
/// if the leader cannot be seen; an answer for a session then covers nothing.
#[must_use]
pub fn session() -> Option<String> {
    let leader = rustix::process::getsid(None).ok()?;
    let pid = u32::try_from(leader.as_raw_nonzero().get()).ok()?;
    let owner = Owner::of(pid).ok()?;
    Some(format!("{}:{}:{}", owner.place, owner.pid, owner.started))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_stays_in_its_session() {
        assert_eq!(session(), session());
    }
}
