//! What is found in small homes, and on this machine.

use super::*;

struct Home {
    _dir: tempfile::TempDir,
    home: PathBuf,
}

fn home(files: &[&str]) -> Home {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap();
    for file in files {
        let path = home.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, "x").unwrap();
    }
    Home { home, _dir: dir }
}

fn me() -> Owner {
    Owner { uid: rustix::process::geteuid().as_raw(), gid: rustix::process::getegid().as_raw() }
}

fn found(home: &Home, path: &[&str], set: &[(&str, &str)]) -> Toolchains {
    let folders = path.iter().map(|name| home.home.join(name));
    let path = std::env::join_paths(folders.chain(["/usr/bin".into(), "relative".into()])).unwrap();
    let variable = |name: &str| match name {
        "PATH" => Some(path.clone()),
        name => {
            set.iter().find(|(key, _)| *key == name).map(|(_, value)| home.home.join(value).into())
        }
    };
    find(&Caller {
        home: Some(&home.home),
        variable: &variable,
        workspace: Path::new("/w"),
        points: &MountPoints::read(),
        user: me(),
        code: Code::Granted,
        only: None,
    })
}

fn from_home(home: &Home, found: &Toolchains) -> Vec<String> {
    found
        .mounts
        .iter()
        .filter(|mount| mount.role == MountRole::Toolchain)
        .map(|mount| mount.target.strip_prefix(&home.home).unwrap().display().to_string())
        .collect()
}

fn path_of(found: &Toolchains) -> String {
    found.env[OsStr::new("PATH")].to_str().unwrap().to_owned()
}

#[test]
fn rust_brings_both_its_folders_and_hides_its_credentials() {
    let home = home(&[
        ".cargo/bin/cargo",
        ".cargo/credentials.toml",
        ".rustup/settings.toml",
        ".ssh/id_rsa",
    ]);
    let found = found(&home, &[".cargo/bin"], &[]);
    assert_eq!(from_home(&home, &found), [".cargo", ".rustup"]);
    assert_eq!(found.env[OsStr::new("CARGO_HOME")], home.home.join(".cargo").as_os_str());
    assert_eq!(found.env[OsStr::new("RUSTUP_HOME")], home.home.join(".rustup").as_os_str());
    assert_eq!(found.hidden.len(), 1);
    assert_eq!(found.hidden[0].0, home.home.join(".cargo/credentials.toml"));
    assert!(
        path_of(&found).starts_with(&format!("{}/.cargo/bin:/usr/local/sbin", home.home.display()))
    );
}

#[test]
fn a_variable_says_where_a_toolchain_is() {
    let home = home(&["elsewhere/cargo/bin/cargo", "elsewhere/rustup/x"]);
    let set = [("CARGO_HOME", "elsewhere/cargo"), ("RUSTUP_HOME", "elsewhere/rustup")];
    let found = found(&home, &["elsewhere/cargo/bin"], &set);
    assert_eq!(from_home(&home, &found), ["elsewhere/cargo", "elsewhere/rustup"]);
}

#[test]
fn several_folders_of_one_toolchain_bring_it_once() {
    let home = home(&[".pyenv/bin/pyenv", ".pyenv/shims/python", ".pyenv/.netrc"]);
    let found = found(&home, &[".pyenv/bin", ".pyenv/shims"], &[]);
    assert_eq!(from_home(&home, &found), [".pyenv"]);
    assert_eq!(found.hidden.len(), 1, "{:?}", found.hidden);
    let shown = home.home.display();
    assert!(path_of(&found).starts_with(&format!("{shown}/.pyenv/bin:{shown}/.pyenv/shims:")));
}

#[test]
fn what_lies_behind_links_is_mounted_from_where_it_is() {
    let home = home(&["real/cargo/bin/cargo", "real/rustup/x"]);
    std::os::unix::fs::symlink("real", home.home.join("alias")).unwrap();
    std::os::unix::fs::symlink("real/rustup", home.home.join("rustup")).unwrap();
    let set = [("CARGO_HOME", "alias/cargo"), ("RUSTUP_HOME", "rustup")];
    let found = found(&home, &["alias/cargo/bin"], &set);
    assert_eq!(from_home(&home, &found), ["alias/cargo", "rustup"]);
    let sources = found.mounts.iter().filter(|mount| mount.role == MountRole::Toolchain);
    let real = ["real/cargo", "real/rustup"].map(|path| home.home.join(path));
    assert_eq!(sources.map(|mount| mount.source.clone()).collect::<Vec<_>>(), real);
}

