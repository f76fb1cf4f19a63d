//! What a sandbox cannot give: a command that wants it runs, fails inside, and is told why.

use serde_json::Value;

use super::Caller;
use crate::support::needs_engine;

/// The codes of a result's notes.
fn notes(result: &Value) -> Vec<&str> {
    let notes = result["metadata"]["notes"].as_array().into_iter().flatten();
    notes.filter_map(|note| note["code"].as_str()).collect()
}

#[test]
fn any_command_runs_and_what_the_sandbox_lacks_is_told() {
    needs_engine();
    let caller = Caller::ourselves("/var/tmp");
    let project =
        caller.project("shortfall", &[(".env", "SECRET=canary\n"), (".runner/.keep", "")]);
    let outside = caller.project("elsewhere", &[("x.py", "print(1)\n"), ("tool", "#!/bin/sh\n")]);
    let exec =
        |args: &[&str]| caller.run(&project, &[&["exec", "--policy", "contained"], args].concat());

    // The sandbox's own loopback and its own /proc.
    let serve = "python3 -m http.server 3000 >/dev/null 2>&1 & \
        for i in $(seq 300); do curl -sf http://localhost:3000/ >/dev/null && break; sleep 0.1; done; \
        curl -sf http://127.0.0.1:3000/ >/dev/null && grep -c ^Name: /proc/self/status";
    let served = exec(&["--shell", serve]);
    assert_eq!((served.code, served.out.as_str()), (Some(0), "1\n"), "{}", served.err);
    let read = caller.works(&project, &["exec", "--", "cat", "/proc/self/comm", "/proc/loadavg"]);
    assert!(read.starts_with("cat\n"), "{read}");
    for path in ["/proc/self/cwd/.env", "/proc/net/../cwd/.env", "/proc/1/root/etc/passwd"] {
        let denied = caller.run(&project, &["exec", "--", "cat", path]);
        assert_eq!(denied.code, Some(126), "{path}: {}{}", denied.out, denied.err);
    }

    // A peer that is not known beforehand.
    let fetch = "git init -q /tmp/r && cd /tmp/r && git fetch https://example.invalid/x.git";
    let denied = exec(&["--shell", fetch]);
    assert_eq!(denied.code, Some(126), "{}", denied.err);
    assert!(denied.err.contains("`net` rules are for tools"), "{}", denied.err);
    let failed = exec(&["--", "git", "fetch", "origin"]);
    assert_eq!(failed.code, Some(128), "{}", failed.err);
    assert!(failed.err.contains("commands have no network in the sandbox"), "{}", failed.err);

    // A script and a program that lie elsewhere on the host.
    let (script, program) = (outside.join("x.py"), outside.join("tool"));
    let failed = exec(&["--json", "--", "python3", script.to_str().unwrap()]);
    let result = failed.json();
    assert!(notes(&result).contains(&"outside_sandbox"), "{result:#}");
    let text = format!("{} is outside the sandbox", script.display());
    assert!(failed.out.contains(&text), "{result:#}");
    let missing = exec(&["--", program.to_str().unwrap()]);
    assert_eq!(missing.code, Some(127), "{}", missing.err);
    assert!(missing.err.contains(&format!("{} is outside it", program.display())));
    assert!(missing.err.contains("copy it into the workspace"), "{}", missing.err);

    // A server of tools that lies there.
    let server = format!("{{ command: [python3, {}], policy: contained }}", script.display());
    let config = format!("pool: {{ size: 0 }}\nmcp: {{ servers: {{ far: {server} }} }}\n");
    std::fs::write(caller.path("config/runner/config.yml"), config).unwrap();
    let refreshed = caller.run(&project, &["mcp", "refresh", "far"]);
    assert_ne!(refreshed.code, Some(0));
    assert!(refreshed.err.contains(&text), "{}{}", refreshed.out, refreshed.err);

    // The control: a failure that the sandbox has nothing to do with.
    let result = exec(&["--json", "--", "sh", "-c", "exit 3"]).json();
    assert_eq!(result["exit"], 3);
    assert!(!notes(&result).iter().any(|code| ["no_network", "outside_sandbox"].contains(code)));
}
