//! The walker against synthetic stages, against a model of overlay semantics, and against the
//! kernel.

use super::*;
use crate::stage::dice::Dice;
use rustix::fs::{CWD, FileType, XattrFlags, mknodat, setxattr};
use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// A host and a stage on disk.
struct Case {
    _dir: tempfile::TempDir,
    host: PathBuf,
    upper: PathBuf,
}

fn case() -> Case {
    let dir = tempfile::tempdir().unwrap();
    let (host, upper) = (dir.path().join("host"), dir.path().join("upper"));
    fs::create_dir(&host).unwrap();
    fs::create_dir(&upper).unwrap();
    Case { _dir: dir, host, upper }
}

fn write(root: &Path, path: &str, text: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(path, text).unwrap();
}

fn whiteout(root: &Path, path: &str) {
    let path = root.join(path);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
}

fn opaque(root: &Path, path: &str) {
    let path = root.join(path);
    fs::create_dir_all(&path).unwrap();
    setxattr(&path, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
}

impl Case {
    fn walk_within(&self, bounds: Bounds) -> Result<Vec<Change>, WalkError> {
        let upper = fs::File::open(&self.upper).unwrap();
        let host = fs::File::open(&self.host).unwrap();
        walk(upper.as_fd(), host.as_fd(), bounds)
    }

    fn walk(&self) -> Vec<Change> {
        self.walk_within(Bounds::default()).unwrap()
    }

    /// Each change as a letter and a path.
    fn shown(&self) -> Vec<String> {
        self.walk().iter().map(shown).collect()
    }
}

fn shown(change: &Change) -> String {
    let letter = match &change.what {
        What::File(_) => "file",
        What::Link { .. } => "link",
        What::Folder { .. } => "folder",
        What::Removed => "gone",
        What::Special => "special",
    };
    format!("{letter} {}", change.path.display())
}

#[test]
fn a_stage_that_is_empty_or_was_only_opened_changes_nothing() {
    let case = case();
    write(&case.host, "d/same", "text");
    assert!(case.shown().is_empty());
    write(&case.upper, "d/same", "text");
    whiteout(&case.upper, "d/made-and-removed");
    symlink("x", case.host.join("link")).unwrap();
    symlink("x", case.upper.join("link")).unwrap();
    assert!(case.shown().is_empty());
    fs::set_permissions(case.upper.join("d/same"), fs::Permissions::from_mode(0o755)).unwrap();
    assert_eq!(case.shown(), ["file d/same"]);
    write(&case.upper, "d/same", "tExt");
    assert_eq!(case.shown(), ["file d/same"]);
}

#[test]
fn a_whiteout_of_a_folder_is_every_name_in_it_contents_first() {
    let case = case();
    write(&case.host, "sub/.env", "secret");
    write(&case.host, "sub/deep/x", "");
    write(&case.host, "other", "");
    whiteout(&case.upper, "sub");
    assert_eq!(case.shown(), ["gone sub/.env", "gone sub/deep/x", "gone sub/deep", "gone sub"]);
}

#[test]
fn an_opaque_folder_hides_also_below_folders_without_a_mark() {
    let case = case();
    write(&case.host, "d/old", "");
    write(&case.host, "d/kept", "same");
    write(&case.host, "d/in/old", "");
    write(&case.host, "d/in/deep/old", "");
    opaque(&case.upper, "d");
    write(&case.upper, "d/kept", "same");
    write(&case.upper, "d/in/new", "");
    assert_eq!(
        case.shown(),
        ["gone d/in/deep/old", "gone d/in/deep", "file d/in/new", "gone d/in/old", "gone d/old"]
    );
}

#[test]
fn a_type_change_without_whiteout_removes_what_was_there() {
    let case = case();
    write(&case.host, "a/x/y", "");
    write(&case.host, "b", "");
    write(&case.host, "c/z", "");
    write(&case.upper, "a", "now a file");
    opaque(&case.upper, "b");
    write(&case.upper, "b/new", "");
    symlink("a", case.upper.join("c")).unwrap();
    assert_eq!(
        case.shown(),
        ["gone a/x/y", "gone a/x", "file a", "folder b", "file b/new", "gone c/z", "link c"]
    );
    let changes = case.walk();
    assert!(matches!(changes[2].host, Host::Folder(_)) && matches!(changes[3].host, Host::File(_)));
}

/// Gives a user rights by an access list.
fn list(root: &Path, path: &str, attribute: &str, user: u32) {
    let mut bytes = 2u32.to_le_bytes().to_vec();
    let none = u32::MAX;
    for (tag, rights, id) in
        [(1u16, 7u16, none), (2, 6, user), (4, 5, none), (0x10, 7, none), (0x20, 0, none)]
    {
        bytes.extend(tag.to_le_bytes());
        bytes.extend(rights.to_le_bytes());
        bytes.extend(id.to_le_bytes());
    }
    setxattr(root.join(path), attribute, &bytes, XattrFlags::empty()).unwrap();
}

#[test]
fn an_access_list_that_the_host_does_not_give_is_special() {
    let (entry, default) = (access::ACCESS, access::DEFAULT);
    let case = case();
    // The controls: what the host has, and what its folder gives to new entries.
    for folder in ["host", "upper"] {
        let root = if folder == "host" { &case.host } else { &case.upper };
        write(root, "own", folder);
        list(root, "own", entry, 7);
        write(root, "shared/old", folder);
        list(root, "shared", default, 7);
    }
    write(&case.upper, "shared/new", "");
    write(&case.upper, "shared/deep/er/new", "");
    write(&case.upper, "shared/old", "saved anew");
    // The attacks: another user, another file, a folder, and one below a folder of the host.
    write(&case.host, "changed", "1");
    write(&case.upper, "changed", "2");
    list(&case.upper, "changed", entry, 7);
    write(&case.upper, "other", "");
    list(&case.upper, "other", entry, 7);
    write(&case.upper, "shared/other", "");
    list(&case.upper, "shared/other", entry, 8);
    write(&case.upper, "folder/x", "");
    list(&case.upper, "folder", entry, 7);
    write(&case.upper, "later/x", "");
    list(&case.upper, "later", default, 7);
    write(&case.host, "there/x", "");
    fs::create_dir(case.upper.join("there")).unwrap();
    list(&case.upper, "there", default, 7);
    write(&case.upper, "there/new", "");
    let mut shown = case.shown();
    shown.sort_unstable();
    assert_eq!(
        shown,
        [
            "file own",
            "file shared/deep/er/new",
            "file shared/new",
            "file shared/old",
            "folder shared/deep",
            "folder shared/deep/er",
            "special changed",
            "special folder",
            "special later",
            "special other",
            "special shared/other",
            "special there/new",
        ]
    );
}

#[test]
fn specials_strange_names_and_long_paths_are_listed() {
    let case = case();
    let name = OsStr::from_bytes(b"\xff\n\xfe");
    fs::write(case.upper.join(name), "").unwrap();
    mknodat(CWD, case.upper.join("pipe"), FileType::Fifo, Mode::from(0o600), 0).unwrap();
    let long = "n".repeat(250);
    let mut folder: OwnedFd = fs::File::open(&case.upper).unwrap().into();
    for _ in 0..20 {
        rustix::fs::mkdirat(&folder, &long, Mode::from(0o755)).unwrap();
        let flags = OFlags::RDONLY | OFlags::DIRECTORY;
        folder = openat(&folder, &long, flags, Mode::empty()).unwrap();
    }
    let changes = case.walk();
    assert!(changes.iter().any(|change| change.path == Path::new(name)));
    assert!(changes.iter().any(|change| change.what == What::Special));
    assert!(changes.iter().any(|change| change.path.as_os_str().len() > 4096));
}

#[test]
fn every_bound_is_an_error() {
    let case = case();
    write(&case.upper, "a/b/c/d", "12345");
    let all = Bounds::default();
    assert_eq!(
        case.walk_within(Bounds { entries: 4, depth: 3, bytes: 5, names: 16 }).unwrap().len(),
        4
    );
    let fails = |bounds: Bounds| case.walk_within(bounds).unwrap_err();
    assert!(matches!(fails(Bounds { entries: 3, ..all }), WalkError::TooMany(3)));
    assert!(matches!(fails(Bounds { depth: 2, ..all }), WalkError::TooDeep(_)));
    assert!(matches!(fails(Bounds { bytes: 4, ..all }), WalkError::TooLarge(4)));
    assert!(matches!(fails(Bounds { names: 15, ..all }), WalkError::TooLong(15)));
    // Names of the host count where they are hidden.
    write(&case.host, "gone/x", "");
    write(&case.host, "gone/y", "");
    whiteout(&case.upper, "gone");
    assert!(matches!(fails(Bounds { entries: 6, ..all }), WalkError::TooMany(6)));
    assert!(case.walk_within(Bounds { entries: 7, ..all }).is_ok());
}

#[test]
fn a_file_system_that_is_mounted_on_the_host_is_not_entered() {
    let script = r#"
        set -e
        mkdir host/m upper/m && echo below > host/m/below
        mount -t tmpfs none host/m && echo mounted > host/m/mounted
        echo new > upper/m/new && exec "$0" --exact stage::walk::tests::inner_walk --nocapture
    "#;
    let case = case();
    let lines = inner(&case, script);
    assert_eq!(lines, ["file m/new over Other"]);
    let gone = "set -e; mkdir host/g; mount -t tmpfs none host/g; echo x > host/g/x; \
                mknod upper/g c 0 0; exec \"$0\" --exact stage::walk::tests::inner_walk --nocapture";
    assert!(inner(&case, gone).contains(&"gone g over Other".to_owned()));
}

/// Runs a script in a mount namespace of its own; it ends in [`inner_walk`], whose lines are
/// returned.
fn inner(case: &Case, script: &str) -> Vec<String> {
    let program = std::env::current_exe().unwrap();
    let done = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .arg(program)
        .current_dir(case.host.parent().unwrap())
        .env("RUNNER_TEST_WALK", case.host.parent().unwrap())
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success(), "{text}{}", String::from_utf8_lossy(&done.stderr));
    text.lines().filter_map(|line| line.strip_prefix("walked ")).map(str::to_owned).collect()
}

