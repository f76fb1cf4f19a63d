//! Blocks `text decided by NAME`: each line is a question, and the policy engine decides it as the line says.
//!
//! ```text
//! allow   cargo test
//! deny    cat .env                  # path_denied
//! deny    --read config/x.key       # path_denied
//! ```
//!
//! The policy is one of the page or a shipped one. Questions are a command, `--shell LINE`, `--read PATH`, `--write
//! PATH`, `--net TARGET` and `--env NAME`, as `runner policy explain` takes them.

use jiff::Timestamp;
use runner::policy_files::shipped;
use runner_policy::{Effective, Query, What, decide};

use super::examples::policies;
use super::{none, pages};
use crate::words;

const PLACE: &str = "/home/me/project";

#[test]
fn every_question_is_decided_as_its_line_says() {
    let mut complaints = Vec::new();
    let mut count = 0;
    for page in pages() {
        let (own, _) = policies(&page);
        for block in page.markdown().blocks {
            let Some(name) = block.info.strip_prefix("text decided by ") else { continue };
            let mut all = own.iter().chain(shipped_once()).filter(|policy| policy.name() == name);
            let policy =
                all.next().unwrap_or_else(|| panic!("{}: no policy {name}", page.at(block.line)));
            for (at, line) in block.text.lines().enumerate() {
                count += 1;
                if let Err(why) = holds(policy, line) {
                    complaints.push(format!("{}: {line}: {why}", page.at(block.line + at)));
                }
            }
        }
    }
    none(&complaints);
    assert!(count > 40, "only {count} questions were found");
}

fn shipped_once() -> &'static [Effective] {
    static SHIPPED: std::sync::OnceLock<Vec<Effective>> = std::sync::OnceLock::new();
    SHIPPED.get_or_init(shipped)
}

fn holds(policy: &Effective, line: &str) -> Result<(), String> {
    let (line, code) = match line.split_once("  # ") {
        Some((line, code)) => (line, Some(code.trim())),
        None => (line, None),
    };
    let (expected, question) = line.trim().split_once(' ').ok_or("two columns, please")?;
    let question = question.trim();
    let argv;
    let what = match question.split_once(' ') {
        Some(("--shell", line)) => What::Line(line),
        Some(("--read", path)) => What::Read(path),
        Some(("--write", path)) => What::Write(path),
        Some(("--net", target)) => What::Net(target),
        Some(("--env", name)) => What::Env(name),
        _ => {
            argv = words::split(question)?;
            What::Argv(&argv)
        }
    };
    let query = Query { workspace: PLACE, cwd: PLACE, now: Timestamp::UNIX_EPOCH, what };
    let got = decide(policy, &query);
    let (word, given) = (got.decision.word(), got.code.word());
    if word == expected && code.is_none_or(|code| code == given) {
        return Ok(());
    }
    Err(format!("it is {word} {given}: {}", got.message))
}
