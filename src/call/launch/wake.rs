//! The handshake with a guest, new or waiting, and waking a waiting one.
//!
//! A waiting guest is asked the same as a new one: what stands at each mount, and how it stands itself. Nothing that
//! the pool remembers about it counts.

use std::time::Duration;

use runner_wire::{Bytes, Hello, HostMessage, Key, Ready, Seen, VERSION};
use tokio::time::{Instant, timeout};

use super::run::READY_WAIT;
use super::watchdog::{Activation, Watchdog};
use crate::engine::plan::SandboxPlan;
use crate::engine::{Attached, Connected, Engine, SandboxId};
use crate::pool::{Claimed, Entry, Held, Order, discard};
use crate::sandbox::identity::Expectation;
use crate::sandbox::outcome::{Phases, RunError};
use crate::sandbox::wire::Wire;
use crate::stage::folder::Stage;
use crate::sys::now;

/// How long the engine, and then the guest, may take to answer for a sandbox that waits. It is there already and needs some
/// milliseconds; a new one is made in less time than this.
const WAKE_WAIT: Duration = Duration::from_secs(2);

/// A sandbox whose guest has answered, and is as planned.
pub(super) struct Woken {
    /// Its id.
    pub id: SandboxId,
    /// The wire to its guest, with a key.
    pub wire: Wire,
    /// What the guest saw of itself.
    pub seen: Seen,
    /// What it took so far.
    pub phases: Phases,
    /// The image that it was made from.
    pub image_digest: String,
    /// How long it had waited; `None` if it was made for the call.
    pub waited: Option<Duration>,
    /// How many that waited were tried before, and given up.
    pub discarded: usize,
    /// Its stage, if it has one.
    pub stage: Option<Stage>,
    /// The claim on one that waited, until an order for its guest is on the way. It ends with us.
    pub held: Option<Held>,
}

/// Why a sandbox that waited is not used. It is never handed out again, and on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WakeError {
    /// It is dead, or not as planned; the next may be better.
    Unfit,
    /// It does not answer; the next one would cost as much time.
    Silent,
}

/// Says hello to an attached guest, which answers when it runs, for each of these paths. A hello that is too long for the
/// pipes on the way is written while the guest reads it: see [`Wire::ready`].
pub(super) async fn greet(attached: Attached, targets: Vec<Bytes>) -> Result<Wire, RunError> {
    let random = crate::sys::random()
        .map_err(|source| RunError::Local { operation: "get random bytes", source })?;
    let key = Key::new(random);
    let mut wire = Wire::new(attached);
    let hello = HostMessage::Hello(Hello {
        version: VERSION,
        key: key.clone(),
        targets,
        lease_ms: u64::try_from(READY_WAIT.as_millis()).unwrap_or(u64::MAX),
    });
    wire.queue(&hello)?;
    wire.rekey(&key);
    wire.flush_if_short().await;
    Ok(wire)
}

/// A sandbox that was claimed, and whose guest was asked.
pub(super) struct Called {
    entry: Entry,
    held: Held,
    id: SandboxId,
    wire: Wire,
    phases: Phases,
    at: Instant,
}

/// A sandbox that was claimed, and whose guest has answered. Whether it is what a call has planned is still to be seen.
pub(super) struct Answered {
    entry: Entry,
    held: Held,
    id: SandboxId,
    wire: Wire,
    ready: Ready,
    phases: Phases,
}

/// Wakes a sandbox that was claimed.
///
/// # Errors
/// It is not to be used; nothing was sent that could run.
pub(super) async fn wake(
    engine: &dyn Engine,
    claimed: Claimed,
    watchdog: &mut Watchdog,
) -> Result<Answered, WakeError> {
    call(engine, claimed, watchdog).await?.answer().await
}

/// Asks the guest of a sandbox that was claimed. It takes a moment to answer.
///
/// # Errors
/// As [`wake`].
pub(super) async fn call(
    engine: &dyn Engine,
    claimed: Claimed,
    watchdog: &mut Watchdog,
) -> Result<Called, WakeError> {
    let Claimed { entry, held } = claimed;
    // By its label: whatever id the file says, no sandbox of another user is reached.
    let Some(label) = entry.id() else { return Err(WakeError::Unfit) };
    // From here on it is this call's to end. If no watchdog can be started, the call fails before it goes on.
    watchdog.took(&entry.label);
    let _ = watchdog.activate(Activation::Patient);
    let begun = Instant::now();
    let greeted = async {
        let Connected { id, attached } = engine.attach(&label).await?;
        let attach = begun.elapsed();
        Ok((id, greet(attached, entry.targets.clone()).await?, attach))
    };
    match in_time(greeted).await {
        Ok((id, wire, attach)) => {
            let phases = Phases { attach, ..Phases::default() };
            Ok(Called { entry, held, id, wire, phases, at: Instant::now() })
        }
        Err(why) => {
            give_up(held);
            Err(why)
        }
    }
}

/// What engine or guest say, if they say it in time.
async fn in_time<T>(said: impl Future<Output = Result<T, RunError>>) -> Result<T, WakeError> {
    match timeout(WAKE_WAIT, said).await {
        Ok(Ok(said)) => Ok(said),
        Ok(Err(_)) => Err(WakeError::Unfit),
        Err(_) => Err(WakeError::Silent),
    }
}

impl Called {
    /// Waits for the guest's answer.
    ///
    /// # Errors
    /// As [`wake`].
    pub(super) async fn answer(self) -> Result<Answered, WakeError> {
        let Self { entry, held, id, mut wire, mut phases, at } = self;
        match in_time(wire.ready()).await {
            Ok(ready) => {
                phases.start = at.elapsed();
                Ok(Answered { entry, held, id, wire, ready, phases })
            }
            Err(why) => {
                give_up(held);
                Err(why)
            }
        }
    }
}

impl Answered {
    /// Proves that it is what the call has planned, and ordered.
    ///
    /// # Errors
    /// It is not, and is given up.
    pub(super) fn prove(self, order: &Order, plan: &SandboxPlan) -> Result<Woken, WakeError> {
        let Self { entry, held, id, wire, ready, mut phases } = self;
        let begun = Instant::now();
        if entry.key != order.key || Expectation::of(plan, &entry.label).check(&ready).is_err() {
            give_up(held);
            return Err(WakeError::Unfit);
        }
        let stage = match (plan.is_staged(), entry.id()) {
            (false, _) => None,
            (true, label) => match label.map(|label| Stage::open(&order.state, &label)) {
                Some(Ok(stage)) => Some(stage),
                Some(Err(_)) | None => {
                    give_up(held);
                    return Err(WakeError::Unfit);
                }
            },
        };
        phases.check = begun.elapsed();
        let waited = Some(now().saturating_sub(entry.made));
        let image_digest = entry.image_digest;
        let (seen, held) = (ready.seen, Some(held));
        Ok(Woken { id, wire, seen, phases, image_digest, waited, discarded: 0, stage, held })
    }

    /// Ends it.
    pub(super) fn give_up(self) {
        give_up(self.held);
    }
}

/// The call does not wait for its end; if we end before, the watchdog sees to it.
fn give_up(held: Held) {
    tokio::spawn(discard(held));
}
