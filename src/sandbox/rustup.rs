//! Which Rust toolchain a call without `code` gets.
//!
//! Duty: a value for `RUSTUP_TOOLCHAIN`, which is stronger than every file of a project. A project's `rust-toolchain.toml` can
//! name a folder of its own, and then `cargo --version` runs what is in it. So only a channel by its name is taken from
//! the project; it leads to what the caller has installed. Trust boundary: the project's file is the adversary's, the
//! caller's own settings are not.

use std::fs::File;
use std::io::Read;
use std::path::{Path, PathBuf};

use rustix::fs::{Mode, OFlags, ResolveFlags, openat2};

use crate::workspace::Workspace;

/// Longest file that is read.
const MAX_BYTES: u64 = 64 * 1024;
/// A name that no toolchain has: rustup then says that there is none.
const NONE: &str = "no-default-toolchain";
/// The names of a project's file; of two in a folder the first counts.
const FILES: [&str; 2] = ["rust-toolchain", "rust-toolchain.toml"];

/// The toolchain: the channel that the project names, else the caller's default.
pub(super) fn toolchain(
    workspace: &Workspace,
    home: Option<&Path>,
    rustup: Option<&Path>,
) -> String {
    match nearest(workspace) {
        Some(text) => channel(&text),
        None => None,
    }
    .or_else(|| default(home, rustup))
    .unwrap_or_else(|| NONE.to_owned())
}

/// The file that counts for the folder of the call.
fn nearest(workspace: &Workspace) -> Option<String> {
    let below = workspace.cwd().strip_prefix(workspace.root()).ok()?;
    let names = below.ancestors().flat_map(|folder| FILES.map(|name| folder.join(name)));
    names.into_iter().find_map(|path| read(workspace, &path))
}

fn read(workspace: &Workspace, path: &Path) -> Option<String> {
    let flags = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY | OFlags::CLOEXEC;
    let resolve = ResolveFlags::BENEATH | ResolveFlags::NO_MAGICLINKS;
    let handle = openat2(workspace.handle(), path, flags, Mode::empty(), resolve).ok()?;
    text(File::from(handle))
}

fn text(file: impl Read) -> Option<String> {
    let mut text = String::new();
    file.take(MAX_BYTES).read_to_string(&mut text).ok()?;
    Some(text)
}

/// The channel that a project's file names: alone in it, or as `channel = "NAME"`.
fn channel(text: &str) -> Option<String> {
    let lines: Vec<&str> = text.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    match lines.as_slice() {
        [name] if is_name(name) => Some((*name).to_owned()),
        lines => lines.iter().find_map(|line| value(line, "channel")),
    }
}

/// The caller's default, as rustup keeps it.
fn default(home: Option<&Path>, rustup: Option<&Path>) -> Option<String> {
    let folder: PathBuf = match rustup {
        Some(rustup) => rustup.to_owned(),
        None => home?.join(".rustup"),
    };
    let text = text(File::open(folder.join("settings.toml")).ok()?)?;
    text.lines().find_map(|line| value(line.trim(), "default_toolchain"))
}

/// The value of `key = "NAME"`.
fn value(line: &str, key: &str) -> Option<String> {
    let rest = line.strip_prefix(key)?.trim_start().strip_prefix('=')?.trim_start();
    let quote = rest.chars().next().filter(|c| matches!(c, '"' | '\''))?;
    let name = rest[1..].split(quote).next()?;
    is_name(name).then(|| name.to_owned())
}

/// A name of a toolchain, which is no path.
fn is_name(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"._-+".contains(&byte);
    text.len() <= 128
        && text.as_bytes().first().is_some_and(u8::is_ascii_alphanumeric)
        && text.bytes().all(plain)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    #[test]
    fn a_channel_is_taken_by_its_name_and_a_path_is_not() {
        for (text, expected) in [
            ("1.80.0\n", Some("1.80.0")),
            (
                "[toolchain]\nchannel = \"nightly-2024-01-01\" # pinned\n",
                Some("nightly-2024-01-01"),
            ),
            ("[toolchain]\nchannel='stable'\ncomponents=[]\n", Some("stable")),
            ("[toolchain]\npath = \"./evil\"\n", None),
            ("toolchain = { path = \"evil\" }\n", None),
            ("[toolchain]\nchannel = \"../evil\"\n", None),
            ("/w/evil\n", None),
            ("../evil\n", None),
            ("", None),
        ] {
            assert_eq!(channel(text).as_deref(), expected, "{text}");
        }
    }

    #[test]
    fn the_callers_default_stands_in_for_what_is_no_name() {
        let dir = tempfile::tempdir().unwrap();
        let root = dir.path().canonicalize().unwrap();
        let (project, home) = (root.join("w"), root.join("home"));
        fs::create_dir_all(project.join("a/b")).unwrap();
        fs::create_dir_all(home.join(".rustup")).unwrap();
        let of = |cwd: &Path| {
            let workspace =
                Workspace::open_at(&project, cwd, &crate::environment::Environment::default())
                    .unwrap();
            toolchain(&workspace, Some(&home), None)
        };
        assert_eq!(of(&project), NONE);
        fs::write(home.join(".rustup/settings.toml"), "default_toolchain = \"stable-x\"\n")
            .unwrap();
        assert_eq!(of(&project), "stable-x");
        fs::write(project.join("rust-toolchain.toml"), "[toolchain]\nchannel = \"1.80\"\n")
            .unwrap();
        assert_eq!(of(&project.join("a/b")), "1.80");
        fs::write(project.join("a/rust-toolchain"), "[toolchain]\npath = \"x\"\n").unwrap();
        assert_eq!(of(&project.join("a/b")), "stable-x");
    }
}
