//! What keeps a tool from being called, and what calls it again: rate, cost, circuit breaker, credentials, total time,
//! retries and fallback, through the real command line.

use std::fs;
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};

use crate::support::{Home, Ran, needs_engine};
use crate::tools::{call, told, write_yaml};

/// Lets tools write texts into the workspace.
const POLICY: &str = "policy: 1\nname: writes\nsandbox: { isolation: strict, limits: { wall: 2m } }\nfiles: { read: ['**'], write: ['**'] }\n";

fn home() -> Home {
    let home = Home::new();
    home.user_policy("writes", POLICY);
    home
}

fn configure(home: &Home, text: &str) {
    let text = format!("approvals: {{ withoutTerminal: true }}\n{text}");
    fs::write(home.path("config/runner/config.yml"), text).unwrap();
}

/// A tool that fails with `error` until it was tried `good` times before.
fn flaky(home: &Home, name: &str, more: &str, good: u32, error: &str) {
    let code = format!(
        "export async function execute(_: any, c: any) {{\n  const fs = c.platform.fs;\n  const n = Number(await fs.readFile('{name}.txt').catch(() => '0'));\n  await fs.writeFile('{name}.txt', String(n + 1));\n  if (n < {good}) throw Object.assign(new Error('not yet'), {error});\n  return n;\n}}"
    );
    write_yaml(home, name, &format!("files: {{ write: ['*.txt'] }}\n{more}"), &code);
}

fn run(home: &Home, name: &str, more: &[&str]) -> Value {
    let words = ["--policy", "writes"];
    call(home, name, &words.iter().chain(more).copied().collect::<Vec<_>>()).0
}

/// What was waited before each attempt.
fn waited(result: &Value) -> Vec<u64> {
    let attempts = result["metadata"]["attempts"].as_array().cloned().unwrap_or_default();
    attempts.iter().map(|it| it["waited_ms"].as_u64().unwrap()).collect()
}

const OK: &str =
    "export async function execute(args: any) { if (args.fail) throw new Error('no'); return 1; }";

