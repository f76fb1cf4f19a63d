//! What reaches its server: programs of several kinds, both ways, and how it is recorded.

use super::server::Server;
use super::{entry, net, net_with, out};

#[test]
fn programs_reach_the_names_that_rules_name_and_no_others() {
    let net = net("");
    let urllib = |name: &str| {
        let program = format!(
            "import urllib.request as u; print(u.urlopen('http://{name}/').read().decode())"
        );
        net.python(&program)
    };
    let fetch = |name: &str| {
        let program = format!(
            "fetch('http://{name}/').then(r => r.text()).then(t => console.log(t), e => {{ console.error(e.cause?.code ?? e); process.exit(3) }})"
        );
        net.exec(&["node", "-e", &program])
    };
    for reached in [
        net.exec(&["curl", "-sS", "http://site.example/"]),
        net.exec(&["sh", "-c", "f() { curl -sS http://site.example/; }; f"]),
        urllib("site.example"),
        fetch("site.example"),
    ] {
        assert_eq!(reached["status"], "completed", "{reached:#}");
        assert!(out(&reached).starts_with("hello from site.example"), "{reached:#}");
        assert_eq!(entry(&reached, "site.example"), None, "{reached:#}");
    }
    for refused in [urllib("other.example"), fetch("other.example")] {
        assert_eq!(refused["status"], "failed", "{refused:#}");
        let entry = entry(&refused, "other.example").unwrap_or_else(|| panic!("{refused:#}"));
        assert_eq!(entry["code"], "not_reached");
        assert!(entry["next"].as_str().unwrap().contains("connect other.example:443"), "{entry}");
    }
    // What the arguments say is judged before anything runs.
    let denied = net.exec(&["curl", "-sS", "http://other.example/"]);
    assert_eq!(denied["status"], "denied", "{denied:#}");
    assert_eq!(net.site.accepted(), 4);

    let recorded = net.connections();
    assert_eq!(recorded.len(), 4, "{recorded:#?}");
    for one in &recorded {
        assert_eq!(one["object"], "site.example:80");
        assert_eq!(one["address"], format!("127.0.0.1:{}", net.site.port));
        assert_eq!((&one["rule"], &one["decision"]), (&"web/site".into(), &"allow".into()));
        assert!(
            one["bytes_in"].as_u64() > Some(20) && one["bytes_out"].as_u64() > Some(60),
            "{one}"
        );
    }
    for (asked, code) in [
        ("site.example:80", 0),
        ("connect site.example:80", 0),
        ("site.example:81", 126),
        ("other.example:80", 126),
    ] {
        let explained = net.home.run(["policy", "explain", "--policy", "web", "--net", asked]);
        assert_eq!(explained.code, Some(code), "{asked}: {}", explained.out);
    }
}

#[test]
fn without_the_effect_net_there_is_no_resolver_and_no_listener() {
    let program = "import socket\ntry: print(socket.gethostbyname('site.example'))\nexcept OSError as e: print('none')\nfor port in (53, 80):\n s = socket.socket(); s.bind(('127.0.0.1', port)); s.listen(); print('free', port)";
    let without = net_with("", "[read, write, code]");
    let result = without.python(program);
    assert!(out(&result).starts_with("none"), "{result:#}");
    assert_eq!(without.connections().len(), 0);
    // The control: the same program where the rule lists `net`.
    let with = net("").python(program);
    assert!(out(&with).starts_with("127.64.0.1"), "{with:#}");
    assert_ne!(with["status"], "completed", "the ports are taken: {with:#}");
}

#[test]
fn each_side_ends_for_itself_and_large_bodies_arrive_whole() {
    let sum = Server::sum();
    let net = net(&format!(
        "  - {{ id: sum, for: commands, allow: \"connect sum.example:9000\", at: \"127.0.0.1:{}\" }}\n",
        sum.port
    ));
    let program = "import socket\ns = socket.create_connection(('sum.example', 9000))\ns.sendall(b'x' * 5_000_000)\ns.shutdown(socket.SHUT_WR)\nprint(s.recv(100).decode(), s.recv(1))";
    let result = net.python(program);
    assert_eq!(out(&result).trim(), "5000000 b''", "{result:#}");
    let recorded = &net.connections()[0];
    assert_eq!((&recorded["bytes_in"], &recorded["bytes_out"]), (&5_000_000.into(), &7.into()));
}

#[test]
fn many_connections_at_once_do_not_hold_each_other_up() {
    let echo = Server::echo();
    let net = net(&format!(
        "  - {{ id: echo, for: commands, allow: \"connect echo.example:7\", at: \"127.0.0.1:{}\" }}\n",
        echo.port
    ));
    // The first stands still with a full window; the others finish all the same.
    let program = "import socket, threading\nstill = socket.create_connection(('echo.example', 7))\nstill.setblocking(False)\ntry:\n while True: still.send(b'x' * 65536)\nexcept BlockingIOError: pass\ndef one(n, done):\n s = socket.create_connection(('echo.example', 7)); body = bytes([n]) * 200_000\n threading.Thread(target=lambda: (s.sendall(body), s.shutdown(socket.SHUT_WR))).start()\n got = b''\n while True:\n  piece = s.recv(65536)\n  if not piece: break\n  got += piece\n done.append(got == body)\ndone = []\nthreads = [threading.Thread(target=one, args=(n, done)) for n in range(40)]\n[t.start() for t in threads]; [t.join() for t in threads]\nprint(len(done), all(done))";
    let result = net.python(program);
    assert_eq!(out(&result).trim(), "40 True", "{result:#}");
}

#[test]
fn open_connections_end_with_their_call() {
    let echo = Server::echo();
    let net = net(&format!(
        "  - {{ id: echo, for: commands, allow: \"connect echo.example:7\", at: \"127.0.0.1:{}\" }}\n",
        echo.port
    ));
    let program = "import socket\nopen_ = [socket.create_connection(('echo.example', 7)) for _ in range(20)]\nfor s in open_: s.send(b'x'); s.recv(1)\nprint('left open', flush=True)\nimport os; os._exit(0)";
    let result = net.python(program);
    assert_eq!(out(&result).trim(), "left open", "{result:#}");
    echo.wait_for_ends(20);
    assert_eq!(net.connections().len(), 20);
}
