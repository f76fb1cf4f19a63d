//! Compiles `images/seccomp.json` to the program that the kernel runs for each system call of a sandbox.
//!
//! Duty: read the profile strictly, look its names up, and lay the program out so that it is loaded and run fast. The
//! embedded engine installs the result; Docker gets the profile itself, and makes its own program of it. Non-goals: other
//! architectures than x86_64, and installing the program. Trust boundary: the profile is ours and is read while runner is
//! built; whatever is not understood completely fails the build.
//!
//! What holds besides the profile:
//! - A system call of another architecture (`int 0x80` enters as i386) kills the process. Its numbers mean other calls.
//! - A number of the x32 interface (bit 30) fails with `ENOSYS`, as in a kernel without x32: the call is not made, and a
//!   program that only asks whether x32 is there gets its answer.
//! - A number that the profile does not name has the profile's default action, however new it is.

mod insn;
mod layout;
mod profile;

pub use insn::Insn;
pub use profile::ProfileError;

/// The longest program that the kernel takes (`BPF_MAXINSNS`).
pub const INSNS_MAX: usize = 4096;

/// The program for this profile, a text in Docker's format.
///
/// # Errors
/// Something in the profile is not known, contradicts itself, or allows by default.
pub fn compile(profile: &str) -> Result<Vec<Insn>, ProfileError> {
    let profile = profile::Profile::read(profile)?;
    let program = layout::program(&profile);
    if program.len() > INSNS_MAX {
        return Err(ProfileError::TooLong(program.len()));
    }
    Ok(program)
}

/// The program as an array of the kernel's `struct sock_filter`, little-endian.
#[must_use]
pub fn bytes(program: &[Insn]) -> Vec<u8> {
    program.iter().flat_map(|insn| insn.bytes()).collect()
}
