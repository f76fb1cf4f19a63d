//! The compiled filter: against a plain reading of the profile, and in the kernel.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

mod emulator;
mod installed;
mod plain;

use emulator::{Call, run};
use runner_filter::{INSNS_MAX, Insn, bytes, compile};

/// The profile of sandboxes.
const PROFILE: &str = include_str!("../../../../images/seccomp.json");

const X86_64: u32 = 0xc000_003e;
const ALLOW: u32 = 0x7fff_0000;
const KILL: u32 = 0x8000_0000;
const ENOSYS: u32 = 0x0005_0000 | 38;

fn program() -> Vec<Insn> {
    compile(PROFILE).unwrap()
}

/// Values around every boundary of the profile's conditions, with and without high bits.
fn values(interesting: &[u64]) -> Vec<u64> {
    let mut values = vec![0, 1, u64::MAX, u64::from(u32::MAX), 1 << 32, 1 << 63];
    for value in interesting {
        for near in [*value, value.wrapping_sub(1), value.wrapping_add(1), !value] {
            values.extend([near, near | 1 << 32, near | 1 << 63, near ^ u64::from(u32::MAX)]);
        }
        for bit in 0..64 {
            values.push(value ^ (1 << bit));
        }
    }
    values.sort_unstable();
    values.dedup();
    values
}

#[test]
fn every_call_has_the_verdict_of_the_profile() {
    let program = program();
    let plain = plain::Profile::read(PROFILE);
    let mut compared = 0;
    for number in 0..600 {
        let tried = if plain.conditions(number).is_empty() {
            vec![0, 1, u64::MAX]
        } else {
            values(&plain.interesting(number))
        };
        for (at, value) in tried.iter().enumerate() {
            // Each argument has the value once while the others vary, and all have it once.
            for argument in 0..7 {
                let mut args = [tried[(at * 7 + 3) % tried.len()]; 6];
                if argument < 6 {
                    args[argument] = *value;
                } else {
                    args = [*value; 6];
                }
                let call = Call { arch: X86_64, number, args };
                assert_eq!(run(&program, &call), plain.verdict(number, &args), "{call:x?}");
                compared += 1;
            }
        }
    }
    assert!(compared > 30_000, "{compared}");
}

/// Conditions on two arguments: each pair of boundaries.
#[test]
fn several_conditions_must_hold_together() {
    let program = program();
    let plain = plain::Profile::read(PROFILE);
    let mut allowed = 0;
    for number in 0..600 {
        let conditions = plain.conditions(number);
        let mut arguments: Vec<usize> =
            conditions.iter().copied().flatten().map(|condition| condition.argument).collect();
        arguments.sort_unstable();
        arguments.dedup();
        let [first, second] = arguments[..] else {
            assert!(arguments.len() < 2, "three arguments of {number} are not tried");
            continue;
        };
        let values = values(&plain.interesting(number));
        for one in &values {
            for other in &values {
                let mut args = [0; 6];
                (args[first], args[second]) = (*one, *other);
                let verdict = run(&program, &Call { arch: X86_64, number, args });
                assert_eq!(verdict, plain.verdict(number, &args), "{number} {args:x?}");
                allowed += usize::from(verdict == ALLOW);
            }
        }
    }
    assert!(allowed > 0);
}

#[test]
fn numbers_of_x32_are_absent_and_foreign_architectures_deadly() {
    let program = program();
    for number in (0..600).chain([0x3fff_ffff]) {
        let x32 = Call { arch: X86_64, number: number | 0x4000_0000, args: [0; 6] };
        assert_eq!(run(&program, &x32), ENOSYS, "{x32:x?}");
        // i386, ARM, AArch64, RISC-V and what no kernel has; `read` is number 0 of the control.
        for arch in [0x4000_0003, 0x4000_0028, 0xc000_00b7, 0xc000_00f3, 0, 0x3e, u32::MAX] {
            let foreign = Call { arch, number, args: [0; 6] };
            assert_eq!(run(&program, &foreign), KILL, "{foreign:x?}");
        }
    }
    let all_bits = Call { arch: X86_64, number: u32::MAX, args: [0; 6] };
    assert_eq!(run(&program, &all_bits), ENOSYS);
    assert_eq!(run(&program, &Call { arch: X86_64, number: 0, args: [0; 6] }), ALLOW);
}

#[test]
fn numbers_above_every_known_one_have_the_default() {
    let program = program();
    let plain = plain::Profile::read(PROFILE);
    for number in [470, 599, 600, 1024, 65_535, 1 << 20, 0x3fff_ffff] {
        let call = Call { arch: X86_64, number, args: [0; 6] };
        assert_eq!(run(&program, &call), plain.default, "{number}");
    }
}

/// The kernel runs the program for each call; its size and its depth are time.
#[test]
fn the_program_is_short_and_every_path_ends() {
    let program = program();
    assert!(program.len() <= INSNS_MAX);
    assert!(program.len() <= 330, "{} instructions", program.len());
    assert_eq!(bytes(&program).len(), program.len() * 8);
    let deepest = (0..600)
        .map(|number| {
            let call = Call { arch: X86_64, number, args: [0; 6] };
            emulator::steps(&program, &call)
        })
        .max();
    assert!(deepest.is_some_and(|steps| steps <= 30), "{deepest:?} instructions for a call");
}

/// Programs whose halves are further apart than a conditional jump reaches.
#[test]
fn a_long_program_decides_alike() {
    // Twenty conditions on every fourth number: more than the range of a jump on both sides.
    let mut entries = String::new();
    for name in ["write", "mmap", "writev", "getpid", "socket", "execve", "setpgid", "pause"] {
        for value in 0..20 {
            if !entries.is_empty() {
                entries.push(',');
            }
            entries.push_str(&format!(
                r#"{{"names": ["{name}"], "action": "SCMP_ACT_ALLOW",
                    "args": [{{"index": 1, "value": {value}, "op": "SCMP_CMP_EQ"}}]}}"#
            ));
        }
    }
    let text = format!(
        r#"{{"defaultAction": "SCMP_ACT_KILL_PROCESS", "syscalls": [{entries}],
            "archMap": [{{"architecture": "SCMP_ARCH_X86_64", "subArchitectures": []}}]}}"#
    );
    let program = compile(&text).unwrap();
    assert!(program.len() > 600, "{}", program.len());
    let plain = plain::Profile::read(&text);
    for number in 0..600 {
        for value in (0..25).chain([1 << 32, 19 | 1 << 40]) {
            let args = [7, value, 7, 7, 7, 7];
            let verdict = run(&program, &Call { arch: X86_64, number, args });
            assert_eq!(verdict, plain.verdict(number, &args), "{number} {value}");
        }
    }
}
