//! The environment of a command is exactly the planned one.

use super::harness::{READ, Rules, case};

#[test]
fn the_environment_is_exactly_the_planned_one() {
    let case = case(&["a"]);
    let plan = case.plan(Rules { env: &[("CI", "true"), ("ODD", "a b\n\"c\"")], ..READ }).unwrap();
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

#[test]
fn nothing_of_the_hosts_environment_arrives() {
    let case = case(&["a"]);
    let plan = case.plan(READ).unwrap();
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
