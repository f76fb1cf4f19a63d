//! From a choice to a policy that can decide, or a refusal of everything.

use std::path::PathBuf;

use jiff::Timestamp;
use runner_policy::check::check;
use runner_policy::effective::{Effective, PolicySet};
use runner_policy::finding::{At, Finding};
use runner_policy::load::{Origin, Source, parse};
use runner_policy::packed::unpack;

use super::choice::{Choice, Configured, Named};
use super::error::PolicyError;
use super::gather::{Depth, Gathered, Text, gather, gather_given, gather_shipped};
use super::layer::{Layer, Places};
use super::memory::Memory;
use super::trust::TrustStore;

/// Whether a project's policy must be pinned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Trust {
    /// Yes: something is decided by it.
    Required,
    /// Not to look at it.
    ToLook,
}

/// A policy that can decide, and where it came from.
#[derive(Debug)]
pub struct Loaded {
    /// The policy with all it builds on.
    pub policy: Effective,
    /// Its layer.
    pub layer: Layer,
    /// Its file, as shown in messages.
    pub file: String,
    /// The configuration that made it the default; `None` if it was chosen, or if no file says anything.
    pub configured: Option<Configured>,
}

/// Every policy that could be read.
#[derive(Debug)]
pub struct Library {
    /// The policies, parsed.
    pub set: PolicySet,
    /// Where each came from, and its text.
    pub texts: Vec<Text>,
    /// What is wrong; one finding refuses everything.
    pub findings: Vec<Finding>,
}

/// Loads the policy of a choice.
///
/// # Errors
/// Anything is wrong with the files that take part, there is no such policy, it fails its own
/// tests, or it is not trusted.
pub fn load(choice: &Choice, places: &Places, trust: Trust) -> Result<Loaded, PolicyError> {
    let (gathered, name) = gather(choice, Depth::Needed, places);
    let configured = match choice {
        Choice::Configured(it) => Some(it.as_ref().clone()),
        Choice::Default | Choice::Named(_) | Choice::File(_) => None,
    };
    let (default, within) =
        configured.as_ref().map_or((None, None), |it| (it.default.as_ref(), it.within.as_ref()));
    let mut wanted = vec![name.clone()];
    wanted.extend(within.map(|named| named.name.clone()));
    let library = Library::parse(gathered, &wanted, |text| text.layer != Layer::Shipped);
    let one = |name: &str, named: Option<&Named>| {
        let loaded = match named {
            Some(named) => library.named(named)?,
            None => library.policy(name)?,
        };
        if trust == Trust::Required && loaded.layer == Layer::Project {
            check_trust(&loaded, places)?;
        }
        library.check_composition(&loaded, places)?;
        Ok::<Loaded, PolicyError>(loaded)
    };
    let mut loaded = one(&name, default)?;
    if let Some(named) = within {
        let other = one(&named.name, Some(named))?;
        loaded.policy = loaded.policy.bounded(&other.policy);
    }
    Ok(Loaded { configured, ..loaded })
}

/// Reads every policy of every layer.
#[must_use]
pub fn load_all(places: &Places) -> Library {
    let (gathered, _) = gather(&Choice::Default, Depth::All, places);
    Library::parse(gathered, &[], |_| true)
}

/// Reads the named files and folders; what they build on comes from the layers.
#[must_use]
pub fn load_files(paths: &[PathBuf], places: &Places) -> Library {
    let (layers, _) = gather(&Choice::Default, Depth::All, places);
    let mut gathered = gather_given(paths);
    for text in layers.texts {
        // What is named stands in for a policy of the same name: this is how its next version is checked.
        if gathered.text(&text.name).is_none() {
            gathered.texts.push(text);
        }
    }
    Library::parse(gathered, &[], |text| text.layer == Layer::Given)
}

/// The shipped policies, composed.
#[must_use]
pub fn shipped() -> Vec<Effective> {
    let library = Library::parse(gather_shipped(), &[], |_| true);
    let names = library.texts.iter().map(|text| text.name.as_str());
    names.filter_map(|name| library.set.effective(name).ok()).collect()
}

