//! Remembered results: one file each, in the caller's own state folder.
//!
//! A file is named by what was asked (the tool's file with its content, how it is shown, our own way of compiling) and
//! holds the module and everything that was looked at; a process that uses the entry checks all of that again. It begins with the
//! digest of the rest: what is cut off or altered is a miss. Losing all of it costs time and nothing else. Trust boundary:
//! the folder is the caller's own, and a result runs only where the source would have run.

use std::fs::{self, DirBuilder, File, OpenOptions};
use std::io::{Read, Write};
use std::os::unix::fs::{DirBuilderExt, MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, SystemTime};

use rustix::fs::OFlags;

use runner_compiler::folder::digest;
use runner_compiler::job::Done;
use runner_compiler::limits::{ANSWER_BYTES, CACHE_BYTES, CACHE_ENTRIES};

use super::program;
use super::source::{Part, Source};

/// Length of a digest in hex.
const DIGEST: usize = 64;

/// A result that is used stays young; but it is not touched at every use.
const TOUCH: Duration = Duration::from_secs(3600);

/// The remembered results of one caller.
#[derive(Debug, Clone)]
pub struct Cache(Option<PathBuf>);

/// What is asked.
#[derive(Debug)]
pub struct Key(String);

impl Key {
    /// The key of a source.
    pub fn of(source: &Source) -> Self {
        let mut hasher = blake3::Hasher::new();
        let mut add = |bytes: &[u8]| {
            hasher.update(&(bytes.len() as u64).to_le_bytes()).update(bytes);
        };
        // Another compiler makes other modules.
        add(program::DIGEST.as_bytes());
        add(source.folder.as_os_str().as_encoded_bytes());
        for part in [&source.file, &source.shown, &source.document] {
            add(part.as_bytes());
        }
        match &source.part {
            Part::Whole(language) => add(format!("{language:?}").as_bytes()),
            Part::Code { text, language, place } => {
                add(text.as_bytes());
                add(format!("{language:?} {place:?}").as_bytes());
            }
        }
        Self(hasher.finalize().to_hex().to_string())
    }
}

impl Cache {
    /// The one below a state folder; without one nothing is remembered.
    pub fn new(state: Option<&Path>) -> Self {
        Self(state.map(|state| state.join("compiled")))
    }

    /// What is remembered, if it is whole.
    pub fn get(&self, key: &Key) -> Option<Done> {
        let path = self.0.as_ref()?.join(&key.0);
        let flags = OFlags::NOFOLLOW | OFlags::NONBLOCK;
        let flags = i32::try_from(flags.bits()).ok()?;
        let file = OpenOptions::new().read(true).custom_flags(flags).open(path).ok()?;
        let meta = file.metadata().ok()?;
        // Only a plain file of this user counts: another user may have made the folder's parents.
        if !meta.is_file() || meta.uid() != rustix::process::geteuid().as_raw() {
            return None;
        }
        let mut bytes = Vec::new();
        (&file).take(ANSWER_BYTES as u64).read_to_end(&mut bytes).ok()?;
        let (named, rest) = bytes.split_at_checked(DIGEST)?;
        if digest(rest).as_bytes() != named {
            return None;
        }
        touch(&file, &meta);
        serde_json::from_slice(rest).ok()
    }

    /// Remembers a result. Failing to costs time only.
    pub fn put(&self, key: &Key, done: &Done) {
        let _ = self.try_put(key, done);
    }

    fn try_put(&self, key: &Key, done: &Done) -> Option<()> {
        /// Tells files of one process apart.
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let folder = self.0.as_ref()?;
        DirBuilder::new().recursive(true).mode(0o700).create(folder).ok()?;
        let rest = serde_json::to_vec(done).ok()?;
        if rest.len() + DIGEST > ANSWER_BYTES {
            return None;
        }
        self.make_room(rest.len() as u64)?;
        // Another process may do the same: whole files only, by rename.
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let temporary = folder.join(format!("{}.{}.{number}.new", key.0, std::process::id()));
        let written = OpenOptions::new()
            .write(true)
            .create_new(true)
            .mode(0o600)
            .open(&temporary)
            .and_then(|mut file| {
                file.write_all(digest(&rest).as_bytes())?;
                file.write_all(&rest)
            })
            .and_then(|()| fs::rename(&temporary, folder.join(&key.0)));
        if written.is_err() {
            let _ = fs::remove_file(&temporary);
        }
        written.ok()
    }