#[test]
fn a_token_in_cargos_configuration_hides_it() {
    let home = home(&[".cargo/bin/cargo"]);
    let config = home.home.join(".cargo/config.toml");
    std::fs::write(&config, "[build]\njobs = 2\n").unwrap();
    assert!(found(&home, &[".cargo/bin"], &[]).hidden.is_empty());
    std::fs::write(&config, "[registries.mine]\ntoken = \"secret\"\n").unwrap();
    assert_eq!(found(&home, &[".cargo/bin"], &[]).hidden[0].0, config);
}

#[test]
fn neither_the_home_nor_what_is_unknown_in_it_is_mounted() {
    let home = home(&["private/bin/x", "bin/tool", ".local/bin/y", ".local/lib/python3/z"]);
    let found_all = found(&home, &["private/bin", "bin", ".local/bin", ""], &[]);
    assert_eq!(from_home(&home, &found_all), [".local/bin", ".local/lib", "bin"]);
    assert_eq!(found_all.env[OsStr::new("PYTHONUSERBASE")], home.home.join(".local").as_os_str());
    assert!(!path_of(&found_all).contains("private"));
    assert_eq!(found_all.notes.len(), 2);
    let tricked = found(&home, &["bin"], &[("CARGO_HOME", "")]);
    assert!(tricked.mounts.iter().all(|mount| !home.home.starts_with(&mount.target)));
}

#[test]
fn a_link_to_the_home_does_not_bring_the_home() {
    let home = home(&["x"]);
    std::os::unix::fs::symlink(&home.home, home.home.join(".cargo")).unwrap();
    std::fs::create_dir(home.home.join("bin")).unwrap();
    let found = found(&home, &[".cargo/bin"], &[]);
    assert!(from_home(&home, &found).is_empty());
}

#[test]
fn a_home_behind_a_link_is_known_by_where_it_is() {
    let behind = home(&["real/.cargo/bin/cargo", "real/rustup/x"]);
    std::os::unix::fs::symlink("real", behind.home.join("alias")).unwrap();
    let of_user = Home { home: behind.home.join("alias"), _dir: behind._dir };
    let rustup = |root: &str| {
        let found = found(&of_user, &[".cargo/bin"], &[("RUSTUP_HOME", root)]);
        let toolchains = found.mounts.iter().filter(|mount| mount.role == MountRole::Toolchain);
        (toolchains.count(), found.notes.len())
    };
    assert_eq!(rustup("rustup"), (2, 0));
    // By its other name, by a name in it that leads back, and by what lies above it.
    for root in ["../real", ".cargo/..", ".cargo/../../alias", "..", ""] {
        assert_eq!(rustup(root), (1, 1), "{root}");
    }
}

#[test]
fn what_leads_nowhere_or_is_no_folder_is_no_toolchain() {
    let home = home(&[".cargo/bin/cargo", "file"]);
    std::os::unix::fs::symlink("gone", home.home.join("dangling")).unwrap();
    for rustup in ["dangling", "file", "file/", "missing", "missing/below"] {
        let found = found(&home, &[".cargo/bin"], &[("RUSTUP_HOME", rustup)]);
        assert_eq!(from_home(&home, &found), [".cargo"], "{rustup}");
        assert!(!found.env.contains_key(OsStr::new("RUSTUP_HOME")), "{rustup}");
    }
}

/// What is found for a call in `project`, with these folders on the caller's `PATH`.
fn in_project(home: &Home, path: &[&str], environment: Option<&str>, code: Code) -> Toolchains {
    let path = std::env::join_paths(path.iter().map(|name| home.home.join(name))).unwrap();
    let variable = |name: &str| match name {
        "PATH" => Some(path.clone()),
        "VIRTUAL_ENV" => environment.map(|name| home.home.join(name).into()),
        _ => None,
    };
    find(&Caller {
        home: Some(&home.home),
        variable: &variable,
        workspace: &home.home.join("project"),
        points: &MountPoints::read(),
        user: me(),
        code,
        only: None,
    })
}

