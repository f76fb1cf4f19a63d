//! Builds the guest as a static executable, the compiler of tools and the system call filter, checks every policy of
//! `policies/`, embeds all of them, and names the runtime of tools.
//!
//! It runs again whenever the guest, the wire, the compiler, or what they are built from changes, and asks cargo
//! each time, so what is embedded is never older than its source. Each build has a target folder of its own: the
//! outer cargo holds the lock of the common one.

use std::env;
use std::error::Error;
use std::fmt::Write as _;
use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use runner_policy::check::check;
use runner_policy::packed::pack;
use runner_policy::{Origin, PolicySet, Source, parse};

/// What a guest is made from, relative to the root of the repository.
const SOURCES: [&str; 7] = [
    "src/guest",
    "src/glob",
    "src/wire",
    "Cargo.toml",
    "Cargo.lock",
    "rust-toolchain.toml",
    "build.rs",
];

/// What the sandboxes of an engine are made from besides their plans and the guest: the word that tells it, and its sources.
const RECIPES: [(&str, &str); 2] =
    [("RUNNER_RECIPE", "src/engine/docker"), ("RUNNER_RECIPE_EMBEDDED", "src/engine/embedded")];

/// What those of every engine are made from.
const SHARED: [&str; 3] = ["images/runtime", "images/seccomp.json", "src/filter"];

fn main() -> Result<(), Box<dyn Error>> {
    let root = PathBuf::from(variable("CARGO_MANIFEST_DIR")?);
    let out = PathBuf::from(variable("OUT_DIR")?);
    name_the_judge(&root)?;
    look_at_sqlite();
    let policies = check_policies(&root)?;
    embed_policies(&root, &out, &policies)?;
    embed_filter(&root, &out)?;
    name_the_runtime(&root)?;
    name_the_built_ins(&root)?;
    let guest = embed_guest(&root, &out)?;
    for (word, engine) in RECIPES {
        name_the_recipe(&root, &guest, word, engine)?;
    }
    embed_compiler(&root, &out)?;
    // What this machine has is no matter to another.
    if variable("HOST")? == variable("TARGET")? {
        pack_relocations();
        link_the_unwinder();
    }
    Ok(())
}

/// The first C library that can load an executable with packed relocations.
const PACKS: (u32, u32) = (2, 36);

/// Has the linker write the thirty thousand addresses that every start of the program adds to as a bitmap, which is a
/// hundredth of their list. The program is built for the C library of this machine, which must know it.
fn pack_relocations() {
    let version = Command::new("getconf").arg("GNU_LIBC_VERSION").output();
    let text = version.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let known = text.ok().and_then(|text| {
        let (major, minor) = text.trim().strip_prefix("glibc ")?.split_once('.')?;
        Some((major.parse().ok()?, minor.split('.').next()?.parse().ok()?))
    });
    if known.is_some_and(|version: (u32, u32)| version >= PACKS) {
        println!("cargo::rustc-link-arg-bins=-Wl,-z,pack-relative-relocs");
    }
}

/// Has the linker take what panics unwind with into the executable, so that one library less is looked for, mapped and
/// bound at every start. Where the archive is not installed, the shared one does.
fn link_the_unwinder() {
    const ARCHIVE: &str = "libgcc_eh.a";
    let asked = Command::new("cc").arg(format!("-print-file-name={ARCHIVE}")).output();
    let found = asked.ok().and_then(|output| {
        let path = PathBuf::from(String::from_utf8(output.stdout).ok()?.trim());
        // Without one, the compiler tells the bare name.
        path.is_absolute().then_some(path)
    });
    if let Some((archive, folder)) = found.as_ref().and_then(|path| Some((path, path.parent()?))) {
        // Another compiler has its own.
        println!("cargo::rerun-if-changed={}", archive.display());
        println!("cargo::rustc-link-search=native={}", folder.display());
        println!("cargo::rustc-link-lib=static:+verbatim={ARCHIVE}");
    }
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|error| format!("{name}: {error}"))
}

