//! Everyday commands in projects of many kinds: what reaches the host is what bash makes of the same folder.

use std::fs;
use std::os::unix::fs::MetadataExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;

use serde_json::{Value, json};

use super::harness::{Project, assert_same, copy, held, tree};
use crate::support::{Ran, needs_root};

/// Runs a script in a folder through us, and then by bash in the same folder as it was before. Both results must be
/// the same but for what `skip` names; what was held back.
fn same_as_bash(
    project: &Project,
    folder: &Path,
    policy: &str,
    script: &str,
    skip: &dyn Fn(&str) -> bool,
) -> Value {
    let aside = project.home.path("aside");
    copy(folder, &aside);
    let result = run(project, folder, policy, script);
    assert_eq!(result["exit"], 0, "{result:#}");
    let staged = tree(folder, skip);
    // The same path, because programs write it down.
    for entry in fs::read_dir(folder).unwrap().flatten() {
        let path = entry.path();
        if entry.file_type().unwrap().is_dir() {
            fs::remove_dir_all(path).unwrap();
        } else {
            fs::remove_file(path).unwrap();
        }
    }
    copy(&aside.join("."), folder);
    let done =
        real(Command::new("bash").args(["-c", script]).current_dir(folder)).output().unwrap();
    assert!(done.status.success(), "{script}: {}", String::from_utf8_lossy(&done.stderr));
    assert_same(&staged, &tree(folder, skip), script);
    fs::remove_dir_all(aside).unwrap();
    result
}

/// The toolchains of whoever runs the tests.
fn real(command: &mut Command) -> &mut Command {
    let identity = [
        ("GIT_AUTHOR_NAME", "a"),
        ("GIT_AUTHOR_EMAIL", "a@b.example"),
        ("GIT_COMMITTER_NAME", "a"),
        ("GIT_COMMITTER_EMAIL", "a@b.example"),
        ("GIT_AUTHOR_DATE", "1700000000 +0000"),
        ("GIT_COMMITTER_DATE", "1700000000 +0000"),
        ("GIT_CONFIG_GLOBAL", "/dev/null"),
    ];
    command.env("HOME", std::env::var_os("HOME").unwrap()).envs(identity)
}

fn run(project: &Project, folder: &Path, policy: &str, script: &str) -> Value {
    let aside = folder.join("zz.sh");
    fs::write(&aside, script).unwrap();
    let mut command = project.home.runner();
    command.current_dir(folder).args(["exec", "--json", "--policy", policy, "--", "python3", "-c"]);
    command.arg("import subprocess; raise SystemExit(subprocess.call(['bash', 'zz.sh']))");
    let ran = Ran::from(real(&mut command).output().unwrap());
    fs::remove_file(aside).unwrap();
    let result = ran.json();
    assert!(!result["changes"].is_null(), "{result:#}");
    result
}

fn write(folder: &Path, files: &[(&str, &str)]) {
    for (name, text) in files {
        let path = folder.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
}

/// A program that is installed once into the build folder of these tests.
fn installed(name: &str, found: &str, words: &[&str]) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    if !folder.join(found).exists() {
        let words: Vec<String> =
            words.iter().map(|word| word.replace("FOLDER", folder.to_str().unwrap())).collect();
        let done = Command::new(&words[0]).args(&words[1..]).output().unwrap();
        assert!(done.status.success(), "{words:?}: {}", String::from_utf8_lossy(&done.stderr));
    }
    folder.join(found)
}

