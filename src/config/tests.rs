//! Files in three layers, and what comes of them.

use std::fs;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::PathBuf;
use std::time::Duration;

use runner_policy::finding::Finding;

use super::*;
use crate::error::Failure as _;
use crate::policy_files::{Choice, Named, Places};

struct Fixture {
    dir: tempfile::TempDir,
    places: Places,
}

impl Fixture {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        let at = |name: &str| dir.path().join(name);
        for folder in ["etc/runner", "config/runner", "project/.runner"] {
            fs::create_dir_all(at(folder)).unwrap();
            fs::set_permissions(at(folder), fs::Permissions::from_mode(0o755)).unwrap();
        }
        let places = Places {
            managed: at("etc"),
            user: Some(at("config")),
            workspace: Some(at("project")),
            state: None,
            environment: crate::environment::Environment::default(),
        };
        Self { dir, places }
    }

    fn path(&self, layer: Layer) -> PathBuf {
        path(layer, &self.places).unwrap()
    }

    fn put(&self, layer: Layer, text: &str) -> &Self {
        fs::write(self.path(layer), text).unwrap();
        fs::set_permissions(self.path(layer), fs::Permissions::from_mode(0o644)).unwrap();
        self
    }

    fn load(&self) -> Config {
        load(&self.places).map_err(|error| format!("{:#?}", error.findings())).unwrap()
    }

    fn findings(&self) -> Vec<Finding> {
        load(&self.places).unwrap_err().findings().to_vec()
    }
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

fn findings(layer: Layer, text: &str) -> Vec<(&'static str, u32, u32)> {
    let found = read(layer, "config.yml", text).err().unwrap_or_default();
    found.iter().map(|it| (it.code, it.at.line, it.at.column)).collect()
}

#[test]
fn without_a_file_the_defaults_hold() {
    let fixture = Fixture::new();
    let config = fixture.load();
    assert_eq!(config, Config::default());
    let pool = Pool { size: 8, ttl: Duration::from_secs(600), memory: 512 << 20 };
    assert_eq!(config.pool(), pool);
    let limits = config.limits(&"any".parse().unwrap());
    assert_eq!((limits.concurrency, limits.queue), (10, 100));
    assert_eq!((limits.calls_per_minute, limits.daily_cost), (None, Some(10_000_000)));
    assert_eq!(config.approvals().grant, Duration::from_secs(3600));
    assert!(config.is_on(Flag::ShowTokenCosts) && !config.is_on(Flag::DisableLocalTools));
}

#[test]
fn a_file_of_comments_says_nothing() {
    let fixture = Fixture::new();
    fixture.put(Layer::User, "# pool: { size: 1 }\n\n   # more\n");
    assert_eq!(fixture.load(), Config::default());
    fixture.put(Layer::Project, "");
    assert_eq!(fixture.load(), Config::default());
}

#[test]
fn the_stronger_layer_wins_and_the_source_is_told() {
    let fixture = Fixture::new();
    fixture.put(Layer::Project, "pool: { size: 2, ttl: 5m }\nshowTokenCosts: false\n");
    fixture.put(Layer::User, "pool:\n  size: 16\n");
    let config = fixture.load();
    assert_eq!((config.pool().size, config.pool().ttl), (16, Duration::from_secs(300)));
    let size = &config.figure(Figure::PoolSize).source;
    assert_eq!((size.layer, size.line), (Layer::User, Some(2)));
    assert_eq!(size.file, Some(fixture.path(Layer::User).display().to_string()));
    assert_eq!(config.figure(Figure::PoolTtl).source.layer, Layer::Project);
    assert!(!config.is_on(Flag::ShowTokenCosts));
    if is_root() {
        fixture.put(Layer::Managed, "pool: { size: 0 }\ndisableLocalTools: true\n");
        let config = fixture.load();
        assert_eq!(config.pool().size, 0);
        assert!(config.is_on(Flag::DisableLocalTools));
    }
}

