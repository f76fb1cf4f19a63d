//! What the daemon is, what it can enforce, and whether it sees our files.

use std::fs;
use std::io::Write;
use std::path::Path;
use std::time::Duration;

use bollard::models::{
    ContainerCreateBody, HostConfig, Mount, MountType, SystemInfo, SystemInfoCgroupVersionEnum,
};
use bollard::query_parameters::DownloadFromContainerOptionsBuilder;
use futures_util::StreamExt;

use super::Docker;
use super::cache::Age;
use crate::engine::error::EngineError;
use crate::engine::holders::{Holder, Holders};
use crate::engine::traits::{Facts, FileSystem, Part, UserNamespace};

/// What is remembered of a daemon's answer about itself.
const FACTS: &str = "facts";

/// How long: a daemon that is told to read its configuration again keeps its socket.
const FACTS_AGE: Duration = Duration::from_secs(600);

/// Where the nonce is mounted.
const NONCE_TARGET: &str = "/nonce";

impl Docker {
    pub(super) async fn facts(&self) -> Result<Facts, EngineError> {
        if let Some(known) = self.facts.get() {
            return Ok(known.clone());
        }
        let facts = self.look_facts_up().await?;
        Ok(self.facts.get_or_init(|| facts).clone())
    }

    /// As they are remembered, else as the daemon tells them.
    async fn look_facts_up(&self) -> Result<Facts, EngineError> {
        let age = Age::Within(FACTS_AGE);
        if let Some(facts) = self.memory().and_then(|memory| memory.get(FACTS, age)) {
            return Ok(facts);
        }
        self.facts_anew().await
    }

    /// As the daemon tells them now, whatever is remembered.
    pub(super) async fn facts_anew(&self) -> Result<Facts, EngineError> {
        let info =
            self.client.info().await.map_err(|error| {
                EngineError::from_client("ask the Docker engine what it is", error)
            })?;
        let facts = self.read(info);
        if let Some(memory) = self.memory() {
            memory.put(FACTS, &facts);
        }
        Ok(facts)
    }

    /// The programs that the daemon names as its own.
    pub(super) async fn components(&self) -> Result<Vec<Part>, EngineError> {
        const WHAT: &str = "ask the Docker engine for its versions";
        let found = self.client.version().await;
        let found = found.map_err(|error| EngineError::from_client(WHAT, error))?;
        let named = found.components.unwrap_or_default().into_iter();
        Ok(named.map(|it| Part { name: it.name, version: it.version }).collect())
    }

    fn read(&self, info: SystemInfo) -> Facts {
        let options = info.security_options.unwrap_or_default();
        let has = |name: &str| {
            options.iter().any(|option| {
                option.split(',').any(|part| part.strip_prefix("name=") == Some(name))
            })
        };
        let user_namespace = if has("rootless") {
            UserNamespace::Rootless
        } else if has("userns") {
            UserNamespace::Remapped
        } else {
            UserNamespace::Host
        };
        // A daemon that cannot hold a limit drops it with a warning, or refuses the container.
        let held = |says: Option<bool>| match says {
            Some(false) => Holder::Nothing,
            Some(true) | None => Holder::Group,
        };
        let memory = match (held(info.memory_limit), info.swap_limit) {
            (Holder::Group, Some(false)) => Holder::GroupThatSwaps,
            (holder, _) => holder,
        };
        let mut runtimes: Vec<String> = info.runtimes.unwrap_or_default().into_keys().collect();
        runtimes.sort();
        Facts {
            id: info.id.unwrap_or_default(),
            version: self.version.clone(),
            processors: info
                .ncpu
                .and_then(|count| u32::try_from(count).ok())
                .filter(|count| *count > 0)
                .unwrap_or(1),
            user_namespace,
            runtimes,
            cgroup: match info.cgroup_version {
                Some(SystemInfoCgroupVersionEnum::_2) => 2,
                _ => 1,
            },
            seccomp: has("seccomp"),
            holders: Holders {
                memory,
                cpus: held(info.cpu_cfs_quota),
                pids: held(info.pids_limit),
            },
            landlock: false,
        }
    }

    /// Writes a random word into a file, has the daemon mount it in a container that is never started,
    /// and reads it back through the daemon.
    pub(super) async fn prove_file_system(&self) -> Result<FileSystem, EngineError> {
        const WHAT: &str = "files";
        if let Some(known) = self.memory().and_then(|memory| memory.get(WHAT, Age::Any)) {
            return Ok(known);
        }
        let found = self.read_any_nonce().await?;
        // Only a proof is kept: what is in the way today may be gone tomorrow.
        if let (Some(memory), FileSystem::Ours) = (self.memory(), found) {
            memory.put(WHAT, &found);
        }
        Ok(found)
    }

    /// Tries more than one folder: a daemon or a caller may have a `/tmp` of its own.
    async fn read_any_nonce(&self) -> Result<FileSystem, EngineError> {
        let folders = self.cache.clone().into_iter().chain([std::env::temp_dir()]);
        let mut failure = None;
        for folder in folders {
            match self.read_nonce(&folder).await {
                Ok(FileSystem::Ours) => return Ok(FileSystem::Ours),
                Ok(FileSystem::Another) => failure = None,
                Err(error) => failure = Some(error),
            }
        }
        failure.map_or(Ok(FileSystem::Another), Err)
    }

    async fn read_nonce(&self, folder: &Path) -> Result<FileSystem, EngineError> {
        let local = |source| EngineError::Local {
            operation: "write a file that proves whose files the engine sees",
            source,
        };
        let nonce: [u8; 16] = crate::sys::random().map_err(local)?;
        let nonce = format!("{:032x}", u128::from_le_bytes(nonce));
        let path = folder.join(format!("runner-nonce-{nonce}"));
        let _gone = RemoveOnDrop(&path);
        fs::create_dir_all(folder)
            .and_then(|()| fs::File::create_new(&path))
            .and_then(|mut file| file.write_all(nonce.as_bytes()))
            .map_err(local)?;
        let image = self.host_image().await?;
        let body = ContainerCreateBody {
            image: Some(image.image),
            entrypoint: Some(vec![super::settings::GUEST_PROGRAM.to_owned()]),
            labels: Some(self.temporary_labels()?),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(vec![Mount {
                    typ: Some(MountType::BIND),
                    source: path.to_str().map(str::to_owned),
                    target: Some(NONCE_TARGET.to_owned()),
                    read_only: Some(true),
                    ..Mount::default()
                }]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let created = match self.client.create_container(None, body).await {
            Ok(created) => created.id,
            Err(error) => {
                return match EngineError::from_client("prove whose files the engine sees", error) {
                    EngineError::MountGone { .. } => Ok(FileSystem::Another),
                    other => Err(other),
                };
            }
        };
        let options = DownloadFromContainerOptionsBuilder::default().path(NONCE_TARGET).build();
        let mut stream = self.client.download_from_container(&created, Some(options));
        let mut archive = Vec::new();
        while let Some(Ok(bytes)) = stream.next().await {
            archive.extend_from_slice(&bytes);
            if archive.len() > 64 << 10 {
                break;
            }
        }
        self.remove_by_name(&created).await?;
        // The file's content is one block of the archive, after its header.
        let content = archive.get(512..512 + nonce.len());
        Ok(if content == Some(nonce.as_bytes()) { FileSystem::Ours } else { FileSystem::Another })
    }
}

struct RemoveOnDrop<'a>(&'a Path);

impl Drop for RemoveOnDrop<'_> {
    fn drop(&mut self) {
        let _ = fs::remove_file(self.0);
    }
}
