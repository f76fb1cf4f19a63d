//! The life of a container, as the engine trait has it.

use std::collections::HashMap;
use std::os::fd::AsFd;
use std::time::Duration;

use bollard::container::LogOutput;
use bollard::models::ContainerSummaryStateEnum;
use bollard::query_parameters::{
    AttachContainerOptionsBuilder, CreateContainerOptionsBuilder, ListContainersOptionsBuilder,
    RemoveContainerOptionsBuilder,
};
use futures_util::StreamExt;
use tokio::time::timeout;

use super::connect::in_time;
use super::line::Line;
use super::overlay::{self, Layers, Naming};
use super::settings::{GuestDelivery, Launch, RECIPE, container_settings};
use super::{Docker, starting};
use crate::engine::address::Address;
use crate::engine::error::EngineError;
use crate::engine::label::Labels;
use crate::engine::lifeline::Lifeline;
use crate::engine::plan::{Image, SandboxPlan};
use crate::engine::traits::{
    Attached, BoxFuture, Chunk, Connected, Engine, Facts, FileSystem, Found, Hold, LeftOver, Life,
    Part, Prepared, SandboxId, Spec, State, UserNamespace, Waits,
};
use crate::ids::CallId;

/// How long the removal of a container that failed is awaited. The watchdog and sweeps try again.
const ABANDON_WAIT: Duration = Duration::from_secs(5);

/// The name of the container with this label: whatever else a file says of it, no container of another user is reached.
fn container_name(label: &CallId) -> String {
    format!("runner-{label}")
}

impl Engine for Docker {
    fn address(&self) -> &Address {
        &self.address
    }