#[test]
fn a_ceiling_bounds_everybody_and_fixes_nobody() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    let managed = "ceiling: { pool: { size: 4 }, maxExecutionTime: 5m, limits: { breaker: { pause: 1m } } }\n";
    fixture.put(Layer::Managed, managed);
    fixture.put(
        Layer::User,
        "maxExecutionTime: 1m\ntools: { slow: { maxExecutionTime: 1h } }\npool: { size: 2 }",
    );
    let config = fixture.load();
    assert_eq!(config.pool().size, 2);
    let limits = |name: &str| config.limits(&name.parse().unwrap());
    assert_eq!(limits("any").max_execution_time, Some(Duration::from_secs(60)));
    assert_eq!(limits("slow").max_execution_time, Some(Duration::from_secs(300)));
    // More is tighter here.
    assert_eq!(limits("any").breaker.pause, Duration::from_secs(60));
    fs::remove_file(fixture.path(Layer::User)).unwrap();
    let config = fixture.load();
    assert_eq!(config.pool().size, 4, "a default gives way too");
    assert_eq!(config.figure(Figure::PoolSize).source.layer, Layer::Managed);
}

#[test]
fn single_tools_have_their_own() {
    let fixture = Fixture::new();
    fixture.put(
        Layer::User,
        "tools:\n  probe: { enabled: true, concurrency: 2, callsPerMinute: 6 }\n  other: { enabled: false }\n",
    );
    fixture.put(Layer::Project, "tools: { probe: { enabled: false, queue: 3 } }");
    let config = fixture.load();
    let probe = "probe".parse().unwrap();
    assert_eq!(config.enabled(&probe).map(|it| it.value), Some(true), "the user wins");
    assert_eq!(config.enabled(&"other".parse().unwrap()).map(|it| it.value), Some(false));
    assert_eq!(config.enabled(&"third".parse().unwrap()), None);
    let limits = config.limits(&probe);
    assert_eq!((limits.concurrency, limits.queue, limits.calls_per_minute), (2, 3, Some(6)));
}

#[test]
fn a_project_can_only_tighten() {
    for (text, code) in [
        ("pool: { size: 9 }", "project_loosens"),
        ("maxExecutionTime: none\nlimits: { concurrency: 11 }", "project_loosens"),
        ("limits: { dailyCost: none }", "project_loosens"),
        ("limits: { breaker: { errors: 51% } }", "project_loosens"),
        ("limits: { breaker: { pause: 29s } }", "project_loosens"),
        ("approvals: { grant: 2h }", "project_loosens"),
        ("tools: { x: { enabled: true } }", "project_loosens"),
        ("tools: { x: { concurrency: 20 } }", "project_loosens"),
        ("autoLoadCustomTools: true", "project_loosens"),
        ("scan: { skip: [secrets] }", "wrong_layer"),
        ("disableLocalTools: false", "wrong_layer"),
        ("team: { folder: /srv/tools }", "wrong_layer"),
        ("ceiling: { pool: { size: 1 } }", "wrong_layer"),
        ("mcp: { servers: { s: { command: [x] } } }", "wrong_layer"),
        ("mcp: { servers: { s: { enabled: false, env: { A: b } } } }", "wrong_layer"),
        ("mcp: { servers: { s: { enabled: true } } }", "project_loosens"),
    ] {
        let codes: Vec<_> = findings(Layer::Project, text).into_iter().map(|it| it.0).collect();
        assert_eq!(codes, [code], "{text}");
    }
    let tightening = "pool: { size: 0 }\nlimits: { concurrency: 1, dailyCost: 0, breaker: { errors: 1%, pause: 1h } }\ntools: { x: { enabled: false } }\nautoLoadCustomTools: false\nshowTokenCosts: true\ncontext: { window: 1000000 }\nmcp: { servers: { s: { enabled: false } } }\n";
    assert_eq!(findings(Layer::Project, tightening), []);
}

