//! The first words with a guest, and what wakes one that waits.
//!
//! A waiting guest is asked the same as a new one: what stands at each mount, and how it stands itself. Nothing that
//! the pool remembers about it counts.

use std::sync::Arc;
use std::time::Duration;

use runner_wire::{Decoder, Encoder, Hello, HostMessage, Key, Seen, Side, VERSION};
use tokio::time::{Instant, timeout};

use super::identity::Expectation;
use super::outcome::{Phases, RunError};
use super::plan::SandboxPlan;
use super::pump::Wire;
use super::run::READY_WAIT;
use super::watchdog::Watchdog;
use crate::engine::{Attached, Engine, Labels, SandboxId, now};
use crate::pool::{Claimed, discard};

/// How long engine and guest may take to answer for a sandbox that waits. It is there already and needs some milliseconds;
/// a new one is made in less time than this.
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
}

/// Why a sandbox that waited is not used. It is never handed out again, and on its way out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Unwoken {
    /// It is dead, or not as planned; the next may be better.
    Unfit,
    /// Nobody answers for it; the next would cost as much time.
    Silent,
}

/// Says hello to an attached guest, which answers when it runs.
pub(super) async fn greet(attached: Attached, expected: &Expectation) -> Result<Wire, RunError> {
    let random = crate::sys::random()
        .map_err(|source| RunError::Local { operation: "get random bytes", source })?;
    let key = Key::new(random);
    let mut wire = Wire::new(attached, Decoder::new(Side::Guest), Encoder::new(Side::Host));
    let hello = HostMessage::Hello(Hello {
        version: VERSION,
        key: key.clone(),
        targets: expected.targets(),
        lease_ms: u64::try_from(READY_WAIT.as_millis()).unwrap_or(u64::MAX),
    });
    wire.queue(&hello)?;
    wire.rekey(&key);
    wire.flush().await?;
    Ok(wire)
}

/// Wakes a sandbox that was claimed, and proves that it is what the call has planned.
///
/// # Errors
/// It is not to be used; nothing was sent that could run.
pub(super) async fn wake(
    engine: &Arc<dyn Engine>,
    plan: &SandboxPlan,
    claimed: Claimed,
    watchdog: &mut Watchdog,
    begun: Instant,
) -> Result<Woken, Unwoken> {
    let Claimed { entry, held } = claimed;
    // By its name, which its label makes: whatever id the file says, no container of somebody else is reached.
    let Some(label) = entry.id() else { return Err(Unwoken::Unfit) };
    let id = SandboxId::new(Labels::name_of(&label));
    // From here on it is this call's to end.
    watchdog.took(&entry.label);
    let claimed_at = Instant::now();
    // The watchdog starts while engine and guest are asked. If it cannot, the call finds out before it goes on.
    let (answered, _) = tokio::join!(
        timeout(WAKE_WAIT, answer(engine.as_ref(), plan, &id)),
        async { watchdog.awake() },
    );
    let why = match answered {
        Ok(Ok((wire, seen, mut phases))) => {
            // Its guest ends with us from here on, or with the watchdog's help.
            held.over();
            phases.claim = claimed_at - begun;
            let waited = Some(now().saturating_sub(entry.made));
            let image_digest = entry.image_digest;
            return Ok(Woken { id, wire, seen, phases, image_digest, waited, discarded: 0 });
        }
        Ok(Err(_)) => Unwoken::Unfit,
        Err(_) => Unwoken::Silent,
    };
    // The call does not wait for its end; if we end before, the watchdog sees to it.
    tokio::spawn(discard(held));
    Err(why)
}

async fn answer(
    engine: &dyn Engine,
    plan: &SandboxPlan,
    id: &SandboxId,
) -> Result<(Wire, Seen, Phases), RunError> {
    let expected = Expectation::of(plan);
    let begun = Instant::now();
    let attached = engine.attach(id).await?;
    let attached_at = Instant::now();
    let mut wire = greet(attached, &expected).await?;
    let ready = wire.ready().await?;
    let ready_at = Instant::now();
    expected.check(&ready)?;
    let phases = Phases {
        attach: attached_at - begun,
        start: ready_at - attached_at,
        check: ready_at.elapsed(),
        ..Phases::default()
    };
    Ok((wire, ready.seen, phases))
}
