//! The sandbox's own `/proc`: which paths in it hold facts about the sandbox and nothing else.
//!
//! A command sees the procfs of its sandbox, not the host's. Most of it is about the kernel and the sandbox's
//! own processes. Some entries are links to files elsewhere: `cwd`, `root`, `exe`, `fd`, `map_files`. Through
//! those a command could name a workspace file in a way that no `files.deny` pattern matches. So entries of
//! processes count only if they are listed here; a new kernel's entry is not free until somebody adds it.
//! Non-goal: the broker, which works on the host and refuses all of `/proc`.

use crate::effect::Place;

/// Files of one process that hold figures about it and lead nowhere. `environ` and `mem` are left out: they
/// hold what programs were given, not facts about the sandbox.
const OF_A_PROCESS: &[&str] = &[
    "attr",
    "autogroup",
    "auxv",
    "cgroup",
    "children",
    "cmdline",
    "comm",
    "coredump_filter",
    "cpuset",
    "gid_map",
    "io",
    "limits",
    "loginuid",
    "maps",
    "mountinfo",
    "mounts",
    "mountstats",
    "net",
    "numa_maps",
    "oom_adj",
    "oom_score",
    "oom_score_adj",
    "personality",
    "projid_map",
    "sched",
    "schedstat",
    "sessionid",
    "setgroups",
    "smaps",
    "smaps_rollup",
    "stat",
    "statm",
    "status",
    "timers",
    "timerslack_ns",
    "uid_map",
    "wchan",
];

/// How much of a path is free.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Free {
    /// The entry and all below it.
    Whole,
    /// The entry itself: a folder that also holds links.
    Alone,
    /// Nothing.
    Not,
}

/// Whether everything that a place stands for is a fact about the sandbox.
pub(crate) fn is_free(place: &Place) -> bool {
    match place {
        Place::Exact(path) => free(path) != Free::Not,
        Place::Tree(path) | Place::Below(path) | Place::Glob(path) => free(path) == Free::Whole,
        Place::Prefix(_) | Place::Any => false,
    }
}

/// What of a path is free. The path has no `.` and no `..`; a component may be a shell pattern.
fn free(path: &str) -> Free {
    let Some(rest) = path.strip_prefix("/proc") else { return Free::Not };
    let components: Vec<&str> = match rest.strip_prefix('/') {
        Some(rest) => rest.split('/').collect(),
        None if rest.is_empty() => return Free::Alone,
        None => return Free::Not,
    };
    match components.as_slice() {
        [process] if is_process(process) => Free::Alone,
        [process, entries @ ..] if is_process(process) => of_a_process(entries),
        // Nothing else in procfs is a link, but for links to what is free anyway.
        _ => Free::Whole,
    }
}

fn of_a_process(entries: &[&str]) -> Free {
    match entries {
        ["task"] | ["task", _] => Free::Alone,
        ["task", _, entries @ ..] => of_a_process(entries),
        [entry, ..] if OF_A_PROCESS.contains(entry) => Free::Whole,
        _ => Free::Not,
    }
}

/// Whether a component names a process, or could.
fn is_process(component: &str) -> bool {
    matches!(component, "self" | "thread-self")
        || component.bytes().all(|byte| byte.is_ascii_digit())
        || component.contains(['*', '?', '[', ']', '{', '\\'])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn exact(path: &str) -> bool {
        is_free(&Place::Exact(path.to_owned()))
    }

    #[test]
    fn facts_are_free_and_links_are_not() {
        for path in [
            "/proc",
            "/proc/cpuinfo",
            "/proc/sys/kernel/osrelease",
            "/proc/net/tcp",
            "/proc/self",
            "/proc/self/status",
            "/proc/1/cmdline",
            "/proc/thread-self/stat",
            "/proc/self/task/12/status",
            "/proc/self/net/dev",
        ] {
            assert!(exact(path), "{path}");
        }
        for path in [
            "/proc/self/cwd",
            "/proc/self/cwd/.env",
            "/proc/self/root/w/.env",
            "/proc/1/root/etc/shadow",
            "/proc/self/exe",
            "/proc/self/fd/3",
            "/proc/self/map_files/x",
            "/proc/self/task/12/cwd/.env",
            "/proc/self/task/12/root",
            "/proc/thread-self/cwd/.env",
            "/proc/1/environ",
            "/proc/self/mem",
            "/proc/self/whatever",
            "/process/x",
            "/procx",
            "/w/proc/cpuinfo",
        ] {
            assert!(!exact(path), "{path}");
        }
    }

    #[test]
    fn a_tree_or_a_pattern_must_hold_no_link_at_all() {
        let tree = |path: &str| is_free(&Place::Tree(path.to_owned()));
        assert!(tree("/proc/sys") && tree("/proc/self/net") && tree("/proc/meminfo"));
        assert!(!tree("/proc") && !tree("/proc/self") && !tree("/proc/1/task"));
        let glob = |path: &str| is_free(&Place::Glob(path.to_owned()));
        assert!(glob("/proc/*/status") && glob("/proc/[0-9]*/stat") && glob("/proc/sys/vm/*"));
        assert!(!glob("/proc/*") && !glob("/proc/*/cwd/.env") && !glob("/proc/s?lf/root"));
        assert!(!glob("/proc/self/*") && !glob("/proc/self/task/*/c?d"));
        assert!(!is_free(&Place::Any) && !is_free(&Place::Prefix("/proc/cpuinfo".to_owned())));
    }
}
