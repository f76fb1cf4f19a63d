//! The toolchains that are known, as a table: where they are, and what they need.

use crate::engine::plan::MaskKind;

/// System folders; a link (`/bin` to `usr/bin`) is mounted from where it leads.
pub(super) const SYSTEM: &[&str] =
    &["/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32"];

/// Where system programs are, in the usual order.
pub(super) const SYSTEM_PATH: &[&str] =
    &["/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"];

/// Parts of `/etc` that programs need and that hold no secret. Never `/etc/ssl/private`, never a file with
/// settings of a package manager: those hold tokens.
pub(super) const ETC: &[&str] = &[
    "alternatives",
    "crypto-policies",
    "fonts",
    "java-openjdk",
    "ld.so.cache",
    "ld.so.conf",
    "ld.so.conf.d",
    "localtime",
    "mime.types",
    "os-release",
    "pki/ca-trust",
    "pki/tls/certs",
    "protocols",
    "services",
    "ssl/cert.pem",
    "ssl/certs",
    "ssl/openssl.cnf",
];

/// A toolchain in the home directory.
pub(super) struct Known {
    /// Where it usually is.
    pub below_home: &'static str,
    /// The variable that says where it is, and that it needs.
    pub variable: Option<&'static str>,
    /// What else it needs.
    pub also: &'static [Also],
    /// Variables with a fixed value.
    pub set: &'static [(&'static str, &'static str)],
}

/// A second folder of a toolchain.
pub(super) struct Also {
    pub below_home: &'static str,
    pub variable: Option<&'static str>,
}

const fn known(below_home: &'static str, variable: Option<&'static str>) -> Known {
    Known { below_home, variable, also: &[], set: &[] }
}

/// A folder of `PATH` belongs to the first of these that it lies in.
pub(super) const KNOWN: &[Known] = &[
    Known {
        below_home: ".cargo",
        variable: Some("CARGO_HOME"),
        also: &[Also { below_home: ".rustup", variable: Some("RUSTUP_HOME") }],
        // Without it cargo waits for a network that is not there.
        set: &[("CARGO_NET_OFFLINE", "true")],
    },
    known(".nvm/versions", None),
    known(".fnm", None),
    known(".local/share/fnm", None),
    known(".local/state/fnm_multishells", None),
    known(".volta", Some("VOLTA_HOME")),
    known(".nodenv", Some("NODENV_ROOT")),
    known(".npm-global", None),
    known(".local/share/pnpm", Some("PNPM_HOME")),
    known(".yarn", None),
    known(".config/yarn/global/node_modules", None),
    known(".bun", Some("BUN_INSTALL")),
    known(".deno", None),
    known(".pyenv", Some("PYENV_ROOT")),
    known(".local/share/uv/tools", Some("UV_TOOL_DIR")),
    known(UV_PYTHON.below_home, UV_PYTHON.variable),
    known(".local/share/pipx/venvs", None),
    known(".local/pipx/venvs", None),
    known(".poetry", None),
    known(".pixi", None),
    known(".rye", None),
    known("anaconda3", None),
    known("miniconda3", None),
    known("miniforge3", None),
    known("mambaforge", None),
    known(".rbenv", Some("RBENV_ROOT")),
    known(".rvm", None),
    known(".asdf", Some("ASDF_DATA_DIR")),
    known(".local/share/mise", Some("MISE_DATA_DIR")),
    known(".goenv", Some("GOENV_ROOT")),
    known("go", Some("GOPATH")),
    known(".local/go", None),
    known(".sdkman/candidates", None),
    known(".jenv", None),
    known(".dotnet", Some("DOTNET_ROOT")),
    known(".ghcup", None),
    known(".opam", Some("OPAMROOT")),
    known(".elan", Some("ELAN_HOME")),
    known(".juliaup", None),
    known(".zvm", None),
    known(".swiftly", None),
    known(".pub-cache", None),
    known(".mix", None),
];

/// Where uv installs Python.
const UV_PYTHON: Also =
    Also { below_home: ".local/share/uv/python", variable: Some("UV_PYTHON_INSTALL_DIR") };

/// Installations of Python that a virtual environment may stand on, beside the system's.
pub(super) const PYTHONS: &[Also] =
    &[UV_PYTHON, Also { below_home: ".pyenv", variable: Some("PYENV_ROOT") }];

const fn extra(below_home: &'static str, variable: Option<&'static str>) -> Also {
    Also { below_home, variable }
}

/// What programs in `~/.local/bin` are often links or wrappers to. Never what lies beside them: uv keeps
/// passwords in `~/.local/share/uv/credentials`, and pipx logs.
pub(super) const EXTRAS: &[Also] = &[
    extra(".local/lib", None),
    extra(".local/pipx/venvs", None),
    extra(".local/pipx/shared", None),
    extra(".local/share/pipx/venvs", None),
    extra(".local/share/pipx/shared", None),
    extra(".local/share/pipx/py", None),
    extra(".local/share/uv/tools", Some("UV_TOOL_DIR")),
    UV_PYTHON,
];

/// Where Nix keeps everything that its profiles lead to. What lies beside it (`/nix/var`: the socket of a
/// daemon, a database) is never mounted.
pub(super) const NIX_STORE: &str = "/nix/store";

/// What installers note beside each program that they install: where it came from, with passwords of indexes.
pub(super) const RECEIPTS: &[&str] = &["uv-receipt.toml", "pipx_metadata.json", "pip.conf"];

/// Most folders of one toolchain that are looked at for such notes.
pub(super) const MAX_RECEIPTS: usize = 1_000;

/// Credentials that toolchains keep in their own folder.
pub(super) const CREDENTIALS: &[(&str, MaskKind)] = &[
    ("credentials", MaskKind::File),
    ("credentials.toml", MaskKind::File),
    (".netrc", MaskKind::File),
    (".npmrc", MaskKind::File),
    ("etc/npmrc", MaskKind::File),
    (".git-credentials", MaskKind::File),
    ("auth.json", MaskKind::File),
    (".ssh", MaskKind::Folder),
    (".condarc", MaskKind::File),
    (".pypirc", MaskKind::File),
    (".env", MaskKind::File),
];
