//! What is applied and what is held: each attack beside a control.

use super::*;
use crate::stage::change::Why;
use crate::stage::walk::{Bounds, walk};
use crate::workspace::grants::tests::{Globs, globs};
use crate::workspace::grants::{Code, Companion, PathSet};
use rustix::fs::{CWD, FileType, Mode, XattrFlags, mknodat, setxattr};
use std::fs;
use std::os::fd::AsFd;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::process::Command;

/// A host and a stage on disk, and a policy.
struct Case {
    _dir: tempfile::TempDir,
    host: PathBuf,
    upper: PathBuf,
    write: Globs,
    readonly: Globs,
    deny: Globs,
    create: Vec<Companion>,
    covered: BTreeSet<PathBuf>,
    kind: RootKind,
    system: System,
    links: BTreeSet<PathBuf>,
}

fn case_with(write: &[&str]) -> Case {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let (host, upper) = (top.join("host"), top.join("upper"));
    fs::create_dir(&host).unwrap();
    fs::create_dir(&upper).unwrap();
    Case {
        system: System::default(),
        links: BTreeSet::new(),
        _dir: dir,
        host,
        upper,
        write: globs(write),
        readonly: globs(&[]),
        deny: globs(&[]),
        create: Vec::new(),
        covered: BTreeSet::new(),
        kind: RootKind::Workspace,
    }
}

