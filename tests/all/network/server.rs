//! Servers on loopback.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex};

/// A server that lives as long as the test's process.
pub struct Server {
    pub port: u16,
    /// Connections that were accepted.
    pub accepted: Arc<AtomicUsize>,
    ended: Arc<(Mutex<usize>, Condvar)>,
}

impl Server {
    fn with(serve: fn(TcpStream)) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let accepted = Arc::new(AtomicUsize::new(0));
        let ended = Arc::new((Mutex::new(0), Condvar::new()));
        let (count, over) = (Arc::clone(&accepted), Arc::clone(&ended));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                count.fetch_add(1, Ordering::Relaxed);
                let over = Arc::clone(&over);
                std::thread::spawn(move || {
                    serve(stream);
                    *over.0.lock().unwrap() += 1;
                    over.1.notify_all();
                });
            }
        });
        Self { port, accepted, ended }
    }

    /// Answers each request with its host and path.
    pub fn http() -> Self {
        Self::with(|mut stream| {
            let (mut head, mut byte) = (Vec::new(), [0]);
            while !head.ends_with(b"\r\n\r\n") {
                match stream.read(&mut byte) {
                    Ok(1) => head.push(byte[0]),
                    _ => return,
                }
            }
            let head = String::from_utf8_lossy(&head).to_lowercase();
            let host = head.lines().find_map(|line| line.strip_prefix("host: ")).unwrap_or("none");
            let body = format!("hello from {host}\n");
            let answer = format!(
                "HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            );
            let _ = stream.write_all(answer.as_bytes());
        })
    }

    /// Sends back what comes, and ends when the other side has.
    pub fn echo() -> Self {
        Self::with(|mut stream| {
            let mut buffer = vec![0; 64 << 10];
            loop {
                match stream.read(&mut buffer) {
                    Ok(0) => {
                        let _ = stream.shutdown(Shutdown::Write);
                        return;
                    }
                    Ok(count) if stream.write_all(&buffer[..count]).is_ok() => {}
                    Ok(_) | Err(_) => return,
                }
            }
        })
    }

    /// Reads everything, tells how much it was, and ends.
    pub fn sum() -> Self {
        Self::with(|mut stream| {
            let (mut buffer, mut total) = (vec![0; 64 << 10], 0_usize);
            while let Ok(count) = stream.read(&mut buffer) {
                total += count;
                if count == 0 {
                    let _ = stream.write_all(total.to_string().as_bytes());
                    return;
                }
            }
        })
    }

    /// Waits until so many connections have ended.
    pub fn wait_for_ends(&self, count: usize) {
        let (ended, changed) = &*self.ended;
        drop(changed.wait_while(ended.lock().unwrap(), |ended| *ended < count).unwrap());
    }

    pub fn accepted(&self) -> usize {
        self.accepted.load(Ordering::Relaxed)
    }
}
