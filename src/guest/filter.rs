//! A second system call filter, for commands alone: it protects the guest and the limits that the guest set.
//!
//! The first filter, `images/seccomp.json`, holds for the guest too. A command has the guest's user, so the kernel lets it
//! change how the guest is scheduled and what limits it has: a guest that gets no processor ends nothing. This one refuses
//! such calls where they name the first process of the sandbox, or a group of processes that it is in. Non-goals:
//! everything that the first filter decides; calls of another architecture, which it refuses.

use libc::sock_filter;

/// How the memory of a sandbox is limited.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Memory {
    /// The kernel counts it.
    Held,
    /// The guest looks at processes, and does not see memory that belongs to none.
    Watched,
}

/// The number of the guest in its sandbox.
const GUEST: u32 = 1;

/// Calls about the scheduling of the process that their first argument names.
const BY_PROCESS: [libc::c_long; 4] = [
    libc::SYS_sched_setparam,
    libc::SYS_sched_setscheduler,
    libc::SYS_sched_setaffinity,
    libc::SYS_sched_setattr,
];

/// Calls whose first argument says what kind of number the second is, with the kind that is one process.
const BY_KIND: [(libc::c_long, u32); 2] =
    [(libc::SYS_setpriority, libc::PRIO_PROCESS), (libc::SYS_ioprio_set, 1)];

/// Calls that make memory, or hold it, without a process that maps it.
const UNSEEN: [libc::c_long; 4] =
    [libc::SYS_memfd_create, libc::SYS_shmget, libc::SYS_semget, libc::SYS_msgget];

/// The whole filter.
#[must_use]
pub fn of_commands(memory: Memory) -> Vec<sock_filter> {
    let mut program = vec![load(NUMBER_AT)];
    for call in BY_PROCESS {
        let body = [vec![load_argument(0)], refuse_if(GUEST), vec![allow()]].concat();
        program.extend(of_call(call, body));
    }
    for (call, process) in BY_KIND {
        let kind = [load_argument(0), equal(process, 1, 0), answer(libc::EPERM)];
        let body = [kind.to_vec(), vec![load_argument(1)], refuse_if(GUEST), vec![allow()]];
        program.extend(of_call(call, body.concat()));
    }
    program.extend(of_call(libc::SYS_prlimit64, limits_of_any()));
    let own = [vec![load_argument(0), equal(libc::RLIMIT_CORE, 0, 1)], vec![done(), allow()]];
    program.extend(of_call(libc::SYS_setrlimit, own.concat()));
    if memory == Memory::Watched {
        for call in UNSEEN {
            program.extend(of_call(call, vec![answer(libc::ENOSYS)]));
        }
    }
    program.push(allow());
    program
}

/// `prlimit64`: nothing about the guest. The limit of core dumps is 1, by which the kernel starts no program of the host's for
/// a crash; a lower one would. It seems to be set, since programs set it to 0 with the best intentions.
fn limits_of_any() -> Vec<sock_filter> {
    let new = 2;
    [
        vec![load_argument(0)],
        refuse_if(GUEST),
        vec![
            load_argument(1),
            equal(libc::RLIMIT_CORE, 1, 0),
            allow(),
            // A new limit is given by a pointer, of which either half may be 0.
            load_argument(new),
            equal(0, 0, 2),
            load(argument(new) + 4),
            equal(0, 1, 0),
            done(),
            allow(),
        ],
    ]
    .concat()
}

/// Where the kernel's facts about a call have its number.
const NUMBER_AT: u32 = 0;

/// Where they have an argument: eight bytes, the low half first.
const fn argument(index: u32) -> u32 {
    16 + 8 * index
}

/// What is done for one call. Every way through the body ends with an answer.
fn of_call(call: libc::c_long, body: Vec<sock_filter>) -> Vec<sock_filter> {
    let number = u32::try_from(call).unwrap_or(u32::MAX);
    let skip = u8::try_from(body.len()).unwrap_or(u8::MAX);
    [vec![equal(number, 0, skip)], body].concat()
}

/// Refuses the call if what is loaded is this. The kernel takes numbers of processes for 32 bits wide.
fn refuse_if(value: u32) -> Vec<sock_filter> {
    vec![equal(value, 0, 1), answer(libc::EPERM)]
}

fn step(code: u32, jt: u8, jf: u8, k: u32) -> sock_filter {
    sock_filter { code: u16::try_from(code).unwrap_or_default(), jt, jf, k }
}

fn load(at: u32) -> sock_filter {
    step(libc::BPF_LD | libc::BPF_W | libc::BPF_ABS, 0, 0, at)
}

fn load_argument(index: u32) -> sock_filter {
    load(argument(index))
}

