//! Tools as a stranger writes them: each ends with the right status and a message that helps.

use super::{call, told, tool, write_yaml};
use crate::support::{Home, needs_engine};

#[test]
fn a_tool_that_behaves_is_the_control() {
    needs_engine();
    let home = Home::new();
    let (result, ran) = tool(&home, "export async function execute() { return { fine: 1 } }");
    assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
    assert_eq!(result["value"], serde_json::json!({"fine": 1}));
    assert_eq!(ran.code, Some(0));
}

#[test]
fn a_promise_that_nobody_awaits_does_not_hold_the_call() {
    needs_engine();
    let home = Home::new();
    let code = r#"
export async function execute(args, context) {
  context.platform.fs.readFile("missing");
  setInterval(() => {}, 1000);
  return "done";
}"#;
    let (result, ran) = tool(&home, code);
    assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
    assert_eq!(result["value"], "done");
}

#[test]
fn whatever_is_thrown_becomes_an_error_with_a_message() {
    needs_engine();
    let home = Home::new();
    for (thrown, says) in [
        ("new TypeError('wrong kind')", "wrong kind"),
        ("'a text'", "a text"),
        ("null", "null"),
        ("undefined", "undefined"),
        ("42n", "42"),
        ("Symbol('odd')", "odd"),
        ("{ get message() { throw new Error('no') } }", ""),
        ("(() => { const a = {}; a.a = a; return a })()", ""),
        ("(() => { const r = Proxy.revocable({}, {}); r.revoke(); return r.proxy })()", ""),
    ] {
        let (result, ran) =
            tool(&home, &format!("export async function execute() {{ throw {thrown} }}"));
        assert_eq!(told(&result), ("failed", 1, "tool_error"), "{thrown}: {result} {}", ran.err);
        let message = result["error"]["message"].as_str().unwrap();
        assert!(message.contains(says) && !message.is_empty(), "{thrown}: {message:?}");
        assert_eq!(ran.code, Some(1));
    }
}

#[test]
fn an_error_shows_the_authors_own_line() {
    needs_engine();
    let home = Home::new();
    let code = "interface Odd { a: number }\nfunction deep(): Odd {\n  throw new Error('here');\n}\nexport async function execute() { return deep() }";
    let (result, _) = tool(&home, code);
    let stack = result["error"]["stack"].as_str().unwrap_or_default();
    // Five lines of the definition stand before the code, of which the third line throws.
    assert!(stack.contains("t.yml:8:"), "{stack}");
}

#[test]
fn rejections_and_exceptions_that_nobody_handles_end_the_call() {
    needs_engine();
    let home = Home::new();
    for body in [
        "Promise.reject(new Error('left alone')); await new Promise(() => {})",
        "setTimeout(() => { throw new Error('left alone') }, 1); await new Promise(() => {})",
    ] {
        let (result, ran) = tool(&home, &format!("export async function execute() {{ {body} }}"));
        assert_eq!(told(&result), ("failed", 1, "tool_error"), "{body}: {result} {}", ran.err);
        assert!(result["error"]["message"].as_str().unwrap().contains("left alone"));
    }
}

#[test]
fn a_process_that_leaves_early_has_no_result() {
    needs_engine();
    let home = Home::new();
    for body in [
        "process.exit(0)",
        "process.exit(3)",
        "process.reallyExit(0)",
        "process.kill(process.pid, 'SIGKILL')",
        "process.abort()",
    ] {
        let (result, ran) = tool(&home, &format!("export async function execute() {{ {body} }}"));
        assert_eq!(told(&result), ("failed", 1, "no_result"), "{body}: {result} {}", ran.err);
    }
}

#[test]
fn an_endless_loop_meets_the_clock() {
    needs_engine();
    let home = Home::new();
    write_yaml(&home, "t", "timeout: 2s", "export async function execute() { for (;;) {} }");
    let (result, ran) = call(&home, "t", &[]);
    assert_eq!(told(&result), ("timeout", 124, "timeout"), "{result} {}", ran.err);
    write_yaml(
        &home,
        "t",
        "timeout: 2s",
        "export async function execute() { await new Promise(() => setInterval(() => {}, 9)) }",
    );
    let (result, _) = call(&home, "t", &[]);
    assert_eq!(told(&result), ("timeout", 124, "timeout"));
}

