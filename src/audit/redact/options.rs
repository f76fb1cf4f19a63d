//! Options whose value is a secret: `curl -u ann:pw`, `mysql -ppw`, `sshpass -p pw`.
//!
//! One table says which options of which programs take a secret, and how much of the value it is. [`Command`] reads
//! the words of one command in order and says where in a word a secret begins. A program is found anywhere among the
//! words: `sudo`, `timeout 5` and `sshpass -p pw` may stand before it.

use std::borrow::Cow;

use super::MASK;

/// How much of a value is secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Hides {
    /// All of it.
    Whole,
    /// What follows the first such character, as in `ann:pw`.
    After(char),
    /// The same, unless it is `USER:GROUP` in numbers or `HOST:/PATH`.
    Credentials,
    /// All of it if it holds cookies; otherwise it names a file.
    Cookies,
    /// What follows `pass:`; `env:`, `file:` and `fd:` only name a place.
    Scheme,
}

/// Where the value of an option stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Place {
    /// In the next word, or after `=`.
    Next,
    /// In the same word.
    Glued,
    /// In either.
    Either,
}

/// An option with a secret.
type Secret = (&'static str, Place, Hides);

/// Programs with the same options.
struct Program {
    names: &'static [&'static str],
    /// A word that must stand before the options; empty if none.
    verb: &'static str,
    /// Whether its first operand is a program, which has options of its own.
    runs: bool,
    /// Letters whose value is no secret: in `mysql -uapp` the `p` is no option.
    takes: &'static str,
    secrets: &'static [Secret],
}

use Hides::{After, Cookies, Credentials, Scheme, Whole};
use Place::{Either, Glued, Next};

/// The programs.
const PROGRAMS: &[Program] = &[
    Program {
        names: &["curl", "curlie", "hurl"],
        verb: "",
        runs: false,
        takes: "AcCdDeFhHKmoPQrtTwxXyYz",
        secrets: &[
            ("-u", Either, After(':')),
            ("--user", Next, After(':')),
            ("-U", Either, After(':')),
            ("-b", Either, Cookies),
            ("--cookie", Next, Cookies),
            ("-E", Either, After(':')),
            ("--cert", Next, After(':')),
            ("--proxy-cert", Next, After(':')),
            ("--pass", Next, Whole),
            ("--proxy-pass", Next, Whole),
            ("--tlspassword", Next, Whole),
            ("--proxy-tlspassword", Next, Whole),
        ],
    },
    Program {
        names: &["http", "https", "xh", "hey"],
        verb: "",
        runs: false,
        takes: "Aop",
        secrets: &[("-a", Either, After(':'))],
    },
    Program {
        names: &["sshpass"],
        verb: "",
        runs: true,
        takes: "dfP",
        secrets: &[("-p", Either, Whole)],
    },
    Program {
        names: &[
            "docker", "podman", "nerdctl", "buildah", "helm", "oras", "crane", "regctl", "az",
            "oc", "cf",
        ],
        verb: "login",
        runs: false,
        takes: "u",
        secrets: &[("-p", Either, Whole)],
    },
    Program {
        names: &["skopeo"],
        verb: "",
        runs: false,
        takes: "u",
        secrets: &[
            ("-p", Either, Whole),
            ("--creds", Next, After(':')),
            ("--src-creds", Next, After(':')),
            ("--dest-creds", Next, After(':')),
        ],
    },
    Program {
        names: &[
            "mysql",
            "mysqladmin",
            "mysqlbinlog",
            "mysqlcheck",
            "mysqldump",
            "mysqlimport",
            "mysqlshow",
            "mysqlslap",
            "mariadb",
            "mariadb-admin",
            "mariadb-binlog",
            "mariadb-check",
            "mariadb-dump",
            "mariadb-import",
            "mariadb-show",
        ],
        verb: "",
        runs: false,
        takes: "DehPSuw",
        secrets: &[("-p", Glued, Whole)],
    },
    Program {
        names: &["mongo", "mongosh", "mongodump", "mongorestore", "mongoimport", "mongoexport"],
        verb: "",
        runs: false,
        takes: "cdhu",
        secrets: &[("-p", Either, Whole)],
    },
    Program {
        names: &["redis-cli", "valkey-cli"],
        verb: "",
        runs: false,
        takes: "dDhinprsuX",
        secrets: &[("-a", Either, Whole), ("--pass", Next, Whole)],
    },
    Program {
        names: &["twine"],
        verb: "",
        runs: false,
        takes: "Ciru",
        secrets: &[("-p", Either, Whole)],
    },
    Program {
        names: &["ldapadd", "ldapdelete", "ldapmodify", "ldappasswd", "ldapsearch", "ldapwhoami"],
        verb: "",
        runs: false,
        takes: "bDfHhlopPRsUXyYZz",
        secrets: &[("-w", Either, Whole)],
    },
    Program {
        names: &["smbclient", "smbget", "rpcclient"],
        verb: "",
        runs: false,
        takes: "AcDIMmnOpTtW",
        secrets: &[("-U", Either, After('%')), ("--user", Next, After('%'))],
    },
    Program {
        names: &["lftp"],
        verb: "",
        runs: false,
        takes: "cefp",
        secrets: &[("-u", Either, After(',')), ("--user", Next, After(','))],
    },
    Program {
        names: &["sqlcmd", "bcp", "isql"],
        verb: "",
        runs: false,
        takes: "dHiloQSU",
        secrets: &[("-P", Either, Whole)],
    },
    Program {
        names: &["zip", "unzip"],
        verb: "",
        runs: false,
        takes: "bdnstx",
        secrets: &[("-P", Either, Whole)],
    },
    Program {
        names: &["7z", "7za", "7zr", "rar", "unrar"],
        verb: "",
        runs: false,
        takes: "",
        secrets: &[("-p", Glued, Whole), ("-hp", Glued, Whole)],
    },
    Program {
        names: &["openssl"],
        verb: "",
        runs: false,
        takes: "",
        secrets: &[("-pass", Next, Scheme), ("-k", Next, Whole), ("-K", Next, Whole)],
    },
];

