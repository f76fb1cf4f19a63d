//! Commands, from the plan.

use super::condition::is_builtin;
use super::start::{Child, become_program};
use super::{Leave, Shell, broken};
use crate::program::Teller;
use crate::stage::{self, Env};
use crate::{sys, test, within};
use runner_wire::{
    Assignment, Block, Bytes, Chain, Does, Expand, Joiner, Node, Opening, OpeningTo, Pipe,
    Redirect, RedirectTo, Script, Setting, Switch, Why,
};
use std::io::{self, Write};
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::ffi::OsStringExt;
use std::rc::Rc;
use std::time::Instant;

/// Runs a line with the standard streams of this process, which is in this folder; its status.
pub fn run(script: Script, env: Env, folder: Option<Vec<u8>>, teller: Teller) -> u8 {
    let here = || {
        let here = std::env::current_dir();
        here.map_or_else(|_| b"/".to_vec(), |it| it.into_os_string().into_vec())
    };
    let folder = folder.unwrap_or_else(here);
    let mut shell = Shell {
        errexit: script.errexit,
        pipefail: script.pipefail,
        nounset: script.nounset,
        script: Rc::new(script),
        env,
        variables: Default::default(),
        marked: Default::default(),
        folder,
        status: 0,
        tested: 0,
        loops: 0,
        substituted: false,
        programs: Default::default(),
        ear: Some(teller),
    };
    let _ = sys::set_undumpable();
    let left = shell.block(0);
    match shell.ear.take() {
        Some(teller) => shell.tell(left, teller),
        None => shell.status,
    }
}

/// Copies of descriptors that a redirection replaced; none for one that was closed.
type Saved = Vec<(u8, Option<OwnedFd>)>;

impl Shell {
    pub(super) fn block(&mut self, block: Block) -> Result<(), Leave> {
        let script = Rc::clone(&self.script);
        let lists = script.blocks.get(block as usize).map(Vec::as_slice).unwrap_or_default();
        lists.iter().try_for_each(|chain| self.chain(chain))
    }

    fn chain(&mut self, chain: &Chain) -> Result<(), Leave> {
        let pipes = std::iter::once((None, &chain.first))
            .chain(chain.rest.iter().map(|(joiner, pipe)| (Some(*joiner), pipe)));
        let last = chain.rest.len();
        for (at, (joiner, pipe)) in pipes.enumerate() {
            let due = match joiner {
                None => true,
                Some(Joiner::And) => self.status == 0,
                Some(Joiner::Or) => self.status != 0,
            };
            if !due {
                continue;
            }
            // The failure of any but the last is an answer.
            let asked = at < last || pipe.negated;
            self.tested += u32::from(asked);
            let result = self.pipe(pipe);
            self.tested -= u32::from(asked);
            result?;
            if pipe.negated {
                self.status = u8::from(self.status == 0);
            }
        }
        Ok(())
    }

    /// A block whose failure is an answer.
    fn ask(&mut self, block: Block) -> Result<bool, Leave> {
        self.tested += 1;
        let result = self.block(block);
        self.tested -= 1;
        result.map(|()| self.status == 0)
    }

    fn pipe(&mut self, pipe: &Pipe) -> Result<(), Leave> {
        let begun = pipe.timed.then(|| (Instant::now(), sys::cpu_time()));
        let result = match &pipe.commands[..] {
            [node] => self.node(node),
            nodes => self.nodes(nodes),
        };
        if let Some((begun, (user, system))) = begun {
            let (user_now, system_now) = sys::cpu_time();
            let figure = |name: &str, micros: u128| {
                let millis = micros / 1000;
                format!("{name}\t{}m{}.{:03}s", millis / 60_000, millis / 1000 % 60, millis % 1000)
            };
            let times = [
                figure("\nreal", begun.elapsed().as_micros()),
                figure("user", u128::from(user_now.saturating_sub(user))),
                figure("sys", u128::from(system_now.saturating_sub(system))),
            ];
            self.say(times.join("\n").as_bytes());
        }
        result
    }

    /// Whether a failure ends the line.
    fn settle(&self) -> Result<(), Leave> {
        if self.errexit && self.tested == 0 && self.status != 0 { Err(Leave::Exit) } else { Ok(()) }
    }

