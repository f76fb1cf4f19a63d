//! Tokens of clients that come over TCP: one each, kept as digests in a file of the user's alone.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read as _, Write as _};
use std::os::unix::fs::{DirBuilderExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::str::FromStr;
use std::sync::{Arc, Mutex, PoisonError};

use base64::Engine as _;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use rustix::fs::OFlags;
use serde::{Deserialize, Serialize};

use super::error::TokenError;
use super::http::Gate;
use super::who::{SOCKET, STDIO, Who};
use crate::json;
use crate::sys::lease::{Exclusive, Lease};

const FILE: &str = "mcp-tokens.json";
const LOCK: &str = "mcp-tokens.lock";
/// What the file is a version of.
const VERSION: u32 = 1;
/// The largest file.
const MAX_BYTES: u64 = 1 << 20;
/// What every token begins with, so that searches for secrets find it.
const PREFIX: &str = "runner_mcp_";
/// The longest name.
const MAX_NAME: usize = 32;

/// The name of a token: of one client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TokenName(String);

impl FromStr for TokenName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let known =
            |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || b"-_".contains(&byte);
        let begins = text.starts_with(|first: char| first.is_ascii_lowercase());
        if !begins || text.len() > MAX_NAME || !text.bytes().all(known) {
            return Err(format!(
                "a name has at most {MAX_NAME} small letters, digits, - and _, and begins with a letter"
            ));
        }
        if [STDIO, SOCKET].contains(&text) {
            return Err(format!("{text} names the clients of another transport"));
        }
        Ok(Self(text.to_owned()))
    }
}

impl TokenName {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

/// A token as it is kept: never itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TokenRow {
    /// The client.
    pub name: String,
    /// What records and limits tell it by.
    pub id: String,
    /// The digest of the token.
    digest: String,
    /// When it was made, in milliseconds since 1970.
    pub made: i64,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Rows {
    version: u32,
    tokens: Vec<TokenRow>,
}

/// Which file was read: it is read again when it is another.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Stamp(u64, i64, i64, u64);

/// The file of tokens.
#[derive(Debug)]
pub struct Tokens {
    folder: PathBuf,
    read: Mutex<Option<(Stamp, Arc<Vec<TokenRow>>)>>,
}

impl Tokens {
    /// That in a state folder.
    ///
    /// # Errors
    /// There is none.
    pub fn open(state: Option<&Path>) -> Result<Self, TokenError> {
        let folder = state.ok_or(TokenError::NoFolder)?.to_owned();
        Ok(Self { folder, read: Mutex::default() })
    }

    fn path(&self) -> PathBuf {
        self.folder.join(FILE)
    }

    /// Every token.
    ///
    /// # Errors
    /// The file is unsafe, damaged or unreadable.
    pub fn rows(&self) -> Result<Arc<Vec<TokenRow>>, TokenError> {
        let path = self.path();
        let failed = |source| TokenError::Io { path: path.clone(), source };
        let flags = (OFlags::NOFOLLOW | OFlags::NONBLOCK).bits().cast_signed();
        let file = match OpenOptions::new().read(true).custom_flags(flags).open(&path) {
            Ok(file) => file,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => return Ok(Arc::default()),
            Err(error) => return Err(failed(error)),
        };
        let meta = file.metadata().map_err(failed)?;
        let ours = meta.uid() == rustix::process::geteuid().as_raw();
        if !(ours && meta.is_file() && meta.mode() & 0o077 == 0) {
            return Err(TokenError::Unsafe(path));
        }
        let stamp = Stamp(meta.ino(), meta.ctime(), meta.ctime_nsec(), meta.size());
        let mut read = self.read.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((_, rows)) = read.as_ref().filter(|(known, _)| *known == stamp) {
            return Ok(Arc::clone(rows));
        }
        let mut text = Vec::new();
        file.take(MAX_BYTES).read_to_end(&mut text).map_err(failed)?;
        let damaged = |why| TokenError::Damaged { path: path.clone(), why };
        let rows: Rows = json::read_as(&text, json::Limits::USUAL)
            .map_err(|error| damaged(error.to_string()))?;
        if rows.version != VERSION {
            return Err(damaged(format!("version {} is not {VERSION}", rows.version)));
        }
        let rows = Arc::new(rows.tokens);
        *read = Some((stamp, Arc::clone(&rows)));
        Ok(rows)
    }