/// The part of tests above that runs in a namespace; nothing by itself.
#[test]
fn inner_walk() {
    let Some(folder) = std::env::var_os("RUNNER_TEST_WALK") else { return };
    let upper = fs::File::open(Path::new(&folder).join("upper")).unwrap();
    let host = fs::File::open(Path::new(&folder).join("host")).unwrap();
    for change in walk(upper.as_fd(), host.as_fd(), Bounds::default()).unwrap() {
        let host = format!("{:?}", change.host);
        let host = host.split(['(', ' ', '{']).next().unwrap().to_owned();
        println!("\nwalked {} over {host}", shown(&change));
    }
}

#[test]
fn an_ordinary_owner_reads_closed_folders_and_leaves_their_modes() {
    let case = case();
    let top = case.host.parent().unwrap();
    write(&case.upper, "closed/in/file", "");
    opaque(&case.upper, "closed/in");
    for folder in ["closed/in", "closed"] {
        let path = case.upper.join(folder);
        fs::set_permissions(path, fs::Permissions::from_mode(0o000)).unwrap();
    }
    let given = Command::new("chown").args(["-R", "65534:65534"]).arg(top).status().unwrap();
    assert!(given.success());
    // The test program lies in a folder that only root may enter: it is handed over as a
    // descriptor.
    let script = r#"
        import os, sys
        program = os.open(sys.argv[1], os.O_RDONLY | os.O_CLOEXEC)
        os.setgroups([]); os.setgid(65534); os.setuid(65534)
        os.execve(program, ["walk", "--exact", "stage::walk::tests::inner_walk", "--nocapture"], os.environ)
    "#;
    let script: String = script.lines().map(|line| format!("{}\n", line.trim_start())).collect();
    let done = Command::new("python3")
        .args(["-c", &script])
        .arg(std::env::current_exe().unwrap())
        .env("RUNNER_TEST_WALK", top)
        .current_dir(top)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    let lines: Vec<&str> = text.lines().filter_map(|line| line.strip_prefix("walked ")).collect();
    let error = String::from_utf8_lossy(&done.stderr);
    assert_eq!(
        lines,
        [
            "folder closed over Absent",
            "folder closed/in over Absent",
            "file closed/in/file over Absent"
        ],
        "{text}{error}"
    );
    for folder in ["closed", "closed/in"] {
        let mode = fs::metadata(case.upper.join(folder)).unwrap().permissions().mode();
        assert_eq!(mode & 0o7777, 0, "{folder}");
    }
}

