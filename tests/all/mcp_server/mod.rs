//! The MCP server, from its clients' side.

mod client;
mod crowd;
mod hostile;
mod http;
mod sdk;
mod stdio;

use std::fs;

use crate::support::Home;

/// A policy that looks, asks about `head`, and lets `touch` write `out`.
const OWN: &str = "policy: 1\nname: own\nextends: [readonly]\ncommands:\n\
    \x20 - { id: ask, ask: 'head ...', reason: A person wants to see it. }\n\
    \x20 - { id: mark, allow: 'touch ...', effects: [read, write] }\n\
    files: { write: [out, 'out/**'] }\n";

/// A home with that policy, two files and a folder to write to. `more` is added to its configuration.
fn home(more: &str) -> Home {
    let home = Home::new();
    home.config(&format!("{}{more}", Home::CONFIG));
    home.user_policy("own", OWN);
    fs::write(home.path("project/name.txt"), "hello\n").unwrap();
    fs::write(home.path("project/other.txt"), "other\n").unwrap();
    fs::create_dir(home.path("project/out")).unwrap();
    home
}
