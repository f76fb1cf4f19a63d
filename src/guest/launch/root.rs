//! The root file system: a small folder in memory, with everything else mounted into it.

use super::failure::{Failed, Trying};
use super::kernel::{self, Mounted};
use super::open::{Handle, MountSources, Sources};
use super::{devices, procfs};
use runner_wire::{Bytes, GUEST_FOLDER, LaunchMount, LaunchStep, Recipe};
use std::cell::Cell;
use std::fs::File;
use std::io;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::path::{Component, Path};

/// The guest, inside.
pub const GUEST: &str = "/.runner-guest/guest";

/// Folders that every program may expect, with their permission bits.
const FOLDERS: [(&str, u32); 12] = [
    ("dev", 0o755),
    ("etc", 0o755),
    ("home", 0o755),
    ("opt", 0o755),
    ("proc", 0o555),
    ("run", 0o755),
    ("sys", 0o555),
    ("tmp", 0o1777),
    ("usr", 0o755),
    ("var", 0o755),
    ("var/tmp", 0o1777),
    (".layers", 0o700),
];

/// Where the new root is put together: whatever is there is hidden by it, and every source is open already.
const PLACES: [&str; 4] = ["/sys", "/mnt", "/run", "/tmp"];

/// What a root in memory may hold: the mount points, which are empty.
const ROOT_OPTIONS: &str = "size=4m,nr_inodes=16384,mode=755";

/// Builds the root and moves into it.
pub fn build(recipe: &Recipe, sources: &Sources, id_map: Option<&OwnedFd>) -> Result<(), Failed> {
    let root = Root::make()?;
    for (name, mode) in FOLDERS {
        root.folder(Path::new(name), mode).trying_at(LaunchStep::Root, &Bytes::from(name))?;
    }
    devices::make(&root, &sources.devices)?;
    procfs::make(&root, sources, recipe.right)?;
    for (group, source) in recipe.groups.iter().zip(&sources.groups) {
        let target = &group.target;
        root.bind(source, target, Mounted::ReadOnly).trying_at(LaunchStep::Group, target)?;
    }
    let guest = Bytes::from(GUEST_FOLDER);
    root.bind(&sources.guest, &guest, Mounted::ReadOnly).trying_at(LaunchStep::Bind, &guest)?;
    for (mount, sources) in recipe.mounts.iter().zip(&sources.mounts) {
        root.mount(mount, sources, recipe, id_map)?;
    }
    root.remove_layers().trying(LaunchStep::Root)?;
    root.close().trying(LaunchStep::Root)?;
    kernel::change_root(root.place).trying(LaunchStep::Pivot)
}

/// The new root, while it is put together.
pub struct Root {
    place: &'static str,
    handle: File,
    /// Where the host has something mounted, a parent before what is below it.
    points: Vec<Bytes>,
    /// How many layers were attached: each gets a place of its own, also those of a second overlay.
    layers: Cell<usize>,
}

impl Root {
    fn make() -> Result<Self, Failed> {
        let points = kernel::mount_points().trying(LaunchStep::Root)?;
        let is_folder = |place: &&str| Path::new(place).is_dir();
        let place = PLACES.into_iter().find(is_folder).ok_or_else(|| {
            Failed::at(LaunchStep::Root, &Bytes::from(PLACES[0]), Some(libc::ENOENT))
        })?;
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC;
        kernel::mount("tmpfs", Path::new(place), flags, ROOT_OPTIONS)
            .and_then(|()| kernel::open_path(Path::new(place)))
            .map(|handle| Self { place, handle, points, layers: Cell::new(0) })
            .trying_at(LaunchStep::Root, &Bytes::from(place))
    }

