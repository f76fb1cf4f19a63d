//! The guest that this program was built with.

/// The static executable. The build script makes it from `src/guest` and `src/wire`.
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runner-guest"));

/// The digest of [`PROGRAM`]; images and volumes that carry it are named by it.
pub const DIGEST: &str = env!("RUNNER_GUEST_DIGEST");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_digest_is_that_of_the_program() {
        assert_eq!(blake3::hash(PROGRAM).to_hex().as_str(), DIGEST);
    }

    #[test]
    fn it_is_a_small_executable() {
        assert!(PROGRAM.starts_with(b"\x7fELF"));
        assert!(PROGRAM.len() < 2 << 20, "{} bytes", PROGRAM.len());
    }
}
