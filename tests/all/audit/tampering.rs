//! Each way to change a ledger without its key is found and named; beside it, the same ledger untouched.

use std::fs;

use super::{assert_sound, database, first_problem, refused, state, verify};
use crate::support::Home;

/// Six refused calls: records 1 to 6.
fn six() -> Home {
    let home = Home::new();
    refused(&home, 6);
    let report = assert_sound(&home);
    assert_eq!((&report["records"], &report["last"]), (&6.into(), &6.into()));
    home
}

fn change(home: &Home, statements: &str) {
    database(home).execute_batch(statements).expect("changed");
}

#[test]
fn a_changed_record_is_named() {
    for (column, value) in [
        ("body", "replace(body, 'file-2', 'file-9')"),
        ("at", "at + 1"),
        ("call", "'another'"),
        ("kind", "'aborted'"),
    ] {
        let home = six();
        change(&home, &format!("UPDATE events SET {column} = {value} WHERE seq = 3"));
        assert_eq!(first_problem(&home), (3, "changed".to_owned()), "{column}");
        // The next call goes on, and what was found stays found.
        refused(&home, 1);
        assert_eq!(first_problem(&home), (3, "changed".to_owned()), "{column}");
    }
}

#[test]
fn a_removed_record_is_named() {
    let home = six();
    change(&home, "DELETE FROM events WHERE seq = 4");
    assert_eq!(first_problem(&home), (4, "removed".to_owned()));
    // Also if the others are made to follow each other.
    let home = six();
    change(
        &home,
        "DELETE FROM events WHERE seq = 4; UPDATE events SET seq = 4 WHERE seq = 5; UPDATE events SET seq = 5 WHERE seq = 6",
    );
    assert_eq!(first_problem(&home).0, 4);
}

#[test]
fn records_in_another_order_are_named() {
    let whole = "UPDATE events SET seq = -3 WHERE seq = 3; UPDATE events SET seq = 3 WHERE seq = 5; UPDATE events SET seq = 5 WHERE seq = -3";
    let home = six();
    change(&home, whole);
    assert_eq!(first_problem(&home), (3, "reordered".to_owned()));
    // Contents alone, with the links left where they were.
    let home = six();
    change(
        &home,
        "CREATE TEMP TABLE held AS SELECT * FROM events;
         UPDATE events SET (at, call, kind, body) = (SELECT at, call, kind, body FROM held WHERE held.seq = 8 - events.seq) WHERE seq IN (3, 5)",
    );
    assert_eq!(first_problem(&home), (3, "reordered".to_owned()));
}

