//! Row 21, disk and inode fill: scratch ends exactly at its quota; the workspace has a file size and a floor.

use runner::call::launch::outcome::Outcome;
use runner::engine::plan::SandboxPlan;
use runner::sandbox::outcome::Verdict;
use runner_policy::limits::Limit;

use super::harness::{Case, On, attack, case};
use super::seat::Seat;
use crate::engine::{argv, call, plan, workspace};

/// The quota of these tests, in bytes and files.
const BYTES: u64 = 1 << 20;
const INODES: u64 = 64;

/// Where a sandbox has scratch.
const FOLDERS: [&str; 3] = ["/tmp", "/home/runner", "/dev/shm"];

/// Fills a folder with one file, then says how much went in.
const FILL: &str = "import os, sys\n\
    fd = os.open(sys.argv[1] + '/fill', os.O_WRONLY | os.O_CREAT)\n\
    total = 0\n\
    try:\n\
    \x20 while True: total += os.write(fd, b'x' * 4096)\n\
    except OSError as error: print(total, error.errno)\n";

/// Makes files until there is no room for a name, then says how many there are of how many, and why no more.
const NAMES: &str = "import os, sys\n\
    folder = os.statvfs(sys.argv[1])\n\
    count = folder.f_files - folder.f_ffree\n\
    try:\n\
    \x20 while count < 5000: os.close(os.open(f'{sys.argv[1]}/{count}', os.O_WRONLY | os.O_CREAT)); count += 1\n\
    except OSError as error: print(count, folder.f_files, error.errno)\n";

/// A plan with every kind of scratch, all of them small.
fn small(case: &Case, on: On) -> SandboxPlan {
    let mut plan = case.plan(on.read()).unwrap();
    let targets: Vec<_> = plan.tmpfs.iter().map(|entry| entry.target.to_str().unwrap()).collect();
    assert_eq!(targets, FOLDERS);
    for entry in &mut plan.tmpfs {
        (entry.size, entry.inodes) = (BYTES, INODES);
    }
    plan
}

fn python(case: &Case, on: On, code: &str, folder: &str) -> String {
    case.run(small(case, on), &["/usr/bin/python3", "-c", code, folder]).unwrap().succeeded().out
}

fn scratch_is_full_exactly_at_its_quota(on: On) {
    let case = case(&["a"]);
    for folder in FOLDERS {
        assert_eq!(python(&case, on, FILL, folder), format!("{BYTES} 28\n"), "{folder}: ENOSPC");
    }
}
attack!(21, "bytes", scratch_is_full_exactly_at_its_quota);

fn scratch_has_a_number_of_files(on: On) {
    let case = case(&["a"]);
    for folder in FOLDERS {
        let found = python(&case, on, NAMES, folder);
        assert_eq!(found, format!("{INODES} {INODES} 28\n"), "{folder}: ENOSPC");
    }
}
attack!(21, "inodes", scratch_has_a_number_of_files);

/// Shared memory is there only where a policy counts it, and only as large.
fn shared_memory_is_what_the_policy_counts(on: On) {
    let seat = Seat::new(on, &[("a.txt", "one\n")]);
    // There, or at least of use.
    let look = "try: open('/dev/shm/x', 'w'); print(True)\nexcept OSError: print(False)";
    let run = |policy: &str, options: &[&str], code: &str| {
        let words: Vec<&str> =
            [&["exec", "--policy", policy], options, &["--", "python3", "-c", code, "/dev/shm"]]
                .concat();
        let ran = seat.home.run(words);
        assert_eq!(ran.code, Some(0), "{}{}", ran.out, ran.err);
        ran.out
    };
    seat.policy("plain", "extends: [readonly]\ncommands: [{ id: py, allow: \"python3 ...\", effects: [read, code] }]\n", "");
    assert_eq!(run("plain", &[], look), "False\n", "none by default");
    assert_eq!(run("make", &[], look), "True\n", "develop counts some");
    assert_eq!(run("make", &["--limit", "shared-memory=none"], look), "False\n");
    assert_eq!(run("make", &["--limit", "shared-memory=1MiB"], FILL), format!("{BYTES} 28\n"));
    let size = "import os; s = os.statvfs('/dev/shm'); print(s.f_blocks * s.f_frsize)";
    assert_eq!(run("make", &[], size), format!("{}\n", 1 << 30));
    seat.policy("some", "extends: [plain]\n", "  limits: { shared-memory: 2MiB }\n");
    assert_eq!(run("some", &[], FILL), format!("{} 28\n", 2 << 20));
}
attack!(21, "bytes", shared_memory_is_what_the_policy_counts);

fn limited(on: On, limit: Limit, figure: u64, script: &str) -> Outcome {
    let folder = workspace();
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    plan.limits.set(limit, figure);
    call(plan, argv(&["sh", "-c", script])).unwrap()
}

fn a_file_beyond_its_size_is_a_limit(on: On) {
    let (size, limit) = (Limit::FileSize, Verdict::Limit(Limit::FileSize));
    for script in [
        "exec dd if=/dev/zero of=big bs=1M count=2",
        "exec dd if=/dev/zero of=/tmp/big bs=1M count=2",
        "exec python3 -c 'import signal, os; signal.signal(signal.SIGXFSZ, signal.SIG_DFL); os.truncate(os.open(\"sparse\", 66), 1 << 40)'",
    ] {
        let outcome = limited(on, size, BYTES, script);
        assert_eq!(outcome.verdict, limit, "{script}: {outcome:?}");
    }
    let fits = limited(on, size, BYTES, "exec dd if=/dev/zero of=big bs=1M count=1");
    assert_eq!(fits.verdict, Verdict::Completed, "the control: {fits:?}");
}
attack!(21, "workspace", a_file_beyond_its_size_is_a_limit);

fn a_workspace_that_gets_too_full_ends_the_call(on: On) {
    let folder = workspace();
    let space = rustix::fs::statvfs(folder.path()).unwrap();
    let free = space.f_bavail * space.f_frsize;
    let mut plan = plan(folder.path());
    plan.runtime = on.runtime();
    plan.limits.set(Limit::FreeSpace, free.saturating_sub(256 << 20));
    // A gigabyte at most, if nobody stops it.
    let script = "for i in $(seq 64); do dd if=/dev/zero of=fill$i bs=1M count=16 2>/dev/null; done; sleep 20";
    let outcome = call(plan, argv(&["sh", "-c", script])).unwrap();
    assert_eq!(outcome.verdict, Verdict::Limit(Limit::FreeSpace), "{outcome:?}");
    let fits =
        limited(on, Limit::FreeSpace, 16 << 20, "dd if=/dev/zero of=x bs=1M count=16; sleep 3");
    assert_eq!(fits.verdict, Verdict::Completed, "the control: {fits:?}");
}
attack!(21, "workspace", a_workspace_that_gets_too_full_ends_the_call);
