//! The engine trait, for sandboxes that are children of this process.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use tokio::runtime::Handle;

use super::failure::LaunchError;
use super::groups::{self, Place, Places};
use super::guest_folder;
use super::probe;
use super::process::{self, Launched};
use super::recipe::{self, Parts};
use super::systemd::Manager;
use super::waiting::{self, Waiting};
use crate::engine::address::Address;
use crate::engine::choice::EngineName;
use crate::engine::error::EngineError;
use crate::engine::lifeline::Lifeline;
use crate::engine::plan::{Image, ImageFacts, SandboxPlan};
use crate::engine::traits::{
    BoxFuture, Connected, Engine, Facts, FileSystem, Found, Hold, LeftOver, Life, Part, Prepared,
    SandboxId, Spec, State, Waits,
};
use crate::engine::{guest, open};
use crate::ids::CallId;

/// What a sandbox is made from, as results name it.
const HOST: &str = "host";

/// The guest with the launcher, and what tells them what to make.
const RECIPE: &str = env!("RUNNER_RECIPE_EMBEDDED");

/// The engine. A clone shares the list of its sandboxes.
#[derive(Debug, Clone)]
pub struct Embedded {
    address: Address,
    /// Where sandboxes wait; none if there is no folder for that.
    folder: Option<PathBuf>,
    /// Where the guest is placed. Without it, sandboxes can be ended and not be made.
    cache: Option<PathBuf>,
    /// Who makes groups where the caller has none, if it proved that it does.
    manager: Option<Manager>,
    /// Which of its sandboxes may wait.
    waits: Waits,
    sandboxes: Arc<Mutex<BTreeMap<String, process::Handle>>>,
}

impl Embedded {
    /// The engine, if this kernel lets the caller make sandboxes.
    ///
    /// # Errors
    /// It does not, or there is no folder for the guest.
    pub async fn open(variable: open::Variable<'_>) -> Result<Self, EngineError> {
        let folder = waiting::choose(variable);
        // An address is text: a folder with another name is as good as none.
        let place = folder.as_deref().and_then(Path::to_str).unwrap_or_default();
        let engine = Self::at(place, open::cache_folder(variable));
        let (cache, manager) = (engine.cache()?.to_owned(), Manager::find(variable));
        let proved = tokio::task::spawn_blocking(move || {
            let manager = probe::prove(&cache, manager)?;
            // A scope is for one launcher, and cannot be given to the process that would hold it.
            let waits = match groups::find(manager.as_ref()) {
                Places::Scopes { .. } => Waits::None,
                Places::Trees(_) | Places::Unified { .. } | Places::None => Waits::Started,
            };
            Ok::<_, EngineError>((manager, waits))
        });
        let proved = proved.await.map_err(|error| local("try a sandbox", io::Error::other(error)));
        let (manager, waits) = proved??;
        Ok(Self { manager, waits, ..engine })
    }

    /// The engine, unproved, whose sandboxes wait in this folder.
    #[must_use]
    pub fn at(folder: &str, cache: Option<PathBuf>) -> Self {
        Self {
            address: Address::new(EngineName::Embedded, folder),
            folder: Some(PathBuf::from(folder)).filter(|folder| folder.is_absolute()),
            cache,
            manager: None,
            waits: Waits::Started,
            sandboxes: Arc::default(),
        }
    }

    fn cache(&self) -> Result<&Path, EngineError> {
        self.cache.as_deref().ok_or_else(|| {
            let why = "neither HOME nor XDG_CACHE_HOME is an absolute path";
            local("find a folder for the guest", io::Error::other(why))
        })
    }

    fn folder(&self) -> Result<&Path, EngineError> {
        self.folder.as_deref().ok_or_else(|| {
            let why = "neither HOME nor XDG_STATE_HOME is an absolute path in UTF-8";
            local("find a folder for sandboxes that wait", io::Error::other(why))
        })
    }

    async fn start(&self, spec: Spec<'_>) -> Result<Connected, EngineError> {
        let (plan, cache) = (spec.plan.clone(), self.cache()?.to_owned());
        let parts = parts(spec);
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
            launched.await.map_err(|error| local("launch", io::Error::other(error)))??;
        self.connect(&spec.labels.call, launched)
    }

