//! Calls through the MCP server: how many in a second, and what a request costs without a call.

use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Child, ChildStdin, ChildStdout, Stdio};
use std::time::{Duration, Instant};

use super::Extent;
use super::deadline::Deadline;
use super::error::BenchError;
use super::folder::Site;
use super::idle::wait_until_idle;
use super::peers::BWRAP;
use super::report::{Report, Row, Unit};
use super::sample::Samples;

/// Requests on their way at once, within the bound of one client.
const CLIENTS: [usize; 2] = [1, 4];
/// Requests without a call that are measured.
const TRIPS: usize = 300;
/// The longest that all of it may take.
const LONGEST: Duration = Duration::from_secs(300);

const HELLO: &str = r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"bench","version":"1"}}}"#;
const READY: &str = r#"{"jsonrpc":"2.0","method":"notifications/initialized"}"#;
const TRIP: &str = r#"{"jsonrpc":"2.0","id":2,"method":"resources/templates/list"}"#;
/// What the answer of a call that went well has.
const WELL: &str = r#""runner/status":"completed""#;

/// A request that runs a command. Requests on their way at once differ in their ids.
fn call(id: usize) -> String {
    format!(
        r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{{"name":"run_command","arguments":{{"argv":["true"]}}}}}}"#
    )
}

/// Adds the rows of one engine.
///
/// # Errors
/// The server did not answer as it should.
pub fn server(
    site: Site<'_>,
    extent: Extent,
    report: &mut Report,
    tell: &mut dyn FnMut(&str),
) -> Result<(), BenchError> {
    tell(&site.row("calls through the MCP server"));
    wait_until_idle();
    let mut server = Server::start(site)?;
    let mut trips = Samples::default();
    for _ in 0..TRIPS {
        let begun = Instant::now();
        server.send(TRIP)?;
        server.answer()?;
        trips.push(begun.elapsed());
    }
    report.add(Row::times(&site.row("mcp request without a call"), &trips));
    for clients in CLIENTS {
        let name = |what: &str| {
            format!("{what}, {clients} {}", if clients == 1 { "client" } else { "clients" })
        };
        let (rate, calls) = server.rate(clients, extent.crowd())?;
        let row = Row::one(&site.row(&name("mcp run_command")), rate, Unit::PerSecond, calls);
        report.add(row.beside(&name(BWRAP)));
    }
    Ok(())
}

/// A server at our pipes.
struct Server {
    child: Child,
    stdin: Option<ChildStdin>,
    stdout: BufReader<ChildStdout>,
    _deadline: Deadline,
}

impl Server {
    fn start(site: Site<'_>) -> Result<Self, BenchError> {
        let folder = site.place().workspace();
        let mut command = site.runner(&folder, &["mcp", "serve"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let failed = |error| BenchError::Local("start the MCP server", error);
        let mut child = command.spawn().map_err(failed)?;
        let deadline = Deadline::of(&child, LONGEST);
        let (Some(stdin), Some(stdout)) = (child.stdin.take(), child.stdout.take()) else {
            return Err(failed(std::io::ErrorKind::BrokenPipe.into()));
        };
        let stdout = BufReader::new(stdout);
        let mut server = Self { child, stdin: Some(stdin), stdout, _deadline: deadline };
        server.send(HELLO)?;
        server.answer()?;
        server.send(READY)?;
        Ok(server)
    }

    fn send(&mut self, line: &str) -> Result<(), BenchError> {
        let failed = |error| BenchError::Local("write to the MCP server", error);
        let Some(stdin) = &mut self.stdin else { return Ok(()) };
        stdin.write_all(format!("{line}\n").as_bytes()).map_err(failed)
    }

    /// The next answer; notifications are passed over.
    fn answer(&mut self) -> Result<String, BenchError> {
        loop {
            let mut line = String::new();
            let read = self.stdout.read_line(&mut line);
            match read.map_err(|error| BenchError::Local("read from the MCP server", error))? {
                0 => return Err(broken("it ended")),
                _ if line.contains("\"id\":") => return Ok(line),
                _ => {}
            }
        }
    }

    /// Keeps so many calls on their way for so long; how many ended in a second, and in all.
    fn rate(&mut self, clients: usize, time: Duration) -> Result<(f64, usize), BenchError> {
        let (begun, mut calls) = (Instant::now(), 0);
        for id in 1..=clients {
            self.send(&call(id))?;
        }
        let mut running = clients;
        while running > 0 {
            let answer = self.answer()?;
            if !answer.contains(WELL) {
                return Err(broken(&answer.chars().take(200).collect::<String>()));
            }
            calls += 1;
            running -= 1;
            if begun.elapsed() < time {
                self.send(&call(clients + calls))?;
                running += 1;
            }
        }
        Ok((calls as f64 / begun.elapsed().as_secs_f64(), calls))
    }
}

fn broken(how: &str) -> BenchError {
    BenchError::Command { line: "runner mcp serve".to_owned(), how: how.to_owned() }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.stdin = None;
        let _ = self.child.wait();
    }
}
