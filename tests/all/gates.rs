//! What keeps a tool from being called, and what calls it again: rate, cost, circuit breaker, credentials, total time,
//! retries and fallback, through the real command line.

use std::fs;

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
        home.run(["--json=full", "audit", "list", "-n", "1"]).json()["calls"][0]["cost_microdollars"]
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
    // The circuit opens, is tried once after a pause, and closes. How long pauses last is tested without waiting, in
    // `queue/gate_tests.rs`; here the pause that is configured becomes over.
    let pause = |time: &str| {
        let text = format!("limits: {{ breaker: {{ calls: 2, pause: {time}, window: 1h }} }}\n");
        configure(&home, &text);
    };
    pause("1h");
    let schema = "schema: { type: object, properties: { fail: { type: boolean } } }";
    write_yaml(&home, "u", "", OK);
    let file = home.path("project/.runner/tools/u.yml");
    let text = fs::read_to_string(&file).unwrap().replace("schema: { type: object }", schema);
    fs::write(&file, text).unwrap();
    let fails = || call(&home, "u", &["--arg", "fail=true"]).0;
    let stands =
        || home.run(["--json=full", "tool", "info", "u"]).json()["circuit"]["breaker"].clone();
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
    let wait = result["error"]["details"]["retry_after_ms"].as_u64().unwrap();
    assert!((1..=3_600_000).contains(&wait), "{result}");
    pause("1ms");
    assert_eq!(stands(), "half_open");
    assert_eq!(told(&fails()).0, "failed", "the probe");
    pause("1h");
    let result = fails();
    assert_eq!(told(&result).2, "circuit_open", "{result}");
    pause("1ms");
    assert_eq!(told(&call(&home, "u", &[]).0).0, "completed");
    assert_eq!(stands(), "closed");
    // A call that a limit held back neither ran nor was denied.
    let stats = home.run(["--json=full", "audit", "stats"]).json();
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
    let listed = home.run(["--json=full", "audit", "list", "-n", "1"]).json()["calls"][0].clone();
    for key in ["call", "status", "exit"] {
        assert_eq!(listed[key], result[key], "{key}: {listed}");
    }
    assert_eq!(listed["code"], result["error"]["code"], "{listed}");
    assert!(home.run(["--json=full", "audit", "list", "--denied"]).json()["calls"] == json!([]));
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
    command.args(["--json=full", "tool", "run", "secretive", "--yes"]).env("SECRETIVE_KEY", "k");
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(told(&ran.json()).0, "completed", "{}", ran.out);
}

