//! Collects the texts that a choice needs.
//!
//! The shipped and the managed layer always take part: a managed policy may bind everybody. Further
//! layers take part up to the one that holds the choice, so a broken or hostile file in a repository
//! cannot disturb a run that does not use the repository's policies. Within a layer that takes
//! part, one bad file refuses everything.

use std::borrow::Cow;
use std::path::{Path, PathBuf};

use runner_policy::finding::{At, Finding};

use super::choice::{Choice, Configured, DEFAULT, Named};
use super::folder::{PolicyFile, Writers, read_folder, read_given};
use super::layer::{Layer, Places};
use super::shipped::{POLICIES, Shipped};

/// One policy's text and where it comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Text {
    /// Its name.
    pub name: String,
    /// Its layer.
    pub layer: Layer,
    /// The file, as shown in messages.
    pub file: String,
    /// What it says.
    pub text: Cow<'static, str>,
    /// What was read from that when this program was built, if it is a part of it.
    pub(super) read: Option<&'static [u8]>,
}

/// What was collected.
#[derive(Debug, Default)]
pub struct Gathered {
    /// The texts, each name once.
    pub texts: Vec<Text>,
    /// What is wrong so far; one is enough to refuse everything.
    pub findings: Vec<Finding>,
}

/// Which layers take part.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Depth {
    /// As few as the choice needs.
    Needed,
    /// All of them.
    All,
}

impl Gathered {
    /// The text of a policy.
    #[must_use]
    pub fn text(&self, name: &str) -> Option<&Text> {
        self.texts.iter().find(|text| text.name == name)
    }

    fn add(&mut self, layer: Layer, files: Vec<PolicyFile>) {
        for PolicyFile { stem, file, text } in files {
            match self.text(&stem) {
                // Without this a name would mean different things in different layers.
                Some(other) => self.findings.push(Finding {
                    code: "policy_name_taken",
                    message: format!("the name {stem} is taken by {}", other.file),
                    file,
                    at: At::default(),
                    help: Some("rename the file and its policy; a policy can build on another with extends".to_owned()),
                    excerpt: String::new(),
                }),
                None => self.texts.push(Text {
                    name: stem,
                    layer,
                    file,
                    text: Cow::Owned(text),
                    read: None,
                }),
            }
        }
    }

    fn add_folder(&mut self, layer: Layer, places: &Places) {
        let (base, below, writers) = match layer {
            Layer::Managed => (Some(&places.managed), "runner/policies", Writers::RootOnly),
            Layer::User => (places.user.as_ref(), "runner/policies", Writers::Anyone),
            Layer::Project => (places.workspace.as_ref(), ".runner/policies", Writers::Anyone),
            Layer::Shipped | Layer::Given => return,
        };
        if let Some(base) = base {
            let files = read_folder(base, below, writers, &mut self.findings);
            self.add(layer, files);
        }
    }
}

/// The shipped policies alone.
#[must_use]
pub fn gather_shipped() -> Gathered {
    let texts = POLICIES.iter().map(|Shipped { name, text, read }| Text {
        name: (*name).to_owned(),
        layer: Layer::Shipped,
        file: format!("policies/{name}.yml"),
        text: Cow::Borrowed(text),
        read: Some(read),
    });
    Gathered { texts: texts.collect(), findings: Vec::new() }
}

/// The named files, and every policy in the named folders.
#[must_use]
pub fn gather_given(paths: &[PathBuf]) -> Gathered {
    let mut gathered = Gathered::default();
    for path in paths {
        let files = if path.is_dir() {
            read_folder(path, ".", Writers::Anyone, &mut gathered.findings)
        } else {
            read_given(path, &mut gathered.findings).into_iter().collect()
        };
        gathered.add(Layer::Given, files);
    }
    gathered
}

/// Collects the texts for a choice, and the name of the policy that it means.
#[must_use]
pub fn gather(choice: &Choice, depth: Depth, places: &Places) -> (Gathered, String) {
    let mut gathered = gather_shipped();
    gathered.add_folder(Layer::Managed, places);
    let wanted = Wanted::from(choice, places);
    let last = if depth == Depth::All { Layer::Project } else { wanted.last_layer(places) };
    for layer in [Layer::User, Layer::Project] {
        if layer <= last {
            gathered.add_folder(layer, places);
        }
    }
    let name = match wanted {
        Wanted::Name(name) => name,
        Wanted::Default => DEFAULT.to_owned(),
        Wanted::Configured(it) => {
            it.default.as_ref().map_or_else(|| DEFAULT.to_owned(), |named| named.name.clone())
        }
        Wanted::File(path) => {
            let given = read_given(&path, &mut gathered.findings);
            let name = given.as_ref().map(|file| file.stem.clone()).unwrap_or_default();
            gathered.add(Layer::Given, given.into_iter().collect());
            name
        }
    };
    (gathered, name)
}

/// A choice after a look at where a path leads.
enum Wanted {
    Default,
    Configured(Box<Configured>),
    Name(String),
    File(PathBuf),
}

impl Wanted {
    /// A path into the project's own folder is a project policy, however it is written: naming the
    /// file must not be a way around trust.
    fn from(choice: &Choice, places: &Places) -> Self {
        match choice {
            Choice::Default => Self::Default,
            Choice::Configured(it) => Self::Configured(it.clone()),
            Choice::Named(name) => Self::Name(name.clone()),
            Choice::File(path) => {
                let real = |path: &Path| path.canonicalize().ok();
                let project = places.folder(Layer::Project).and_then(|folder| real(&folder));
                let inside =
                    project.zip(real(path)).is_some_and(|(folder, file)| file.starts_with(folder));
                match path.file_stem().and_then(|stem| stem.to_str()) {
                    Some(stem) if inside => Self::Name(stem.to_owned()),
                    _ => Self::File(path.clone()),
                }
            }
        }
    }

