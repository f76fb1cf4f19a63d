//! Row 7, environment: what a command finds is exactly what the policy names, and what it may set is what the policy
//! accepts.

use super::harness::{On, Rules, attack, case};
use super::seat::Seat;
use crate::support::Ran;

fn the_environment_is_exactly_the_planned_one(on: On) {
    let case = case(&["a"]);
    let plan =
        case.plan(Rules { env: &[("CI", "true"), ("ODD", "a b\n\"c\"")], ..on.read() }).unwrap();
    let mut expected: Vec<String> = plan
        .env
        .iter()
        .map(|(name, value)| format!("{}={}", name.to_str().unwrap(), value.to_str().unwrap()))
        .collect();
    let ran = case.run(plan, &["env", "-0"]).unwrap().succeeded();
    let mut found: Vec<String> = ran.out.split_terminator('\0').map(str::to_owned).collect();
    expected.sort();
    found.sort();
    assert_eq!(found, expected);
}
attack!(7, "environment", the_environment_is_exactly_the_planned_one);

fn nothing_of_the_hosts_environment_arrives(on: On) {
    let case = case(&["a"]);
    let plan = case.plan(on.read()).unwrap();
    for name in ["LD_PRELOAD", "NODE_OPTIONS", "BASH_ENV", "PAGER", "DOCKER_HOST", "SSH_AUTH_SOCK"]
    {
        assert!(!plan.env.contains_key(std::ffi::OsStr::new(name)), "{name}");
    }
    assert_eq!(plan.env[std::ffi::OsStr::new("HOME")], "/home/runner");
    let planned = plan.env.clone();
    let ran = case
        .run(plan, &["sh", "-c", "cat /proc/1/environ; env; touch $HOME/x && echo home"])
        .unwrap();
    assert!(ran.out.ends_with("home\n"), "{}", ran.err);
    for (name, value) in std::env::vars() {
        if value.len() > 8 && !planned.contains_key(std::ffi::OsStr::new(&name)) {
            assert!(!ran.out.contains(&format!("{name}={value}\n")), "{name}");
        }
    }
}
attack!(7, "environment", nothing_of_the_hosts_environment_arrives);

/// Variables that make programs load code, or lead them elsewhere.
const LOADERS: [&str; 14] = [
    "LD_PRELOAD",
    "LD_LIBRARY_PATH",
    "LD_AUDIT",
    "NODE_OPTIONS",
    "PYTHONPATH",
    "PYTHONSTARTUP",
    "PERL5OPT",
    "RUBYOPT",
    "BASH_ENV",
    "ENV",
    "GIT_SSH_COMMAND",
    "GIT_EXTERNAL_DIFF",
    "PAGER",
    "PATH",
];

fn variables_of_the_caller_stay_outside_and_loaders_are_denied(on: On) {
    let seat = Seat::new(on, &[("a.txt", "one\n"), ("evil.sh", "echo EVIL\n")]);
    for name in LOADERS.into_iter().chain(["HOME"]) {
        for line in
            [format!("{name}=./evil.sh cat a.txt"), format!("export {name}=./evil.sh; cat a.txt")]
        {
            seat.denied(&["--policy", "look", "--shell", &line]);
        }
        seat.denied(&[
            "--policy",
            "look",
            "--",
            "env",
            &format!("{name}=./evil.sh"),
            "cat",
            "a.txt",
        ]);
    }
    for odd in ["A=B=C", "A\nB=C", "=x", "A B=1"] {
        let ran = seat.exec("look", &["env", odd, "cat", "a.txt"]);
        assert_eq!(ran.code, Some(126), "{odd:?}: {}{}", ran.out, ran.err);
    }
    // Set in the caller's own environment they reach nobody.
    let mut command = seat.home.runner();
    for name in LOADERS
        .into_iter()
        .filter(|name| !["PATH", "LD_PRELOAD", "LD_AUDIT", "LD_LIBRARY_PATH"].contains(name))
    {
        command.env(name, seat.file("evil.sh"));
    }
    command.env("LC_ALL", "C.UTF-8").env("SECRET", "CANARY");
    command.args(["exec", "--policy", "all", "--", "bash", "-c", "env; cat a.txt"]);
    let ran = Ran::from(command.output().unwrap());
    assert_eq!(ran.code, Some(0), "{}", ran.err);
    assert!(
        !ran.out.contains("EVIL") && !ran.out.contains("evil.sh") && !ran.out.contains("CANARY"),
        "{}",
        ran.out
    );
    assert!(
        ran.out.lines().any(|line| line == "LC_ALL=C.UTF-8"),
        "the control: what a policy passes is passed"
    );
    assert!(ran.out.lines().any(|line| line == "HOME=/home/runner"), "{}", ran.out);
    assert!(ran.out.ends_with("one\n"));
    // The control: a variable that the policy accepts.
    let ran = seat.line("make", "FOO=1 python3 -c 'import os; print(os.environ[\"FOO\"])'");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "1\n"), "{}", ran.err);
}
attack!(7, "environment", variables_of_the_caller_stay_outside_and_loaders_are_denied);

fn a_policy_names_variables_and_no_loaders(on: On) {
    let seat = Seat::new(on, &[("a.txt", "one\n")]);
    let rule = "commands: [{ id: a, allow: \"env ...\", effects: any }]\n";
    for bad in [
        "env: { set: { \"A=B\": x } }\n",
        "env: { set: { \"A\\nB\": x } }\n",
        "env: { set: { LD_PRELOAD: x } }\n",
        "env: { set: { PATH: /tmp } }\n",
        "env: { pass: [BASH_ENV] }\n",
        "env: { pass: [\"*\"] }\n",
    ] {
        seat.policy("odd", &format!("{rule}{bad}"), "");
        assert_eq!(seat.exec("odd", &["env"]).code, Some(125), "{bad}");
    }
    seat.policy("odd", &format!("{rule}env: {{ set: {{ A: \"x=y z\" }}, pass: [TZ] }}\n"), "");
    assert!(seat.works("odd", &["env"]).lines().any(|line| line == "A=x=y z"));
}
attack!(7, "environment", a_policy_names_variables_and_no_loaders);
