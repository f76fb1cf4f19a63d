//! A tool's folder with something outside it, and a Node to run what comes out.

use std::fs;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use runner::tool::compile::{
    CompileError, Compiled, Compiler, Language, Part, Place, Source, program,
};

use crate::support::Ran;

/// What must never be in a bundle.
pub const SECRET: &str = "the-content-of-the-secret";

/// The compiler's own executable, as a file that can be started without us.
pub fn program() -> &'static Path {
    static PROGRAM: OnceLock<PathBuf> = OnceLock::new();
    PROGRAM.get_or_init(|| {
        let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
        let path = folder.join(format!("runner-compiler-{}", &program::DIGEST[..16]));
        // Tests run side by side, each in a process of its own: all or nothing is seen.
        let made = tempfile::NamedTempFile::new_in(folder).expect("a file");
        fs::write(made.path(), program::BYTES).expect("written");
        fs::set_permissions(made.path(), fs::Permissions::from_mode(0o755)).expect("executable");
        // Closed before it can be started.
        made.into_temp_path().persist(&path).expect("in place");
        path
    })
}

/// A folder `tool` of a tool, and beside it what does not belong to the tool.
pub struct Bench {
    place: tempfile::TempDir,
}

impl Bench {
    pub fn new() -> Self {
        let bench = Self { place: tempfile::tempdir().expect("a temporary folder") };
        fs::create_dir(bench.tool("")).expect("a folder");
        let secret = format!("export const secret = \"{SECRET}\";\n");
        fs::write(bench.outside("secret.ts"), secret).expect("a file");
        bench
    }

    /// A path beside the tool's folder.
    pub fn outside(&self, name: &str) -> PathBuf {
        self.place.path().canonicalize().expect("a real path").join(name)
    }

    /// A path in the tool's folder.
    pub fn tool(&self, name: &str) -> PathBuf {
        self.outside("tool").join(name)
    }

    /// Writes a file of the tool.
    pub fn write(&self, name: &str, text: &str) -> &Self {
        let path = self.tool(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        fs::write(path, text).expect("a file");
        self
    }

    /// Makes a link in the tool's folder.
    pub fn link(&self, target: impl AsRef<Path>, name: &str) -> &Self {
        let path = self.tool(name);
        fs::create_dir_all(path.parent().expect("a folder")).expect("folders");
        std::os::unix::fs::symlink(target, path).expect("a link");
        self
    }

    /// The compiler of a caller who remembers nothing.
    pub fn compiler() -> Compiler {
        Compiler::new(None)
    }

    /// A compiler that remembers.
    pub fn remembering(&self) -> Compiler {
        Compiler::new(Some(&self.outside("state")))
    }

    /// The source in a file of the tool, shown as `tools/NAME`.
    pub fn source(&self, name: &str) -> Source {
        Source::module(&self.tool(name), format!("tools/{name}")).expect("a module")
    }

    /// Compiles a file of the tool.
    pub fn compile(&self, name: &str) -> Result<Compiled, CompileError> {
        Self::compiler().compile(&self.source(name))
    }

    /// Writes and compiles the tool `a.tool.ts`.
    pub fn tool_of(&self, text: &str) -> Result<Compiled, CompileError> {
        self.write("a.tool.ts", text).compile("a.tool.ts")
    }

    /// What the tool's exported `execute` returns, as JSON.
    pub fn result_of(&self, text: &str) -> serde_json::Value {
        let compiled = self.tool_of(text).expect("it compiles");
        self.execute(&compiled)
    }

    /// What a compiled tool's `execute` returns, as JSON.
    pub fn execute(&self, compiled: &Compiled) -> serde_json::Value {
        let ran = self.node(compiled);
        assert_eq!(ran.code, Some(0), "{}\n{}", ran.err, compiled.code);
        ran.json()
    }

    /// Runs a compiled tool's `execute` with Node, outside any sandbox.
    pub fn node(&self, compiled: &Compiled) -> Ran {
        fs::write(self.outside("module.mjs"), &compiled.code).expect("a file");
        let main = "import * as module from './module.mjs';\n\
                    const execute = module.execute ?? module.default?.execute ?? module.default;\n\
                    console.log(JSON.stringify(await execute()) ?? 'null');\n";
        fs::write(self.outside("main.mjs"), main).expect("a file");
        let mut node = Command::new("node");
        node.arg("--enable-source-maps").arg("main.mjs").current_dir(self.outside(""));
        Ran::from(node.output().expect("Node starts"))
    }

    /// A YAML tool: `head`, then the code as a block scalar with this indentation.
    pub fn yaml(&self, head: &str, code: &str, indent: usize) -> Source {
        let pad = " ".repeat(indent);
        let body: String = code
            .lines()
            .map(|line| if line.is_empty() { "\n".to_owned() } else { format!("{pad}{line}\n") })
            .collect();
        let document = format!("{head}code: |\n{body}");
        self.write("a.yml", &document);
        let line = u32::try_from(head.lines().count() + 2).expect("a line");
        Source {
            folder: self.tool("").components().collect(),
            file: "a.yml".to_owned(),
            shown: "tools/a.yml".to_owned(),
            document,
            part: Part::Code {
                text: code.to_owned(),
                language: Language::TypeScript,
                place: Place { line, indent: u32::try_from(indent).expect("a column") },
            },
        }
    }
}

/// The findings of a compilation that must fail because of its source.
pub fn findings(result: Result<Compiled, CompileError>) -> Vec<runner_policy::finding::Finding> {
    match result {
        Err(CompileError::Source(findings)) => findings,
        Err(other) => panic!("another error: {other}"),
        Ok(compiled) => panic!("it compiled:\n{}", compiled.code),
    }
}