/// `.cargo/config.toml` compiles the settings of the records into SQLite. `cargo install --path` reads that file wherever it
/// is started; `cargo build --manifest-path` reads the one of the current folder. Without it, `src/store` makes the same
/// settings each time it opens the records.
fn look_at_sqlite() {
    println!("cargo::rerun-if-env-changed=LIBSQLITE3_FLAGS");
    println!("cargo::rustc-check-cfg=cfg(sqlite_settings_built_in)");
    let flags = env::var("LIBSQLITE3_FLAGS").unwrap_or_default();
    let built_in = [
        "SQLITE_DEFAULT_WAL_SYNCHRONOUS=1",
        "SQLITE_DEFAULT_WAL_AUTOCHECKPOINT=256",
        "SQLITE_DEFAULT_JOURNAL_SIZE_LIMIT=65536",
    ];
    if built_in.iter().all(|setting| flags.contains(setting)) {
        println!("cargo::rustc-cfg=sqlite_settings_built_in");
    } else {
        println!(
            "cargo::warning=.cargo/config.toml of the repository was not read: SQLite is built with parts that runner \
             does not use, and a call starts slightly later. Build in the folder of the repository, or use cargo install --path"
        );
    }
}

/// A word that changes whenever the engine or the catalog does: a policy that passed its own tests
/// before such a change is tested again.
fn name_the_judge(root: &Path) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for folder in ["src/policy", "src/glob"] {
        println!("cargo::rerun-if-changed={folder}");
        list(&root.join(folder), &mut files)?;
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(&fs::read(file)?);
    }
    println!("cargo::rustc-env=RUNNER_JUDGE={}", &hasher.finalize().to_hex()[..16]);
    Ok(())
}

fn list(folder: &Path, files: &mut Vec<PathBuf>) -> Result<(), Box<dyn Error>> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.ends_with("tests") {
            continue; // what is tested does not change what is built
        }
        if path.is_dir() { list(&path, files)? } else { files.push(path) }
    }
    Ok(())
}

/// A word that changes whenever sandboxes of an engine come to be made differently from the same plan.
fn name_the_recipe(
    root: &Path,
    guest: &blake3::Hash,
    word: &str,
    engine: &str,
) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for source in SHARED.into_iter().chain([engine]) {
        println!("cargo::rerun-if-changed={source}");
        let path = root.join(source);
        if path.is_dir() { list(&path, &mut files)? } else { files.push(path) }
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    // The same sources make another guest with another compiler.
    hasher.update(guest.as_bytes());
    for file in files {
        hasher.update(&fs::read(file)?);
    }
    println!("cargo::rustc-env={word}={}", &hasher.finalize().to_hex()[..32]);
    Ok(())
}

/// A word that changes whenever a tool of this program does: an approval is of one content.
fn name_the_built_ins(root: &Path) -> Result<(), Box<dyn Error>> {
    let mut files = Vec::new();
    for source in ["src/tool/builtin", "src/broker/client"] {
        println!("cargo::rerun-if-changed={source}");
        list(&root.join(source), &mut files)?;
    }
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for file in files {
        hasher.update(&fs::read(file)?);
    }
    println!("cargo::rustc-env=RUNNER_BUILT_INS={}", &hasher.finalize().to_hex()[..32]);
    Ok(())
}