#[test]
fn a_project_loosens_for_no_single_tool_what_the_user_says_of_all() {
    let fixture = Fixture::new();
    let project = "tools:\n  probe: { callsPerMinute: 1000000, maxExecutionTime: 1h, concurrency: 2 }\n  exec: { concurrency: 9 }\n";
    fixture.put(Layer::Project, project);
    let limits = |name: &str| fixture.load().limits(&name.parse().unwrap());
    // The control: where the user says nothing, it holds.
    assert_eq!(limits("probe").calls_per_minute, Some(1_000_000));
    assert_eq!(limits("exec").concurrency, 9);
    let all = "maxExecutionTime: 1m\nlimits: { callsPerMinute: 5, concurrency: 4 }\n";
    fixture.put(Layer::User, all);
    let probe = limits("probe");
    assert_eq!(probe.calls_per_minute, Some(5));
    assert_eq!(probe.max_execution_time, Some(Duration::from_secs(60)));
    assert_eq!(probe.concurrency, 2, "tighter is taken");
    assert_eq!(limits("exec").concurrency, 4);
    // What is in force is told with where it came from.
    let config = fixture.load();
    let told = config.tools().find(|(name, _)| name.as_str() == "probe").unwrap().1;
    assert_eq!(told.figures[&Figure::CallsPerMinute].source.layer, Layer::User);
    // The user's own exception from the user's own rule.
    fixture.put(Layer::User, &format!("{all}tools: {{ probe: {{ callsPerMinute: 50 }} }}\n"));
    assert_eq!(limits("probe").calls_per_minute, Some(50));
    if is_root() {
        fixture.put(Layer::Managed, "limits: { callsPerMinute: 3 }\n");
        assert_eq!(limits("probe").calls_per_minute, Some(3));
    }
}

#[test]
fn a_server_is_defined_whole_by_one_layer_and_switched_off_by_any() {
    let fixture = Fixture::new();
    let name = "s".parse().unwrap();
    fixture.put(Layer::Project, "mcp: { servers: { s: { enabled: false } } }");
    let config = fixture.load();
    let said = config.server(&name).unwrap();
    assert!(said.server.is_none() && !said.is_on(), "a project alone makes no server");
    fixture.put(Layer::User, "mcp: { servers: { s: { command: [mine, 1], timeout: 30s } } }");
    let config = fixture.load();
    let said = config.server(&name).unwrap();
    let server = &said.server.as_ref().unwrap().value;
    assert_eq!(
        (server.command.as_slice(), server.timeout),
        (&["mine", "1"].map(str::to_owned)[..], Some(30_000))
    );
    assert!(!said.is_on(), "the project switched it off");
    let on = "mcp: { servers: { s: { command: [mine], enabled: true } } }";
    fixture.put(Layer::User, on);
    assert!(fixture.load().server(&name).unwrap().is_on(), "the user wins");
    if is_root() {
        fixture.put(Layer::Managed, "mcp: { servers: { s: { command: [theirs] } } }");
        let config = fixture.load();
        let server = config.server(&name).unwrap().server.as_ref().unwrap();
        assert_eq!(
            (server.source.layer, server.value.command[0].as_str()),
            (Layer::Managed, "theirs")
        );
        assert_eq!(server.value.timeout, None, "nothing of the user's is mixed in");
    }
}

#[test]
fn a_user_cannot_set_what_binds_everybody() {
    for text in
        ["disableLocalTools: true", "team: { folder: /x }", "ceiling: { pool: { size: 1 } }"]
    {
        assert_eq!(findings(Layer::User, text)[0].0, "wrong_layer", "{text}");
        assert_eq!(findings(Layer::Managed, text), [], "{text}");
    }
    assert_eq!(findings(Layer::User, "scan: { skip: [node_modules, a/b/] }"), []);
}

#[test]
fn what_is_kept_to_undo_is_no_matter_of_a_project() {
    for text in ["undo: { size: 1B }", "undo: { age: 1ms }"] {
        assert_eq!(findings(Layer::Project, text)[0].0, "wrong_layer", "{text}: not even less");
        assert_eq!(findings(Layer::User, text), [], "{text}");
    }
    for wrong in ["undo: { size: none }", "undo: { age: 0s }", "undo: { age: 7d }"] {
        assert_eq!(findings(Layer::User, wrong)[0].0, "bad_figure", "{wrong}");
    }
    let fixture = Fixture::new();
    fixture.put(Layer::User, "undo: { size: 2GiB, age: 24h }");
    let kept = fixture.load().undo();
    assert_eq!((kept.size, kept.age.as_secs()), (2 << 30, 24 * 3600));
    if is_root() {
        fixture.put(Layer::Managed, "ceiling: { undo: { size: 1MiB } }");
        assert_eq!(fixture.load().undo().size, 1 << 20);
    }
}

