//! Lines: folders, variables and redirections that a reader could lose sight of.

use runner_policy::{Verdict, What};

use super::{LOOK, ask, line, policy, refused};

#[test]
fn variables_reach_through_wrappers() {
    refused(
        &policy(&[LOOK]),
        &[
            "LD_PRELOAD=./x.so nice sort a",
            "LD_PRELOAD=./x.so timeout 5 nice sort a",
            "FOO=1 nice sort a",
            "env LD_PRELOAD=./x.so nice sort a",
            "env FOO=1 nice sort a",
            "nice env LD_PRELOAD=./x.so sort a",
            "env FOO=1 timeout 5 env sort a",
            "LD_PRELOAD=x sh -c 'sort a'",
            "env LD_PRELOAD=x sh -c 'sort a'",
            "export LD_PRELOAD=x; nice sort a",
            "export FOO=1 && nice sort a",
            "env FOO=1 sh -c 'nice sort a'",
            "LD_PRELOAD=x; sort a",
        ],
        &["nice sort a", "env nice sort a", "sh -c 'nice sort a'"],
    );
}

#[test]
fn every_folder_that_a_line_can_be_in_is_judged() {
    refused(
        &policy(&[LOOK]),
        &[
            "cd x && true || cat ../s",
            "cd x && cd y && true || cat ../../s",
            "! cd x && cat ../s",
            "cd x || cat ../s",
            "cd x; cat ../s",
            "cd x && true; cat ../s",
            "cd ..; cat s",
            "cd .. && cat s",
            "true && cd x || true && cat ../s",
            "HOME=/etc cd && cat x",
            "CDPATH=/ cd etc && cat passwd",
            "cd - && cat x",
            "cd /etc && cat passwd",
            "cd x | cat ../s",
        ],
        &[
            "cd x && cat ../s",
            "cd x && cd y && cat ../s",
            "cd x && cat y || cat ./z",
            "cd x; cat y",
        ],
    );
}

#[test]
fn redirections_are_judged_wherever_they_stand() {
    refused(
        &policy(&[LOOK]),
        &[
            "cat a > b",
            "nice cat a > b",
            "sh -c 'cat a' > b",
            "sh -c 'cat a > b'",
            "cd x > b && cat a",
            "export A=1 > b; cat a",
            "> b",
            "< .env",
            "cat < .env",
            "nice cat < ./.env",
            "cat a >> b",
            "cat a 2> b",
            "cat a &> b",
            "cat a >& b",
            "cat a > /tmp/../w/b",
            "cat a > /dev/../w/b",
            "cat a | sort > b",
            "true > .env",
            "cat <<E > b\nx\nE",
        ],
        &["cat a > /dev/null", "cat a 2>&1", "cat a > /tmp/b", "cat <<'E'\nx\nE"],
    );
}

#[test]
fn denied_files_are_denied_in_every_spelling() {
    refused(
        &policy(&[LOOK]),
        &[
            "cat .env",
            "cat ./.env",
            "cat x/../.env",
            "cat x//.env",
            "cat /w/.env",
            "cat //w/.env",
            "cat /../w/./.env",
            "cat '.e'nv",
            "cat .e\\nv",
            "cat $'\\x2eenv'",
            "cat .{env,x}",
            "cat .env*",
            "cat .en?",
            "cat .[de]nv",
            "cat .??v",
            "cat .e*",
            "cat x/.en?",
            "cat */.en?",
            "cat s*.yml",
            "cat secrets.y?l",
            "cat -- .env",
            "cat - .env",
            "head -n1 .env",
            "head --lines=1 .env",
            "grep x .env",
            "grep -f .env x",
            "grep -rf.env x",
            "cd x && cat .env",
            "cd x && cat ../.env",
            "env -C x cat .env",
            "env -C x cat ../secrets.yml",
            "env --chdir=x cat ../secrets.yml",
            "cat ../x",
            "cat /etc/passwd",
            "cat /proc/self/environ",
            "cat /proc/self/cwd/.env",
            "cat ~/x",
            "cat ~/../../w/.env",
            "diff a .env",
            "wc -l < .env",
            "sort --files0-from=.env",
            "stat .env/",
        ],
        &[
            "cat a",
            "cat *",
            "cat src/*",
            "cat .gitignore",
            "cat *.yml",
            "cat .env.example",
            "cat a*",
        ],
    );
}

#[test]
fn a_folder_outside_is_outside_from_any_folder() {
    let look = policy(&[LOOK]);
    for (cwd, path) in [("/w/x", "../../s"), ("/w", "../s"), ("/w/x", "/s"), ("/w/x", "../../w2/s")]
    {
        let words = ["cat".to_owned(), path.to_owned()];
        assert_eq!(ask(&look, cwd, What::Argv(&words)).decision, Verdict::Deny, "{cwd} {path}");
    }
    assert_eq!(line(&look, "cat x/../s").decision, Verdict::Allow);
}

