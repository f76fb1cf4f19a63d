//! Parts of a call that are measured in this process: a decision, and compiling a tool.

use std::time::{Duration, Instant};

use super::Extent;
use super::error::BenchError;
use super::place::Place;
use super::quiet::quiet;
use super::report::{Report, Row};
use super::sample::Samples;
use crate::call::{Command, Request, Variables, Warmth};
use crate::policies::Choice;
use crate::tool::compile::{Compiler, Origin, Source};

/// Decisions in one sample.
const BATCH: u32 = 200;

/// Samples of decisions.
const BATCHES: usize = 30;

/// A module with three imports.
const MODULE: &str = "import { z } from 'zod';\nimport { join } from 'node:path';\nimport { plural } from './lib/words';\n\nenum Kind { Todo = 'TODO', Fixme = 'FIXME' }\n\nexport const tool = {\n  name: 'small',\n  parameters: z.object({ folder: z.string().default('.') }),\n  async execute(args: { folder: string }, context: any): Promise<string> {\n    const text: string = await context.platform.fs.readFile(join(args.folder, 'f0'));\n    return plural(Object.values(Kind).filter((kind) => text.includes(kind)).length, 'note');\n  },\n};\n";

/// What it imports.
const WORDS: &str =
    "export const plural = (count: number, word: string): string => `${count} ${word}s`;\n";

/// How long a policy takes to decide about a command.
pub fn decision(place: &Place, report: &mut Report) -> Result<(), BenchError> {
    let words = ["git", "log", "--oneline", "-n", "5", "--", "src"].map(Into::into);
    let request = Request {
        command: Command::Argv(words.to_vec()),
        cwd: Some(place.workspace()),
        policy: Choice::default(),
        image: None,
        tighten: Vec::new(),
        warmth: Warmth::Cold,
        variables: Variables::Told,
    };
    let decided = request.decide()?;
    let mut samples = Samples::default();
    for _ in 0..BATCHES {
        let begun = Instant::now();
        for _ in 0..BATCH {
            std::hint::black_box(decided.decide_again()?);
        }
        samples.push(begun.elapsed() / BATCH);
    }
    report.add(Row::times("policy decision (git log)", &samples));
    Ok(())
}

/// How long a small tool takes to compile, in the compiler's process and with it.
pub fn compile(place: &Place, extent: Extent, report: &mut Report) -> Result<(), BenchError> {
    let local = |error| BenchError::Local("write a tool to compile", error);
    let folder = place.workspace().with_file_name("compiled");
    std::fs::create_dir_all(folder.join("lib")).map_err(local)?;
    let file = folder.join("small.tool.ts");
    std::fs::write(&file, MODULE).map_err(local)?;
    std::fs::write(folder.join("lib/words.ts"), WORDS).map_err(local)?;
    let failed = |error: crate::tool::compile::CompileError| BenchError::Command {
        line: "compile small.tool.ts".to_owned(),
        how: error.to_string(),
    };
    let source = Source::module(&file, "small.tool.ts").map_err(failed)?;
    // Without a folder for state nothing is kept, so each time is the first.
    let compiler = Compiler::new(None);
    let (mut inside, mut whole) = (Samples::default(), Samples::default());
    for _ in 0..extent.rounds() {
        quiet();
        let begun = Instant::now();
        let compiled = compiler.compile(&source).map_err(failed)?;
        whole.push(begun.elapsed());
        if let Origin::Fresh { micros, .. } = compiled.origin {
            inside.push(Duration::from_micros(micros));
        }
    }
    report.add(Row::times("compile a small tool, in its process", &inside));
    report.add(Row::times("compile a small tool, with its process", &whole));
    Ok(())
}
