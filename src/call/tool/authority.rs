//! What a tool may ask the broker for: the only place where a scene becomes an [`Authority`].

use std::sync::Arc;

use runner_policy::limits::Limit;

use super::approval::Asker;
use super::exec::ToolExec;
use super::sandbox::Scene;
use super::shortfalls::Shortfalls;
use crate::audit::Redactor;
use crate::broker::{Authority, BrokerLimits, Fetcher, FreeRemovals, NoExec, NoNet, Removals};
use crate::call::plan::state;
use crate::call::stage::AroundScene;
use crate::stage::around::Around;
use crate::tool::Removal;
use crate::undo::KeepNothing;

/// What a tool may ask for in a scene. What the policy asks about is put to `asker`; what sandboxes keep from the
/// tool's commands is added to `shortfalls`.
pub(super) fn authority(
    scene: &Scene,
    asker: Asker,
    tighten: &[(Limit, u64)],
    redactor: Redactor,
    removal: Removal,
    shortfalls: Shortfalls,
) -> Authority {
    let removals: Arc<dyn Removals> = match removal {
        Removal::Free => Arc::new(FreeRemovals),
        Removal::Asked => Arc::new(asker.clone()),
    };
    Authority {
        net: Arc::new(Fetcher::new(
            Arc::clone(&scene.policy),
            redactor,
            Arc::new(asker.clone()),
            scene.places.environment.clone(),
        )),
        keep: Arc::new(scene.journal(&asker.call)),
        removals,
        exec: Arc::new(ToolExec {
            policy: Arc::clone(&scene.commands),
            root: scene.workspace.root().to_owned(),
            places: scene.places.clone(),
            image: scene.image.clone(),
            engine: scene.engine.clone(),
            asker,
            tighten: tighten.to_vec(),
            config: Arc::clone(&scene.config),
            warmth: scene.warmth,
            context: scene.context.clone(),
            shortfalls,
        }),
        limits: BrokerLimits::from_limits(&scene.limits),
        around: AroundScene {
            workspace: Arc::clone(&scene.workspace),
            policy: Arc::clone(&scene.policy),
            config: Arc::clone(&scene.config),
            environment: scene.places.environment.clone(),
            memory: state(&scene.places).ok().map(|state| state.join("walks")),
        }
        .later(),
        ..nothing(scene)
    }
}

/// The authority to ask for nothing: for a module that says what it is.
pub(super) fn nothing(scene: &Scene) -> Authority {
    Authority {
        workspace: Arc::clone(&scene.workspace),
        policy: Arc::clone(&scene.policy),
        limits: BrokerLimits { calls: 0, ..BrokerLimits::from_limits(&scene.limits) },
        exec: Arc::new(NoExec),
        net: Arc::new(NoNet),
        removals: Arc::new(FreeRemovals),
        keep: Arc::new(KeepNothing),
        around: Arc::new(|| Ok(Around::default())),
        state: scene.places.state.clone(),
    }
}
