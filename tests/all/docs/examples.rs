//! Examples in YAML: each loads with the reader that the program itself uses. The word after `yaml` says which.
//!
//! | block | read as |
//! | --- | --- |
//! | `yaml policy` | a policy of the user; it passes its own tests; the others of its page can be built on |
//! | `yaml managed-policy` | the same, of the managed layer |
//! | `yaml config`, `yaml managed-config`, `yaml project-config` | a configuration file of this layer |
//! | `yaml tool` | a tool, which `tool check` must pass |
//! | `yaml other` | a file of another program, or a fragment: not read |
//! | `yaml part-of-a-tool` | keys beside those that every tool needs |

use std::fs;
use std::path::Path;

use runner::config;
use runner::environment::Environment;
use runner::ids::ToolName;
use runner::policy_files::{Choice, Places, Trust, load};
use runner_policy::effect::Class;
use runner_policy::grammar::Kind;
use runner_policy::model::{PROTECTIONS, Writes};
use runner_policy::{Effective, Origin, Source, parse};

use super::{Page, none, pages};
use crate::support::Home;

/// The value of a key at the top of a YAML text.
pub fn key<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    text.lines().find_map(|line| line.strip_prefix(key)?.strip_prefix(": "))
}

/// The policies of a page, loaded; complaints of those that do not load. A ceiling holds for the managed ones alone.
pub fn policies(page: &Page) -> (Vec<Effective>, Vec<String>) {
    let (mut loaded, mut complaints) = (Vec::new(), Vec::new());
    for (info, layer) in [("yaml policy", "user"), ("yaml managed-policy", "managed")] {
        let home = tempfile::tempdir().unwrap();
        let folder = home.path().join(layer).join("runner/policies");
        fs::create_dir_all(&folder).unwrap();
        let mut names = Vec::new();
        for block in page.markdown().blocks.iter().filter(|block| block.info == info) {
            let name = key(&block.text, "name")
                .unwrap_or_else(|| panic!("{}: no name", page.at(block.line)));
            fs::write(folder.join(format!("{name}.yml")), &block.text).unwrap();
            names.push((block.line, name.to_owned()));
        }
        let mut places = Places::of(&Environment::default(), None);
        places.managed = home.path().join("managed");
        places.user = Some(home.path().join("user"));
        for (line, name) in names {
            match load(&Choice::Named(name), &places, Trust::Required) {
                Ok(it) => loaded.push(it.policy),
                Err(error) => complaints.push(format!("{}: {error:?}", page.at(line))),
            }
        }
    }
    (loaded, complaints)
}

#[test]
fn every_policy_loads_and_passes_its_tests() {
    let mut count = 0;
    let mut complaints = Vec::new();
    for page in pages() {
        let (loaded, wrong) = policies(&page);
        count += loaded.len();
        complaints.extend(wrong);
    }
    none(&complaints);
    assert!(count > 10, "only {count} policies were found");
}

/// The keys that the loader names when it finds one that is not known, in each section of a policy.
#[test]
fn the_reference_of_policies_shows_every_key() {
    let sections = [
        "zzzz: 1\n",
        "sandbox: { zzzz: 1 }\n",
        "files: { zzzz: 1 }\n",
        "env: { zzzz: 1 }\n",
        "tests: { zzzz: 1 }\n",
        "commands: [{ allow: ls, zzzz: 1 }]\n",
        "commands: [{ allow: ls, examples: { zzzz: 1 } }]\n",
        "net: [{ allow: 'connect a.example:1', zzzz: 1 }]\n",
        "net: [{ allow: 'connect a.example:1', limits: { zzzz: 1 } }]\n",
    ];
    let page = Page::read(Path::new("docs/policies.md"));
    let markdown = page.markdown();
    let examples: String = markdown
        .blocks
        .iter()
        .filter(|block| block.info.ends_with("policy"))
        .map(|block| block.text.as_str())
        .collect();
    let mut complaints = Vec::new();
    for section in sections {
        let text = format!("policy: 1\nname: p\n{section}");
        let source = Source { file: "p.yml", text: &text, origin: Origin::Managed };
        let findings = parse(source).expect_err("the key is not known");
        let help = findings.iter().filter_map(|finding| finding.help.as_deref());
        let known = help
            .filter_map(|help| help.strip_prefix("known here: "))
            .next()
            .unwrap_or_else(|| panic!("{section}: {findings:?}"));
        for key in known.split(", ") {
            if !examples.contains(&format!("{key}:")) {
                complaints.push(format!("`{key}` of `{}` is in no example", section.trim()));
            }
            if !markdown.lines.iter().any(|(_, line)| line.contains(&format!("`{key}`"))) {
                complaints.push(format!("`{key}` of `{}` is not explained", section.trim()));
            }
        }
    }
    none(&complaints);
}