#[test]
fn programs_of_the_workspace_are_on_the_path_where_code_may_run() {
    let home = home(&[
        "project/node_modules/.bin/x",
        "project/bin/x",
        "project/.venv/bin/x",
        "project/.venv/pyvenv.cfg",
        "project/old/bin/x",
    ]);
    let path = ["project/node_modules/.bin", "project/.venv/bin", "project/bin", "project/old/bin"];
    let found = in_project(&home, &path, Some("project/.venv"), Code::Granted);
    let folder = home.home.join("project").display().to_string();
    let own = format!("{folder}/node_modules/.bin:{folder}/.venv/bin:/usr/local/sbin:");
    assert!(path_of(&found).starts_with(&own), "{}", path_of(&found));
    let environment = home.home.join("project/.venv");
    assert_eq!(found.env[OsStr::new("VIRTUAL_ENV")], environment.as_os_str());
    assert!(from_home(&home, &found).is_empty(), "the workspace is there anyway");
    assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
    // A call without `code` finds none of them: `ls` could be one.
    let found = in_project(&home, &path, Some("project/.venv"), Code::NotGranted);
    assert!(!path_of(&found).contains("project") && found.notes.len() == 4, "{:?}", found.notes);
    assert!(!found.env.contains_key(OsStr::new("VIRTUAL_ENV")));
    // One that is not activated, or is none.
    for named in [None, Some("project/old"), Some("project")] {
        let found = in_project(&home, &path[1..], named, Code::Granted);
        assert!(!path_of(&found).contains("project"), "{named:?}");
    }
}

#[test]
fn an_environment_outside_of_the_workspace_is_mounted_without_its_credentials() {
    let home = home(&[
        "project/x",
        "envs/a/bin/x",
        "envs/a/pyvenv.cfg",
        "envs/a/pip.conf",
        ".pyenv/versions/3/bin/python",
        ".ssh/id_rsa",
    ]);
    std::os::unix::fs::symlink(
        home.home.join(".pyenv/versions/3/bin/python"),
        home.home.join("envs/a/bin/python"),
    )
    .unwrap();
    let found = in_project(&home, &["envs/a/bin"], Some("envs/a"), Code::NotGranted);
    assert_eq!(from_home(&home, &found), [".pyenv", "envs/a"]);
    assert_eq!(found.hidden.len(), 1);
    assert_eq!(found.hidden[0].0, home.home.join("envs/a/pip.conf"));
    assert!(path_of(&found).starts_with(&home.home.join("envs/a/bin").display().to_string()));
    assert_eq!(found.env[OsStr::new("VIRTUAL_ENV")], home.home.join("envs/a").as_os_str());
    // The control: a folder of that kind that nobody activated.
    let found = in_project(&home, &["envs/a/bin"], None, Code::Granted);
    assert!(from_home(&home, &found).is_empty());
}

#[test]
fn the_links_of_an_environment_lead_to_known_pythons_alone() {
    let files = ["project/.venv/pyvenv.cfg", "project/.venv/bin/x", ".ssh/id_rsa", ".pyenv/x"];
    let home = home(&files);
    let link = home.home.join("project/.venv/bin/python");
    for (target, taken) in [
        (".ssh/id_rsa", &[][..]),
        (".pyenv/../.ssh/id_rsa", &[]),
        (".", &[]),
        (".pyenv/x", &[".pyenv"]),
    ] {
        let _ = std::fs::remove_file(&link);
        std::os::unix::fs::symlink(home.home.join(target), &link).unwrap();
        let path = ["project/.venv/bin"];
        let found = in_project(&home, &path, Some("project/.venv"), Code::Granted);
        assert_eq!(from_home(&home, &found), taken, "{target}");
    }
}

#[test]
fn what_leads_into_the_workspace_gets_no_mount_of_its_own() {
    let home = home(&["project/.venv/pyvenv.cfg", "project/.venv/bin/x", "project/.env"]);
    std::os::unix::fs::symlink(home.home.join("project/.venv"), home.home.join("env")).unwrap();
    std::os::unix::fs::symlink(home.home.join("project"), home.home.join(".deno")).unwrap();
    let found = in_project(&home, &["env/bin", ".deno/.venv/bin"], Some("env"), Code::Granted);
    assert!(from_home(&home, &found).is_empty(), "{:?}", found.mounts);
    assert_eq!(found.notes.len(), 2, "{:?}", found.notes);
}

