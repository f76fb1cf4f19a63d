//! What a plan does, without a system: the trace that bash must leave when it runs the same line.

use std::collections::BTreeMap;

use runner_policy::shell::{
    Command, CompoundKind, Expansion, Join, Part, Pipeline, RedirectTo, Script, SimpleCommand, Word,
};

/// Files in the folder where lines run. Outputs go to `../o`.
pub const FILES: &[&str] = &["-x", ".hid", "a.txt", "b.txt", "dir/c.txt", "in"];
/// The text of the file `in`.
pub const IN: &str = "from in\n";
pub const HOME: &str = "/h";

/// What can be seen of a line from outside.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct Trace {
    /// Name, arguments, exported A and B, and standard input of each call, sorted.
    pub calls: Vec<Vec<String>>,
    /// What was written to each output, and to standard output as ``.
    pub files: BTreeMap<String, String>,
    pub status: i32,
}

/// The line does what the model does not model.
#[derive(Debug)]
pub struct Beyond;

#[derive(Clone, PartialEq)]
enum End {
    Source(String),
    File(String),
    Stdout,
    Stderr,
    Pipe,
}

struct Model {
    trace: Trace,
    /// Variables of the environment.
    variables: BTreeMap<String, String>,
    /// The others.
    hidden: BTreeMap<String, String>,
    status: i32,
}

/// Runs a plan in the mind.
pub fn run(script: &Script) -> Result<Trace, Beyond> {
    let mut model = Model {
        trace: Trace::default(),
        variables: BTreeMap::from([("B".to_owned(), "0".to_owned())]),
        hidden: BTreeMap::new(),
        status: 0,
    };
    model.trace.files.insert(String::new(), String::new());
    model.script(script)?;
    model.trace.status = model.status;
    model.trace.calls.sort();
    Ok(model.trace)
}

impl Model {
    fn script(&mut self, script: &Script) -> Result<(), Beyond> {
        for list in &script.lists {
            self.status = self.pipeline(&list.first)?;
            for (join, next) in &list.rest {
                if (*join == Join::And) == (self.status == 0) {
                    self.status = self.pipeline(next)?;
                }
            }
        }
        Ok(())
    }

    /// A compound command without redirections, alone in its pipeline.
    fn compound(&mut self, kind: &CompoundKind) -> Result<(), Beyond> {
        match kind {
            CompoundKind::Group(script) => self.script(script),
            CompoundKind::Subshell(script) => {
                let before = (self.variables.clone(), self.hidden.clone());
                let result = self.script(script);
                (self.variables, self.hidden) = before;
                result
            }
            CompoundKind::If { branches, otherwise } => {
                for (condition, body) in branches {
                    self.script(condition)?;
                    if self.status == 0 {
                        return self.script(body);
                    }
                }
                self.status = 0;
                otherwise.iter().try_for_each(|body| self.script(body))
            }
            CompoundKind::For { name, words, body } => {
                let mut values = Vec::new();
                for word in words {
                    values.extend(self.expand(word)?);
                }
                self.status = 0;
                for value in values {
                    self.set(name, value);
                    self.script(body)?;
                }
                Ok(())
            }
            CompoundKind::Case { word, arms } => {
                let text = self.text(word)?;
                self.status = 0;
                for (patterns, body) in arms {
                    for pattern in patterns {
                        if pattern.is_expanded() || pattern.is_glob() {
                            return Err(Beyond);
                        }
                        if pattern.text(HOME) == text {
                            return self.script(body);
                        }
                    }
                }
                Ok(())
            }
            CompoundKind::While { .. } | CompoundKind::Test(_) => Err(Beyond),
        }
    }

    fn set(&mut self, name: &str, value: String) {
        match self.variables.get_mut(name) {
            Some(old) => *old = value,
            None => {
                self.hidden.insert(name.to_owned(), value);
            }
        }
    }

    fn value(&self, of: &Expansion) -> Result<String, Beyond> {
        match of {
            Expansion::Variable(name) | Expansion::Default { name, .. }
                if name == "A" || name == "B" || name == "x" =>
            {
                let value = self.hidden.get(name).or(self.variables.get(name));
                match (of, value) {
                    (Expansion::Default { text, .. }, None) => Ok(text.clone()),
                    (_, None) => Ok(String::new()),
                    (of, Some(value)) => Ok(of.with(value).unwrap_or_default().to_owned()),
                }
            }
            Expansion::Status => Ok(self.status.to_string()),
            Expansion::Variable(_) | Expansion::Default { .. } | Expansion::Output(_) => {
                Err(Beyond)
            }
        }
    }

