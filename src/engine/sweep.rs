//! Removes what earlier runs left behind: the backstop behind the guest's own end and the watchdog.

use super::error::EngineError;
use super::label::{Labels, is_left_over};
use super::traits::{Engine, Found, SandboxId, State};
use crate::ids::{CallId, Owner};
use crate::sys::now;

/// Removes every sandbox of this user that is past its deadline or whose process is dead, and what such sandboxes
/// left beside themselves; how many sandboxes.
///
/// Each is looked at twice. The first list can say `Created` of a sandbox that its maker starts a moment later, before it
/// ends as it should. The second list is read after that end was seen: what is `Created` then stays so.
///
/// # Errors
/// The engine cannot list them, or one cannot be removed; the others are gone all the same, and the next sweep tries
/// that one again.
pub async fn sweep(engine: &dyn Engine) -> Result<usize, EngineError> {
    let me = this()?;
    let suspects = left_over(engine.list(None).await?, &me);
    let removed = if suspects.is_empty() { 0 } else { remove(engine, &suspects, &me).await? };
    let left = |labels: &_| is_left_over(labels, State::Ending, &me, now());
    engine.remove_remains(&left).await?;
    Ok(removed)
}

/// Removes those suspects that a second list names too; how many.
async fn remove(
    engine: &dyn Engine,
    suspects: &[SandboxId],
    me: &Owner,
) -> Result<usize, EngineError> {
    let left = left_over(engine.list(None).await?, me);
    let (mut removed, mut failed) = (0, None);
    for id in in_both(suspects, left) {
        match engine.remove(&id).await {
            Ok(()) => removed += 1,
            Err(error) => failed = Some(error),
        }
    }
    failed.map_or(Ok(removed), Err)
}

/// Those of a list that should be gone.
fn left_over(list: Vec<Found>, me: &Owner) -> Vec<SandboxId> {
    let left = |found: &Found| is_left_over(&found.labels, found.state, me, now());
    list.into_iter().filter(left).map(|found| found.id).collect()
}

fn in_both(before: &[SandboxId], after: Vec<SandboxId>) -> Vec<SandboxId> {
    after.into_iter().filter(|id| before.contains(id)).collect()
}

/// Removes this user's sandboxes of one label; how many there were. Whoever names a sandbox may be wrong about it, or
/// lie: what counts is what it says of itself.
///
/// # Errors
/// The engine cannot list them, or one cannot be removed.
pub async fn remove_labelled(engine: &dyn Engine, label: &CallId) -> Result<usize, EngineError> {
    let uid = this()?.uid.to_string();
    let says = |found: &Found, name, value: &str| {
        found.labels.get(&Labels::key(name)).is_some_and(|said| said == value)
    };
    let mut removed = 0;
    for found in engine.list(Some(label)).await? {
        if says(&found, "call", label.as_str()) && says(&found, "owner", &uid) {
            engine.remove(&found.id).await?;
            removed += 1;
        }
    }
    Ok(removed)
}

fn this() -> Result<Owner, EngineError> {
    Owner::this()
        .map_err(|source| EngineError::Local { operation: "find out who this process is", source })
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::engine::{Purpose, State};

    #[test]
    fn one_that_was_started_between_two_lists_is_left_alone() {
        let me = this().unwrap();
        let dead = Owner { started: me.started + 1, ..me.clone() };
        let list = |states: [State; 2]| -> Vec<Found> {
            let one = |(at, state): (usize, State)| {
                let id = format!("c{at}");
                let labels = Labels {
                    call: CallId::new(&id).unwrap(),
                    owner: dead.clone(),
                    deadline: now() + Duration::from_secs(60),
                    purpose: Purpose::Waiting,
                };
                Found { id: SandboxId::new(id), labels: labels.to_map(), state }
            };
            states.into_iter().enumerate().map(one).collect()
        };
        let before = left_over(list([State::Created, State::Created]), &me);
        let after = left_over(list([State::Running, State::Created]), &me);
        assert_eq!(before.len(), 2);
        let removed: Vec<_> =
            in_both(&before, after).iter().map(|id| id.as_str().to_owned()).collect();
        assert_eq!(removed, ["c1"]);
    }
}
