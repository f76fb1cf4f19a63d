//! Compound commands: groups, conditions, loops, `case` and `[[ … ]]`.

use super::builtin;
use super::cursor::{Span, is_meta};
use super::line::{End, Parser};
use super::part::{self, Place};
use super::script::{Compound, CompoundKind, Condition, Word};
use super::stop::{Construct, Stop};
use super::word::Raw;

/// Operators of `[[ … ]]` with one operand, all but `-t` about a file or a text.
const UNARY: [&str; 18] = [
    "-a", "-b", "-c", "-d", "-e", "-f", "-h", "-L", "-n", "-p", "-r", "-s", "-S", "-w", "-x", "-z",
    "-t", "-k",
];

/// Operators with two operands that are words.
const BINARY: [&str; 9] = ["-eq", "-ne", "-lt", "-le", "-gt", "-ge", "-nt", "-ot", "-ef"];

impl<'a> Parser<'a> {
    /// Reads a compound command; none, and nothing taken, if something else begins here.
    pub(super) fn compound(&mut self, start: usize) -> Result<Option<Compound>, Stop> {
        let word = self.word_ahead();
        let begins = self.cursor.peek() == Some(b'(')
            || matches!(word, Some("{" | "if" | "while" | "until" | "for" | "case" | "[["));
        if !begins {
            return Ok(None);
        }
        let kind = self.nested(start, |parser| parser.kind(start, word))?;
        let redirects = self.redirects()?;
        let at = Span::new(start, self.cursor.at);
        match self.cursor.peek() {
            None | Some(b'\n' | b';' | b'|' | b'&' | b')' | b'#') => {
                Ok(Some(Compound { kind, redirects, at }))
            }
            Some(_) => Err(self.unexpected()),
        }
    }

    fn kind(&mut self, start: usize, word: Option<&str>) -> Result<CompoundKind, Stop> {
        let Some(word) = word else {
            if self.cursor.raw(1) == Some(b'(') {
                return Err(Stop::new(start, Construct::Arithmetic, "(("));
            }
            self.cursor.at += 1;
            let script = self.lists(End::Parenthesis)?;
            if script.lists.is_empty() || !self.cursor.eat(b')') {
                return Err(self.unexpected());
            }
            return Ok(CompoundKind::Subshell(script));
        };
        self.cursor.at += word.len();
        match word {
            "{" => Ok(CompoundKind::Group(self.block(&["}"])?.0)),
            "if" => self.branches(),
            "while" | "until" => {
                let (condition, _) = self.block(&["do"])?;
                let (body, _) = self.block(&["done"])?;
                Ok(CompoundKind::While { until: word == "until", condition, body })
            }
            "for" => self.rounds(start),
            "case" => self.arms(start),
            _ => {
                self.only_bash(start, "[[")?;
                Conditions { parser: self, steps: Vec::new(), depth: 0 }.read(start)
            }
        }
    }

    fn branches(&mut self) -> Result<CompoundKind, Stop> {
        let mut branches = Vec::new();
        loop {
            let (condition, _) = self.block(&["then"])?;
            let (body, ended) = self.block(&["elif", "else", "fi"])?;
            branches.push((condition, body));
            let otherwise = match ended {
                0 => continue,
                1 => Some(self.block(&["fi"])?.0),
                _ => None,
            };
            return Ok(CompoundKind::If { branches, otherwise });
        }
    }

    /// `for NAME in WORD…; do …; done`
    fn rounds(&mut self, start: usize) -> Result<CompoundKind, Stop> {
        self.cursor.skip_blanks();
        if self.cursor.peek() == Some(b'(') {
            return Err(Stop::new(start, Construct::Arithmetic, "for (("));
        }
        let at = self.cursor.at;
        let name = self.word_ahead().unwrap_or_default().to_owned();
        self.cursor.at += name.len();
        let settable = builtin::is_plain_variable(&name)
            && !builtin::governs(&name)
            && !crate::variables::loads_code(&name);
        if !settable {
            return Err(Stop::new(at, Construct::ShellVariable, name));
        }
        self.cursor.skip_blanks();
        if self.word_ahead() != Some("in") {
            return Err(Stop::new(start, Construct::Compound, "for"));
        }
        self.cursor.at += "in".len();
        let mut words = Vec::new();
        loop {
            self.cursor.skip_blanks();
            match self.cursor.peek() {
                Some(b';') => {
                    self.cursor.at += 1;
                    break;
                }
                Some(b'\n' | b'#') => break,
                Some(byte) if !is_meta(byte) => {
                    let at = self.cursor.at;
                    let units = self.raw_word()?.into_units();
                    if matches!(self.cursor.peek(), Some(b'<' | b'>' | b'(')) {
                        return Err(self.unexpected());
                    }
                    self.expand(units, Span::new(at, self.cursor.at), &mut words)?;
                }
                _ => return Err(self.unexpected()),
            }
        }
        self.keyword("do")?;
        let (body, _) = self.block(&["done"])?;
        Ok(CompoundKind::For { name, words, body })
    }

