//! The order of the instructions: a binary tree over ranges of system call numbers.
//!
//! The kernel runs a new filter once for every system call to learn which ones it always allows, so a list of comparisons
//! costs 400 µs with each sandbox where a tree costs 100.

use crate::insn::Insn;
use crate::profile::{Condition, Profile, Rule, Verdict};

/// Where `struct seccomp_data` has the number of the call.
const NUMBER_AT: u32 = 0;
/// Where it has the architecture.
const ARCH_AT: u32 = 4;
/// Where its arguments begin, eight bytes each, the low half first.
const ARGS_AT: u32 = 16;

/// `AUDIT_ARCH_X86_64`.
const ARCH: u32 = 0xc000_003e;
/// Numbers from here on are of the x32 interface (`__X32_SYSCALL_BIT`).
const X32: u32 = 0x4000_0000;
/// The error number of calls that a kernel does not have.
const ENOSYS: u16 = 38;

/// `SECCOMP_RET_ALLOW`.
const RET_ALLOW: u32 = 0x7fff_0000;
/// `SECCOMP_RET_ERRNO`; the number is in the low half.
const RET_ERRNO: u32 = 0x0005_0000;
/// `SECCOMP_RET_KILL_PROCESS`.
const RET_KILL: u32 = 0x8000_0000;

/// Numbers from `from` to the next range, with the code that decides about them.
struct Range {
    from: u32,
    code: Vec<Insn>,
}

/// The whole program.
pub(crate) fn program(profile: &Profile) -> Vec<Insn> {
    let mut program = vec![
        Insn::load(ARCH_AT),
        Insn::equal(ARCH, 1, 0),
        Insn::ret(RET_KILL),
        Insn::load(NUMBER_AT),
        Insn::at_least(X32, 0, 1),
        ret(Verdict::Errno(ENOSYS)),
    ];
    program.extend(tree(&ranges(profile)));
    program
}

fn ret(verdict: Verdict) -> Insn {
    Insn::ret(match verdict {
        Verdict::Allow => RET_ALLOW,
        Verdict::Errno(number) => RET_ERRNO | u32::from(number),
        Verdict::Kill => RET_KILL,
    })
}

/// Every number belongs to one range; neighbours with the same code are one.
fn ranges(profile: &Profile) -> Vec<Range> {
    let mut ranges: Vec<Range> = Vec::new();
    let mut add = |from: u32, code: Vec<Insn>| {
        if ranges.last().is_none_or(|last| last.code != code) {
            ranges.push(Range { from, code });
        }
    };
    let mut next = 0;
    for (number, rule) in &profile.rules {
        if *number > next {
            add(next, vec![ret(profile.default)]);
        }
        add(*number, decide(rule, profile.default));
        next = number + 1;
    }
    add(next, vec![ret(profile.default)]);
    ranges
}

/// Finds the range of the number that is loaded, by halves.
fn tree(ranges: &[Range]) -> Vec<Insn> {
    match ranges {
        [] => vec![Insn::ret(RET_KILL)],
        [only] => only.code.clone(),
        _ => {
            let (low, high) = ranges.split_at(ranges.len() / 2);
            let pivot = high.first().map_or(0, |range| range.from);
            let (low, high) = (tree(low), tree(high));
            let mut code = match u8::try_from(low.len()) {
                Ok(skip) => vec![Insn::at_least(pivot, skip, 0)],
                // A conditional jump reaches no further than 255 instructions.
                Err(_) => vec![Insn::at_least(pivot, 0, 1), Insn::jump(size(&low))],
            };
            code.extend(low);
            code.extend(high);
            code
        }
    }
}

/// The verdict, if an alternative holds; else the default.
fn decide(rule: &Rule, default: Verdict) -> Vec<Insn> {
    if rule.alternatives.is_empty() {
        return vec![ret(rule.verdict)];
    }
    let mut code: Vec<Insn> = rule
        .alternatives
        .iter()
        .flat_map(|conditions| alternative(conditions, rule.verdict))
        .collect();
    code.push(ret(default));
    code
}

/// Ends with the verdict if all conditions hold, else goes on behind itself.
fn alternative(conditions: &[Condition], verdict: Verdict) -> Vec<Insn> {
    // From the end, so that it is known how far a comparison that fails has to skip. The longest alternative has 37
    // instructions: six arguments of two halves, each loaded, masked and compared, and the end.
    let mut code = vec![ret(verdict)];
    for condition in conditions.iter().rev() {
        for high in [false, true] {
            let shift = if high { 32 } else { 0 };
            let mask = half(condition.mask, shift);
            if mask == 0 {
                continue;
            }
            let skip = u8::try_from(code.len()).unwrap_or(u8::MAX);
            let mut compare =
                vec![Insn::load(ARGS_AT + 8 * condition.argument + if high { 4 } else { 0 })];
            if mask != u32::MAX {
                compare.push(Insn::and(mask));
            }
            compare.push(Insn::equal(half(condition.value, shift), 0, skip));
            code.splice(0..0, compare);
        }
    }
    code
}

/// Four of the eight bytes.
fn half(value: u64, shift: u32) -> u32 {
    u32::try_from((value >> shift) & u64::from(u32::MAX)).unwrap_or(u32::MAX)
}

/// The number of instructions, which the caller holds below 4096.
fn size(code: &[Insn]) -> u32 {
    u32::try_from(code.len()).unwrap_or(u32::MAX)
}
