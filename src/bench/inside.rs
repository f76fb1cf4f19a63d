//! Parts of a call that are measured in this process: a decision, and compiling a tool.

use std::time::{Duration, Instant};

use super::Extent;
use super::error::BenchError;
use super::folder::BenchFolder;
use super::idle::wait_until_idle;
use super::report::{Report, Row};
use super::sample::Samples;
use crate::call::{Command, Context, Request, Variables, Warmth};
use crate::policy_files::Choice;
use crate::tool::compile::{Compiler, Origin, Source};

/// Decisions in one sample.
const BATCH: u32 = 200;

/// Samples of decisions.
const BATCHES: usize = 30;

/// Commands about which is decided.
const COMMANDS: [&str; 4] = [
    "cat README.md",
    "git log --oneline -n 5 -- src",
    "timeout 5 nice wc -l src/main.rs",
    "find . -name x -exec grep -n y {} +",
];

/// A line about which is decided.
const LINE: &str = "cd src && grep -rn TODO . | sort -u | head -n 20";

/// Rules of a large policy.
const RULES: usize = 1_000;

/// A module with three imports.
const MODULE: &str = "import { z } from 'zod';\nimport { join } from 'node:path';\nimport { plural } from './lib/words';\n\nenum Kind { Todo = 'TODO', Fixme = 'FIXME' }\n\nexport const tool = {\n  name: 'small',\n  parameters: z.object({ folder: z.string().default('.') }),\n  async execute(args: { folder: string }, context: any): Promise<string> {\n    const text: string = await context.platform.fs.readFile(join(args.folder, 'f0'));\n    return plural(Object.values(Kind).filter((kind) => text.includes(kind)).length, 'note');\n  },\n};\n";

/// What it imports.
const WORDS: &str =
    "export const plural = (count: number, word: string): string => `${count} ${word}s`;\n";

/// How long a policy takes to decide, about commands of several kinds and with many rules; and how long from nothing.
pub fn decisions(
    place: &BenchFolder,
    report: &mut Report,
    context: &Context,
) -> Result<(), BenchError> {
    let argv = |line: &str| Command::Argv(line.split(' ').map(Into::into).collect());
    let mut asked: Vec<_> = COMMANDS
        .iter()
        .map(|line| (format!("decide: {line}"), argv(line), Choice::default()))
        .collect();
    let line = Command::Line(LINE.to_owned());
    asked.push(("decide: a line of four commands".to_owned(), line, Choice::default()));
    let many = place.workspace().with_file_name("many.yml");
    std::fs::write(&many, many_rules())
        .map_err(|error| BenchError::Local("write a policy to decide by", error))?;
    let name = format!("decide: {}, {RULES} further rules", COMMANDS[0]);
    asked.push((name, argv(COMMANDS[0]), Choice::File(many)));
    let request = |command: Command, policy: Choice| Request {
        command,
        cwd: Some(place.workspace()),
        policy,
        image: None,
        engine: None,
        tighten: Vec::new(),
        warmth: Warmth::Cold,
        variables: Variables::Told,
        writes: runner_policy::model::Writes::default(),
        on_held: crate::call::OnHeld::default(),
    };
    for (name, command, policy) in asked {
        let decided = request(command, policy).decide(context)?;
        let mut samples = Samples::default();
        for _ in 0..BATCHES {
            let begun = Instant::now();
            for _ in 0..BATCH {
                std::hint::black_box(decided.decide_again()?);
            }
            samples.push(begun.elapsed() / BATCH);
        }
        report.add(Row::times(&name, &samples));
    }
    let request = request(argv(COMMANDS[0]), Choice::default());
    let mut samples = Samples::default();
    for _ in 0..BATCHES {
        let request = request.clone();
        let begun = Instant::now();
        std::hint::black_box(request.decide(context)?);
        samples.push(begun.elapsed());
    }
    report.add(Row::times("find workspace and policies, decide once", &samples));
    Ok(())
}

/// A policy with many rules, none of which is about a command that is measured.
fn many_rules() -> String {
    let rules = (0..RULES).map(|at| {
        let verb = ["allow", "ask", "deny"][at % 3];
        format!("  - {{ id: r{at}, {verb}: \"tool{at} {{build,test}} -x * ...\" }}\n")
    });
    let head = "policy: 1\nname: many\nextends: [readonly]\ncommands:\n".to_owned();
    std::iter::once(head).chain(rules).collect()
}

/// How long a small tool takes to compile, in the compiler's process and with it.
pub fn compile(place: &BenchFolder, extent: Extent, report: &mut Report) -> Result<(), BenchError> {
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
        wait_until_idle();
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
