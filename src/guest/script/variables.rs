//! Variables, the folder, and `read`.

use super::{Leave, Shell, broken};
use crate::stage;
use runner_wire::{Assignment, Bytes, Why};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::AsFd;
use std::os::unix::ffi::OsStrExt;

/// The longest line that `read` takes.
const LINE_MAX: usize = 1 << 20;

impl Shell {
    /// The value of a variable, if it has one.
    pub(super) fn value(&self, name: &[u8]) -> Option<Vec<u8>> {
        if name == b"PWD" {
            return Some(self.folder.clone());
        }
        let exported = || self.env.iter().rev().find(|(known, _)| known.0 == name);
        match self.variables.get(name) {
            Some(value) => Some(value.clone()),
            None => exported().map(|(_, value)| value.0.clone()),
        }
    }

    /// Sets a variable where it is. `judged` says that a change of the environment was judged.
    pub(super) fn assign(
        &mut self,
        name: &Bytes,
        value: Vec<u8>,
        judged: bool,
    ) -> Result<(), Leave> {
        let exported = self.marked.contains(&name.0) || self.env.iter().any(|(it, _)| it == name);
        if exported && !judged {
            return Err(broken(&name.0, Why::Environment));
        }
        if exported {
            self.export(name, value);
        } else {
            self.variables.insert(name.0.clone(), value);
        }
        Ok(())
    }

    /// Sets a variable in the environment.
    pub(super) fn export(&mut self, name: &Bytes, value: Vec<u8>) {
        self.variables.remove(&name.0);
        self.marked.remove(&name.0);
        let assignment = Assignment { name: name.clone(), value: Bytes(value) };
        stage::assign(&mut self.env, &[assignment]);
    }

    /// Puts a variable into the environment, with the value that it has or will have.
    pub(super) fn mark(&mut self, name: &Bytes) {
        match self.variables.remove(&name.0) {
            Some(value) => self.export(name, value),
            None if self.env.iter().any(|(known, _)| known == name) => {}
            None => {
                self.marked.insert(name.0.clone());
            }
        }
    }

    pub(super) fn unset(&mut self, name: &Bytes) {
        self.variables.remove(&name.0);
        self.marked.remove(&name.0);
        self.env.retain(|(known, _)| known != name);
    }

    /// Enters a folder; complains as a shell does if that fails.
    pub(super) fn enter(&mut self, folder: &[u8]) -> u8 {
        // As a shell does it, `..` takes away the last name, also that of a symlink.
        let entered = join(&self.folder, folder);
        match std::env::set_current_dir(std::ffi::OsStr::from_bytes(&entered)) {
            Ok(()) => {
                self.folder = entered;
                0
            }
            Err(error) => stage::complain(&[b"cd: ", folder].concat(), &error, 1),
        }
    }

    /// Reads a line from standard input, byte by byte: what follows is somebody else's.
    pub(super) fn read(
        &mut self,
        raw: bool,
        whole: bool,
        names: &[(Bytes, bool)],
    ) -> Result<u8, Leave> {
        let Ok(line) = read_line(raw) else { return Ok(1) };
        let (mut rest, ended) = line;
        let blank = |unit: &(u8, bool)| !unit.1 && matches!(unit.0, b' ' | b'\t' | b'\n');
        let text = |units: &[(u8, bool)]| units.iter().map(|unit| unit.0).collect::<Vec<u8>>();
        for (at, (name, judged)) in names.iter().enumerate() {
            let last = at + 1 == names.len();
            if whole {
                self.assign(name, text(&std::mem::take(&mut rest)), *judged)?;
                continue;
            }
            let start = rest.iter().position(|unit| !blank(unit)).unwrap_or(rest.len());
            rest.drain(..start);
            let end = if last {
                rest.iter().rposition(|unit| !blank(unit)).map_or(0, |at| at + 1)
            } else {
                rest.iter().position(blank).unwrap_or(rest.len())
            };
            let field: Vec<(u8, bool)> = rest.drain(..end).collect();
            self.assign(name, text(&field), *judged)?;
        }
        Ok(u8::from(!ended))
    }
}

/// A line, each byte with whether a backslash stood before it, and whether it ended with a newline.
fn read_line(raw: bool) -> io::Result<(Vec<(u8, bool)>, bool)> {
    let mut input = File::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut line = Vec::new();
    let mut escaped = false;
    let mut byte = [0];
    while line.len() < LINE_MAX {
        match input.read(&mut byte) {
            Ok(0) => return Ok((line, false)),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            Err(error) => return Err(error),
        }
        match byte[0] {
            0 => {}
            // A backslash joins two lines.
            b'\n' if escaped => {}
            b'\n' => return Ok((line, true)),
            b'\\' if !raw && !escaped => {
                escaped = true;
                continue;
            }
            byte => line.push((byte, escaped)),
        }
        escaped = false;
    }
    Ok((line, true))
}

/// A path from a folder, with `.` and `..` taken by their names.
pub(super) fn join(folder: &[u8], path: &[u8]) -> Vec<u8> {
    let from: &[u8] = if path.starts_with(b"/") { b"" } else { folder };
    let mut parts: Vec<&[u8]> = Vec::new();
    for part in from.split(|b| *b == b'/').chain(path.split(|b| *b == b'/')) {
        match part {
            b"" | b"." => {}
            b".." => {
                parts.pop();
            }
            part => parts.push(part),
        }
    }
    let mut joined = Vec::new();
    for part in parts {
        joined.push(b'/');
        joined.extend_from_slice(part);
    }
    if joined.is_empty() { b"/".to_vec() } else { joined }
}

#[cfg(test)]
mod tests {
    use super::join;

    #[test]
    fn paths_are_joined_by_their_names() {
        for (folder, path, joined) in [
            ("/w", "a/../b", "/w/b"),
            ("/w", "..", "/"),
            ("/w", "../../..", "/"),
            ("/w", "/x//y/.", "/x/y"),
            ("/", "", "/"),
        ] {
            assert_eq!(join(folder.as_bytes(), path.as_bytes()), joined.as_bytes());
        }
    }
}
