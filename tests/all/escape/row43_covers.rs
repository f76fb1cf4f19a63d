//! Row 43, covers: a denied file is there and empty, key material is there and closed, a denied folder is there and
//! empty. Whatever a command and the host do, no content is seen inside, and nothing of ours is in the caller's folder.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::Stdio;

use super::harness::{On, Rules, attack, case};
use super::seat::Seat;

const CANARY: &str = "CANARY-43";

const DENY: &[&str] = &["**/.env", "**/.env.*", "secrets/**"];

/// Everything in a folder, with what can be known of it.
fn listing(folder: &Path) -> String {
    let mut find = std::process::Command::new("find");
    let format = "%P %y %m %U:%G %s %n %T@ %C@ %l\n";
    let listed = find.arg(folder).args(["-printf", format]).output().unwrap();
    assert!(listed.status.success(), "{}", String::from_utf8_lossy(&listed.stderr));
    String::from_utf8(listed.stdout).unwrap()
}

/// What a command may do with files that it must not read. Each line shows what it got.
const TRIES: &str = r#"
for file in .env sub/.env sub/.env.local second; do
  [ -e "$file" ] && [ -f "$file" ] || echo "missing $file"
  cat "$file"; head -c 100 < "$file"; dd if="$file" 2>/dev/null; wc -c < "$file"
  cp "$file" /tmp/copy && cat /tmp/copy; cp "$file" copy && cat copy
  tar cf - "$file" | tr -d '\000' | grep -a CANARY
  ln "$file" hard && cat hard; ln -s "$PWD/$file" link && cat link
  python3 -c "import mmap,sys; f=open('$file','rb'); print(mmap.mmap(f.fileno(),0,prot=mmap.PROT_READ)[:])"
  cat "/proc/self/root$PWD/$file" "/proc/self/cwd/$file"
  chmod 777 "$file"; cat "$file"; truncate -s 100 "$file"; tr -d '\000' < "$file"
  mv "$file" moved && cat moved; rm -f "$file" moved copy hard link; ls "$file"; cat "$file"
  echo mine > "$file" && grep -v mine "$file"
done
for file in id_rsa .ssh/config; do cat "$file" || echo closed; cp "$file" /tmp/key; cat /tmp/key; chmod 777 "$file" .ssh; cat "$file"; done
ls -A secrets; cat secrets/deep/token; mkdir -p secrets/deep; ls -A secrets/deep; rm -rf secrets; mkdir secrets; ls -A secrets
find . -name '.wh.*' -o -name 'work' ; grep -r CANARY . ; true
"#;

fn no_content_of_what_is_covered_is_seen(on: On) {
    let case = case(&["src/a", "sub/x"]);
    let put = |name: &str| {
        let path = case.root.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{CANARY} {name}\n")).unwrap();
    };
    let denied =
        [".env", "sub/.env", "sub/.env.local", "secrets/deep/token", "id_rsa", ".ssh/config"];
    denied.into_iter().for_each(put);
    fs::hard_link(case.root.join(".env"), case.root.join("second")).unwrap();
    case.give_away();
    let before = listing(&case.root);
    for write in [&[][..], &["**"]] {
        let rules = Rules { deny: DENY, write, ..on.read() };
        let ran = case.sh(rules, TRIES);
        assert!(!ran.out.contains(CANARY) && !ran.err.contains(CANARY), "{}{}", ran.out, ran.err);
        assert!(!ran.out.contains("missing"), "a program finds it: {}", ran.out);
        assert!(ran.out.contains("closed"), "key material is closed: {}{}", ran.out, ran.err);
        for name in denied {
            assert_eq!(case.text(name), format!("{CANARY} {name}\n"));
        }
        if write.is_empty() {
            assert_eq!(listing(&case.root), before, "nothing of ours is in the caller's folder");
        }
    }
    let ran = case.sh(
        Rules { deny: &["**/.env.local"], ..on.read() },
        "cat .env sub/.env; cat sub/.env.local",
    );
    let seen = format!("{CANARY} .env\n{CANARY} sub/.env\n");
    assert_eq!(ran.out, seen, "the control: what is not denied is read");
}
attack!(43, "covers", no_content_of_what_is_covered_is_seen);

/// A program that must find its file finds an empty one, as it would find an empty one of its own.
fn programs_find_what_is_covered(on: On) {
    let case = case(&[".env", "sub/.env", "secrets/x"]);
    let script = "import os\n\
        for name in ('.env', 'sub/.env'):\n    print(os.path.isfile(name), os.path.getsize(name), repr(open(name).read()))\n\
        print(sorted(os.listdir('.')), os.listdir('secrets'), sorted(os.listdir('sub')))";
    let rules = Rules { deny: DENY, ..on.read() };
    let ran = case.run(case.plan(rules).unwrap(), &["python3", "-c", script]).unwrap().succeeded();
    let expected = "True 0 ''\nTrue 0 ''\n['.env', 'secrets', 'sub'] [] ['.env']\n";
    assert_eq!(ran.out, expected, "{}", ran.err);
}
attack!(43, "covers", programs_find_what_is_covered);

