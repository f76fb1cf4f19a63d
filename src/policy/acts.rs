//! What a question about a command is about, in one spelling: for answers that are kept.
//!
//! Duty: the commands of a call, each as its program and items, spelled the same however paths, options and wrappers
//! were written; and the files of the workspace that its code comes from, as far as arguments and catalog tell.
//! Non-goals: looking at files, and deciding. What code loads by itself is not known here.

use crate::catalog;
use crate::decide::{Query, reading};
use crate::effect::{Caused, Class, Effect, Place};
use crate::effective::Effective;
use crate::grammar::Kind;
use crate::paths;
use crate::reading::{Level, Standing};
use crate::word::Word;

/// Most files that are told of one call.
const MAX_FILES: usize = 4_096;

/// What a call does.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Acts {
    /// Each command in it, what wrappers execute included.
    pub commands: Vec<Act>,
    /// Paths of the workspace where the code that it runs is, whether something is there or not; absolute.
    pub files: Vec<String>,
    /// Whether it runs code, or something that nobody has read.
    pub code: bool,
}

/// One command.
#[derive(Debug, PartialEq, Eq)]
pub struct Act {
    /// The program and its subcommands; an absolute path for a program that was called by one.
    pub program: String,
    /// Its options, operands and redirections.
    pub items: Vec<Item>,
    /// Whether it does something by itself; a mere wrapper does not.
    pub acts: bool,
}

/// One argument.
#[derive(Debug, PartialEq, Eq)]
pub enum Item {
    /// A known one.
    Known {
        /// Its one spelling: a path is absolute, an option has its canonical name.
        text: String,
        /// What else could mean the same.
        also: Vec<String>,
    },
    /// It can be anything.
    Unknown,
}

/// Reads what a call does. A command that cannot be read at all does nothing that is known.
#[must_use]
pub fn acts(policy: &Effective, query: &Query<'_>) -> Acts {
    let Some(read) = reading(policy, query) else { return Acts::default() };
    let levels = read.map(|reading| reading.levels).unwrap_or_default();
    let mut acts = Acts::default();
    for level in &levels {
        acts.commands.push(act(level));
        let runs = level.classes();
        if runs.contains(Class::Code) || runs.contains(Class::Unknown) {
            acts.code = true;
            acts.files.extend(files(level, query.workspace));
        }
    }
    acts.files.sort();
    acts.files.dedup();
    acts.files.truncate(MAX_FILES);
    acts
}

fn act(level: &Level) -> Act {
    let called = level.words.first().and_then(Word::text).unwrap_or_default();
    let program = match level.known {
        Some(_) => level.path.join(" "),
        None if called.contains('/') => paths::join(&level.cwd, called),
        None => called.to_owned(),
    };
    let spelling = Spelling::new(level);
    // What was not understood is compared word by word.
    let items = if level.complete && level.known.is_some() {
        let options = level.options.iter().map(|option| {
            let name = option.names.last().map_or(option.written.as_str(), String::as_str);
            let values: Option<Vec<&str>> = option.values.iter().map(Option::as_deref).collect();
            match values.as_deref() {
                None => Item::Unknown,
                Some([]) => Item::plain(name),
                Some([value]) => spelling.item(&format!("{name}={value}")),
                Some(several) => Item::plain(&format!("{name}={}", several.join(" "))),
            }
        });
        let operands = level.operands.iter().map(|operand| match operand {
            Some(text) => spelling.item(text),
            None => Item::Unknown,
        });
        options.chain(operands).collect()
    } else {
        let words = level.words.iter().skip(1);
        words.map(|word| word.text().map_or(Item::Unknown, |text| spelling.item(text))).collect()
    };
    let redirects = level.redirects.iter().map(|caused| Item::plain(&caused.effect.show()));
    let items: Vec<Item> = Vec::into_iter(items).chain(redirects).collect();
    let acts = level.standing == Standing::Certain
        && !(level.effects.is_empty() && level.redirects.is_empty());
    Act { program, items, acts }
}

impl Item {
    fn plain(text: &str) -> Self {
        Self::Known { text: text.to_owned(), also: Vec::new() }
    }
}

/// Which words of a command are paths.
struct Spelling<'l> {
    level: &'l Level,
    /// Paths that it names; absolute.
    paths: Vec<&'l str>,
}

impl<'l> Spelling<'l> {
    fn new(level: &'l Level) -> Self {
        let all: &[&[Caused]] = &[&level.effects, &level.redirects];
        let of_effects = all.iter().flat_map(|list| list.iter()).filter_map(|caused| {
            let (Effect::Read(place) | Effect::Write(place)) = &caused.effect else { return None };
            match place {
                Place::Exact(path)
                | Place::Tree(path)
                | Place::Below(path)
                | Place::Prefix(path) => Some(path.as_str()),
                Place::Glob(_) | Place::Any => None,
            }
        });
        let of_arguments = level
            .args
            .iter()
            .filter(|arg| arg.kind == Kind::Path)
            .filter_map(|arg| arg.value.as_deref());
        Self { level, paths: of_effects.chain(of_arguments).collect() }
    }

