//! The content of the files that we make for a sandbox.
//!
//! Duty: `passwd`, `group`, `hosts`, `nsswitch.conf` and git's configuration, as text. Non-goals: placing
//! them. Trust boundary: a workspace's path and a caller's name go into git's configuration, where
//! quotes and line ends would be syntax; they are escaped.

use std::os::unix::ffi::OsStrExt;
use std::path::{Path, PathBuf};

use crate::engine::plan::{SyntheticRole, UserChoice};
use crate::git_index::SPARSE_CONFIG;

/// The home of every command: a folder in memory, which ends with the sandbox.
pub const HOME: &str = "/home/runner";

/// What the user is called inside.
pub const USER: &str = "runner";

/// Who the caller is to git.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct GitIdentity {
    /// `user.name`.
    pub name: Option<String>,
    /// `user.email`.
    pub email: Option<String>,
}

/// Files for image `host`: target, content, role.
#[must_use]
pub fn files(
    user: &UserChoice,
    safe: &[&Path],
    identity: &GitIdentity,
    names: Names,
) -> Vec<(PathBuf, Vec<u8>, SyntheticRole)> {
    let mut files = vec![
        (PathBuf::from("/etc/passwd"), passwd(user).into_bytes(), SyntheticRole::Passwd),
        (PathBuf::from("/etc/group"), group(user).into_bytes(), SyntheticRole::Group),
        (PathBuf::from("/etc/hosts"), hosts().into_bytes(), SyntheticRole::Hosts),
        (PathBuf::from("/etc/nsswitch.conf"), nsswitch(names), SyntheticRole::NameSwitch),
        git(safe, identity),
    ];
    files.extend((names == Names::Answered).then(resolver));
    files
}

/// Where names come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Names {
    /// From files alone.
    Files,
    /// Also from the guest, which answers for the names of the call's network.
    Answered,
}

/// The only name server is the guest.
#[must_use]
pub fn resolver() -> (PathBuf, Vec<u8>, SyntheticRole) {
    let text = b"nameserver 127.0.0.1\noptions ndots:1 timeout:5 attempts:2\n".to_vec();
    (PathBuf::from("/etc/resolv.conf"), text, SyntheticRole::Resolver)
}

/// Git's configuration alone, for images that have a user table of their own.
#[must_use]
pub fn git(safe: &[&Path], identity: &GitIdentity) -> (PathBuf, Vec<u8>, SyntheticRole) {
    // In the home: where a git looks for its system file depends on how it was built.
    (Path::new(HOME).join(".gitconfig"), gitconfig(safe, identity), SyntheticRole::GitConfig)
}

fn passwd(user: &UserChoice) -> String {
    let mut text = String::new();
    if user.uid != 0 {
        text.push_str("root:x:0:0:root:/:/usr/sbin/nologin\n");
    }
    text.push_str(&format!("{USER}:x:{}:{}:{USER}:{HOME}:/bin/sh\n", user.uid, user.gid));
    if user.uid != super::user::NOBODY {
        text.push_str("nobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n");
    }
    text
}

fn group(user: &UserChoice) -> String {
    let mut text = String::new();
    if user.gid != 0 {
        text.push_str("root:x:0:\n");
    }
    text.push_str(&format!("{USER}:x:{}:\n", user.gid));
    if user.gid != super::user::NOBODY {
        text.push_str("nogroup:x:65534:\n");
    }
    text
}

fn hosts() -> String {
    "127.0.0.1\tlocalhost sandbox\n::1\tlocalhost ip6-localhost ip6-loopback\n".to_owned()
}

fn nsswitch(names: Names) -> Vec<u8> {
    let hosts = match names {
        // No service outside: names come from files alone.
        Names::Files => "files",
        Names::Answered => "files dns",
    };
    format!(
        "passwd: files\ngroup: files\nshadow: files\nhosts: {hosts}\nservices: files\nprotocols: files\n"
    )
    .into_bytes()
}

fn gitconfig(safe: &[&Path], identity: &GitIdentity) -> Vec<u8> {
    let mut text = Vec::new();
    if !safe.is_empty() {
        text.extend(b"[safe]\n");
        for folder in safe {
            line(&mut text, "directory", folder.as_os_str().as_bytes());
        }
    }
    if identity.name.is_some() || identity.email.is_some() {
        text.extend(b"[user]\n");
        for (key, value) in [("name", &identity.name), ("email", &identity.email)] {
            if let Some(value) = value {
                line(&mut text, key, value.as_bytes());
            }
        }
    }
    let (key, value) = SPARSE_CONFIG;
    if let Some((section, name)) = key.split_once('.') {
        text.extend(format!("[{section}]\n\t{name} = {value}\n").bytes());
    }
    // No signing key is here, and housekeeping is not this call's business.
    text.extend(b"[commit]\n\tgpgSign = false\n[tag]\n\tgpgSign = false\n");
    text.extend(
        b"[gc]\n\tauto = 0\n[maintenance]\n\tauto = false\n[advice]\n\tdetachedHead = false\n",
    );
    text
}