/// While a call runs, the host saves a denied file as editors do, edits it in place, removes it and makes it anew, and
/// moves its folder: the cover holds.
fn the_host_changes_what_is_covered_while_a_call_runs(on: On) {
    for looked_before in [true, false] {
        let seat = Seat::new(on, &[(".env", CANARY), ("sub/.env", CANARY), ("sub/open", "open\n")]);
        let dump = "cat .env sub/.env; grep -r CANARY . ; cat sub/open; echo seen";
        let first = if looked_before { dump } else { ":" };
        // A function, so that it is code and not denied for the names in it.
        let script =
            format!("look() {{ {dump}; }}; {first}; echo ready; while read line; do look; done");
        let mut command = seat.home.runner();
        command.args(["exec", "--policy", "all", "--", "sh", "-c", &script]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let mut told = child.stdin.take().unwrap();
        let mut says = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut all = Vec::new();
        let mut until = |word: &str, all: &mut Vec<String>| loop {
            let line = says.next().expect("it goes on").unwrap();
            let done = line == word;
            all.push(line);
            if done {
                break;
            }
        };
        until("ready", &mut all);
        let changes: [fn(&Seat); 5] = [
            |seat| {
                for name in [".env", "sub/.env"] {
                    fs::write(seat.file("new"), format!("{CANARY} saved")).unwrap();
                    fs::rename(seat.file("new"), seat.file(name)).unwrap();
                }
            },
            |seat| fs::write(seat.file(".env"), format!("{CANARY} edited")).unwrap(),
            |seat| {
                fs::remove_file(seat.file("sub/.env")).unwrap();
                fs::write(seat.file("sub/.env"), format!("{CANARY} again")).unwrap();
            },
            |seat| {
                fs::remove_file(seat.file(".env")).unwrap();
                fs::create_dir(seat.file(".env")).unwrap();
                fs::write(seat.file(".env/x"), CANARY).unwrap();
            },
            |seat| {
                fs::remove_dir_all(seat.file(".env")).unwrap();
                fs::write(seat.file(".env"), CANARY).unwrap();
                seat.home.git(&["init", "-q"]);
                seat.home.git(&["config", "alias.x", "status"]);
            },
        ];
        for change in changes {
            change(&seat);
            told.write_all(b"look\n").unwrap();
            until("seen", &mut all);
        }
        let before = listing(&seat.file(""));
        drop(told);
        let ended = child.wait_with_output().unwrap();
        let all = all.join("\n");
        assert!(!all.contains(CANARY), "{all}");
        assert!(!String::from_utf8_lossy(&ended.stderr).contains(CANARY));
        assert!(all.contains("open"), "the control: {all}");
        assert_eq!(seat.text("sub/.env"), format!("{CANARY} again"));
        assert_eq!(listing(&seat.file("")), before, "the end of the call changes nothing");
    }
}
attack!(43, "covers", the_host_changes_what_is_covered_while_a_call_runs);

/// A file system that the host has mounted below the workspace: what is denied in it is covered too.
fn what_is_mounted_below_is_covered_too(on: On) {
    use rustix::mount::{MountFlags, UnmountFlags, mount, unmount};

    let case = case(&["data/", "data2/", "src/.env"]);
    for name in ["data", "data2"] {
        let place = case.root.join(name);
        mount("none", &place, "tmpfs", MountFlags::empty(), None).unwrap();
        fs::write(place.join("open"), "open\n").unwrap();
    }
    fs::create_dir(case.root.join("data/sub")).unwrap();
    for name in ["data/.env", "data/sub/.env"] {
        fs::write(case.root.join(name), CANARY).unwrap();
    }
    case.give_away();
    let script = "cat data/open data2/open; cat data/.env data/sub/.env; grep -r CANARY . ; \
                  echo x > data/new; echo x > data2/new; echo x > data/.env";
    let all: Vec<_> = [&[][..], &["**"]]
        .map(|write| case.plan(Rules { deny: DENY, write, ..on.read() }))
        .map(|plan| plan.map(|plan| case.run(plan, &["sh", "-c", script])))
        .into();
    let left: Vec<bool> = ["data/new", "data2/new"].iter().map(|name| case.exists(name)).collect();
    let kept = case.text("data/.env");
    for name in ["data", "data2"] {
        unmount(case.root.join(name), UnmountFlags::DETACH).unwrap();
    }
    for ran in all {
        let ran = ran.unwrap().unwrap();
        assert_eq!(ran.out, "open\nopen\n", "{}", ran.err);
    }
    assert_eq!((left, kept.as_str()), (vec![false, false], CANARY));
}
attack!(43, "covers", what_is_mounted_below_is_covered_too);