/// Skips so many instructions if what is loaded is this, and so many if it is not.
fn equal(value: u32, yes: u8, no: u8) -> sock_filter {
    step(libc::BPF_JMP | libc::BPF_JEQ | libc::BPF_K, yes, no, value)
}

fn allow() -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ALLOW)
}

fn answer(errno: i32) -> sock_filter {
    step(libc::BPF_RET | libc::BPF_K, 0, 0, libc::SECCOMP_RET_ERRNO | errno.cast_unsigned())
}

/// The call returns success, and nothing was done.
fn done() -> sock_filter {
    answer(0)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What the kernel would answer.
    fn ask(program: &[sock_filter], call: libc::c_long, arguments: [u64; 6]) -> u32 {
        let facts = |at: u32| match at {
            NUMBER_AT => u32::try_from(call).unwrap(),
            _ => {
                let value = arguments[(at as usize - 16) / 8];
                u32::try_from(if at.is_multiple_of(8) { value & 0xffff_ffff } else { value >> 32 })
                    .unwrap()
            }
        };
        let (mut at, mut loaded) = (0, 0);
        loop {
            let step = program[at];
            at += 1;
            match u32::from(step.code) {
                code if code == libc::BPF_LD | libc::BPF_W | libc::BPF_ABS => {
                    loaded = facts(step.k)
                }
                code if code == libc::BPF_RET | libc::BPF_K => return step.k,
                _ if loaded == step.k => at += usize::from(step.jt),
                _ => at += usize::from(step.jf),
            }
        }
    }

    const ALLOW: u32 = libc::SECCOMP_RET_ALLOW;
    const EPERM: u32 = libc::SECCOMP_RET_ERRNO | libc::EPERM as u32;
    const DONE: u32 = libc::SECCOMP_RET_ERRNO;
    const ENOSYS: u32 = libc::SECCOMP_RET_ERRNO | libc::ENOSYS as u32;

    #[test]
    fn nobody_changes_how_the_guest_is_scheduled() {
        let program = of_commands(Memory::Held);
        let on = |call, first, second| ask(&program, call, [first, second, 0, 0, 0, 0]);
        for call in BY_PROCESS {
            assert_eq!(on(call, 1, 0), EPERM, "{call}");
            // The kernel drops the upper half of a process number.
            assert_eq!(on(call, 1 << 32 | 1, 0), EPERM, "{call}");
            assert_eq!((on(call, 0, 0), on(call, 7, 0)), (ALLOW, ALLOW), "{call}");
        }
        let priority = libc::SYS_setpriority;
        let [process, group, user] = [0, 1, 2];
        assert_eq!((on(priority, process, 0), on(priority, process, 1)), (ALLOW, EPERM));
        assert_eq!((on(priority, group, 0), on(priority, user, 0)), (EPERM, EPERM));
        let of_disk = libc::SYS_ioprio_set;
        assert_eq!(
            (on(of_disk, 1, 0), on(of_disk, 1, 1), on(of_disk, 3, 0)),
            (ALLOW, EPERM, EPERM)
        );
        assert_eq!(on(libc::SYS_getpid, 1, 1), ALLOW);
    }

    #[test]
    fn limits_of_the_guest_and_of_core_dumps_stay() {
        let program = of_commands(Memory::Held);
        let limit = |pid, resource: u32, new| {
            ask(&program, libc::SYS_prlimit64, [pid, u64::from(resource), new, 0, 0, 0])
        };
        assert_eq!(limit(1, libc::RLIMIT_NOFILE, 0x1000), EPERM);
        assert_eq!(limit(0, libc::RLIMIT_NOFILE, 0x1000), ALLOW);
        assert_eq!(limit(0, libc::RLIMIT_CORE, 0), ALLOW, "only asked for");
        for pointer in [0x1000, 1 << 32, 0x7fff_ffff_0000] {
            assert_eq!(limit(0, libc::RLIMIT_CORE, pointer), DONE, "{pointer:x}");
        }
        let set = |resource: u32| {
            ask(&program, libc::SYS_setrlimit, [u64::from(resource), 0x1000, 0, 0, 0, 0])
        };
        assert_eq!((set(libc::RLIMIT_CORE), set(libc::RLIMIT_CPU)), (DONE, ALLOW));
    }

    #[test]
    fn memory_of_no_process_is_refused_where_processes_are_looked_at() {
        for call in UNSEEN {
            assert_eq!(ask(&of_commands(Memory::Watched), call, [0; 6]), ENOSYS);
            assert_eq!(ask(&of_commands(Memory::Held), call, [0; 6]), ALLOW);
        }
    }
}
