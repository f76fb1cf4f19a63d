//! Which paths are outside, and how that is told.

use runner_policy::limits::Isolation;
use runner_wire::Bytes;

use super::*;
use crate::engine::docker::settings::tests as settings;

/// A sandbox that shows `/usr`, scratch and the workspace, which is `/home/ann/a b:c,d`.
fn plan() -> SandboxPlan {
    settings::plan(Isolation::Strict)
}

#[test]
fn words_that_name_what_is_not_shown() {
    let plan = plan();
    for (word, expected) in [
        ("/home/ann/x.js", Some("/home/ann/x.js")),
        ("--config=/srv/x.yml", Some("/srv/x.yml")),
        ("../x", Some("/home/ann/x")),
        ("/usr/../srv", Some("/srv")),
        ("/home/ann/a b:c,d/x", None),
        ("x", None),
        ("/usr/bin/x", None),
        ("/tmp/x", None),
        ("/proc/cpuinfo", None),
        ("/home", None),
        ("/", None),
        ("A=/home/ann/x", None),
        ("s/a/b/", None),
    ] {
        assert_eq!(outside(&plan, word), expected.map(PathBuf::from), "{word}");
    }
    // What an image of its own holds is not known.
    let foreign = SandboxPlan { image: Image::Reference("x".to_owned()), ..plan };
    assert_eq!(outside(&foreign, "/home/ann/x.js"), None);
}

#[test]
fn a_program_outside_is_named_with_its_path() {
    let not_found = |program: &str| Verdict::NotFound { program: Bytes::from(program) };
    let told = error(&plan(), &not_found("/srv/bin/server"), None).unwrap();
    assert_eq!(told.code, "program_not_found");
    assert!(told.message.ends_with("; /srv/bin/server is outside it"), "{}", told.message);
    assert!(told.suggestion.unwrap().contains("copy it into the workspace"));
    // The control: one that the sandbox would show.
    let told = error(&plan(), &not_found("/usr/bin/nosuch"), None).unwrap();
    assert!(!told.message.contains("outside"), "{}", told.message);
}

#[test]
fn a_name_is_looked_for_on_the_callers_path() {
    let folder = tempfile::Builder::new().tempdir_in("/var/tmp").unwrap();
    std::fs::write(folder.path().join("mine"), "").unwrap();
    let path = std::env::join_paths([folder.path()]).unwrap();
    let found = missing(&plan(), "mine", Some(&path));
    assert_eq!(found, Some(folder.path().join("mine")));
    assert_eq!(missing(&plan(), "other", Some(&path)), None);
    assert_eq!(missing(&plan(), "mine", None), None, "a tool is not told");
}
