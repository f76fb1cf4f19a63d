//! What the mounts of a workspace promise beyond any single row: what is granted and nothing else, whatever it is
//! called.

use super::harness::{READ, Rules, case};

#[test]
fn what_is_not_granted_stays_as_it_is_and_what_is_granted_is_written() {
    let case = case(&["src/a", "build/"]);
    let rules = Rules { write: &["build/**", "made/**", "**/dist/*.js", "one"], ..READ };
    let script = "echo z > src/a && echo z > new && mkdir other && echo z > other/z && rm -r src && \
                  mkdir -p deep/dist && echo z > deep/dist/no.css";
    case.sh(rules, script).succeeded();
    assert_eq!(case.text("src/a"), "original\n");
    for path in ["new", "other", "deep/dist/no.css"] {
        assert!(!case.exists(path), "{path}");
    }
    let script = "mkdir made deep deep/dist; echo x > build/x; echo y > made/y; \
                  echo z > deep/dist/yes.js; echo one > one; echo z > src/a";
    case.sh(rules, script).succeeded();
    assert_eq!(case.text("src/a"), "original\n");
    assert_eq!(case.text("build/x"), "x\n");
    assert_eq!(case.text("made/y"), "y\n");
    assert_eq!(case.text("deep/dist/yes.js"), "z\n");
    assert_eq!(case.text("one"), "one\n");
}

/// Whatever may be written: no name of ours is in the caller's folder, while a call runs or afterwards.
#[test]
fn a_call_that_writes_nothing_leaves_nothing() {
    let case = case(&["a", ".env", "sub/.env"]);
    let names = |folder: &std::path::Path| {
        let mut find = std::process::Command::new("find");
        let listed = find.arg(folder).args(["-printf", "%p %y %m %u %T@\n"]).output().unwrap();
        assert!(listed.status.success());
        String::from_utf8(listed.stdout).unwrap()
    };
    let before = names(&case.root);
    let rules = Rules { write: &["target/debug/**", "x", "**"], deny: &["**/.env"], ..READ };
    case.sh(rules, "test ! -e target && test ! -e x && ls -a . sub").succeeded();
    assert_eq!(names(&case.root), before);
    case.sh(Rules { write: &[], ..rules }, "touch x; mkdir target; true").succeeded();
    assert_eq!(names(&case.root), before);
}

#[test]
fn a_call_that_may_not_write_cannot() {
    let case = case(&["src/a"]);
    let ran = case.sh(READ, "echo z > src/a; echo z > new; mkdir d; mv src s2; rm -r src");
    assert_eq!(ran.err.matches("Read-only file system").count(), 5, "{}", ran.err);
    assert_eq!(case.text("src/a"), "original\n");
}

#[test]
fn what_a_build_leaves_belongs_to_the_owner_of_the_workspace() {
    use std::os::unix::fs::MetadataExt;
    let case = case(&["a"]);
    case.sh(Rules { write: &["target/**"], ..READ }, "mkdir -p target/x && echo y > target/x/y")
        .succeeded();
    let owner = case.root.metadata().unwrap().uid();
    for path in ["target", "target/x", "target/x/y"] {
        assert_eq!(case.root.join(path).metadata().unwrap().uid(), owner, "{path}");
    }
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
    assert!(ran.err.contains("keys/id_rsa: Permission denied"), "{}", ran.err);
    assert!(!case.exists("a/copy") || case.text("a/copy").is_empty());
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
        let rules = Rules { write: &["t/**"], deny: &["a"], ..READ };
        let plan = case.plan_at(&odd, rules).unwrap();
        let words = ["sh", "-c", "pwd; cat a; mkdir t; echo x > t/x"];
        let ran = case.run_and_apply(plan, rules, &words).unwrap();
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
