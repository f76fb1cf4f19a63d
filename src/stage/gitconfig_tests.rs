//! Git's configuration as git reads it, and which changes to it are let through.

use super::*;
use crate::stage::dice::Dice;
use std::process::Command;

const BASE: &str = "[core]\n\trepositoryformatversion = 0\n\tbare = false\n\
                    [remote \"origin\"]\n\turl = https://example.com/x\n\
                    \tfetch = +refs/heads/*:refs/remotes/origin/*\n";

fn harmless(added: &str) -> bool {
    is_harmless_change(BASE.as_bytes(), format!("{BASE}{added}").as_bytes())
}

#[test]
fn what_git_writes_for_a_branch_or_an_author_is_harmless() {
    for added in [
        "",
        "[branch \"x\"]\n\tremote = origin\n\tmerge = refs/heads/x\n",
        "[branch \"x\"]\n\tremote = .\n\trebase = true\n\tdescription = \"two\\nlines\"\n",
        "[user]\n\tname = A B\n\temail = a@b\n",
        "# a remark\n[branch \"x\"]\n",
    ] {
        assert!(harmless(added), "{added}");
        let with = format!("{BASE}{added}");
        assert!(is_harmless_change(with.as_bytes(), BASE.as_bytes()), "removing {added}");
    }
}

#[test]
fn what_runs_or_redirects_is_not_harmless() {
    for added in [
        "[core]\n\tfsmonitor = x\n",
        "[core]\n\thooksPath = x\n",
        "[core]\n\tworktree = ..\n",
        "[include]\n\tpath = x\n",
        "[includeIf \"gitdir:/\"]\n\tpath = x\n",
        "[alias]\n\tst = !x\n",
        "[filter \"x\"]\n\tclean = x\n",
        "[remote \"evil\"]\n\turl = ext::sh\n",
        "[remote \"origin\"]\n\tuploadpack = x\n",
        "[branch \"x\"]\n\tremote = ext::sh\n",
        "[branch \"x\"]\n\tremote = evil\n",
        "[branch \"x\"]\n\tpushRemote = origin\n",
        "[branch \"x\"]\n\tmergeOptions = -s x\n",
        "[branch \"x\"]\n\tmerge = --upload-pack=x\n",
        "[branch \"x\"]\n\trebase = x\n",
        "[user]\n\tsigningkey = x\n",
        "[user \"x\"]\n\tname = x\n",
        "[user]\n\tname = a\u{1b}[2J\n",
        "[credential]\n\thelper = x\n",
        "[gpg]\n\tprogram = x\n",
        "[url \"x\"]\n\tinsteadOf = y\n",
        "[extensions]\n\tworktreeConfig = true\n",
        // Forms that git accepts and does not write.
        "[user] name = x\n",
        "[user]\n\tname = x ; y\n",
        "[branch.x]\n\tremote = origin\n",
        "[user]\n\tname = x\\\ny\n",
        "[user]\r\n\tname = x\r\n",
        // Not understood.
        "[user\n",
        "[user]\n\tname = \"x\n",
        "[user]\n\tname \u{b}= x\n",
        "x = y\u{0}\n",
    ] {
        assert!(!harmless(added), "{added}");
    }
    let without = BASE.replace("\tbare = false\n", "");
    assert!(!is_harmless_change(BASE.as_bytes(), without.as_bytes()));
    assert!(!is_harmless_change(b"[core\n", b"[core\n"));
}

#[test]
fn files_that_a_configuration_leads_to_are_named() {
    let text = "[core]\n\thooksPath = .husky/_\n\tfsmonitor = ./tools/watch --x\n\
                [include]\n\tpath = ../shared.cfg\n[includeIf \"gitdir:~/\"]\n\tpath = /x\n\
                [alias]\n\tgo = !scripts/go\n[filter \"a\"]\n\tclean = sh 'bin/clean' %f\n";
    let config = parse(text.as_bytes()).unwrap();
    assert_eq!(config.hooks_paths().collect::<Vec<_>>(), [".husky/_"]);
    assert_eq!(config.includes().collect::<Vec<_>>(), ["../shared.cfg", "/x"]);
    assert_eq!(config.commands().collect::<Vec<_>>(), ["./tools/watch", "scripts/go", "bin/clean"]);
}

/// What `git config --list -z` says of a file: `key\nvalue\0`, or `None` where it stops.
fn by_git(folder: &std::path::Path, text: &str) -> Option<Vec<String>> {
    let file = folder.join("config");
    std::fs::write(&file, text).unwrap();
    let done = Command::new("git")
        .args(["config", "--no-includes", "--list", "-z", "--file"])
        .arg(&file)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    done.status.success().then(|| {
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        text.split_terminator('\0').map(str::to_owned).collect()
    })
}

fn shown(config: &Config) -> Vec<String> {
    config
        .settings
        .iter()
        .map(|setting| {
            let sub = setting.subsection.as_ref().map(|sub| format!("{sub}.")).unwrap_or_default();
            let value =
                setting.value.as_ref().map(|value| format!("\n{value}")).unwrap_or_default();
            format!("{}.{sub}{}{value}", setting.section, setting.name)
        })
        .collect()
}

#[test]
fn random_texts_are_read_as_git_reads_them() {
    let pieces = [
        "[core]",
        "[a \"b\"]",
        "[A.c]",
        "[x \"q\\\"r\\\\\"]",
        "\n",
        "\n",
        "\n\t",
        "key = value",
        "k=v",
        "Flag",
        " # c",
        " ; d",
        "n = \"a b\"",
        "n = a \\\n b",
        "n = \\t\\n",
        "n = a  b  ",
        "\r\n",
        " ",
        "\"",
        "\\",
        "=",
        "[",
        "]",
        "n = \"x\" y",
        "n =",
        "é",
        "n = é",
        "\t",
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let (mut understood, mut refused) = (0, 0);
    for _ in 0..600 {
        let mut text = String::from(if dice.roll(4) == 0 { "" } else { "[s]\n" });
        for _ in 0..=dice.roll(7) {
            text.push_str(dice.pick(&pieces));
        }
        let ours = parse(text.as_bytes());
        let theirs = by_git(folder.path(), &text);
        match (&ours, &theirs) {
            (Some(ours), Some(theirs)) => {
                understood += 1;
                assert_eq!(&shown(ours), theirs, "{text:?}");
            }
            // Stricter than git is fine; it must not happen for what git writes.
            (None, _) => refused += 1,
            (Some(ours), None) => panic!("git refuses {text:?}, read as {ours:?}"),
        }
    }
    assert!(understood > 100 && refused > 50, "{understood} {refused}");
}