/// Options of programs that no list names.
const ANY: &[Secret] = &[
    ("-u", Next, Credentials),
    ("--user", Next, Credentials),
    ("--proxy-user", Next, After(':')),
    ("--oauth2-bearer", Next, Whole),
    ("-passin", Next, Scheme),
    ("-passout", Next, Scheme),
    ("-password", Next, Scheme),
];

/// Programs whose `-u` and `--user` take no password: users with groups, names, or nothing.
#[rustfmt::skip]
const NO_PASSWORD: &[&str] = &[
    "buildah", "chroot", "cp", "crictl", "date", "diff", "docker", "docker-compose", "env", "git", "id",
    "journalctl", "kubectl", "machinectl", "mv", "nerdctl", "nsenter", "podman", "ps", "pgrep", "pkill", "python",
    "python3", "rsync", "runuser", "setpriv", "sort", "sudo", "systemctl", "systemd-run", "tar", "touch", "uniq",
    "uvicorn", "gunicorn",
];

/// Words after which `NAME VALUE` sets something: `npm config set _authToken VALUE`.
const SETS: &[&str] = &["set"];

/// Whether a text could hold an option with a secret; most do not.
pub(super) fn could_hold(text: &str) -> bool {
    let any = |names: &[&str]| names.iter().any(|name| text.contains(name));
    text.contains('-')
        && (any(&["-u", "--proxy-user", "--oauth2-bearer", "-pass"])
            || PROGRAMS.iter().any(|program| any(program.names)))
        || any(SETS)
}

/// The words of one command, in order.
#[derive(Debug, Default)]
pub(super) struct Command {
    /// Index into [`PROGRAMS`].
    program: Option<usize>,
    /// Whether the verb of the program was seen.
    verb: bool,
    /// Whether `-u` takes no password here.
    no_password: bool,
    /// What the next word is, if an option or a name said so.
    next: Option<Hides>,
    /// What follows if the word goes on behind a quote.
    glued: Option<Hides>,
    /// Whether the last word sets the name that follows.
    sets: bool,
}

impl Command {
    /// Reads a word, with or without its quotes. The secret in it begins at the given byte.
    pub(super) fn secret(&mut self, word: &str) -> Option<usize> {
        let begun = skip_quote(word, 0);
        let bare = word[begun..].trim_end_matches(QUOTES);
        let named = std::mem::take(&mut self.sets);
        self.glued = None;
        if let Some(hides) = self.next.take()
            // `mysql --password --host=x`: an option is no value. A password may begin with a dash, though.
            && !(bare.starts_with("--") && bare.len() > 2)
        {
            return hidden(word, begun, hides);
        }
        if named && super::names::is_secret_key(bare.rsplit(':').next().unwrap_or(bare)) {
            self.next = Some(Whole);
            return None;
        }
        self.sets = SETS.contains(&bare);
        if !bare.starts_with('-') {
            self.enter(bare);
            return None;
        }
        if self.applies()
            && let Some(program) = self.program.map(|at| &PROGRAMS[at])
            && let Some(found) = self.option(word, begun, program.secrets, program.takes)
        {
            return found;
        }
        let any = if self.no_password { &ANY[2..] } else { ANY };
        self.option(word, begun, any, "").flatten()
    }