#[test]
fn what_is_wrong_is_told_with_its_place_and_the_right_form() {
    for (text, expected) in [
        ("poool: { size: 1 }", ("unknown_key", 1, 1)),
        ("pool: { sise: 1 }", ("unknown_key", 1, 9)),
        ("pool: 3", ("wrong_type", 1, 7)),
        ("pool:\n  size: eight\n", ("bad_figure", 2, 9)),
        ("maxExecutionTime: 60000", ("bad_figure", 1, 19)),
        ("size: 3", ("unknown_key", 1, 1)),
        ("showTokenCosts: yes", ("wrong_type", 1, 17)),
        ("tools: { '../x': { enabled: false } }", ("bad_name", 1, 10)),
        ("tools: { x: { enable: false } }", ("unknown_key", 1, 15)),
        ("tools: { x: off }", ("wrong_type", 1, 13)),
        ("a: 1\na: 2", ("unknown_key", 1, 1)),
        ("pool: { size: 1 }\npool: { size: 2 }", ("duplicate_key", 2, 1)),
        ("pool: &a { size: 1 }", ("anchor", 1, 7)),
        ("pool: { <<: 1 }", ("merge_key", 1, 9)),
        ("- pool", ("wrong_type", 1, 1)),
        ("scan: { skip: [../x] }", ("bad_folder", 1, 16)),
        ("scan: { skip: [/etc] }", ("bad_folder", 1, 16)),
        ("scan: { skip: ['a//b'] }", ("bad_folder", 1, 16)),
        ("mcp: { server: {} }", ("unknown_key", 1, 8)),
        ("mcp: { servers: { a__b: { command: [x] } } }", ("bad_name", 1, 19)),
        ("mcp: { servers: { s: {} } }", ("missing_key", 1, 19)),
        ("mcp: { servers: { s: { timeout: 1s } } }", ("missing_key", 1, 19)),
        ("mcp: { servers: { s: { command: [] } } }", ("empty", 1, 33)),
        ("mcp: { servers: { s: { command: x } } }", ("wrong_type", 1, 33)),
        ("mcp: { servers: { s: { command: [x], env: { A=B: c } } } }", ("bad_name", 1, 45)),
        ("mcp: { servers: { s: { command: [x], policy: ./p.yml } } }", ("bad_name", 1, 46)),
        ("mcp: { servers: { s: { command: [x], timeout: 5 } } }", ("bad_figure", 1, 47)),
    ] {
        assert!(
            findings(Layer::User, text).contains(&expected),
            "{text}: {:?}",
            findings(Layer::User, text)
        );
    }
    let help = |text: &str| read(Layer::User, "c", text).unwrap_err()[0].help.clone().unwrap();
    assert_eq!(help("poool: 1"), "did you mean `pool`?");
    assert_eq!(help("size: 3"), "write `pool: { size: … }`");
    assert!(help("maxExecutionTime: 60000").contains("such as 500ms, 30s"));
    let ceiling = read(Layer::Managed, "c", "ceiling: { showTokenCosts: true }").unwrap_err();
    assert_eq!(ceiling[0].code, "no_ceiling");
    assert_eq!(findings(Layer::Managed, "team: { folder: tools }")[0].0, "bad_folder");
}

#[test]
fn one_bad_file_refuses_everything() {
    let fixture = Fixture::new();
    fixture.put(Layer::User, "pool: { size: 3 }").put(Layer::Project, "x: 1");
    assert_eq!(fixture.findings().len(), 1);
    fs::remove_file(fixture.path(Layer::Project)).unwrap();
    assert_eq!(fixture.load().pool().size, 3);
}