#[test]
fn rate_cost_and_circuit_say_when_to_come_back() {
    needs_engine();
    let home = home();
    // Rate.
    configure(&home, "tools: { t: { callsPerMinute: 2 } }\n");
    write_yaml(&home, "t", "", OK);
    for _ in 0..2 {
        assert_eq!(told(&call(&home, "t", &[]).0).0, "completed");
    }
    let (result, ran) = call(&home, "t", &[]);
    assert_eq!((ran.code, told(&result).2), (Some(75), "rate_limit_exceeded"), "{result}");
    let wait = result["error"]["details"]["retry_after_ms"].as_u64().unwrap();
    assert!((1..=60_000).contains(&wait) && result["error"]["recoverable"] == true, "{result}");
    assert_recorded(&home, &result);
    // Cost.
    configure(&home, "limits: { dailyCost: 0.50 }\n");
    let paid = "export const tool = {\n  name: 'paid', description: 'Costs.', costInfo: { model: 'usage_based', estimatedCost: 0.3 },\n  parameters: { type: 'object' },\n  execute: async () => 1,\n};\n";
    fs::write(home.path("project/.runner/tools/paid.tool.ts"), paid).unwrap();
    assert_eq!(told(&call(&home, "paid", &[]).0).0, "completed");
    let (result, ran) = call(&home, "paid", &[]);
    assert_eq!((ran.code, told(&result).2), (Some(75), "cost_limit_exceeded"), "{result}");
    assert!(result["error"]["message"].as_str().unwrap().contains("$0.30"), "{result}");
    assert!(result["error"]["details"]["retry_at"].is_i64());
    assert_recorded(&home, &result);
    // What a tool reports beyond its estimate is booked, what it reports below is not, and no price is an error.
    configure(&home, "limits: { dailyCost: 100 }\n");
    let schema = "{ type: 'object', properties: { cost: {} } }";
    let reports = format!(
        "export const tool = {{\n  name: 'reports', description: 'Costs.', costInfo: {{ model: 'usage_based', estimatedCost: 0.3 }},\n  parameters: {schema},\n  execute: async ({{ cost }}) => ({{ success: true, data: 1, metadata: {{ cost }} }}),\n}};\n"
    );
    fs::write(home.path("project/.runner/tools/reports.tool.ts"), reports).unwrap();
    let booked = || {
        home.run(["--json", "audit", "list", "-n", "1"]).json()["calls"][0]["cost_microdollars"]
            .clone()
    };
    for (cost, status, micro) in [
        ("2.5", "completed", 2_500_000),
        ("0", "completed", 300_000),
        ("-5", "error", 300_000),
        ("\"Infinity\"", "error", 300_000),
    ] {
        let (result, ran) = call(&home, "reports", &["--args", &format!("{{\"cost\":{cost}}}")]);
        assert_eq!(told(&result).0, status, "{cost}: {result}");
        assert_eq!(booked(), micro, "{cost}");
        if status == "error" {
            assert_eq!((ran.code, told(&result).2), (Some(125), "invalid_cost"), "{result}");
            assert_eq!(result["value"], Value::Null, "{result}");
        }
    }
    configure(&home, "limits: { dailyCost: 3.50 }\n");
    let (result, _) = call(&home, "reports", &[]);
    assert_eq!(told(&result).2, "cost_limit_exceeded", "{result}");
    assert!(result["error"]["message"].as_str().unwrap().contains("$2.50"), "{result}");
    // The circuit opens, is tried once after a pause, and closes.
    configure(&home, "limits: { breaker: { calls: 2, pause: 2s, window: 1h } }\n");
    let schema = "schema: { type: object, properties: { fail: { type: boolean } } }";
    write_yaml(&home, "u", "", OK);
    let file = home.path("project/.runner/tools/u.yml");
    let text = fs::read_to_string(&file).unwrap().replace("schema: { type: object }", schema);
    fs::write(&file, text).unwrap();
    let fails = || call(&home, "u", &["--arg", "fail=true"]).0;
    let stands = || home.run(["--json", "tool", "info", "u"]).json()["circuit"]["breaker"].clone();
    assert_eq!(stands(), "closed");
    for _ in 0..2 {
        assert_eq!(told(&fails()).0, "failed");
    }
    let result = fails();
    assert_eq!((told(&result).1, told(&result).2), (75, "circuit_open"), "{result}");
    assert_recorded(&home, &result);
    assert_eq!(stands(), "open");
    let info = home.run(["tool", "info", "u"]).out;
    assert!(info.contains("open") && info.contains("tried again at 20"), "{info}");
    let pause = |result: &Value| {
        let wait = result["error"]["details"]["retry_after_ms"].as_u64().unwrap();
        sleep(Duration::from_millis(wait + 50));
    };
    pause(&result);
    assert_eq!(stands(), "half_open");
    assert_eq!(told(&fails()).0, "failed", "the probe");
    let result = fails();
    assert_eq!(told(&result).2, "circuit_open", "{result}");
    pause(&result);
    assert_eq!(told(&call(&home, "u", &[]).0).0, "completed");
    assert_eq!(stands(), "closed");
    // A call that a limit held back neither ran nor was denied.
    let stats = home.run(["--json", "audit", "stats"]).json();
    assert_eq!((&stats["denials"], &stats["denials_without_rule"]), (&json!([]), &json!([])));
    assert_eq!(
        stats["held"],
        json!([["circuit_open", 2], ["cost_limit_exceeded", 2], ["rate_limit_exceeded", 1]])
    );
    let of = |name: &str| {
        let tools = stats["tools"].as_array().unwrap().iter();
        tools.clone().find(|it| it["tool"] == name).cloned().unwrap_or_default()
    };
    assert_eq!((&of("t")["calls"], &of("t")["success"]), (&json!(3), &json!(1.0)), "{stats}");
    assert_eq!((&of("u")["calls"], &of("u")["success"]), (&json!(6), &json!(0.25)), "{stats}");
    assert!(of("u")["duration_ms"]["p95"].is_u64(), "{stats}");
}

/// The ledger tells what the caller saw.
fn assert_recorded(home: &Home, result: &Value) {
    let listed = home.run(["--json", "audit", "list", "-n", "1"]).json()["calls"][0].clone();
    for key in ["call", "status", "exit"] {
        assert_eq!(listed[key], result[key], "{key}: {listed}");
    }
    assert_eq!(listed["code"], result["error"]["code"], "{listed}");
    assert!(home.run(["--json", "audit", "list", "--denied"]).json()["calls"] == json!([]));
}

#[test]
fn a_tool_without_its_credentials_is_not_started() {
    needs_engine();
    let home = home();
    let code = "export const tool = {\n  name: 'secretive', description: 'Needs a key.', securityTier: 'external_api',\n  requiredAuth: { type: 'api_key', required: true, configKey: 'SECRETIVE_KEY', setupUrl: 'https://keys.example/' },\n  parameters: { type: 'object' },\n  execute: async () => 1,\n};\n";
    fs::create_dir_all(home.path("project/.runner/tools")).unwrap();
    fs::write(home.path("project/.runner/tools/secretive.tool.ts"), code).unwrap();
    let (result, ran) = call(&home, "secretive", &[]);
    assert_eq!((ran.code, told(&result).2), (Some(126), "authentication_required"), "{result}");
    assert!(result["error"]["suggestion"].as_str().unwrap().contains("https://keys.example/"));
    let mut command = home.runner();
    command.args(["--json", "tool", "run", "secretive", "--yes"]).env("SECRETIVE_KEY", "k");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(told(&ran.json()).0, "completed", "{}", ran.out);
}

