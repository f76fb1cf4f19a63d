//! Finding tools: sources, links, duplicates, broken ones.

use std::fs;
use std::os::unix::fs::symlink;

use super::*;
use crate::error::Failure as _;

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
    for folder in ["config/runner/tools", "project/.runner/tools", "given"] {
        fs::create_dir_all(at(folder)).unwrap();
    }
    Fixture { dir, places }
}

impl Fixture {
    fn put(&self, path: &str, text: &str) {
        fs::write(self.dir.path().join(path), text).unwrap();
    }

    fn tool(&self, path: &str) {
        let name = path.rsplit('/').next().unwrap().trim_end_matches(".yml");
        self.put(path, &format!("name: {name}\ndescription: x\ncode: export const execute = 1\n"));
    }

    fn find(&self, given: &[&str]) -> Library {
        let given: Vec<_> = given.iter().map(|name| self.dir.path().join(name)).collect();
        let config = crate::config::load(&self.places).unwrap();
        Library::find(&self.places, &given, &config)
    }
}

fn name(text: &str) -> ToolName {
    text.parse().unwrap()
}

/// The tools that are not ours.
fn own(library: &Library) -> Vec<(String, Layer)> {
    let own = library.tools.iter().filter(|tool| tool.layer != Layer::Shipped);
    own.map(|tool| (tool.name.to_string(), tool.layer)).collect()
}

#[test]
fn tools_are_found_in_every_place() {
    let fixture = fixture();
    fixture.tool("config/runner/tools/one.yml");
    fixture.tool("project/.runner/tools/two.yml");
    fixture.put("project/.runner/tools/three.tool.ts", "export const tool = {};");
    fixture.put("given/four.tool.js", "export default {};");
    for ignored in ["runner.d.ts", "helper.ts", "package.json", ".hidden.yml"] {
        fixture.put(&format!("given/{ignored}"), "x");
    }
    let library = fixture.find(&["given"]);
    let expected = [
        ("four", Layer::Given),
        ("one", Layer::User),
        ("three", Layer::Project),
        ("two", Layer::Project),
    ];
    assert_eq!(own(&library), expected.map(|(name, layer)| (name.to_owned(), layer)));
    assert!(library.broken.is_empty() && library.findings.is_empty());
    let two = library.tool(&name("two")).unwrap();
    assert!(two.definition().unwrap().is_some());
    assert!(library.tool(&name("three")).unwrap().definition().unwrap().is_none());
}

#[test]
fn a_name_in_two_sources_is_refused_with_both_places() {
    let fixture = fixture();
    fixture.tool("config/runner/tools/same.yml");
    fixture.put("project/.runner/tools/same.tool.ts", "x");
    fixture.tool("project/.runner/tools/other.yml");
    let library = fixture.find(&[]);
    let error = library.tool(&name("same")).unwrap_err();
    assert_eq!(error.code(), "tool_name_taken");
    let text = error.to_string();
    assert!(
        text.contains("config/runner/tools/same.yml") && text.contains("same.tool.ts"),
        "{text}"
    );
    // The control: the others are not disturbed.
    assert!(library.tool(&name("other")).is_ok());
}

#[test]
fn two_forms_in_one_folder_are_two_tools() {
    let fixture = fixture();
    fixture.tool("project/.runner/tools/same.yml");
    fixture.put("project/.runner/tools/same.tool.ts", "x");
    assert!(fixture.find(&[]).is_twice(&name("same")));
}

#[test]
fn the_same_folder_by_another_way_is_one_source() {
    let fixture = fixture();
    fixture.tool("project/.runner/tools/one.yml");
    symlink(fixture.dir.path().join("project/.runner/tools"), fixture.dir.path().join("way"))
        .unwrap();
    let library = fixture.find(&["project/.runner/tools", "way"]);
    assert_eq!(own(&library), [("one".to_owned(), Layer::Project)]);
}

