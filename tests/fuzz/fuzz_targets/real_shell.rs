//! No text reaches a real shell unless the decision says `code`: commands and lines around shells, made of bytes as
//! the property test of the policy crate makes them, and any text as a shell's line.
#![no_main]

use std::sync::LazyLock;

use jiff::Timestamp;
use libfuzzer_sys::fuzz_target;
use runner_policy::{Effective, Origin, PolicySet, Query, Source, What, decide, parse};

#[path = "../../../src/policy/tests/properties/text.rs"]
mod text;

/// Everything is granted but `code`.
static NO_CODE: LazyLock<Effective> = LazyLock::new(|| {
    let text = "policy: 1\nname: p\nfiles: { read: [\"**\"], write: [\"**\"] }\nenv: { accept: [\"*\"] }\ncommands:\n  - { id: all, allow: \"** ...\", effects: [read, write, net, system] }\n";
    let mut set = PolicySet::default();
    let source = Source { file: "p", text, origin: Origin::Managed };
    set.add(parse(source).unwrap_or_else(|findings| panic!("{findings:?}")))
        .unwrap_or_else(|finding| panic!("{finding}"));
    set.effective("p").unwrap_or_else(|findings| panic!("{findings:?}"))
});

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else { return };
    let any = mode % 4 == 0;
    let (argv, line) = if any {
        let line = String::from_utf8_lossy(rest).into_owned();
        (["timeout", "5", "sh", "-ec", &line].map(str::to_owned).to_vec(), line)
    } else {
        (
            text::argv(&mut text::Choices(rest.iter()), 6),
            text::line(&mut text::Choices(rest.iter()), 6),
        )
    };
    for what in [What::Argv(&argv), What::Line(&line)] {
        let query = Query { workspace: "/w", cwd: "/w", now: Timestamp::UNIX_EPOCH, what };
        let decision = decide(&NO_CODE, &query);
        let seen = if any { text::shell_itself } else { text::real_shell };
        let shell = decision.plan.as_ref().and_then(seen);
        assert!(shell.is_none(), "{what:?}: {shell:?}");
    }
});
