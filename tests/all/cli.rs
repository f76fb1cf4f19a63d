//! The command line itself: help, usage errors, exit codes, streams.

use std::process::Stdio;

use crate::support::{Ran, run, runner};

#[test]
fn help_and_version_go_to_stdout() {
    for args in [&["--help"][..], &["-h"], &["--version"], &["policy", "--help"]] {
        let ran = run(args);
        assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""), "{args:?}");
        assert!(!ran.out.is_empty());
    }
    assert!(run(["--help"]).out.contains("126  the policy denies the call"));
}

/// What a command says of itself is what the list of commands says of it.
#[test]
fn each_command_says_what_it_is_for() {
    let all = run(["--help"]).out;
    let listed = all.lines().skip_while(|line| *line != "Commands:").skip(1);
    let listed = listed.take_while(|line| line.starts_with("  "));
    let mut seen = 0;
    for line in listed {
        let (name, about) = line.trim().split_once("  ").expect("a name and what it is for");
        let about = about.split(" [alias").next().unwrap_or(about).trim();
        if name != "help" {
            let help = run([name, "--help"]).out;
            assert_eq!(help.lines().next(), Some(about), "{name}");
            seen += 1;
        }
    }
    assert!(seen >= 15, "{all}");
}

#[test]
fn wrong_usage_is_2_and_on_stderr() {
    for args in [
        &[][..],
        &["polcy"],
        &["policy"],
        &["policy", "limits", "--nope"],
        &["--color", "pink", "policy", "limits"],
    ] {
        let ran = run(args);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{args:?}");
        assert!(ran.err.starts_with("error: "), "{args:?}: {}", ran.err);
    }
}

#[test]
fn a_misspelt_subcommand_gets_the_right_one() {
    assert!(run(["polcy"]).err.contains("'policy'"));
}

#[test]
fn a_bare_command_is_shown_how_to_run() {
    let ran = run(["npm", "test", "it's"]);
    assert_eq!(ran.code, Some(2));
    assert!(
        ran.err.contains(r"hint: to run a command: runner exec -- npm test 'it'\''s'"),
        "{}",
        ran.err
    );
}

#[test]
fn a_misspelt_option_is_not_taken_for_a_command() {
    for args in
        [&["exec", "--polcy", "x", "--", "ls"][..], &["policy", "explain", "--polcy", "x", "ls"]]
    {
        let ran = run(args);
        assert_eq!(ran.code, Some(2), "{args:?}: {}", ran.err);
        assert!(ran.err.contains("'--policy'"), "{}", ran.err);
    }
}

#[test]
fn options_after_the_command_are_the_commands() {
    for args in [&["--", "ls", "--color=never"][..], &["ls", "--color=never"], &["ls", "--json"]] {
        let ran = run(["policy", "explain"].iter().chain(args));
        assert!(
            ran.out.starts_with("allow") || ran.out.starts_with("deny"),
            "{args:?}: {}{}",
            ran.out,
            ran.err
        );
    }
}

#[test]
fn usage_errors_come_as_json_too() {
    let ran = run(["--json", "polcy"]);
    assert_eq!(ran.code, Some(2));
    let json = ran.json();
    assert_eq!(json["status"], "error");
    assert_eq!(json["exit"], 2);
    assert_eq!(json["error"]["code"], "usage");
    assert_eq!(json["error"]["recoverable"], false);
    assert_eq!(ran.err, "");
}

#[test]
fn foreign_words_in_an_error_cannot_drive_the_terminal() {
    let ran = run(["pol\u{1b}[2Jcy\u{202e}\r"]);
    assert!(ran.err.contains("pol\\x1b[2Jcy\\u{202e}\\r"), "{}", ran.err);
    assert!(!ran.err.contains(['\u{1b}', '\r', '\u{202e}']));
}

#[test]
fn a_reader_who_leaves_changes_nothing() {
    let mut child = runner()
        .args(["policy", "limits"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("starts");
    drop(child.stdout.take());
    let ran = Ran::from(child.wait_with_output().expect("ends"));
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
}

#[test]
fn a_full_disk_is_an_error() {
    let full = std::fs::File::options().write(true).open("/dev/full").expect("/dev/full");
    for args in [&["policy", "limits"][..], &["policy", "limits", "--json"]] {
        let ran = Ran::from(
            runner().args(args).stdout(full.try_clone().expect("a copy")).output().expect("starts"),
        );
        assert_eq!(ran.code, Some(125), "{args:?}");
        assert!(ran.err.contains("cannot write the output"), "{}", ran.err);
    }
}

#[test]
fn colour_is_asked_for_or_absent() {
    let coloured = |ran: Ran| ran.out.contains('\u{1b}');
    assert!(!coloured(run(["policy", "limits"])), "not a terminal");
    assert!(coloured(run(["policy", "limits", "--color", "always"])));
    assert!(!coloured(run(["policy", "limits", "--color", "never"])));
    let with = |name: &str, value: &str| {
        Ran::from(runner().args(["policy", "limits"]).env(name, value).output().expect("starts"))
    };
    assert!(coloured(with("CLICOLOR_FORCE", "1")));
    assert!(!coloured(with("NO_COLOR", "1")));
}

#[test]
fn the_status_goes_to_its_own_descriptor() {
    // Through a shell, which can pass a descriptor by number.
    let status = |words: &str| {
        let line = format!("exec \"$0\" {words} 9>&1 >/dev/null 2>/dev/null");
        let out = std::process::Command::new("sh")
            .args(["-c", &line, env!("CARGO_BIN_EXE_runner")])
            .output()
            .expect("sh");
        (out.status.code(), String::from_utf8(out.stdout).expect("UTF-8"))
    };
    assert_eq!(
        status("--status-fd 9 policy limits"),
        (Some(0), "{\"status\":\"completed\",\"exit\":0}\n".to_owned())
    );
    assert_eq!(
        status("--status-fd=9 polcy"),
        (Some(2), "{\"status\":\"error\",\"exit\":2,\"code\":\"usage\"}\n".to_owned())
    );
}

#[test]
fn a_status_descriptor_that_cannot_work_is_wrong_usage() {
    for fd in ["0", "1", "2", "77", "-1", "x"] {
        let ran = run(["--status-fd", fd, "policy", "limits"]);
        assert_eq!((ran.code, ran.out.as_str()), (Some(2), ""), "{fd}: {}", ran.err);
    }
}