    fn recipe(&self) -> &'static str {
        RECIPE
    }

    fn life(&self) -> Life {
        Life::Daemon
    }

    fn waits(&self) -> Waits {
        Waits::All
    }

    fn probe(&self) -> BoxFuture<'_, Result<Facts, EngineError>> {
        Box::pin(in_time("ask the Docker engine what it is", self.facts()))
    }

    fn probe_anew(&self) -> BoxFuture<'_, Result<Facts, EngineError>> {
        Box::pin(in_time("ask the Docker engine what it is", self.facts_anew()))
    }

    fn parts(&self) -> BoxFuture<'_, Result<Vec<Part>, EngineError>> {
        Box::pin(in_time("ask the Docker engine for its versions", self.components()))
    }

    fn sees_our_files(&self) -> BoxFuture<'_, Result<FileSystem, EngineError>> {
        Box::pin(in_time("prove whose files the engine sees", self.prove_file_system()))
    }

    fn prepare<'a>(&'a self, image: &'a Image) -> BoxFuture<'a, Result<Prepared, EngineError>> {
        Box::pin(in_time("make the image ready", self.prepare_image(image)))
    }

    fn describe<'a>(
        &'a self,
        plan: &'a SandboxPlan,
    ) -> BoxFuture<'a, Result<serde_json::Value, EngineError>> {
        Box::pin(async move {
            let launch = Launch {
                image: match &plan.image {
                    Image::Host => "host".to_owned(),
                    Image::Reference(reference) => reference.clone(),
                },
                guest: Self::delivery(&plan.image),
                arguments: Vec::new(),
                labels: std::collections::BTreeMap::new(),
                processors: self.facts().await?.processors,
                overlays: overlay::describe(&plan.overlays),
            };
            let mut body = container_settings(plan, &launch)?;
            let options = body.host_config.as_mut().and_then(|host| host.security_opt.as_mut());
            for option in options.into_iter().flatten() {
                // Forty thousand characters that nobody reads.
                if option.starts_with("seccomp=") {
                    "seccomp=images/seccomp.json".clone_into(option);
                }
            }
            serde_json::to_value(body).map_err(|error| EngineError::Local {
                operation: "write the container's settings",
                source: error.into(),
            })
        })
    }

    fn launch<'a>(
        &'a self,
        spec: Spec<'a>,
        lifeline: &'a mut dyn Lifeline,
    ) -> BoxFuture<'a, Result<Connected, EngineError>> {
        Box::pin(async move {
            // A connection of its own: the daemon closes it when it is done with the request, also if we are dead by then.
            let line = self.line().await?;
            lifeline.pending(line.as_fd());
            let layers = self.layers(spec, overlay::naming(line.as_fd())).await?;
            let id = self.create(line, spec, &layers).await?;
            lifeline.settled();
            // Before the start: what a guest says early would be lost.
            let attached = match self.attach_to(&id).await {
                Ok(attached) => attached,
                Err(error) => return Err(self.abandon(&id, error).await),
            };
            let start = tokio::spawn({
                let (docker, id) = (self.clone(), id.clone());
                async move {
                    let started = docker.start(&id).await;
                    // Only now the daemon has mounted what they name.
                    drop(layers);
                    started
                }
            });
            let output = starting::output(attached.output, start);
            Ok(Connected { id, attached: Attached { output, input: attached.input } })
        })
    }

    fn park<'a>(
        &'a self,
        spec: Spec<'a>,
        _: Hold<'a>,
    ) -> BoxFuture<'a, Result<SandboxId, EngineError>> {
        Box::pin(async move {
            let line = self.line().await?;
            let layers = self.layers(spec, overlay::naming(line.as_fd())).await?;
            let id = self.create(line, spec, &layers).await?;
            let started = self.start(&id).await;
            drop(layers);
            match started {
                Ok(()) => Ok(id),
                Err(error) => Err(self.abandon(&id, error).await),
            }
        })
    }

    fn attach<'a>(&'a self, label: &'a CallId) -> BoxFuture<'a, Result<Connected, EngineError>> {
        Box::pin(async move {
            let id = SandboxId::new(container_name(label));
            let attached = self.attach_to(&id).await?;
            Ok(Connected { id, attached })
        })
    }

    fn remove<'a>(&'a self, id: &'a SandboxId) -> BoxFuture<'a, Result<(), EngineError>> {
        Box::pin(in_time("remove a sandbox", self.remove_by_name(id.as_str())))
    }

    fn remove_remains<'a>(
        &'a self,
        left: LeftOver<'a>,
    ) -> BoxFuture<'a, Result<usize, EngineError>> {
        Box::pin(in_time("remove volumes", self.remove_volumes(left)))
    }

    fn list<'a>(
        &'a self,
        call: Option<&'a CallId>,
    ) -> BoxFuture<'a, Result<Vec<Found>, EngineError>> {
        let listed = async move {
            let label = match call {
                Some(call) => format!("{}={call}", Labels::key("call")),
                None => Labels::key("call"),
            };
            let filters = HashMap::from([("label".to_owned(), vec![label])]);
            let options =
                ListContainersOptionsBuilder::default().all(true).filters(&filters).build();
            let found = self
                .client
                .list_containers(Some(options))
                .await
                .map_err(|error| EngineError::from_client("list sandboxes", error))?;
            Ok(found
                .into_iter()
                .filter_map(|container| {
                    Some(Found {
                        id: SandboxId::new(container.id?),
                        labels: Labels::ours(container.labels.unwrap_or_default()),
                        state: match container.state {
                            Some(ContainerSummaryStateEnum::CREATED) => State::Created,
                            Some(
                                ContainerSummaryStateEnum::RUNNING
                                | ContainerSummaryStateEnum::PAUSED
                                | ContainerSummaryStateEnum::RESTARTING,
                            ) => State::Running,
                            _ => State::Ending,
                        },
                    })
                })
                .collect())
        };
        Box::pin(in_time("list sandboxes", listed))
    }
}

impl Docker {
    /// Makes a container that does not run yet, asking on this line.
    async fn create(
        &self,
        line: Line,
        spec: Spec<'_>,
        layers: &Layers,
    ) -> Result<SandboxId, EngineError> {
        in_time("make a sandbox", self.create_container(line, spec, layers)).await
    }

