//! A workspace with so many denied files that no pipe holds their names: the sandbox is made, and wakes, all the same.

use std::fs;

use super::Caller;
use crate::support::needs_engine;

#[test]
fn many_denied_files_with_long_names_do_not_block_a_call() {
    needs_engine();
    denied_files_are_hidden(1_500);
}

#[test]
#[ignore = "ten thousand mounts take long on a busy machine; tests/run --long runs it"]
fn ten_thousand_denied_files_with_long_names_do_not_block_a_call() {
    needs_engine();
    denied_files_are_hidden(10_000);
}

/// With a thousand of these names and more, the first message to a guest is longer than what the pipes to it hold.
fn denied_files_are_hidden(files: usize) {
    let caller = Caller::new("size: 1");
    let long = "n".repeat(220);
    fs::create_dir(caller.file("many")).unwrap();
    let name = |at: usize| format!("many/{at}-{long}.secret");
    for at in 0..files {
        fs::write(caller.file(&name(at)), "hidden\n").unwrap();
    }
    fs::write(caller.file("plain.txt"), "shown\n").unwrap();
    let policy = |name: &str, deny: &str| {
        let text = format!(
            "policy: 1\nname: {name}\nextends: [readonly]\nsandbox: {{ limits: {{ wall: 2m }} }}\nfiles: {{ deny: ['{deny}'] }}\ncommands:\n  - {{ id: look, allow: \"python3 ...\", effects: [read, code] }}\n"
        );
        caller.policy(&format!("{name}.yml"), &text)
    };
    let (many, few) = (policy("many", "**/*.secret"), policy("few", "many/1-*"));
    let script = "import os
def readable(name):
    try:
        return open('many/' + name).read() == 'hidden\\n'
    except PermissionError:
        return False
names = os.listdir('many')
print(open('plain.txt').read(), sum(map(readable, names)), len(names))";
    let run = |policy: &str| {
        let ran = caller.exec(&["-p", policy, "--", "python3", "-c", script]);
        let result = ran.json();
        assert_eq!(result["status"], "completed", "{result:#} {}", ran.err);
        result["stdout"].as_str().unwrap().to_owned()
    };
    // Made for the call, then perhaps one that waited: it is asked about every file too.
    assert_eq!(run(&many), format!("shown\n 0 {files}\n"));
    caller.settled(1);
    assert_eq!(run(&many), format!("shown\n 0 {files}\n"));
    // The control: what is not denied is readable.
    assert_eq!(run(&few), format!("shown\n {} {files}\n", files - 1));
}