/// What stands at a path.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Node {
    File(String, u32),
    Link(String),
    Folder(u32),
    Pipe,
    // Only in stages:
    Opaque(u32),
    Whiteout,
}

type Tree = BTreeMap<PathBuf, Node>;

impl Dice {
    fn tree(&mut self, kinds: usize) -> Tree {
        let mut tree = Tree::new();
        let mut folders = vec![PathBuf::new()];
        for _ in 0..self.roll(14) {
            let path = folders[self.roll(folders.len())].join(self.pick(&["a", "b", "c", "d"]));
            if path.iter().count() > 4 || tree.contains_key(&path) {
                continue;
            }
            let node = match self.roll(kinds) {
                0 | 1 => {
                    Node::File(["x", "yy"][self.roll(2)].to_owned(), [0o644, 0o755][self.roll(2)])
                }
                2 | 3 => Node::Folder([0o755, 0o700, 0][self.roll(3)]),
                4 => Node::Link(["a", "b"][self.roll(2)].to_owned()),
                5 => Node::Pipe,
                6 => Node::Opaque([0o755, 0o700][self.roll(2)]),
                _ => Node::Whiteout,
            };
            if matches!(node, Node::Folder(_) | Node::Opaque(_)) {
                folders.push(path.clone());
            }
            tree.insert(path, node);
        }
        tree
    }
}