#[test]
fn pnpm_installs_with_hard_links_and_builds_a_monorepo() {
    let pnpm = installed(
        "pnpm",
        "node_modules/pnpm",
        &[
            "npm",
            "install",
            "--silent",
            "--no-save",
            "--no-fund",
            "--no-audit",
            "--prefix",
            "FOLDER",
            "pnpm@9",
        ],
    );
    let project = Project::new();
    let folder = project.home.path("pnpm");
    write(
        &folder,
        &[
            (
                "package.json",
                r#"{"name":"root","private":true,"dependencies":{"dep":"file:./dep.tgz"}}"#,
            ),
            ("pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n"),
            (
                "packages/a/package.json",
                r#"{"name":"a","version":"1.0.0","dependencies":{"b":"workspace:*"},"scripts":{"build":"mkdir -p dist && echo a > dist/a.js"}}"#,
            ),
            (
                "packages/b/package.json",
                r#"{"name":"b","version":"1.0.0","scripts":{"build":"mkdir -p dist && echo b > dist/b.js"}}"#,
            ),
            ("package/package.json", r#"{"name":"dep","version":"1.0.0"}"#),
            ("package/index.js", "module.exports = 1\n"),
        ],
    );
    let tar = Command::new("tar").args(["czf", "dep.tgz", "package"]).current_dir(&folder).status();
    assert!(tar.unwrap().success());
    copy(&pnpm, &folder.join("tools"));
    // Both write the time of the installation down.
    let skip = |name: &str| {
        name.ends_with(".modules.yaml")
            || name.ends_with("-index.json")
            || name.contains("workspace-state")
    };
    let install = "node tools/bin/pnpm.cjs install --offline --store-dir ./store && node tools/bin/pnpm.cjs -r run build";
    let result = same_as_bash(&project, &folder, "contained", install, &skip);
    assert_eq!(result["changes"]["held_count"], 0, "{result:#}");
    // The installation is linked to the store on the host, as it is without us.
    let result = run(
        &project,
        &folder,
        "contained",
        "rm -rf node_modules packages/*/node_modules; node tools/bin/pnpm.cjs install --offline --store-dir ./store",
    );
    let linked = fs::metadata(folder.join("node_modules/dep/index.js")).unwrap();
    assert_eq!((linked.nlink(), &result["exit"]), (2, &json!(0)), "{result:#}");
    // Changing one name of a file inside changes the other one on the host only if bash would: it is one file.
    let result = run(&project, &folder, "contained", "echo '// more' >> node_modules/dep/index.js");
    assert_eq!(result["exit"], 0);
    let text = fs::read_to_string(folder.join("node_modules/dep/index.js")).unwrap();
    assert_eq!(text, "module.exports = 1\n// more\n");
}

#[test]
fn uv_makes_an_environment_with_hard_links() {
    let uv = installed("uv", "bin/uv", &["pip", "install", "--quiet", "--target", "FOLDER", "uv"]);
    let project = Project::new();
    let folder = project.home.path("uv");
    let wheel = "import zipfile\nwith zipfile.ZipFile('dep-1.0-py3-none-any.whl', 'w') as z:\n\
        \x20 z.writestr('dep/__init__.py', 'x = 1\\n')\n\
        \x20 z.writestr('dep-1.0.dist-info/METADATA', 'Metadata-Version: 2.1\\nName: dep\\nVersion: 1.0\\n')\n\
        \x20 z.writestr('dep-1.0.dist-info/WHEEL', 'Wheel-Version: 1.0\\nGenerator: x\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n')\n\
        \x20 z.writestr('dep-1.0.dist-info/RECORD', 'dep/__init__.py,,\\ndep-1.0.dist-info/METADATA,,\\ndep-1.0.dist-info/WHEEL,,\\ndep-1.0.dist-info/RECORD,,\\n')\n";
    write(&folder, &[("wheel.py", wheel)]);
    assert!(
        Command::new("python3").arg("wheel.py").current_dir(&folder).status().unwrap().success()
    );
    fs::create_dir(folder.join("tools")).unwrap();
    fs::hard_link(&uv, folder.join("tools/uv"))
        .or_else(|_| fs::copy(&uv, folder.join("tools/uv")).map(drop))
        .unwrap();
    let install = "tools/uv venv --quiet --python /usr/bin/python3 --cache-dir .cache .venv && \
        tools/uv pip install --quiet --cache-dir .cache --no-index --find-links . --python .venv/bin/python dep && \
        .venv/bin/python -c 'import dep; assert dep.x == 1'";
    let result = run(&project, &folder, "contained", install);
    assert_eq!(result["exit"], 0, "{result:#}");
    let linked = fs::metadata(
        folder.join(".venv/lib").join(python(&folder)).join("site-packages/dep/__init__.py"),
    );
    assert_eq!(linked.unwrap().nlink(), 2);
    // The interpreter of an environment is a link to the system's, and `python3` is a link to that link. uv's
    // cache has a file named `.git`, which stops git's search and is held back.
    assert!(held(&result).iter().all(|path| path.ends_with("/.git")), "{result:#}");
    for (name, target) in [("python", "/usr/bin/python3"), ("python3", "python")] {
        let found = fs::read_link(folder.join(".venv/bin").join(name)).unwrap();
        assert_eq!(found, Path::new(target), "{name}");
    }
    let done = Command::new(folder.join(".venv/bin/python")).args(["-c", "import dep"]).status();
    assert!(done.unwrap().success(), "the environment works on the host");
}

fn python(folder: &Path) -> String {
    let found = fs::read_dir(folder.join(".venv/lib")).unwrap().next().unwrap().unwrap();
    found.file_name().into_string().unwrap()
}

#[test]
fn cargo_and_a_monorepo_build_under_their_policies() {
    let project = Project::new();
    let folder = project.home.path("rust");
    write(
        &folder,
        &[
            (
                "Cargo.toml",
                "[package]\nname = \"small\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
            ),
            ("src/main.rs", "fn main() { println!(\"hi\") }\n"),
        ],
    );
    let mut command = project.home.runner();
    command
        .current_dir(&folder)
        .args(["exec", "--json", "--policy", "develop", "--", "cargo", "build", "--quiet"]);
    let result = Ran::from(real(&mut command).output().unwrap()).json();
    assert_eq!(
        (&result["exit"], &result["changes"]["held_count"]),
        (&json!(0), &json!(0)),
        "{result:#}"
    );
    let out = Command::new(folder.join("target/debug/small")).output().unwrap();
    assert_eq!(out.stdout, b"hi\n");
    assert!(folder.join("Cargo.lock").exists(), "a companion");
    let names: Vec<_> =
        fs::read_dir(&folder).unwrap().flatten().map(|entry| entry.file_name()).collect();
    assert_eq!(names.len(), 4, "no phantom name: {names:?}");
    // On the host cargo finds everything as it left it.
    let fresh = real(Command::new("cargo").args(["build", "--offline", "-v"]).current_dir(&folder))
        .output()
        .unwrap();
    assert!(
        String::from_utf8_lossy(&fresh.stderr).contains("Fresh small"),
        "{}",
        String::from_utf8_lossy(&fresh.stderr)
    );
    // A glob in the middle of a pattern.
    project.home.user_policy(
        "mono",
        "policy: 1\nname: mono\nextends: [develop]\nfiles: { write: [\"packages/*/dist/**\", \"**/*.gen.ts\"] }\n",
    );
    let folder = project.home.path("mono");
    write(
        &folder,
        &[
            ("packages/a/src/x.ts", "1\n"),
            ("packages/b/src/x.ts", "2\n"),
            ("packages/b/dist/old", "old\n"),
        ],
    );
    let script = "for p in a b; do mkdir -p packages/$p/dist/deep; cp packages/$p/src/x.ts packages/$p/dist/deep/x.js; \
                  echo gen > packages/$p/src/y.gen.ts; echo evil >> packages/$p/src/x.ts; done; rm packages/b/dist/old; mkdir other";
    let result = run(&project, &folder, "mono", script);
    let mut waits = held(&result);
    waits.sort_unstable();
    assert_eq!(waits, ["other", "packages/a/src/x.ts", "packages/b/src/x.ts"], "{result:#}");
    assert_eq!(fs::read_to_string(folder.join("packages/b/dist/deep/x.js")).unwrap(), "2\n");
    assert_eq!(fs::read_to_string(folder.join("packages/a/src/y.gen.ts")).unwrap(), "gen\n");
    assert!(!folder.join("packages/b/dist/old").exists() && !folder.join("other").exists());
}

/// What each tool meets when it renames a folder that existed before the call.
#[test]
fn tools_that_rename_folders_copy_them_or_say_so() {
    let project = Project::new();
    for at in 1..=7 {
        project.write(&format!("d{at}/f"), "x\n");
    }
    project.home.git(&["add", "-A"]);
    project.home.git(&["commit", "-q", "-m", "more"]);
    let script = "git mv d1 m1 2>/dev/null; echo git mv $?\n\
        node -e 'try { require(\"fs\").renameSync(\"d2\", \"m2\"); console.log(\"node 0\") } catch (e) { console.log(\"node \" + e.code) }'\n\
        python3 -c 'import os\ntry: os.rename(\"d3\", \"m3\"); print(\"python 0\")\nexcept OSError as e: print(\"python\", e.errno)'\n\
        mv d4 m4; echo mv $?\n\
        python3 -c 'import shutil; shutil.move(\"d5\", \"m5\"); print(\"shutil 0\")'\n\
        perl -e 'print rename(\"d6\", \"m6\") ? \"perl 0\\n\" : \"perl \" . ($!+0) . \"\\n\"'\n\
        mkdir new; echo x > new/f; python3 -c 'import os; os.rename(\"new\", \"new2\"); print(\"new 0\")'\n\
        mv d7/f d7/g; echo file $?\n";
    let result = project.sh("contained", script);
    assert_eq!(
        result["stdout"],
        "git mv 128\nnode EXDEV\npython 18\nmv 0\nshutil 0\nperl 18\nnew 0\nfile 0\n",
        "{result:#}"
    );
    for (gone, there) in [
        ("m1", "d1"),
        ("m2", "d2"),
        ("m3", "d3"),
        ("d4", "m4"),
        ("d5", "m5"),
        ("m6", "d6"),
        ("new", "new2"),
    ] {
        assert!(!project.exists(gone), "{gone}");
        assert!(project.exists(&format!("{there}/f")), "{there}");
    }
    assert!(project.exists("d7/g") && !project.exists("d7/f"));
}

#[test]
fn a_linked_worktree_and_a_submodule_are_workspaces_like_any() {
    let project = Project::new();
    let worktree = project.home.path("tree");
    project.home.git(&["worktree", "add", "-q", "-b", "side", worktree.to_str().unwrap()]);
    let config = project.text(".git/config");
    let everyday = "git status --short; echo more >> src/a; git add src/a; git commit -q -m second; git log --format=%s | head -1";
    let result = run(&project, &worktree, "contained", everyday);
    assert_eq!(
        (&result["exit"], &result["stdout"]),
        (&json!(0), &json!("?? zz.sh\nsecond\n")),
        "{result:#}"
    );
    assert_eq!(result["changes"]["held_count"], 0, "{result:#}");
    let log = |folder: &Path| {
        let mut git = Command::new("git");
        git.args(["-c", "safe.directory=*", "log", "--format=%s", "-1"]).current_dir(folder);
        String::from_utf8(real(&mut git).output().unwrap().stdout).unwrap()
    };
    assert_eq!((log(&worktree), log(&project.file(""))), ("second\n".into(), "first\n".into()));
    assert_eq!(project.text(".git/config"), config);
    // A submodule: its folder of git lies in that of the superproject.
    let library = project.home.path("library");
    copy(&project.file(""), &library);
    fs::remove_dir_all(library.join(".git/worktrees")).unwrap();
    project.home.git(&[
        "-c",
        "protocol.file.allow=always",
        "submodule",
        "--quiet",
        "add",
        library.to_str().unwrap(),
        "sub",
    ]);
    let module = project.text(".git/modules/sub/config");
    let result = run(&project, &project.file("sub"), "contained", everyday);
    assert_eq!(
        (&result["exit"], &result["stdout"]),
        (&json!(0), &json!("?? zz.sh\nsecond\n")),
        "{result:#}"
    );
    assert_eq!(result["changes"]["held_count"], 0, "{result:#}");
    assert_eq!(log(&project.file("sub")), "second\n");
    assert_eq!(project.text(".git/modules/sub/config"), module);
    // The git folders outside are not a way around: both are attacked from where they are used.
    for folder in [worktree, project.file("sub")] {
        let attack = "g=$(git rev-parse --git-common-dir); git config core.fsmonitor evil; mkdir -p $g/hooks; echo evil > $g/hooks/pre-commit; echo /tmp > $g/commondir; echo fine > fine";
        let result = run(&project, &folder, "contained", attack);
        assert!(held(&result).iter().any(|path| path.ends_with("hooks/pre-commit")), "{result:#}");
        assert_eq!(fs::read_to_string(folder.join("fine")).unwrap(), "fine\n", "the control");
    }
    assert_eq!(
        (
            project.text(".git/config").contains("fsmonitor"),
            project.text(".git/modules/sub/config")
        ),
        (false, module)
    );
    for name in
        ["hooks/pre-commit", "commondir", "modules/sub/hooks/pre-commit", "modules/sub/commondir"]
    {
        assert!(!project.exists(&format!(".git/{name}")), "{name}");
    }
}

struct Mounted(PathBuf);

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.0).status();
    }
}

