//! Projects with what real package managers installed, and the commands that agents type in them all day, under
//! `edit`. Packages come from `tests/packages`; no test fetches anything.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::Caller;
use crate::support::{Ran, needs_engine};

/// What no line may show, and no bundle may hold.
const SECRET: &str = "CANARY-packaged";

/// Where `tests/packages` puts what it installs.
fn packages(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("target/packages").join(name);
    let there = folder.join(".installed").exists();
    assert!(there, "{} is missing: run `tests/packages {name}`", folder.display());
    folder
}

/// A project in git, with a caller who works in it under `edit`.
struct Work {
    caller: Caller,
    project: PathBuf,
    /// Folders before those of the PATH.
    programs: Vec<PathBuf>,
}

impl Work {
    fn new(files: &[(&str, &str)]) -> Self {
        needs_engine();
        let caller = Caller::with_home("/var/tmp");
        let project = caller.project("app", files);
        Self { caller, project, programs: Vec::new() }
    }

    /// Copies what was installed into the project.
    fn copy(&self, from: &Path, to: &str) {
        let to = self.project.join(to);
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        let done = Command::new("cp").arg("-a").arg(from).arg(&to).status();
        assert!(done.unwrap().success(), "{}", from.display());
    }

    fn path(&self) -> std::ffi::OsString {
        let before = self.programs.iter().cloned();
        let own = std::env::var_os("PATH").unwrap_or_default();
        std::env::join_paths(before.chain(std::env::split_paths(&own))).unwrap()
    }

    /// Runs a program on the host, as the caller would.
    fn host(&self, words: &[&str]) -> String {
        let done = Command::new(words[0])
            .args(&words[1..])
            .current_dir(&self.project)
            .env("HOME", self.caller.home())
            .env("PATH", self.path())
            .output()
            .unwrap();
        let (out, err) =
            (String::from_utf8_lossy(&done.stdout), String::from_utf8_lossy(&done.stderr));
        assert!(done.status.success(), "{words:?}: {out}{err}");
        out.into_owned()
    }

    /// Everything so far is one commit.
    fn commit(&self) {
        for words in [
            &["git", "init", "-q", "-b", "main"][..],
            &["git", "config", "user.name", "Ann"],
            &["git", "config", "user.email", "ann@example.org"],
            &["git", "add", "-A"],
            &["git", "commit", "-q", "-m", "first"],
        ] {
            self.host(words);
        }
    }

    /// Runs a line under `edit`.
    fn line(&self, text: &str) -> Ran {
        let mut command = self.caller.runner(&self.project);
        command.args(["exec", "--policy", "edit", "--timeout", "100s", "--shell", text]);
        let ran = Ran::from(command.env("PATH", self.path()).output().unwrap());
        assert!(!format!("{}{}", ran.out, ran.err).contains(SECRET), "{text}: {ran:?}");
        ran
    }

    /// Lines that go well, each with something that it says.
    fn all_work(&self, lines: &[(&str, &str)]) {
        for (text, says) in lines {
            let ran = self.line(text);
            assert_eq!(ran.code, Some(0), "{text}: {}{}", ran.out, ran.err);
            let said = format!("{}{}", ran.out, ran.err);
            assert!(said.contains(says), "{text} does not say {says:?}: {said}");
            assert!(!ran.err.contains("held back"), "{text}: {}", ran.err);
        }
    }