    /// Whether the word that comes is a value, which may be a secret.
    fn expects(&self) -> bool {
        self.next.is_some()
    }

    /// The last word goes on: only a quote stands between it and the next.
    fn goes_on(&mut self) {
        self.next = self.glued.take().or(self.next);
    }

    fn applies(&self) -> bool {
        self.verb || self.program.is_some_and(|at| PROGRAMS[at].verb.is_empty())
    }

    /// A word that is no option: a program, the verb of one, or an operand.
    fn enter(&mut self, bare: &str) {
        let name = bare.rsplit('/').next().unwrap_or(bare);
        if let Some(at) = PROGRAMS.iter().position(|program| program.names.contains(&name)) {
            (self.program, self.verb) = (Some(at), false);
        } else if let Some(program) = self.program.map(|at| &PROGRAMS[at]) {
            self.verb |= program.verb == bare;
            self.program = self.program.filter(|_| !program.runs);
        }
        // The image of a container may be named like a program; the user is the container's all the same.
        self.no_password |= NO_PASSWORD.contains(&name);
    }

    /// Looks an option up: nothing if it is not in the list, otherwise where the secret in this very word begins.
    fn option(
        &mut self,
        word: &str,
        begun: usize,
        secrets: &[Secret],
        takes: &str,
    ) -> Option<Option<usize>> {
        let bare = word[begun..].trim_end_matches(QUOTES);
        for (option, place, hides) in secrets {
            if bare == *option {
                self.next = (*place != Glued).then_some(*hides);
                self.glued = Some(*hides);
                return Some(None);
            }
            if let Some(rest) = bare.strip_prefix(option)
                && *place != Glued
                && rest.starts_with('=')
            {
                let value = skip_quote(word, begun + option.len() + 1);
                self.glued = (value == word.len()).then_some(*hides);
                return Some(hidden(word, value, *hides));
            }
            let glued = *place == Glued && option.len() > 2;
            if glued && bare.starts_with(option) {
                return Some(hidden(word, skip_quote(word, begun + option.len()), *hides));
            }
        }
        self.letters(word, begun, secrets, takes)
    }

    /// Single letters, one of which may take a secret: `-sSu ann:pw`, `-ppw`.
    fn letters(
        &mut self,
        word: &str,
        begun: usize,
        secrets: &[Secret],
        takes: &str,
    ) -> Option<Option<usize>> {
        let letters = word[begun..].strip_prefix('-').filter(|rest| !rest.starts_with('-'))?;
        for (at, letter) in letters.char_indices() {
            if !letter.is_ascii_alphabetic() || takes.contains(letter) {
                return None;
            }
            let of = |secret: &&Secret| {
                secret.1 != Next && secret.0.len() == 2 && secret.0.ends_with(letter)
            };
            let Some((_, place, hides)) = secrets.iter().find(of) else { continue };
            let value = begun + 1 + at + 1;
            if word[value..].trim_end_matches(QUOTES).is_empty() {
                self.next = (*place == Either).then_some(*hides);
                self.glued = Some(*hides);
                return Some(None);
            }
            return Some(hidden(word, skip_quote(word, value), *hides));
        }
        None
    }
}

/// What stands around words: quotes of a shell, and those of our own messages.
const QUOTES: &[char] = &['"', '\'', '`'];

/// The byte after a quote, if one stands there.
fn skip_quote(word: &str, at: usize) -> usize {
    let quote = word.get(at..).is_some_and(|rest| rest.starts_with(QUOTES));
    if quote { at + 1 } else { at }
}

/// Where the secret of a value begins, if there is one. The value begins at `at`.
fn hidden(word: &str, at: usize, hides: Hides) -> Option<usize> {
    let value = &word[at..];
    let bare = value.trim_end_matches(QUOTES);
    let after = |mark: char| bare.find(mark).map(|found| at + found + mark.len_utf8());
    let begins = match hides {
        Whole => Some(at),
        After(mark) => after(mark),
        Credentials => {
            let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit());
            let (name, password) = bare.split_once(':')?;
            let plain = name.is_empty()
                || name.contains('/')
                || password.starts_with('/')
                || number(name) && number(password);
            if plain { None } else { after(':') }
        }
        Cookies => bare.contains('=').then_some(at),
        Scheme => bare.starts_with("pass:").then_some(at + "pass:".len()),
    }?;
    let begins = skip_quote(word, begins);
    let secret = word[begins..].trim_end_matches(QUOTES);
    (!secret.is_empty() && !secret.starts_with(MASK)).then_some(begins)
}

