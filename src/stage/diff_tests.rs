//! Differences as people see them.

use std::time::{Duration, Instant};

use super::*;

fn later() -> Instant {
    Instant::now() + Duration::from_secs(3600)
}

fn shown(path: &str, host: Side<'_>, staged: Side<'_>) -> String {
    let lines = diff(path.as_bytes(), host, staged, later());
    lines.iter().map(|line| format!("{line}\n")).collect()
}

fn file(content: &[u8]) -> Side<'_> {
    Side::File { content: Content::Bytes(content), mode: 0o644 }
}

fn numbered(count: usize) -> Vec<String> {
    (1..=count).map(|number| format!("line {number}\n")).collect()
}

#[test]
fn changes_have_three_lines_around_them() {
    let old = numbered(20);
    let mut new = old.clone();
    new[4] = "another\n".to_owned();
    new.insert(16, "one more\n".to_owned());
    let (old, new) = (old.concat(), new.concat());
    assert_eq!(
        shown("src/main.rs", file(old.as_bytes()), file(new.as_bytes())),
        "\
=== src/main.rs
@@ -2,7 +2,7 @@
 line 2
 line 3
 line 4
-line 5
+another
 line 6
 line 7
 line 8
@@ -14,6 +14,7 @@
 line 14
 line 15
 line 16
+one more
 line 17
 line 18
 line 19
"
    );
}

#[test]
fn new_and_removed_files_are_shown_in_full() {
    let old = Side::Absent;
    assert_eq!(
        shown("a", old, Side::File { content: Content::Bytes(b"one\ntwo\n"), mode: 0o755 }),
        "=== a\n= new file, mode 755\n@@ -0,0 +1,2 @@\n+one\n+two\n"
    );
    assert_eq!(
        shown("a", file(b"one\n"), Side::Absent),
        "=== a\n= removed file\n@@ -1 +0,0 @@\n-one\n"
    );
    assert_eq!(shown("a", Side::Absent, file(b"")), "=== a\n= new file, mode 644\n");
    assert_eq!(shown("a", Side::Absent, Side::Special), "=== a\n= new special file\n");
    let folder = Side::Folder { mode: 0o2775 };
    assert_eq!(shown("a", Side::Absent, folder), "=== a\n= new folder, mode 2775\n");
    assert_eq!(shown("a", folder, Side::Absent), "=== a\n= removed folder\n");
}

#[test]
fn a_missing_line_end_is_named() {
    assert_eq!(
        shown("a", file(b"one\ntwo"), file(b"one\ntwo\n")),
        "\
=== a
@@ -1,2 +1,2 @@
 one
-two
\\ no line end at the end of the file
+two
"
    );
}

#[test]
fn permissions_kinds_and_targets_are_named() {
    let run = Side::File { content: Content::Bytes(b"x\n"), mode: 0o4755 };
    assert_eq!(shown("a", file(b"x\n"), run), "=== a\n= mode 644 becomes 4755\n");
    let (one, other) = (Side::Link { target: b"one" }, Side::Link { target: b"../other\n+x" });
    assert_eq!(shown("a", one, other), "=== a\n= symlink\n-one\n+../other\\n+x\n");
    assert_eq!(shown("a", Side::Absent, one), "=== a\n= new symlink\n+one\n");
    assert_eq!(shown("a", one, Side::Absent), "=== a\n= removed symlink\n-one\n");
    assert_eq!(
        shown("a", file(b"x\n"), one),
        "=== a\n= file becomes symlink\n@@ -1 +0,0 @@\n-x\n+one\n"
    );
    assert_eq!(
        shown("a", one, file(b"x\n")),
        "=== a\n= symlink becomes file, mode 644\n-one\n@@ -0,0 +1 @@\n+x\n"
    );
    let folder = Side::Folder { mode: 0o755 };
    assert_eq!(
        shown("a", folder, file(b"x\n")),
        "=== a\n= folder becomes file, mode 644\n@@ -0,0 +1 @@\n+x\n"
    );
}

