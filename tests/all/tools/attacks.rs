//! Rows of the threat list against the broker, from inside a real container. Each attack stands beside a
//! control that succeeds.

use super::{call, told, tool, write_yaml};
use crate::support::{Home, Ran, needs_engine};
use serde_json::json;
use std::fs;
use std::os::unix::fs::symlink;

const CANARY: &str = "canary-7f3a91";

/// Tries each path with `readFile` and returns the codes.
const READ_ALL: &str = r#"
export async function execute(args, context) {
  const told = {};
  for (const path of args.paths) {
    try { told[path] = "read: " + (await context.platform.fs.readFile(path)) }
    catch (error) { told[path] = error.code }
  }
  return told;
}"#;

/// Tries to write each path.
const WRITE_ALL: &str = r#"
export async function execute(args, context) {
  const told = {};
  for (const path of args.paths) {
    try { await context.platform.fs.writeFile(path, "written"); told[path] = "written" }
    catch (error) { told[path] = error.code }
  }
  return told;
}"#;

fn paths(home: &Home, policy: &str, more: &str, code: &str, paths: &[&str]) -> serde_json::Value {
    write_yaml(home, "t", more, code);
    let args = serde_json::json!({ "paths": paths }).to_string();
    let (result, ran) = call(home, "t", &["--policy", policy, "--args", &args]);
    assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
    result["value"].clone()
}

#[test]
fn row_01_and_30_links_and_special_files() {
    needs_engine();
    let home = Home::new();
    fs::write(home.path("outside"), CANARY).unwrap();
    fs::write(home.path("project/inside"), "inside").unwrap();
    symlink(home.path("outside"), home.path("project/out")).unwrap();
    symlink(home.path(""), home.path("project/up")).unwrap();
    symlink("inside", home.path("project/in")).unwrap();
    symlink("/proc/self/environ", home.path("project/environ")).unwrap();
    symlink("/proc/self/root/etc/passwd", home.path("project/magic")).unwrap();
    fs::hard_link(home.path("outside"), home.path("project/hard")).unwrap();
    rustix::fs::mkfifoat(rustix::fs::CWD, home.path("project/fifo"), rustix::fs::Mode::RUSR)
        .unwrap();
    let told = paths(
        &home,
        "readonly",
        "",
        READ_ALL,
        &[
            "inside",
            "in",
            "out",
            "up/outside",
            "../outside",
            "/etc/passwd",
            "hard",
            "environ",
            "magic",
            "fifo",
            "/proc/self/environ",
            "/dev/zero",
            "/dev/fd/0",
        ],
    );
    assert_eq!((&told["inside"], &told["in"]), (&"read: inside".into(), &"read: inside".into()));
    for path in [
        "out",
        "up/outside",
        "../outside",
        "/etc/passwd",
        "hard",
        "environ",
        "magic",
        "fifo",
        "/proc/self/environ",
        "/dev/zero",
        "/dev/fd/0",
    ] {
        let code = told[path].as_str().unwrap();
        assert!(["path_escape", "special_file"].contains(&code), "{path}: {code}");
    }
    assert!(!told.to_string().contains(CANARY));
}

#[test]
fn row_01_and_04_writes_stay_where_they_may() {
    needs_engine();
    let home = Home::new();
    home.git(&["init", "-q"]);
    fs::create_dir_all(home.path("project/out")).unwrap();
    symlink(home.path("state"), home.path("project/out/link")).unwrap();
    home.user_policy(
        "writer",
        "policy: 1\nname: writer\nextends: [base]\nfiles: { read: [\"**\"], write: [\"**\"] }\n",
    );
    let attempts = [
        "out/new",
        "out/deep/er/new",
        "out/link/x",
        "../x",
        ".runner/tools/t.yml",
        ".runner/policies/p.yml",
        ".git/hooks/pre-commit",
        ".git/config",
        ".bashrc",
        ".vscode/tasks.json",
        "/etc/x",
    ];
    let before = fs::read(home.path("project/.git/config")).unwrap();
    let told = paths(&home, "writer", "files: { write: [\"**\"] }", WRITE_ALL, &attempts);
    assert_eq!(told["out/new"], "written", "{told}");
    assert_eq!(fs::read_to_string(home.path("project/out/new")).unwrap(), "written");
    for path in [
        ".runner/tools/t.yml",
        ".runner/policies/p.yml",
        ".git/hooks/pre-commit",
        ".git/config",
        ".bashrc",
        ".vscode/tasks.json",
    ] {
        assert_eq!(told[path], "protected_path", "{path}: {told}");
    }
    for path in ["out/link/x", "../x", "/etc/x"] {
        assert_eq!(told[path], "path_escape", "{path}: {told}");
    }
    assert_eq!(fs::read(home.path("project/.git/config")).unwrap(), before);
    assert!(!home.path("state/x").exists() && !home.path("x").exists());
}

