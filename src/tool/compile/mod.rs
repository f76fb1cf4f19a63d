//! TypeScript of tools to one ES module, with everything it imports in it.
//!
//! Duty: bundle a tool's own source, its relative imports and the packages of its own `node_modules` with rolldown,
//! leave Node's built-in modules to Node and `zod` to the runtime, and say errors at the author's own line and
//! column, also for the `code` of a YAML file. Remember results by the content of everything that was looked at.
//!
//! Non-goals: type checking, `tsconfig.json` (it is never looked for: the same source means the same everywhere), and running
//! anything. Standard decorators are not lowered and Node 20 does not run them: decorators are the legacy kind.
//!
//! Trust boundary: source is foreign bytes, and a parser is where foreign bytes first reach our own code. So it runs
//! in a child process that confines itself before it reads its job, and this side believes its answer only as far as it
//! can check: every file that the answer names is read again here, below the same handle.
//!
//! ```text
//! compile()                                     child: the compiler of src/compiler
//!  | folder opened, its identity taken            |
//!  | cache: every input and absence as it was? --> done, nothing is started
//!  | -- spawn(folder, device, inode) -----------> | closes descriptors, dies with its parent
//!  |                                              | opens the folder, compares its identity
//!  |                                              | limits: CPU, memory, files; Landlock: that folder, read-only
//!  | -- job (JSON on standard input) -----------> | now, and not before, foreign bytes are read
//!  |                                              | rolldown, over a file system that knows the folder alone
//!  | <- answer (JSON on standard output, capped)  |
//!  | every named input read again and compared
//!  v code, inputs, digest; or findings; or what ended the child
//! ```
//!
//! | part | duty |
//! | --- | --- |
//! | `source`, `compiled`, `error` | what goes in, what comes out |
//! | `compiler`, `process`, `program` | our side: look it up, start the child, believe what can be checked |
//! | `cache` | results by content, in files of the state folder |
//!
//! The child and the talk with it are the crate in `src/compiler`.

mod cache;
mod compiled;
mod compiler;
mod error;
mod process;
pub mod program;
mod source;

pub use compiled::{Changed, Compiled, Difference, Input, Origin};
pub use compiler::{Compiler, outline};
pub use error::CompileError;
pub use runner_compiler::job::{Confinement, Language, Place};
pub use runner_compiler::outline::{Export, Fault, Import, Outline, TEXT_BYTES, Text};
pub use source::{Part, Source};