/// The shipped policies as this caller can choose them: none exceeds a managed ceiling. Empty where a managed policy
/// is broken, since then none can be chosen.
#[must_use]
pub fn choosable(places: &Places) -> Vec<Effective> {
    let (gathered, _) = gather(&Choice::Default, Depth::Needed, places);
    let library = Library::parse(gathered, &[], |_| true);
    if !library.findings.is_empty() {
        return Vec::new();
    }
    let shipped = library.texts.iter().filter(|text| text.layer == Layer::Shipped);
    shipped.filter_map(|text| library.set.effective(&text.name).ok()).collect()
}

/// Whether a project's policy is pinned as it is now.
///
/// # Errors
/// It is not, or the pins cannot be used.
pub fn check_trust(loaded: &Loaded, places: &Places) -> Result<(), PolicyError> {
    let workspace = places.workspace.clone().unwrap_or_default();
    let store = TrustStore::open(places.state.as_deref())?;
    let digest = loaded.policy.digest.to_hex();
    if store.trusts(&workspace, loaded.policy.name(), &digest)? {
        return Ok(());
    }
    Err(PolicyError::Untrusted {
        name: loaded.policy.name().to_owned(),
        file: loaded.file.clone(),
        workspace,
    })
}

impl Library {
    /// One policy, composed.
    ///
    /// # Errors
    /// Anything at all is wrong, or there is no such policy.
    pub fn policy(&self, name: &str) -> Result<Loaded, PolicyError> {
        if !self.findings.is_empty() {
            return Err(PolicyError::Refused(self.findings.clone()));
        }
        let Some(text) = self.texts.iter().find(|text| text.name == name) else {
            let mut known: Vec<_> = self.texts.iter().map(|text| text.name.clone()).collect();
            known.sort();
            return Err(PolicyError::Unknown { name: name.to_owned(), known, from: None });
        };
        let policy = self.set.effective(name).map_err(PolicyError::Refused)?;
        Ok(Loaded { policy, layer: text.layer, file: text.file.clone(), configured: None })
    }

    /// The policy that a configuration names: of a layer that is trusted at least as far as the configuration.
    fn named(&self, named: &Named) -> Result<Loaded, PolicyError> {
        let loaded = match self.policy(&named.name) {
            Err(PolicyError::Unknown { name, known, .. }) => {
                return Err(PolicyError::Unknown { name, known, from: Some(named.place()) });
            }
            other => other?,
        };
        if loaded.layer <= named.deepest {
            return Ok(loaded);
        }
        let texts = self.texts.iter().filter(|text| text.layer <= named.deepest);
        let mut known: Vec<_> = texts.map(|text| text.name.clone()).collect();
        known.sort();
        Err(PolicyError::Unknown { name: named.name.clone(), known, from: Some(named.place()) })
    }
}

impl Library {
    /// Parses the texts that `eager` picks, the wanted ones, and all that these build on.
    fn parse(gathered: Gathered, wanted: &[String], eager: impl Fn(&Text) -> bool) -> Self {
        let Gathered { texts, findings } = gathered;
        let mut library = Self { set: PolicySet::default(), texts: Vec::new(), findings };
        let mut tried: Vec<&str> = Vec::new();
        let mut next: Vec<&Text> =
            texts.iter().filter(|text| eager(text) || wanted.contains(&text.name)).collect();
        while !next.is_empty() {
            for text in next {
                tried.push(&text.name);
                library.add(text);
            }
            let missing = library.set.missing();
            let open =
                |text: &&Text| missing.contains(&text.name) && !tried.contains(&text.name.as_str());
            next = texts.iter().filter(open).collect();
        }
        library.texts = texts;
        library
    }

    fn add(&mut self, text: &Text) {
        let origin = match text.layer {
            Layer::Shipped => Origin::Shipped,
            Layer::Managed => Origin::Managed,
            Layer::User => Origin::User,
            Layer::Given => Origin::Path,
            Layer::Project => Origin::Project,
        };
        let source = Source { file: &text.file, text: &text.text, origin };
        // The build script has read a shipped one, and put both into the executable; any other is read now.
        let read = text.read.and_then(unpack).map_or_else(|| parse(source), Ok);
        let policy = match read {
            Ok(policy) => policy,
            Err(findings) => return self.findings.extend(findings),
        };
        // A file is found by its name and its policy by the one inside: they must agree.
        if policy.name != text.name {
            let message =
                format!("the file is {}.yml and the policy in it is {}", text.name, policy.name);
            self.findings.push(Finding {
                code: "policy_name_differs",
                file: text.file.clone(),
                at: At::default(),
                message,
                help: Some(format!("write `name: {}`, or rename the file", text.name)),
                excerpt: String::new(),
            });
            return;
        }
        if let Err(finding) = self.set.add(policy) {
            self.findings.push(finding);
        }
    }