/// A word of a shell's line without the secret that begins at `at`. The quotes around it stay.
pub(super) fn masked_in_line(word: &str, at: usize) -> String {
    let (before, secret) = word.split_at(at);
    // What only names a variable is no secret, unless the shell would not look it up.
    if !word.contains('\'') && is_variable(secret.trim_end_matches('"')) {
        return word.to_owned();
    }
    let open = before.chars().fold(None, |open, c| match (open, c) {
        (None, '"' | '\'') => Some(c),
        (Some(quote), c) if quote == c => None,
        (open, _) => open,
    });
    // The last word of a command in a message ends with the mark of its beginning, in another word.
    let closes = if secret.ends_with('`') { Some('`') } else { open };
    let closes = closes.filter(|quote| secret.ends_with(*quote));
    format!("{before}{MASK}{}", closes.map(String::from).unwrap_or_default())
}

/// `$NAME` or `${NAME}`; what is left of `$(COMMAND)` too.
fn is_variable(text: &str) -> bool {
    let Some(name) = text.strip_prefix('$') else { return false };
    let inner = name.strip_prefix('{').and_then(|name| name.strip_suffix('}')).unwrap_or(name);
    inner.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'_')
}

/// A word of an argument vector without the secret that begins at `at`.
pub(super) fn masked(word: &str, at: usize) -> String {
    format!("{}{MASK}", &word[..at])
}

/// A text without the secrets of commands in it. What is hidden has no quote and no backslash: JSON stays JSON.
pub(super) fn redact(text: &str) -> Cow<'_, str> {
    if !could_hold(text) {
        return Cow::Borrowed(text);
    }
    let mut out = String::new();
    let mut copied = 0;
    let mut base = 0;
    for line in text.split_inclusive('\n') {
        for (from, to) in secrets_in(line) {
            out.push_str(&text[copied..base + from]);
            out.push_str(MASK);
            copied = base + to;
        }
        base += line.len();
    }
    if copied == 0 {
        return Cow::Borrowed(text);
    }
    out.push_str(&text[copied..]);
    Cow::Owned(out)
}

/// What ends a command where a word begins or ends with it.
const OPERATORS: &[char] = &[';', '&', '|', '<', '>', '(', ')'];

/// The places of secrets in one line of a text. Words end at blanks, quotes and backslashes.
fn secrets_in(line: &str) -> Vec<(usize, usize)> {
    let ends = |c: char| c.is_whitespace() || matches!(c, '"' | '\'' | '`' | '\\');
    let mut found = Vec::new();
    let mut command = Command::default();
    let mut at = 0;
    loop {
        let gap = gap(&line[at..]);
        let begun = at + gap.len();
        if begun == line.len() {
            return found;
        }
        let quote = gap.chars().next_back().filter(|c| matches!(c, '"' | '\''));
        if quote.is_some() && !gap.contains(char::is_whitespace) {
            command.goes_on();
        }
        // A string of JSON that ends here is no value that begins here.
        let ended = quote == Some('"') && line[begun..].starts_with([',', ':', ']', '}']);
        let value = quote.is_some() && !ended && command.expects();
        let stop = match quote {
            // A value in quotes may have blanks.
            Some(quote) if value => line[begun..].find([quote, '"', '\\', '\n']),
            _ => line[begun..].find(ends),
        };
        at = stop.map_or(line.len(), |stop| begun + stop);
        let word = &line[begun..at];
        if word.chars().all(|c| matches!(c, ',' | '[' | ']' | '{' | '}' | ':')) {
            // Between the members of a list in JSON.
            continue;
        }
        // What follows a string of JSON outside of any is a number or a border.
        if command.expects() && gap.contains('"') && (ended || quote.is_none()) {
            command = Command::default();
        }
        if value {
            found.extend(command.secret(word).map(|secret| (begun + secret, at)));
            continue;
        }
        if word.starts_with(OPERATORS) {
            command = Command::default();
        }
        let bare = word.trim_matches(OPERATORS);
        let offset = word.len() - word.trim_start_matches(OPERATORS).len();
        if let Some(secret) = command.secret(bare) {
            found.push((begun + offset + secret, begun + offset + bare.len()));
        }
        if word.ends_with(OPERATORS) {
            command = Command::default();
        }
    }
}

/// What stands before a word: blanks, quotes and whole escapes.
fn gap(text: &str) -> &str {
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        rest = match c {
            '\\' if rest.starts_with("\\u") => rest.get(6..).unwrap_or_default(),
            '\\' => {
                let mut chars = rest.chars();
                chars.nth(1);
                chars.as_str()
            }
            c if c.is_whitespace() || QUOTES.contains(&c) => &rest[c.len_utf8()..],
            _ => break,
        };
    }
    &text[..text.len() - rest.len()]
}
