//! The network of commands: real programs in real sandboxes, and servers on loopback.

mod attacks;
mod connect;
mod limits;
mod server;

use crate::support::{Home, needs_engine};
use serde_json::Value;
use server::Server;

/// A caller whose commands reach `site.example:80`, a server on loopback, and `tls.example:443` if there is one.
struct Net {
    home: Home,
    site: Server,
}

/// More rules of the policy, in the form of a list.
fn net(more: &str) -> Net {
    net_with(more, "[read, write, code, net]")
}

fn net_with(more: &str, effects: &str) -> Net {
    needs_engine();
    let (home, site) = (Home::new(), Server::http());
    let text = format!(
        "policy: 1\nname: web\nextends: [readonly]\nsandbox: {{ limits: {{ wall: 60s, open-files: 2048, pids: 256 }} }}\ncommands:\n  - {{ id: run, allow: [\"python3 ...\", \"node ...\", \"curl ...\", \"sh ...\"], effects: {effects} }}\nnet:\n  - {{ id: site, for: commands, allow: \"connect site.example:80\", at: \"127.0.0.1:{}\" }}\n{more}",
        site.port
    );
    home.user_policy("web", &text);
    Net { home, site }
}

impl Net {
    /// The result of a command.
    fn exec(&self, argv: &[&str]) -> Value {
        let words = ["exec", "--json", "--policy", "web", "--"].iter().chain(argv);
        self.home.run(words).json()
    }

    /// The result of a program in Python.
    fn python(&self, program: &str) -> Value {
        self.exec(&["python3", "-c", program])
    }

    /// Every connection that is recorded, newest first.
    fn connections(&self) -> Vec<Value> {
        let listed = self.home.run(["audit", "list", "--net", "--json"]);
        let value: Value = serde_json::from_str(&listed.out).unwrap();
        value["connections"]
            .as_array()
            .unwrap()
            .iter()
            .map(|one| one["connection"].clone())
            .collect()
    }
}

/// What a command printed.
fn out(result: &Value) -> &str {
    result["stdout"]["text"].as_str().or(result["stdout"].as_str()).unwrap_or_default()
}

/// The entry about a name, if the sandbox kept it from the command.
fn entry<'a>(result: &'a Value, name: &str) -> Option<&'a Value> {
    let entries = result["sandbox"].as_array()?;
    entries.iter().find(|entry| entry["name"] == name)
}
