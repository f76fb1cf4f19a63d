//! Three files to one configuration: the strongest layer that says something, within the managed ceilings.

use std::path::PathBuf;

use runner_policy::finding::{At, Finding};

use super::effective::{Config, Sourced};
use super::error::ConfigError;
use super::layer::{Layer, Source};
use super::open::{Text, open, open_given};
use super::read::{Read, read};
use crate::policy_files::Places;

/// Loads what holds for a workspace.
///
/// # Errors
/// A file is there and cannot be used. Nothing of the others is used either.
pub fn load(places: &Places) -> Result<Config, ConfigError> {
    let mut findings = Vec::new();
    let texts = Layer::FILES.into_iter().filter_map(|layer| match open(layer, places) {
        Ok(text) => text,
        Err(finding) => {
            findings.push(*finding);
            None
        }
    });
    let texts: Vec<Text> = texts.collect();
    settle(texts, findings)
}

/// Loads named files, each as if it were of the layer beside it.
///
/// # Errors
/// One of them cannot be used.
pub fn load_files(files: &[(PathBuf, Layer)]) -> Result<Config, ConfigError> {
    let mut findings = Vec::new();
    let mut texts = Vec::new();
    for (path, layer) in files {
        match open_given(path, *layer) {
            Ok(text) => texts.push(text),
            Err(finding) => findings.push(*finding),
        }
    }
    settle(texts, findings)
}

fn settle(texts: Vec<Text>, mut findings: Vec<Finding>) -> Result<Config, ConfigError> {
    let mut config = Config::default();
    for Text { layer, file, text } in texts {
        match read(layer, &file, &text) {
            Ok(said) => config.take(layer, &file, said),
            Err(found) => findings.extend(found),
        }
    }
    if !findings.is_empty() {
        return Err(ConfigError::Refused(findings));
    }
    config.hold_tools();
    config.bound();
    Ok(config)
}

impl Config {
    /// Takes what a file says where no stronger layer said something.
    fn take(&mut self, layer: Layer, file: &str, said: Read) {
        let source = |at: At| Source { layer, file: Some(file.to_owned()), line: Some(at.line) };
        for (figure, value, at) in said.figures {
            put(&mut self.figures[figure as usize], value, source(at));
        }
        for (flag, value, at) in said.flags {
            put(&mut self.flags[flag as usize], value, source(at));
        }
        if let Some((folders, at)) = said.scan_skip {
            put(&mut self.scan_skip, folders, source(at));
        }
        if let Some((names, at)) = said.approval_clients {
            put(&mut self.approval_clients, names, source(at));
        }
        if let Some((value, at)) = said.team_folder {
            self.team_folder = Some(Sourced { value, source: source(at) });
        }
        if let Some((value, at)) = said.policy {
            let held = match layer {
                Layer::Project => &mut self.project_policy,
                Layer::User | Layer::Managed | Layer::Default => &mut self.policy,
            };
            held.get_or_insert_with(|| Sourced { value, source: source(at) });
        }
        if let Some((value, at)) = said.engine {
            self.engine.get_or_insert_with(|| Sourced { value, source: source(at) });
        }
        for (folder, value, at) in said.workspaces {
            self.workspaces.push((folder, Sourced { value, source: source(at) }));
        }
        for (figure, value, at) in said.ceilings {
            self.ceilings.push((figure, Sourced { value, source: source(at) }));
        }
        for (name, of_tool) in said.tools {
            let tool = self.tools.entry(name).or_default();
            if let Some((value, at)) = of_tool.enabled {
                tool.enabled.get_or_insert_with(|| Sourced { value, source: source(at) });
            }
            if let Some((value, at)) = of_tool.auto_accept {
                tool.auto_accept.get_or_insert_with(|| Sourced { value, source: source(at) });
            }
            for (figure, value, at) in of_tool.figures {
                let fresh = || Sourced { value, source: source(at) };
                tool.figures.entry(figure).or_insert_with(fresh);
            }
        }
        for (name, of_server) in said.servers {
            let held = self.servers.entry(name).or_default();
            if let Some((value, at)) = of_server.enabled {
                held.enabled.get_or_insert_with(|| Sourced { value, source: source(at) });
            }
            if let Some((value, at)) = of_server.server {
                held.server.get_or_insert_with(|| Sourced { value, source: source(at) });
            }
        }
    }

    /// What a weaker layer says of a single tool can only tighten what a stronger one says of all of them.
    fn hold_tools(&mut self) {
        for tool in self.tools.values_mut() {
            for (figure, held) in &mut tool.figures {
                let all = &self.figures[*figure as usize];
                if all.source.layer > held.source.layer && figure.looser(held.value, all.value) {
                    *held = all.clone();
                }
            }
        }
    }

    /// What is looser than a ceiling becomes the ceiling.
    fn bound(&mut self) {
        for (figure, ceiling) in &self.ceilings {
            let of_tools = self.tools.values_mut().filter_map(|tool| tool.figures.get_mut(figure));
            for held in of_tools.chain([&mut self.figures[*figure as usize]]) {
                if figure.looser(held.value, ceiling.value) {
                    *held = ceiling.clone();
                }
            }
        }
    }
}

/// Layers are taken from the strongest to the weakest, so what is there already stays.
fn put<T>(held: &mut Sourced<T>, value: T, source: Source) {
    if source.layer > held.source.layer {
        *held = Sourced { value, source };
    }
}