/// Loads every shipped policy and runs its examples and tests: one that fails them is not built in.
fn check_policies(root: &Path) -> Result<PolicySet, Box<dyn Error>> {
    let mut set = PolicySet::default();
    let mut texts = Vec::new();
    let mut findings = Vec::new();
    let mut files = Vec::new();
    list(&root.join("policies"), &mut files)?;
    files.sort();
    for path in files.iter().filter(|path| path.extension().is_some_and(|ending| ending == "yml")) {
        let text = fs::read_to_string(path)?;
        let file = path.strip_prefix(root)?.display().to_string();
        match parse(Source { file: &file, text: &text, origin: Origin::Shipped }) {
            // It is found by its name, and messages name its file.
            Ok(policy) if file != format!("policies/{}.yml", policy.name) => {
                return Err(format!("{file}: the policy in it is {}", policy.name).into());
            }
            Ok(policy) => {
                texts.push((policy.name.clone(), text));
                findings.extend(set.add(policy).err());
            }
            Err(found) => findings.extend(found),
        }
    }
    // None of them depends on the moment; a fixed one keeps builds alike.
    let now = jiff::Timestamp::UNIX_EPOCH;
    for (name, text) in &texts {
        match set.effective(name) {
            Ok(policy) => findings.extend(check(&policy, text, now).findings),
            Err(found) => findings.extend(found),
        }
    }
    if findings.is_empty() {
        return Ok(set);
    }
    for finding in &findings {
        println!("cargo::error={finding}");
    }
    Err(format!("{} finding(s) in the shipped policies", findings.len()).into())
}

/// Leaves a table of the shipped policies where the host program includes it: what they say, and how it was read.
fn embed_policies(root: &Path, out: &Path, policies: &PolicySet) -> Result<(), Box<dyn Error>> {
    let folder = root.join("policies");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut policies: Vec<_> = policies.iter().collect();
    policies.sort_by(|one, other| one.name.cmp(&other.name));
    let mut table =
        "/// Each in the order of names.\npub(super) const POLICIES: &[Shipped] = &[\n".to_owned();
    for policy in policies {
        let text = root.join(&policy.file);
        let read = out.join(format!("{}.policy", policy.name));
        fs::write(&read, pack(policy)?)?;
        writeln!(
            table,
            "    Shipped {{ name: {:?}, text: include_str!({text:?}), read: include_bytes!({read:?}) }},",
            policy.name
        )?;
    }
    table.push_str("];\n");
    fs::write(out.join("shipped.rs"), table)?;
    Ok(())
}

/// The digest of the modules that `src/engine/runtime.rs` embeds: no call has to hash them.
fn name_the_runtime(root: &Path) -> Result<(), Box<dyn Error>> {
    let folder = root.join("images/runtime");
    println!("cargo::rerun-if-changed={}", folder.display());
    let mut files = Vec::new();
    list(&folder, &mut files)?;
    files.sort();
    let mut hasher = blake3::Hasher::new();
    for path in files {
        let name = path.strip_prefix(&folder)?.to_str().ok_or("a name is not text")?;
        if !name.ends_with(".mjs") || name.ends_with(".test.mjs") {
            continue; // neither travels
        }
        let text = fs::read(&path)?;
        hasher.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        hasher.update(&(text.len() as u64).to_le_bytes()).update(&text);
    }
    println!("cargo::rustc-env=RUNNER_RUNTIME_DIGEST={}", hasher.finalize().to_hex());
    Ok(())
}

/// Compiles the system call profile and leaves the program where `src/engine/seccomp.rs` includes it.
fn embed_filter(root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    const PROFILE: &str = "images/seccomp.json";
    println!("cargo::rerun-if-changed={PROFILE}");
    let program = runner_filter::compile(&fs::read_to_string(root.join(PROFILE))?)
        .map_err(|error| format!("{PROFILE}: {error}"))?;
    fs::write(out.join("seccomp.bpf"), runner_filter::bytes(&program))?;
    Ok(())
}

/// Builds the guest and leaves it, and its digest, where `src/engine/guest.rs` includes them.
fn embed_guest(root: &Path, out: &Path) -> Result<blake3::Hash, Box<dyn Error>> {
    for source in SOURCES {
        println!("cargo::rerun-if-changed={source}");
    }
    let target = format!("{}-unknown-linux-gnu", variable("CARGO_CFG_TARGET_ARCH")?);
    let folder = out.join("guest");
    let mut cargo = inner_cargo(root, "runner-guest", "guest", &folder)?;
    // Only with an explicit target do the flags spare build scripts and macros.
    cargo.env("RUSTFLAGS", "-C target-feature=+crt-static").args(["--target", &target]);
    run(cargo, "the guest")?;
    let guest = fs::read(folder.join(target).join("guest").join("runner-guest"))?;
    if contains(&guest, b"/ld-linux") {
        return Err("the guest is not static: no sandbox could start it".into());
    }
    fs::write(out.join("runner-guest"), &guest)?;
    let digest = blake3::hash(&guest);
    println!("cargo::rustc-env=RUNNER_GUEST_DIGEST={}", digest.to_hex());
    Ok(digest)
}