#[test]
fn each_kind_of_retry_waits_as_it_says() {
    needs_engine();
    let home = home();
    let network = "{ code: 'NETWORK_ERROR' }";
    for (name, retry, good, expected) in [
        ("none", "", 1, None),
        (
            "fixed",
            "retry: { maxRetries: 2, backoff: { type: fixed, delay: 20 } }",
            2,
            Some(vec![0, 20, 20]),
        ),
        (
            "linear",
            "retry: { maxRetries: 2, backoff: { type: linear, baseDelay: 10, increment: 30 } }",
            2,
            Some(vec![0, 10, 40]),
        ),
        (
            "exponential",
            "retry: { maxAttempts: 3, backoffMs: 10, backoffMultiplier: 3 }",
            2,
            Some(vec![0, 10, 30]),
        ),
        (
            "bounded",
            "retry: { maxRetries: 2, backoff: { type: exponential, baseDelay: 20, maxDelay: 30, multiplier: 10 } }",
            2,
            Some(vec![0, 20, 30]),
        ),
        ("only", "retry: { maxRetries: 3, retryableErrors: [TIMEOUT] }", 1, None),
        ("never", "retry: { maxRetries: 3, nonRetryableErrors: [NETWORK] }", 1, None),
    ] {
        flaky(&home, name, retry, good, network);
        let result = run(&home, name, &[]);
        match expected {
            Some(expected) => {
                assert_eq!(
                    (told(&result).0, &result["value"]),
                    ("completed", &json!(good)),
                    "{name}: {result}"
                );
                assert_eq!(waited(&result), expected, "{name}");
                let first = &result["metadata"]["attempts"][0];
                assert_eq!(
                    (&first["code"], &first["source"]),
                    (&json!("NETWORK_ERROR"), &json!("tool"))
                );
                let total = result["metadata"]["duration_ms"]["total"].as_f64().unwrap();
                let attempts = result["metadata"]["attempts"].as_array().unwrap().iter();
                let all =
                    |key: &str| attempts.clone().map(|it| it[key].as_u64().unwrap()).sum::<u64>();
                let all = all("waited_ms") + all("duration_ms");
                assert!(total >= all as f64, "{total} of {all}: {result}");
            }
            None => {
                assert_eq!(told(&result).0, "failed", "{name}: {result}");
                assert_eq!(waited(&result), [0_u64; 0], "{name}");
            }
        }
    }
    flaky(
        &home,
        "jittered",
        "retry: { maxRetries: 1, backoff: { type: jittered, base: { type: fixed, delay: 100 }, jitter: 0.5 } }",
        1,
        network,
    );
    let result = run(&home, "jittered", &[]);
    assert!((50..=150).contains(&waited(&result)[1]), "{result}");
    // By its word, and from the command line.
    flaky(&home, "quick", "retry: QUICK", 1, network);
    assert_eq!(waited(&run(&home, "quick", &[])), [0, 1_000]);
    for (word, first) in [("standard", 1_000..=1_000), ("aggressive", 450..=550)] {
        flaky(&home, word, "", 1, network);
        let waited = waited(&run(&home, word, &["--retry", word]));
        assert!(waited.len() == 2 && first.contains(&waited[1]), "{word}: {waited:?}");
    }
    let wrong = home.run(["tool", "run", "quick", "--retry", "OFTEN"]);
    assert!(wrong.code == Some(2) && wrong.err.contains("QUICK, STANDARD"), "{}", wrong.err);
    write_yaml(&home, "wrong", "retry: OFTEN", OK);
    let checked = home.run(["tool", "check", "wrong"]);
    assert!(
        checked.err.contains("bad_retry")
            || checked.out.contains("bad_retry")
            || checked.err.contains("no retry policy"),
        "{}{}",
        checked.out,
        checked.err
    );
}