/// `key = "value"`, escaped as git reads it.
fn line(text: &mut Vec<u8>, key: &str, value: &[u8]) {
    text.extend(b"\t");
    text.extend(key.as_bytes());
    text.extend(b" = \"");
    for byte in value {
        match byte {
            b'"' => text.extend(b"\\\""),
            b'\\' => text.extend(b"\\\\"),
            b'\n' => text.extend(b"\\n"),
            b'\t' => text.extend(b"\\t"),
            b'\r' | 0 => {}
            byte => text.push(*byte),
        }
    }
    text.extend(b"\"\n");
}

/// Reads `user.name` and `user.email` from the caller's own git configuration. What is included from
/// elsewhere is not read; a repository's own values apply anyway.
#[must_use]
pub fn git_identity(home: Option<&Path>) -> GitIdentity {
    let mut identity = GitIdentity::default();
    for name in [".config/git/config", ".gitconfig"] {
        let Some(text) = home.and_then(|home| std::fs::read_to_string(home.join(name)).ok()) else {
            continue;
        };
        let mut in_user = false;
        for line in text.lines().map(str::trim) {
            if let Some(section) = line.strip_prefix('[') {
                in_user = section.trim_end_matches(']').trim().eq_ignore_ascii_case("user");
            } else if in_user && let Some((key, value)) = line.split_once('=') {
                let value = value.trim().trim_matches('"').to_owned();
                match key.trim().to_ascii_lowercase().as_str() {
                    "name" => identity.name = Some(value),
                    "email" => identity.email = Some(value),
                    _ => {}
                }
            }
        }
    }
    identity
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::engine::plan::WhyUser;

    fn text(uid: u32, role: SyntheticRole) -> String {
        let user = UserChoice { uid, gid: uid, why: WhyUser::Caller };
        let all =
            files(&user, &[Path::new("/w/a \"b\"\\\nc")], &GitIdentity::default(), Names::Files);
        String::from_utf8(all.into_iter().find(|file| file.2 == role).unwrap().1).unwrap()
    }

    #[test]
    fn every_user_has_one_name_and_one_home() {
        for uid in [0, 1000, 65_534] {
            let table = text(uid, SyntheticRole::Passwd);
            let mine: Vec<&str> =
                table.lines().filter(|line| line.contains(&format!(":x:{uid}:"))).collect();
            assert_eq!(mine, [format!("runner:x:{uid}:{uid}:runner:{HOME}:/bin/sh")]);
            assert!(text(uid, SyntheticRole::Group).contains(&format!("runner:x:{uid}:")));
        }
    }

    #[test]
    fn a_path_cannot_end_its_line_in_the_configuration() {
        let config = text(1, SyntheticRole::GitConfig);
        assert!(config.contains("directory = \"/w/a \\\"b\\\"\\\\\\nc\"\n"), "{config}");
    }

    #[test]
    fn git_reads_back_what_was_written() {
        let dir = tempfile::tempdir().unwrap();
        let identity = GitIdentity {
            name: Some("Ann \"A\" O\\B".to_owned()),
            email: Some("a@b.example".to_owned()),
        };
        let folder = Path::new("/w/x y\n#;z");
        let file = dir.path().join("config");
        std::fs::write(&file, git(&[folder], &identity).1).unwrap();
        let get = |key: &str| {
            let out = std::process::Command::new("git")
                .args(["config", "-z", "--file"])
                .arg(&file)
                .arg(key)
                .output()
                .unwrap();
            String::from_utf8(out.stdout).unwrap()
        };
        assert_eq!(get(SPARSE_CONFIG.0), format!("{}\0", SPARSE_CONFIG.1));
        assert_eq!(get("user.name"), "Ann \"A\" O\\B\0");
        assert_eq!(get("user.email"), "a@b.example\0");
        assert_eq!(get("safe.directory"), "/w/x y\n#;z\0");
    }

    #[test]
    fn the_callers_own_name_is_found() {
        let home = tempfile::tempdir().unwrap();
        std::fs::write(
            home.path().join(".gitconfig"),
            "[core]\n\tname = no\n[user]\n\tname = Ann\n\temail = \"a@b\"\n",
        )
        .unwrap();
        let found = git_identity(Some(home.path()));
        assert_eq!(
            found,
            GitIdentity { name: Some("Ann".to_owned()), email: Some("a@b".to_owned()) }
        );
        assert_eq!(git_identity(None), GitIdentity::default());
    }
}
