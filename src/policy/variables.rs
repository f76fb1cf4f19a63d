//! Environment variables: which names make programs load or run code.

/// Names that loaders, shells, interpreters and common tools obey by running or loading something.
const LOADERS: &[&str] = &[
    "BASH_ENV",
    "BROWSER",
    "CDPATH",
    "CLASSPATH",
    "EDITOR",
    "ENV",
    "FCEDIT",
    "GCONV_PATH",
    "GLIBC_TUNABLES",
    "HOME",
    "IFS",
    "INPUTRC",
    "JAVA_TOOL_OPTIONS",
    "JDK_JAVA_OPTIONS",
    "LESSCLOSE",
    "LESSOPEN",
    "LOCPATH",
    "MAKEFILES",
    "MAKEFLAGS",
    "MANPAGER",
    "NLSPATH",
    "NODE_OPTIONS",
    "NODE_PATH",
    "NODE_REPL_EXTERNAL_MODULE",
    "PAGER",
    "PATH",
    "PROMPT_COMMAND",
    "PS1",
    "PS2",
    "PS4",
    "RES_OPTIONS",
    "RIPGREP_CONFIG_PATH",
    "RUBYLIB",
    "RUBYOPT",
    "RUSTC",
    "RUSTC_WORKSPACE_WRAPPER",
    "RUSTC_WRAPPER",
    "RUSTDOC",
    "RUSTFLAGS",
    "SHELL",
    "SHELLOPTS",
    "SSH_ASKPASS",
    "SUDO_ASKPASS",
    "TAR_OPTIONS",
    "TERMINFO",
    "TMPDIR",
    "VISUAL",
    "XDG_CONFIG_HOME",
    "ZDOTDIR",
    "_JAVA_OPTIONS",
    "CC",
    "CXX",
    "LD",
    "AR",
    "AWKPATH",
    "AWKLIBPATH",
    "LUA_INIT",
    "LUA_PATH",
    "LUA_CPATH",
    "GOFLAGS",
    "GOENV",
    "CURL_HOME",
    "WGETRC",
    "OPENSSL_CONF",
    "OPENSSL_MODULES",
    "OPENSSL_ENGINES",
    "SSLKEYLOGFILE",
    "KUBECONFIG",
    "KUBE_EDITOR",
    "SED",
    "GREP_OPTIONS",
    "POSIXLY_CORRECT",
    "DOCKER_HOST",
];

/// Families of names, by their beginning.
const FAMILIES: &[&str] = &[
    "LD_",
    "DYLD_",
    "MALLOC_",
    "BASH_FUNC_",
    "GIT_",
    "PYTHON",
    "PERL",
    "CARGO_",
    "RUSTUP_",
    "NPM_CONFIG_",
    "npm_config_",
    "YARN_",
    "PNPM_",
    "PIP_",
    "LUA_INIT_",
];

/// Members of those families that only switch something off or colour output.
const HARMLESS: &[&str] = &[
    "CARGO_NET_OFFLINE",
    "CARGO_TERM_COLOR",
    "GIT_OPTIONAL_LOCKS",
    "GIT_TERMINAL_PROMPT",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONUNBUFFERED",
];

/// Whether setting this variable can make a program load or run code, or change what it executes.
#[must_use]
pub fn loads_code(name: &str) -> bool {
    let family = || FAMILIES.iter().any(|family| name.starts_with(family));
    LOADERS.contains(&name) || (family() && !HARMLESS.contains(&name))
}

/// Whether this is a name that an environment can carry and every program reads the same.
#[must_use]
pub fn is_name(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes.next().is_some_and(|first| first.is_ascii_alphabetic() || first == b'_')
        && bytes.all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loaders_are_known_by_name_and_family() {
        for name in [
            "LD_PRELOAD",
            "NODE_OPTIONS",
            "BASH_ENV",
            "GIT_SSH_COMMAND",
            "PAGER",
            "PATH",
            "HOME",
            "PYTHONPATH",
            "PERL5OPT",
            "npm_config_script_shell",
        ] {
            assert!(loads_code(name), "{name}");
        }
        for name in ["FOO", "NODE_ENV", "CI", "LANG", "TZ", "RUST_LOG", "FORCE_COLOR"] {
            assert!(!loads_code(name), "{name}");
        }
    }

    #[test]
    fn odd_names_are_no_names() {
        for name in ["", "1A", "A=B", "A\nB", "A B", "Ä", "A-B"] {
            assert!(!is_name(name), "{name:?}");
        }
    }
}
