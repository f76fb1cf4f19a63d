//! A machine without Docker: a root of its own, in namespaces of its own, in which no daemon answers.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Command, Stdio};

use serde_json::Value;

use crate::support::{Ran, needs_root};

/// Makes the root and starts a command in it: `sh - ROOT USER COMMAND…`. Only the host's system folders are there, and no
/// socket of any daemon.
const ENTER: &str = r#"
set -e
root=$1 user=$2
shift 2
mount --make-rprivate /
mount --bind "$root" "$root"
cd "$root"
for name in bin sbin lib lib32 lib64 libx32; do
  if [ -L "/$name" ]; then cp -P "/$name" .; elif [ -d "/$name" ]; then mkdir -p "$name"; mount --bind "/$name" "$name"; fi
done
mkdir -p usr etc dev proc sys run old
mount --bind /usr usr
mount --bind /etc etc
mount --rbind /dev dev
mount --rbind /sys sys
mount -t proc proc proc
pivot_root . old
umount -l old
cd "/home/$user/project"
id=0
[ "$user" = root ] || id=42042
exec env -i HOME="/home/$user" PATH=/usr/local/bin:/usr/bin:/bin LANG=C.UTF-8 \
  setpriv --reuid "$id" --regid "$id" --clear-groups "$@"
"#;

const TOOL: &str = r#"name: word_count
description: Count the words of a file.
schema:
  type: object
  properties: { path: { type: string } }
  required: [path]
code: |
  export async function execute(args: { path: string }, { platform }: ToolContext) {
    const text = await platform.fs.readFile(args.path);
    return { words: text.split(/\s+/).filter(Boolean).length };
  }
"#;

/// The machine, and who uses it.
struct Machine {
    root: tempfile::TempDir,
    user: &'static str,
}

impl Machine {
    fn of(user: &'static str) -> Self {
        needs_root();
        let root = tempfile::tempdir_in("/var/tmp").unwrap();
        let machine = Self { root, user };
        for (folder, mode) in [("", 0o755), ("tmp", 0o1777), ("var/tmp", 0o1777), ("opt", 0o755)] {
            fs::create_dir_all(machine.path(folder)).unwrap();
            fs::set_permissions(machine.path(folder), fs::Permissions::from_mode(mode)).unwrap();
        }
        fs::copy(env!("CARGO_BIN_EXE_runner"), machine.path("opt/runner")).unwrap();
        let project = machine.path(&format!("home/{user}/project"));
        fs::create_dir_all(project.join(".runner/tools")).unwrap();
        fs::write(project.join(".runner/tools/word_count.yml"), TOOL).unwrap();
        fs::write(project.join("three.txt"), "one two three\n").unwrap();
        if user != "root" {
            let home = machine.path(&format!("home/{user}"));
            let done = Command::new("chown").args(["-R", "42042:42042"]).arg(home).status();
            assert!(done.unwrap().success());
        }
        machine
    }

    fn path(&self, below: &str) -> PathBuf {
        self.root.path().join(below)
    }

    /// Runs the program there.
    fn runner(&self, args: &[&str]) -> Ran {
        let mut command = Command::new("unshare");
        command.args(["--mount", "--pid", "--fork", "--kill-child", "--", "sh", "-c", ENTER, "-"]);
        command.arg(self.root.path()).args([self.user, "/opt/runner"]).args(args);
        Ran::from(command.stdin(Stdio::null()).output().unwrap())
    }
}

/// The line that tells which engine is used from now on.
const TOLD: &str = "sandboxes are made by the embedded engine from now on";

fn the_first_command_a_tool_and_the_doctor_work(user: &'static str) {
    let machine = Machine::of(user);

    let first = machine.runner(&["exec", "--", "uname", "-a"]);
    assert_eq!(first.code, Some(0), "{first:?}");
    assert!(first.out.starts_with("Linux sandbox "), "{first:?}");
    assert_eq!(first.err.matches(TOLD).count(), 1, "{first:?}");

    let tool = machine.runner(&["tool", "run", "word_count", "--arg", "path=three.txt"]);
    assert_eq!(tool.code, Some(0), "{tool:?}");
    let value: Value = serde_json::from_str(&tool.out).unwrap();
    assert_eq!(value["words"], 3);
    assert!(!tool.err.contains(TOLD), "told again: {tool:?}");

    let denied = machine.runner(&["exec", "--", "sh", "-c", "touch new.txt"]);
    assert_eq!(denied.code, Some(126), "{denied:?}");

    let image = machine.runner(&["exec", "--image", "alpine:3", "--", "true"]);
    assert_eq!(image.code, Some(125), "{image:?}");
    assert!(image.err.contains("runs `image: host` alone"), "{image:?}");

    let doctor = machine.runner(&["doctor", "--json"]);
    assert_eq!(doctor.code, Some(0), "{doctor:?}");
    let report = doctor.json();
    assert_eq!(report["passed"], true);
    let [docker, embedded] = report["engines"].as_array().unwrap().as_slice() else {
        panic!("{report}")
    };
    assert_eq!(docker["unusable"]["code"], "engine_missing");
    assert_eq!(docker["rows"], serde_json::json!([]));
    assert_eq!(embedded.get("unusable"), None);

    let audit = machine.runner(&["audit", "verify"]);
    assert_eq!(audit.code, Some(0), "{audit:?}");
    let left: Vec<_> = fs::read_dir(machine.path("var/tmp")).unwrap().flatten().collect();
    assert!(left.is_empty(), "{left:?}");
}

#[test]
fn without_docker_root_runs_commands_tools_and_the_doctor() {
    the_first_command_a_tool_and_the_doctor_work("root");
}

#[test]
fn without_docker_an_ordinary_user_runs_commands_tools_and_the_doctor() {
    the_first_command_a_tool_and_the_doctor_work("someone");
}