#[test]
fn each_code_recovers_in_its_own_way_and_safety_never_does() {
    needs_engine();
    let home = home();
    flaky(
        &home,
        "limited",
        "retry: STANDARD",
        1,
        "{ code: 'RATE_LIMIT_EXCEEDED', data: { retryAfterMs: 300 } }",
    );
    let result = run(&home, "limited", &[]);
    assert_eq!((told(&result).0, waited(&result)), ("completed", vec![0, 300]), "{result}");
    flaky(
        &home,
        "expired",
        "retry: { maxRetries: 3, retryableErrors: [TIMEOUT] }",
        1,
        "{ code: 'AUTHENTICATION_EXPIRED' }",
    );
    let result = run(&home, "expired", &[]);
    assert_eq!((told(&result).0, waited(&result)), ("completed", vec![0, 0]), "{result}");
    // More time after a timeout, within the policy's.
    let slow = "export async function execute() { await new Promise((done) => setTimeout(done, 8000)); return 'slow'; }";
    write_yaml(
        &home,
        "slow",
        "timeout: 8s\nretry: { maxRetries: 1, backoff: { type: none } }",
        slow,
    );
    let result = run(&home, "slow", &[]);
    assert_eq!(result["value"], "slow", "{result}");
    assert_eq!(result["metadata"]["attempts"][0]["status"], "timeout");
    // A denial is final, whatever the tool wants.
    fs::write(home.path("project/id_rsa"), "key\n").unwrap();
    let reads = "export async function execute(_: any, c: any) { return await c.platform.fs.readFile('id_rsa'); }";
    write_yaml(
        &home,
        "reads",
        "retry: { maxRetries: 5, retryableErrors: [access_denied, PERMISSION_DENIED, key_material] }",
        reads,
    );
    let result = run(&home, "reads", &[]);
    assert_eq!((told(&result).0, waited(&result)), ("denied", vec![]), "{result}");
    // Another tool stands in for one that failed, not for one that was denied.
    flaky(&home, "second", "", 0, "{}");
    flaky(
        &home,
        "first",
        "retry: { maxRetries: 1, backoff: { type: none }, fallback: second }",
        9,
        "{ code: 'API_ERROR' }",
    );
    let result = run(&home, "first", &[]);
    assert_eq!(
        (told(&result).0, &result["tool"]["name"]),
        ("completed", &json!("second")),
        "{result}"
    );
    let of = &result["metadata"]["fallback_of"];
    assert_eq!(
        (&of["tool"]["name"], of["attempts"].as_array().map(Vec::len)),
        (&json!("first"), Some(2))
    );
    let spoken = home.run(["tool", "run", "first", "--yes", "--policy", "writes"]);
    assert!(
        spoken.err.contains("first failed (") && spoken.err.contains("second was called"),
        "{}",
        spoken.err
    );
    write_yaml(&home, "reads", "retry: { maxRetries: 1, fallback: second }", reads);
    assert_eq!(told(&run(&home, "reads", &[])).0, "denied");
    // The whole call has an end.
    configure(&home, "limits: { totalTime: 20s }\n");
    flaky(
        &home,
        "endless",
        "retry: { maxRetries: 10, backoff: { type: fixed, delay: 9000 } }",
        99,
        "{ code: 'NETWORK' }",
    );
    let result = run(&home, "endless", &[]);
    // Its last attempt is over, or was cut off by that end: which of both depends on the machine.
    assert!(["failed", "timeout"].contains(&told(&result).0), "{result}");
    assert!((1..4).contains(&waited(&result).len()), "{result}");
}

const THROWS: &str = "export async function execute() { throw Object.assign(new Error('the first reason'), { code: 'API_ERROR' }); }";

#[test]
fn a_fallback_that_cannot_stand_in_hides_nothing() {
    needs_engine();
    let home = home();
    let strict = "export async function execute() { return 1; }";
    write_yaml(&home, "strict", "", strict);
    let file = home.path("project/.runner/tools/strict.yml");
    let schema =
        "schema: { type: object, required: [needed], properties: { needed: { type: string } } }";
    let text = fs::read_to_string(&file).unwrap().replace("schema: { type: object }", schema);
    fs::write(&file, text).unwrap();
    for (name, other, code) in
        [("lost", "nope", "tool_not_found"), ("unfit", "strict", "invalid_arguments")]
    {
        write_yaml(&home, name, &format!("retry: {{ maxRetries: 0, fallback: {other} }}"), THROWS);
        let (result, ran) = call(&home, name, &[]);
        assert_eq!((ran.code, told(&result).2), (Some(1), "tool_error"), "{result}");
        assert_eq!(result["error"]["message"], "the first reason");
        let fallback = &result["metadata"]["fallback"];
        assert_eq!(
            (&fallback["tool"]["name"], &fallback["error"]["code"]),
            (&json!(other), &json!(code))
        );
        let spoken = home.run(["tool", "run", name, "--yes"]);
        assert!(spoken.err.contains("the first reason"), "{}", spoken.err);
        assert!(
            spoken.err.contains(&format!("its fallback {other} could not stand in")),
            "{}",
            spoken.err
        );
    }
    let checked = home.run(["tool", "check", "lost"]);
    assert!(
        checked.code == Some(125) && checked.err.contains("there is no tool nope"),
        "{}",
        checked.err
    );
    write_yaml(&home, "itself", "retry: { maxRetries: 1, fallback: itself }", THROWS);
    let checked = home.run(["tool", "check", "itself"]);
    assert!(
        checked.code == Some(125) && checked.err.contains("stand in for itself"),
        "{}",
        checked.err
    );
}