    /// Removes the longest unused results until one of this size fits.
    fn make_room(&self, size: u64) -> Option<()> {
        let mut kept: Vec<(SystemTime, u64, PathBuf)> = fs::read_dir(self.0.as_ref()?)
            .ok()?
            .flatten()
            .filter_map(|entry| {
                let meta = entry.metadata().ok()?;
                Some((meta.modified().ok()?, meta.len(), entry.path()))
            })
            .collect();
        kept.sort();
        let mut bytes: u64 = size + kept.iter().map(|(_, size, _)| size).sum::<u64>();
        let mut entries = kept.len() + 1;
        for (_, size, path) in kept {
            if bytes <= CACHE_BYTES && entries <= CACHE_ENTRIES {
                break;
            }
            // If another process was faster, the room is there all the same.
            let _ = fs::remove_file(path);
            bytes = bytes.saturating_sub(size);
            entries -= 1;
        }
        Some(())
    }
}

fn touch(file: &File, meta: &fs::Metadata) {
    let now = SystemTime::now();
    let old = meta.modified().ok().and_then(|then| now.duration_since(then).ok());
    if old.is_some_and(|age| age > TOUCH) {
        // An untouched result is only removed earlier.
        let _ = file.set_modified(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use runner_compiler::folder::{Follow, Seen};
    use runner_compiler::job::{Confinement, Language, Observation, Place};

    fn done(code: &str) -> Done {
        Done {
            code: code.to_owned(),
            exports: vec!["execute".to_owned()],
            observed: vec![Observation {
                path: "x.ts".to_owned(),
                follow: Follow::No,
                seen: Seen::Absent,
            }],
            repeatable: true,
            micros: 1,
            confinement: Confinement { landlock: 1, missing: Vec::new() },
        }
    }

    fn source() -> Source {
        Source {
            folder: "/t".into(),
            file: "a.yml".to_owned(),
            shown: "a.yml".to_owned(),
            document: "code: x".to_owned(),
            part: Part::Code {
                text: "x".to_owned(),
                language: Language::TypeScript,
                place: Place { line: 1, indent: 2 },
            },
        }
    }

    #[test]
    fn what_is_kept_comes_back_and_what_is_damaged_does_not() {
        let state = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(state.path()));
        let key = Key::of(&source());
        assert_eq!(cache.get(&key), None);
        cache.put(&key, &done("1"));
        assert_eq!(cache.get(&key), Some(done("1")));
        let path = state.path().join("compiled").join(&key.0);
        let whole = fs::read(&path).unwrap();
        for damaged in [&whole[..whole.len() - 1], &whole[..10], b"".as_slice()] {
            fs::write(&path, damaged).unwrap();
            assert_eq!(cache.get(&key), None);
        }
        let mut altered = whole.clone();
        *altered.last_mut().unwrap() ^= 1;
        fs::write(&path, altered).unwrap();
        assert_eq!(cache.get(&key), None);
        fs::write(&path, whole).unwrap();
        assert_eq!(cache.get(&key), Some(done("1")));
    }

    #[test]
    fn a_link_in_its_place_is_a_miss() {
        let state = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(state.path()));
        let key = Key::of(&source());
        cache.put(&key, &done("1"));
        let path = state.path().join("compiled").join(&key.0);
        fs::rename(&path, state.path().join("elsewhere")).unwrap();
        std::os::unix::fs::symlink("../elsewhere", &path).unwrap();
        assert_eq!(cache.get(&key), None);
    }

    #[test]
    fn every_part_of_what_is_asked_is_in_the_key() {
        let base = Key::of(&source()).0;
        let place =
            |place| Part::Code { text: "x".to_owned(), language: Language::TypeScript, place };
        let others = [
            Source { folder: "/u".into(), ..source() },
            Source { file: "b.yml".to_owned(), ..source() },
            Source { shown: "b.yml".to_owned(), ..source() },
            Source { document: "code: y".to_owned(), ..source() },
            Source { part: Part::Whole(Language::TypeScript), ..source() },
            Source { part: place(Place { line: 2, indent: 2 }), ..source() },
            Source { part: place(Place { line: 1, indent: 3 }), ..source() },
        ];
        for other in others {
            assert_ne!(Key::of(&other).0, base, "{other:?}");
        }
        assert_eq!(Key::of(&source()).0, base);
    }

    #[test]
    fn the_oldest_make_room() {
        let state = tempfile::tempdir().unwrap();
        let cache = Cache::new(Some(state.path()));
        let folder = state.path().join("compiled");
        fs::create_dir(&folder).unwrap();
        for number in 0..CACHE_ENTRIES + 10 {
            let file = File::create(folder.join(format!("{number}"))).unwrap();
            let age = Duration::from_secs(1_000_000 + number as u64);
            file.set_modified(SystemTime::UNIX_EPOCH + age).unwrap();
        }
        let key = Key::of(&source());
        cache.put(&key, &done("1"));
        assert_eq!(fs::read_dir(&folder).unwrap().count(), CACHE_ENTRIES);
        assert!(!folder.join("0").exists());
        assert!(folder.join(format!("{}", CACHE_ENTRIES + 9)).exists());
        assert!(cache.get(&key).is_some());
    }
}
