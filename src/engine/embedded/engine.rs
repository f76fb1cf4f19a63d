//! The engine trait, for sandboxes that are children of this process.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;

use super::failure::LaunchError;
use super::groups;
use super::guest_folder;
use super::probe;
use super::process::{self, Launched};
use super::recipe::{self, Parts};
use super::systemd::Manager;
use crate::engine::address::Address;
use crate::engine::choice::EngineName;
use crate::engine::error::EngineError;
use crate::engine::lifeline::Lifeline;
use crate::engine::plan::{Image, ImageFacts, SandboxPlan};
use crate::engine::traits::{
    BoxFuture, Connected, Engine, Facts, FileSystem, Found, LeftOver, Life, Part, Prepared,
    SandboxId, Spec, State,
};
use crate::engine::{guest, open};
use crate::ids::CallId;

/// What a sandbox is made from, as results name it.
const HOST: &str = "host";

/// The engine. A clone shares the list of its sandboxes.
#[derive(Debug, Clone)]
pub struct Embedded {
    address: Address,
    cache: PathBuf,
    /// Who makes groups where the caller has none, if it proved that it does.
    manager: Option<Manager>,
    sandboxes: Arc<Mutex<BTreeMap<String, process::Handle>>>,
}

impl Embedded {
    /// The engine, if this kernel lets the caller make sandboxes.
    ///
    /// # Errors
    /// It does not, or there is no folder for the guest.
    pub async fn open(variable: open::Variable<'_>) -> Result<Self, EngineError> {
        let engine = Self::at(open::cache_folder(variable))?;
        let (cache, manager) = (engine.cache.clone(), Manager::find(variable));
        let proved = tokio::task::spawn_blocking(move || probe::prove(&cache, manager));
        let proved = proved.await.map_err(|error| local("try a sandbox", io::Error::other(error)));
        Ok(Self { manager: proved??, ..engine })
    }

    /// The engine, unproved: enough to look at what is there.
    ///
    /// # Errors
    /// There is no folder for the guest.
    pub fn at(cache: Option<PathBuf>) -> Result<Self, EngineError> {
        let cache = cache.ok_or_else(|| {
            let why = "neither HOME nor XDG_CACHE_HOME is an absolute path";
            local("find a folder for the guest", std::io::Error::other(why))
        })?;
        Ok(Self {
            address: Address::new(EngineName::Embedded, ""),
            cache,
            manager: None,
            sandboxes: Arc::default(),
        })
    }

    async fn start(&self, spec: Spec<'_>) -> Result<Connected, EngineError> {
        let (plan, cache) = (spec.plan.clone(), self.cache.clone());
        let parts = Parts {
            arguments: spec.arguments.to_vec(),
            stage: spec.stage.map(std::path::Path::to_owned),
            name: spec.labels.call.to_string(),
        };
        let manager = self.manager.clone();
        let launched = tokio::task::spawn_blocking(move || -> Result<Launched, EngineError> {
            let places = recipe::places(&plan, manager.as_ref())?;
            let guest = guest_folder::place(&cache)?;
            let started = process::start(&guest)?;
            let settled = groups::settle(places, started.id(), &parts.name);
            let place = Handle::current().block_on(settled).map_err(|error| {
                probe::forget_all(&cache);
                LaunchError::Scope(error)
            })?;
            started.tell(&recipe::of_plan(&plan, &parts, guest.source(), &place)?)
        });
        let launched =
            launched.await.map_err(|error| local("launch", std::io::Error::other(error)))??;
        let id = SandboxId::new(spec.labels.call.to_string());
        let handle = launched.handle();
        // One whose wire is closed may still be there: it stays in the list until it has ended.
        let mut list = lock(&self.sandboxes);
        list.retain(|_, sandbox| !sandbox.has_ended());
        list.insert(id.as_str().to_owned(), handle);
        drop(list);
        Ok(Connected { id, attached: launched.attach()? })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn local(operation: &'static str, source: std::io::Error) -> EngineError {
    EngineError::Local { operation, source }
}

impl Engine for Embedded {
    fn address(&self) -> &Address {
        &self.address
    }

    fn recipe(&self) -> &'static str {
        guest::DIGEST
    }

    fn life(&self) -> Life {
        Life::Ours
    }

    fn probe(&self) -> BoxFuture<'_, Result<Facts, EngineError>> {
        Box::pin(async { Ok(probe::facts(self.manager.as_ref())) })
    }

    fn probe_anew(&self) -> BoxFuture<'_, Result<Facts, EngineError>> {
        self.probe()
    }

    fn parts(&self) -> BoxFuture<'_, Result<Vec<Part>, EngineError>> {
        Box::pin(async { Ok(Vec::new()) })
    }

    fn sees_our_files(&self) -> BoxFuture<'_, Result<FileSystem, EngineError>> {
        Box::pin(async { Ok(FileSystem::Ours) })
    }

    fn prepare<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<Prepared, EngineError>> {
        Box::pin(async move {
            match image {
                Image::Host => Ok(Prepared {
                    image: HOST.to_owned(),
                    digest: format!("blake3:{}", guest::DIGEST),
                    facts: ImageFacts::default(),
                }),
                Image::Reference(reference) => {
                    Err(LaunchError::ForeignImage { reference: reference.clone() }.into())
                }
            }
        })
    }

    fn describe<'a>(
        &'a self,
        plan: &'a SandboxPlan,
    ) -> BoxFuture<'a, Result<serde_json::Value, EngineError>> {
        Box::pin(async move { recipe::describe(plan, self.manager.as_ref()) })
    }

    fn launch<'a>(
        &'a self,
        spec: Spec<'a>,
        _: &'a mut dyn Lifeline,
    ) -> BoxFuture<'a, Result<Connected, EngineError>> {
        Box::pin(self.start(spec))
    }

    fn park<'a>(&'a self, _: Spec<'a>) -> BoxFuture<'a, Result<SandboxId, EngineError>> {
        Box::pin(async { Err(LaunchError::NothingWaits.into()) })
    }

    fn attach<'a>(&'a self, _: &'a CallId) -> BoxFuture<'a, Result<Connected, EngineError>> {
        Box::pin(async { Err(LaunchError::NothingWaits.into()) })
    }

    fn remove<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let handle = lock(&self.sandboxes).get(id.as_str()).cloned();
            match handle {
                Some(handle) => handle.end().await.map_err(|error| local("end a sandbox", error)),
                // Those that this process made are in the list until they have ended.
                None => Ok(()),
            }
        })
    }

    fn remove_remains<'a>(&'a self, _: LeftOver<'a>) -> BoxFuture<'a, Result<usize, EngineError>> {
        // Whether a launcher lives is told by its lock, and not by a label.
        Box::pin(async { Ok(groups::remove_left_over(&groups::find(None))) })
    }

    fn list<'a>(
        &'a self,
        call: Option<&'a CallId>,
    ) -> BoxFuture<'a, Result<Vec<Found>, EngineError>> {
        let wanted = |id: &&String| call.is_none_or(|call| call.as_str() == id.as_str());
        let found = lock(&self.sandboxes)
            .iter()
            .filter(|(_, sandbox)| !sandbox.has_ended())
            .map(|(id, _)| id)
            .filter(wanted)
            .map(|id| Found {
                id: SandboxId::new(id.clone()),
                // Those of this process alone are known, and it needs no labels to tell them apart.
                labels: BTreeMap::new(),
                state: State::Running,
            })
            .collect();
        Box::pin(async { Ok(found) })
    }
}
