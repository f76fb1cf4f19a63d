//! Whether this kernel has Landlock.
#![expect(unsafe_code, reason = "a system call that rustix does not offer")]

/// Asks for the version instead of making rules.
const VERSION: u32 = 1;

/// The version of Landlock that is in force, if it is.
#[must_use]
pub fn landlock_version() -> Option<u32> {
    let none = std::ptr::null::<libc::c_void>();
    // SAFETY: with this flag the kernel takes no structure and makes nothing.
    let version =
        unsafe { libc::syscall(libc::SYS_landlock_create_ruleset, none, 0_usize, VERSION) };
    u32::try_from(version).ok().filter(|version| *version > 0)
}
