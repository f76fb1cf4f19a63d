//! Which files there are, and what they say together.

use std::collections::BTreeSet;
use std::io::{self, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};

use runner_policy::net::{Registry, RegistryHost};

use super::source::Source;
use super::{cargo, npm, pip};
use crate::codes::Code;
use crate::environment::Environment;
use crate::error::{Failure, Fault};
use crate::exit::Kind;

/// Largest configuration file of a package manager.
const LARGEST: u64 = 1 << 20;

/// Why it is not known where a package manager installs from.
#[derive(Debug, thiserror::Error)]
pub enum RegistryError {
    /// A file cannot be read.
    #[error("{path} cannot be read: {error}")]
    Read {
        /// Which.
        path: PathBuf,
        /// What the system said.
        #[source]
        error: io::Error,
    },
    /// A file says what is not understood.
    #[error("the configuration of {} on this machine cannot be used: {why}", .registry.word())]
    Odd {
        /// Whose.
        registry: Registry,
        /// Why.
        why: String,
    },
}

impl Failure for RegistryError {
    fn code(&self) -> Code {
        Code::Registries
    }

    fn kind(&self) -> Kind {
        Kind::Broken
    }

    fn fault(&self) -> Fault {
        Fault::Usage
    }
}

/// A file that was read, with the BLAKE3 digest of what it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ReadFile {
    /// Where.
    pub path: PathBuf,
    /// In hexadecimal.
    pub digest: String,
}

/// Registries of this machine's package managers.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Registries {
    /// Each registry.
    pub sources: Vec<Source>,
    /// What was read. A file that is missing counts as none.
    pub files: Vec<ReadFile>,
}

impl Registries {
    /// Their hosts, as the policy judges connections.
    #[must_use]
    pub fn hosts(&self) -> Vec<RegistryHost> {
        let mut hosts: Vec<RegistryHost> = Vec::new();
        for source in &self.sources {
            let host = RegistryHost {
                registry: source.registry,
                host: source.host.clone(),
                port: source.port,
            };
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        hosts
    }
}

/// Finds the registries of these package managers.
///
/// # Errors
/// A file cannot be read or understood: then nothing is allowed by it.
pub fn find(
    wanted: &BTreeSet<Registry>,
    variables: &Environment,
) -> Result<Registries, RegistryError> {
    let home = variables.home().filter(|home| home.is_absolute());
    let mut found = Registries::default();
    for registry in wanted {
        let of_home = |names: &[&str]| -> Vec<PathBuf> {
            home.iter().flat_map(|home| names.iter().map(|name| home.join(name))).collect()
        };
        let system = |names: &[&str]| names.iter().map(PathBuf::from).collect::<Vec<_>>();
        let odd = |why| RegistryError::Odd { registry: *registry, why };
        let sources = match registry {
            Registry::Npm => {
                let files = [
                    system(&["/etc/npmrc", "/usr/etc/npmrc", "/usr/local/etc/npmrc"]),
                    of_home(&[".npmrc"]),
                ];
                npm::read(&texts(&files.concat(), &mut found)?, variables).map_err(odd)?
            }
            Registry::Pip => {
                let files = [
                    system(&["/etc/xdg/pip/pip.conf", "/etc/pip.conf"]),
                    of_home(&[".pip/pip.conf", ".config/pip/pip.conf"]),
                ];
                pip::read(&texts(&files.concat(), &mut found)?).map_err(odd)?
            }
            Registry::Cargo => {
                // Of two names for one file cargo takes the first.
                let config = texts(&of_home(&[".cargo/config", ".cargo/config.toml"]), &mut found)?;
                let tokens = texts(
                    &of_home(&[".cargo/credentials", ".cargo/credentials.toml"]),
                    &mut found,
                )?;
                let first = |texts: Vec<String>| texts.into_iter().next().unwrap_or_default();
                cargo::read(&first(config), &first(tokens)).map_err(odd)?
            }
        };
        found.sources.extend(sources);
    }
    Ok(found)
}

fn texts(files: &[PathBuf], found: &mut Registries) -> Result<Vec<String>, RegistryError> {
    let mut texts = Vec::new();
    for path in files {
        let failed = |error| RegistryError::Read { path: path.clone(), error };
        let Some(text) = read(path).map_err(failed)? else { continue };
        let digest = blake3::hash(text.as_bytes()).to_hex().to_string();
        found.files.push(ReadFile { path: path.clone(), digest });
        texts.push(text);
    }
    Ok(texts)
}

/// A file as text; `None` if there is none.
fn read(path: &Path) -> io::Result<Option<String>> {
    // Opening a pipe would wait for another process to write to it.
    let flags = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let opened = std::fs::OpenOptions::new().read(true).custom_flags(flags).open(path);
    let file = match opened {
        Err(error)
            if [io::ErrorKind::NotFound, io::ErrorKind::NotADirectory].contains(&error.kind()) =>
        {
            return Ok(None);
        }
        other => other?,
    };
    if !file.metadata()?.is_file() {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "not a regular file"));
    }
    let mut text = String::new();
    file.take(LARGEST + 1).read_to_string(&mut text)?;
    if text.len() as u64 > LARGEST {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, "larger than 1 MiB"));
    }
    Ok(Some(text))
}