    /// A word that is not split.
    fn text(&self, word: &Word) -> Result<String, Beyond> {
        let mut text = String::new();
        for part in &word.parts {
            match part {
                Part::Expansion { of, .. } => text += &self.value(of)?,
                part => text += &Word { parts: vec![part.clone()], at: word.at }.text(HOME),
            }
        }
        Ok(text)
    }

    /// The words that a word becomes.
    fn expand(&self, word: &Word) -> Result<Vec<String>, Beyond> {
        if !word.is_expanded() {
            return expand(word);
        }
        let mut fields: Vec<Vec<Part>> = Vec::new();
        let mut field: Option<Vec<Part>> = None;
        for part in &word.parts {
            let Part::Expansion { of, quoted } = part else {
                field.get_or_insert_default().push(part.clone());
                continue;
            };
            let value = self.value(of)?;
            if *quoted {
                field.get_or_insert_default().push(Part::Text(value));
                continue;
            }
            if value.contains(['*', '?', '[', '\\']) {
                return Err(Beyond);
            }
            for c in value.chars() {
                if matches!(c, ' ' | '\t' | '\n') {
                    fields.extend(field.take());
                } else {
                    field.get_or_insert_default().push(Part::Text(c.to_string()));
                }
            }
        }
        fields.extend(field);
        let mut words = Vec::new();
        for parts in fields {
            let mut joined: Vec<Part> = Vec::new();
            for part in parts {
                match (joined.last_mut(), part) {
                    (Some(Part::Text(text)), Part::Text(more)) => text.push_str(&more),
                    (_, part) => joined.push(part),
                }
            }
            words.extend(expand(&Word { parts: joined, at: word.at })?);
        }
        Ok(words)
    }

    fn pipeline(&mut self, pipeline: &Pipeline) -> Result<i32, Beyond> {
        if pipeline.timed {
            return Err(Beyond);
        }
        if let [Command::Compound(compound)] = pipeline.commands.as_slice() {
            if !compound.redirects.is_empty() {
                return Err(Beyond);
            }
            self.compound(&compound.kind)?;
            return Ok(if pipeline.negated { i32::from(self.status == 0) } else { self.status });
        }
        let simple: Option<Vec<&SimpleCommand>> =
            pipeline.commands.iter().map(Command::simple).collect();
        let commands = simple.ok_or(Beyond)?;
        let mut input = String::new();
        let mut status = 0;
        let last = pipeline.commands.len() - 1;
        // Who empties a file last is a race.
        let mut targets: Vec<_> = commands
            .iter()
            .flat_map(|command| &command.redirects)
            .filter_map(|redirect| match &redirect.to {
                RedirectTo::Write(word) | RedirectTo::Append(word) => word.literal(),
                _ => None,
            })
            .collect();
        targets.sort_unstable();
        if targets.windows(2).any(|pair| pair[0] == pair[1]) {
            return Err(Beyond);
        }
        for (index, command) in commands.into_iter().enumerate() {
            let before = (self.variables.clone(), self.hidden.clone());
            let mut piped = String::new();
            let out = if index == last { End::Stdout } else { End::Pipe };
            status = self.command(command, input, out, &mut piped)?;
            if last > 0 {
                (self.variables, self.hidden) = before;
            }
            input = piped;
        }
        Ok(if pipeline.negated { i32::from(status == 0) } else { status })
    }

