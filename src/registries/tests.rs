//! What files say, and what never counts.

use std::collections::BTreeSet;
use std::path::Path;

use runner_policy::net::Registry;

use super::*;
use crate::environment::Environment;

fn home(files: &[(&str, &str)]) -> tempfile::TempDir {
    let home = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = home.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }
    home
}

fn found(
    home: &tempfile::TempDir,
    registry: Registry,
    more: &[(&str, &str)],
) -> Result<Registries, RegistryError> {
    let own = [("HOME", home.path().to_str().unwrap())];
    let variables = Environment::from_iter(own.iter().chain(more).copied());
    find(&BTreeSet::from([registry]), &variables)
}

fn urls(found: &Registries) -> Vec<String> {
    found.sources.iter().map(Source::url).collect()
}

#[test]
fn npm_says_its_registries_scopes_and_tokens() {
    let home = home(&[(
        ".npmrc",
        "; mine\nregistry = https://npm.corp.example/all\n@mine:registry=\"https://other.example:8443/npm/\"\n\
         //npm.corp.example/:_authToken=${NPM_TOKEN}\n//other.example:8443/npm/:_auth=dTpwYXNzd29yZA==\n\
         //evil.example/:_authToken=stays-here\n[section]\nregistry=https://ignored.example/\n",
    )]);
    let found = found(&home, Registry::Npm, &[("NPM_TOKEN", "token-of-mine")]).unwrap();
    assert_eq!(urls(&found), ["https://npm.corp.example/all/", "https://other.example:8443/npm/"]);
    let headers: Vec<_> =
        found.sources.iter().map(|one| one.credential.as_ref().unwrap().header()).collect();
    assert_eq!(headers, ["Bearer token-of-mine", "Basic dTpwYXNzd29yZA=="]);
    assert!(!format!("{found:?}").contains("token-of-mine"), "credentials are not shown");
    let mine = home.path().join(".npmrc");
    assert!(found.files.iter().any(|file| file.path == mine && file.digest.len() == 64));
}

#[test]
fn variables_move_no_registry() {
    let home = home(&[]);
    let moved = [
        ("npm_config_registry", "https://evil.example/"),
        ("NPM_CONFIG_USERCONFIG", "/tmp/evil"),
        ("PIP_INDEX_URL", "https://evil.example/"),
        ("PIP_CONFIG_FILE", "/tmp/evil"),
        ("CARGO_HOME", "/tmp/evil"),
        ("XDG_CONFIG_HOME", "/tmp/evil"),
    ];
    for (_, registry) in Registry::ALL {
        let with = found(&home, registry, &moved).unwrap();
        assert_eq!(with, found(&home, registry, &[]).unwrap());
        assert!(!urls(&with).concat().contains("evil"));
    }
}

#[test]
fn pip_says_its_indexes_and_passwords() {
    let home = home(&[(
        ".config/pip/pip.conf",
        "[global]\nindex-url = https://user:p%40ss-word@pip.corp.example/simple\n\
         extra-index-url =\n    https://a.example/simple\n    https://pypi.org/simple\n[list]\nindex-url = https://no.example\n",
    )]);
    let found = found(&home, Registry::Pip, &[]).unwrap();
    assert_eq!(
        urls(&found),
        [
            "https://pip.corp.example/simple",
            "https://a.example/simple",
            "https://pypi.org/simple",
            "https://files.pythonhosted.org/",
        ]
    );
    assert_eq!(found.sources[0].credential, Some(Credential::of("user", "p@ss-word")));
    assert_eq!(found.sources[1].credential, None);
}

#[test]
fn cargo_says_what_stands_for_crates_io() {
    let replaced = home(&[
        (
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"mirror\"\n[source.mirror]\nregistry = \"sparse+https://m.example/index/\"\n\
             [registries.mine]\nindex = \"sparse+https://own.example/\"\n",
        ),
        (
            ".cargo/credentials.toml",
            "[registries.mine]\ntoken = \"cargo-token\"\n[registry]\ntoken = \"publish\"\n",
        ),
    ]);
    let there = found(&replaced, Registry::Cargo, &[]).unwrap();
    assert_eq!(urls(&there), ["https://m.example/index/", "https://own.example/"]);
    assert_eq!(there.sources[0].credential, None);
    assert_eq!(there.sources[1].credential.as_ref().unwrap().header(), "cargo-token");
    let plain = found(&home(&[]), Registry::Cargo, &[]).unwrap();
    assert_eq!(urls(&plain), ["https://index.crates.io/", "https://static.crates.io/"]);
}

#[test]
fn what_is_not_understood_is_refused() {
    for (registry, file, text) in [
        (Registry::Npm, ".npmrc", "registry=${REGISTRY}"),
        (Registry::Npm, ".npmrc", "registry=ftp://a.example/"),
        (Registry::Npm, ".npmrc", "@a:registry=https://a.example\\@b/"),
        (Registry::Pip, ".pip/pip.conf", "[global]\nindex-url = /folder"),
        (Registry::Cargo, ".cargo/config.toml", "= broken"),
        (
            Registry::Cargo,
            ".cargo/config.toml",
            "[registries.a]\nindex = \"https://git.example/x\"",
        ),
        (
            Registry::Cargo,
            ".cargo/config.toml",
            "[source.crates-io]\nreplace-with = \"a\"\n[source.a]\nreplace-with = \"crates-io\"",
        ),
    ] {
        let home = home(&[(file, text)]);
        let result = found(&home, registry, &[("REGISTRY", "https://evil.example/")]);
        assert!(matches!(result, Err(RegistryError::Odd { .. })), "{text}: {result:?}");
    }
    let odd = home(&[(".npmrc/folder", "")]);
    assert!(matches!(found(&odd, Registry::Npm, &[]), Err(RegistryError::Read { .. })));
}

#[test]
fn a_credential_goes_to_its_own_path_alone() {
    let source = Source::parse(Registry::Npm, Use::Default, "https://a.example/npm/").unwrap();
    for (url, own) in [
        ("https://a.example/npm/left-pad", true),
        ("https://a.example/npm", true),
        ("https://a.example/npmx/y", false),
        ("https://a.example/", false),
        ("https://a.example.evil/npm/x", false),
        ("http://a.example/npm/x", false),
        ("https://a.example:8443/npm/x", false),
    ] {
        assert_eq!(source.holds(url), own, "{url}");
    }
}

#[test]
fn clients_inside_are_told_no_credential() {
    let home = home(&[
        (".npmrc", "registry=https://n.example/\n//n.example/:_authToken=npm-canary\n"),
        (".pip/pip.conf", "[global]\nindex-url=https://u:pip-canary@p.example/simple\n"),
        (
            ".cargo/config.toml",
            "[registries.mine]\nindex = \"sparse+https://c.example/\"\n[source.crates-io]\nreplace-with = \"mine\"\n",
        ),
        (".cargo/credentials.toml", "[registries.mine]\ntoken = \"cargo-canary\"\n"),
    ]);
    let own = [("HOME", home.path().to_str().unwrap())];
    let all = Registry::ALL.map(|(_, registry)| registry).into();
    let found = find(&all, &Environment::from_iter(own)).unwrap();
    let (variables, files) = inside::clients(&found, Path::new("/home/runner"));
    let text = format!(
        "{variables:?} {}",
        files.iter().map(|(_, text)| String::from_utf8_lossy(text)).collect::<String>()
    );
    for registry in ["https://n.example/", "https://p.example/simple", "sparse+https://c.example/"]
    {
        assert!(text.contains(registry), "{registry} {text}");
    }
    assert!(!text.contains("canary"), "{text}");
}