    /// Several commands at once, each in a process of its own.
    fn nodes(&mut self, nodes: &[Node]) -> Result<(), Leave> {
        let mut children: Vec<io::Result<Child>> = Vec::new();
        let mut input: Option<OwnedFd> = None;
        for (at, node) in nodes.iter().enumerate() {
            let pipe = (at + 1 < nodes.len()).then(|| {
                let (reader, writer) = io::pipe()?;
                io::Result::Ok((sys::high(reader.as_fd())?, sys::high(writer.as_fd())?))
            });
            let (output, next) = match pipe.transpose() {
                Ok(Some((reader, writer))) => (Some(writer), Some(reader)),
                Ok(None) => (None, None),
                Err(error) => {
                    children.push(Err(error));
                    break;
                }
            };
            let streams = [input.take(), output];
            children.push(self.copy(streams, next.as_ref(), |shell| {
                shell.errexit &= shell.tested == 0;
                let left = shell.node(node);
                // The copy ends here either way; only a broken assumption is told.
                match left {
                    Err(Leave::Broken(broken)) => Err(Leave::Broken(broken)),
                    _ => Ok(()),
                }
            }));
            input = next;
        }
        drop(input);
        let (mut status, mut failed, mut found) = (0, 0, None);
        for child in children {
            status = match child {
                Ok(child) => {
                    let ended = self.wait(child);
                    found = found.or(ended.broken);
                    ended.status
                }
                Err(error) => stage::complain(b"fork", &error, 254),
            };
            failed = if status == 0 { failed } else { status };
        }
        if let Some(found) = found {
            return Err(Leave::Broken(found));
        }
        self.status = if self.pipefail { failed } else { status };
        self.settle()
    }

    fn node(&mut self, node: &Node) -> Result<(), Leave> {
        match &node.does {
            Does::Run { set, words } => {
                self.substituted = false;
                let words = self.all_words(words)?;
                self.program(set, words, None, &node.redirects)?;
                self.settle()
            }
            Does::Nested { set, words, script } => {
                self.substituted = false;
                let words = self.all_words(words)?;
                self.program(set, words, Some(script), &node.redirects)?;
                self.settle()
            }
            Does::Subshell(block) => {
                let redirects = self.redirects(&node.redirects)?;
                let child = self.copy([None, None], None, |shell| {
                    shell.errexit &= shell.tested == 0;
                    shell.loops = 0;
                    match shell.open(&redirects) {
                        Ok(_) => match shell.block(*block) {
                            Err(Leave::Broken(broken)) => Err(Leave::Broken(broken)),
                            _ => Ok(()),
                        },
                        Err(status) => {
                            shell.status = status;
                            Ok(())
                        }
                    }
                });
                self.finish(child)?;
                self.settle()
            }
            does => {
                let redirects = self.redirects(&node.redirects)?;
                let saved = match self.open(&redirects) {
                    Ok(saved) => saved,
                    Err(status) => {
                        self.status = status;
                        return self.settle();
                    }
                };
                let is_loop = matches!(does, Does::While { .. } | Does::For { .. });
                self.loops += u32::from(is_loop);
                let result = self.builtin(does);
                self.loops -= u32::from(is_loop);
                restore(saved);
                result?;
                let compound = matches!(
                    does,
                    Does::Group(_)
                        | Does::If { .. }
                        | Does::While { .. }
                        | Does::For { .. }
                        | Does::Case { .. }
                );
                if compound { Ok(()) } else { self.settle() }
            }
        }
    }

    /// Takes the end of the one process of a command.
    fn finish(&mut self, child: io::Result<Child>) -> Result<(), Leave> {
        let ended = match child {
            Ok(child) => self.wait(child),
            Err(error) => {
                self.status = stage::complain(b"fork", &error, 254);
                return Ok(());
            }
        };
        if let Some(broken) = ended.broken {
            return Err(Leave::Broken(broken));
        }
        self.status = ended.status;
        Ok(())
    }

