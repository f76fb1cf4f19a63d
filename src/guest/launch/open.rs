//! Opens every source of a recipe, before anything is mounted that could hide one.
//!
//! Handles are opened in the new mount namespace: the kernel copies mounts of its own namespace only.

use super::failure::{Failed, Trying};
use super::kernel;
use runner_wire::{Bytes, LaunchMount, LaunchStep, Recipe, Source};
use std::fs::File;
use std::io;
use std::os::unix::fs::{FileTypeExt, MetadataExt, OpenOptionsExt};

/// Devices that every program may expect. All but the last must be there.
pub const DEVICES: [&str; 6] = ["null", "zero", "full", "random", "urandom", "tty"];

/// Handles of everything that a recipe names.
pub struct Sources {
    /// The folder of the guest.
    pub guest: Handle,
    /// Of each mount, in order.
    pub mounts: Vec<MountSources>,
    /// Folders of control groups.
    pub groups: Vec<Handle>,
    /// Devices, by name.
    pub devices: Vec<(&'static str, Handle)>,
}

/// What one mount is made from.
pub enum MountSources {
    /// A file or folder.
    Bind(Handle),
    /// Layers, the topmost first, and the folder of a stage.
    Overlay(Vec<Handle>, Option<Handle>),
    /// Nothing.
    Tmpfs,
}

/// A source that is open and is what was planned.
pub struct Handle {
    /// Opened as a path.
    pub file: File,
    /// Whether it is a folder.
    pub is_folder: bool,
}

impl Sources {
    /// Opens them.
    pub fn open(recipe: &Recipe) -> Result<Self, Failed> {
        kernel::make_mounts_private().trying(LaunchStep::Namespace)?;
        let mounts = recipe.mounts.iter().map(|mount| {
            Ok(match mount {
                LaunchMount::Bind { source, .. } => MountSources::Bind(planned(source)?),
                LaunchMount::Overlay { layers, stage, .. } => MountSources::Overlay(
                    layers.iter().map(planned).collect::<Result<_, _>>()?,
                    stage.as_ref().map(planned).transpose()?,
                ),
                LaunchMount::Tmpfs { .. } => MountSources::Tmpfs,
            })
        });
        let groups = recipe.groups.iter().map(|group| {
            let path = &group.folder;
            handle(path).map(|(handle, _)| handle).trying_at(LaunchStep::Group, path)
        });
        Ok(Self {
            guest: planned(&recipe.guest)?,
            mounts: mounts.collect::<Result<_, _>>()?,
            groups: groups.collect::<Result<_, _>>()?,
            devices: devices()?,
        })
    }
}

fn planned(source: &Source) -> Result<Handle, Failed> {
    let (handle, identity) = handle(&source.path).trying_at(LaunchStep::Open, &source.path)?;
    match source.identity {
        Some(planned) if planned != identity => {
            Err(Failed::at(LaunchStep::Replaced, &source.path, None))
        }
        _ => Ok(handle),
    }
}

/// A handle, with its device and inode. A symlink is not followed.
fn handle(path: &Bytes) -> io::Result<(Handle, (u64, u64))> {
    let flags = libc::O_PATH | libc::O_NOFOLLOW;
    let file = File::options().read(true).custom_flags(flags).open(path.as_os())?;
    let found = file.metadata()?;
    if found.is_symlink() {
        return Err(io::Error::from_raw_os_error(libc::ELOOP));
    }
    let identity = (found.dev(), found.ino());
    Ok((Handle { is_folder: found.is_dir(), file }, identity))
}

fn devices() -> Result<Vec<(&'static str, Handle)>, Failed> {
    let mut found = Vec::new();
    for name in DEVICES {
        let path = Bytes::from(format!("/dev/{name}").as_str());
        let opened = handle(&path).and_then(|(handle, _)| {
            let is_device = handle.file.metadata()?.file_type().is_char_device();
            is_device.then_some(handle).ok_or(io::Error::from_raw_os_error(libc::ENODEV))
        });
        match opened {
            Ok(handle) => found.push((name, handle)),
            // A program without a terminal works.
            Err(_) if name == "tty" => {}
            Err(error) => return Err(error).trying_at(LaunchStep::Devices, &path),
        }
    }
    Ok(found)
}