/// A policy that lets everything be written.
fn case() -> Case {
    case_with(&["**"])
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

fn git(folder: &Path, args: &[&str]) {
    let done = Command::new("git")
        .args(["-c", "user.name=a", "-c", "user.email=a@b", "-c", "init.defaultBranch=main"])
        .args(args)
        .current_dir(folder)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    assert!(done.status.success(), "{args:?}: {}", String::from_utf8_lossy(&done.stderr));
}

impl Case {
    fn stage(&self, path: &str, text: &str) -> &Self {
        write(&self.upper, path, text);
        self
    }

    fn link(&self, path: &str, target: &str) -> &Self {
        let path = self.upper.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        symlink(target, path).unwrap();
        self
    }

    fn repository(&self, folder: &str) -> &Self {
        let folder = self.host.join(folder);
        fs::create_dir_all(&folder).unwrap();
        git(&folder, &["init", "-q"]);
        git(&folder, &["commit", "-q", "--allow-empty", "-m", "x"]);
        self
    }

    fn judge(&self) -> Vec<Judged> {
        self.judge_by(&self.write)
    }

    fn judge_by(&self, write: &dyn PathSet) -> Vec<Judged> {
        let (host, upper) =
            (fs::File::open(&self.host).unwrap(), fs::File::open(&self.upper).unwrap());
        let changes = walk(upper.as_fd(), host.as_fd(), Bounds::default()).unwrap();
        let grants = FileGrants {
            policy: [0; 32],
            read: write,
            write,
            create: &self.create,
            readonly: &self.readonly,
            deny: &self.deny,
            writes: Writes::Some,
            code: Code::Granted,
        };
        let rules = Rules {
            grants: &grants,
            policy: "test",
            covered: &self.covered,
            root: &self.host,
            kind: self.kind,
            host: host.as_fd(),
            upper: upper.as_fd(),
            repositories: &BTreeSet::new(),
            links: &self.links,
            home: self.host.parent(),
            led: &[],
            system: &self.system,
        };
        judge(changes, &rules)
    }

    /// The paths that are held, with the kind of reason.
    fn held(&self) -> Vec<(String, Why)> {
        let held = |judged: Judged| match judged.verdict {
            Verdict::Hold(held) => {
                assert!(
                    !held.reason.is_empty() && !held.next.is_empty() && held.rule.contains('/')
                );
                Some((judged.change.path.display().to_string(), held.why))
            }
            Verdict::Apply => None,
        };
        self.judge().into_iter().filter_map(held).collect()
    }

    fn why(&self, path: &str) -> Option<Why> {
        let judged = self.judge();
        let found = judged.iter().find(|judged| judged.change.path == Path::new(path));
        match &found.unwrap_or_else(|| panic!("{path} is no change")).verdict {
            Verdict::Hold(held) => Some(held.why),
            Verdict::Apply => None,
        }
    }

    fn applied(&self) -> Vec<String> {
        let all = self.judge().into_iter();
        all.filter(|judged| judged.verdict == Verdict::Apply)
            .map(|judged| judged.change.path.display().to_string())
            .collect()
    }
}

#[test]
fn build_folders_beside_a_manifest_of_the_host_are_writable() {
    use runner_policy::{Origin, PolicySet, Source, parse};
    let text = "policy: 1\nname: p\nfiles: { packages: { package.json: [\"dist/**\"] } }\n";
    let mut set = PolicySet::default();
    set.add(parse(Source { file: "p", text, origin: Origin::User }).unwrap()).unwrap();
    let policy = set.effective("p").unwrap();
    let lists = crate::workspace::lists::Lists::new(&policy);
    let grants = lists.grants(Writes::Some, Code::Granted);
    let case = case_with(&[]);
    for path in ["a/package.json", "a/dist/old", "node_modules/x/package.json", "real.json"] {
        write(&case.host, path, "{}");
    }
    // Neither a link nor a folder is a manifest.
    for folder in ["link", "folder/package.json"] {
        fs::create_dir_all(case.host.join(folder)).unwrap();
    }
    symlink("../real.json", case.host.join("link/package.json")).unwrap();
    case.stage("a/dist/new/x", "").stage("a/dist/old", "changed").link("a/dist/to", "../src");
    case.stage("a/src/x", "").stage("a/package.json", "changed").stage("a/distx/x", "");
    case.stage("node_modules/x/dist/x", "").stage("link/dist/x", "").stage("folder/dist/x", "");
    // A package of the call's own making is none.
    case.stage("new/package.json", "{}").stage("new/dist/x", "");
    // What the host runs is held in a build folder too.
    case.stage("a/dist/.envrc", "").stage("a/dist/.github/workflows/w.yml", "");
    case.link("a/dist/out", "../../../out");
    let judged = case.judge_by(grants.write);
    let mut applied: Vec<String> = judged
        .into_iter()
        .filter(|judged| judged.verdict == Verdict::Apply)
        .map(|judged| judged.change.path.display().to_string())
        .filter(|path| !case.host.join(path).is_dir())
        .collect();
    applied.sort();
    let folders = ["a/dist/.github", "a/dist/new"].map(str::to_owned);
    applied.retain(|path| !folders.contains(path));
    assert_eq!(applied, ["a/dist/new/x", "a/dist/old", "a/dist/to"]);
}

#[test]
fn what_the_workspace_protects_is_never_written_here() {
    let patterns = runner_policy::paths::PROTECTED.iter().map(|text| (*text).to_owned());
    for pattern in patterns {
        let sample = pattern
            .replace("**/", "")
            .replace("/**", "/x")
            .replace("{gitdir,commondir}", "gitdir")
            .replace("{rebase-merge,rebase-apply,sequencer}", "sequencer")
            .replace('*', "x");
        for sample in [sample.clone(), format!("deep/{sample}")] {
            let case = case();
            // In a repository that exists, and where none is.
            if sample.starts_with(".git/") {
                case.repository("");
                let _ = fs::remove_dir_all(case.host.join(&sample));
                let _ = fs::remove_file(case.host.join(&sample));
            }
            case.stage(&sample, "[core]\n\tfsmonitor = x\n");
            assert_eq!(case.why(&sample), Some(Why::RunsOnHost), "{sample} of {pattern}");
        }
    }
}

#[test]
fn names_that_run_are_held_as_files_links_and_removals_and_the_rest_goes() {
    let case = case();
    write(&case.host, ".vscode/tasks.json", "{}");
    write(&case.host, "app/.envrc", "");
    whiteout(&case.upper, ".vscode");
    whiteout(&case.upper, "app/.envrc");
    case.stage("build/.ENVRC", "x")
        .stage("build/.bashrc", "x")
        .stage("build/.runner/config.yml", "x");
    case.stage("build/out.o", "x").stage(".claude/settings.json", "x").stage("CLAUDE.md", "x");
    case.link(".husky", "build")
        .link("hooks", "build")
        .link("x/.cargo", "../build")
        .link("x/.yarn", "../build");
    let never = |path: &str| (path.to_owned(), Why::RunsOnHost);
    assert_eq!(
        case.held(),
        [
            never(".claude"),
            never(".claude/settings.json"),
            never(".husky"),
            never(".vscode/tasks.json"),
            never(".vscode"),
            never("app/.envrc"),
            never("build/.ENVRC"),
            never("build/.bashrc"),
            never("build/.runner"),
            never("build/.runner/config.yml"),
            never("x/.cargo"),
            ("x/.yarn".to_owned(), Why::Named),
        ]
    );
    assert_eq!(case.applied(), ["CLAUDE.md", "build", "build/out.o", "hooks", "x"]);
}

#[test]
fn new_repositories_of_every_form_are_held() {
    let evil = "[core]\n\tfsmonitor = touch canary\n";
    // `.git` as folder, as file and as link.
    let case1 = case();
    case1
        .repository("")
        .stage("build/.git/config", evil)
        .stage("build/.git/HEAD", "ref: refs/heads/x");
    case1.stage("a/.git", "gitdir: ./store\n").link("b/.git", "../store").stage("c/.Git/x", "");
    case1.stage("build/x.o", "");
    for path in
        ["build/.git", "build/.git/config", "build/.git/HEAD", "a/.git", "b/.git", "c/.Git/x"]
    {
        assert_eq!(case1.why(path), Some(Why::RunsOnHost), "{path}");
    }
    assert_eq!(case1.why("build/x.o"), None);
    // A bare one, under any name, in any case.
    let case2 = case();
    case2
        .stage("store/HEAD", "ref: refs/heads/x")
        .stage("store/Objects/x", "")
        .stage("store/refs/x", "");
    case2.stage("store/config", evil).stage("store/readme", "");
    for path in ["store/HEAD", "store/Objects", "store/Objects/x", "store/refs", "store/refs/x"] {
        assert_eq!(case2.why(path), Some(Why::RunsOnHost), "{path}");
    }
    assert_eq!(case2.why("store/readme"), None);
    // Completed in several calls, also by links and `commondir`, also in the root.
    let case3 = case();
    write(&case3.host, "HEAD", "ref: refs/heads/x");
    write(&case3.host, "config", evil);
    case3.link("objects", "src").link("refs", "src").stage("src/x", "");
    assert_eq!(case3.why("objects"), Some(Why::RunsOnHost));
    assert_eq!(case3.why("src/x"), None);
    let case4 = case();
    write(&case4.host, "x/HEAD", "ref: refs/heads/x");
    case4.stage("x/commondir", "../y");
    assert_eq!(case4.why("x/commondir"), Some(Why::RunsOnHost));
    // A part that the stage removes counts as staying: its removal may be held.
    let case5 = case();
    write(&case5.host, "commondir/.envrc", "");
    whiteout(&case5.upper, "commondir");
    case5.stage("HEAD", "ref: refs/heads/x");
    assert_eq!(case5.why("HEAD"), Some(Why::RunsOnHost));
    // Control: two of the three make no repository.
    let control = case();
    control.stage("objects/x", "").stage("refs/x", "").stage("HEAD/x", "");
    whiteout(&control.upper, "objects2");
    fs::remove_dir_all(control.upper.join("refs")).unwrap();
    assert!(control.held().is_empty());
}

#[test]
fn in_a_repository_data_goes_and_what_runs_stays() {
    for (name, kind) in [("", RootKind::Workspace), ("vendor/x", RootKind::Workspace)] {
        let mut case = case();
        case.kind = kind;
        case.repository(name);
        let git = Path::new(name).join(".git");
        let at = |below: &str| git.join(below).display().to_string();
        for below in
            ["index", "HEAD", "refs/heads/new", "objects/aa/bb", "logs/HEAD", "packed-refs"]
        {
            case.stage(&at(below), "new");
            assert_eq!(case.why(&at(below)), None, "{below}");
        }
        for below in [
            "commondir",
            "hooks/pre-commit",
            "objects/info/alternates",
            "info/attributes",
            "rebase-merge/git-rebase-todo",
            "worktrees/w/gitdir",
            "modules/m/config",
            "config.lock",
        ] {
            case.stage(&at(below), "new");
            assert_eq!(case.why(&at(below)), Some(Why::RunsOnHost), "{below}");
        }
        case.link(&at("refs/link"), "../HEAD");
        assert_eq!(case.why(&at("refs/link")), Some(Why::RunsOnHost));
    }
}

#[test]
fn a_git_folder_of_another_name_and_as_a_root_has_the_same_rules() {
    let case = case();
    case.repository("");
    fs::rename(case.host.join(".git"), case.host.join("store")).unwrap();
    case.stage("store/hooks/pre-commit", "x")
        .stage("store/index", "x")
        .stage("store/config", "[a]\n\tb=c");
    assert_eq!(case.why("store/hooks/pre-commit"), Some(Why::RunsOnHost));
    assert_eq!(case.why("store/config"), Some(Why::RunsOnHost));
    assert_eq!(case.why("store/index"), None);
    let mut root = self::case();
    root.kind = RootKind::GitFolder;
    root.stage("hooks/x", "").stage("config", "[core]\n\tpager = x\n").stage("refs/heads/x", "");
    root.link("objects", "elsewhere");
    for path in ["hooks/x", "config", "objects"] {
        assert_eq!(root.why(path), Some(Why::RunsOnHost), "{path}");
    }
    assert_eq!(root.why("refs/heads/x"), None);
}

#[test]
fn only_harmless_keys_of_a_configuration_change() {
    let case = case();
    case.repository("");
    let old = fs::read_to_string(case.host.join(".git/config")).unwrap();
    case.stage(
        ".git/config",
        &format!("{old}[branch \"x\"]\n\tremote = .\n\tmerge = refs/heads/y\n"),
    );
    assert_eq!(case.why(".git/config"), None);
    case.stage(".git/config", &format!("{old}[core]\n\tfsmonitor = x\n"));
    assert_eq!(case.why(".git/config"), Some(Why::RunsOnHost));
    fs::remove_file(case.upper.join(".git/config")).unwrap();
    whiteout(&case.upper, ".git/config");
    assert_eq!(case.why(".git/config"), Some(Why::RunsOnHost));
}

#[test]
fn a_repository_is_not_removed_in_pieces() {
    let case = case();
    case.repository("vendor/x");
    write(&case.host, "vendor/x/src", "");
    whiteout(&case.upper, "vendor");
    let applied = case.applied();
    assert_eq!(applied, ["vendor/x/src"]);
    // Control: without a repository all goes.
    fs::remove_dir_all(case.host.join("vendor/x/.git")).unwrap();
    assert!(case.held().is_empty());
}

#[test]
fn places_that_a_configuration_leads_to_are_held() {
    let case = case();
    case.repository("");
    write(&case.host, "tools/watch.sh", "");
    write(&case.host, "shared/git.cfg", "[core]\n\thooksPath = tools/hooks\n");
    fs::create_dir(case.host.join("src")).unwrap();
    let root = case.host.display().to_string();
    let config = case.host.join(".git/config");
    let text = fs::read_to_string(&config).unwrap()
        + &format!(
            "[include]\n\tpath = ../shared/git.cfg\n[core]\n\thooksPath = {root}/my/hooks\n"
        )
        + "[filter \"a\"]\n\tclean = sh tools/watch.sh src/\n";
    fs::write(config, text).unwrap();
    case.stage("shared/git.cfg", "x").stage("tools/hooks/pre-commit", "x").stage("my/hooks/x", "x");
    case.stage("tools/watch.sh", "evil").stage("tools/other.sh", "x").stage("src/x", "x");
    for path in ["shared/git.cfg", "tools/hooks/pre-commit", "my/hooks/x", "tools/watch.sh"] {
        assert_eq!(case.why(path), Some(Why::RunsOnHost), "{path}");
    }
    for path in ["tools/other.sh", "src/x", "my"] {
        assert_eq!(case.why(path), None, "{path}");
    }
    fs::remove_dir_all(case.upper.join("my")).unwrap();
    case.link("my", "src");
    assert_eq!(case.why("my"), Some(Why::RunsOnHost), "a link above the hooks");
}

#[test]
fn links_inside_go_and_links_out_are_held() {
    let case = case();
    fs::create_dir_all(case.host.join("a/b")).unwrap();
    symlink("/etc", case.host.join("out")).unwrap();
    let root = case.host.display().to_string();
    for (at, target) in [
        ("l1", "a/b"),
        ("a/b/l2", "../../x"),
        ("l3", "missing"),
        ("a/l4", "."),
        ("l5", ".git/hooks"),
    ] {
        case.link(at, target);
        assert_eq!(case.why(at), None, "{at} -> {target}");
    }
    case.link("l6", &format!("{root}/a"));
    assert_eq!(case.why("l6"), None);
    for (at, target) in [
        ("o1", "/etc/passwd"),
        ("o2", "../x"),
        ("a/o3", "../../x"),
        ("o4", "out/passwd"),
        ("o5", "p/../.ssh2"),
        ("o6", "/proc/self/root"),
        ("o8", "o8"),
    ] {
        case.link(at, target);
        assert_eq!(case.why(at), Some(Why::LeadsOut), "{at} -> {target}");
    }
    case.link("o7", &format!("{root}/../x"));
    assert_eq!(case.why("o7"), Some(Why::LeadsOut));
    // Through a link out that the stage replaces.
    fs::create_dir(case.upper.join("out")).unwrap();
    case.link("o9", "out/x");
    assert_eq!(case.why("o9"), Some(Why::LeadsOut));
    // Through another link of the same call.
    case.link("n1", "o1").link("n2", "l6/b");
    assert_eq!(case.why("n1"), Some(Why::LeadsOut));
    assert_eq!(case.why("n2"), None);
}

#[test]
fn covered_paths_stay_whatever_happens_around_them() {
    let mut case = case();
    case.covered = ["sub/.env", "type/in/.env", "dir"].map(PathBuf::from).into();
    for path in ["sub/.env", "sub/a", "type/in/.env", "type/b", "dir/secret", "free/x"] {
        write(&case.host, path, "secret");
    }
    whiteout(&case.upper, "sub");
    case.stage("type", "now a file").stage("dir/new", "").stage("new/x", "");
    whiteout(&case.upper, "free");
    let covered = |path: &str| (path.to_owned(), Why::Covered);
    assert_eq!(
        case.held(),
        [
            covered("dir/new"),
            covered("sub/.env"),
            covered("sub"),
            // The file that replaces the folder is held, so the folder stays whole.
            covered("type/b"),
            covered("type/in/.env"),
            covered("type/in"),
            covered("type"),
        ]
    );
    assert_eq!(case.applied(), ["free/x", "free", "new", "new/x", "sub/a"]);
}

#[test]
fn the_policys_lists_decide_what_is_source() {
    let mut case = case_with(&["out/**", "docs/*.md", "!out/no", "**/dist/**"]);
    case.readonly = globs(&["out/fixed/**"]);
    case.deny = globs(&["out/**/*.pem"]);
    case.create = vec![
        Companion { file: "Cargo.lock".into(), beside: "Cargo.toml".into() },
        Companion { file: "other.lock".into(), beside: "missing".into() },
    ];
    write(&case.host, "Cargo.toml", "");
    for path in [
        "out/a",
        "out/no",
        "out/fixed/x",
        "out/x.pem",
        "docs/a.md",
        "docs/a.txt",
        "src/a",
        "p/dist/x",
        "Cargo.lock",
        "other.lock",
        "out/id_rsa",
    ] {
        case.stage(path, "x");
    }
    for path in ["out", "out/a", "docs", "docs/a.md", "p", "p/dist", "p/dist/x", "Cargo.lock"] {
        assert_eq!(case.why(path), None, "{path}");
    }
    for path in ["out/no", "out/fixed/x", "docs/a.txt", "src", "src/a", "other.lock"] {
        assert_eq!(case.why(path), Some(Why::NotWritable), "{path}");
    }
    assert_eq!(case.why("out/x.pem"), Some(Why::Denied));
    assert_eq!(case.why("out/id_rsa"), Some(Why::Denied));
    // A companion that exists is a source.
    write(&case.host, "Cargo.lock", "old");
    assert_eq!(case.why("Cargo.lock"), Some(Why::NotWritable));
}

#[test]
fn a_named_file_needs_its_name_in_the_policy() {
    for (patterns, why) in [
        (&["**"][..], Some(Why::Named)),
        (&[".cargo/**"], Some(Why::Named)),
        (&[".cargo/*"], Some(Why::Named)),
        (&["**/*.toml"], Some(Why::Named)),
        (&[".cargo/config.toml"], None),
        (&["**/.cargo/{config,config.toml}"], None),
        (&["**", "!.cargo/config.toml"], Some(Why::NotWritable)),
    ] {
        let case = case_with(patterns);
        case.stage(".cargo/config.toml", "");
        assert_eq!(case.why(".cargo/config.toml"), why, "{patterns:?}");
    }
    for (patterns, why) in [
        (&["**"][..], Some(Why::Named)),
        (&[".github/workflows/**"], Some(Why::Named)),
        (&[".github/workflows/*.yml"], None),
        (&[".github/workflows/ci.yml"], None),
    ] {
        let case = case_with(patterns);
        case.stage(".github/workflows/ci.yml", "");
        assert_eq!(case.why(".github/workflows/ci.yml"), why, "{patterns:?}");
    }
}

#[test]
fn special_files_and_bits_are_held() {
    let case = case();
    mknodat(CWD, case.upper.join("pipe"), FileType::Fifo, Mode::from(0o644), 0).unwrap();
    mknodat(CWD, case.host.join("socket"), FileType::Socket, Mode::from(0o644), 0).unwrap();
    mknodat(CWD, case.host.join("stale"), FileType::Socket, Mode::from(0o644), 0).unwrap();
    case.stage("socket", "")
        .stage("setuid", "")
        .stage("setgid", "")
        .stage("program", "")
        .stage("d/x", "");
    whiteout(&case.upper, "stale");
    for (path, mode) in [("setuid", 0o4755), ("setgid", 0o2755), ("program", 0o755), ("d", 0o2775)]
    {
        fs::set_permissions(case.upper.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    for path in ["pipe", "socket", "setuid", "setgid"] {
        assert_eq!(case.why(path), Some(Why::Special), "{path}");
    }
    assert_eq!(case.applied(), ["d", "d/x", "program", "stale"]);
}

#[test]
fn what_is_in_a_held_new_folder_is_held_with_it() {
    let mut case = case();
    case.deny = globs(&["held"]);
    write(&case.host, "was-file", "");
    case.stage("held/a/b", "").stage("free/a/b", "");
    let opaque = case.upper.join("was-file");
    fs::create_dir(&opaque).unwrap();
    setxattr(&opaque, "user.overlay.opaque", b"y", XattrFlags::empty()).unwrap();
    fs::write(opaque.join("in"), "").unwrap();
    case.readonly = globs(&["was-file"]);
    assert_eq!(case.applied(), ["free", "free/a", "free/a/b"]);
}

#[test]
fn what_git_leaves_in_its_daily_work_is_applied() {
    let case = case();
    case.repository("");
    let (top, host) = (case.host.parent().unwrap(), &case.host);
    write(host, "a", "1\n");
    write(host, "b", "1\n");
    git(host, &["add", "-A"]);
    git(host, &["commit", "-qm", "files"]);
    let script = r#"
        set -e
        export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
        export GIT_AUTHOR_NAME=a GIT_AUTHOR_EMAIL=a@b GIT_COMMITTER_NAME=a GIT_COMMITTER_EMAIL=a@b
        mkdir work view
        mount -t overlay overlay -o userxattr,nosuid,nodev,lowerdir=host,upperdir=upper,workdir=work view
        cd view
        echo 2 > a; git stash -q; git stash pop -q; git commit -qam two
        git switch -qc topic HEAD~1; echo t > t; git add t; git commit -qm topic
        git rebase -q main; git switch -q main; git merge -q --no-ff -m m topic
        git branch --set-upstream-to=main topic -q; git config user.name someone
        git cherry-pick --quit; git tag v1; git gc -q
    "#;
    let done =
        Command::new("unshare").args(["-m", "sh", "-c", script]).current_dir(top).output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    assert_eq!(case.held(), []);
    assert!(case.applied().contains(&".git/config".to_owned()));
}

/// A repository in which a script ran in a real overlay; the view is at the host's own path.
fn after(script: &str) -> Case {
    let case = case();
    case.repository("");
    write(&case.host, "a", "1\n");
    git(&case.host, &["add", "-A"]);
    git(&case.host, &["commit", "-qm", "files"]);
    let mount = r#"
        set -e
        export HOME=/nonexistent GIT_CONFIG_GLOBAL=/dev/null GIT_CONFIG_NOSYSTEM=1
        mkdir work
        mount -t overlay overlay -o userxattr,nosuid,nodev,lowerdir=host,upperdir=upper,workdir=work host
        cd "$PWD/host"
    "#;
    let script = format!("{mount}\n{script}");
    let top = case.host.parent().unwrap();
    let done = Command::new("unshare")
        .args(["-m", "sh", "-c", &script])
        .current_dir(top)
        .output()
        .unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    case
}

#[test]
fn a_new_worktree_is_applied_and_a_forged_one_is_held() {
    let add = "git worktree add -q -b topic sub/wt && ";
    let good = after(&format!("{add} true"));
    assert_eq!(good.held(), []);
    assert!(good.applied().contains(&"sub/wt/.git".to_owned()));
    for (forged, path) in [
        ("echo /elsewhere > .git/worktrees/wt/commondir", ".git/worktrees/wt/commondir"),
        ("echo '../../../evil' > .git/worktrees/wt/commondir", "sub/wt/.git"),
        ("echo 'gitdir: ../evil' > sub/wt/.git", "sub/wt/.git"),
        ("echo '[core]' > .git/worktrees/wt/config.worktree", "sub/wt/.git"),
        ("mkdir .git/worktrees/wt/hooks && echo x > .git/worktrees/wt/hooks/x", "sub/wt/.git"),
        ("ln -s ../../../a .git/worktrees/wt/x", "sub/wt/.git"),
        (
            "cp -r .git store && rm -rf .git/worktrees/wt && echo 'gitdir: store' > sub/wt/.git",
            "sub/wt/.git",
        ),
    ] {
        let case = after(&format!("{add} {forged}"));
        assert_eq!(case.why(path), Some(Why::RunsOnHost), "{forged}");
        assert_eq!(case.why("sub/wt/.git"), Some(Why::RunsOnHost), "{forged}");
    }
}

#[test]
fn hooks_of_a_repository_are_held_in_a_new_worktree_too() {
    let case = case();
    case.repository("");
    git(&case.host, &["config", "core.hooksPath", "tools/hooks"]);
    let root = case.host.display().to_string();
    case.stage("wt/.git", &format!("gitdir: {root}/.git/worktrees/wt\n"));
    case.stage(".git/worktrees/wt/commondir", "../..\n").stage(".git/worktrees/wt/HEAD", "x");
    case.stage(".git/worktrees/wt/gitdir", &format!("{root}/wt/.git\n"));
    case.stage("wt/tools/hooks/pre-commit", "evil").stage("wt/tools/x", "");
    assert_eq!(case.why("wt/.git"), None);
    assert_eq!(case.why("wt/tools/hooks/pre-commit"), Some(Why::RunsOnHost));
    assert_eq!(case.why("wt/tools/x"), None);
}

#[test]
fn a_virtual_environment_may_link_to_an_interpreter_of_the_host() {
    let mut case = case();
    case.system = System {
        folders: vec!["/usr".into(), "/home/a/.tools".into()],
        hidden: vec!["/home/a/.tools/credentials".into()],
    };
    let links = [
        ("v/bin/python", "/usr/bin/python3", None),
        ("v/bin/tool", "/home/a/.tools/bin/x", None),
        ("o1", "/usr/../etc/passwd", Some(Why::LeadsOut)),
        ("o2", "/usrx/y", Some(Why::LeadsOut)),
        ("o3", "/home/a/.tools/credentials", Some(Why::LeadsOut)),
        ("o4", "/home/a/.tools", Some(Why::LeadsOut)),
        ("o5", "/etc/passwd", Some(Why::LeadsOut)),
    ];
    for (at, target, _) in links {
        case.link(at, target);
    }
    for (at, target, why) in links {
        assert_eq!(case.why(at), why, "{at} -> {target}");
    }
}

/// A symlink to a symlink leads where the whole chain leads.
#[test]
fn a_chain_of_symlinks_is_followed_to_its_end() {
    let mut case = case();
    case.system = System {
        folders: vec!["/usr".into(), "/home/a/.tools".into()],
        hidden: vec!["/home/a/.tools/credentials".into()],
    };
    case.deny = globs(&["denied"]);
    for (at, target) in [
        ("host/python", "/usr/bin/python3"),
        ("host/out", "/etc/passwd"),
        ("host/up", "/usr/.."),
        ("host/replaced", "/etc/passwd"),
        ("host/better", "/usr/bin/python3"),
    ] {
        let at = case.host.join(at);
        fs::create_dir_all(at.parent().unwrap()).unwrap();
        symlink(target, at).unwrap();
    }
    let root = case.host.display().to_string();
    let links = [
        // The controls: an environment as `uv venv` and `python -m venv` make it.
        ("v/bin/python", "/usr/bin/python3".to_owned(), None),
        ("v/bin/python3", "python".to_owned(), None),
        ("v/bin/python3.11", "python3".to_owned(), None),
        ("v/bin/absolute", format!("{root}/v/bin/python3"), None),
        ("v/lib64", "lib".to_owned(), None),
        ("w/bin/python", "../../host/python".to_owned(), None),
        ("w/lib", "/usr/lib".to_owned(), None),
        ("w/module", "lib/python3/module".to_owned(), None),
        // The ends of these lie outside, by the stage or by the host.
        ("a/out", "/etc/passwd".to_owned(), Some(Why::LeadsOut)),
        ("a/two", "out".to_owned(), Some(Why::LeadsOut)),
        ("a/three", "two".to_owned(), Some(Why::LeadsOut)),
        ("a/of-host", "../host/out".to_owned(), Some(Why::LeadsOut)),
        ("a/up", "/usr/../etc/passwd".to_owned(), Some(Why::LeadsOut)),
        ("a/up2", "up".to_owned(), Some(Why::LeadsOut)),
        ("a/up3", "../host/up/etc/passwd".to_owned(), Some(Why::LeadsOut)),
        ("a/down-and-up", "../w/lib/../../etc/passwd".to_owned(), Some(Why::LeadsOut)),
        // A file with credentials in a folder that may be linked to.
        ("b/bin", "/home/a/.tools/bin".to_owned(), None),
        ("b/x", "bin/x".to_owned(), None),
        ("b/tools", "/home/a/.tools".to_owned(), Some(Why::LeadsOut)),
        ("b/secret", "tools/credentials".to_owned(), Some(Why::LeadsOut)),
        // Loops end nowhere.
        ("c/self", "self".to_owned(), Some(Why::LeadsOut)),
        ("c/one", "other".to_owned(), Some(Why::LeadsOut)),
        ("c/other", "one".to_owned(), Some(Why::LeadsOut)),
        // The middle is held for another reason: the chain counts as it would be, and as it is.
        ("denied", "/usr/bin/python3".to_owned(), Some(Why::Denied)),
        ("d/through", "../denied".to_owned(), None),
        ("host/replaced", "/usr/bin/python3".to_owned(), None),
        ("d/by-the-host", "../host/replaced".to_owned(), Some(Why::LeadsOut)),
        ("host/better", "/etc/passwd".to_owned(), Some(Why::LeadsOut)),
        ("d/by-the-stage", "../host/better".to_owned(), Some(Why::LeadsOut)),
    ];
    for (at, target, _) in &links {
        case.link(at, target);
    }
    for (at, target, why) in &links {
        assert_eq!(case.why(at), *why, "{at} -> {target}");
    }
}

/// A symlink of the host's at a name that runs: what it leads to runs as well, and what it leads through.
#[test]
fn what_the_host_runs_through_a_symlink_is_held() {
    let mut case = case();
    case.repository("");
    for path in ["scripts/pre-commit", "scripts/other", "conf/fish/config.fish", "conf/x.toml"] {
        write(&case.host, path, "old");
    }
    fs::create_dir(case.host.join("editor")).unwrap();
    for (link, target) in [
        (".git/hooks/pre-commit", "../../step"),
        ("step", "scripts/pre-commit"),
        ("a/.vscode", "../editor"),
        (".config", "conf"),
        ("src/config", "../scripts"),
    ] {
        let link = case.host.join(link);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        symlink(target, link).unwrap();
    }
    case.links = [".git/hooks/pre-commit", "a/.vscode", ".config", "src/config"]
        .into_iter()
        .map(PathBuf::from)
        .collect();
    for path in [
        "scripts/pre-commit",
        "scripts/other",
        "editor/tasks.json",
        "conf/fish/config.fish",
        "conf/x.toml",
    ] {
        case.stage(path, "new");
    }
    case.link("step", "scripts/other");
    let held: Vec<_> = case.held();
    let runs = |path: &str| (path.to_owned(), Why::RunsOnHost);
    let wanted =
        ["conf/fish/config.fish", "editor/tasks.json", "scripts/pre-commit", "step"].map(runs);
    let mut held = held;
    held.sort();
    assert_eq!(held, wanted);
}

#[test]
fn commands_of_a_configuration_are_found_however_they_are_written() {
    let case = case();
    case.repository("");
    for (key, value) in [
        ("filter.f.clean", "sh clean.sh"),
        ("filter.g.clean", "python ./pkg"),
        ("core.hooksPath", "~/host/hk"),
        ("core.fsmonitor", "a/../watch"),
        ("submodule.s.update", "!./update log"),
    ] {
        git(&case.host, &["config", key, value]);
    }
    write(&case.host, "pkg/__main__.py", "old");
    for path in
        ["clean.sh", "pkg/__main__.py", "pkg/other.py", "hk/pre-commit", "watch", "update", "log/x"]
    {
        case.stage(path, "new");
    }
    let held: Vec<String> = case.held().into_iter().map(|(path, _)| path).collect();
    assert_eq!(held, ["clean.sh", "hk", "hk/pre-commit", "pkg/__main__.py", "update", "watch"]);
}

#[test]
fn a_new_worktree_stands_where_nothing_was() {
    let add = |case: &Case| {
        let (own, pointer) = (".git/worktrees/wt", case.host.join("wt/.git"));
        case.stage(&format!("{own}/commondir"), "../..\n");
        case.stage(&format!("{own}/gitdir"), &format!("{}\n", pointer.display()));
        case.stage(&format!("{own}/HEAD"), "ref: refs/heads/wt\n");
        case.stage(&format!("{own}/logs/HEAD"), "");
        let there = case.host.join(own);
        case.stage("wt/.git", &format!("gitdir: {}\n", there.display()));
    };
    let control = case();
    control.repository("");
    add(&control);
    assert_eq!(control.held(), []);
    // A call before this one left a folder that git would take for its own.
    let attack = case();
    attack.repository("");
    write(&attack.host, "wt/tools/hooks/post-index-change", "canary");
    add(&attack);
    assert!(attack.held().iter().any(|(path, _)| path == "wt/.git"));
    // Its log is a repository.
    let attack = case();
    attack.repository("");
    add(&attack);
    attack.stage(".git/worktrees/wt/logs/objects/x", "");
    assert!(attack.held().iter().any(|(path, _)| path == "wt/.git"));
}

#[test]
fn a_git_folder_takes_data_only() {
    let case = case();
    case.repository("");
    for path in ["lazygit.yml", "safe/x", "index.lock", "refs/replace/aa", "sl/config"] {
        case.stage(&format!(".git/{path}"), "x");
    }
    case.stage(".git/MERGE_MSG", "x")
        .stage(".git/refs/notes/x", "x")
        .stage(".git/info/exclude", "x");
    let applied: Vec<String> = case
        .judge()
        .into_iter()
        .filter(|judged| {
            judged.verdict == Verdict::Apply && !matches!(judged.change.what, What::Folder { .. })
        })
        .map(|judged| judged.change.path.display().to_string())
        .collect();
    assert_eq!(applied, [".git/MERGE_MSG", ".git/info/exclude", ".git/refs/notes/x"]);
}

/// A repository whose configuration ends with these bytes, and a stage with a hook and a source file.
fn configured(added: &[u8]) -> Case {
    let case = case();
    case.repository("");
    let config = case.host.join(".git/config");
    fs::write(&config, [fs::read(&config).unwrap().as_slice(), added].concat()).unwrap();
    case.stage("tools/hooks/pre-commit", "x").stage("src/x", "x");
    case
}

const HOOKS_PATH: &[u8] = b"[core]\n\thooksPath = tools/hooks\n";

fn hook_is_held(case: &Case) {
    assert_eq!(case.why("tools/hooks/pre-commit"), Some(Why::RunsOnHost));
    assert_eq!(case.why("src/x"), None);
}

#[test]
fn a_configuration_counts_in_every_form_that_git_reads() {
    let control = configured(b"");
    assert_eq!(control.held(), []);
    hook_is_held(&configured(&[b"[user]\n\tname = J\xf6rg\n", HOOKS_PATH].concat()));
    hook_is_held(&configured(&[b"[user]\n\tname = a\0b\n# \0\n", HOOKS_PATH].concat()));
    hook_is_held(&configured(b"[core]\n\thooksPath = tools/hooks\0x\n"));
    // Behind a symlink, in the workspace and outside.
    for target in ["../kept/config", "../../config"] {
        let case = configured(HOOKS_PATH);
        let config = case.host.join(".git/config");
        fs::create_dir(case.host.join("kept")).unwrap();
        fs::rename(&config, config.parent().unwrap().join(target)).unwrap();
        symlink(target, &config).unwrap();
        case.stage("kept/config", "evil");
        hook_is_held(&case);
        let inside = (target == "../kept/config").then_some(Why::RunsOnHost);
        assert_eq!(case.why("kept/config"), inside);
    }
    // Included from outside, and through a symlink outside that leads in.
    let case = configured(b"[include]\n\tpath = ~/work.inc\n");
    fs::write(case.host.join("../work.inc"), HOOKS_PATH).unwrap();
    hook_is_held(&case);
    let case = configured(b"[core]\n\thooksPath = ~/way/tools/hooks\n");
    symlink("host", case.host.join("../way")).unwrap();
    hook_is_held(&case);
}

#[test]
fn a_symlink_on_the_way_to_hooks_is_held() {
    let case = configured(b"[core]\n\thooksPath = first\n");
    fs::create_dir_all(case.host.join("tools/hooks")).unwrap();
    symlink("second", case.host.join("first")).unwrap();
    symlink("tools/hooks", case.host.join("second")).unwrap();
    write(&case.host, "scripts/lint", "old");
    symlink("../../scripts/lint", case.host.join("tools/hooks/pre-push")).unwrap();
    case.link("second", "src").stage("scripts/lint", "new").stage("scripts/other", "new");
    hook_is_held(&case);
    assert_eq!(case.why("second"), Some(Why::RunsOnHost));
    assert_eq!(case.why("scripts/lint"), Some(Why::RunsOnHost), "a hook is a symlink to it");
    assert_eq!(case.why("scripts/other"), None);
}

#[test]
fn everything_is_held_where_a_configuration_is_not_understood() {
    let long = [HOOKS_PATH, &vec![b'#'; gitconfig::MAX_BYTES]].concat();
    let unknown: [&[u8]; 2] = [&long, b"[include]\n\tpath = config\n"];
    for added in unknown {
        let case = configured(added);
        assert!(case.applied().is_empty(), "{}", added.len());
        assert_eq!(case.why("src/x"), Some(Why::RunsOnHost));
    }
    let case = configured(b"[include]\n\tpath = ../pipe\n");
    mknodat(CWD, case.host.join("pipe"), FileType::Fifo, Mode::RUSR, 0).unwrap();
    assert_eq!(case.why("src/x"), Some(Why::RunsOnHost));
    // Git stops at this one, until somebody mends it.
    hook_is_held(&configured(&[b"[broken\n?\n", HOOKS_PATH].concat()));
    // What ordinary configurations have.
    let ordinary: [&[u8]; 6] = [
        b"[include]\n\tpath = ../none\n",
        b"[include]\n\tpath = /none/at/all\n",
        b"[include]\n\tpath = ..\n",
        b"[include]\n\tpath = /dev/null\n",
        b"[includeIf \"gitdir:~/work/\"]\n\tpath = ~/none\n",
        b"[user]\n\tname = J\xf6rg\n",
    ];
    for added in ordinary {
        assert_eq!(configured(added).held(), [], "{}", String::from_utf8_lossy(added));
    }
}

#[test]
fn hooks_of_a_template_are_held() {
    let at_root = configured(b"[init]\n\ttemplateDir = ~/host\n");
    at_root.stage("hooks/post-checkout", "x").stage("config", "x");
    let held: Vec<_> = at_root.held().into_iter().map(|(path, _)| path).collect();
    assert_eq!(held, ["config", "hooks", "hooks/post-checkout"]);
    hook_is_held(&configured(b"[init]\n\ttemplateDir = ~/host/tools\n"));
    // The template lies outside, its hooks in the workspace.
    let case = configured(b"[init]\n\ttemplateDir = ~/template\n");
    fs::create_dir(case.host.join("../template")).unwrap();
    symlink("../host/tools/hooks", case.host.join("../template/hooks")).unwrap();
    hook_is_held(&case);
}

#[test]
fn a_nested_working_tree_is_led_by_its_git_folder_outside() {
    let nested = |hooks: &str| {
        let case = case();
        let other = case.host.join("../other");
        fs::create_dir(&other).unwrap();
        git(&other, &["init", "-q"]);
        git(&other, &["commit", "-q", "--allow-empty", "-m", "x"]);
        git(&other, &["worktree", "add", "-q", "../host/wt"]);
        git(&other, &["config", "core.hooksPath", hooks]);
        case.stage("wt/tools/hooks/pre-commit", "x").stage("wt/src/x", "x");
        case.stage("scripts/check", "x");
        case
    };
    assert_eq!(nested("/none").held(), []);
    let case = nested("tools/hooks");
    assert_eq!(case.why("wt/tools/hooks/pre-commit"), Some(Why::RunsOnHost));
    assert_eq!(case.why("wt/src/x"), None);
    // A hook of the folder outside is a symlink into the workspace.
    let case = nested("/none");
    let hook = case.host.join("../other/.git/hooks/pre-commit");
    fs::create_dir_all(hook.parent().unwrap()).unwrap();
    symlink(case.host.join("scripts/check"), hook).unwrap();
    assert_eq!(case.why("scripts/check"), Some(Why::RunsOnHost));
    assert_eq!(case.why("wt/src/x"), None);
}
