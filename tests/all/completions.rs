//! Completions in real shells: each loads its script, and completes a subcommand, an option and a value.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::support::run;

/// The script of a shell, in a file that the shell expects.
fn script(shell: &str, file: &Path) {
    let ran = run(["completions", shell]);
    assert_eq!((ran.code, ran.err.as_str()), (Some(0), ""));
    fs::write(file, ran.out).expect("a file");
}

/// What a shell prints. Its own start-up files are not read.
fn printed(shell: &mut Command) -> String {
    let name = shell.get_program().to_string_lossy().into_owned();
    let output = shell.output().unwrap_or_else(|error| panic!("{name}: {error}"));
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    assert!(output.status.success(), "{name}: {}{}", text(&output.stdout), text(&output.stderr));
    text(&output.stdout)
}

#[test]
fn bash_completes_subcommands_options_and_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("runner");
    script("bash", &file);
    let complete = |line: &[&str]| {
        let current = line.len() - 1;
        let ask = format!(
            "source {}; COMP_WORDS=(\"$@\"); COMP_CWORD={current}; _runner runner \"${{@: -1}}\" \"${{@: -2:1}}\"; \
             printf '%s\\n' \"${{COMPREPLY[@]}}\"",
            file.display()
        );
        let text = printed(Command::new("bash").args(["--norc", "-c", &ask, "bash"]).args(line));
        text.lines().map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(complete(&["runner", "pol"]), ["policy"]);
    assert_eq!(complete(&["runner", "policy", "expl"]), ["explain"]);
    assert_eq!(complete(&["runner", "exec", "--strict"]), ["--strict-writes"]);
    let engines = complete(&["runner", "exec", "--engine", ""]);
    assert_eq!(engines, ["auto", "docker", "embedded"]);
    // What is hidden is not offered.
    assert!(!complete(&["runner", ""]).contains(&"man".to_owned()));
}

#[test]
fn fish_completes_subcommands_options_and_values() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("runner.fish");
    script("fish", &file);
    let complete = |line: &str| {
        let ask = format!("source {}; complete --do-complete '{line}'", file.display());
        let text = printed(Command::new("fish").env("HOME", folder.path()).args([
            "--no-config",
            "-c",
            &ask,
        ]));
        // A candidate and what it is for, with a tab between them.
        text.lines()
            .map(|line| line.split('\t').next().unwrap_or_default().to_owned())
            .collect::<Vec<_>>()
    };
    assert_eq!(complete("runner pol"), ["policy"]);
    assert_eq!(complete("runner policy expl"), ["explain"]);
    assert_eq!(complete("runner exec --strict"), ["--strict-writes"]);
    assert_eq!(complete("runner exec --engine "), ["auto", "docker", "embedded"]);
    assert!(!complete("runner ").contains(&"man".to_owned()));
}

/// zsh completes in its line editor only, so one with a terminal is typed to.
#[test]
fn zsh_completes_subcommands_options_and_values() {
    let folder = tempfile::tempdir().expect("a folder");
    script("zsh", &folder.path().join("_runner"));
    let typing = folder.path().join("type.zsh");
    fs::write(
        &typing,
        r#"
zmodload zsh/zpty
zpty shell zsh -f -i
zpty -w shell "fpath=($1 \$fpath); autoload -Uz compinit; compinit -u -d $1/dump; unsetopt beep; print REA''DY"
zpty -r shell seen '*READY*'
for line in 'runner policy expl' 'runner exec --strict' 'runner exec --engine embe'; do
  zpty -w -n shell "$line"$'\t'
  case $line in
    *expl) wanted=explain ;;
    *strict) wanted=--strict-writes ;;
    *embe) wanted=embedded ;;
  esac
  zpty -r shell seen "*$wanted*"
  print -r -- "$wanted"
  # The line is thrown away.
  zpty -w -n shell $'\C-u'
done
zpty -d shell
"#,
    )
    .expect("a file");
    let text = printed(
        Command::new("zsh")
            .env("HOME", folder.path())
            .env("TERM", "xterm")
            .arg("-f")
            .args([&typing, folder.path()]),
    );
    assert_eq!(text, "explain\n--strict-writes\nembedded\n");
}
