//! An engine that is slow: a socket in front of the real one, which holds some requests back.

use std::io::{Read, Write};
use std::net::Shutdown;
use std::os::unix::net::{UnixListener, UnixStream};
use std::sync::{Arc, Condvar, Mutex};
use std::time::{Duration, Instant};

use crate::everyday::engine_socket;

/// How long a request is held back, by its first line; `None` goes through at once.
type Hold = dyn Fn(&str) -> Option<Duration> + Send + Sync;

/// A slow engine. It is there as long as the test's process.
pub struct SlowEngine {
    folder: tempfile::TempDir,
    desk: Arc<Desk>,
}

/// Where requests are held back.
#[derive(Default)]
struct Desk {
    book: Mutex<Book>,
    changed: Condvar,
}

#[derive(Default)]
struct Book {
    /// The first lines of all that were held back.
    held: Vec<String>,
    /// Whether nothing is held back any more.
    released: bool,
}

impl Desk {
    /// Holds a request back for so long, or until all are released.
    fn hold(&self, request: &str, time: Duration) {
        let mut book = self.book.lock().expect("a book");
        if !book.released {
            book.held.push(request.to_owned());
            drop(self.changed.wait_timeout_while(book, time, |book| !book.released));
        }
    }
}

impl SlowEngine {
    pub fn new(hold: impl Fn(&str) -> Option<Duration> + Send + Sync + 'static) -> Self {
        let folder = tempfile::Builder::new().prefix("runner-slow-").tempdir_in("/var/tmp");
        let engine = Self { folder: folder.expect("a folder"), desk: Arc::default() };
        let listener = UnixListener::bind(engine.path()).expect("a socket");
        let (hold, desk): (Arc<Hold>, _) = (Arc::new(hold), Arc::clone(&engine.desk));
        std::thread::spawn(move || {
            for client in listener.incoming().map_while(Result::ok) {
                let (hold, desk) = (Arc::clone(&hold), Arc::clone(&desk));
                std::thread::spawn(move || serve(client, &*hold, &desk));
            }
        });
        engine
    }

    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("sock")
    }

    pub fn endpoint(&self) -> String {
        format!("unix://{}", self.path().display())
    }

    /// How many requests were held back so far.
    pub fn held(&self) -> usize {
        self.held_back().len()
    }

    /// The first lines of the requests that were held back so far.
    pub fn held_back(&self) -> Vec<String> {
        self.desk.book.lock().expect("a book").held.clone()
    }

    /// Lets go of all that is held back, and holds nothing back any more.
    pub fn release(&self) {
        self.desk.book.lock().expect("a book").released = true;
        self.desk.changed.notify_all();
    }

    /// Waits until so many requests were held back.
    pub fn wait_for(&self, count: usize) {
        let begun = Instant::now();
        while self.held() < count {
            assert!(begun.elapsed() < Duration::from_secs(60), "{} held back", self.held());
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Passes everything on, both ways. A client that has left is not noticed while its request is held back, as an engine
/// that is at work does not.
fn serve(mut client: UnixStream, hold: &Hold, desk: &Desk) {
    let mut engine = UnixStream::connect(engine_socket()).expect("the engine");
    let (mut answers, mut to) =
        (engine.try_clone().expect("a copy"), client.try_clone().expect("a copy"));
    std::thread::spawn(move || {
        let _ = std::io::copy(&mut answers, &mut to);
        let _ = to.shutdown(Shutdown::Both);
    });
    let mut piece = [0; 64 << 10];
    while let Ok(length @ 1..) = client.read(&mut piece) {
        // Our clients write the head of a request at once.
        let first = piece[..length].split(|byte| *byte == b'\r').next().unwrap_or_default();
        let first = String::from_utf8_lossy(first);
        if let Some(time) = hold(&first) {
            desk.hold(&first, time);
        }
        if engine.write_all(&piece[..length]).is_err() {
            break;
        }
    }
    let _ = engine.shutdown(Shutdown::Write);
}