#[test]
fn a_workspace_on_an_overlay_is_written_like_any() {
    needs_root();
    let project = Project::new();
    let at = |name: &str| {
        let path = project.home.path(name);
        fs::create_dir_all(&path).unwrap();
        path
    };
    let [lower, upper, work, merged] = ["lower", "upper", "work", "merged"].map(at);
    write(&lower, &[("old", "old\n"), ("gone", "x\n"), ("dir/a", "a\n"), ("kept/b", "b\n")]);
    let options = format!(
        "lowerdir={},upperdir={},workdir={}",
        lower.display(),
        upper.display(),
        work.display()
    );
    let done = Command::new("mount")
        .args(["-t", "overlay", "overlay", "-o", &options])
        .arg(&merged)
        .status();
    assert!(done.unwrap().success());
    let mounted = Mounted(merged);
    let script = "echo new > old; rm gone; rm -r dir; mkdir -p deep/er; echo 1 > deep/er/x; chmod 755 kept/b; ln -s old link; mv kept/b kept/c";
    let result = same_as_bash(&project, &mounted.0, "contained", script, &|_| false);
    assert_eq!(result["changes"]["held_count"], 0, "{result:#}");
}

/// Many files: made, changed and removed in one call, and compared with what bash does.
fn many(count: usize) {
    let project = Project::new();
    let folder = project.home.path("many");
    for at in 0..count / 2 {
        let path = folder.join(format!("p{}/f{at}", at % 100));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, "old\n").unwrap();
    }
    let script = format!(
        "python3 - <<'E'\nimport os\nfor i in range({0}):\n p = 'p%d/f%d' % (i % 100, i)\n \
         if i % 3 == 0: open(p, 'w').write('new\\n')\n elif i % 3 == 1: os.remove(p)\n\
         for i in range({0}):\n d = 'n%d' % (i % 50); os.makedirs(d, exist_ok=True); open(d + '/f%d' % i, 'w').write('x' * 100)\nE",
        count / 2
    );
    let result = same_as_bash(&project, &folder, "contained", &script, &|_| false);
    assert_eq!(result["changes"]["held_count"], 0, "{result:#}");
    let applied = &result["changes"]["applied"];
    assert_eq!(applied["created"], json!(count / 2), "{applied}");
}

#[test]
fn two_thousand_files_are_changed_like_any() {
    many(2000);
}

#[test]
fn a_hundred_thousand_files_are_changed_like_any() {
    many(100_000);
}
