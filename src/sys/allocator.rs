//! How the C library keeps the memory that threads give back.

/// Has all threads that start from here on allocate from one arena. glibc makes up to eight arenas for each
/// processor, and each keeps the most that its threads ever used at once: a process that hands short work to many threads
/// for hours grows with every arena. Best effort; other C libraries have one arena at all times.
pub fn one_arena() {
    #[cfg(target_env = "gnu")]
    #[expect(unsafe_code, reason = "a setting of the C library's allocator has no safe call")]
    // SAFETY: no pointers; the setting may be made at any time.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