fn build(root: &Path, tree: &Tree) {
    for (path, node) in tree {
        let path = root.join(path);
        match node {
            Node::File(text, mode) => {
                fs::write(&path, text).unwrap();
                fs::set_permissions(&path, fs::Permissions::from_mode(*mode)).unwrap();
            }
            Node::Link(target) => symlink(target, &path).unwrap(),
            Node::Folder(_) | Node::Opaque(_) => fs::create_dir(&path).unwrap(),
            Node::Pipe => mknodat(CWD, &path, FileType::Fifo, Mode::from(0o644), 0).unwrap(),
            Node::Whiteout => {
                mknodat(CWD, &path, FileType::CharacterDevice, Mode::empty(), 0).unwrap();
            }
        }
        if let Node::Opaque(_) = node {
            setxattr(&path, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
        }
    }
    for (path, node) in tree.iter().rev() {
        if let Node::Folder(mode) | Node::Opaque(mode) = node {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(*mode)).unwrap();
        }
    }
}

/// What a process in the overlay sees.
fn merged(host: &Tree, stage: &Tree) -> Tree {
    let mut seen = Tree::new();
    for (path, node) in host {
        let covered = path
            .ancestors()
            .skip(1)
            .any(|above| stage.get(above).is_some_and(|node| !matches!(node, Node::Folder(_))));
        if !covered {
            seen.insert(path.clone(), node.clone());
        }
    }
    for (path, node) in stage {
        match node {
            Node::Whiteout => seen.remove(path),
            Node::Opaque(mode) => seen.insert(path.clone(), Node::Folder(*mode)),
            node => seen.insert(path.clone(), node.clone()),
        };
    }
    // What is below something that is no folder now is not seen.
    let folder = |path: &Path| {
        path.as_os_str().is_empty() || matches!(seen.get(path), Some(Node::Folder(_)))
    };
    let gone: Vec<PathBuf> =
        seen.keys().filter(|path| !path.ancestors().skip(1).all(folder)).cloned().collect();
    for path in gone {
        seen.remove(&path);
    }
    seen
}

/// Applies one change to a model of the host, and fails where a file system would.
fn apply(tree: &mut Tree, change: &Change, upper: &Path) {
    let path = &change.path;
    let parent = path.parent().unwrap();
    let parent_is_folder =
        parent.as_os_str().is_empty() || matches!(tree.get(parent), Some(Node::Folder(_)));
    assert!(parent_is_folder, "no folder for {change:?}");
    let empty = !tree.keys().any(|other| other != path && other.starts_with(path));
    let node = match &change.what {
        What::Removed => {
            assert!(empty, "not empty: {change:?}");
            assert!(tree.remove(path).is_some(), "nothing to remove: {change:?}");
            return;
        }
        What::Folder { mode } => Node::Folder(*mode),
        What::File(staged) => {
            assert!(empty, "over a folder: {change:?}");
            Node::File(fs::read_to_string(upper.join(path)).unwrap(), staged.mode)
        }
        What::Link { target } => Node::Link(target.to_str().unwrap().to_owned()),
        What::Special => Node::Pipe,
    };
    assert_ne!(tree.insert(path.clone(), node.clone()), Some(node), "no change: {change:?}");
}

#[test]
fn random_stages_give_what_a_model_of_the_overlay_shows() {
    let rounds = std::env::var("RUNNER_ROUNDS").ok().and_then(|text| text.parse().ok());
    let mut dice = Dice(0x9E37_79B9_7F4A_7C15);
    for round in 0..rounds.unwrap_or(400) {
        let (host, stage) = (dice.tree(6), dice.tree(9));
        let case = case();
        build(&case.host, &host);
        build(&case.upper, &stage);
        let changes = case.walk();
        let mut after = host.clone();
        for change in &changes {
            apply(&mut after, change, &case.upper);
        }
        assert_eq!(after, merged(&host, &stage), "round {round}: {host:?} under {stage:?}");
        let mut paths: Vec<&Path> = changes.iter().map(|change| change.path.as_path()).collect();
        paths.sort();
        assert!(paths.windows(2).all(|pair| pair[0] != pair[1]), "round {round}");
    }
}

