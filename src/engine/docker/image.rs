//! Images, and how the guest gets into them.
//!
//! `host` is an image of our own: the guest and the folders that every root has. It is named by the
//! digest of its archive, so a new guest makes a new image. Into any other image the guest comes in a
//! volume that is named by the guest's digest and mounted read-only.

use std::collections::HashMap;

use bollard::models::{
    ContainerCreateBody, HostConfig, ImageConfig, Mount, MountType, MountVolumeOptions,
    VolumeCreateRequest,
};
use bollard::query_parameters::{
    ContainerArchiveInfoOptionsBuilder, CreateImageOptionsBuilder, UploadToContainerOptionsBuilder,
};
use futures_util::StreamExt;

use super::Docker;
use super::archive::{Entry, tar};
use super::settings::{GUEST_FOLDER, GUEST_PROGRAM, GuestDelivery};
use crate::engine::error::EngineError;
use crate::engine::label::{Labels, Purpose};
use crate::engine::plan::Image;
use crate::engine::plan::ImageFacts;
use crate::engine::traits::Prepared;
use crate::engine::{guest, runtime};
use crate::ids::Owner;
use crate::sys::now;

/// The name of our image.
const REPOSITORY: &str = "runner-host";

/// How long a container that only carries files may exist.
const CARRIER_SECONDS: u64 = 60;

/// What an empty root needs; mount points below are made by the runtime in the container's own layer.
const FOLDERS: [(&str, u32); 13] = [
    (".runner-guest/", 0o755),
    (".runner-guest/runtime/", 0o755),
    ("dev/", 0o755),
    ("etc/", 0o755),
    ("home/", 0o755),
    ("opt/", 0o755),
    ("proc/", 0o555),
    ("run/", 0o755),
    ("sys/", 0o555),
    ("tmp/", 0o1777),
    ("usr/", 0o755),
    ("var/", 0o755),
    ("var/tmp/", 0o1777),
];

impl Docker {
    pub(super) async fn prepare_image(&self, image: &Image) -> Result<Prepared, EngineError> {
        match image {
            Image::Host => self.host_image().await,
            Image::Reference(reference) => {
                let prepared = self
                    .inspect(reference)
                    .await?
                    .ok_or_else(|| EngineError::ImageMissing { reference: reference.clone() })?;
                self.make_guest_volume().await?;
                Ok(prepared)
            }
        }
    }

    /// Our own image, imported if it is not there.
    pub(super) async fn host_image(&self) -> Result<Prepared, EngineError> {
        let tag = host_tag();
        let reference = format!("{REPOSITORY}:{tag}");
        if let Some(prepared) = self.inspect(&reference).await? {
            return Ok(prepared);
        }
        let options =
            CreateImageOptionsBuilder::default().from_src("-").repo(REPOSITORY).tag(&tag).build();
        let body = bollard::body_full(host_archive().into());
        let mut progress = self.client.create_image(Some(options), Some(body), None);
        while let Some(step) = progress.next().await {
            step.map_err(|error| EngineError::from_client("import the host image", error))?;
        }
        self.inspect(&reference).await?.ok_or(EngineError::ImageMissing { reference })
    }

    /// The image behind a reference, by an id that cannot come to mean something else.
    async fn inspect(&self, reference: &str) -> Result<Option<Prepared>, EngineError> {
        if !is_reference(reference) {
            return Ok(None);
        }
        match self.client.inspect_image(reference).await {
            Ok(found) => {
                let id = found.id.unwrap_or_else(|| reference.to_owned());
                let facts = facts(found.config.unwrap_or_default());
                Ok(Some(Prepared { digest: id.clone(), image: id, facts }))
            }
            Err(error) => match EngineError::from_client("look at an image", error) {
                error if error.is_absent() => Ok(None),
                error => Err(error),
            },
        }
    }

    /// How the guest gets into an image.
    pub(super) fn delivery(image: &Image) -> GuestDelivery {
        match image {
            Image::Host => GuestDelivery::InImage,
            Image::Reference(_) => GuestDelivery::Volume(volume_name()),
        }
    }

    /// Makes the volume that holds the guest, and fills it, if it is not there.
    async fn make_guest_volume(&self) -> Result<(), EngineError> {
        let name = volume_name();
        let absent = match self.client.inspect_volume(&name).await {
            Ok(_) => false,
            Err(error) => match EngineError::from_client("look at the guest's volume", error) {
                error if error.is_absent() => true,
                error => return Err(error),
            },
        };
        if absent { self.fill_volume(&name).await } else { Ok(()) }
    }

