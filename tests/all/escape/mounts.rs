//! Links out of the workspace, where mounts are concerned; and what a policy hides.

use std::os::unix::fs::symlink;

use runner::sandbox::mounts::MountError;
use runner::sandbox::outcome::RunError;
use runner::sandbox::planner::PlanError;

use super::harness::{READ, Rules, case};

#[test]
fn what_is_read_only_cannot_be_written_and_what_is_granted_can() {
    let case = case(&["src/a", "build/"]);
    let rules = Rules { write: &["build/**", "made/**"], ..READ };
    let ran = case.sh(
        rules,
        "echo x > build/x; echo y > made/y; echo z > src/a; echo z > new; mv src s2; rm -r src",
    );
    assert_eq!(case.text("build/x"), "x\n");
    assert_eq!(case.text("made/y"), "y\n");
    assert_eq!(case.text("src/a"), "original\n");
    assert!(!case.exists("new"));
    assert!(ran.err.contains("Read-only file system"), "{}", ran.err);
}

#[test]
fn a_write_folder_that_stays_empty_is_removed_again() {
    let case = case(&["a"]);
    case.sh(Rules { write: &["target/debug/**"], ..READ }, "test -d target/debug").succeeded();
    assert!(!case.exists("target"));
}

#[test]
fn what_a_build_leaves_belongs_to_the_owner_of_the_workspace() {
    use std::os::unix::fs::MetadataExt;
    let case = case(&["a"]);
    case.sh(Rules { write: &["target/**"], ..READ }, "mkdir target/x && echo y > target/x/y")
        .succeeded();
    let owner = case.root.metadata().unwrap().uid();
    for path in ["target", "target/x", "target/x/y"] {
        assert_eq!(case.root.join(path).metadata().unwrap().uid(), owner, "{path}");
    }
}

#[test]
fn a_link_where_a_write_mount_is_planned_stops_the_call() {
    let case = case(&["src/a"]);
    let outside = case.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    symlink(&outside, case.root.join("target")).unwrap();
    let refused = case.plan(Rules { write: &["target/**"], ..READ });
    assert!(matches!(refused, Err(PlanError::Mounts(MountError::Link(_)))));
    std::fs::remove_file(case.root.join("target")).unwrap();
    case.sh(Rules { write: &["target/**"], ..READ }, "echo x > target/x").succeeded();
}

#[test]
fn a_folder_swapped_for_a_link_after_planning_stops_the_call() {
    let case = case(&["target/x", "src/a"]);
    let outside = case.dir.path().join("outside");
    std::fs::create_dir(&outside).unwrap();
    let plan = case.plan(Rules { write: &["target/**"], ..READ }).unwrap();
    std::fs::rename(case.root.join("target"), case.root.join("moved")).unwrap();
    symlink(&outside, case.root.join("target")).unwrap();
    let refused = case.run(plan, &["sh", "-c", "echo x > target/x; echo y > src/../target/y"]);
    assert!(matches!(refused, Err(RunError::Identity { .. })), "{:?}", refused.err());
    assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0, "nothing outside was written");
}

#[test]
fn links_lead_nowhere_outside_and_keep_working_inside() {
    let case = case(&["src/a", "build/"]);
    let secret = case.dir.path().join("secret");
    std::fs::write(&secret, "canary").unwrap();
    symlink(&secret, case.root.join("out")).unwrap();
    symlink("src/a", case.root.join("in")).unwrap();
    let script = format!(
        "cat in; cat out; ln -s {0} build/made && cat build/made; ln {0} build/hard; echo x > build/made",
        secret.display()
    );
    let ran = case.sh(Rules { write: &["build/**"], ..READ }, &script);
    assert_eq!(ran.out, "original\n", "only the link inside leads somewhere");
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "canary");
}

#[test]
fn denied_files_cannot_be_read_moved_or_replaced() {
    let case = case(&[".env", "a/.env", "a/open", "keys/id_rsa", "secrets/deep/x"]);
    let rules = Rules { write: &["a/**"], deny: &["**/.env", "secrets/**"], ..READ };
    let ran = case.sh(
        rules,
        "cat a/open; cat .env; cat a/.env; cat keys/id_rsa; ls secrets; cat secrets/deep/x; \
         mv a/.env a/e && cat a/e; mv a b; rm -f a/.env; ln a/.env a/hard && cat a/hard; chmod 644 a/.env && cat a/.env; \
         cp .env a/copy && cat a/copy",
    );
    assert_eq!(ran.out, "original\n", "only a/open was read: {}", ran.err);
    for path in [".env", "a/.env", "keys/id_rsa", "secrets/deep/x"] {
        assert_eq!(case.text(path), "original\n", "{path}");
    }
}

#[test]
fn sockets_of_the_host_cannot_be_reached() {
    let case = case(&["a"]);
    let socket = case.root.join("agent.sock");
    let _listener = std::os::unix::net::UnixListener::bind(&socket).unwrap();
    case.give_away();
    let script = "import socket,sys\n\
        s = socket.socket(socket.AF_UNIX)\n\
        try:\n    s.connect('agent.sock'); print('reached')\nexcept OSError as e: print(e.errno)\n\
        a = socket.socket(socket.AF_UNIX); a.bind('/tmp/own'); a.listen()\n\
        b = socket.socket(socket.AF_UNIX); b.connect('/tmp/own'); print('own')";
    let ran = case.run(case.plan(READ).unwrap(), &["/usr/bin/python3", "-c", script]).unwrap();
    let lines: Vec<&str> = ran.out.lines().collect();
    assert_eq!(lines.last(), Some(&"own"), "{}", ran.err);
    assert_ne!(lines.first(), Some(&"reached"));
}

#[test]
fn odd_bytes_in_a_workspaces_path_work_or_are_refused_clearly() {
    for name in ["a b", "a:b,c=d", "q'\"q", "new\nline", "ümläut"] {
        let case = case(&["a"]);
        let odd = case.dir.path().join(name);
        std::fs::rename(&case.root, &odd).unwrap();
        let plan = case.plan_at(&odd, Rules { write: &["t/**"], deny: &["a"], ..READ }).unwrap();
        let ran = case.run(plan, &["sh", "-c", "pwd; cat a; echo x > t/x"]).unwrap();
        assert_eq!(
            ran.out,
            format!("{}\n", odd.canonicalize().unwrap().display()),
            "{name:?}: {}",
            ran.err
        );
        assert_eq!(std::fs::read_to_string(odd.join("t/x")).unwrap(), "x\n", "{name:?}");
    }
    use std::os::unix::ffi::OsStrExt;
    let case = case(&["a"]);
    let odd = case.dir.path().join(std::ffi::OsStr::from_bytes(b"not\xffutf8"));
    std::fs::rename(&case.root, &odd).unwrap();
    let plan = case.plan_at(&odd, READ).unwrap();
    let refused = case.run(plan, &["true"]).err().unwrap();
    assert!(refused.to_string().contains("not valid UTF-8"), "{refused}");
}