    fn text(&self, name: &str) -> String {
        fs::read_to_string(self.project.join(name))
            .unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    fn exists(&self, name: &str) -> bool {
        self.project.join(name).symlink_metadata().is_ok()
    }
}

/// The hook of a repository with husky.
const HOOK: &str = "echo husky ran\nnpm test --silent\n";

#[test]
fn a_repository_with_husky_commits_and_its_hooks_stay_inside() {
    let work = Work::new(&[
        (
            "package.json",
            r#"{"name":"app","private":true,"type":"module","scripts":{"prepare":"husky","test":"node check.js"}}"#,
        ),
        (
            "check.js",
            "import { ok } from './ok.js'\nconsole.log(`the hook says ${ok}`)\nprocess.exit(ok ? 0 : 1)\n",
        ),
        ("ok.js", "export const ok = true\n"),
        (".gitignore", "node_modules\n"),
    ]);
    work.copy(&packages("husky").join("node_modules"), "node_modules");
    work.commit();
    work.host(&["npm", "run", "--silent", "prepare"]);
    fs::write(work.project.join(".husky/pre-commit"), HOOK).unwrap();
    work.host(&["git", "add", "-A"]);
    work.host(&["git", "commit", "-q", "-m", "hooks"]);
    assert_eq!(work.host(&["git", "config", "core.hooksPath"]), ".husky/_\n");
    let config = work.text(".git/config");
    // A command that is read as one without code runs no hooks; in a line that runs as code they run, inside.
    work.all_work(&[
        ("git status --short && npm test", "the hook says true"),
        ("echo more > new.txt && git add -A && git commit -m second", "second"),
        ("f() { echo \"$1\" >> new.txt; git commit -qam \"$1\"; }; f third", "the hook says true"),
        ("git log --oneline | wc -l", "4"),
        (
            "echo even >> new.txt; git commit -qam fourth --no-verify && git log -1 --format=%s",
            "fourth",
        ),
        ("npm run prepare && npx husky && git config core.hooksPath", ".husky/_"),
    ]);
    // A hook that says no keeps such a commit from being made, as on the host.
    let ran = work.line("sed -i s/true/false/ ok.js; f() { git commit -qam fifth; }; f");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    let said = format!("{}{}", ran.out, ran.err);
    assert!(said.contains("husky ran") && said.contains("the hook says false"), "{said}");
    assert_eq!(work.host(&["git", "log", "-1", "--format=%s"]), "fourth\n");
    work.all_work(&[("git checkout -q ok.js && git status --short", "")]);
    // Hooks and what they are found by stay what they were, however a line goes about it.
    let mark = work.caller.path("mark");
    for text in [
        "echo 'touch MARK' >> .husky/pre-commit",
        "printf 'touch MARK\\n' > .husky/_/pre-commit",
        "f() { echo 'touch MARK' >> \"$1\"; }; f .husky/pre-commit; f .husky/commit-msg; f .husky/_/h",
        "mkdir evil; echo 'touch MARK' > evil/pre-commit; chmod +x evil/pre-commit; git config core.hooksPath evil",
        "node -e \"require('fs').writeFileSync('.husky/pre-push', 'touch MARK')\"",
        "mv .husky husky2; mkdir .husky; echo 'touch MARK' > .husky/pre-commit",
    ] {
        let ran = work.line(&text.replace("MARK", mark.to_str().unwrap()));
        let refused = ran.code == Some(126) || ran.err.contains("held back");
        assert!(refused, "{text}: {}{}", ran.out, ran.err);
    }
    work.host(&["git", "commit", "-q", "--allow-empty", "-m", "on the host"]);
    assert!(!mark.exists());
    assert_eq!(work.text(".git/config"), config);
    assert_eq!(work.text(".husky/pre-commit"), HOOK);
}

#[test]
fn a_virtual_environment_with_requests_and_httpx_works() {
    let work = Work::new(&[
        (
            "app.py",
            "import os, ssl\nimport certifi, httpx, requests\n\n\ndef greet(name):\n    return f'hello {name}'\n\n\n\
             if __name__ == '__main__':\n    ssl.create_default_context(cafile=certifi.where())\n    \
             httpx.Client()\n    requests.Session()\n    print(greet('you'), repr(open('.env').read()))\n",
        ),
        (
            "test_app.py",
            "from app import greet\n\n\ndef test_greet():\n    assert greet('a') == 'hello a'\n",
        ),
        (".env", "TOKEN=CANARY-packaged\n"),
        (".gitignore", ".venv\n.env\n__pycache__\n.pytest_cache\n"),
    ]);
    work.host(&["python3", "-m", "venv", "--without-pip", ".venv"]);
    let library = fs::read_dir(work.project.join(".venv/lib")).unwrap().next().unwrap().unwrap();
    let site = format!(".venv/lib/{}/site-packages", library.file_name().to_str().unwrap());
    work.copy(&packages("web").join("."), &site);
    work.commit();
    let version = "import requests, httpx; print('requests', requests.__version__)";
    work.all_work(&[
        (&format!(".venv/bin/python -c \"{version}\""), "requests 2."),
        (".venv/bin/python app.py", "hello you ''"),
        (".venv/bin/python -m pytest -q", "1 passed"),
        ("source .venv/bin/activate && python app.py && python -m pytest -q 2>&1 | tail -1", "1 passed"),
        ("PYTHONDONTWRITEBYTECODE=1 .venv/bin/python -m pytest -q -k greet", "1 passed"),
        (
            "sed -i 's/hello {/good day {/' app.py test_app.py && sed -i 's/hello a/good day a/' test_app.py && .venv/bin/python -m pytest -q",
            "1 passed",
        ),
        ("git diff --stat && git commit -qam 'Greet better' && git log -1 --format=%s", "Greet better"),
    ]);
    assert!(work.text("app.py").contains("good day"));
    // There is no network, and the call says so.
    for client in ["requests", "httpx"] {
        let text = format!(
            ".venv/bin/python -c \"import {client}; {client}.get('https://example.org/')\""
        );
        let ran = work.line(&text);
        assert_eq!(ran.code, Some(1), "{client}: {}", ran.err);
        assert!(ran.err.contains("no network"), "{client}: {}", ran.err);
    }
    assert_eq!(work.line("cat .env").code, Some(126));
    assert_eq!(work.text(".env"), "TOKEN=CANARY-packaged\n");
}

#[test]
fn vite_and_vitest_build_and_test_an_application_with_an_environment_file() {
    let work = Work::new(&[
        (
            "package.json",
            r#"{"name":"app","private":true,"type":"module","scripts":{"build":"tsc --noEmit && vite build","test":"vitest run"}}"#,
        ),
        (
            "index.html",
            "<div id=\"app\"></div><script type=\"module\" src=\"/src/main.ts\"></script>\n",
        ),
        (
            "vite.config.ts",
            "import { defineConfig } from 'vite'\nexport default defineConfig({ build: { minify: false } })\n",
        ),
        (
            "tsconfig.json",
            r#"{"compilerOptions":{"strict":true,"module":"ESNext","moduleResolution":"bundler","target":"ES2022","types":["vite/client"],"skipLibCheck":true,"noEmit":true},"include":["src"]}"#,
        ),
        (
            "src/main.ts",
            "import { add } from './add'\ndocument.title = `${add(1, 2)} ${import.meta.env.VITE_NAME}`\n",
        ),
        ("src/add.ts", "export const add = (a: number, b: number): number => a + b\n"),
        (
            "src/add.test.ts",
            "import { expect, test } from 'vitest'\nimport { add } from './add'\ntest('add', () => expect(add(1, 2)).toBe(3))\n",
        ),
        (".env", "VITE_NAME=CANARY-packaged\n"),
        (".env.local", "VITE_NAME=CANARY-packaged\n"),
        (".env.example", "VITE_NAME=\n"),
        (".gitignore", "node_modules\ndist\n.env\n.env.local\n"),
    ]);
    work.copy(&packages("vite").join("node_modules"), "node_modules");
    work.commit();
    work.all_work(&[
        ("npm test", "1 passed"),
        ("npx vitest run --reporter=verbose", "1 passed"),
        ("node_modules/.bin/vitest run src/add.test.ts", "1 passed"),
        ("npx tsc --noEmit && echo types are right", "types are right"),
        ("npm run build", "built in"),
        ("npm run build 2>&1 | tail -3", "built in"),
        ("ls dist/assets | wc -l && cat .env.example", "VITE_NAME="),
        ("npx vite build --outDir dist/second && test -f dist/second/index.html && echo there", "there"),
        (
            "cat > src/more.test.ts <<'E'\nimport { expect, test } from 'vitest'\nimport { add } from './add'\ntest('more', () => expect(add(2, 2)).toBe(4))\nE\nnpx vitest run",
            "2 passed",
        ),
        ("git add -A && git commit -qm 'Test more' && git status --short | wc -l", "0"),
    ]);
    // A test that fails is a failure, and shows why.
    let ran = work.line("sed -i 's/a + b/a - b/' src/add.ts && npm test");
    assert_eq!(ran.code, Some(1), "{}{}", ran.out, ran.err);
    assert!(
        format!("{}{}", ran.out, ran.err).contains("expected -1 to be 3"),
        "{}{}",
        ran.out,
        ran.err
    );
    work.all_work(&[("git checkout -q src/add.ts && npx vitest run", "2 passed")]);
    // On the host is what was built, without anything of what is denied.
    for folder in ["dist", "src"] {
        let found = Command::new("grep")
            .args(["-r", SECRET, folder])
            .current_dir(&work.project)
            .output()
            .unwrap();
        assert_eq!(found.status.code(), Some(1), "{}", String::from_utf8_lossy(&found.stdout));
    }
    assert!(work.exists("dist/index.html") && work.exists("src/more.test.ts"));
    for text in ["cat .env", "grep -r VITE_NAME .env.local", "cp .env src/env.ts"] {
        assert_eq!(work.line(text).code, Some(126), "{text}");
    }
    let ran =
        work.line("node -e \"console.log(require('fs').readFileSync('.env', 'utf8').length)\"");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "0\n"), "{}", ran.err);
    assert_eq!(work.text(".env"), "VITE_NAME=CANARY-packaged\n");
}