#[test]
fn a_file_must_be_what_it_seems() {
    let fixture = Fixture::new();
    let project = fixture.path(Layer::Project);
    fs::write(fixture.dir.path().join("elsewhere.yml"), "pool: { size: 1 }").unwrap();
    symlink("../../elsewhere.yml", &project).unwrap();
    assert_eq!(fixture.findings()[0].code, "config_link_outside");
    fs::remove_file(&project).unwrap();
    fs::create_dir(&project).unwrap();
    assert_eq!(fixture.findings()[0].code, "config_not_a_file");
    fs::remove_dir(&project).unwrap();
    fs::write(&project, b"pool: \xff").unwrap();
    assert_eq!((fixture.findings()[0].code, fixture.findings()[0].at.column), ("not_utf8", 7));
    fs::remove_file(&project).unwrap();
    fs::remove_dir(project.parent().unwrap()).unwrap();
    fs::create_dir(fixture.dir.path().join("other")).unwrap();
    fs::write(fixture.dir.path().join("other/config.yml"), "pool: { size: 1 }").unwrap();
    symlink("../other", project.parent().unwrap()).unwrap();
    assert_eq!(fixture.findings()[0].code, "config_folder_invalid");
}

#[test]
fn the_managed_file_is_believed_only_if_root_alone_can_change_it() {
    if !is_root() {
        return;
    }
    let fixture = Fixture::new();
    fixture.put(Layer::Managed, "pool: { size: 1 }");
    assert_eq!(fixture.load().pool().size, 1);
    let file = fixture.path(Layer::Managed);
    fs::set_permissions(&file, fs::Permissions::from_mode(0o666)).unwrap();
    assert_eq!(fixture.findings()[0].code, "managed_writable");
    fs::set_permissions(&file, fs::Permissions::from_mode(0o644)).unwrap();
    std::os::unix::fs::chown(&file, Some(1000), None).unwrap();
    assert_eq!(fixture.findings()[0].code, "managed_not_root");
}

/// The default policy in a workspace, and the policy that bounds it, each with its layer.
fn defaults(config: &Config, workspace: &str) -> [Option<(String, u32)>; 2] {
    let told =
        |named: Option<Named>| named.map(|it| (format!("{} {:?}", it.name, it.deepest), it.line));
    match config.choice(&Choice::Default, workspace.as_ref()) {
        Choice::Configured(it) => [told(it.default), told(it.within)],
        Choice::Default => [None, None],
        other => panic!("{other:?}"),
    }
}

#[test]
fn the_default_policy_is_the_strongest_layers_and_a_projects_only_bounds_it() {
    let fixture = Fixture::new();
    let some = |text: &str, line| Some((text.to_owned(), line));
    assert_eq!(defaults(&fixture.load(), "/w"), [None, None]);
    fixture.put(Layer::Project, "# x\npolicy: theirs");
    assert_eq!(defaults(&fixture.load(), "/w"), [None, some("theirs Project", 2)]);
    fixture.put(Layer::User, "policy: edit");
    let both = [some("edit User", 1), some("theirs Project", 2)];
    assert_eq!(defaults(&fixture.load(), "/w"), both);
    // Whoever chooses has chosen.
    let chosen = Choice::Named("develop".to_owned());
    assert_eq!(fixture.load().choice(&chosen, "/w".as_ref()), chosen);
    if !is_root() {
        return;
    }
    let link = fixture.dir.path().join("link");
    symlink("/w/linked", &link).unwrap();
    let text = format!(
        "policy: readonly\nworkspaces:\n  /w/a: {{ policy: develop }}\n  /w/a/b/: {{ policy: paranoid }}\n  {}: {{ policy: base }}\n",
        link.display()
    );
    fixture.put(Layer::Managed, &text);
    let config = fixture.load();
    for (workspace, expected) in [
        ("/w", some("readonly Managed", 1)),
        ("/w/ab", some("readonly Managed", 1)),
        ("/w/a", some("develop Managed", 3)),
        ("/w/a/c", some("develop Managed", 3)),
        ("/w/a/b", some("paranoid Managed", 4)),
        ("/w/a/b/c", some("paranoid Managed", 4)),
        (link.to_str().unwrap(), some("base Managed", 5)),
    ] {
        assert_eq!(defaults(&config, workspace)[0], expected, "{workspace}");
    }
}