#[test]
fn installers_bring_their_programs_and_not_their_passwords() {
    let home = home(&[
        ".local/bin/ruff",
        ".local/share/uv/tools/ruff/bin/ruff",
        ".local/share/uv/tools/ruff/uv-receipt.toml",
        ".local/share/uv/python/cpython-3/bin/python3",
        ".local/share/uv/credentials/credentials.toml",
        ".local/share/pipx/venvs/black/bin/black",
        ".local/share/pipx/venvs/black/pipx_metadata.json",
        ".local/share/pipx/venvs/black/pyvenv.cfg",
        ".local/share/pipx/logs/x",
        ".pyenv/versions/3/bin/python",
        ".local/pipx/venvs/old/bin/old",
    ]);
    // What an installed program stands on comes along.
    std::os::unix::fs::symlink(
        home.home.join(".pyenv/versions/3/bin/python"),
        home.home.join(".local/share/pipx/venvs/black/bin/python"),
    )
    .unwrap();
    let found = found(&home, &[".local/bin"], &[]);
    assert_eq!(
        from_home(&home, &found),
        [
            ".local/bin",
            ".local/pipx/venvs",
            ".local/share/pipx/venvs",
            ".local/share/uv/python",
            ".local/share/uv/tools",
            ".pyenv",
        ]
    );
    let hidden: Vec<_> = found
        .hidden
        .iter()
        .map(|(path, ..)| path.strip_prefix(&home.home).unwrap().display().to_string())
        .collect();
    assert_eq!(
        hidden,
        [
            ".local/share/pipx/venvs/black/pipx_metadata.json",
            ".local/share/uv/tools/ruff/uv-receipt.toml"
        ]
    );
}

#[test]
fn the_system_is_there_once_and_without_secrets() {
    let home = home(&[]);
    let found = found(&home, &[], &[]);
    let targets: Vec<&Path> = found.mounts.iter().map(|mount| mount.target.as_path()).collect();
    for needed in ["/usr", "/bin", "/lib"] {
        assert!(targets.contains(&Path::new(needed)), "{needed}");
    }
    for never in [
        "/",
        "/etc",
        "/etc/ssl",
        "/etc/ssl/private",
        "/etc/shadow",
        "/root",
        "/home",
        "/var",
        "/run",
    ] {
        assert!(!targets.contains(&Path::new(never)), "{never}");
    }
    for mount in &found.mounts {
        assert!(mount.source.symlink_metadata().is_ok_and(|found| !found.is_symlink()));
    }
    assert_eq!(path_of(&found), "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin");
}

#[test]
fn a_toolchain_that_the_user_cannot_enter_is_left_out() {
    use std::os::unix::fs::PermissionsExt;
    let home = home(&[".deno/bin/deno"]);
    let folder = home.home.join(".deno");
    std::fs::set_permissions(&folder, std::fs::Permissions::from_mode(0o700)).unwrap();
    let path = folder.join("bin").into_os_string();
    let variable = |name: &str| (name == "PATH").then(|| path.clone());
    let user = Owner { uid: 4_000_000, gid: 4_000_000 };
    let caller = Caller {
        home: Some(&home.home),
        variable: &variable,
        workspace: Path::new("/w"),
        points: &MountPoints::read(),
        user,
        code: Code::Granted,
        only: None,
    };
    let found = find(&caller);
    assert!(from_home(&home, &found).is_empty());
    assert_eq!(found.notes.len(), 1);
}

#[test]
fn settings_of_a_jvm_are_named_as_it_is_with_or_without_its_machine() {
    let named = |name: &str| {
        let folders = java_settings(OsStr::new(name)).into_iter();
        folders.map(|folder| folder.display().to_string()).collect::<Vec<_>>()
    };
    assert_eq!(
        named("java-17-openjdk-amd64"),
        ["/etc/java-17-openjdk-amd64", "/etc/java-17-openjdk"]
    );
    assert_eq!(named("java-17-openjdk"), ["/etc/java-17-openjdk", "/etc/java-17"]);
    assert_eq!(named("java-17"), ["/etc/java-17"]);
    for other in ["openjdk-17", "temurin-25-jdk-amd64", "default-java", "../java-17"] {
        assert_eq!(named(other), [""; 0], "{other}");
    }
}