    /// A program, or what starts a line.
    fn program(
        &mut self,
        set: &[Setting],
        words: Vec<Bytes>,
        script: Option<&Script>,
        redirects: &[Opening],
    ) -> Result<(), Leave> {
        let redirects = self.redirects(redirects)?;
        let mut env = self.env.clone();
        for Setting { name, value, .. } in set {
            let value = Bytes(self.text(value)?);
            stage::assign(&mut env, &[Assignment { name: name.clone(), value }]);
        }
        let Some(name) = words.first().cloned() else {
            if let Some(script) = script {
                let script = script.clone();
                let child = self.fork([None, None], None, |shell, teller| {
                    shell.script = Rc::new(script.clone());
                    match shell.open(&redirects) {
                        Ok(_) => run(script, env, Some(shell.folder.clone()), teller),
                        Err(status) => status,
                    }
                });
                return self.finish(child);
            }
            // All words became nothing: what is left are assignments and redirections.
            self.status = if self.substituted { self.status } else { 0 };
            if let Err(status) = self.open(&redirects).map(restore) {
                self.status = status;
            }
            return Ok(());
        };
        if is_builtin(&name.0) {
            return Err(broken(&name.0, Why::Builtin));
        }
        let started = script.map(|script| within::script_words(script, &self.folder));
        let words = match started.transpose() {
            Ok(more) => [words, more.unwrap_or_default()].concat(),
            Err(error) => {
                self.status = stage::complain(&name.0, &error, 126);
                return Ok(());
            }
        };
        let child = self
            .fork([None, None], None, |_, teller| become_program(words, &env, &redirects, teller));
        let prints = matches!(&name.0[..], b"echo" | b"printf");
        let ended = match child {
            Ok(child) => self.wait(child),
            Err(error) => {
                self.status = stage::complain(b"fork", &error, 254);
                return Ok(());
            }
        };
        self.status = ended.status;
        // In a shell these are builtins: it ends itself where nobody reads.
        if ended.piped && prints { Err(Leave::Exit) } else { Ok(()) }
    }

    /// Redirections with their words expanded.
    fn redirects(&mut self, openings: &[Opening]) -> Result<Vec<Redirect>, Leave> {
        let mut redirects = Vec::new();
        for Opening { fd, to } in openings {
            let to = match to {
                OpeningTo::Read(word) => RedirectTo::Read(self.target(word)?),
                OpeningTo::Write(word) => RedirectTo::Write(self.target(word)?),
                OpeningTo::Append(word) => RedirectTo::Append(self.target(word)?),
                OpeningTo::Dup(other) => RedirectTo::Dup(*other),
                OpeningTo::Close => RedirectTo::Close,
                OpeningTo::Here(text) => RedirectTo::Here(Bytes(self.text(text)?)),
            };
            redirects.push(Redirect { fd: *fd, to });
        }
        Ok(redirects)
    }

    /// The one file of a redirection.
    fn target(&mut self, word: &Expand) -> Result<Bytes, Leave> {
        let mut words = self.words(word)?;
        match (words.pop(), words.is_empty()) {
            (Some(word), true) => Ok(word),
            (word, _) => Err(broken(&word.unwrap_or_default().0, Why::Count)),
        }
    }

    /// Carries redirections out in this process; what they replaced, or the status of the failure.
    fn open(&self, redirects: &[Redirect]) -> Result<Saved, u8> {
        if redirects.is_empty() {
            return Ok(Vec::new());
        }
        let _ = sys::set_dumpable();
        let mut saved: Saved = Vec::new();
        let mut failed = None;
        for redirect in redirects {
            saved.push((redirect.fd, sys::high_number(redirect.fd.into()).ok()));
            if let Err((what, error)) = stage::apply(redirect) {
                failed = Some(stage::complain(&what, &error, 1));
                break;
            }
        }
        let _ = sys::set_undumpable();
        match failed {
            None => Ok(saved),
            Some(status) => {
                restore(saved);
                Err(status)
            }
        }
    }

