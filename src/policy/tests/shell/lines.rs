//! Random lines, made of pieces on which parsers tend to disagree.
//!
//! Commands are only `p` (succeeds) and `f` (fails), targets only `../o/1` to `../o/4`, so that a real bash
//! can be given the lines.

/// A small generator of numbers: the same seed makes the same lines.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1)
    }

    /// A number below `end`.
    pub fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 33).unwrap_or(0) % end
    }

    fn pick<'a>(&mut self, from: &[&'a str]) -> &'a str {
        from[self.below(from.len())]
    }

    fn one_in(&mut self, count: usize) -> bool {
        self.below(count) == 0
    }
}

#[rustfmt::skip]
const PIECES: &[&str] = &[
    "a", "b", "c", "x", "1", "2", "03", "-", "--", "=", "A=", ":", "/", ".", "..", "...", ",", "{", "}", "{", "}", ",",
    "{a,b}", "{1..3}", "{3..1..2}", "{a..c}", "{,x}", "{}", "{a}", "{01..3}", "{-1..1}", "~", "~/", "*", "?", "[", "]", "[ab]", "[!a]", "[a-c]*", "[[:alpha:]]*",
    "*.txt", "dir/*", "'", "\"", "\\", "''", "\"\"", "'a b'", "\"a b\"", "\\ ", "\\'", "\\\"", "\\\\", "\\\n", "\\a", "\\{", "\\*",
    "'*'", "'{'", "\",\"", "\"\\\\\"", "\"\\$\"", "\"\\a\"", "\"a$\"", "$", "$'a\\tb'", "$'\\''", "$'\\x41'", "#", "!", "%", "^", "+", "@", "é",
    "$A", "\"$A\"", "${B}", "\"${x}\"", "${A:-d}", "\"${x-e/f}\"", "${B:-}", "$?", "\"$?\"", "日", "\r", "'\n'", "\"\n\"", "\"'\"", "'\"'", "`", "$(", "$x", "=~", ":~", "|", "&", ";", "<", ">", "(", ")",
    "$(cat <<'E'\nt\nE\n)", "\"$(cat <<E\nt  u\\\\ \\$ (\nE\n)\"", "\"$(cat <<-'E'\n\tq\"\n\n\n\tE\n)\"",
];

const JOINS: &[&str] = &[
    "; ", ";", "\n", " && ", "&&", " || ", "||", " | ", "|", " |& ", "|&", "\n\n", " # c\n",
    " &&\n", "|\n", " ;\\\n", " &\\\n& ",
];

#[rustfmt::skip]
const REDIRECTS: &[&str] = &[
    ">../o/1", " > ../o/2", " 2>../o/3", " >>../o/1", " 2>&1", " >&2", " &>../o/4", " &>>../o/4", " >|../o/1", " 3>../o/2 1>&3", " <in",
    " <<<x", " <<< 'a b'", " 3<<<y <&3", " 2>&-", " <&-", " 4>&1", " 1>&4", " >&../o/3", " 2\\\n>../o/1", " 0<in", " 3>&1 1>&2 2>&3", " <<<{a,b}", " <<<*",
];

const BODIES: &[&str] = &[
    "t\n",
    "",
    "a b\n\n",
    "  x\n",
    "\ty\n",
    "'\"\n",
    "\\$ \\\\ \\a\n",
    "$ 5$\n",
    "EOF\n",
    "E \n",
    " E\n",
    "é\n",
    "#\n",
    "a\r\n",
    "$A-${B}\n",
    "${A:-d} ${x-e}\n",
    "a $? \"$x\"\n",
];

const DELIMITERS: &[&str] = &["E", "'E'", "\"E\"", "\\E", "E'O'F", "\"E O\""];

/// A line of one to four commands.
pub fn line(random: &mut Random) -> String {
    let mut line = String::new();
    let mut bodies = String::new();
    for index in 0..=random.below(4) {
        if index > 0 {
            let join = random.pick(JOINS);
            line += join;
            if join.contains('\n') && !join.contains("\\\n") {
                line += &std::mem::take(&mut bodies);
            }
        }
        command(random, &mut line, &mut bodies);
    }
    if !bodies.is_empty() || random.one_in(8) {
        line.push('\n');
        line += &bodies;
    }
    if random.one_in(6) {
        mutate(random, &mut line);
    }
    line
}

fn command(random: &mut Random, line: &mut String, bodies: &mut String) {
    if random.one_in(14) {
        return compound(random, line, bodies);
    }
    simple(random, line, bodies);
}

/// A compound command of few commands.
fn compound(random: &mut Random, line: &mut String, bodies: &mut String) {
    let (begin, parts, end): (&str, &[&str], &str) = match random.below(6) {
        0 => ("{ ", &["; "], "}"),
        1 => ("( ", &[" "], ")"),
        2 => ("if ", &["; then ", "; "], "fi"),
        3 => ("if ", &["; then ", "\nelse ", "; "], "fi"),
        4 => ("for x in a 'b c' $A *.txt; do ", &["; "], "done"),
        _ => ("case $A in 1) ", &[" ;; (x|\"b\") ", "\n;; "], "esac"),
    };
    *line += begin;
    for part in parts {
        simple(random, line, bodies);
        // A here-document would begin in the middle of a word.
        if !bodies.is_empty() {
            line.push('\n');
            *line += &std::mem::take(bodies);
        }
        *line += part;
    }
    *line += end;
}

fn simple(random: &mut Random, line: &mut String, bodies: &mut String) {
    if random.one_in(12) {
        *line += "! ";
    }
    if random.one_in(5) {
        *line += random.pick(&["A=", "B=", "x=", "A=1 B="]);
        word(random, line, 3);
        *line += random.pick(&[" ", " ", " ", "; ", "\t"]);
    }
    if random.one_in(12) {
        *line += random.pick(&["export A=", "export B=1 A="]);
        return word(random, line, 2);
    }
    if random.one_in(10) {
        *line += random.pick(REDIRECTS);
        line.push(' ');
    }
    *line += random.pick(&["p", "p", "p", "f", "\\p", "'p'", "p''", "command p"]);
    for _ in 0..random.below(4) {
        line.push(' ');
        word(random, line, 6);
    }
    for _ in 0..random.below(3) {
        if random.one_in(2) {
            *line += random.pick(REDIRECTS);
        } else if random.one_in(4) {
            here_document(random, line, bodies);
        }
    }
}

fn word(random: &mut Random, line: &mut String, most: usize) {
    for _ in 0..=random.below(most) {
        *line += random.pick(PIECES);
    }
}

fn here_document(random: &mut Random, line: &mut String, bodies: &mut String) {
    let delimiter = random.pick(DELIMITERS);
    *line += random.pick(&[" <<", " <<-", " << ", " 3<<"]);
    *line += delimiter;
    for _ in 0..random.below(4) {
        *bodies += random.pick(BODIES);
    }
    *bodies += &delimiter.replace(['\'', '"', '\\'], "");
    bodies.push('\n');
}

/// Takes a character out, or puts a piece in, anywhere.
fn mutate(random: &mut Random, line: &mut String) {
    let at = random.below(line.len() + 1);
    let Some(at) = (0..=at).rev().find(|at| line.is_char_boundary(*at)) else {
        return;
    };
    if random.one_in(2) {
        line.insert_str(at, random.pick(PIECES));
    } else if at < line.len() {
        line.remove(at);
    }
}
