//! From a job and a folder to a module or findings: rolldown, told what we want.
//!
//! Runs inside the confined child only.

use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};

use rolldown::{
    BundleFactory, BundleFactoryOptions, BundleOutput, BundlerOptions, BundlerTransformOptions,
    CodeSplittingMode, DecoratorOptions, Either, InputItem, OutputFormat, Platform, ResolveOptions,
    SourceMapType, TsConfig,
};
use rolldown_common::{Output, OutputChunk};
use rolldown_error::{BuildDiagnostic, BuildResult, EventKind};
use rolldown_resolver::Resolver;

use runner_compiler::folder::Folder;
use runner_compiler::job::{Job, Told};
use runner_compiler::limits::CODE_BYTES;

use crate::files::{Files, ROOT};
use crate::map;
use crate::plugin::{Tool, Trouble};
use crate::report::Reporter;

/// What syntax is lowered to. Sandboxes have Node 20; naming its predecessor, which differs in one thing that matters
/// here (a flag of regular expressions), makes rolldown lower JavaScript files too and not TypeScript alone.
const TARGET: &str = "node19";

/// What a build gives.
#[derive(Debug)]
pub struct Bundled {
    /// The module with its source map.
    pub code: String,
    /// What it exports.
    pub exports: Vec<String>,
    /// The files, which know what was looked at.
    pub files: Files,
}

/// Compiles.
///
/// # Errors
/// What is wrong in the source, in order.
pub fn bundle(folder: Folder, job: &Job) -> Result<Bundled, Vec<Told>> {
    let files = Files::new(folder, &job.file, &job.text);
    let trouble = Arc::new(Mutex::new(Trouble::default()));
    let reporter = Reporter::new(job, &files);
    let built = tokio::runtime::Builder::new_current_thread()
        .max_blocking_threads(1)
        .build()
        .map_err(|error| vec![reporter.whole(format!("the compiler cannot start: {error}"))])?
        .block_on(build(job, &files, &trouble));
    let trouble = std::mem::take(&mut *trouble.lock().unwrap_or_else(PoisonError::into_inner));
    let output = built.map_err(|errors| reporter.all(&errors.into_vec(), &trouble))?;
    // An import that is not found would be left for Node to find: there is nothing to find in a sandbox.
    let unresolved: Vec<BuildDiagnostic> = output
        .warnings
        .into_iter()
        .filter(|warning| matches!(warning.kind(), EventKind::UnresolvedImport))
        .collect();
    if !unresolved.is_empty() || !trouble.refused.is_empty() {
        return Err(reporter.all(&unresolved, &trouble));
    }
    let chunk = only_chunk(&output.assets)
        .map_err(|found| vec![reporter.whole(format!("one module was expected, found {found}"))])?;
    finish(job, chunk, files.clone()).map_err(|message| vec![reporter.whole(message)])
}

async fn build(
    job: &Job,
    files: &Files,
    trouble: &Arc<Mutex<Trouble>>,
) -> BuildResult<BundleOutput> {
    let root = PathBuf::from(ROOT);
    let entry = format!("{ROOT}/{}", job.file);
    let tool = Tool {
        files: files.clone(),
        entry: entry.clone(),
        text: job.text.clone(),
        language: job.language,
        trouble: Arc::clone(trouble),
    };
    let mut factory = BundleFactory::new(BundleFactoryOptions {
        bundler_options: options(&root, entry),
        plugins: vec![Arc::new(tool)],
        session: None,
        disable_tracing_setup: true,
    })?;
    // As the factory makes its own, but over our files.
    let resolve = ResolveOptions {
        condition_names: Some(vec!["module".to_owned()]),
        symlinks: Some(true),
        ..ResolveOptions::default()
    };
    let resolver =
        Resolver::new(files.clone(), root, Platform::Node, &TsConfig::Auto(false), resolve);
    factory.create_bundle_with_fs(files.clone(), Arc::new(resolver)).generate().await
}

fn options(root: &std::path::Path, entry: String) -> BundlerOptions {
    BundlerOptions {
        input: Some(vec![InputItem { name: Some("tool".to_owned()), import: entry }]),
        cwd: Some(root.to_owned()),
        // Sources in the map are relative to this.
        dir: Some(ROOT.to_owned()),
        platform: Some(Platform::Node),
        format: Some(OutputFormat::Esm),
        // A dynamic import becomes a part of the one module.
        code_splitting: Some(CodeSplittingMode::Bool(false)),
        sourcemap: Some(SourceMapType::Hidden),
        sourcemap_exclude_sources: Some(true),
        tsconfig: Some(TsConfig::Auto(false)),
        transform: Some(BundlerTransformOptions {
            target: Some(Either::Left(TARGET.to_owned())),
            decorator: Some(DecoratorOptions {
                legacy: Some(true),
                emit_decorator_metadata: Some(false),
                ..DecoratorOptions::default()
            }),
            ..BundlerTransformOptions::default()
        }),
        ..BundlerOptions::default()
    }
}

/// The one chunk of the output, or how many parts it has. Its map comes a second time, as a file of its own.
fn only_chunk(assets: &[Output]) -> Result<&OutputChunk, usize> {
    let is_map = |output: &Output| matches!(output, Output::Asset(asset) if asset.filename.ends_with(".map"));
    let parts: Vec<&Output> = assets.iter().filter(|output| !is_map(output)).collect();
    match parts.as_slice() {
        [Output::Chunk(chunk)] => Ok(chunk),
        other => Err(other.len()),
    }
}

fn finish(job: &Job, chunk: &OutputChunk, files: Files) -> Result<Bundled, String> {
    let mut code = chunk.code.clone();
    if let Some(map) = &chunk.map {
        if !code.ends_with('\n') {
            code.push('\n');
        }
        code.push_str("//# sourceMappingURL=");
        code.push_str(&map::placed(map, job).to_data_url());
        code.push('\n');
    }
    if code.len() > CODE_BYTES {
        return Err(format!("the compiled module is larger than {} MiB", CODE_BYTES >> 20));
    }
    let exports = chunk.exports.iter().map(ToString::to_string).collect();
    Ok(Bundled { code, exports, files })
}