    /// A folder inside, made if it is not there. No part of the path may be a symlink.
    pub fn folder(&self, below: &Path, mode: u32) -> io::Result<File> {
        if let Some(there) = self.look(below)? {
            return Ok(there);
        }
        let parent = match below.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => self.folder(parent, 0o755)?,
            None => self.handle.try_clone()?,
        };
        let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        kernel::make_folder(parent.as_fd(), name, mode)?;
        self.look(below)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// An empty file inside, made if there is nothing.
    pub fn file(&self, below: &Path) -> io::Result<File> {
        if let Some(there) = self.look(below)? {
            return Ok(there);
        }
        let parent = match below.parent().filter(|parent| !parent.as_os_str().is_empty()) {
            Some(parent) => self.folder(parent, 0o755)?,
            None => self.handle.try_clone()?,
        };
        let name = below.file_name().ok_or(io::ErrorKind::InvalidInput)?;
        kernel::make_file(parent.as_fd(), name)?;
        self.look(below)?.ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// What is at a path inside; nothing if a part of it is missing.
    pub fn look(&self, below: &Path) -> io::Result<Option<File>> {
        match kernel::open_below(self.handle.as_fd(), below) {
            Ok(found) => Ok(Some(found)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Shows a file or folder of the host inside.
    pub fn bind(&self, source: &Handle, target: &Bytes, mounted: Mounted) -> io::Result<()> {
        let below = below_root(target)?;
        let target = match source.is_folder {
            true => self.folder(&below, 0o755)?,
            false => self.file(&below)?,
        };
        let copy = kernel::copy_mount(source.file.as_fd(), kernel::Below::Left)?;
        kernel::set_attributes(copy.as_fd(), mounted)?;
        kernel::attach(copy.as_fd(), target.as_fd())
    }

    fn mount(
        &self,
        mount: &LaunchMount,
        sources: &MountSources,
        recipe: &Recipe,
        id_map: Option<&OwnedFd>,
    ) -> Result<(), Failed> {
        match (mount, sources) {
            (LaunchMount::Bind { source, target }, MountSources::Bind(handle)) => self
                .bind_tree(handle, &source.path, target, recipe)
                .trying_at(LaunchStep::Bind, target),
            (LaunchMount::Overlay { target, .. }, MountSources::Overlay(layers, stage)) => {
                self.overlay(layers, stage.as_ref(), target, id_map)
            }
            (LaunchMount::Tmpfs { target, size, inodes, uid, gid, mode, exec }, _) => {
                let options =
                    format!("size={size},nr_inodes={inodes},uid={uid},gid={gid},mode={mode:o}");
                let no_exec = if *exec { 0 } else { libc::MS_NOEXEC };
                let flags = libc::MS_NOSUID | libc::MS_NODEV | no_exec;
                below_root(target)
                    .and_then(|below| self.folder(&below, 0o755))
                    .and_then(|at| kernel::mount("tmpfs", &by_number(&at), flags, &options))
                    .trying_at(LaunchStep::Tmpfs, target)
            }
            (LaunchMount::Bind { target, .. } | LaunchMount::Overlay { target, .. }, _) => {
                Err(Failed::at(LaunchStep::Recipe, target, None))
            }
        }
    }

    /// A file or folder of the host, with the mounts below it: without them, what they hide would show, and for an ordinary
    /// user the kernel locks them together. Those that the recipe does not name are covered.
    fn bind_tree(
        &self,
        source: &Handle,
        path: &Bytes,
        target: &Bytes,
        recipe: &Recipe,
    ) -> io::Result<()> {
        let mounts_below = match source.is_folder {
            true => self.points.iter().filter(|point| is_below(point, path)).cloned().collect(),
            false => Vec::new(),
        };
        if mounts_below.is_empty() {
            return self.bind(source, target, Mounted::ReadOnly);
        }
        let at = self.folder(&below_root(target)?, 0o755)?;
        let copy = kernel::copy_mount(source.file.as_fd(), kernel::Below::Along)?;
        kernel::set_attributes_of_all(copy.as_fd(), Mounted::ReadOnly)?;
        kernel::attach(copy.as_fd(), at.as_fd())?;
        for below in mounts_below {
            let Ok(rest) = Path::new(below.as_os()).strip_prefix(path.as_os()) else { continue };
            let inside = Path::new(target.as_os()).join(rest);
            let named = recipe.mounts.iter().any(|mount| {
                let (LaunchMount::Bind { target, .. }
                | LaunchMount::Overlay { target, .. }
                | LaunchMount::Tmpfs { target, .. }) = mount;
                inside.as_os_str() == target.as_os()
            });
            if !named {
                self.cover(&inside)?;
            }
        }
        Ok(())
    }

    /// Hides what is mounted at a path inside.
    fn cover(&self, inside: &Path) -> io::Result<()> {
        let below = below_root(&Bytes::from(inside.as_os_str()))?;
        let Some(there) = self.look(&below)? else { return Ok(()) };
        let flags = libc::MS_NOSUID | libc::MS_NODEV | libc::MS_NOEXEC | libc::MS_RDONLY;
        if there.metadata()?.is_dir() {
            return kernel::mount("tmpfs", &by_number(&there), flags, "size=4k,nr_inodes=1,mode=0");
        }
        let null = self.look(Path::new("dev/null"))?.ok_or(io::ErrorKind::NotFound)?;
        let copy = kernel::copy_mount(null.as_fd(), kernel::Below::Left)?;
        kernel::set_attributes(copy.as_fd(), Mounted::Device)?;
        kernel::attach(copy.as_fd(), there.as_fd())
    }

    fn overlay(
        &self,
        layers: &[Handle],
        stage: Option<&Handle>,
        target: &Bytes,
        id_map: Option<&OwnedFd>,
    ) -> Result<(), Failed> {
        let mut mapped = Vec::new();
        let mut name = |handle: &Handle| -> Result<String, Failed> {
            let number = match id_map {
                None => handle.file.as_raw_fd(),
                Some(users) => {
                    let layer = self.map_owners(handle, users.as_fd());
                    let layer = layer.trying_at(LaunchStep::IdMap, target)?;
                    let number = layer.as_raw_fd();
                    mapped.push(layer);
                    number
                }
            };
            Ok(format!("/proc/self/fd/{number}"))
        };
        let lower: Vec<String> = layers.iter().map(&mut name).collect::<Result<_, _>>()?;
        let upper = stage.map(&mut name).transpose()?;
        let upper = upper
            .map_or(String::new(), |stage| format!(",upperdir={stage}/upper,workdir={stage}/work"));
        // Without `userxattr` an ordinary caller could not read what the kernel writes into a stage, and a command could
        // forge it.
        let options = format!("lowerdir={}{upper},userxattr", lower.join(":"));
        below_root(target)
            .and_then(|below| self.folder(&below, 0o755))
            .and_then(|at| {
                let flags = libc::MS_NOSUID | libc::MS_NODEV;
                kernel::mount("overlay", &by_number(&at), flags, &options)
            })
            .trying_at(LaunchStep::Overlay, target)
    }

    /// A copy of a layer's mount that shows its owners by a map. An overlay takes only layers that are attached somewhere.
    fn map_owners(&self, layer: &Handle, users: BorrowedFd<'_>) -> io::Result<File> {
        let copy = kernel::copy_mount(layer.file.as_fd(), kernel::Below::Left)?;
        kernel::map_owners(copy.as_fd(), users)?;
        let number = self.layers.get();
        self.layers.set(number + 1);
        let name = format!(".layers/{number}");
        let place = self.folder(Path::new(&name), 0o700)?;
        kernel::attach(copy.as_fd(), place.as_fd())?;
        // The copy itself is what is attached there now.
        Ok(File::from(copy))
    }

    /// Takes the layers away: the overlays have copies of their own.
    fn remove_layers(&self) -> io::Result<()> {
        let layers = Path::new(self.place).join(".layers");
        for entry in std::fs::read_dir(&layers)? {
            let path = entry?.path();
            kernel::unmount(&path)?;
            std::fs::remove_dir(&path)?;
        }
        std::fs::remove_dir(&layers)
    }

    /// Makes the root and `/dev` read-only; mounts below stay as they are.
    fn close(&self) -> io::Result<()> {
        let devices = self.look(Path::new("dev"))?.ok_or(io::ErrorKind::NotFound)?;
        kernel::make_read_only(devices.as_fd())?;
        kernel::make_read_only(self.handle.as_fd())
    }

    /// Mounts a file system of the kernel's inside.
    pub fn mount_new(&self, kind: &str, below: &str, flags: u64, options: &str) -> io::Result<()> {
        let at = self.folder(Path::new(below), 0o755)?;
        kernel::mount(kind, &by_number(&at), flags, options)
    }

    /// A symlink inside.
    pub fn symlink(&self, to: &str, below: &str) -> io::Result<()> {
        std::os::unix::fs::symlink(to, Path::new(self.place).join(below))
    }
}

/// Whether a mount point lies in a folder.
fn is_below(point: &Bytes, folder: &Bytes) -> bool {
    point.0.strip_prefix(folder.0.as_slice()).is_some_and(|rest| rest.starts_with(b"/"))
}

/// The name of what is open, for calls that take a path.
fn by_number(file: &File) -> std::path::PathBuf {
    format!("/proc/self/fd/{}", file.as_raw_fd()).into()
}

/// A target without its leading slash, and made of ordinary names only.
fn below_root(target: &Bytes) -> io::Result<std::path::PathBuf> {
    let path = Path::new(target.as_os());
    let below = path.strip_prefix("/").map_err(|_| io::ErrorKind::InvalidInput)?;
    let ordinary = below.components().all(|part| matches!(part, Component::Normal(_)));
    if ordinary && !below.as_os_str().is_empty() {
        Ok(below.components().collect())
    } else {
        Err(io::ErrorKind::InvalidInput.into())
    }
}
