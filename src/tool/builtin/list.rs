//! The list of built-in tools.

use std::fmt;

use serde_json::Value;

use super::intent::{Intent, untold};
use super::{bash_execution, file_operations, git, git_commit, npm_install, rest_api_call};
use crate::broker::Boxed;
use crate::broker::client::{Call, Thrown};

/// What a tool does with a call.
type Work = fn(Call) -> Boxed<'static, Result<Value, Thrown>>;

/// One tool of this program.
pub struct BuiltIn {
    /// Its name.
    pub name: &'static str,
    /// Its definition, in YAML.
    pub text: &'static str,
    work: Work,
    intends: fn(&Value) -> Vec<Intent>,
}

/// A word that changes whenever the code or a definition of a built-in tool does.
const BUILD: &str = env!("RUNNER_BUILT_INS");

macro_rules! built_in {
    ($($name:ident: $intends:path),* $(,)?) => {
        /// Every one of them, in the order of names.
        pub static ALL: &[BuiltIn] = &[$(BuiltIn {
            name: stringify!($name),
            text: include_str!(concat!(stringify!($name), ".yml")),
            work: |call| Box::pin(super::$name::run(call)),
            intends: $intends,
        }),*];
    };
}

built_in! {
    analyze_dependencies: untold,
    bash_execution: bash_execution::intends,
    file_operations: file_operations::intends,
    file_search: untold,
    git: git::intends,
    git_commit: git_commit::intends,
    npm_install: npm_install::intends,
    parse_typescript: untold,
    rest_api_call: rest_api_call::intends,
    type_check: untold,
    validate_json: untold,
}

/// The one with this name.
#[must_use]
pub fn find(name: &str) -> Option<&'static BuiltIn> {
    ALL.iter().find(|tool| tool.name == name)
}

impl BuiltIn {
    /// Does what a call asks for.
    pub fn run(&self, call: Call) -> Boxed<'static, Result<Value, Thrown>> {
        (self.work)(call)
    }

    /// What a call with these arguments will do, as far as they tell.
    #[must_use]
    pub fn intends(&self, args: &Value) -> Vec<Intent> {
        (self.intends)(args)
    }

    /// How messages name it.
    #[must_use]
    pub fn file(&self) -> String {
        format!("built-in/{}.yml", self.name)
    }

    /// Stands for its definition and its code: approvals hold for these.
    #[must_use]
    pub fn digest(&self) -> String {
        let mut hasher = blake3::Hasher::new();
        for part in [env!("CARGO_PKG_VERSION"), BUILD, self.name, self.text] {
            hasher.update(&(part.len() as u64).to_le_bytes());
            hasher.update(part.as_bytes());
        }
        hasher.finalize().to_hex().to_string()
    }
}

impl fmt::Debug for BuiltIn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BuiltIn").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tool::grade::{Conformance, Grade};
    use crate::tool::read;

    #[test]
    fn the_list_is_the_folder_and_in_order() {
        let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/src/tool/builtin");
        let names = std::fs::read_dir(folder).unwrap().map(|it| it.unwrap().file_name());
        let mut files: Vec<String> = names.map(|it| it.into_string().unwrap()).collect();
        files.retain(|file| file.ends_with(".yml"));
        files.sort();
        let listed: Vec<String> = ALL.iter().map(|tool| format!("{}.yml", tool.name)).collect();
        assert_eq!(listed, files);
    }

    #[test]
    fn each_is_what_we_ask_of_others() {
        for tool in ALL {
            let definition =
                read::built_in(tool).unwrap_or_else(|it| panic!("{}: {it:#?}", tool.name));
            let conformance = Conformance::of(&definition);
            let missing: Vec<_> = conformance.missing().collect();
            assert!(conformance.grade <= Grade::B, "{}: {missing:?}", tool.name);
            assert!(definition.returns.is_some() && definition.timeout.is_some(), "{}", tool.name);
        }
    }

    #[test]
    fn a_digest_is_of_one_tool() {
        let mut digests: Vec<String> = ALL.iter().map(BuiltIn::digest).collect();
        digests.sort();
        digests.dedup();
        assert_eq!(digests.len(), ALL.len());
    }
}