const PROC: &str = r#"
policy: 1
name: proc
files: { read: ["**"], write: ["**"], deny: ["**/.env", "status", "net/**", "sys/**"] }
commands:
  - { id: any, allow: "** ...", effects: any }
"#;

#[test]
fn the_sandboxs_own_proc_is_free_and_no_way_around_a_deny() {
    for text in [LOOK, PROC] {
        refused(
            &policy(&[text]),
            &[
                "cat /proc/self/cwd/.env",
                "cat /proc/self/root/w/.env",
                "cat /proc/1/root/w/.env",
                "cat /proc/thread-self/cwd/.env",
                "cat /proc/self/task/1/cwd/.env",
                "cat /proc/self/cwd/a",
                "cat /proc/*/cwd/.env",
                "cat /proc/s?lf/c?d/.env",
                "cat /proc/self/*/.env",
                "cat /proc/net/../cwd/.env",
                "cat /proc/self/cwd/../status",
                "cat /proc/self/cwd/../net/a",
                "cat /proc/self/cwd/../../sys/a",
                "cd /proc/self/cwd && cat .env",
                "cd /proc/net/.. && cat cwd/.env",
                "cd /proc/self && cat cwd/.env",
                "cat < /proc/self/cwd/.env",
                "cat /proc/self/fd/3",
                "cat /proc/1/environ",
                "head -c1 /proc/self/mem",
                "grep -r x /proc",
                "grep -R x /proc/self",
                "find /proc -name x",
                "cp -r /proc/1/root out",
                "touch /proc/self/status",
                "echo x > /proc/self/oom_score_adj",
            ],
            &[
                "cat /proc/cpuinfo",
                "cat /proc/meminfo /proc/self/status",
                "head -1 /proc/loadavg",
                "grep -m1 model /proc/cpuinfo",
                "cat /proc/sys/kernel/pid_max",
                "cat /proc/*/status",
                "ls /proc /proc/self /proc/self/task",
                "cat < /proc/uptime",
                "cd /proc && cat version",
                "cat /proc/net/tcp",
            ],
        );
    }
    // A policy can still deny it.
    let deny = LOOK.replace("\"secrets.yml\"", "\"/proc/**\"");
    refused(&policy(&[&deny]), &["cat /proc/cpuinfo"], &["cat a"]);
    // A question about a path is the broker's, which works on the host.
    let asked = ask(&policy(&[PROC]), "/w", What::Read("/proc/cpuinfo"));
    assert_eq!(asked.decision, Verdict::Deny);
}

#[test]
fn loopback_is_free_and_the_net_is_not() {
    let reaches = [
        "curl https://example.org/",
        "curl http://localhost@example.org/",
        "curl http://localhost.example.org/",
        "curl http://example.org/#localhost",
        "curl http://127.0.0.1.example.org/",
        "curl http://169.254.169.254/",
        "curl http://10.0.0.1:3000",
        "curl -x http://example.org:3128 http://localhost:3000",
        "curl http://localhost:3000 https://example.org/",
        "nc example.org 80",
        "ping -c1 example.org",
        "git clone https://example.org/x.git",
    ];
    let inside = [
        "curl http://localhost:3000",
        "curl -s http://127.0.0.1:8080/health",
        "curl 'http://[::1]:3000/'",
        "curl localhost:3000/a",
    ];
    for text in [LOOK, PROC] {
        refused(&policy(&[text]), &reaches, &inside);
    }
    // A rule about it counts: what is denied stays denied, and what is asked about is asked about.
    let ruled =
        |verb: &str| format!("{PROC}net: [{{ id: l, {verb}: \"connect localhost:3000\" }}]\n");
    let deny = policy(&[&ruled("deny")]);
    refused(&deny, &["curl http://localhost:3000"], &["curl http://localhost:3001"]);
    let ask = policy(&[&ruled("ask")]);
    assert_eq!(line(&ask, "curl http://localhost:3000").decision, Verdict::Ask);
    // A write that a request brings along is judged as before.
    refused(
        &policy(&[LOOK]),
        &["curl -o out http://localhost:3000"],
        &["curl http://localhost:3000"],
    );
}

#[test]
fn a_peer_that_is_not_known_runs_where_net_is_granted_and_nothing_restricts_it() {
    let guesses =
        ["npm install", "pip install requests", "cargo add serde", "git fetch", "deno test"];
    let any = policy(&[PROC]);
    refused(&any, &[], &guesses);
    refused(&any, &[], &["sqlite3 x.db .tables"]);
    for text in guesses {
        assert!(line(&any, text).reaches_out, "{text}");
    }
    assert!(!line(&any, "sqlite3 x.db .tables").reaches_out);
    refused(&policy(&[LOOK]), &guesses, &["ls"]);
    for verb in ["ask", "deny"] {
        let text = format!("{PROC}net: [{{ id: l, {verb}: \"connect evil.example:443\" }}]\n");
        refused(&policy(&[&text]), &guesses, &["make"]);
    }
    let denied = line(&any, "curl https://example.org/").message;
    assert!(denied.contains("`net` rules are for tools"), "{denied}");
}