#[test]
fn the_reference_of_policies_names_every_word_of_its_lists() {
    let text = Page::read(Path::new("docs/policies.md")).text;
    let kinds = Kind::ALL.iter().map(|(word, _)| *word).filter(|word| *word != "none");
    let effects = Class::ALL.iter().map(|(word, _)| *word);
    let writes = Writes::ALL.map(Writes::word);
    let words = kinds.chain(effects).chain(writes).chain(PROTECTIONS);
    let missing: Vec<String> = words
        .filter(|word| !text.contains(&format!("`{word}`")) && !text.contains(&format!("`{word} ")))
        .map(str::to_owned)
        .collect();
    none(&missing);
}

#[test]
fn every_configuration_is_read() {
    let mut complaints = Vec::new();
    for page in pages() {
        for block in page.markdown().blocks {
            let layer = match block.info {
                "yaml config" => config::Layer::User,
                "yaml managed-config" => config::Layer::Managed,
                "yaml project-config" => config::Layer::Project,
                _ => continue,
            };
            if let Err(findings) = config::read(layer, "config.yml", &block.text) {
                complaints.push(format!("{}: {findings:?}", page.at(block.line)));
            }
        }
    }
    none(&complaints);
}

#[test]
fn every_tool_passes_its_check() {
    let home = Home::new();
    let mut complaints = Vec::new();
    let mut count = 0;
    for page in pages() {
        for block in page.markdown().blocks {
            let text = match block.info {
                "yaml tool" => block.text.clone(),
                "yaml part-of-a-tool" => format!(
                    "name: example\ndescription: An example.\nschema: {{ type: object }}\n{}code: |\n  export async \
                     function execute() {{}}\n",
                    block.text
                ),
                _ => continue,
            };
            count += 1;
            let name =
                key(&text, "name").unwrap_or_else(|| panic!("{}: no name", page.at(block.line)));
            let stem: ToolName = name.parse().unwrap();
            if let Err(findings) = runner::tool::parse("tool.yml", &text, &stem) {
                complaints.push(format!("{}: {findings:?}", page.at(block.line)));
                continue;
            }
            let file = home.path(&format!("project/{name}.yml"));
            fs::write(&file, text).unwrap();
            let ran = home.run([Path::new("tool"), Path::new("check"), &file]);
            if ran.code != Some(0) {
                complaints.push(format!("{}: {}{}", page.at(block.line), ran.out, ran.err));
            }
        }
    }
    none(&complaints);
    assert!(count > 2, "only {count} tools were found");
}

#[test]
fn every_block_of_yaml_is_read_as_something() {
    let known = [
        "yaml policy",
        "yaml managed-policy",
        "yaml config",
        "yaml managed-config",
        "yaml project-config",
        "yaml tool",
        "yaml part-of-a-tool",
        "yaml other",
    ];
    let mut complaints = Vec::new();
    for page in pages() {
        for block in page.markdown().blocks {
            if block.info.starts_with("yaml") && !known.contains(&block.info) {
                complaints.push(format!(
                    "{}: `{}` is checked by nothing",
                    page.at(block.line),
                    block.info
                ));
            }
        }
    }
    none(&complaints);
}
