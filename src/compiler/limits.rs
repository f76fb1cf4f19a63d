//! The figures of compiling, each with its reason.

use std::time::Duration;

/// Seconds of processor time of a compiler. A large tool with hundreds of package files takes well under one.
pub const CPU_SECONDS: u64 = 10;

/// Wall-clock time of a compiler: processor time and a machine that is busy with something else.
pub const WALL: Duration = Duration::from_secs(30);

/// Address space of a compiler, and so the most memory it can take. The program and its stacks reserve 200 MiB of it; a
/// megabyte of source takes some thirty more.
pub const ADDRESS_SPACE: u64 = 1 << 30;

/// Stack of each thread of a compiler. Recursion of the parser ends here: some ten thousand nested brackets.
pub const STACK: usize = 64 << 20;

/// Open files of a compiler: streams, the folder, one file at a time, and room.
pub const DESCRIPTORS: u64 = 32;

/// Largest file that can be imported. The largest single files in npm's packages are below 10 MB.
pub const FILE_BYTES: u64 = 16 << 20;

/// Most bytes of all files of a tool.
pub const TOTAL_BYTES: u64 = 64 << 20;

/// Most paths that are looked at for one tool: its files and those that an import could have meant.
pub const PATHS: usize = 100_000;

/// Longest compiled module, with its source map. It travels into a sandbox with every call.
pub const CODE_BYTES: usize = 32 << 20;

/// Longest answer of a compiler: code as JSON can be a few times as long as code.
pub const ANSWER_BYTES: usize = 4 * CODE_BYTES;

/// Longest job: a tool's file may be as long as any other.
pub const JOB_BYTES: u64 = 8 * FILE_BYTES;

/// How much of what a dying compiler says is kept.
pub const LAST_WORDS: usize = 4096;

/// Most findings kept of one tool. Nobody mends more at once.
pub const FINDINGS: usize = 100;

/// Longest excerpt kept of a line, in characters.
pub const EXCERPT: usize = 200;

/// Bytes of all remembered results together.
pub const CACHE_BYTES: u64 = 128 << 20;

/// Number of all remembered results together.
pub const CACHE_ENTRIES: usize = 500;

const _: () = assert!(FILE_BYTES <= TOTAL_BYTES);
const _: () = assert!(3 * (STACK as u64) < ADDRESS_SPACE);
const _: () = assert!((CODE_BYTES as u64) < CACHE_BYTES);