/// Carries changes out on disk, as simply as can be.
fn carry_out(changes: &[Change], upper: &Path, host: &Path) {
    let remove = |path: &Path| match fs::symlink_metadata(path) {
        Ok(found) if found.is_dir() => fs::remove_dir(path).unwrap(),
        Ok(_) => fs::remove_file(path).unwrap(),
        Err(_) => {}
    };
    for change in changes {
        let (from, to) = (upper.join(&change.path), host.join(&change.path));
        match &change.what {
            What::Removed => remove(&to),
            What::Folder { mode } => {
                if !matches!(change.host, Host::Folder(_)) {
                    remove(&to);
                    fs::create_dir(&to).unwrap();
                }
                fs::set_permissions(&to, fs::Permissions::from_mode(*mode)).unwrap();
            }
            What::File(_) => {
                remove(&to);
                fs::copy(&from, &to).unwrap();
            }
            What::Link { target } => {
                remove(&to);
                symlink(target, &to).unwrap();
            }
            What::Special => {}
        }
    }
}

#[test]
fn real_programs_in_a_real_overlay_leave_what_the_walk_says() {
    let case = case();
    let top = case.host.parent().unwrap().to_owned();
    let script = r#"
        set -e
        export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
        g() { git -c user.name=a -c user.email=a@b -c core.fileMode=true "$@"; }
        cd host
        g init -q -b main; mkdir -p src/deep old/in mv/in; echo a > src/a; echo b > src/deep/b
        echo c > old/in/c; echo d > mv/in/d; echo e > opened; echo f > moded; ln -s src link
        echo g > type; mkdir -p totype/x; echo h > totype/x/h; echo i > hard
        g add -A; g commit -qm one
        cd ..
        mkdir work view
        mount -t overlay overlay -o userxattr,nosuid,nodev,lowerdir=host,upperdir=upper,workdir=work view
        cd view
        echo more >> src/a; g commit -qam two; g switch -qc topic; echo z > src/z; g add -A
        g commit -qm three; g stash list; g rebase -q main
        rm -rf old; mkdir old; echo new > old/new
        mv mv moved
        : >> opened; chmod 700 moded; chmod 750 src/deep
        rm link; ln -s old link
        rm type; mkdir type; echo t > type/t
        rm -rf totype; echo file > totype
        ln hard harder; mkdir closed; echo s > closed/s; chmod 000 closed
        setfattr -n user.overlay.opaque -v y src
        cd ..
        list() { (cd "$1"; find . -mindepth 1 \( -type f -printf '%P %y %m %s ' -exec sha256sum {} \; \
          -o -printf '%P %y %m %l\n' \) | sed 's/  .*//' | sort); }
        list view > view.list
        list host > host.before
        umount view
    "#;
    let done = Command::new("unshare")
        .args(["-m", "sh", "-c", script])
        .current_dir(&top)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let changes = case.walk();
    let of = |path: &str| changes.iter().find(|change| change.path == Path::new(path));
    assert!(of("opened").is_none() && of("src").is_none(), "only opened, or only copied up");
    let origin = |path: &str| match of(path).map(|change| &change.what) {
        Some(What::File(staged)) => staged.origin,
        other => panic!("{path}: {other:?}"),
    };
    assert_eq!(origin("src/a"), Origin::Host);
    assert_eq!(origin("moded"), Origin::Host);
    assert_eq!(origin("src/z"), Origin::New);
    assert_eq!(origin("harder"), Origin::Unknown);
    // A further name of a file that the host still has, as cargo makes them; and of one that it has no more.
    assert!(of("hard").is_none() && !of("harder").unwrap().lost);
    fs::rename(case.host.join("hard"), top.join("aside")).unwrap();
    let without = case.walk();
    let harder = without.iter().find(|change| change.path == Path::new("harder")).unwrap();
    assert!(harder.lost);
    fs::rename(top.join("aside"), case.host.join("hard")).unwrap();
    carry_out(&changes, &case.upper, &case.host);
    let list = r#"(cd host; find . -mindepth 1 \( -type f -printf '%P %y %m %s ' -exec sha256sum {} \; \
          -o -printf '%P %y %m %l\n' \) | sed 's/  .*//' | sort) > host.list"#;
    assert!(Command::new("sh").args(["-c", list]).current_dir(&top).status().unwrap().success());
    let read = |name: &str| fs::read_to_string(top.join(name)).unwrap();
    assert_ne!(read("host.before"), read("view.list"));
    assert_eq!(read("host.list"), read("view.list"));
}
