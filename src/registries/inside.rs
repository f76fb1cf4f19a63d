//! What the clients in a sandbox are told: the same registries, without credentials.

use std::ffi::OsString;
use std::path::{Path, PathBuf};

use runner_policy::net::Registry;

use super::find::Registries;
use super::source::{Source, Use};

/// Variables that name the file of trusted certificates, each for the programs that read it.
const CERTIFICATES: [&str; 14] = [
    "SSL_CERT_FILE",
    "NODE_EXTRA_CA_CERTS",
    "REQUESTS_CA_BUNDLE",
    "CURL_CA_BUNDLE",
    "PIP_CERT",
    "GIT_SSL_CAINFO",
    "CARGO_HTTP_CAINFO",
    "npm_config_cafile",
    "BUNDLE_SSL_CA_CERT",
    "DENO_CERT",
    "AWS_CA_BUNDLE",
    "CLOUDSDK_CORE_CUSTOM_CA_CERTS_FILE",
    "NIX_SSL_CERT_FILE",
    "UV_SYSTEM_CERTS",
];

/// A variable and its value.
pub type Variable = (OsString, OsString);

/// The file of trusted certificates, in the home of the sandbox.
#[must_use]
pub fn certificates(home: &Path) -> PathBuf {
    home.join(".runner-certificates.pem")
}

/// Variables by which programs find the trusted certificates.
#[must_use]
pub fn trust(home: &Path) -> Vec<Variable> {
    let file = certificates(home).into_os_string();
    CERTIFICATES
        .iter()
        .map(|name| match *name {
            // Not a file: uv reads SSL_CERT_FILE where it is told to use the system's certificates.
            "UV_SYSTEM_CERTS" => ((*name).into(), "true".into()),
            name => (name.into(), file.clone()),
        })
        .collect()
}

/// Variables of the clients, and files in the home of the sandbox.
#[must_use]
pub fn clients(registries: &Registries, home: &Path) -> (Vec<Variable>, Vec<(PathBuf, Vec<u8>)>) {
    let (mut variables, mut files) = (Vec::new(), Vec::new());
    let of = |registry| -> Vec<&Source> {
        registries.sources.iter().filter(|source| source.registry == registry).collect()
    };
    let mut set = |name: &str, value: String| variables.push((name.into(), value.into()));
    let npm = of(Registry::Npm);
    if let Some(default) = npm.iter().find(|source| source.used == Use::Default) {
        for name in ["npm_config_registry", "YARN_NPM_REGISTRY_SERVER"] {
            set(name, default.url());
        }
        // What a client would tell the registry besides what it asks for; scripts run where they are asked for.
        for (name, value) in [
            ("npm_config_audit", "false"),
            ("npm_config_fund", "false"),
            ("npm_config_update_notifier", "false"),
            ("npm_config_ignore_scripts", "true"),
            ("YARN_ENABLE_SCRIPTS", "false"),
            ("YARN_ENABLE_TELEMETRY", "false"),
        ] {
            set(name, value.to_owned());
        }
        files.push((home.join(".npmrc"), npmrc(&npm).into_bytes()));
    }
    let pip = of(Registry::Pip);
    if let Some(default) = pip.iter().find(|source| source.used == Use::Default) {
        let extra: Vec<String> = pip
            .iter()
            .filter(|source| source.used == Use::Extra)
            .map(|source| source.url())
            .collect();
        for (name, value) in [
            ("PIP_INDEX_URL", default.url()),
            ("PIP_EXTRA_INDEX_URL", extra.join(" ")),
            ("UV_DEFAULT_INDEX", default.url()),
            ("UV_INDEX", extra.join(" ")),
            ("PIP_ONLY_BINARY", ":all:".to_owned()),
            ("UV_NO_BUILD", "1".to_owned()),
            ("PIP_DISABLE_PIP_VERSION_CHECK", "1".to_owned()),
            ("PIP_NO_INPUT", "1".to_owned()),
        ] {
            if !value.is_empty() {
                set(name, value);
            }
        }
    }
    let cargo = of(Registry::Cargo);
    if !cargo.is_empty() {
        // cargo writes what it fetches below its home; the machine's own is read-only inside.
        set("CARGO_HOME", home.to_string_lossy().into_owned());
        set("CARGO_NET_OFFLINE", "false".to_owned());
        files.push((home.join("config.toml"), cargo_config(&cargo).into_bytes()));
    }
    (variables, files)
}

fn npmrc(sources: &[&Source]) -> String {
    let mut text = String::new();
    for source in sources {
        match &source.used {
            Use::Scope(scope) => text.push_str(&format!("{scope}:registry={}\n", source.url())),
            Use::Default => text.push_str(&format!("registry={}\n", source.url())),
            Use::Extra | Use::Files => {}
        }
    }
    text
}

fn cargo_config(sources: &[&Source]) -> String {
    let mut text = String::new();
    for source in sources {
        let index = quoted(format!("sparse+{}", source.url()));
        match &source.used {
            Use::Scope(name) => {
                let name = quoted(name.clone());
                text.push_str(&format!("[registries.{name}]\nindex = {index}\n"));
            }
            // crates.io is cargo's own constant.
            Use::Default if source.host != "index.crates.io" => text.push_str(&format!(
                "[source.crates-io]\nreplace-with = \"machine\"\n[source.machine]\nregistry = {index}\n"
            )),
            _ => {}
        }
    }
    text
}

/// A text in quotes: JSON's escapes mean the same in TOML.
fn quoted(text: String) -> String {
    serde_json::Value::String(text).to_string()
}