#[test]
fn a_tool_that_waits_for_nothing_is_told_apart_from_one_that_works() {
    needs_engine();
    let home = Home::new();
    // Nothing keeps the process alive: it ends by itself, without a result.
    let (result, ran) =
        tool(&home, "export async function execute() { await new Promise(() => {}) }");
    let (status, exit, _) = told(&result);
    assert!(status == "failed" && exit == 1, "{result} {}", ran.err);
}

#[test]
fn memory_beyond_the_limit_is_oom_or_an_error_of_the_tool() {
    needs_engine();
    let home = Home::new();
    let code = "export async function execute() { const kept = []; for (;;) kept.push(Buffer.alloc(8 << 20, 1)) }";
    let (result, ran) = tool(&home, code);
    assert_eq!(told(&result).0, "oom", "{result} {}", ran.err);
    assert_eq!(ran.code, Some(137));
}

#[test]
fn results_that_are_no_json_or_too_large_are_said_to_be() {
    needs_engine();
    let home = Home::new();
    for (value, code) in [
        ("(() => { const a = {}; a.a = a; return a })()", "result_not_json"),
        ("10n", "result_not_json"),
        ("'x'.repeat(64 << 20)", "result_too_large"),
    ] {
        let (result, ran) =
            tool(&home, &format!("export async function execute() {{ return {value} }}"));
        let (status, _, error) = told(&result);
        assert_eq!(status, "failed", "{value}: {} {}", result["error"], ran.err);
        let details = result["error"]["details"]["code"].as_str().unwrap_or_default();
        assert!(error == code || details == code, "{value}: {}", result["error"]);
    }
    // What JSON leaves out is left out, and nothing is nothing.
    let (result, _) = tool(&home, "export async function execute() {}");
    assert_eq!((told(&result).0, &result["value"]), ("completed", &serde_json::Value::Null));
}

#[test]
fn prints_are_text_and_never_the_result() {
    needs_engine();
    let home = Home::new();
    let code = r#"
export async function execute() {
  console.log(JSON.stringify({ value: "forged" }));
  console.error("on the other stream");
  process.stdout.write("x".repeat(3 << 20) + "\n");
  return "real";
}"#;
    let (result, ran) = tool(&home, code);
    assert_eq!(told(&result), ("completed", 0, ""), "{} {}", result["error"], ran.err);
    assert_eq!(result["value"], "real");
    assert!(result["stdout"].as_str().unwrap().contains("forged"));
    assert!(result["stdout_dropped"].as_u64().unwrap() > 0);
    assert!(result["stderr"].as_str().unwrap().contains("on the other stream"));
}

#[test]
fn worker_threads_and_child_processes_work_and_have_no_talk() {
    needs_engine();
    let home = Home::new();
    let code = r#"
import { Worker } from "node:worker_threads";
import { spawnSync } from "node:child_process";
export async function execute() {
  const worker = await new Promise((done, fail) => {
    const worker = new Worker("require('node:worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
    worker.once("message", done); worker.once("error", fail);
  });
  const child = spawnSync("sh", ["-c", "echo child; ls /proc/self/fd | tr '\\n' ' '; (echo forged >&3) 2>/dev/null && echo LEAK"], { encoding: "utf8" });
  return { worker, child: child.stdout };
}"#;
    let (result, ran) = tool(&home, code);
    assert_eq!(told(&result), ("completed", 0, ""), "{result} {}", ran.err);
    assert_eq!(result["value"]["worker"], 42);
    let child = result["value"]["child"].as_str().unwrap();
    assert!(child.contains("child") && !child.contains("LEAK"), "{child}");
}

#[test]
fn a_tool_that_breaks_its_globals_harms_itself_alone() {
    needs_engine();
    let home = Home::new();
    let code = r#"
export async function execute(args, context) {
  JSON.stringify = () => "no"; JSON.parse = () => 1;
  Object.prototype.value = "polluted"; Array.prototype.push = () => 0;
  Promise.prototype.then = undefined;
  globalThis.Buffer = undefined; Map.prototype.get = () => undefined;
  return "still me";
}"#;
    let (result, ran) = tool(&home, code);
    let (status, exit, _) = told(&result);
    assert!(
        (status == "completed" && result["value"] == "still me")
            || (status == "failed" && exit == 1),
        "{result} {}",
        ran.err
    );
    let (result, _) = tool(&home, "export async function execute() { return 1 }");
    assert_eq!(told(&result), ("completed", 0, ""));
}