#[test]
fn a_default_policy_is_named_and_bound_to_its_layer() {
    for (layer, text, code) in [
        (Layer::User, "policy: ./mine.yml", "bad_name"),
        (Layer::User, "policy: [edit]", "wrong_type"),
        (Layer::User, "policy: Edit", "bad_name"),
        (Layer::User, "workspaces: { /w: { policy: edit } }", "wrong_layer"),
        (Layer::Project, "workspaces: { /w: { policy: edit } }", "wrong_layer"),
        (Layer::Managed, "workspaces: { w: { policy: edit } }", "bad_folder"),
        (Layer::Managed, "workspaces: { /w: { policies: edit } }", "unknown_key"),
        (Layer::Managed, "workspaces: { /w: edit }", "wrong_type"),
        (Layer::Managed, "ceiling: { policy: edit }", "no_ceiling"),
    ] {
        let found = findings(layer, text);
        assert_eq!(found.iter().map(|it| it.0).collect::<Vec<_>>(), [code], "{text}");
    }
}

/// `RUNNER_BLESS=1` writes it anew.
#[test]
fn the_schema_in_the_repository_is_the_schema() {
    let file = concat!(env!("CARGO_MANIFEST_DIR"), "/src/config/config.schema.json");
    let text = format!("{}\n", serde_json::to_string_pretty(&schema()).unwrap());
    if std::env::var_os("RUNNER_BLESS").is_some() {
        fs::write(file, text).unwrap();
        return;
    }
    assert_eq!(fs::read_to_string(file).unwrap_or_default(), text, "RUNNER_BLESS=1 writes it anew");
}

#[test]
fn the_schema_agrees_with_the_reader() {
    let schema = schema();
    let validator = jsonschema::validator_for(&schema).unwrap();
    let full = serde_json::json!({
        "pool": { "size": 0, "ttl": "10m", "memory": "512MiB" }, "scan": { "skip": ["a"] },
        "team": { "folder": "/srv" }, "showTokenCosts": true, "autoLoadCustomTools": false,
        "disableLocalTools": true, "maxExecutionTime": "none", "context": { "window": 8000 },
        "limits": { "callsPerMinute": 6, "concurrency": 1, "queue": 0, "totalTime": "1h", "dailyCost": 0.5,
            "breaker": { "errors": "50%", "calls": 1, "window": "1m", "pause": "1s" } },
        "approvals": { "pending": "1h", "grant": "1h", "session": "1h", "longest": "1h" },
        "tools": { "x": { "enabled": true, "maxExecutionTime": "1s", "callsPerMinute": 1, "concurrency": 1, "queue": 1 } },
        "ceiling": { "pool": { "size": 1 }, "maxExecutionTime": "1m" },
        "mcp": { "servers": { "files": { "enabled": true, "command": ["node", "server.js", 8080], "env": { "LEVEL": "1" },
            "policy": "develop", "tools": ["read"], "timeout": "30s" }, "other": { "enabled": false } } },
    });
    assert!(validator.is_valid(&full), "{:?}", validator.iter_errors(&full).collect::<Vec<_>>());
    // JSON is YAML: the same text, read by us.
    let text = full.to_string();
    assert_eq!(findings(Layer::Managed, &text), []);
    for wrong in [
        r#"{"pool":{"sise":1}}"#,
        r#"{"maxExecutionTime":60000}"#,
        r#"{"tools":{"x":{"on":true}}}"#,
        r#"{"mcp":{"servers":{"x":{"cmd":["y"]}}}}"#,
    ] {
        assert!(!validator.is_valid(&serde_json::from_str(wrong).unwrap()), "{wrong}");
        assert_ne!(findings(Layer::Managed, wrong), [], "{wrong}");
    }
}
