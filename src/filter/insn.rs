//! Instructions of classic BPF, as far as a filter of system calls needs them.

/// One instruction: the kernel's `struct sock_filter`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Insn {
    /// What it does.
    pub code: u16,
    /// How many instructions it skips if its condition holds.
    pub jt: u8,
    /// How many it skips if not.
    pub jf: u8,
    /// Its operand.
    pub k: u32,
}

/// `BPF_LD | BPF_W | BPF_ABS`.
const LOAD: u16 = 0x20;
/// `BPF_ALU | BPF_AND | BPF_K`.
const AND: u16 = 0x54;
/// `BPF_JMP | BPF_JA`.
const JUMP: u16 = 0x05;
/// `BPF_JMP | BPF_JEQ | BPF_K`.
const IF_EQUAL: u16 = 0x15;
/// `BPF_JMP | BPF_JGE | BPF_K`.
const IF_AT_LEAST: u16 = 0x35;
/// `BPF_RET | BPF_K`.
const RETURN: u16 = 0x06;

impl Insn {
    /// Loads four bytes of `struct seccomp_data`.
    pub(crate) const fn load(offset: u32) -> Self {
        Self { code: LOAD, jt: 0, jf: 0, k: offset }
    }

    /// Keeps these bits.
    pub(crate) const fn and(mask: u32) -> Self {
        Self { code: AND, jt: 0, jf: 0, k: mask }
    }

    /// Skips so many instructions.
    pub(crate) const fn jump(skip: u32) -> Self {
        Self { code: JUMP, jt: 0, jf: 0, k: skip }
    }

    /// Skips according to whether the value is this one.
    pub(crate) const fn equal(value: u32, jt: u8, jf: u8) -> Self {
        Self { code: IF_EQUAL, jt, jf, k: value }
    }

    /// Skips according to whether the value is at least this one.
    pub(crate) const fn at_least(value: u32, jt: u8, jf: u8) -> Self {
        Self { code: IF_AT_LEAST, jt, jf, k: value }
    }

    /// Ends with this verdict.
    pub(crate) const fn ret(verdict: u32) -> Self {
        Self { code: RETURN, jt: 0, jf: 0, k: verdict }
    }

    /// As it lies in memory on a little-endian machine.
    #[must_use]
    pub fn bytes(self) -> [u8; 8] {
        let [code_low, code_high] = self.code.to_le_bytes();
        let [k0, k1, k2, k3] = self.k.to_le_bytes();
        [code_low, code_high, self.jt, self.jf, k0, k1, k2, k3]
    }
}