#[test]
fn whether_trying_again_can_help_is_told_by_the_error_or_by_its_code() {
    needs_engine();
    let home = home();
    let code = "export async function execute(args: any) { const more = args.says === undefined ? {} : { recoverable: args.says }; throw Object.assign(new Error('no'), { code: args.code, ...more }); }";
    write_yaml(&home, "throws", "", code);
    let file = home.path("project/.runner/tools/throws.yml");
    let schema =
        "schema: { type: object, properties: { code: { type: string }, says: { type: boolean } } }";
    let text = fs::read_to_string(&file).unwrap().replace("schema: { type: object }", schema);
    fs::write(&file, text).unwrap();
    for (code, says, recoverable) in [
        ("RATE_LIMIT_EXCEEDED", None, true),
        ("NETWORK_ERROR", None, true),
        ("TIMEOUT", None, true),
        ("VALIDATION_ERROR", None, false),
        ("MY_OWN_WORD", None, false),
        ("RATE_LIMIT_EXCEEDED", Some(false), false),
        ("MY_OWN_WORD", Some(true), true),
    ] {
        let args = match says {
            Some(says) => json!({ "code": code, "says": says }),
            None => json!({ "code": code }),
        };
        let (result, _) = call(&home, "throws", &["--args", &args.to_string()]);
        assert_eq!(told(&result), ("failed", 1, "tool_error"), "{result}");
        assert_eq!(result["error"]["recoverable"], recoverable, "{code} {says:?}");
    }
}

#[test]
fn a_timeout_names_the_limit_that_was_met() {
    needs_engine();
    let home = home();
    let sleeps =
        "export async function execute() { await new Promise((done) => setTimeout(done, 60000)); }";
    write_yaml(&home, "sleeps", "", sleeps);
    write_yaml(&home, "short", "timeout: 3s", sleeps);
    home.user_policy("brief", &POLICY.replace("name: writes", "name: brief").replace("2m", "3s"));
    let ended = |name: &str, more: &[&str]| {
        let (result, ran) = call(&home, name, more);
        assert_eq!((ran.code, told(&result).0), (Some(124), "timeout"), "{result}");
        let error = &result["error"];
        let suggestion = error["suggestion"].as_str().unwrap_or_default().to_owned();
        (error["code"].as_str().unwrap_or_default().to_owned(), suggestion)
    };
    let writes = ["--policy", "writes"];
    let (code, hint) = ended("sleeps", &["--policy", "writes", "--timeout", "3s"]);
    assert!(
        code == "timeout" && hint.contains("--timeout") && !hint.contains("limits.wall"),
        "{hint}"
    );
    let (_, hint) = ended("short", &writes);
    assert!(hint.contains("the tool's own `timeout`"), "{hint}");
    let (_, hint) = ended("sleeps", &["--policy", "brief"]);
    assert!(hint.contains("`limits.wall` of the policy `brief`"), "{hint}");
    // After the line of every configuration here, and the pool.
    configure(&home, "pool: { size: 0 }\nmaxExecutionTime: 3s\n");
    let (_, hint) = ended("sleeps", &writes);
    assert!(hint.contains("`maxExecutionTime`") && hint.contains("config.yml:3"), "{hint}");
    configure(&home, "pool: { size: 0 }\nlimits: { totalTime: 4s }\n");
    let (code, hint) = ended("sleeps", &writes);
    assert!(code == "total_time_exceeded" && hint.contains("limits.totalTime"), "{code} {hint}");
    let exec = home
        .run(["--json", "exec", "--policy", "develop", "--timeout", "2s", "--", "sleep", "60"])
        .json();
    assert_eq!(told(&exec), ("timeout", 124, "timeout"), "{exec}");
    assert!(exec["error"]["suggestion"].as_str().unwrap().contains("--timeout"), "{exec}");
}
