//! A commit, and what it recorded.

use serde_json::{Value, json};

use super::run::git;
use crate::broker::client::{Client, Thrown};
use crate::tool::builtin::command::shown;

/// What is committed.
pub(in crate::tool::builtin) struct Commit {
    /// Its message.
    pub message: String,
    /// Only these; what is staged if there are none.
    pub paths: Vec<String>,
    /// With all changes of tracked files.
    pub all: bool,
    /// In which folder.
    pub cwd: String,
}

impl Commit {
    /// The command.
    pub(in crate::tool::builtin) fn argv(&self) -> Vec<String> {
        let mut argv: Vec<String> =
            ["git", "commit", "--no-edit", "--no-gpg-sign"].map(str::to_owned).to_vec();
        if self.all {
            argv.push("--all".to_owned());
        }
        argv.extend(["-m".to_owned(), self.message.clone(), "--".to_owned()]);
        argv.extend(self.paths.iter().cloned());
        argv
    }
}

/// Commits.
pub(in crate::tool::builtin) async fn commit(
    client: &Client,
    wanted: &Commit,
    operation: &str,
) -> Result<Value, Thrown> {
    let ran = git(client, &wanted.cwd, &wanted.argv()).await.map_err(|thrown| {
        let nobody = thrown.message.contains("tell me who you are");
        let hint = "name an author in the repository: git config user.name and user.email";
        if nobody { thrown.hint(hint) } else { thrown }
    })?;
    let text = shown(&ran.stdout).0;
    let figures = figures(&text);
    // What it says first is cut short; the whole name is asked for.
    let head = ["git", "log", "--max-count=1", "--format=%H", "--"].map(str::to_owned);
    let hash = match git(client, &wanted.cwd, &head).await {
        Ok(log) => Some(shown(&log.stdout).0.trim().to_owned()),
        Err(_) => None,
    };
    Ok(json!({
        "operation": operation,
        "commitHash": hash,
        "filesChanged": figures[0],
        "insertions": figures[1],
        "deletions": figures[2],
        "output": text.trim(),
        "truncated": ran.truncated,
        "call": ran.call,
    }))
}

/// Files, insertions and deletions, as git counts them: ` 2 files changed, 3 insertions(+), 1 deletion(-)`.
fn figures(text: &str) -> [u64; 3] {
    let line = text.lines().find(|line| line.contains(" changed")).unwrap_or_default();
    ["file", "insertion", "deletion"].map(|word| {
        let part = line.split(',').find(|part| part.contains(word));
        part.and_then(|part| part.split_whitespace().next()?.parse().ok()).unwrap_or(0)
    })
}

#[cfg(test)]
mod tests {
    use super::figures;

    #[test]
    fn what_a_commit_says_is_counted() {
        let said = "[main abc] file m\n 2 files changed, 3 insertions(+), 1 deletion(-)\n create mode 100644 a\n";
        assert_eq!(figures(said), [2, 3, 1]);
        assert_eq!(figures("[main abc] m\n 1 file changed, 1 deletion(-)\n"), [1, 0, 1]);
        assert_eq!(figures(""), [0, 0, 0]);
    }
}