    /// `case WORD in [(]PATTERN|PATTERN) …;; esac`
    fn arms(&mut self, start: usize) -> Result<CompoundKind, Stop> {
        self.cursor.skip_blanks();
        let word = self.placed_word(Place::Text)?;
        self.keyword("in")?;
        let mut arms = Vec::new();
        loop {
            self.skip_newlines()?;
            if self.word_ahead() == Some("esac") {
                self.cursor.at += "esac".len();
                return Ok(CompoundKind::Case { word, arms });
            }
            if self.cursor.eat(b'(') {
                self.cursor.skip_blanks();
            }
            let mut patterns = Vec::new();
            loop {
                patterns.push(self.placed_word(Place::Argument)?);
                self.cursor.skip_blanks();
                match self.cursor.peek() {
                    Some(b'|') => self.cursor.at += 1,
                    Some(b')') => break,
                    _ => return Err(self.unexpected()),
                }
                self.cursor.skip_blanks();
            }
            self.cursor.at += 1;
            let body = self.lists(End::Arm)?;
            arms.push((patterns, body));
            if self.cursor.rest().starts_with(b";;") {
                self.cursor.at += 2;
                if self.cursor.peek() == Some(b'&') {
                    return Err(Stop::new(start, Construct::Compound, ";;&"));
                }
            } else if self.word_ahead() != Some("esac") {
                return Err(self.unexpected());
            }
        }
    }

    /// A word that is neither split nor expanded to names of files.
    fn placed_word(&mut self, place: Place) -> Result<Word, Stop> {
        match self.cursor.peek() {
            Some(byte) if !is_meta(byte) && byte != b'#' => {}
            _ => return Err(self.unexpected()),
        }
        let at = self.cursor.at;
        let raw = self.raw_word()?;
        self.placed_raw(raw, at, place)
    }

    fn placed_raw(&mut self, raw: Raw<'a>, at: usize, place: Place) -> Result<Word, Stop> {
        let span = Span::new(at, self.cursor.at);
        if matches!(self.cursor.peek(), Some(b'<' | b'>' | b'(')) {
            return Err(self.unexpected());
        }
        self.placed(part::word(&raw.into_units(), place, span), span)
    }
}

/// Reads `[[ … ]]` into postfix order.
struct Conditions<'p, 'a> {
    parser: &'p mut Parser<'a>,
    steps: Vec<Condition>,
    depth: usize,
}

impl Conditions<'_, '_> {
    fn read(mut self, start: usize) -> Result<CompoundKind, Stop> {
        self.any()?;
        self.parser.cursor.skip_blanks();
        if self.parser.word_ahead() != Some("]]") {
            return Err(self.refused());
        }
        self.parser.cursor.at += 2;
        // Of `a && $(b)` bash runs the command only if it matters.
        let joined = self.steps.iter().any(|it| matches!(it, Condition::And | Condition::Or));
        let runs = |step: &Condition| step.words().iter().any(|word| word.outputs().count() > 0);
        if joined && self.steps.iter().any(runs) {
            return Err(Stop::new(start, Construct::DoubleBracket, "[["));
        }
        Ok(CompoundKind::Test(self.steps))
    }

    fn refused(&self) -> Stop {
        Stop::new(self.parser.cursor.at, Construct::DoubleBracket, "[[")
    }

    fn any(&mut self) -> Result<(), Stop> {
        self.all()?;
        while self.eats("||") {
            self.all()?;
            self.steps.push(Condition::Or);
        }
        Ok(())
    }

    fn all(&mut self) -> Result<(), Stop> {
        self.one()?;
        while self.eats("&&") {
            self.one()?;
            self.steps.push(Condition::And);
        }
        Ok(())
    }

    fn eats(&mut self, operator: &str) -> bool {
        self.parser.cursor.skip_blanks();
        let found = self.parser.cursor.rest().starts_with(operator.as_bytes());
        self.parser.cursor.at += if found { operator.len() } else { 0 };
        found
    }

    fn one(&mut self) -> Result<(), Stop> {
        self.parser.cursor.skip_blanks();
        let at = self.parser.cursor.at;
        if self.depth > super::MAX_NESTING {
            return Err(Stop::new(at, Construct::TooDeep, ""));
        }
        if self.parser.cursor.eat(b'(') {
            self.depth += 1;
            self.any()?;
            self.depth -= 1;
            return if self.eats(")") { Ok(()) } else { Err(self.refused()) };
        }
        match self.parser.word_ahead() {
            Some("!") => {
                self.parser.cursor.at += 1;
                self.depth += 1;
                self.one()?;
                self.depth -= 1;
                self.steps.push(Condition::Not);
                return Ok(());
            }
            Some("]]") => return Err(self.refused()),
            Some(operator) if UNARY.contains(&operator) => {
                self.parser.cursor.at += operator.len();
                let operator = if operator == "-a" { "-e" } else { operator };
                let word = self.operand(Place::Text)?;
                self.steps.push(Condition::Unary(operator.to_owned(), word));
                return Ok(());
            }
            Some(word) if word.starts_with('-') => return Err(self.refused()),
            _ => {}
        }
        let left = self.operand(Place::Text)?;
        self.parser.cursor.skip_blanks();
        match self.parser.word_ahead() {
            Some(operator @ ("==" | "=" | "!=")) => {
                self.parser.cursor.at += operator.len();
                let pattern = self.operand(Place::Argument)?;
                self.steps.push(Condition::Match(left, pattern));
                if operator == "!=" {
                    self.steps.push(Condition::Not);
                }
            }
            Some(operator) if BINARY.contains(&operator) => {
                self.parser.cursor.at += operator.len();
                let right = self.operand(Place::Text)?;
                self.steps.push(Condition::Binary(left, operator.to_owned(), right));
            }
            _ => self.steps.push(Condition::Unary("-n".to_owned(), left)),
        }
        Ok(())
    }

    fn operand(&mut self, place: Place) -> Result<Word, Stop> {
        self.parser.cursor.skip_blanks();
        if self.parser.word_ahead() == Some("]]") {
            return Err(self.refused());
        }
        match self.parser.cursor.peek() {
            Some(byte) if !is_meta(byte) => {}
            _ => return Err(self.refused()),
        }
        let at = self.parser.cursor.at;
        let raw = self.parser.raw_word()?;
        self.parser.placed_raw(raw, at, place)
    }
}