/// Which pauses each policy for retries has is tested without waiting, in `call/tool/attempts.rs`; here it is a tool that is
/// tried again after them.
#[test]
fn a_tool_that_fails_is_tried_again_after_the_pauses_of_its_policy() {
    needs_engine();
    let home = home();
    let network = "{ code: 'NETWORK_ERROR' }";
    let linear = "{ type: linear, baseDelay: 10, increment: 30 }";
    flaky(&home, "linear", &format!("retry: {{ maxRetries: 2, backoff: {linear} }}"), 2, network);
    let result = run(&home, "linear", &[]);
    assert_eq!((told(&result).0, &result["value"]), ("completed", &json!(2)), "{result}");
    assert_eq!(waited(&result), [0, 10, 40]);
    let first = &result["metadata"]["attempts"][0];
    assert_eq!((&first["code"], &first["source"]), (&json!("NETWORK_ERROR"), &json!("tool")));
    let total = result["metadata"]["duration_ms"]["total"].as_f64().unwrap();
    let attempts = result["metadata"]["attempts"].as_array().unwrap().iter();
    let all = |key: &str| attempts.clone().map(|it| it[key].as_u64().unwrap()).sum::<u64>();
    let all = all("waited_ms") + all("duration_ms");
    assert!(total >= all as f64, "{total} of {all}: {result}");
    // Without a policy for retries it is not; and the command line has one for it.
    flaky(&home, "none", "", 1, network);
    let result = run(&home, "none", &[]);
    assert_eq!((told(&result).0, waited(&result)), ("failed", vec![]), "{result}");
    flaky(&home, "none", "", 2, network);
    let waited = waited(&run(&home, "none", &["--retry", "aggressive"]));
    assert!(waited.len() == 2 && (450..=550).contains(&waited[1]), "{waited:?}");
    let wrong = home.run(["tool", "run", "none", "--retry", "OFTEN"]);
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

/// Which codes are tried again, and how, is tested in `call/tool/attempts.rs`; here it is what a tool throws, or what
/// happens to it.
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
    // A timeout is tried again, with twice the time. However slow the machine is, an attempt comes that has enough to say
    // that it was there; the one after it has enough to end.
    let slow = "export async function execute(_: any, c: any) {\n  const fs = c.platform.fs;\n  if (await fs.readFile('slow.txt').catch(() => '')) return 'slow';\n  await fs.writeFile('slow.txt', 'was here');\n  await new Promise((done) => setTimeout(done, 600000));\n}";
    write_yaml(
        &home,
        "slow",
        "files: { write: ['*.txt'] }\ntimeout: 2s\nretry: { maxRetries: 5, backoff: { type: none } }",
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
    // The whole call has an end: a pause that would last until then is not begun.
    configure(&home, "limits: { totalTime: 59s }\n");
    flaky(
        &home,
        "endless",
        "retry: { maxRetries: 10, backoff: { type: fixed, delay: 60000 } }",
        99,
        "{ code: 'NETWORK' }",
    );
    let result = run(&home, "endless", &[]);
    assert_eq!((told(&result).0, waited(&result)), ("failed", vec![]), "{result}");
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
    // Each limit is met once, all at the same time. How slow the machine is does not matter: a call that has not begun by
    // then has met its limit too.
    let met = |config: &'static str, words: &'static [&'static str], place: &'static str| {
        std::thread::spawn(move || {
            let home = home();
            configure(&home, config);
            let sleeps = "export async function execute() { await new Promise((done) => setTimeout(done, 600000)); }";
            write_yaml(&home, "sleeps", "", sleeps);
            write_yaml(&home, "short", "timeout: 3s", sleeps);
            let brief = POLICY.replace("name: writes", "name: brief").replace("2m", "3s");
            home.user_policy("brief", &brief);
            let ran = home.run(["--json=full"].iter().chain(words));
            let result = ran.json();
            assert_eq!((ran.code, told(&result).0), (Some(124), "timeout"), "{result}");
            let suggestion = result["error"]["suggestion"].as_str().unwrap_or_default();
            assert!(suggestion.contains(place), "{place}: {result}");
            (told(&result).2.to_owned(), suggestion.to_owned())
        })
    };
    let cases = [
        met(
            "",
            &["tool", "run", "sleeps", "--yes", "--policy", "writes", "--timeout", "3s"],
            "--timeout",
        ),
        met(
            "",
            &["tool", "run", "short", "--yes", "--policy", "writes"],
            "the tool's own `timeout`",
        ),
        met(
            "",
            &["tool", "run", "sleeps", "--yes", "--policy", "brief"],
            "`limits.wall` of the policy `brief`",
        ),
        // After the line of every configuration here.
        met(
            "maxExecutionTime: 3s\n",
            &["tool", "run", "sleeps", "--yes", "--policy", "writes"],
            "`maxExecutionTime`",
        ),
        met(
            "limits: { totalTime: 3s }\n",
            &["tool", "run", "sleeps", "--yes", "--policy", "writes"],
            "limits.totalTime",
        ),
        met("", &["exec", "--policy", "develop", "--timeout", "3s", "sleep", "600"], "--timeout"),
    ];
    let told = cases.map(|case| case.join().unwrap());
    assert!(told[3].1.contains("config.yml:2"), "{told:?}");
    let codes = told.map(|(code, _)| code);
    assert_eq!(
        codes,
        ["timeout", "timeout", "timeout", "timeout", "total_time_exceeded", "timeout"]
    );
}

#[test]
fn the_longest_run_of_a_tool_is_bounded() {
    needs_engine();
    let home = Home::new();
    fs::create_dir_all(home.path("project/.runner/tools")).unwrap();
    for name in ["sleepy", "free"] {
        let tool = format!(
            "name: {name}\ndescription: Sleeps.\ncode: |\n  export async function execute() {{\n    await new Promise((done) => setTimeout(done, 3000));\n    return 'awake';\n  }}\n"
        );
        fs::write(home.path(&format!("project/.runner/tools/{name}.yml")), tool).unwrap();
    }
    configure(&home, "tools: { sleepy: { maxExecutionTime: 2s } }\n");
    let bounded = home.run(["tool", "run", "sleepy", "--yes"]);
    assert_eq!(bounded.code, Some(124), "{}{}", bounded.out, bounded.err);
    let free = home.run(["tool", "run", "free", "--yes"]);
    assert_eq!(free.code, Some(0), "{}{}", free.out, free.err);
}
