//! Where memory comes from.

/// Has all threads share one heap. Threads of this program live for a moment, and the C library would give each a heap of
/// its own: address space that is mapped, grown page by page and given back, which costs more than they allocate.
#[expect(unsafe_code, reason = "the C library's heap has no safe setting")]
pub fn share_heap() {
    #[cfg(target_env = "gnu")]
    // SAFETY: no pointers; an unknown setting is refused and changes nothing.
    unsafe {
        libc::mallopt(libc::M_ARENA_MAX, 1);
    }
}
