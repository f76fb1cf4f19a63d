//! The guest that this program was built with.

use std::time::Duration;

use runner_wire::Start;

/// The static executable. The build script makes it from `src/guest`, `src/glob` and `src/wire`.
pub static PROGRAM: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/runner-guest"));

/// The digest of [`PROGRAM`]; images and volumes that carry it are named by it.
pub const DIGEST: &str = env!("RUNNER_GUEST_DIGEST");

/// The arguments of a guest that waits so long for the host's first word, with what it starts meanwhile.
///
/// # Errors
/// The order cannot be written.
pub fn arguments(wait: Duration, beforehand: Option<&Start>) -> serde_json::Result<Vec<String>> {
    let mut arguments = vec![wait.as_millis().to_string()];
    if let Some(start) = beforehand {
        arguments.push(serde_json::to_string(start)?);
    }
    Ok(arguments)
}

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