#[test]
fn row_06_spellings() {
    needs_engine();
    let home = Home::new();
    for name in ["..test", "te..st", "%2e%2e", "sp ace"] {
        fs::write(home.path(&format!("project/{name}")), name).unwrap();
    }
    fs::create_dir(home.path("project2")).unwrap();
    fs::write(home.path("project2/x"), CANARY).unwrap();
    let sibling = home.path("project2/x");
    let long = "a".repeat(300);
    let deep = "a/".repeat(3000);
    let told = paths(
        &home,
        "readonly",
        "",
        READ_ALL,
        &[
            "..test",
            "te..st",
            "%2e%2e",
            ".//sp ace",
            "./x/../..test",
            sibling.to_str().unwrap(),
            "../project2/x",
            "a\0b",
            &long,
            &deep,
            "",
        ],
    );
    for name in ["..test", "te..st", "%2e%2e"] {
        assert_eq!(told[name], format!("read: {name}"));
    }
    assert_eq!(told[".//sp ace"], "read: sp ace");
    for path in [sibling.to_str().unwrap(), "../project2/x"] {
        assert_eq!(told[path], "path_escape");
    }
    for path in ["a\0b", &long, &deep, ""] {
        assert!(!told[path].as_str().unwrap().starts_with("read"), "{told}");
    }
    assert!(!told.to_string().contains(CANARY));
}

#[test]
fn row_13_and_16_broken_and_forged_frames_end_the_call() {
    needs_engine();
    let home = Home::new();
    let frame = r#"
import fs from "node:fs";
function frame(kind, id, payload) {
  const body = Buffer.from(payload); const head = Buffer.alloc(9);
  head.writeUInt32LE(body.length, 0); head.writeUInt8(kind, 4); head.writeUInt32LE(id, 5);
  return Buffer.concat([head, body]);
}
"#;
    for (attack, says) in [
        ("fs.writeSync(3, frame(99, 0, '{}'))", "protocol"),
        ("fs.writeSync(3, frame(1, 1000, 'no json'))", ""),
        (
            "fs.writeSync(3, frame(1, 1000, '{\"method\":\"file.everything\",\"params\":{},\"body\":false}'))",
            "",
        ),
        (
            "fs.writeSync(3, frame(1, 1000, '{\"method\":\"file.stat\",\"method\":\"file.stat\",\"params\":{\"path\":\"a\"},\"body\":false}'))",
            "",
        ),
        (
            "const head = Buffer.alloc(9); head.writeUInt32LE(0xffffffff, 0); head.writeUInt8(1, 4); fs.writeSync(3, head)",
            "",
        ),
        (
            "fs.writeSync(3, Buffer.concat([frame(6, 0, '{\"value\":1}'), frame(6, 0, '{\"value\":2}')]))",
            "",
        ),
    ] {
        let code = format!(
            "{frame}\nexport async function execute() {{ {attack}; await new Promise((done) => setTimeout(done, 5000)); return 1 }}"
        );
        let (result, ran) = tool(&home, &code);
        let (status, exit, error) = told(&result);
        assert_eq!((status, exit), ("error", 125), "{attack}: {result} {}", ran.err);
        assert!(error.contains(says), "{attack}: {error}");
    }
    // Perfect frames on every other descriptor are text or nothing, and the next call works.
    let code = format!(
        "{frame}\nexport async function execute() {{ const forged = frame(6, 0, '{{\"value\":\"forged\"}}'); for (const fd of [1, 2, 0, 4, 5, 6, 7, 8, 9]) {{ try {{ fs.writeSync(fd, forged) }} catch {{}} }} for (const path of ['/proc/1/fd/0', '/proc/1/fd/1', '/proc/1/fd/3']) {{ try {{ fs.writeFileSync(path, forged) }} catch {{}} }} return 'real' }}"
    );
    let (result, ran) = tool(&home, &code);
    assert_eq!(
        (told(&result).0, &result["value"]),
        ("completed", &"real".into()),
        "{result} {}",
        ran.err
    );
}