    /// Composes one policy and runs its own examples and tests: how many ran, and what is wrong.
    #[must_use]
    pub fn check(&self, text: &Text, now: Timestamp) -> (usize, Vec<Finding>) {
        if self.set.get(&text.name).is_none() {
            // It could not be parsed; that is already a finding.
            return (0, Vec::new());
        }
        match self.set.effective(&text.name) {
            Ok(policy) => {
                let checked = check(&policy, &text.text, now);
                (checked.ran, checked.findings)
            }
            Err(findings) => (0, findings),
        }
    }

    /// Runs the examples and tests of a policy and of all it builds on, unless this very
    /// composition is remembered to have passed. Shipped policies were checked when this was built.
    fn check_composition(&self, loaded: &Loaded, places: &Places) -> Result<(), PolicyError> {
        let mut names = Vec::new();
        parts(&loaded.policy, &mut names);
        let foreign = |text: &&Text| text.layer != Layer::Shipped && names.contains(&text.name);
        let texts: Vec<&Text> = self.texts.iter().filter(foreign).collect();
        let memory = Memory::of(&loaded.policy, places);
        if texts.is_empty() || memory.passed() {
            return Ok(());
        }
        let now = Timestamp::now();
        let findings: Vec<Finding> =
            texts.into_iter().flat_map(|text| self.check(text, now).1).collect();
        if findings.is_empty() {
            memory.remember();
            Ok(())
        } else {
            Err(PolicyError::Refused(findings))
        }
    }
}

/// The names of all that a policy is composed of and stays within.
fn parts(policy: &Effective, names: &mut Vec<String>) {
    names.extend(policy.layers.iter().map(|layer| layer.name.clone()));
    policy.within.iter().for_each(|other| parts(other, names));
}

#[cfg(test)]
mod tests {
    use runner_policy::{Query, Verdict, What, decide};

    use super::*;

    #[test]
    fn a_managed_ceiling_bounds_what_can_be_chosen() {
        let dir = tempfile::tempdir().unwrap();
        let folder = dir.path().join("runner/policies");
        std::fs::create_dir_all(&folder).unwrap();
        let places = Places {
            managed: dir.path().to_owned(),
            user: None,
            workspace: None,
            state: None,
            environment: crate::environment::Environment::default(),
        };
        let allowing = |line: &str| -> Vec<String> {
            let now = Timestamp::now();
            let query = Query { workspace: "/w", cwd: "/w", now, what: What::Line(line) };
            let allows = |policy: &Effective| decide(policy, &query).decision == Verdict::Allow;
            let all = choosable(&places).into_iter().filter(allows);
            all.map(|policy| policy.name().to_owned()).collect()
        };
        assert_eq!(allowing("make"), ["contained", "develop", "edit", "install"]);
        let text = "policy: 1\nname: top\nceiling: true\nfiles: { read: ['**'] }\ncommands:\n  - { id: look, allow: catalog }\n";
        std::fs::write(folder.join("top.yml"), text).unwrap();
        assert_eq!(allowing("make"), Vec::<String>::new());
        // Whoever is not root has no managed policies that count: then nothing can be chosen at all.
        let root = rustix::process::geteuid().is_root();
        assert_eq!(allowing("ls").contains(&"readonly".to_owned()), root);
    }

    /// Places with a policy of the user and one of the project, each called as its folder.
    fn with_defaults() -> (tempfile::TempDir, Places) {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for (folder, name) in [("config/runner", "mine"), ("project/.runner", "theirs")] {
            let folder = at(folder).join("policies");
            std::fs::create_dir_all(&folder).unwrap();
            let text = format!("policy: 1\nname: {name}\nextends: [develop]\n");
            std::fs::write(folder.join(format!("{name}.yml")), text).unwrap();
        }
        let places = Places {
            managed: at("etc"),
            user: Some(at("config")),
            workspace: Some(at("project")),
            state: Some(at("state")),
            environment: crate::environment::Environment::default(),
        };
        (dir, places)
    }

