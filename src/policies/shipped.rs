//! The policies in the executable: every file of `policies/`, found by the build script.

include!(concat!(env!("OUT_DIR"), "/shipped.rs"));
