//! A folder of the doctor's own: a workspace with things to protect, a policy, a state, and no managed layer.
//!
//! The trials are about the sandbox, whatever this machine's policies are. What runs in them is this program and nothing
//! else, so no policy of the machine is needed to bound it.

use std::fs;
use std::io;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::call::Context;
use crate::environment::Environment;
use crate::latency::Early;
use crate::policy_files::Places;
use crate::stage::folder::give_up;
use crate::undo::trees::remove_all;

/// A file that may be read.
pub const PLAIN: &str = "plain.txt";

/// A file that the policy denies.
pub const DENIED: &str = ".env";

/// A folder that the policy denies.
pub const DENIED_FOLDER: &str = "private";

/// Key material, which no policy can allow.
pub const KEY: &str = "id_ed25519";

/// The folder that the policy allows to write.
pub const ALLOWED: &str = "build";

/// What no command may leave on the host, whatever the policy says, and where: what the host runs later, and what the
/// policy does not allow to write.
pub const FORBIDDEN: [&str; 5] =
    [".envrc", ".git/hooks/post-checkout", "build/.git/config", "build/.bashrc", "source.txt"];

/// The probe, as the workspace has it.
pub const PROBE: &str = "probe";

/// Limits of the trials: small, so that reaching them costs little.
pub const MEMORY: u64 = 96 << 20;
pub const THREADS: u64 = 48;
pub const OPEN_FILES: u64 = 128;
pub const FILE_SIZE: u64 = 8 << 20;
pub const SCRATCH: u64 = 4 << 20;
pub const INODES: u64 = 512;
pub const OUTPUT: u64 = 2 << 20;

/// The policy of the trials.
fn policy() -> String {
    format!(
        "policy: 1\nname: doctor\nsandbox:\n  limits:\n    memory: {}MiB\n    pids: {THREADS}\n    cpus: 1\n    wall: 60s\n    \
         cpu-time: 30s\n    open-files: {OPEN_FILES}\n    file-size: {}MiB\n    scratch: {}MiB\n    inodes: {INODES}\n    \
         output-max: {}MiB\n    shared-memory: none\nfiles:\n  read: [\"**\"]\n  write: [{ALLOWED}, \"{ALLOWED}/**\"]\n  \
         deny: [{DENIED}, {DENIED_FOLDER}]\ncommands:\n  - allow: \"./{PROBE} ...\"\n    effects: [read, write, code]\n    \
         reason: The probe tries what no sandbox may allow.\n",
        MEMORY >> 20,
        FILE_SIZE >> 20,
        SCRATCH >> 20,
        OUTPUT >> 20,
    )
}

/// How the names of places begin.
const PREFIX: &str = "runner-doctor-";

/// Each call makes a sandbox of its own, and is alone.
const CONFIG: &str = "pool: { size: 0 }\n";

/// The folder; it goes with this value.
#[derive(Debug)]
pub struct TrialFolder {
    root: PathBuf,
    canary: String,
    environment: Environment,
    /// The caller's own state folder, in which the state of the trials lies: so they write where real calls do.
    state: Option<PathBuf>,
}

impl TrialFolder {
    /// Makes one. The program of this process becomes the probe.
    ///
    /// # Errors
    /// It cannot be made.
    pub fn make(environment: &Environment) -> io::Result<Self> {
        let chance: [u8; 16] = crate::sys::random()?;
        let word = format!("{:032x}", u128::from_le_bytes(chance));
        // Not /tmp, which is a memory disk on many machines; a workspace rarely is.
        let base = ["/var/tmp", "/tmp"].into_iter().map(Path::new).find(|path| path.is_dir());
        let base = base.ok_or(io::ErrorKind::NotFound)?.canonicalize()?;
        let root = base.join(format!("{PREFIX}{}", &word[..16]));
        fs::create_dir(&root)?;
        let state = Places::of(environment, None).state;
        let place = Self {
            environment: own(environment, &root, state.as_deref()),
            canary: format!("canary-{word}"),
            root,
            state,
        };
        place.fill()?;
        Ok(place)
    }