#[test]
fn links_are_refused_and_plain_files_are_not() {
    let fixture = fixture();
    fixture.tool("given/real.yml");
    fixture.put("secret", "name: x\n");
    let tools = fixture.dir.path().join("project/.runner/tools");
    symlink(fixture.dir.path().join("secret"), tools.join("out.yml")).unwrap();
    symlink("/dev/zero", tools.join("zero.yml")).unwrap();
    symlink("real.yml", fixture.dir.path().join("given/inside.yml")).unwrap();
    let library = fixture.find(&["given"]);
    assert_eq!(own(&library), [("real".to_owned(), Layer::Given)]);
    let broken: Vec<_> = library.broken.iter().map(|it| it.findings[0].code).collect();
    assert_eq!(broken, ["tool_link"; 3]);
    assert_eq!(library.tool(&name("out")).unwrap_err().code(), "tool_refused");
}

#[test]
fn a_folder_behind_a_link_is_refused() {
    let fixture = fixture();
    fixture.tool("given/one.yml");
    let project = fixture.dir.path().join("project");
    fs::remove_dir(project.join(".runner/tools")).unwrap();
    symlink(fixture.dir.path().join("given"), project.join(".runner/tools")).unwrap();
    let library = fixture.find(&[]);
    assert_eq!(own(&library), []);
    assert_eq!(library.findings[0].code, "tool_folder_invalid");
    assert_eq!(library.tool(&name("one")).unwrap_err().findings().len(), 1);
    // Whoever names the folder means it.
    assert_eq!(own(&fixture.find(&["project/.runner/tools"])).len(), 1);
}

#[test]
fn one_broken_tool_does_not_hide_the_others() {
    let fixture = fixture();
    fixture.tool("project/.runner/tools/good.yml");
    fixture.put("project/.runner/tools/bad.yml", "name: bad\ndescripton: x\n");
    fixture.put("project/.runner/tools/Odd name.yml", "x");
    fixture.put("project/.runner/tools/old.yaml", "x");
    fixture.put("project/.runner/tools/new.tool.mjs", "x");
    fixture.put("project/.runner/tools/big.yml", &"x".repeat(2 << 20));
    fs::write(fixture.dir.path().join("project/.runner/tools/bytes.yml"), b"name: \xff").unwrap();
    fs::create_dir(fixture.dir.path().join("project/.runner/tools/folder.yml")).unwrap();
    let library = fixture.find(&[]);
    assert!(library.tool(&name("good")).unwrap().definition().is_ok());
    let error = library.tool(&name("bad")).unwrap().definition().unwrap_err();
    assert_eq!(error.code(), "tool_refused");
    assert!(error.findings().iter().any(|it| it.code == "unknown_key" && it.at.line == 2));
    let codes: Vec<_> = library.broken.iter().map(|it| it.findings[0].code).collect();
    assert_eq!(
        codes,
        ["bad_name", "too_large", "not_utf8", "tool_not_a_file", "bad_name", "bad_name"]
    );
}

#[test]
fn an_unknown_name_is_answered_with_the_nearest() {
    let fixture = fixture();
    fixture.tool("given/deploy_site.yml");
    let error = fixture.find(&["given"]).tool(&name("deploy_sit")).unwrap_err();
    assert_eq!(error.code(), "tool_not_found");
    assert!(error.hint().is_some_and(|hint| hint.contains("deploy_site")));
}

#[test]
fn nothing_is_used_when_a_named_folder_cannot_be_looked_into() {
    let fixture = fixture();
    fixture.tool("project/.runner/tools/one.yml");
    fixture.put("file", "x");
    for (given, why) in [("nowhere", "there is no such folder"), ("file", "it is not a folder")] {
        let library = fixture.find(&["given", given]);
        let error = library.tool(&name("one")).unwrap_err();
        assert_eq!(
            (error.code().as_str(), error.kind()),
            ("tool_folder_invalid", crate::exit::Kind::Usage)
        );
        let path = fixture.dir.path().join(given);
        assert_eq!(error.to_string(), format!("--tools {}: {why}", path.display()));
        assert!(library.whole().is_err());
    }
    // The control: with folders that are there it is found.
    assert!(fixture.find(&["given"]).tool(&name("one")).is_ok());
}

