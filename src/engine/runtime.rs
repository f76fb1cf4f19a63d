//! The JavaScript runtime of tools, which travels with the guest.

/// The folder of the runtime inside a sandbox.
pub const FOLDER: &str = "/.runner-guest/runtime";

/// What Node is started with.
pub const MAIN: &str = "/.runner-guest/runtime/main.mjs";

macro_rules! files {
    ($($name:literal),* $(,)?) => {
        /// Each file by its name.
        pub const FILES: &[(&str, &str)] =
            &[$(($name, include_str!(concat!("../../images/runtime/", $name)))),*];
    };
}

files![
    "channel.mjs",
    "context.mjs",
    "errors.mjs",
    "files.mjs",
    "frames.mjs",
    "intrinsics.mjs",
    "life.mjs",
    "main.mjs",
    "members.mjs",
    "metadata.mjs",
    "platform.mjs",
    "rehearse.mjs",
    "result.mjs",
    "schema.mjs",
    "serve.mjs",
    "transport.mjs",
    "zod.mjs",
];

/// Stands for all of them; the build script makes it.
pub const DIGEST: &str = env!("RUNNER_RUNTIME_DIGEST");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_module_of_the_runtime_travels() {
        let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("images/runtime");
        let mut there: Vec<String> = std::fs::read_dir(folder)
            .unwrap()
            .filter_map(|entry| entry.unwrap().file_name().into_string().ok())
            .filter(|name| name.ends_with(".mjs") && !name.ends_with(".test.mjs"))
            .collect();
        there.sort();
        let listed: Vec<&str> = FILES.iter().map(|(name, _)| *name).collect();
        assert_eq!(there, listed);
        assert!(MAIN.starts_with(FOLDER) && MAIN.ends_with("/main.mjs"));
    }

    #[test]
    fn the_digest_is_that_of_the_files() {
        let mut hasher = blake3::Hasher::new();
        for (name, text) in FILES {
            hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
            hasher.update(&(text.len() as u64).to_le_bytes()).update(text.as_bytes());
        }
        assert_eq!(hasher.finalize().to_hex().as_str(), DIGEST);
    }
}