#[test]
fn a_pnpm_monorepo_builds_and_tests_its_packages() {
    let build = r#""build":"mkdir -p dist && cp src/index.js dist/index.js","test":"node --test""#;
    let manifest = |name: &str, more: &str| {
        format!(
            r#"{{"name":"{name}","version":"1.0.0","main":"src/index.js","scripts":{{{build}}}{more}}}"#
        )
    };
    let (a, b) = (manifest("a", r#","dependencies":{"b":"workspace:*"}"#), manifest("b", ""));
    let mut work = Work::new(&[
        (
            "package.json",
            r#"{"name":"root","private":true,"scripts":{"build":"pnpm -r build","check":"node -e 'console.log(1)'"}}"#,
        ),
        ("pnpm-workspace.yaml", "packages:\n  - 'packages/*'\n"),
        ("packages/a/package.json", &a),
        ("packages/a/src/index.js", "module.exports = require('b') + 1\n"),
        (
            "packages/a/index.test.js",
            "const test = require('node:test')\nconst assert = require('node:assert')\ntest('a', () => assert.equal(require('./src/index.js'), 3))\n",
        ),
        ("packages/b/package.json", &b),
        ("packages/b/src/index.js", "module.exports = 2\n"),
        (".gitignore", "node_modules\ndist\n"),
    ]);
    let folder = work.caller.home().join(".local/share/pnpm");
    work.copy(
        &packages("pnpm").join("node_modules"),
        folder.join("node_modules").to_str().unwrap(),
    );
    work.programs.push(folder.join("node_modules/.bin"));
    work.host(&["pnpm", "install", "--offline", "--silent"]);
    work.commit();
    work.all_work(&[
        ("pnpm build", "packages/a build: Done"),
        ("pnpm -r test", "# pass 1"),
        ("pnpm --filter a test", "# pass 1"),
        ("pnpm run check", "1"),
        ("cd packages/a && pnpm test", "# pass 1"),
        ("pnpm -r exec node -p \"require('./package.json').name\"", "b"),
        ("sed -i s/2/20/ packages/b/src/index.js && pnpm -r build && cat packages/b/dist/index.js", "20"),
        ("git commit -qam 'Count further' && git status --short | wc -l", "0"),
    ]);
    assert_eq!(work.text("packages/b/dist/index.js"), "module.exports = 20\n");
    assert_ne!(work.line("pnpm add left-pad").code, Some(0));
    assert_ne!(work.line("pnpm publish").code, Some(0));
}

#[test]
fn a_uv_project_runs_and_tests_without_a_network() {
    let mut work = Work::new(&[
        (
            "pyproject.toml",
            "[project]\nname = \"small\"\nversion = \"0.1.0\"\nrequires-python = \">=3.8\"\n",
        ),
        (
            "small.py",
            "def two():\n    return 2\n\n\nif __name__ == '__main__':\n    print('two is', two())\n",
        ),
        (
            "test_small.py",
            "import unittest\nfrom small import two\n\n\nclass T(unittest.TestCase):\n    def test_two(self):\n        self.assertEqual(two(), 2)\n",
        ),
        (".gitignore", ".venv\n__pycache__\n"),
    ]);
    let folder = work.caller.home().join("bin");
    work.copy(&packages("uv").join("bin/uv"), folder.join("uv").to_str().unwrap());
    work.programs.push(folder);
    work.host(&["uv", "sync", "--quiet", "--offline", "--python", "/usr/bin/python3"]);
    work.commit();
    work.all_work(&[
        ("uv run --offline python small.py", "two is 2"),
        ("uv run --offline python -m unittest", "OK"),
        ("uv run --offline --frozen python -c 'import small; print(small.two())'", "2"),
        (".venv/bin/python small.py", "two is 2"),
        (
            "sed -i 's/two is/so two is/' small.py && uv run --offline python small.py",
            "so two is 2",
        ),
        ("git commit -qam 'Say so' && git status --short | wc -l", "0"),
    ]);
    assert!(work.text("small.py").contains("so two is"));
    assert_ne!(work.line("uv publish").code, Some(0));
}

#[test]
fn a_cargo_workspace_is_built_tested_and_linted() {
    let work = Work::new(&[
        ("Cargo.toml", "[workspace]\nresolver = \"2\"\nmembers = [\"app\", \"core\"]\n"),
        (
            "app/Cargo.toml",
            "[package]\nname = \"app\"\nversion = \"0.1.0\"\nedition = \"2021\"\n\n[dependencies]\nmine = { path = \"../core\", package = \"core-mine\" }\n",
        ),
        ("app/src/main.rs", "fn main() {\n    println!(\"two is {}\", mine::two());\n}\n"),
        (
            "core/Cargo.toml",
            "[package]\nname = \"core-mine\"\nversion = \"0.1.0\"\nedition = \"2021\"\n",
        ),
        (
            "core/src/lib.rs",
            "pub fn two() -> u8 {\n    2\n}\n\n#[test]\nfn it_is_two() {\n    assert_eq!(two(), 2);\n}\n",
        ),
        (".gitignore", "target\n"),
    ]);
    // The caller's own toolchain, whose home is not the caller's.
    let mut work = work;
    let found = Command::new("rustc").args(["--print", "sysroot"]).output().unwrap();
    let sysroot = String::from_utf8(found.stdout).unwrap();
    work.programs.push(Path::new(sysroot.trim()).join("bin"));
    work.host(&["cargo", "generate-lockfile", "--offline", "--quiet"]);
    work.commit();
    work.all_work(&[
        ("cargo build", "Finished"),
        ("cargo test", "it_is_two ... ok"),
        ("cargo test -p core-mine 2>&1 | tail -20", "it_is_two ... ok"),
        ("cargo run -q -p app", "two is 2"),
        ("target/debug/app", "two is 2"),
        ("cargo check --workspace --all-targets", "Finished"),
        ("cargo metadata --format-version 1 --no-deps | head -c 20", "packages"),
        ("sed -i 's/two is/so two is/' app/src/main.rs && cargo run -q -p app", "so two is 2"),
        ("git commit -qam 'Say so' && git status --short | wc -l", "0"),
    ]);
    assert_ne!(work.line("cargo publish").code, Some(0));
}