    fn builtin(&mut self, does: &Does) -> Result<(), Leave> {
        match does {
            Does::Set(settings) => {
                self.substituted = false;
                for Setting { name, value, exported } in settings {
                    let value = self.text(value)?;
                    self.assign(name, value, *exported)?;
                }
                if !self.substituted {
                    self.status = 0;
                }
            }
            Does::Export(list) => {
                // All values first: no command in them sees a variable of the same `export`.
                let mut values = Vec::new();
                for (name, value) in list {
                    values.push((name, value.as_ref().map(|it| self.text(it)).transpose()?));
                }
                for (name, value) in values {
                    match value {
                        Some(value) => self.export(name, value),
                        None => self.mark(name),
                    }
                }
                self.status = 0;
            }
            Does::Unset(names) => {
                names.iter().for_each(|name| self.unset(name));
                self.status = 0;
            }
            Does::Cd(word) => {
                let folder = match word {
                    Some(word) => self.target(word)?.0,
                    None => self.value(b"HOME").unwrap_or_default(),
                };
                self.status = self.enter(&folder);
            }
            Does::Read { raw, whole, names } => self.status = self.read(*raw, *whole, names)?,
            Does::Options(options) => {
                for (switch, on) in options {
                    *match switch {
                        Switch::Errexit => &mut self.errexit,
                        Switch::Nounset => &mut self.nounset,
                        Switch::Pipefail => &mut self.pipefail,
                    } = *on;
                }
                self.status = 0;
            }
            Does::Exit(word) => {
                if let Some(word) = word {
                    let text = self.text(word)?;
                    let number = std::str::from_utf8(&text).ok().and_then(|text| text.parse().ok());
                    self.status = number.unwrap_or(2);
                }
                return Err(Leave::Exit);
            }
            Does::Break(count) => {
                self.status = 0;
                if let Some(loops) = self.leaves(*count, "break") {
                    return Err(Leave::Break(loops));
                }
            }
            Does::Continue(count) => {
                self.status = 0;
                if let Some(loops) = self.leaves(*count, "continue") {
                    return Err(Leave::Continue(loops));
                }
            }
            Does::True(words) => {
                self.all_words(words)?;
                self.status = 0;
            }
            Does::False(words) => {
                self.all_words(words)?;
                self.status = 1;
            }
            Does::Test(words) => {
                let words = self.all_words(words)?;
                self.status = test::status(&words);
            }
            Does::Condition(steps) => self.status = self.condition(steps)?,
            Does::Which(names) => self.status = self.which(names),
            Does::Group(block) => self.block(*block)?,
            Does::If { branches, otherwise } => {
                for (condition, body) in branches {
                    if self.ask(*condition)? {
                        return self.block(*body);
                    }
                }
                match otherwise {
                    Some(body) => self.block(*body)?,
                    None => self.status = 0,
                }
            }
            Does::While { until, condition, body } => {
                let mut status = 0;
                loop {
                    match self.ask(*condition) {
                        Ok(holds) if holds != *until => {}
                        Ok(_) => break,
                        Err(leave) => match self.left(leave)? {
                            Round::Next => continue,
                            Round::Over => {
                                status = 0;
                                break;
                            }
                        },
                    }
                    let round = self
                        .block(*body)
                        .map_or_else(|leave| self.left(leave), |()| Ok(Round::Next));
                    status = self.status;
                    if round? == Round::Over {
                        break;
                    }
                }
                self.status = status;
            }
            Does::For { name: (name, exported), words, body } => {
                let values = self.all_words(words)?;
                if values.is_empty() {
                    self.status = 0;
                }
                for value in values {
                    self.assign(name, value.0, *exported)?;
                    let round = self
                        .block(*body)
                        .map_or_else(|leave| self.left(leave), |()| Ok(Round::Next));
                    if round? == Round::Over {
                        break;
                    }
                }
            }
            Does::Case { word, arms } => {
                let arm = self.arm(word, arms)?;
                let script = Rc::clone(&self.script);
                let full = |block: &Block| {
                    script.blocks.get(*block as usize).is_some_and(|lists| !lists.is_empty())
                };
                match arm.filter(full) {
                    Some(block) => self.block(block)?,
                    None => self.status = 0,
                }
            }
            Does::Run { .. } | Does::Nested { .. } | Does::Subshell(_) => {}
        }
        Ok(())
    }

    /// How many of the loops around are left: as many as there are, at most. Outside of any a shell says so and
    /// goes on.
    fn leaves(&self, count: u32, name: &str) -> Option<u32> {
        if self.loops == 0 {
            let line = format!("{name}: only meaningful in a `for', `while', or `until' loop\n");
            let _ = io::stderr().write_all(line.as_bytes());
            return None;
        }
        Some(count.min(self.loops))
    }

    /// What a loop does with what left its round.
    fn left(&mut self, leave: Leave) -> Result<Round, Leave> {
        match leave {
            Leave::Break(1) => Ok(Round::Over),
            Leave::Continue(1) => Ok(Round::Next),
            Leave::Break(count) => Err(Leave::Break(count - 1)),
            Leave::Continue(count) => Err(Leave::Continue(count - 1)),
            leave => Err(leave),
        }
    }
}

/// Whether a loop goes on.
#[derive(PartialEq, Eq)]
enum Round {
    Next,
    Over,
}

/// Puts descriptors back, the last one that was replaced first.
fn restore(saved: Saved) {
    use std::os::fd::AsRawFd;
    for (number, copy) in saved.into_iter().rev() {
        match copy {
            Some(copy) => {
                let _ = sys::place(copy.as_raw_fd(), number.into());
            }
            None => sys::close(number.into()),
        }
    }
}
