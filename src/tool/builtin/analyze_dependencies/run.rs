//! One look at a project.

use serde::Deserialize;
use serde_json::{Value, json};

use super::project::Project;
use super::{cargo, npm};
use crate::broker::client::{Call, Client, Thrown};
use crate::codes::Code;
use crate::json as strict;
use crate::tool::builtin::problem::Problem;

/// The largest manifest or lock file that is read.
const FILE_MAX: usize = strict::MAX_BYTES;

/// The arguments. Defaults are those of the schema, which has filled them in.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Args {
    project_path: String,
    package_json_path: Option<String>,
}

/// Looks.
pub(in crate::tool::builtin) async fn run(call: Call) -> Result<Value, Thrown> {
    let args: Args = serde_json::from_value(call.args)
        .map_err(|error| Problem::Arguments.says(error.to_string()))?;
    let folder = match &args.package_json_path {
        Some(path) => match path.rsplit_once('/') {
            Some((folder, "package.json")) => folder.to_owned(),
            None if path == "package.json" => ".".to_owned(),
            _ => return Err(Problem::Arguments.says(format!("{path} is not a package.json"))),
        },
        None => args.project_path,
    };
    let mut projects = Vec::new();
    for kind in [Kind::Npm, Kind::Cargo] {
        projects.extend(kind.read(&call.client, &folder).await?);
    }
    if projects.is_empty() {
        let hint = "name the folder of a package.json or Cargo.toml with projectPath";
        return Err(
            Thrown::new(Code::NotFound, format!("there is no manifest in {folder}")).hint(hint)
        );
    }
    let total: usize = projects.iter().map(Project::total).sum();
    let projects: Vec<Value> = projects.iter().map(Project::json).collect();
    Ok(json!({ "totalDeps": total, "projects": projects }))
}

#[derive(Clone, Copy)]
enum Kind {
    Npm,
    Cargo,
}

impl Kind {
    fn files(self) -> (&'static str, &'static str) {
        match self {
            Self::Npm => ("package.json", "package-lock.json"),
            Self::Cargo => ("Cargo.toml", "Cargo.lock"),
        }
    }

    /// A manifest that asks for nothing.
    fn empty(self) -> &'static str {
        match self {
            Self::Npm => "{}",
            Self::Cargo => "",
        }
    }

    /// The project of this kind in a folder, if there is one. A manifest that is none is an error, a lock file that
    /// cannot be used a note.
    async fn read(self, client: &Client, folder: &str) -> Result<Option<Project>, Thrown> {
        let (manifest, lock) = self.files();
        let at = |name: &str| {
            if folder == "." {
                name.to_owned()
            } else {
                format!("{}/{name}", folder.trim_end_matches('/'))
            }
        };
        let (manifest, lock) = (at(manifest), at(lock));
        let text = file(client, &manifest).await?;
        let (locked, mut notes) = match file(client, &lock).await {
            Ok(text) => (text, Vec::new()),
            Err(thrown) => (None, vec![thrown.message]),
        };
        let alone = text.is_none();
        let text = match (text, &locked) {
            (Some(text), _) => text,
            // A lock file by itself still says what is locked.
            (None, Some(_)) => {
                notes.push(format!("there is no {manifest}: only locked packages are listed"));
                self.empty().to_owned()
            }
            (None, None) => return Ok(None),
        };
        // Text of megabytes: others are answered meanwhile.
        let shown = manifest.clone();
        let parsed =
            tokio::task::spawn_blocking(move || self.parse(&text, locked.as_deref(), &shown));
        let parsed =
            parsed.await.map_err(|error| Thrown::new(Code::ToolFailed, error.to_string()))?;
        let (mut project, has_lock, note) = parsed?;
        notes.extend(note.map(|why| format!("{lock} cannot be read: {why}")));
        project.manifest = (!alone).then_some(manifest);
        project.lock = has_lock.then_some(lock);
        project.notes = notes;
        project.settle();
        Ok(Some(project))
    }

    fn parse(
        self,
        text: &str,
        lock: Option<&str>,
        shown: &str,
    ) -> Result<(Project, bool, Option<String>), Thrown> {
        let wrong = |why: String| Problem::Manifest.says(format!("{shown} cannot be read: {why}"));
        match self {
            Self::Npm => {
                let manifest = strict::read(text).map_err(|error| wrong(error.to_string()))?;
                let (lock, note) = split(lock.map(strict::read));
                Ok((npm::project(&manifest, lock.as_ref()), lock.is_some(), note))
            }
            Self::Cargo => {
                let manifest =
                    text.parse().map_err(|error: toml::de::Error| wrong(error.to_string()))?;
                let (lock, note) = split(lock.map(str::parse::<toml::Table>));
                Ok((cargo::project(&manifest, lock.as_ref()), lock.is_some(), note))
            }
        }
    }
}

fn split<T, E: ToString>(read: Option<Result<T, E>>) -> (Option<T>, Option<String>) {
    match read {
        None => (None, None),
        Some(Ok(value)) => (Some(value), None),
        Some(Err(error)) => (None, Some(error.to_string())),
    }
}

/// A file's text; `None` if there is none.
async fn file(client: &Client, path: &str) -> Result<Option<String>, Thrown> {
    let contents = match client.read(path, FILE_MAX).await {
        Ok(contents) => contents,
        Err(refused) if refused.code == Code::NotFound => return Ok(None),
        Err(refused) => return Err(refused.into()),
    };
    if contents.more {
        let message = format!("{path} is larger than {FILE_MAX} bytes and is not read");
        return Err(Problem::TooLarge.says(message));
    }
    crate::tool::builtin::problem::text(path, contents.bytes).map(Some)
}