#[test]
fn binary_and_long_files_are_one_line() {
    assert_eq!(
        shown("a", file(b"x\0y"), file(b"text\n")),
        "=== a\n= binary: 3 bytes before, 5 bytes now\n"
    );
    assert_eq!(
        shown("a", Side::Absent, file(b"\0")),
        "=== a\n= new file, mode 644\n= binary: 1 byte\n"
    );
    let long = Side::File { content: Content::TooLong { size: 5_000_000 }, mode: 0o644 };
    let text = "=== a\n= too long to show: 5000000 bytes before, 5000000 bytes now\n";
    assert_eq!(shown("a", long, long), text, "equal lengths are not equal contents");
    let bytes = vec![b'x'; MAX_CONTENT + 1];
    assert_eq!(
        shown("a", file(b"\0"), file(&bytes)),
        "=== a\n= too long to show: 1 byte before, 1048577 bytes now\n"
    );
    let lines = vec![b'\n'; MAX_LINES + 1];
    assert!(shown("a", Side::Absent, file(&lines)).ends_with("= too long to show: 50001 bytes\n"));
}

#[test]
fn nothing_is_shown_of_what_is_the_same() {
    for side in [file(b"x\0"), file(b"x"), Side::Link { target: b"x" }, Side::Absent, Side::Special]
    {
        assert_eq!(diff(b"a", side, side, later()), []);
    }
}

#[test]
fn what_deceives_becomes_an_escape() {
    let evil = "\tok\r\n\x1b[2Jgone\n\u{202e}right\n\u{200b}\n".as_bytes();
    let latin = b"gr\xfc\xdfe\n";
    let both = [evil, latin].concat();
    assert_eq!(
        shown("new\nline\t\x1b", Side::Absent, file(&both)),
        "\
=== new\\nline\\t\\x1b
= new file, mode 644
@@ -0,0 +1,5 @@
+\tok\\r
+\\x1b[2Jgone
+\\u{202e}right
+\\u{200b}
+gr\\xfc\\xdfe
"
    );
}

#[test]
fn no_line_of_a_file_looks_like_a_heading_or_a_note() {
    let evil = b"=== other\n= removed file\n@@ -1 +1 @@\n-- a\n++ b\n\\ no\n";
    for line in diff(b"a", file(b"-- x\n"), file(evil), later()) {
        let text = line.to_string();
        let begins = [' ', '-', '+', '\\'].iter().any(|mark| text.starts_with(*mark));
        let of_file = matches!(line.kind, Kind::Context | Kind::Removed | Kind::Added);
        assert_eq!(begins, of_file, "{text}");
    }
}

/// Applies the lines of a difference to the old content.
fn applied(old: &[u8], lines: &[Line]) -> Vec<u8> {
    let old: Vec<_> = old.split_inclusive(|byte| *byte == b'\n').collect();
    let (mut new, mut at) = (Vec::new(), 0);
    for line in lines {
        match line.kind {
            Kind::Hunk => {
                let start = line.text[4..].split([',', ' ']).next().unwrap();
                let start: usize = start.parse().unwrap();
                let none = line.text[4..].split(' ').next().unwrap().ends_with(",0");
                let start = if none { start } else { start - 1 };
                new.extend(old[at..start].concat());
                at = start;
            }
            Kind::Context => {
                new.extend_from_slice(old[at]);
                at += 1;
            }
            Kind::Removed => at += 1,
            Kind::Added => new.extend(format!("{}\n", line.text).into_bytes()),
            Kind::Heading | Kind::Note | Kind::NoLineEnd => {}
        }
    }
    new.extend(old[at..].concat());
    new
}

#[test]
fn the_lines_lead_from_one_side_to_the_other_also_without_time() {
    let mut seed = 7_u64;
    let mut chance = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
        (seed >> 33) % below
    };
    for round in 0..300 {
        let mut content = |lines: u64| -> Vec<u8> {
            (0..lines).flat_map(|_| [b'a' + chance(5) as u8, b'\n']).collect()
        };
        let (old, new) = (content(round % 40), content(round % 31));
        for deadline in [later(), Instant::now()] {
            let lines = diff(b"a", file(&old), file(&new), deadline);
            assert_eq!(applied(&old, &lines), new);
        }
    }
}

#[test]
fn the_worst_content_ends() {
    // No two lines are the same, in opposite order: the most work for a comparison.
    let old: String = (0..MAX_LINES).map(|number| format!("{number}\n")).collect();
    let new: String = (0..MAX_LINES).rev().map(|number| format!("{number}\n")).collect();
    let soon = Instant::now();
    let lines = diff(b"a", file(old.as_bytes()), file(new.as_bytes()), soon);
    assert_eq!(applied(old.as_bytes(), &lines), new.as_bytes());
}