#[test]
fn a_cut_end_is_seen_and_stays_seen() {
    let home = six();
    change(&home, "DELETE FROM events WHERE seq > 4");
    assert_eq!(first_problem(&home), (5, "truncated".to_owned()));
    // Later calls are recorded, and so is what was found before the first of them.
    refused(&home, 4);
    let (report, ran) = verify(&home);
    assert_eq!(ran.code, Some(65));
    assert_eq!(
        (&report["findings"][0]["seq"], &report["findings"][0]["problem"]),
        (&5.into(), &"truncated".into()),
        "{report:#}"
    );
    assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{report:#}");
    // Who knows what happened looks at the rest alone.
    let later = home.run(["audit", "verify", "--after", "5", "--json"]);
    assert_eq!(later.code, Some(0), "{}", later.out);
    // Everything at once.
    let home = six();
    change(&home, "DELETE FROM events");
    assert_eq!(first_problem(&home), (1, "truncated".to_owned()));
    // The database itself.
    let home = six();
    for name in ["store.db", "store.db-wal", "store.db-shm"] {
        let _ = fs::remove_file(state(&home, name));
    }
    assert_eq!(first_problem(&home), (1, "truncated".to_owned()));
}

#[test]
fn a_record_that_somebody_added_without_the_key_is_named() {
    // A link anybody can make; here it is that of another record, and that is enough to see who vouches.
    let home = six();
    change(
        &home,
        "INSERT INTO events (seq, at, call, kind, body, link, vouches, signature)
         SELECT 7, at, call, kind, body, link, vouches, signature FROM events WHERE seq = 6",
    );
    assert_eq!(first_problem(&home).0, 7);
    let home = six();
    change(
        &home,
        "INSERT INTO events (seq, at, call, kind, body) VALUES (7, 1, 'x', 'aborted', '{}')",
    );
    assert_eq!(first_problem(&home), (7, "added".to_owned()));
    refused(&home, 1);
    assert_eq!(first_problem(&home).0, 7);
    // The signatures taken away.
    let home = six();
    change(&home, "UPDATE events SET signature = NULL, vouches = NULL WHERE seq > 3");
    assert_eq!(first_problem(&home), (4, "added".to_owned()));
}

#[test]
fn what_lists_show_is_verified_whatever_its_number() {
    for seq in [0, -1, i64::MIN] {
        let home = six();
        let forged = format!(
            "INSERT INTO events (seq, at, call, kind, body, link, vouches, signature)
             SELECT {seq}, at, 'forged', kind, body, link, vouches, signature FROM events WHERE seq = 6"
        );
        change(&home, &forged);
        // The control: it is shown, so it must be looked at.
        let list = home.run(["--json", "audit", "list"]);
        assert!(list.out.contains("forged"), "{}", list.out);
        for after in ["0", "6"] {
            let ran = home.run(["--json", "audit", "verify", "--after", after]);
            let report = ran.json();
            let first = &report["findings"][0];
            assert_eq!(ran.code, Some(65), "{report:#}");
            assert_eq!(
                (&first["seq"], &first["problem"], &first["call"]),
                (&seq.into(), &"added".into(), &"forged".into()),
                "{report:#}"
            );
            assert_eq!(report["findings"].as_array().map(Vec::len), Some(1), "{report:#}");
        }
        // Later calls are numbered as before, and it stays found.
        refused(&home, 1);
        let (report, _) = verify(&home);
        assert_eq!((&report["last"], first_problem(&home).0), (&7.into(), seq), "{report:#}");
        change(&home, "DELETE FROM events WHERE seq < 1");
        assert_sound(&home);
    }
    // No number follows the largest: nothing is recorded with another, so nothing runs.
    let home = six();
    change(
        &home,
        "INSERT INTO events (seq, at, call, kind, body) VALUES (9223372036854775807, 1, 'x', 'aborted', '{}')",
    );
    assert_eq!(first_problem(&home), (7, "removed".to_owned()));
    assert_eq!(home.run(["exec", "--", "rm", "file"]).code, Some(125));
    assert_eq!(first_problem(&home), (7, "removed".to_owned()));
}

#[test]
fn a_head_that_is_none_is_named() {
    let home = six();
    let head = state(&home, "ledger.head");
    let good = fs::read(&head).expect("a head");
    // Gone, garbage, or with another number in it.
    fs::remove_file(&head).expect("removed");
    assert_eq!(first_problem(&home).1, "head");
    fs::write(&head, "nothing").expect("written");
    assert_eq!(first_problem(&home).1, "head");
    let text = String::from_utf8(good.clone()).expect("text");
    fs::write(&head, text.replace("06 ", "05 ")).expect("written");
    assert_eq!(first_problem(&home).1, "head");
    // The control: the right one is right again.
    fs::write(&head, &good).expect("written");
    assert_sound(&home);
    // One of another ledger, signed with that one's key.
    let other = six();
    fs::copy(state(&other, "ledger.head"), &head).expect("copied");
    assert_eq!(first_problem(&home).1, "head");
    refused(&home, 1);
    assert_eq!(first_problem(&home), (7, "head".to_owned()), "it is recorded");
    // With its key too: then nothing of ours is vouched for.
    let home = six();
    for name in ["ledger.head", "ledger.key"] {
        fs::copy(state(&other, name), state(&home, name)).expect("copied");
    }
    assert_eq!(first_problem(&home), (1, "added".to_owned()));
}

#[test]
fn an_old_head_that_was_put_back_is_seen_by_its_age() {
    let home = Home::new();
    refused(&home, 2);
    let old = fs::read(state(&home, "ledger.head")).expect("a head");
    refused(&home, 3);
    // A few appends behind is what a death leaves, and the next append mends it.
    fs::write(state(&home, "ledger.head"), &old).expect("written");
    assert_eq!(assert_sound(&home)["lag"], 3);
    refused(&home, 1);
    assert_eq!(assert_sound(&home)["lag"], 0);
    refused(&home, 16);
    fs::write(state(&home, "ledger.head"), &old).expect("written");
    assert_eq!(first_problem(&home), (2, "head".to_owned()));
}

#[test]
fn a_noted_head_holds_the_ledger_to_what_it_was() {
    let home = six();
    let text = home.run(["audit", "verify"]);
    let noted = text.out.rsplit("head ").next().expect("a head").trim().to_owned();
    assert!(noted.starts_with("6:"), "{}", text.out);
    refused(&home, 2);
    let ran = home.run(["audit", "verify", "--expect", &noted]);
    assert_eq!(ran.code, Some(0), "{}", ran.out);
    let other = noted.replace("6:", "5:");
    let ran = home.run(["audit", "verify", "--expect", &other]);
    assert_eq!(ran.code, Some(65), "{}", ran.out);
    assert!(ran.out.contains("first bad record: 5"), "{}", ran.out);
    assert_eq!(home.run(["audit", "verify", "--expect", "6"]).code, Some(2));
    // A whole new ledger in its place passes by itself, and not beside what was noted.
    let new = six();
    let ran = new.run(["audit", "verify", "--expect", &noted]);
    assert_eq!(ran.code, Some(65), "{}", ran.out);
}

#[test]
fn a_call_whose_end_was_taken_away_is_named() {
    let home = six();
    // Somebody with the key could write this; it is still no way for a call to end.
    change(&home, "UPDATE events SET kind = 'start' WHERE seq = 2");
    let (report, _) = verify(&home);
    let problems: Vec<_> = report["findings"]
        .as_array()
        .expect("findings")
        .iter()
        .map(|finding| finding["problem"].as_str().unwrap_or(""))
        .collect();
    assert_eq!(problems, ["changed", "unended"]);
}

/// A call that nothing can record: it does not run, and says why.
fn assert_unrecorded(home: &Home) {
    let ran = home.run(["--json", "exec", "--", "rm", "file"]);
    assert_eq!(ran.code, Some(125), "{}", ran.out);
    let error = &ran.json()["error"];
    assert_eq!(error["code"], "ledger_seal", "{error}");
    let message = error["message"].as_str().expect("a message");
    assert!(message.contains("ledger.key") && message.contains("missing"), "{message}");
}

#[test]
fn a_missing_key_is_told_once() {
    let home = six();
    fs::remove_file(state(&home, "ledger.key")).expect("removed");
    let ran = home.run(["--json", "audit", "verify"]);
    assert_eq!(ran.code, Some(65), "{}", ran.err);
    let findings = ran.json()["findings"].clone();
    assert_eq!(findings.as_array().map(Vec::len), Some(1), "{findings}");
    assert_eq!(findings[0]["problem"], "key");
    let message = findings[0]["message"].as_str().expect("a message");
    assert!(message.contains("the key is missing: 6 signatures"), "{message}");
}

#[test]
fn no_new_key_vouches_for_records_that_are_there() {
    let home = six();
    let kept = ["ledger.head", "ledger.key"].map(|name| {
        let path = state(&home, name);
        (fs::read(&path).expect("there"), path)
    });
    let remove = || kept.iter().for_each(|(_, path)| fs::remove_file(path).expect("removed"));
    let put_back =
        || kept.iter().for_each(|(bytes, path)| fs::write(path, bytes).expect("written"));
    remove();
    assert_unrecorded(&home);
    // The control: with its own key the ledger goes on.
    put_back();
    refused(&home, 1);
    assert_eq!(assert_sound(&home)["records"], 7);
    // Changed, and with everything taken away that would show it.
    remove();
    change(
        &home,
        "UPDATE events SET body = replace(body, 'file-2', 'file-9'), link = NULL, vouches = NULL, signature = NULL",
    );
    assert_unrecorded(&home);
    assert_eq!(first_problem(&home).0, 1);
    put_back();
    refused(&home, 1);
    assert_eq!(first_problem(&home), (1, "added".to_owned()));
    // As if there had never been a chain.
    let home = six();
    change(
        &home,
        "DROP TABLE approvals; DROP TABLE tool_calls; DROP TABLE breakers; DROP TABLE changes; DROP TABLE offers;
         DROP INDEX events_of_calls; CREATE INDEX events_by_time ON events (at);
         ALTER TABLE events DROP COLUMN link; ALTER TABLE events DROP COLUMN vouches;
         ALTER TABLE events DROP COLUMN signature; PRAGMA user_version = 2",
    );
    for name in ["ledger.head", "ledger.key"] {
        fs::remove_file(state(&home, name)).expect("removed");
    }
    assert_unrecorded(&home);
    assert_eq!(first_problem(&home), (1, "added".to_owned()));
}