    /// Makes a token for a client. It is returned once, and kept nowhere.
    ///
    /// # Errors
    /// The client has one, or the file cannot be written.
    pub fn make(&self, name: &TokenName) -> Result<String, TokenError> {
        let random = |source| TokenError::Io { path: self.path(), source };
        let secret: [u8; 32] = crate::sys::random().map_err(random)?;
        let id: [u8; 8] = crate::sys::random().map_err(random)?;
        let token = format!("{PREFIX}{}", BASE64_URL_SAFE_NO_PAD.encode(secret));
        let row = TokenRow {
            name: name.0.clone(),
            id: format!("{}-{:016x}", name.0, u64::from_le_bytes(id)),
            digest: blake3::hash(token.as_bytes()).to_hex().to_string(),
            made: super::seal::now(),
        };
        self.change(|rows| {
            if rows.iter().any(|row| row.name == name.0) {
                return Err(TokenError::Exists(name.0.clone()));
            }
            rows.push(row);
            Ok(())
        })?;
        Ok(token)
    }

    /// Takes a token back. A running server refuses it from then on.
    ///
    /// # Errors
    /// There is none of this name, or the file cannot be written.
    pub fn revoke(&self, name: &TokenName) -> Result<(), TokenError> {
        self.change(|rows| {
            let before = rows.len();
            rows.retain(|row| row.name != name.0);
            if rows.len() == before { Err(TokenError::Unknown(name.0.clone())) } else { Ok(()) }
        })
    }

    fn change(
        &self,
        change: impl FnOnce(&mut Vec<TokenRow>) -> Result<(), TokenError>,
    ) -> Result<(), TokenError> {
        let path = self.path();
        let failed = |source| TokenError::Io { path: path.clone(), source };
        DirBuilder::new().recursive(true).mode(0o700).create(&self.folder).map_err(failed)?;
        let _lock = Lease::<Exclusive>::wait(&self.folder.join(LOCK)).map_err(failed)?;
        let mut tokens = self.rows()?.as_ref().clone();
        change(&mut tokens)?;
        let text = serde_json::to_string_pretty(&Rows { version: VERSION, tokens })
            .map_err(|error| failed(error.into()))?;
        // A reader sees the old file or the new one.
        let new = self.folder.join(format!("{FILE}.{}", std::process::id()));
        let write = || {
            let mut file: File = OpenOptions::new()
                .write(true)
                .create(true)
                .truncate(true)
                .mode(0o600)
                .open(&new)?;
            file.write_all(text.as_bytes())?;
            file.sync_all()?;
            fs::rename(&new, &path)
        };
        write().map_err(failed)
    }
}

impl Gate for Tokens {
    fn admit(&self, token: Option<&str>) -> Option<Who> {
        let digest = blake3::hash(token?.as_bytes());
        // A file that cannot be used admits no client.
        let rows = self.rows().ok()?;
        let is = |row: &&TokenRow| {
            // Digests of this type are compared in constant time.
            blake3::Hash::from_hex(&row.digest).is_ok_and(|known| known == digest)
        };
        rows.iter().find(is).map(|row| Who::with_token(&row.name, &row.id))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_token_admits_its_client_until_it_is_taken_back() {
        use std::os::unix::fs::PermissionsExt as _;
        let dir = tempfile::tempdir().unwrap();
        let tokens = Tokens::open(Some(dir.path())).unwrap();
        let (ann, bob): (TokenName, TokenName) = ("ann".parse().unwrap(), "bob".parse().unwrap());
        let (for_ann, for_bob) = (tokens.make(&ann).unwrap(), tokens.make(&bob).unwrap());
        assert!(matches!(tokens.make(&ann), Err(TokenError::Exists(_))));
        assert_eq!(tokens.admit(Some(&for_ann)).unwrap().name, "ann");
        assert_eq!(tokens.admit(Some(&for_bob)).unwrap().name, "bob");
        for wrong in [None, Some(""), Some("ann"), Some(&for_ann[..for_ann.len() - 1])] {
            assert!(tokens.admit(wrong).is_none());
        }
        let kept = fs::read_to_string(tokens.path()).unwrap();
        assert!(!kept.contains(&for_ann) && !kept.contains(&for_ann[PREFIX.len()..]));
        tokens.revoke(&ann).unwrap();
        assert!(tokens.admit(Some(&for_ann)).is_none());
        assert!(tokens.admit(Some(&for_bob)).is_some());
        let mode = fs::metadata(tokens.path()).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode, 0o600);
        // A file that others can read admits no client.
        fs::set_permissions(tokens.path(), fs::Permissions::from_mode(0o644)).unwrap();
        assert!(tokens.admit(Some(&for_bob)).is_none());
    }

    #[test]
    fn names_are_plain() {
        for wrong in ["", "Ann", "1a", "a b", "../a", "stdio", "socket", &"a".repeat(33)] {
            assert!(wrong.parse::<TokenName>().is_err(), "{wrong}");
        }
    }
}