#[test]
fn row_15_a_tool_finds_no_secret() {
    needs_engine();
    let home = Home::new();
    fs::write(home.path("secret"), CANARY).unwrap();
    fs::write(home.path("project/.env"), format!("KEY={CANARY}")).unwrap();
    let code = r#"
import fs from "node:fs";
import { execSync } from "node:child_process";
export async function execute(args, context) {
  const found = [JSON.stringify(process.env), JSON.stringify(context.config)];
  for (const command of ["env", "cat /proc/*/environ", "ls -laR / 2>/dev/null | head -c 2000000", "grep -rsl canary /home /root /tmp /work /workspace /var /etc || true"]) {
    try { found.push(execSync(command, { encoding: "utf8", maxBuffer: 1 << 26 })) } catch (error) { found.push(String(error)) }
  }
  for (const path of [".env", "/proc/self/environ", "../secret"]) {
    try { found.push(await context.platform.fs.readFile(path)) } catch (error) { found.push(error.message + error.stack) }
  }
  console.log(found.join("\n"));
  return found.join("\n").slice(0, 1000000);
}"#;
    write_yaml(&home, "t", "", code);
    let mut command = home.runner();
    command.env("CANARY_TOKEN", CANARY).args(["--json", "tool", "run", "t", "--yes"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    assert!(text.contains("completed"), "{text}");
    assert!(!text.contains(CANARY), "{}", &text[..text.len().min(4000)]);
    for entry in fs::read_dir(home.path("state/runner")).unwrap().flatten() {
        if entry.path().is_file() {
            let bytes = fs::read(entry.path()).unwrap();
            assert!(
                !bytes.windows(CANARY.len()).any(|window| window == CANARY.as_bytes()),
                "{:?}",
                entry.path()
            );
        }
    }
}

/// What a policy passes to a tool is for the tool: it is in nothing that a container is created with.
#[test]
fn row_15_variables_of_a_tool_travel_with_its_job() {
    needs_engine();
    let home = Home::new();
    let policy = "policy: 1\nname: own\nextends: [readonly]\nenv: { pass: [CANARY_TOKEN, TZ], set: { OTHER: fixed } }\n";
    home.user_policy("own", policy);
    let code = r#"
import fs from "node:fs";
const { CANARY_TOKEN, OTHER, TZ, HOME } = process.env;
export async function execute() {
  const started = fs.readFileSync("/proc/1/cmdline", "utf8") + fs.readFileSync("/proc/self/environ", "utf8");
  return { CANARY_TOKEN, length: CANARY_TOKEN.length, OTHER, TZ, HOME, hour: new Date(0).getHours(), leaked: started.includes(CANARY_TOKEN) };
}"#;
    write_yaml(&home, "t", "env: [CANARY_TOKEN, TZ]", code);
    let mut command = home.runner();
    command.env("CANARY_TOKEN", CANARY).env("TZ", "Asia/Tokyo");
    command.args(["--json", "tool", "run", "t", "--yes", "--policy", "own"]);
    let result = Ran::from(command.output().unwrap()).json();
    let value = &result["value"];
    // It arrives, and a result shows no value of that name.
    assert_eq!(
        (&value["CANARY_TOKEN"], &value["length"], &value["OTHER"]),
        (&json!("[redacted]"), &json!(CANARY.len()), &json!("fixed")),
        "{result}"
    );
    assert_eq!((&value["TZ"], &value["hour"]), (&json!("Asia/Tokyo"), &json!(9)), "{result}");
    assert_eq!(value["leaked"], false, "{result}");
    assert_ne!(value["HOME"], json!(home.path("")), "{result}");
}

#[test]
fn row_26_many_requests_are_answered_and_bounded() {
    needs_engine();
    let home = Home::new();
    fs::write(home.path("project/a"), "a").unwrap();
    let code = r#"
export async function execute(args, context) {
  const all = await Promise.allSettled(Array.from({ length: args.count }, () => context.platform.fs.readFile("a")));
  const codes = {};
  for (const one of all) { const key = one.status === "fulfilled" ? one.value : one.reason.code; codes[key] = (codes[key] ?? 0) + 1 }
  return codes;
}"#;
    write_yaml(&home, "t", "", code);
    let (result, ran) = call(&home, "t", &["--args", r#"{"count": 500}"#]);
    assert_eq!(
        (told(&result).0, &result["value"]["a"]),
        ("completed", &500.into()),
        "{result} {}",
        ran.err
    );
    let (result, ran) = call(&home, "t", &["--args", r#"{"count": 3000}"#]);
    if result["status"] == "completed" {
        let answered: u64 = result["value"]
            .as_object()
            .unwrap()
            .values()
            .filter_map(serde_json::Value::as_u64)
            .sum();
        assert_eq!(answered, 3000);
        assert!(result["value"]["limit_reached"].as_u64().unwrap() >= 1000, "{result}");
    } else {
        assert_eq!(told(&result).0, "limit", "{result} {}", ran.err);
    }
}

#[test]
fn row_08_a_link_swapped_at_full_speed() {
    needs_engine();
    let home = Home::new();
    let project = home.path("project");
    for name in ["dir", "out"] {
        fs::create_dir(project.join(name)).unwrap();
    }
    fs::create_dir(home.path("outside")).unwrap();
    fs::write(home.path("outside/file"), CANARY).unwrap();
    fs::write(project.join("dir/file"), "inside").unwrap();
    let text = "policy: 1\nname: racer\nextends: [base]\nsandbox: { limits: { broker-calls: 1000000, broker-bytes: 4GiB, wall: 2m } }\nfiles: { read: [\"**\"], write: [\"**\"] }\n";
    home.user_policy("racer", text);
    let code = r#"
export async function execute(args, context) {
  const { readFile, writeFile } = context.platform.fs;
  const told = { reads: 0, writes: 0, leaks: 0, codes: {} };
  const until = Date.now() + 10_000;
  const note = (error) => { told.codes[error.code ?? String(error)] = (told.codes[error.code ?? String(error)] ?? 0) + 1 };
  async function reader() {
    while (Date.now() < until || told.reads + told.writes < 20_000) {
      told.reads += 1;
      try { if ((await readFile("swap/file")) !== "inside" ) told.leaks += 1 } catch (error) { note(error) }
    }
  }
  async function writer(number) {
    while (Date.now() < until) {
      told.writes += 1;
      try { await writeFile(`swap/new${number}`, "new") } catch (error) { note(error) }
    }
  }
  await Promise.all([...Array.from({ length: 24 }, reader), ...Array.from({ length: 4 }, (_, number) => writer(number))]);
  return told;
}"#;
    write_yaml(&home, "t", "files: { write: [\"**\"] }", code);
    let done = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let swapping = std::thread::spawn({
        let (done, swap, real, away) =
            (done.clone(), project.join("swap"), project.join("dir"), project.join("away"));
        let outside = home.path("outside");
        move || {
            fs::rename(&real, &swap).unwrap();
            let mut swaps = 0_u64;
            while !done.load(std::sync::atomic::Ordering::Relaxed) {
                fs::rename(&swap, &away).unwrap();
                symlink(&outside, &swap).unwrap();
                fs::remove_file(&swap).unwrap();
                fs::rename(&away, &swap).unwrap();
                swaps += 1;
            }
            swaps
        }
    });
    let (result, ran) = call(&home, "t", &["--policy", "racer"]);
    done.store(true, std::sync::atomic::Ordering::Relaxed);
    let swaps = swapping.join().unwrap();
    assert_eq!(told(&result).0, "completed", "{result} {}", ran.err);
    let told = &result["value"];
    let operations = told["reads"].as_u64().unwrap() + told["writes"].as_u64().unwrap();
    eprintln!("{operations} operations, {swaps} swaps: {told}");
    assert!(operations >= 20_000, "{told}");
    assert_eq!(told["leaks"], 0, "{told}");
    for code in told["codes"].as_object().unwrap().keys() {
        assert!(
            ["path_escape", "not_found", "busy", "io_error"].contains(&code.as_str()),
            "{told}"
        );
    }
    let outside: Vec<_> = fs::read_dir(home.path("outside")).unwrap().collect();
    assert_eq!(outside.len(), 1);
    assert_eq!(fs::read_to_string(home.path("outside/file")).unwrap(), CANARY);
}
