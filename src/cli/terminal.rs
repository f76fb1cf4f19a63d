//! A sandboxed command's output on a terminal: text as text.
//!
//! Bytes go on unchanged to a file or a pipe. On a terminal, control and deceptive characters are
//! shown as escapes, also where they are cut in two by how the output happens to arrive.

use std::io::{self, Write};

use super::visible::{is_deceptive, push_escaped};

/// Writes foreign bytes to a terminal.
#[derive(Debug)]
pub struct Terminal<W> {
    inner: W,
    /// The start of a character whose rest has not come yet: at most three bytes.
    held: Vec<u8>,
}

impl<W: Write> Terminal<W> {
    /// Shows on `inner`.
    pub const fn new(inner: W) -> Self {
        Self { inner, held: Vec::new() }
    }

    /// Where it is shown.
    pub const fn get_mut(&mut self) -> &mut W {
        &mut self.inner
    }

    /// Shows what is left of a character that never became whole.
    ///
    /// # Errors
    /// The stream cannot be written.
    pub fn finish(mut self) -> io::Result<W> {
        let mut shown = String::new();
        self.held.drain(..).for_each(|byte| push_byte(&mut shown, byte));
        self.inner.write_all(shown.as_bytes())?;
        self.inner.flush()?;
        Ok(self.inner)
    }
}

impl<W: Write> Write for Terminal<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let joined = [std::mem::take(&mut self.held), bytes.to_vec()].concat();
        let mut shown = String::with_capacity(joined.len());
        let mut rest = joined.as_slice();
        loop {
            match str::from_utf8(rest) {
                Ok(text) => {
                    push_text(&mut shown, text);
                    break;
                }
                Err(error) => {
                    let (valid, after) = rest.split_at(error.valid_up_to());
                    push_text(&mut shown, str::from_utf8(valid).unwrap_or_default());
                    let Some(bad) = error.error_len() else {
                        self.held = after.to_vec();
                        break;
                    };
                    after[..bad].iter().for_each(|byte| push_byte(&mut shown, *byte));
                    rest = &after[bad..];
                }
            }
        }
        self.inner.write_all(shown.as_bytes())?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.inner.flush()
    }
}

fn push_text(shown: &mut String, text: &str) {
    for c in text.chars() {
        if is_deceptive(c) && !matches!(c, '\n' | '\t') {
            push_escaped(shown, c);
        } else {
            shown.push(c);
        }
    }
}

fn push_byte(shown: &mut String, byte: u8) {
    use std::fmt::Write as _;
    // Writing to a String cannot fail.
    let _ = write!(shown, "\\x{byte:02x}");
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shown(chunks: &[&[u8]]) -> String {
        let mut terminal = Terminal::new(Vec::new());
        for chunk in chunks {
            terminal.write_all(chunk).unwrap();
        }
        String::from_utf8(terminal.finish().unwrap()).unwrap()
    }

    #[test]
    fn lines_and_letters_pass() {
        assert_eq!(shown(&["größe\t1\n".as_bytes()]), "größe\t1\n");
    }

    #[test]
    fn escapes_are_shown_wherever_the_output_is_cut() {
        let text = "a\u{1b}[31mb\u{202e}c\u{9b}d\r\n\u{e0041}🦀".as_bytes();
        let whole = shown(&[text]);
        assert_eq!(whole, "a\\x1b[31mb\\u{202e}c\\x9bd\\r\n\\u{e0041}🦀");
        for cut in 0..text.len() {
            assert_eq!(shown(&[&text[..cut], &text[cut..]]), whole, "cut at {cut}");
        }
        let single: Vec<&[u8]> = text.chunks(1).collect();
        assert_eq!(shown(&single), whole);
    }

    #[test]
    fn bytes_that_are_no_text_are_shown_as_numbers() {
        assert_eq!(shown(&[b"a\xff\xfeb\xc3"]), "a\\xff\\xfeb\\xc3");
    }
}