    fn fill(&self) -> io::Result<()> {
        let workspace = self.workspace();
        for folder in [".git/hooks", ".git/objects", ".git/refs/heads", ALLOWED, DENIED_FOLDER] {
            fs::create_dir_all(workspace.join(folder))?;
        }
        fs::create_dir_all(self.root.join("config/runner/policies"))?;
        fs::create_dir_all(self.root.join("managed"))?;
        fs::create_dir(self.root.join("home"))?;
        fs::copy("/proc/self/exe", workspace.join(PROBE))?;
        let canary = self.canary.as_str();
        for (file, text) in [
            (".git/HEAD", "ref: refs/heads/main\n"),
            (".git/config", "[core]\n\trepositoryformatversion = 0\n"),
            (PLAIN, "plain\n"),
            ("source.txt", "source\n"),
            (DENIED, canary),
            (KEY, canary),
            ("private/file", canary),
        ] {
            fs::write(workspace.join(file), text)?;
        }
        fs::write(self.outside(), canary)?;
        symlink(PLAIN, workspace.join("inside"))?;
        symlink(self.outside(), workspace.join("outside"))?;
        fs::write(self.root.join("config/runner/policies/doctor.yml"), policy())?;
        fs::write(self.root.join("config/runner/config.yml"), CONFIG)?;
        // The command runs as another user where the caller is root.
        for (path, mode) in [("", 0o755), ("workspace", 0o755), ("outside", 0o644)] {
            fs::set_permissions(self.root.join(path), fs::Permissions::from_mode(mode))?;
        }
        Ok(())
    }

    /// The workspace of the trials.
    pub fn workspace(&self) -> PathBuf {
        self.root.join("workspace")
    }

    /// A file beside the workspace, which every user of the host may read.
    pub fn outside(&self) -> PathBuf {
        self.root.join("outside")
    }

    /// What is in every file that the probe may not read.
    pub fn canary(&self) -> &str {
        &self.canary
    }

    /// What calls in this place are made with.
    pub fn context(&self, caller: &Context) -> Context {
        Context { environment: self.environment.clone(), early: Early::default(), ..caller.clone() }
    }

    /// Where calls in this place find policies and keep records.
    pub fn places(&self) -> Places {
        let places = Places::of(&self.environment, Some(&self.workspace()));
        Places { managed: self.root.join("managed"), ..places }
    }

    /// The folder itself.
    pub fn root(&self) -> &Path {
        &self.root
    }
}

impl Drop for TrialFolder {
    fn drop(&mut self) {
        remove(&self.root, self.state.as_deref());
    }
}

/// Removes a place and its state, and nothing that has another name. No process uses them any more.
pub fn remove(root: &Path, state: Option<&Path>) {
    let Some(name) =
        root.file_name().filter(|name| name.as_encoded_bytes().starts_with(PREFIX.as_bytes()))
    else {
        return;
    };
    for folder in state.map(|state| state.join(name)).into_iter().chain([root.to_owned()]) {
        if let Some(heir) = state {
            give_up(&folder.join("runner"), heir);
        }
        if let (Some(above), Some(name)) = (folder.parent(), folder.file_name())
            && let Ok(above) = fs::File::open(above)
        {
            let _ = remove_all(&above, name);
        }
    }
}

/// The caller's variables, with folders of the place's own.
fn own(environment: &Environment, root: &Path, state: Option<&Path>) -> Environment {
    let kept = ["PATH", "DOCKER_HOST", "XDG_RUNTIME_DIR"].into_iter();
    let kept = kept.filter_map(|name| Some((name, environment.get(name)?)));
    let name = root.file_name().unwrap_or_default();
    let state = state.map_or_else(|| root.join("state"), |state| state.join(name));
    let folders = [
        ("HOME", root.join("home")),
        ("XDG_CONFIG_HOME", root.join("config")),
        ("XDG_CACHE_HOME", root.join("cache")),
        ("XDG_STATE_HOME", state),
    ];
    kept.chain(folders.map(|(name, folder)| (name, folder.into_os_string()))).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::policy_files::{Choice, Trust, load};

    #[test]
    fn its_policy_loads_and_no_policy_of_the_machine_takes_part() {
        let place = TrialFolder::make(&Environment::default()).unwrap();
        let loaded = load(&Choice::Named("doctor".to_owned()), &place.places(), Trust::Required);
        assert_eq!(loaded.unwrap().policy.name(), "doctor");
        let root = place.root().to_owned();
        drop(place);
        assert!(!root.exists());
    }
}
