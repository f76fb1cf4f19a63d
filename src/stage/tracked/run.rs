//! Runs the host's git on the objects of a stage, without any configuration and within a deadline.
//!
//! Duty: a throw-away git folder, a bare environment, bounded output. Git reads objects that the
//! adversary wrote, so it must take nothing else from the repository: no configuration, hooks,
//! attributes, replacements, grafts or commit graph.

use std::fs::{self, DirBuilder, File};
use std::io::{Read as _, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, OwnedFd};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Instant;

use rustix::event::{PollFd, PollFlags, Timespec, poll};
use rustix::io::Errno;
use rustix::process::{Pid, PidfdFlags, pidfd_open};

use super::refs::RefsError;

/// Most bytes that git may answer.
const MAX_OUTPUT: usize = 64 * 1024 * 1024;

/// Git, with the objects of the host and of a stage.
pub(super) struct Git<'a> {
    program: &'a Path,
    host: BorrowedFd<'a>,
    deadline: Instant,
    scratch: Scratch,
    objects: PathBuf,
}

/// Which objects git sees.
#[derive(Clone, Copy)]
pub(super) enum Objects<'o> {
    /// Those of the stage over those of the host.
    Staged,
    /// Those of the host.
    Host,
    /// Those of this folder alone. What git makes is written there.
    Of(&'o Path),
}

/// What git reads, and where its answer goes.
pub(super) enum Streams<'s> {
    /// The answer is returned.
    Text(&'s [u8]),
    /// The answer is written to a file, or thrown away.
    Files(File, Option<File>),
}

impl<'a> Git<'a> {
    /// `digits` of an object id tell the format of the repository. `room` is a private folder.
    pub(super) fn new(
        program: &'a Path,
        host: BorrowedFd<'a>,
        staged_objects: Option<&OwnedFd>,
        room: &Path,
        digits: usize,
        deadline: Instant,
    ) -> Result<Self, RefsError> {
        let scratch = Scratch::new(room, digits).map_err(RefsError::Io)?;
        let objects = match staged_objects {
            Some(folder) => path_of(folder)?,
            None => scratch.0.join("objects"),
        };
        Ok(Self { program, host, deadline, scratch, objects })
    }

    /// A folder for files of this run. It is removed with this value.
    pub(super) fn scratch(&self) -> &Path {
        &self.scratch.0
    }

    /// The output of a command that ends with 0.
    pub(super) fn run(&self, args: &[&str], input: &[u8]) -> Result<Vec<u8>, RefsError> {
        self.run_with(Objects::Staged, args, Streams::Text(input))
    }

    /// The same with chosen objects.
    pub(super) fn run_with(
        &self,
        objects: Objects<'_>,
        args: &[&str],
        streams: Streams<'_>,
    ) -> Result<Vec<u8>, RefsError> {
        let (input, output) = match streams {
            Streams::Text(input) => {
                // A file rather than a pipe: git may read it while its output is read here.
                let asked = self.scratch.0.join("asked");
                File::create(&asked).and_then(|mut f| f.write_all(input)).map_err(RefsError::Io)?;
                (File::open(&asked).map_err(RefsError::Io)?, Stdio::piped())
            }
            Streams::Files(input, output) => (input, output.map_or_else(Stdio::null, Stdio::from)),
        };
        let nothing = self.scratch.0.join("objects");
        let (own, alternates) = match objects {
            Objects::Staged => (self.objects.as_path(), Some("objects")),
            Objects::Host => (nothing.as_path(), Some("objects")),
            Objects::Of(folder) => (folder, None),
        };
        let mut command = Command::new(self.program);
        command
            .args(["-c", "core.commitGraph=false", "-c", "core.multiPackIndex=false"])
            .args(["-c", "pack.writeReverseIndex=false"])
            .args(args)
            .env_clear()
            .env("GIT_DIR", &self.scratch.0)
            .env("HOME", &self.scratch.0)
            .env("GIT_OBJECT_DIRECTORY", own)
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", "/dev/null")
            .env("GIT_ATTR_NOSYSTEM", "1")
            .env("GIT_NO_REPLACE_OBJECTS", "1")
            .env("GIT_NO_LAZY_FETCH", "1")
            .env("GIT_OPTIONAL_LOCKS", "0")
            .env("GIT_TERMINAL_PROMPT", "0")
            // An object can be small on disk and huge in memory.
            .env("GIT_ALLOC_LIMIT", "512m")
            .env("LC_ALL", "C")
            // Opened by the child itself, before the handle is closed by `exec`.
            .current_dir(format!("/proc/self/fd/{}", self.host.as_raw_fd()))
            .stdin(input)
            .stdout(output)
            .stderr(Stdio::null());
        // Relative to the host's git folder, in which the child starts.
        alternates.map(|path| command.env("GIT_ALTERNATE_OBJECT_DIRECTORIES", path));
        let mut child = Killed(command.spawn().map_err(RefsError::NoGit)?);
        let output = self.output(&mut child.0)?;
        if child.0.wait().map_err(RefsError::Io)?.success() {
            Ok(output)
        } else {
            Err(RefsError::GitFailed)
        }
    }

