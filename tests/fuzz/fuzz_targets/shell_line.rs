//! Any text is read as a shell line without a panic; a readable one prints as a line that is read as the
//! same plan.
#![no_main]

use libfuzzer_sys::fuzz_target;
use runner_policy::shell::{Line, MAX_BYTES, parse};

/// One byte chooses one of these, so that short inputs already make whole commands.
const PIECES: &[&str] = &[
    "p", " ", "\n", "\t", "\r", ";", "&", "|", "&&", "||", "|&", "!", "! ", "#", "(", ")", "<", ">",
    ">>", "<<", "<<-", "<<<", "2>&1", "&>", ">&-", "<<E\n", "<<'E'\n", "\nE\n", "$(cat <<'E'\n",
    "\nE\n)", "\"", "'", "\\", "\\\n", "$", "$'", "`", "{", "}", ",", "..", "{a,b}", "{1..3}", "~", "/",
    "*", "?", "[", "]", "[a-z]", "[!", "[:alpha:]", "=", "A=", "export ", "command ", "if ", "é", "1",
    "-", ":", "+", ".", "echo",
];

fuzz_target!(|data: &[u8]| {
    let Some((mode, rest)) = data.split_first() else {
        return;
    };
    let text: String = if mode % 2 == 0 {
        String::from_utf8_lossy(rest).into_owned()
    } else {
        rest.iter().map(|byte| PIECES[usize::from(*byte) % PIECES.len()]).collect()
    };
    match parse(&text) {
        Line::Unreadable(why) => {
            let lines = text.split('\n').count();
            assert!(why.at.line <= lines && !why.what.is_empty(), "{why}");
        }
        Line::Readable(script) => {
            let printed = script.to_string();
            if printed.len() > MAX_BYTES {
                return;
            }
            let Line::Readable(again) = parse(&printed) else {
                panic!("{text:?} printed as {printed:?}: {:?}", parse(&printed));
            };
            assert_eq!(again.to_string(), printed);
            assert_eq!(again.unplaced(), script.unplaced(), "{text:?} printed as {printed:?}");
        }
    }
});
