//! The kernel's two tables: which groups a process is in, and where their trees are mounted.

use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt;
use std::path::{Component, Path, PathBuf};

/// Where the caller's own groups are, as folders.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Own {
    /// By controller, of version 1.
    pub trees: Vec<(String, PathBuf)>,
    /// Of version 2: the folder, and where its tree is mounted.
    pub unified: Option<(PathBuf, PathBuf)>,
}

/// A mounted tree of control groups.
struct Mounted {
    /// The group that is its root here.
    root: PathBuf,
    /// Where.
    at: PathBuf,
    kind: Kind,
}

enum Kind {
    /// Version 1, with these options; controllers are among them.
    Tree(Vec<String>),
    Unified,
}

impl Own {
    /// Reads `/proc/self/cgroup` and `/proc/self/mountinfo`.
    pub(super) fn read() -> Self {
        let read = |file| std::fs::read(file).unwrap_or_default();
        Self::parse(&read("/proc/self/cgroup"), &read("/proc/self/mountinfo"))
    }

    fn parse(groups: &[u8], mounts: &[u8]) -> Self {
        let mounted: Vec<Mounted> = lines(mounts).filter_map(mount).collect();
        let mut own = Self::default();
        for line in lines(groups) {
            let mut fields = line.splitn(3, |byte| *byte == b':');
            let (Some(number), Some(names), Some(group)) =
                (fields.next(), fields.next(), fields.next())
            else {
                continue;
            };
            let group = Path::new(OsStr::from_bytes(group));
            let names = String::from_utf8_lossy(names);
            if number == b"0" && names.is_empty() {
                let unified = mounted.iter().find(|it| matches!(it.kind, Kind::Unified));
                own.unified = unified.and_then(|it| Some((it.folder(group)?, it.at.clone())));
                continue;
            }
            for name in names.split(',') {
                let has = |it: &&Mounted| match &it.kind {
                    Kind::Tree(options) => options.iter().any(|option| option == name),
                    Kind::Unified => false,
                };
                if let Some(folder) = mounted.iter().find(has).and_then(|it| it.folder(group)) {
                    own.trees.push((name.to_owned(), folder));
                }
            }
        }
        own
    }

    /// The caller's group of a controller of version 1.
    pub(super) fn tree(&self, controller: &str) -> Option<&Path> {
        let mut trees = self.trees.iter();
        trees.find(|(name, _)| name == controller).map(|(_, folder)| folder.as_path())
    }
}

/// The group of version 2 that a process is in.
pub(in crate::engine::embedded) fn unified_group_of(pid: u32) -> Option<PathBuf> {
    let groups = std::fs::read(format!("/proc/{pid}/cgroup")).ok()?;
    let mounts = std::fs::read("/proc/self/mountinfo").ok()?;
    Own::parse(&groups, &mounts).unified.map(|(folder, _)| folder)
}

impl Mounted {
    /// The folder of a group; none if it lies outside of what is mounted.
    fn folder(&self, group: &Path) -> Option<PathBuf> {
        let below = group.strip_prefix(&self.root).ok()?;
        let plain = below.components().all(|part| matches!(part, Component::Normal(_)));
        plain.then(|| self.at.join(below).components().collect())
    }
}

fn lines(text: &[u8]) -> impl Iterator<Item = &[u8]> {
    text.split(|byte| *byte == b'\n').filter(|line| !line.is_empty())
}

/// A line of the table of mounts, if it is a tree of control groups.
fn mount(line: &[u8]) -> Option<Mounted> {
    let fields: Vec<&[u8]> = line.split(|byte| *byte == b' ').collect();
    let end = fields.iter().position(|field| *field == b"-")?;
    let (kind, options) = (fields.get(end + 1)?, fields.get(end + 3)?);
    let kind = match *kind {
        b"cgroup2" => Kind::Unified,
        b"cgroup" => {
            let options = String::from_utf8_lossy(options);
            Kind::Tree(options.split(',').map(str::to_owned).collect())
        }
        _ => return None,
    };
    let path = |field: &[u8]| PathBuf::from(OsStr::from_bytes(field));
    Some(Mounted { root: path(fields.get(3)?), at: path(fields.get(4)?), kind })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_one_has_a_folder_for_each_controller() {
        let groups = b"9:name=systemd:/\n8:pids:/a\n4:memory:/a/b\n2:cpu,cpuacct:/a\n0::/\n";
        let mounts = b"30 24 0:26 / /sys/fs/cgroup/memory rw shared:9 - cgroup cgroup rw,memory\n\
                       31 24 0:27 /a /sys/fs/cgroup/pids rw - cgroup cgroup rw,pids\n\
                       32 24 0:28 / /sys/fs/cgroup/cpu,cpuacct rw - cgroup x rw,cpu,cpuacct\n\
                       33 24 0:29 / /sys/fs/cgroup/unified rw - cgroup2 x rw\n";
        let own = Own::parse(groups, mounts);
        assert_eq!(own.tree("memory"), Some(Path::new("/sys/fs/cgroup/memory/a/b")));
        assert_eq!(own.tree("pids"), Some(Path::new("/sys/fs/cgroup/pids")));
        assert_eq!(own.tree("cpu"), Some(Path::new("/sys/fs/cgroup/cpu,cpuacct/a")));
        assert_eq!(own.tree("cpuacct"), own.tree("cpu"));
        let unified = Path::new("/sys/fs/cgroup/unified").to_owned();
        assert_eq!(own.unified, Some((unified.clone(), unified)));
    }

    #[test]
    fn version_two_has_one() {
        let groups = b"0::/user.slice/user-1000.slice/user@1000.service/app.slice/x.scope\n";
        let mounts = b"30 24 0:26 / /sys/fs/cgroup rw,nosuid shared:4 - cgroup2 cgroup2 rw\n";
        let own = Own::parse(groups, mounts);
        let (folder, top) = own.unified.unwrap();
        assert_eq!(top, Path::new("/sys/fs/cgroup"));
        assert!(folder.ends_with("user@1000.service/app.slice/x.scope"));
        assert!(own.trees.is_empty());
    }

    #[test]
    fn a_group_outside_of_what_is_mounted_has_no_folder() {
        let mounts = b"30 24 0:26 /docker/1 /sys/fs/cgroup rw - cgroup2 cgroup2 rw\n";
        assert_eq!(Own::parse(b"0::/docker/2\n", mounts).unified, None);
        assert_eq!(Own::parse(b"0::/../2\n", mounts).unified, None);
        assert_eq!(Own::parse(b"", b""), Own::default());
    }
}
