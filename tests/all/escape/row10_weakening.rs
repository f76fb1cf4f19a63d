//! Row 10, weakening by policy: what would open a sandbox cannot be said.

use super::harness::{On, attack};
use super::seat::Seat;

/// Lines of a policy that ask for more than a sandbox is. The last word of each is where it must be found.
const SETTINGS: [(&str, &str); 24] = [
    ("sandbox:\n  privileged: true\n", "privileged"),
    ("sandbox:\n  network: host\n", "network"),
    ("sandbox:\n  network_mode: host\n", "network_mode"),
    ("sandbox:\n  cap_add: [SYS_ADMIN]\n", "cap_add"),
    ("sandbox:\n  capabilities: [ALL]\n", "capabilities"),
    ("sandbox:\n  devices: [/dev/mem]\n", "devices"),
    ("sandbox:\n  docker_socket: true\n", "docker_socket"),
    ("sandbox:\n  mounts: [\"/:/host\"]\n", "mounts"),
    ("sandbox:\n  volumes: [\"/var/run/docker.sock:/docker.sock\"]\n", "volumes"),
    ("sandbox:\n  binds: [\"/:/host\"]\n", "binds"),
    ("sandbox:\n  seccomp: unconfined\n", "seccomp"),
    ("sandbox:\n  security_opt: [\"seccomp=unconfined\"]\n", "security_opt"),
    ("sandbox:\n  apparmor: unconfined\n", "apparmor"),
    ("sandbox:\n  user: root\n", "user"),
    ("sandbox:\n  pid: host\n", "pid"),
    ("sandbox:\n  ipc: host\n", "ipc"),
    ("sandbox:\n  userns: host\n", "userns"),
    ("sandbox:\n  no_new_privileges: false\n", "no_new_privileges"),
    ("privileged: true\n", "privileged"),
    ("files:\n  read: [\"/\"]\n", "/"),
    ("files:\n  read: [\"/**\"]\n", "/**"),
    ("files:\n  write: [\"/etc/**\"]\n", "/etc/**"),
    ("files:\n  read: [\"/var/run/docker.sock\"]\n", "/var/run/docker.sock"),
    ("env:\n  pass: [LD_PRELOAD]\n", "LD_PRELOAD"),
];

fn no_policy_can_open_a_sandbox(on: On) {
    let seat = Seat::new(on, &[("a.txt", "one\n")]);
    let rule = "commands:\n  - id: all\n    allow: \"** ...\"\n    effects: any\n";
    let words = ["exec", "--policy", "weak", "--json", "--", "true"];
    for (setting, name) in SETTINGS {
        seat.home.user_policy("weak", &format!("policy: 1\nname: weak\n{rule}{setting}"));
        let ran = seat.home.run(words);
        assert_eq!(ran.code, Some(125), "{setting}: {}{}", ran.out, ran.err);
        let error = &ran.json()["error"];
        assert_eq!(error["code"], "policy_refused", "{setting}");
        let finding = &error["findings"][0];
        assert_eq!(finding["code"], "forbidden_setting", "{setting}: {error}");
        assert!(finding["message"].as_str().unwrap().contains(name), "{finding}");
        assert!(
            finding["line"].as_u64() > Some(6) && finding["column"].as_u64() > Some(0),
            "{finding}"
        );
        let text = seat.home.run(words.iter().filter(|word| **word != "--json"));
        assert!(text.err.contains("weak.yml:") && text.err.contains("help: "), "{}", text.err);
    }
    assert!(seat.calls().is_empty(), "nothing was even asked of an engine");
    // The control: the same policy without such a line runs.
    seat.policy("weak", rule, "");
    seat.works("weak", &["true"]);
    assert_eq!(seat.calls().len(), 1);
}
attack!(10, "settings", no_policy_can_open_a_sandbox);