/// Builds the compiler of tools and leaves it, and its digest, where `src/tool/compile/program.rs` includes them.
///
/// It takes minutes the first time, so a debug build has one that is hardly optimised.
fn embed_compiler(root: &Path, out: &Path) -> Result<(), Box<dyn Error>> {
    println!("cargo::rerun-if-changed=src/compiler");
    println!("cargo::rerun-if-changed=src/finding");
    // OUT_DIR is TARGET/PROFILE/build/PACKAGE/out.
    let target = out.ancestors().nth(4).ok_or("OUT_DIR is in no target folder")?;
    let folder = target.join("compiler");
    let profile = if variable("PROFILE")? == "release" { "compiler" } else { "compiler-dev" };
    if !folder.join(profile).join("runner-compiler").exists() {
        tell_the_terminal(
            "runner: building the TypeScript bundler of tools, once: some minutes (cargo build -vv shows each crate)",
        );
    }
    let mut cargo = inner_cargo(root, "runner-compiler", profile, &folder)?;
    cargo.args(["--features", "bundler"]);
    run(cargo, "the compiler of tools")?;
    let compiler = fs::read(folder.join(profile).join("runner-compiler"))?;
    fs::write(out.join("runner-compiler"), &compiler)?;
    println!("cargo::rustc-env=RUNNER_COMPILER_DIGEST={}", blake3::hash(&compiler).to_hex());
    Ok(())
}

/// A cargo that builds one package of ours with a profile of its own.
fn inner_cargo(
    root: &Path,
    package: &str,
    profile: &str,
    folder: &Path,
) -> Result<Command, Box<dyn Error>> {
    let mut cargo = Command::new(variable("CARGO")?);
    // What the outer cargo, clippy or a coverage tool set for the host must not reach what is embedded.
    for (name, _) in env::vars_os() {
        let name = name.to_string_lossy().into_owned();
        let foreign = name.starts_with("CARGO_") || name.starts_with("RUST") || name == "CFLAGS";
        let kept = matches!(
            name.as_str(),
            // With the flags of make the two share the machine's processors.
            "CARGO_HOME"
                | "CARGO_MAKEFLAGS"
                | "CARGO_NET_OFFLINE"
                | "RUSTUP_HOME"
                | "RUSTUP_TOOLCHAIN"
                | "RUSTC"
        ) || name.starts_with("CARGO_REGISTRIES_")
            || name.starts_with("CARGO_SOURCE_");
        if foreign && !kept {
            cargo.env_remove(name);
        }
    }
    cargo.current_dir(root).args(["build", "--package", package, "--profile", profile]);
    cargo.arg("--target-dir").arg(folder);
    if root.join("Cargo.lock").exists() {
        cargo.arg("--locked");
    }
    Ok(cargo)
}

/// Runs a cargo whose lines go to this script's standard error: `cargo build -vv` shows them as they come, and cargo shows
/// them after a failure.
fn run(mut cargo: Command, what: &str) -> Result<(), Box<dyn Error>> {
    // Standard output is for what this script tells cargo.
    if !cargo.stdout(Stdio::null()).status()?.success() {
        return Err(format!("{what} cannot be built").into());
    }
    Ok(())
}

/// Cargo keeps what a build script prints until the script has ended, so a long step is told to the terminal itself. Where
/// there is none, it is not told.
fn tell_the_terminal(line: &str) {
    if let Ok(mut terminal) = fs::File::options().write(true).open("/dev/tty") {
        let _ = writeln!(terminal, "\r{line}");
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    text.windows(part.len()).any(|window| window == part)
}
