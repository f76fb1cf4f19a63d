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
    let words: Vec<_> = config.commands().collect();
    assert_eq!(words, ["./tools/watch", "scripts/go", "sh", "bin/clean", "%f"]);
    let config = parse(b"[init]\n\ttemplateDir = ~/template\n").unwrap();
    assert_eq!(config.templates().collect::<Vec<_>>(), ["~/template"]);
}

/// What `git config --list -z` says of a file: `key\nvalue\0`, or `None` where it stops.
fn by_git(folder: &std::path::Path, text: &[u8]) -> Option<Vec<Vec<u8>>> {
    let file = folder.join("config");
    std::fs::write(&file, text).unwrap();
    let done = Command::new("git")
        .args(["config", "--no-includes", "--list", "-z", "--file"])
        .arg(&file)
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .output()
        .unwrap();
    let lines = done.stdout.strip_suffix(b"\0").unwrap_or_default();
    let split = || lines.split(|c| *c == 0).map(<[u8]>::to_vec).collect();
    let all = || if done.stdout.is_empty() { Vec::new() } else { split() };
    done.status.success().then(all)
}

fn shown(config: &Config) -> Vec<Vec<u8>> {
    config
        .settings
        .iter()
        .map(|setting| {
            let subsection = setting.subsection.as_ref();
            let sub = subsection.map(|sub| [sub.as_slice(), b"."].concat()).unwrap_or_default();
            let value = setting.value.as_ref().map(|value| [b"\n", value.as_slice()].concat());
            let (section, name) = (setting.section.as_bytes(), setting.name.as_bytes());
            let dot: &[u8] = if section.is_empty() && subsection.is_none() { b"" } else { b"." };
            [section, dot, &sub, name, &value.unwrap_or_default()].concat()
        })
        .collect()
}

#[test]
fn random_texts_are_read_as_git_reads_them() {
    let pieces: [&[u8]; 31] = [
        b"[core]",
        b"[a \"b\"]",
        b"[A.c]",
        b"[x \"q\\\"r\\\\\"]",
        b"\n",
        b"\n",
        b"\n\t",
        b"key = value",
        b"k=v",
        b"Flag",
        b" # c",
        b" ; d",
        b"n = \"a b\"",
        b"n = a \\\n b",
        b"n = \\t\\n",
        b"n = a  b  ",
        b"\r\n",
        b" ",
        b"\"",
        b"\\",
        b"=",
        b"[",
        b"]",
        b"n = \"x\" y",
        b"n =",
        "é".as_bytes(),
        "n = é".as_bytes(),
        b"n = J\xf6rg",
        b"n = a\0b",
        b"# \0\xff",
        b"\t",
    ];
    let folder = tempfile::tempdir().unwrap();
    let mut dice = Dice(0x2545_F491_4F6C_DD1D);
    let (mut understood, mut refused) = (0, 0);
    for _ in 0..600 {
        let mut text = if dice.roll(4) == 0 { Vec::new() } else { b"[s]\n".to_vec() };
        for _ in 0..=dice.roll(7) {
            text.extend_from_slice(dice.pick(&pieces));
        }
        let shown_text = String::from_utf8_lossy(&text).into_owned();
        let ours = parse(&text);
        let theirs = by_git(folder.path(), &text);
        match (&ours, &theirs) {
            (Some(ours), Some(theirs)) => {
                understood += 1;
                assert_eq!(&shown(ours), theirs, "{shown_text:?}");
            }
            (None, None) => refused += 1,
            // A caller would be told that their configuration is not understood.
            (None, Some(_)) => panic!("git reads {shown_text:?}, which is refused here"),
            (Some(ours), None) => panic!("git refuses {shown_text:?}, read as {ours:?}"),
        }
    }
    assert!(understood > 100 && refused > 50, "{understood} {refused}");
}

#[test]
fn bytes_of_another_encoding_lead_where_they_say() {
    let config = parse(b"[user]\n\tname = J\xf6rg\n[core]\n\thooksPath = h\xf6ks\n").unwrap();
    assert_eq!(config.hooks_paths().collect::<Vec<_>>(), [OsStr::from_bytes(b"h\xf6ks")]);
    // Git goes on after a setting without a section.
    let config = parse(b"n = a\n[core]\n\thooksPath = hooks\n").unwrap();
    assert_eq!(config.hooks_paths().collect::<Vec<_>>(), ["hooks"]);
    let broken = b"[user\n[core]\n\tx = \"\n\thooksPath = hooks\n?\n";
    assert_eq!(parse(broken), None);
    let config = parse_broken(broken).unwrap();
    assert_eq!(config.hooks_paths().collect::<Vec<_>>(), ["hooks"], "once it is mended");
    let config = parse(b"[core]\n\thooksPath = hooks\0x\n[a]\n\tb = \"c\0\"\n").unwrap();
    assert_eq!(config.hooks_paths().collect::<Vec<_>>(), ["hooks"], "git ends the value there");
    // What is not plain does not change by a command.
    let added = |name: &[u8]| [BASE.as_bytes(), b"[user]\n\tname = ", name, b"\n"].concat();
    assert!(is_harmless_change(BASE.as_bytes(), &added(b"Jorg")));
    for name in [b"J\xf6rg".as_slice(), b"J\0rg"] {
        assert!(!is_harmless_change(BASE.as_bytes(), &added(name)));
        assert!(!is_harmless_change(&added(name), &added(b"Jorg")));
    }
}
