//! Puts every policy of `policies/` into the executable.

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs, io};

fn main() -> io::Result<()> {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("policies");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut names = Vec::new();
    if folder.is_dir() {
        for entry in fs::read_dir(&folder)? {
            let path = entry?.path();
            if path.extension().is_some_and(|ending| ending == "yml") {
                names.extend(
                    path.file_stem()
                        .and_then(|stem| stem.to_str())
                        .map(str::to_owned),
                );
            }
        }
    }
    names.sort();
    let mut table = "/// Name and text of each, in the order of names.\npub const POLICIES: &[(&str, &str)] = &[\n".to_owned();
    for name in names {
        let path = folder.join(format!("{name}.yml"));
        let _ = writeln!(table, "    ({name:?}, include_str!({path:?})),");
    }
    table.push_str("];\n");
    fs::write(
        Path::new(&env::var_os("OUT_DIR").unwrap_or_default()).join("shipped.rs"),
        table,
    )
}