    fn command(
        &mut self,
        command: &SimpleCommand,
        input: String,
        out: End,
        piped: &mut String,
    ) -> Result<i32, Beyond> {
        let mut words = Vec::new();
        for word in &command.words {
            words.extend(self.expand(word)?);
        }
        let mut ends = BTreeMap::from([(0, End::Source(input)), (1, out), (2, End::Stderr)]);
        for redirect in &command.redirects {
            let end = match &redirect.to {
                RedirectTo::Text(text) => Some(End::Source(self.text(text)?)),
                RedirectTo::Read(word) if word.literal() == Some("in") => {
                    Some(End::Source(IN.to_owned()))
                }
                RedirectTo::Read(_) => return Err(Beyond),
                RedirectTo::Write(word) => {
                    let name = output(word)?;
                    // Two descriptors with offsets of their own in one file are beyond the model.
                    if ends.values().any(|end| *end == End::File(name.clone())) {
                        return Err(Beyond);
                    }
                    self.trace.files.insert(name.clone(), String::new());
                    Some(End::File(name))
                }
                RedirectTo::Append(word) => {
                    let name = output(word)?;
                    if ends.values().any(|end| *end == End::File(name.clone())) {
                        return Err(Beyond);
                    }
                    self.trace.files.entry(name.clone()).or_default();
                    Some(End::File(name))
                }
                RedirectTo::Duplicate(from) => Some(ends.get(from).ok_or(Beyond)?.clone()),
                RedirectTo::Close => None,
            };
            match end {
                Some(end) => ends.insert(redirect.fd, end),
                None => ends.remove(&redirect.fd),
            };
        }
        let mut assigned: Vec<(String, String)> = Vec::new();
        let Some(name) = words.first() else {
            if !command.words.is_empty() && !command.assignments.is_empty() {
                return Err(Beyond);
            }
            for (name, value) in &command.assignments {
                let value = self.text(value)?;
                self.set(name, value);
            }
            return Ok(0);
        };
        for (name, value) in &command.assignments {
            // Each sees those before it, in bash.
            if value.is_expanded() && !assigned.is_empty() {
                return Err(Beyond);
            }
            assigned.push((name.clone(), self.text(value)?));
        }
        match name.as_str() {
            "export" => {
                for word in &words[1..] {
                    let (name, value) = word.split_once('=').ok_or(Beyond)?;
                    self.hidden.remove(name);
                    self.variables.insert(name.to_owned(), value.to_owned());
                }
                return Ok(0);
            }
            "p" | "f" => {}
            _ => return Err(Beyond),
        }
        let status = i32::from(name == "f");
        let mut variables = self.variables.clone();
        variables.extend(assigned);
        let mut call = words;
        for name in ["A", "B"] {
            call.push(variables.get(name).map_or("none".to_owned(), |value| format!("={value}")));
        }
        call.push(match ends.get(&0) {
            Some(End::Source(text)) => text.clone(),
            _ => String::new(),
        });
        self.trace.calls.push(call);
        for (fd, text) in [(1, "o"), (2, "e")] {
            match ends.get(&fd) {
                Some(End::File(name)) => *self.trace.files.entry(name.clone()).or_default() += text,
                Some(End::Stdout) => *self.trace.files.entry(String::new()).or_default() += text,
                Some(End::Pipe) => *piped += text,
                Some(End::Stderr | End::Source(_)) | None => {}
            }
        }
        Ok(status)
    }
}

fn output(word: &Word) -> Result<String, Beyond> {
    match word.literal() {
        Some(name @ ("../o/1" | "../o/2" | "../o/3" | "../o/4")) => Ok(name.to_owned()),
        _ => Err(Beyond),
    }
}

/// The files that a pattern names, or the pattern itself.
fn expand(word: &Word) -> Result<Vec<String>, Beyond> {
    let text = word.text(HOME);
    if !word.is_glob() {
        return Ok(vec![text]);
    }
    // Other folders are not modelled, nor are names with a slash too many.
    if text.starts_with(['/', '.']) || text.contains("/.") || text.contains("//") {
        return Err(Beyond);
    }
    let mut names: Vec<String> = FILES.iter().map(|name| (*name).to_owned()).collect();
    names.push(if text.ends_with('/') { "dir/" } else { "dir" }.to_owned());
    names.retain(|name| matches(&word.parts, name, true));
    names.sort();
    if names.is_empty() {
        names.push(text);
    }
    Ok(names)
}

/// `starts` says that the name begins here, or a component of it: a dot there is only matched by a dot.
fn matches(parts: &[Part], name: &str, starts: bool) -> bool {
    let first = name.chars().next();
    let rest = first.map_or("", |c| &name[c.len_utf8()..]);
    let takes = first.is_some_and(|c| c != '/' && !(starts && c == '.'));
    match parts.split_first() {
        None => name.is_empty(),
        Some((Part::Text(text), more)) => name
            .strip_prefix(text.as_str())
            .is_some_and(|rest| matches(more, rest, text.ends_with('/'))),
        Some((Part::Home | Part::Expansion { .. }, _)) => false,
        Some((Part::Any, more)) => {
            matches(more, name, starts && name.starts_with('.'))
                || (takes && matches(parts, rest, false))
        }
        Some((Part::One, more)) => takes && matches(more, rest, false),
        Some((Part::Class(class), more)) => {
            takes && first.is_some_and(|c| class.holds(c)) && matches(more, rest, false)
        }
    }
}