    /// Puts the guest into the volume, through a container that is never started.
    pub(super) async fn fill_volume(&self, name: &str) -> Result<(), EngineError> {
        let failed = |error| EngineError::from_client("put the guest into its volume", error);
        let request =
            VolumeCreateRequest { name: Some(name.to_owned()), ..VolumeCreateRequest::default() };
        self.client.create_volume(request).await.map_err(failed)?;
        let image = self.host_image().await?.image;
        let body = ContainerCreateBody {
            image: Some(image),
            entrypoint: Some(vec![GUEST_PROGRAM.to_owned()]),
            labels: Some(self.temporary_labels()?),
            host_config: Some(HostConfig {
                network_mode: Some("none".to_owned()),
                mounts: Some(vec![Mount {
                    typ: Some(MountType::VOLUME),
                    source: Some(name.to_owned()),
                    target: Some(GUEST_FOLDER.to_owned()),
                    volume_options: Some(MountVolumeOptions {
                        no_copy: Some(true),
                        ..MountVolumeOptions::default()
                    }),
                    ..Mount::default()
                }]),
                ..HostConfig::default()
            }),
            ..ContainerCreateBody::default()
        };
        let carrier = self.client.create_container(None, body).await.map_err(failed)?.id;
        let options = UploadToContainerOptionsBuilder::default().path(GUEST_FOLDER).build();
        let body = bollard::body_full(volume_archive().into());
        let filled =
            self.client.upload_to_container(&carrier, Some(options), body).await.map_err(failed);
        self.remove_by_name(&carrier).await?;
        filled
    }

    /// Whether the guest is where a created container expects it. A pruned volume is silently made
    /// anew, empty.
    pub(super) async fn has_guest(&self, container: &str) -> Result<bool, EngineError> {
        let options = ContainerArchiveInfoOptionsBuilder::default().path(GUEST_PROGRAM).build();
        match self.client.get_container_archive_info(container, Some(options)).await {
            Ok(_) => Ok(true),
            Err(error) => match EngineError::from_client("look for the guest", error) {
                error if error.is_absent() => Ok(false),
                error => Err(error),
            },
        }
    }

    /// Labels of a container that only carries files: a sweep finds it if we die.
    pub(super) fn temporary_labels(&self) -> Result<HashMap<String, String>, EngineError> {
        let local = |source| EngineError::Local { operation: "label a container", source };
        let labels = Labels {
            call: crate::ids::CallId::fresh().map_err(local)?,
            owner: Owner::this().map_err(local)?,
            deadline: now() + std::time::Duration::from_secs(CARRIER_SECONDS),
            purpose: Purpose::Call,
        };
        Ok(labels.to_map().into_iter().collect())
    }
}

/// The volume that carries guest and runtime into any image; it is named by what is in it.
#[must_use]
pub fn volume_name() -> String {
    format!("runner-guest-{}", content_digest(&[]))
}

fn volume_archive() -> Vec<u8> {
    let mut entries = vec![Entry::Folder("runtime/", 0o755)];
    entries.push(Entry::Program("guest", guest::PROGRAM));
    let names: Vec<_> =
        runtime::FILES.iter().map(|(name, text)| (format!("runtime/{name}"), *text)).collect();
    entries.extend(names.iter().map(|(name, text)| Entry::File(name, text.as_bytes())));
    tar(&entries)
}

fn host_archive() -> Vec<u8> {
    let mut entries: Vec<_> =
        FOLDERS.iter().map(|(name, mode)| Entry::Folder(name, *mode)).collect();
    entries.push(Entry::Program(".runner-guest/guest", guest::PROGRAM));
    let names: Vec<_> = runtime::FILES
        .iter()
        .map(|(name, text)| (format!(".runner-guest/runtime/{name}"), *text))
        .collect();
    entries.extend(names.iter().map(|(name, text)| Entry::File(name, text.as_bytes())));
    tar(&entries)
}

/// What an image says of itself, as far as a plan needs it.
fn facts(config: ImageConfig) -> ImageFacts {
    let path = config.env.iter().flatten().find_map(|line| line.strip_prefix("PATH="));
    ImageFacts {
        path: path.map(Into::into),
        volumes: config.volumes.unwrap_or_default().into_iter().map(Into::into).collect(),
    }
}

/// The digest of what the image is made from.
fn host_tag() -> String {
    content_digest(&FOLDERS)
}

/// The digest of the guest, the runtime of tools, and these folders.
fn content_digest(folders: &[(&str, u32)]) -> String {
    let mut hasher = blake3::Hasher::new();
    hasher.update(guest::DIGEST.as_bytes());
    hasher.update(runtime::DIGEST.as_bytes());
    for (name, mode) in folders {
        hasher.update(name.as_bytes());
        hasher.update(&mode.to_le_bytes());
    }
    hasher.finalize().to_hex()[..32].to_owned()
}

/// A reference becomes part of a request's path: what could not be one names no image.
fn is_reference(text: &str) -> bool {
    let known =
        |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '-' | '_' | '/' | ':' | '@');
    text.starts_with(|c: char| c.is_ascii_alphanumeric())
        && text.chars().all(known)
        && !text.contains("..")
}
