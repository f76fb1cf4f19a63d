//! What we add to rolldown: where the tool's own code comes from, where `zod` goes, what may not be imported.
//!
//! `data:` addresses of JavaScript and JSON are text that the author wrote, and become a part of the module; from inside one
//! nothing can be imported. Anything on a network is refused. Other addresses (`file:` too) are not found, because there
//! is nothing above the tool's folder.

use std::borrow::Cow;
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex, PoisonError};

use rolldown_common::{ModuleType, ResolvedExternal};
use rolldown_plugin::{
    HookLoadArgs, HookLoadOutput, HookLoadReturn, HookResolveIdArgs, HookResolveIdOutput,
    HookResolveIdReturn, HookUsage, Plugin, PluginContext, SharedLoadPluginContext,
};

use runner_compiler::job::Language;

use crate::files::{Files, ROOT};

/// The runtime's own `zod`, inside a sandbox.
pub const ZOD: &str = "file:///.runner-guest/runtime/zod.mjs";

/// The names by which it is imported.
const ZOD_NAMES: [&str; 2] = ["zod", "zod/v4"];

/// Endings of files that cannot become a part of a module, with the reason.
const UNUSABLE: [(&str, &str); 3] = [
    ("node", "a native add-on cannot be a part of a module; use a package in plain JavaScript"),
    ("wasm", "WebAssembly cannot be a part of a module; embed it as a base64 string"),
    ("css", "a tool has no page to style"),
];

/// An import that is refused whatever is there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refused {
    /// The module that imports it, as rolldown calls it.
    pub importer: String,
    /// What it imports.
    pub specifier: String,
}

/// What went wrong on our side of rolldown.
#[derive(Debug, Default)]
pub struct Trouble {
    /// What may not be imported.
    pub refused: Vec<Refused>,
    /// What could not be loaded: its path below the folder, and why.
    pub unloaded: Vec<(String, String)>,
}

/// The plugin of one job.
#[derive(Debug)]
pub struct Tool {
    /// Where files come from.
    pub files: Files,
    /// The id of the tool's own file.
    pub entry: String,
    /// Its code.
    pub text: String,
    /// What it is written in.
    pub language: Language,
    /// What went wrong.
    pub trouble: Arc<Mutex<Trouble>>,
}

impl Tool {
    /// Whether a folder on the way from an importer up to the root has its own package of this name.
    fn has_package(&self, importer: &str, name: &str) -> bool {
        Path::new(importer)
            .ancestors()
            .skip(1)
            .take_while(|folder| folder.starts_with(ROOT))
            .any(|folder| self.files.is_folder(&folder.join("node_modules").join(name)))
    }

    /// The text of a module.
    fn text_of(&self, id: &str) -> io::Result<String> {
        let path = Path::new(id);
        let ending = path.extension().and_then(|ending| ending.to_str()).unwrap_or_default();
        match UNUSABLE.iter().find(|(unusable, _)| *unusable == ending) {
            Some((_, why)) => Err(io::Error::other(*why)),
            None => self.files.text(path),
        }
    }
}

/// Whether it names something on a network. Other schemes are not found like any missing package.
fn is_remote(specifier: &str) -> bool {
    ["http://", "https://", "//"].iter().any(|scheme| {
        specifier.get(..scheme.len()).is_some_and(|start| start.eq_ignore_ascii_case(scheme))
    })
}

impl Plugin for Tool {
    fn name(&self) -> Cow<'static, str> {
        Cow::Borrowed("tool")
    }

    fn register_hook_usage(&self) -> HookUsage {
        HookUsage::ResolveId | HookUsage::Load
    }

    async fn resolve_id(
        &self,
        _: &PluginContext,
        args: &HookResolveIdArgs<'_>,
    ) -> HookResolveIdReturn {
        if args.is_entry {
            return Ok(Some(HookResolveIdOutput::from_id(self.entry.as_str())));
        }
        let importer = args.importer.unwrap_or(&self.entry);
        if is_remote(args.specifier) {
            let refused =
                Refused { importer: importer.to_owned(), specifier: args.specifier.to_owned() };
            self.trouble.lock().unwrap_or_else(PoisonError::into_inner).refused.push(refused);
        }
        if ZOD_NAMES.contains(&args.specifier) && !self.has_package(importer, "zod") {
            return Ok(Some(HookResolveIdOutput {
                id: ZOD.into(),
                external: Some(ResolvedExternal::Bool(true)),
                ..HookResolveIdOutput::default()
            }));
        }
        Ok(None)
    }

    async fn load(&self, _: SharedLoadPluginContext, args: &HookLoadArgs<'_>) -> HookLoadReturn {
        if args.id == self.entry {
            let module_type = match self.language {
                Language::TypeScript => ModuleType::Ts,
                Language::JavaScript => ModuleType::Js,
            };
            return Ok(Some(HookLoadOutput {
                code: self.text.as_str().into(),
                module_type: Some(module_type),
                ..HookLoadOutput::default()
            }));
        }
        // Virtual modules are rolldown's own; a type that an import asks for is its matter, through the same files.
        let Some(path) = Files::relative(Path::new(args.id)) else { return Ok(None) };
        if args.asserted_module_type.is_some() {
            return Ok(None);
        }
        match self.text_of(args.id) {
            Ok(code) => Ok(Some(HookLoadOutput { code: code.into(), ..HookLoadOutput::default() })),
            Err(error) => {
                let trouble = (path, error.to_string());
                self.trouble.lock().unwrap_or_else(PoisonError::into_inner).unloaded.push(trouble);
                Err(error.into())
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn remote_imports_are_known_by_their_scheme() {
        for remote in ["https://x.example/a.js", "HTTP://x", "//x.example/a.js"] {
            assert!(is_remote(remote), "{remote}");
        }
        for local in ["./a", "/a", "a", "node:fs", "h", "data:text/javascript,1", "é//"] {
            assert!(!is_remote(local), "{local}");
        }
    }
}
