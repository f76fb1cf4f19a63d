//! A machine for classic BPF, as the kernel runs it on `struct seccomp_data`.

use runner_filter::Insn;

/// One system call.
#[derive(Debug, Clone, Copy)]
pub struct Call {
    pub arch: u32,
    pub number: u32,
    pub args: [u64; 6],
}

impl Call {
    /// Four bytes of `struct seccomp_data`; the address of the call is 0.
    fn word(&self, offset: u32) -> u32 {
        let mut data = [0; 64];
        data[..4].copy_from_slice(&self.number.to_le_bytes());
        data[4..8].copy_from_slice(&self.arch.to_le_bytes());
        for (arg, place) in self.args.iter().zip(data[16..].chunks_mut(8)) {
            place.copy_from_slice(&arg.to_le_bytes());
        }
        let offset = offset as usize;
        assert!(offset.is_multiple_of(4) && offset + 4 <= data.len(), "the kernel refuses it");
        u32::from_le_bytes(data[offset..offset + 4].try_into().unwrap())
    }
}

/// What the program returns.
pub fn run(program: &[Insn], call: &Call) -> u32 {
    walk(program, call).0
}

/// How many instructions it runs.
pub fn steps(program: &[Insn], call: &Call) -> usize {
    walk(program, call).1
}

fn walk(program: &[Insn], call: &Call) -> (u32, usize) {
    let (mut at, mut accumulator, mut steps) = (0, 0, 0);
    loop {
        let Insn { code, jt, jf, k } = program[at];
        steps += 1;
        let branch = |holds: bool| usize::from(if holds { jt } else { jf });
        at += 1 + match code {
            0x20 => {
                accumulator = call.word(k);
                0
            }
            0x54 => {
                accumulator &= k;
                0
            }
            0x05 => k as usize,
            0x15 => branch(accumulator == k),
            0x35 => branch(accumulator >= k),
            0x06 => return (k, steps),
            other => panic!("the filter has no use for instruction {other:#x}"),
        };
    }
}