    /// All that the child writes, once it has ended.
    fn output(&self, child: &mut Child) -> Result<Vec<u8>, RefsError> {
        let ended =
            pidfd_open(Pid::from_child(child), PidfdFlags::empty()).map_err(RefsError::Read)?;
        let mut output = Vec::new();
        if let Some(mut pipe) = child.stdout.take() {
            let mut part = vec![0; 64 * 1024];
            loop {
                self.wait_for(pipe.as_fd())?;
                match pipe.read(&mut part).map_err(RefsError::Io)? {
                    0 => break,
                    count => output.extend_from_slice(&part[..count]),
                }
                if output.len() > MAX_OUTPUT {
                    return Err(RefsError::TooMany);
                }
            }
        }
        self.wait_for(ended.as_fd())?;
        Ok(output)
    }

    fn wait_for(&self, handle: BorrowedFd<'_>) -> Result<(), RefsError> {
        loop {
            let left = self.deadline.saturating_duration_since(Instant::now());
            let left = Timespec::try_from(left).map_err(|_| RefsError::Deadline)?;
            match poll(&mut [PollFd::from_borrowed_fd(handle, PollFlags::IN)], Some(&left)) {
                Ok(0) => return Err(RefsError::Deadline),
                Ok(_) => return Ok(()),
                Err(Errno::INTR) => {}
                Err(error) => return Err(RefsError::Read(error)),
            }
        }
    }
}

/// A child that does not outlive its value.
struct Killed(Child);

impl Drop for Killed {
    fn drop(&mut self) {
        // Both fail only if it was waited for.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// The path of a folder, if it leads to it.
pub(super) fn path_of(folder: &OwnedFd) -> Result<PathBuf, RefsError> {
    let of_handle = format!("/proc/self/fd/{}", folder.as_raw_fd());
    let path = fs::read_link(&of_handle).map_err(RefsError::Io)?;
    let [by_path, by_handle] = [path.as_path(), Path::new(&of_handle)]
        .map(|path| fs::metadata(path).map(|data| (data.dev(), data.ino())));
    match (by_path, by_handle) {
        (Ok(one), Ok(other)) if one == other => Ok(path),
        _ => Err(RefsError::Odd("the folder of the staged objects")),
    }
}

/// A git folder that is removed again.
struct Scratch(PathBuf);

impl Scratch {
    fn new(room: &Path, digits: usize) -> std::io::Result<Self> {
        let chance = u64::from_ne_bytes(crate::sys::random()?);
        let scratch = Self(fs::canonicalize(room)?.join(format!("git-{chance:016x}")));
        DirBuilder::new().mode(0o700).create(&scratch.0)?;
        for folder in ["objects", "refs"] {
            fs::create_dir(scratch.0.join(folder))?;
        }
        fs::write(scratch.0.join("HEAD"), "ref: refs/heads/none\n")?;
        let format = if digits == 64 { "sha256" } else { "sha1" };
        let config = format!(
            "[core]\n\trepositoryformatversion = 1\n\tbare = true\n\
             [extensions]\n\tobjectformat = {format}\n"
        );
        fs::write(scratch.0.join("config"), config)?;
        Ok(scratch)
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        // It holds copies; what is left is swept with the room.
        let _ = fs::remove_dir_all(&self.0);
    }
}
