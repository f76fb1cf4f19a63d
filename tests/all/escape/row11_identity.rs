//! Row 11, program identity: only the program of the system runs, from a folder of the workspace.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};

use super::harness::{On, attack};
use super::seat::Seat;
use crate::support::Ran;

/// A program that tells that it ran, under the name of a harmless one.
const EVIL: &str = "#!/bin/sh\necho EVIL\n";

fn make_executable(path: &std::path::Path) {
    fs::set_permissions(path, fs::Permissions::from_mode(0o755)).unwrap();
}

fn only_the_systems_own_program_runs(on: On) {
    let seat = Seat::new(
        on,
        &[("names.txt", "one\n"), ("cat", EVIL), ("bin/cat", EVIL), ("sub/cat", EVIL)],
    );
    for name in ["cat", "bin/cat", "sub/cat"] {
        make_executable(&seat.file(name));
    }
    symlink("cat", seat.file("link")).unwrap();
    symlink("/usr/bin/cat", seat.file("real")).unwrap();
    let bin = seat.home.path("odd/bin");
    fs::create_dir_all(&bin).unwrap();
    fs::write(bin.join("cat"), EVIL).unwrap();
    make_executable(&bin.join("cat"));
    seat.give_away();
    let absolute = seat.file("cat");
    for program in [
        "/tmp/cat",
        "./cat",
        "././cat",
        "bin/cat",
        "../project/cat",
        absolute.to_str().unwrap(),
        "./link",
        "./real",
        "CAT",
        "Cat",
        "cat ",
        " cat",
        "cat\n",
        "cat\t",
        "c\u{430}t",
        "",
    ] {
        seat.denied(&["--policy", "look", "--", program, "names.txt"]);
    }
    for line in [
        "./cat names.txt",
        "PATH=. cat names.txt",
        "PATH=bin:$PATH cat names.txt",
        "export PATH=. ; cat names.txt",
    ] {
        seat.denied(&["--policy", "look", "--shell", line]);
    }
    // The control: the bare name is the system's program, whatever stands in the folder or first on the caller's path.
    let path = std::env::var("PATH").unwrap();
    for first in [seat.file(""), seat.file("bin"), bin, ".".into()] {
        let mut command = seat.home.runner();
        command.env("PATH", format!("{}:{path}", first.display()));
        command.args([
            "exec",
            "--policy",
            "look",
            "--shell",
            "cat names.txt; cd sub && cat ../names.txt",
        ]);
        let ran = Ran::from(command.output().unwrap());
        assert_eq!((ran.code, ran.out.as_str()), (Some(0), "one\none\n"), "{first:?}: {}", ran.err);
    }
    // Where code may run, a program of the workspace runs if it is named by its path, and never by a bare name.
    assert_eq!(seat.works("all", &["./cat", "names.txt"]), "EVIL\n");
    assert_eq!(seat.works("all", &["cat", "names.txt"]), "one\n");
}
attack!(11, "programs", only_the_systems_own_program_runs);

fn a_folder_that_is_none_of_the_workspace_is_refused(on: On) {
    let seat = Seat::new(on, &[("a.txt", "inside\n"), ("sub/a.txt", "below\n")]);
    let outside = seat.home.path("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("a.txt"), "CANARY").unwrap();
    symlink(&outside, seat.file("out")).unwrap();
    symlink("sub", seat.file("in")).unwrap();
    // Through a link, wherever that leads, and into what is no place for a workspace.
    for (folder, code) in [
        (seat.file("out"), "workspace_through_link"),
        (seat.file("in"), "workspace_through_link"),
        ("/usr".into(), "workspace_is_system"),
        (seat.file("nosuch"), "workspace_missing"),
        (seat.file("a.txt"), "workspace_not_a_folder"),
    ] {
        let ran = seat.home.run([
            "exec",
            "--json",
            "--policy",
            "look",
            "--workdir",
            folder.to_str().unwrap(),
            "--",
            "cat",
            "a.txt",
        ]);
        assert_eq!(ran.code, Some(125), "{folder:?}: {}{}", ran.out, ran.err);
        assert_eq!(ran.json()["error"]["code"], code, "{folder:?}");
        assert!(!ran.out.contains("CANARY") && !ran.err.contains("CANARY"));
    }
    let deleted = format!(
        "mkdir {0} && cd {0} && rmdir {0} && exec {1} exec --json --policy look -- cat a.txt",
        seat.file("gone").display(),
        env!("CARGO_BIN_EXE_runner")
    );
    let mut shell = std::process::Command::new("sh");
    seat.home.surround(&mut shell);
    let ran = Ran::from(shell.args(["-c", &deleted]).output().unwrap());
    assert_eq!((ran.code, &ran.json()["error"]["code"]), (Some(125), &"workspace_deleted".into()));
    // A line that walks out is denied; one that follows a link out finds nothing there.
    seat.denied(&["--policy", "look", "--shell", "cd /root && cat .bashrc"]);
    seat.denied(&["--policy", "look", "--shell", "cd ../../../../root && cat .bashrc"]);
    for line in ["cd out && cat a.txt", "cd .. && cat outside/a.txt"] {
        let ran = seat.line("look", line);
        assert!(ran.code != Some(0) && !ran.out.contains("CANARY"), "{}{}", ran.out, ran.err);
    }
    // The control.
    let ran = seat.line("look", "cat a.txt; cd sub && cat a.txt");
    assert_eq!((ran.code, ran.out.as_str()), (Some(0), "inside\nbelow\n"), "{}", ran.err);
    let sub = seat.file("sub");
    let ran = seat.home.run([
        "exec",
        "--policy",
        "look",
        "--workdir",
        sub.to_str().unwrap(),
        "--",
        "cat",
        "a.txt",
    ]);
    assert_eq!(ran.out, "below\n", "{}", ran.err);
}
attack!(11, "folders", a_folder_that_is_none_of_the_workspace_is_refused);