    /// Opens what the overlays of a sandbox are made from.
    async fn layers(&self, spec: Spec<'_>, near: Naming) -> Result<Layers, EngineError> {
        let naming = match self.facts().await?.user_namespace {
            // A daemon without our rights cannot look into our descriptors.
            UserNamespace::Rootless => Naming::Paths,
            UserNamespace::Host
            | UserNamespace::Remapped
            | UserNamespace::Swapped
            | UserNamespace::Single => near,
        };
        overlay::open(&spec.plan.overlays, spec.stage, naming)
    }

    async fn create_container(
        &self,
        line: Line,
        Spec { plan, prepared, labels, arguments, .. }: Spec<'_>,
        layers: &Layers,
    ) -> Result<SandboxId, EngineError> {
        let launch = Launch {
            image: prepared.image.clone(),
            guest: Self::delivery(&plan.image),
            arguments: arguments.to_vec(),
            labels: labels.to_map(),
            processors: self.facts().await?.processors,
            overlays: layers.options.clone(),
        };
        let body = container_settings(plan, &launch)?;
        let name = container_name(&labels.call);
        let options = CreateContainerOptionsBuilder::default().name(&name).build();
        let failed = |error| EngineError::from_client("make a sandbox", error);
        let client = line.client(&self.client).map_err(failed)?;
        let created = client.create_container(Some(options), body).await.map_err(failed)?;
        if let GuestDelivery::Volume(volume) = &launch.guest
            && !self.has_guest(&created.id).await?
        {
            self.fill_volume(volume).await?;
        }
        Ok(SandboxId::new(created.id))
    }

    /// Connects to the standard streams of a container's guest.
    async fn attach_to(&self, id: &SandboxId) -> Result<Attached, EngineError> {
        let attached = async {
            let options = AttachContainerOptionsBuilder::default()
                .stdin(true)
                .stdout(true)
                .stderr(true)
                .stream(true)
                .build();
            let failed = |error| EngineError::from_client("attach to a sandbox", error);
            let client = self.any_line().await?.client(&self.client).map_err(failed)?;
            let attached =
                client.attach_container(id.as_str(), Some(options)).await.map_err(failed)?;
            let output = attached.output.map(|item| match item {
                Ok(LogOutput::StdOut { message }) => Ok(Chunk::Wire(message.into())),
                Ok(
                    LogOutput::StdErr { message }
                    | LogOutput::StdIn { message }
                    | LogOutput::Console { message },
                ) => Ok(Chunk::Noise(message.into())),
                Err(error) => Err(EngineError::from_client("read from a sandbox", error)),
            });
            Ok(Attached { output: Box::pin(output), input: attached.input })
        };
        in_time("attach to a sandbox", attached).await
    }

    /// Starts a container.
    async fn start(&self, id: &SandboxId) -> Result<(), EngineError> {
        let started = async {
            self.client
                .start_container(id.as_str(), None)
                .await
                .map_err(|error| EngineError::from_client("start a sandbox", error))
        };
        in_time("start a sandbox", started).await
    }

    /// Removes a container that failed; the failure is what counts.
    async fn abandon(&self, id: &SandboxId, error: EngineError) -> EngineError {
        let _ = timeout(ABANDON_WAIT, self.remove_by_name(id.as_str())).await;
        error
    }

    /// Ends and removes a container in any state; one that is gone, or going, is no error.
    pub(super) async fn remove_by_name(&self, name: &str) -> Result<(), EngineError> {
        let options = RemoveContainerOptionsBuilder::default().force(true).v(true).build();
        match self.client.remove_container(name, Some(options)).await {
            Ok(()) => Ok(()),
            Err(error) => match EngineError::from_client("remove a sandbox", error) {
                EngineError::Refused { status: 404 | 409, .. } => Ok(()),
                error => Err(error),
            },
        }
    }
}
