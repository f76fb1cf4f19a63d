//! Foreign text: which characters deceive, and how JSON carries them harmlessly.
//!
//! Duty: one list of characters that a terminal obeys or a reader does not see, for everything that is shown or
//! recorded; how many of a thing there are, and when something was, in words. Non-goals: showing (the command line does). Trust boundary: any text that passes here is the adversary's.

use std::fmt::Write as _;

use jiff::Timestamp;

pub use runner_policy::written::is_deceptive;

/// Appends the escape of one character, which no terminal obeys and every reader sees.
pub fn push_escaped(shown: &mut String, c: char) {
    // Writing to a String cannot fail.
    let _ = match c {
        '\n' => shown.write_str("\\n"),
        '\t' => shown.write_str("\\t"),
        '\r' => shown.write_str("\\r"),
        c if u32::from(c) < 0x100 => write!(shown, "\\x{:02x}", u32::from(c)),
        c => write!(shown, "\\u{{{:x}}}", u32::from(c)),
    };
}

/// A number of things: `1 finding`, `2 findings`, `2 sandboxes`.
#[must_use]
pub fn counted(count: usize, noun: &str) -> String {
    let many = if noun.ends_with(['s', 'x']) { "es" } else { "s" };
    format!("{count} {noun}{}", if count == 1 { "" } else { many })
}

/// A moment in UTC, to the second, from milliseconds since 1970.
#[must_use]
pub fn moment(millis: i64) -> String {
    Timestamp::from_millisecond(millis)
        .map(|moment| moment.strftime("%Y-%m-%d %H:%M:%S").to_string())
        .unwrap_or_else(|_| millis.to_string())
}

/// A JSON text in which nothing deceives: what the encoder leaves as it is (it escapes C0 alone) becomes an escape,
/// which means the same to every reader of JSON. Such characters stand in strings only.
#[must_use]
pub fn harmless_json(json: String) -> String {
    let raw = |c: char| c >= '\u{7f}' && is_deceptive(c);
    if !json.contains(raw) {
        return json;
    }
    let mut text = String::with_capacity(json.len() + 16);
    for c in json.chars() {
        if raw(c) {
            for unit in c.encode_utf16(&mut [0; 2]) {
                // Writing to a String cannot fail.
                let _ = write!(text, "\\u{unit:04x}");
            }
        } else {
            text.push(c);
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn things_are_counted_as_people_do() {
        assert_eq!(counted(0, "finding"), "0 findings");
        assert_eq!(counted(1, "sandbox"), "1 sandbox");
        assert_eq!(counted(2, "sandbox"), "2 sandboxes");
    }

    #[test]
    fn json_means_the_same_and_holds_nothing_odd() {
        let evil = "a\u{1b}[2J\u{7f}\u{9b}\u{202e}\u{2066}\u{e0041}ü\u{1f600}\"\\";
        let text = harmless_json(serde_json::to_string(&[evil]).unwrap());
        assert!(!text.contains(is_deceptive), "{text:?}");
        assert!(text.contains('ü') && text.contains('\u{1f600}'), "what does no harm stays");
        let back: Vec<String> = serde_json::from_str(&text).unwrap();
        assert_eq!(back, [evil]);
    }
}