#[test]
fn one_file_can_be_looked_at() {
    let fixture = fixture();
    fixture.tool("given/one.yml");
    let file = fixture.dir.path().join("given/one.yml");
    assert!(Library::of_file(&file).tool(&name("one")).is_ok());
    let nowhere = Library::of_file(&fixture.dir.path().join("given/two.yml"));
    assert_eq!(nowhere.tool(&name("two")).unwrap_err().code(), "tool_refused");
}

#[test]
fn an_example_waits_to_be_switched_on_and_then_holds_its_name() {
    let fixture = fixture();
    let example = name("todo_finder");
    let library = fixture.find(&[]);
    assert_eq!(library.tool(&example).unwrap().switch, Switch::Example);
    assert_eq!(library.tool(&example).unwrap().switched_on().unwrap_err().code(), "tool_disabled");
    fixture.put("config/runner/config.yml", "tools: { todo_finder: { enabled: true } }");
    let library = fixture.find(&[]);
    assert!(library.tool(&example).unwrap().switched_on().is_ok());
    fixture.tool("project/.runner/tools/todo_finder.yml");
    let error = fixture.find(&[]).tool(&example).unwrap_err();
    let ToolError::Twice { places, .. } = &error else { panic!("{error}") };
    assert_eq!(places[0], "tools/todo_finder.yml");
    assert!(places[1].ends_with("project/.runner/tools/todo_finder.yml"), "{places:?}");
    fixture.put("config/runner/config.yml", "");
    let library = fixture.find(&[]);
    let own = library.tool(&example).unwrap();
    assert_eq!((own.origin(), own.replaces_shipped), (Origin::Custom, true));
}

#[test]
fn the_configuration_says_where_tools_are_looked_for() {
    let fixture = fixture();
    fixture.tool("config/runner/tools/one.yml");
    fixture.tool("project/.runner/tools/two.yml");
    fixture.tool("given/three.yml");
    fixture.put("config/runner/config.yml", "autoLoadCustomTools: false");
    assert_eq!(own(&fixture.find(&["given"])), [("three".to_owned(), Layer::Given)]);
    fixture.put("config/runner/config.yml", "tools: { one: { enabled: false } }");
    let library = fixture.find(&[]);
    assert!(matches!(library.tool(&name("one")).unwrap().switch, Switch::Off(_)));
    assert_eq!(library.tool(&name("two")).unwrap().switch, Switch::On);
}

#[test]
fn the_teams_tools_are_for_everybody() {
    if !rustix::process::geteuid().is_root() {
        return;
    }
    let fixture = fixture();
    for folder in ["etc/runner", "team"] {
        fs::create_dir_all(fixture.dir.path().join(folder)).unwrap();
    }
    let team = fixture.dir.path().join("team");
    let managed = |more: &str| {
        let text = format!("team: {{ folder: {} }}\n{more}\n", team.display());
        fixture.put("etc/runner/config.yml", &text);
    };
    managed("");
    fixture.tool("team/scan.yml");
    fixture.tool("project/.runner/tools/mine.yml");
    fixture.tool("project/.runner/tools/scan.yml");
    fixture.put("config/runner/config.yml", "tools: { scan: { enabled: false } }");
    assert!(fixture.find(&[]).is_twice(&name("scan")), "nobody else can have its name");
    fs::remove_file(fixture.dir.path().join("project/.runner/tools/scan.yml")).unwrap();
    let library = fixture.find(&[]);
    let scan = library.tool(&name("scan")).unwrap();
    assert_eq!(
        (scan.origin(), &scan.switch),
        (Origin::Team, &Switch::On),
        "nobody switches it off"
    );
    assert!(library.tool(&name("mine")).is_ok());
    managed("disableLocalTools: true");
    let library = fixture.find(&[]);
    assert_eq!(own(&library), [("scan".to_owned(), Layer::Managed)]);
    let given = fixture.find(&["given"]).whole().unwrap_err();
    assert!(given.to_string().contains("disableLocalTools"), "{given}");
}
