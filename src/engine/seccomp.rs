//! The system call filter of sandboxes.

/// The system calls that a sandbox may make, as OCI runtimes read them.
pub const PROFILE: &str = include_str!("../../images/seccomp.json");

/// The same profile as the kernel runs it: an array of `struct sock_filter` for x86_64, eight bytes each. The build script
/// compiles it; `runner_filter` says what it does with other architectures.
pub static FILTER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/seccomp.bpf"));

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_is_made_of_whole_instructions_and_looks_at_the_architecture_first() {
        let (instructions, rest) = FILTER.as_chunks::<8>();
        assert!(rest.is_empty());
        // A load of the word at 4, then a comparison with AUDIT_ARCH_X86_64.
        assert_eq!(instructions[0], [0x20, 0, 0, 0, 4, 0, 0, 0]);
        assert_eq!(instructions[1][..2], [0x15, 0]);
        assert_eq!(instructions[1][4..], 0xc000_003e_u32.to_le_bytes());
    }
}