    /// Connects to a sandbox that ends with this process.
    fn connect(&self, label: &CallId, launched: Launched) -> Result<Connected, EngineError> {
        let id = SandboxId::new(label.to_string());
        let handle = launched.handle();
        // One whose wire is closed may still be there: it stays in the list until it has ended.
        let mut list = lock(&self.sandboxes);
        list.retain(|_, sandbox| !sandbox.has_ended());
        list.insert(id.as_str().to_owned(), handle);
        drop(list);
        Ok(Connected { id, attached: launched.attach()? })
    }

    /// Has a sandbox wait.
    async fn hold(&self, spec: Spec<'_>, hold: Hold<'_>) -> Result<SandboxId, EngineError> {
        let (folder, cache) = (self.folder()?, self.cache()?);
        let (plan, place) = (spec.plan.clone(), cache.to_owned());
        let parts = Parts { tells_start: true, ..parts(spec) };
        let planned = tokio::task::spawn_blocking(move || {
            let guest = guest_folder::place(&place)?;
            let place = match recipe::places(&plan, None)? {
                Places::Trees(trees) => Place::Trees(trees),
                Places::Unified { folder, cpus, .. } => Place::Unified { folder, cpus },
                Places::Scopes { .. } | Places::None => Place::None,
            };
            recipe::of_plan(&plan, &parts, guest.source(), &place)
        });
        let recipe = planned.await.map_err(|error| local("launch", io::Error::other(error)))??;
        let label = spec.labels.call.as_str();
        let (program, wait, labels) = (hold.program, hold.wait, spec.labels.to_map());
        waiting::park(Waiting { program, folder, cache, label, labels, wait, recipe }).await?;
        Ok(SandboxId::new(label.to_owned()))
    }

    /// Those of this process, which needs no labels to tell them apart; and all that wait.
    fn find(&self, call: Option<&CallId>) -> Result<Vec<Found>, EngineError> {
        let waiting = match &self.folder {
            Some(folder) => waiting::list(folder)?,
            None => Vec::new(),
        };
        let ours = lock(&self.sandboxes);
        let ours: Vec<String> = ours
            .iter()
            .filter(|(_, sandbox)| !sandbox.has_ended())
            .map(|(id, _)| id.clone())
            .collect();
        let ours = ours.into_iter().map(|id| (id, BTreeMap::new()));
        let waiting = waiting.into_iter().map(|(label, labels)| (label.to_string(), labels));
        let all = ours.chain(waiting);
        let wanted = all.filter(|(id, _)| call.is_none_or(|call| call.as_str() == id));
        let state = State::Running;
        Ok(wanted.map(|(id, labels)| Found { id: SandboxId::new(id), labels, state }).collect())
    }
}

fn parts(spec: Spec<'_>) -> Parts {
    Parts {
        arguments: spec.arguments.to_vec(),
        stage: spec.stage.map(Path::to_owned),
        name: spec.labels.call.to_string(),
        tells_start: false,
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
        RECIPE
    }

    fn life(&self) -> Life {
        Life::Ours
    }

    fn waits(&self) -> Waits {
        self.waits
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

    fn park<'a>(
        &'a self,
        spec: Spec<'a>,
        hold: Hold<'a>,
    ) -> BoxFuture<'a, Result<SandboxId, EngineError>> {
        Box::pin(self.hold(spec, hold))
    }

    fn attach<'a>(&'a self, label: &'a CallId) -> BoxFuture<'a, Result<Connected, EngineError>> {
        Box::pin(async move { self.connect(label, waiting::attach(self.folder()?, label).await?) })
    }

    fn remove<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(async move {
            let handle = lock(&self.sandboxes).get(id.as_str()).cloned();
            match handle {
                Some(handle) => handle.end().await.map_err(|error| local("end a sandbox", error)),
                None => match (&self.folder, CallId::new(id.as_str())) {
                    (Some(folder), Some(label)) => waiting::end(folder, &label).await,
                    _ => Ok(()),
                },
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
        let found = self.find(call);
        Box::pin(async { found })
    }
}