    /// A word; the value of `key=value` may be a path too.
    fn item(&self, text: &str) -> Item {
        let (key, value) = match text.split_once('=') {
            Some((key, value)) => (format!("{key}="), value),
            None => (String::new(), text),
        };
        let joined = paths::join(&self.level.folder, value);
        let below = paths::below(&self.level.folder, &joined).unwrap_or(&joined);
        let is_path = match self.level.known {
            Some(_) => {
                let script = |arg: &crate::reading::Arg| {
                    arg.kind == Kind::Script && arg.value.as_deref() == Some(value)
                };
                self.paths.contains(&joined.as_str())
                    || (value.contains('/') && self.level.args.iter().any(script))
            }
            None => value.contains('/'),
        };
        let mut spellings = [text.to_owned(), format!("{key}{joined}"), format!("{key}{below}")];
        if is_path {
            spellings.swap(0, 1);
        }
        let [text, also @ ..] = spellings;
        Item::Known { text, also: also.to_vec() }
    }
}

/// Where the code of a command is: the program itself, what it is told to run or read, and what it runs untold.
fn files(level: &Level, workspace: &str) -> Vec<String> {
    let called = level.words.first().and_then(Word::text).filter(|called| called.contains('/'));
    let mut found: Vec<String> =
        called.map(|called| paths::join(&level.cwd, called)).into_iter().collect();
    let is_code = |kind: Kind| matches!(kind, Kind::Script | Kind::Module);
    let told = level.args.iter().filter(|arg| is_code(arg.kind));
    found.extend(
        told.filter_map(|arg| arg.value.as_deref()).map(|value| paths::join(&level.folder, value)),
    );
    found.extend(level.effects.iter().filter_map(|caused| match &caused.effect {
        Effect::Read(Place::Exact(path)) => Some(path.clone()),
        _ => None,
    }));
    let recipes = catalog::lookup(&level.program).map(|it| it.recipes.as_slice());
    let recipes = recipes.filter(|_| level.known.is_some()).unwrap_or_default();
    let mut folder = Some(level.folder.as_str());
    while let Some(here) = folder.filter(|here| paths::below(workspace, here).is_some()) {
        found.extend(recipes.iter().map(|name| paths::join(here, name)));
        folder = here.rsplit_once('/').map(|(above, _)| above);
    }
    found.retain(|path| paths::below(workspace, path).is_some_and(|below| below != "."));
    found
}

#[cfg(test)]
mod tests {
    use jiff::Timestamp;

    use super::*;
    use crate::decide::What;
    use crate::{Origin, PolicySet, Source, parse};

    fn acts(line: &str, cwd: &str) -> Acts {
        let text = "policy: 1\nname: p\n";
        let mut set = PolicySet::default();
        set.add(parse(Source { file: "p", text, origin: Origin::User }).unwrap()).unwrap();
        let policy = set.effective("p").unwrap();
        let query =
            Query { workspace: "/w", cwd, now: Timestamp::UNIX_EPOCH, what: What::Line(line) };
        super::acts(&policy, &query)
    }

    /// The one spelling of each command that does something.
    fn spelled(line: &str, cwd: &str) -> Vec<String> {
        let item = |item: &Item| match item {
            Item::Known { text, .. } => text.clone(),
            Item::Unknown => "?".to_owned(),
        };
        let acts = acts(line, cwd).commands;
        acts.iter()
            .filter(|act| act.acts)
            .map(|act| {
                let items: Vec<String> = act.items.iter().map(item).collect();
                format!("{} {}", act.program, items.join(" ")).trim_end().to_owned()
            })
            .collect()
    }

    #[test]
    fn the_same_command_is_spelled_the_same() {
        for (line, cwd) in [
            ("touch out/n", "/w"),
            ("touch ./out/n", "/w"),
            ("touch out//x/../n", "/w"),
            ("touch /w/out/n", "/w/src"),
            ("touch -- n", "/w/out"),
            ("cd out && touch n", "/w"),
            ("timeout 5 touch out/n", "/w"),
            ("sh -c 'touch out/n'", "/w"),
        ] {
            assert_eq!(spelled(line, cwd), ["touch /w/out/n"], "{line} in {cwd}");
        }
        assert_eq!(
            spelled("git commit -m a/b", "/w/src"),
            spelled("git commit --message=a/b", "/w")
        );
        assert_eq!(spelled("./run.sh x", "/w/a"), ["/w/a/run.sh x"]);
        assert_eq!(spelled("echo x > a", "/w"), ["echo x write /w/a"]);
        assert_eq!(spelled("touch ./a out/*", "/w"), ["touch /w/a ?"]);
    }

    #[test]
    fn the_files_of_code_are_told() {
        let files = |line: &str, cwd: &str| acts(line, cwd).files;
        assert_eq!(files("make", "/w"), ["/w/GNUmakefile", "/w/Makefile", "/w/makefile"]);
        assert!(files("make -C sub", "/w").contains(&"/w/sub/Makefile".to_owned()));
        assert!(files("make -f other.mk", "/w").contains(&"/w/other.mk".to_owned()));
        assert!(files("timeout 5 /usr/bin/make", "/w/a").contains(&"/w/Makefile".to_owned()));
        assert_eq!(files("node src/x.js", "/w"), ["/w/src/x.js"]);
        assert_eq!(files("bash ./x.sh a", "/w/src"), ["/w/src/x.sh"]);
        assert_eq!(files("./gradlew test", "/w"), ["/w/gradlew"]);
        assert!(files("npm test", "/w/a").contains(&"/w/package.json".to_owned()));
        assert!(files("cat a", "/w").is_empty() && files("node /opt/x.js", "/w").is_empty());
        assert!(acts("mytool", "/w").code && !acts("cat a", "/w").code);
    }
}