    /// The least trusted layer that has something to say about it.
    fn last_layer(&self, places: &Places) -> Layer {
        let holds = |layer: Layer, name: &str| {
            let file = places.folder(layer).map(|folder| folder.join(format!("{name}.yml")));
            file.is_some_and(|file| file.symlink_metadata().is_ok())
        };
        let least = |name: &str, deepest: Layer| {
            let layers = [Layer::Project, Layer::User].into_iter();
            let mut below = layers.filter(|layer| *layer <= deepest && holds(*layer, name));
            below.next().unwrap_or(Layer::Managed)
        };
        let of = |named: &Named| least(&named.name, named.deepest);
        match self {
            Self::Default => Layer::Managed,
            Self::Configured(it) => {
                let Configured { default, within } = it.as_ref();
                let both = default.iter().chain(within).map(of);
                both.max().unwrap_or(Layer::Managed)
            }
            Self::File(_) => Layer::User,
            Self::Name(name) => least(name, Layer::Project),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::fs;

    use super::*;

    struct Fixture {
        dir: tempfile::TempDir,
        places: Places,
    }

    fn fixture() -> Fixture {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        let places = Places {
            managed: at("etc"),
            user: Some(at("config")),
            workspace: Some(at("project")),
            state: None,
            environment: crate::environment::Environment::default(),
        };
        for folder in ["config/runner/policies", "project/.runner/policies"] {
            fs::create_dir_all(at(folder)).unwrap();
        }
        Fixture { dir, places }
    }

    impl Fixture {
        fn put(&self, path: &str) {
            fs::write(self.dir.path().join(path), "policy: 1").unwrap();
        }

        /// The layers of what is not shipped, and the codes of findings.
        fn gather(&self, choice: &str) -> (Vec<(String, Layer)>, Vec<&'static str>, String) {
            let choice = if choice.is_empty() { Choice::Default } else { choice.parse().unwrap() };
            let (gathered, name) = gather(&choice, Depth::Needed, &self.places);
            let texts = gathered.texts.into_iter().filter(|text| text.layer != Layer::Shipped);
            let codes = gathered.findings.iter().map(|finding| finding.code).collect();
            (texts.map(|text| (text.name, text.layer)).collect(), codes, name)
        }
    }

    #[test]
    fn without_a_choice_neither_user_nor_project_takes_part() {
        let fixture = fixture();
        fixture.put("config/runner/policies/mine.yml");
        fixture.put("project/.runner/policies/readonly.yml");
        fixture.put("project/.runner/policies/BROKEN.yml");
        assert_eq!(fixture.gather(""), (vec![], vec![], "readonly".to_owned()));
    }

    #[test]
    fn a_choice_reaches_its_own_layer_and_no_further() {
        let fixture = fixture();
        fixture.put("config/runner/policies/mine.yml");
        fixture.put("project/.runner/policies/theirs.yml");
        let mine = ("mine".to_owned(), Layer::User);
        let theirs = ("theirs".to_owned(), Layer::Project);
        assert_eq!(fixture.gather("mine").0, std::slice::from_ref(&mine));
        assert_eq!(fixture.gather("theirs").0, [mine, theirs]);
    }

    #[test]
    fn a_name_in_two_layers_is_refused_not_shadowed() {
        let fixture = fixture();
        fixture.put("config/runner/policies/same.yml");
        fixture.put("project/.runner/policies/same.yml");
        let (texts, codes, _) = fixture.gather("same");
        assert_eq!(texts, [("same".to_owned(), Layer::User)]);
        assert_eq!(codes, ["policy_name_taken"]);
    }

    #[test]
    fn one_bad_file_in_a_layer_that_takes_part_is_a_finding() {
        let fixture = fixture();
        fixture.put("project/.runner/policies/good.yml");
        fixture.put("project/.runner/policies/Bad.yml");
        assert_eq!(fixture.gather("good").1, ["policy_name_invalid"]);
    }

    #[test]
    fn a_path_into_the_project_is_a_project_policy() {
        let fixture = fixture();
        fixture.put("project/.runner/policies/theirs.yml");
        let project = fixture.dir.path().join("project");
        for path in [".runner/policies/theirs.yml", ".runner/../.runner/policies//theirs.yml"] {
            let (texts, codes, name) = fixture.gather(project.join(path).to_str().unwrap());
            assert_eq!(texts, [("theirs".to_owned(), Layer::Project)], "{path}");
            assert_eq!((codes, name), (vec![], "theirs".to_owned()));
        }
        std::os::unix::fs::symlink(
            project.join(".runner/policies/theirs.yml"),
            project.join("theirs.yml"),
        )
        .unwrap();
        let (texts, ..) = fixture.gather(project.join("theirs.yml").to_str().unwrap());
        assert_eq!(texts, [("theirs".to_owned(), Layer::Project)]);
    }

    #[test]
    fn a_path_elsewhere_is_the_callers_word() {
        let fixture = fixture();
        fixture.put("p.yml");
        let (texts, codes, name) =
            fixture.gather(fixture.dir.path().join("p.yml").to_str().unwrap());
        assert_eq!(
            (texts, codes, name),
            (vec![("p".to_owned(), Layer::Given)], vec![], "p".to_owned())
        );
        let (_, codes, _) = fixture.gather(fixture.dir.path().join("nope.yml").to_str().unwrap());
        assert_eq!(codes, ["policy_missing"]);
    }
}