    fn configured(default: Option<(&str, Layer)>, within: Option<&str>) -> Choice {
        let named = |name: &str, deepest| Named {
            name: name.to_owned(),
            deepest,
            file: "config.yml".to_owned(),
            line: 3,
        };
        let default = default.map(|(name, deepest)| named(name, deepest));
        let within = within.map(|name| named(name, Layer::Project));
        Choice::Configured(Box::new(Configured { default, within }))
    }

    #[test]
    fn a_default_never_comes_from_a_layer_below_the_file_that_names_it() {
        let (_dir, places) = with_defaults();
        let ask = |default, within| load(&configured(default, within), &places, Trust::Required);
        for (name, deepest) in
            [("edit", Layer::Managed), ("edit", Layer::User), ("mine", Layer::User)]
        {
            let loaded = ask(Some((name, deepest)), None).unwrap();
            assert_eq!((loaded.policy.name(), loaded.policy.within.len()), (name, 0));
        }
        for (name, deepest, within) in [
            ("mine", Layer::Managed, None),
            ("theirs", Layer::User, None),
            ("theirs", Layer::Managed, Some("develop")),
            ("nosuch", Layer::User, None),
        ] {
            let error = ask(Some((name, deepest)), within).unwrap_err();
            let PolicyError::Unknown { from, .. } = &error else { panic!("{name}: {error}") };
            assert_eq!(from.as_deref(), Some("config.yml:3"), "{name}");
            assert_eq!(
                error.to_string(),
                format!("there is no policy {name}, which config.yml:3 names")
            );
        }
    }

    #[test]
    fn a_projects_policy_bounds_the_default_and_widens_nothing() {
        let (_dir, places) = with_defaults();
        let ask = |default, within| load(&configured(default, within), &places, Trust::Required);
        let allows = |policy: &Effective, line: &str| {
            let now = Timestamp::now();
            let query = Query { workspace: "/w", cwd: "/w", now, what: What::Line(line) };
            decide(policy, &query).decision == Verdict::Allow
        };
        // A policy that comes with runner needs no trust: it can only narrow.
        let edit = ask(Some(("edit", Layer::User)), Some("develop")).unwrap().policy;
        assert_eq!(edit.name(), "edit");
        assert!(allows(&edit, "npm test") && !allows(&edit, "rm -rf src"));
        let whole = ask(Some(("edit", Layer::User)), None).unwrap().policy;
        assert!(allows(&whole, "rm -rf src"), "the control");
        assert_ne!(edit.digest, whole.digest);
        let readonly = ask(None, Some("contained")).unwrap().policy;
        assert_eq!(readonly.name(), "readonly");
        assert!(allows(&readonly, "ls") && !allows(&readonly, "npm test"));
        // The project's own has to be trusted in its present form.
        let error = ask(Some(("edit", Layer::User)), Some("theirs")).unwrap_err();
        assert!(matches!(error, PolicyError::Untrusted { .. }), "{error}");
        let theirs = load(&Choice::Named("theirs".to_owned()), &places, Trust::ToLook).unwrap();
        let pin = super::super::Pin {
            workspace: places.workspace.clone().unwrap(),
            policy: "theirs".to_owned(),
            digest: theirs.policy.digest.to_hex().to_string(),
            at: "now".to_owned(),
        };
        TrustStore::open(places.state.as_deref()).unwrap().pin(pin).unwrap();
        let bounded = ask(Some(("edit", Layer::User)), Some("theirs")).unwrap().policy;
        assert!(allows(&bounded, "npm test") && !allows(&bounded, "rm -rf src"));
    }

    #[test]
    fn what_was_read_when_this_was_built_is_what_the_texts_say() {
        let gathered = gather_shipped();
        assert!(gathered.text("readonly").is_some());
        for text in gathered.texts {
            let source = Source { file: &text.file, text: &text.text, origin: Origin::Shipped };
            let unpacked = unpack(text.read.unwrap()).unwrap();
            assert_eq!(format!("{unpacked:?}"), format!("{:?}", parse(source).unwrap()));
        }
    }
}
