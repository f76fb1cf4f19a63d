//! Splitting words into options and operands, as the program itself would.

use crate::grammar::{BundleWord, Command, Opt, OptValue, OptionStyle, OptionsEnd, Role, Slots};
use crate::word::Word;

/// One part of a command's arguments, in the order given.
#[derive(Debug, Clone)]
pub(super) enum Item<'g> {
    /// An option with its values, and the name that was used.
    Option { option: &'g Opt, values: Vec<(Role, Word)>, written: String },
    /// An operand; `after` a `--`.
    Operand { word: Word, after: bool },
    /// An option or letter that the grammar does not list.
    Unknown(String),
    /// Words that could be options, from standard input or a pattern.
    Anything,
    /// An option whose value is missing.
    Missing(String),
}

/// What was split, and from where a subcommand begins.
#[derive(Debug, Default)]
pub(super) struct Split<'g> {
    /// The parts.
    pub items: Vec<Item<'g>>,
    /// Whether `--` was given.
    pub dashes: bool,
    /// Index of the word that names a subcommand.
    pub subcommand: Option<usize>,
}

/// Splits the words after the program's (or subcommand's) name.
pub(super) fn split<'g>(command: &'g Command, words: &[Word]) -> Split<'g> {
    let mut out = Split::default();
    if command.style.options == OptionStyle::GnuAt {
        // Such words are replaced before anything else is looked at: values and words after `--` too.
        out.items.extend(
            words.iter().filter(|word| may_be_at_file(word)).map(|word| Item::Unknown(word.show())),
        );
    }
    let mut operands = 0usize;
    let mut dashes = false;
    let mut at = 0;
    while let Some(word) = words.get(at) {
        at += 1;
        let text = match word {
            Word::Lit(text) => text.as_str(),
            other => {
                let is_bundle = command
                    .bundle
                    .as_ref()
                    .is_some_and(|bundle| at == 1 || bundle.which == BundleWord::Any);
                if (other.may_be_option() || is_bundle) && !dashes {
                    out.items.push(Item::Anything);
                }
                if operands == 0 && !command.subcommands.is_empty() {
                    out.subcommand = Some(at - 1);
                    return out;
                }
                out.items.push(Item::Operand { word: other.clone(), after: dashes });
                operands += 1;
                if command.style.ends == OptionsEnd::FirstOperand {
                    out.items.extend(rest_of(&words[at..]));
                    return out;
                }
                continue;
            }
        };
        if !dashes {
            if text == "--"
                && command.style.options != OptionStyle::None
                && named(command, "--").is_none()
            {
                dashes = true;
                out.dashes = true;
                continue;
            }
            let before = out.items.len();
            match command.style.options {
                OptionStyle::None => {}
                OptionStyle::Words => whole(command, text, words, &mut at, &mut out.items),
                OptionStyle::Gnu | OptionStyle::GnuAt | OptionStyle::Pflag => {
                    gnu(command, text, words, &mut at, &mut out.items)
                }
                OptionStyle::Go => go(command, text, words, &mut at, &mut out.items),
            }
            if out.items.len() > before {
                continue;
            }
            if let Some(bundle) = &command.bundle {
                let first = at == 1;
                if first || bundle.which == BundleWord::Any {
                    let letters =
                        if bundle.letters.is_empty() { &command.options } else { &bundle.letters };
                    let form = match bundle.which {
                        BundleWord::First => BundleForm::Bare,
                        BundleWord::Any => BundleForm::Attached,
                    };
                    if cluster(letters, text, form, Equals::Kept, words, &mut at, &mut out.items) {
                        continue;
                    }
                    out.items.push(Item::Unknown(text.to_owned()));
                    continue;
                }
            }
        }
        if operands == 0 && (is_subcommand(command, text) || out.in_doubt(command)) {
            out.subcommand = Some(at - 1);
            return out;
        }
        out.items.push(Item::Operand { word: word.clone(), after: dashes });
        operands += 1;
        if command.style.ends == OptionsEnd::FirstOperand {
            out.items.extend(rest_of(&words[at..]));
            return out;
        }
    }
    out
}

/// All words behind the first operand. Not `--`: they are the operand's own business.
fn rest_of<'g>(words: &[Word]) -> impl Iterator<Item = Item<'g>> {
    words.iter().cloned().map(|word| Item::Operand { word, after: false })
}

/// The name that stands for `-5` in a grammar; as a word it is four letters.
const NUMBER: &str = "-NUM";

/// Whether a word can begin with `@`.
fn may_be_at_file(word: &Word) -> bool {
    match word {
        Word::Lit(text) => text.starts_with('@'),
        Word::Glob(text) => text.starts_with(['@', '*', '?', '[']),
        Word::Starts(text) => text.is_empty() || text.starts_with('@'),
        Word::Found(roots) | Word::FoundMany(roots) => {
            roots.iter().any(|root| root.starts_with('@'))
        }
        Word::Later(later) => later.before.is_empty() || later.before.starts_with('@'),
        Word::Any => true,
    }
}

impl Split<'_> {
    /// An option before the subcommand was not understood: it could take the next word, and so decide
    /// which word is the subcommand.
    pub(super) fn in_doubt(&self, command: &Command) -> bool {
        !command.subcommands.is_empty()
            && self
                .items
                .iter()
                .any(|item| matches!(item, Item::Unknown(_) | Item::Anything | Item::Missing(_)))
    }
}

/// Whether the first word without dash names a subcommand. Where a program takes operands in its place
/// (`yarn SCRIPT`), only the names that are listed do.
fn is_subcommand(command: &Command, text: &str) -> bool {
    let listed = || {
        command.subcommands.iter().flat_map(|subcommand| &subcommand.names).any(|name| name == text)
    };
    !command.subcommands.is_empty() && (command.operands == Slots::default() || listed())
}

fn named<'g>(command: &'g Command, name: &str) -> Option<&'g Opt> {
    find(&command.options, name).filter(|_| name != NUMBER)
}

fn find<'g>(options: &'g [Opt], name: &str) -> Option<&'g Opt> {
    options.iter().find(|option| option.names.iter().any(|known| known == name))
}

/// Takes the values of an option from the following words.
fn take<'g>(
    option: &'g Opt,
    roles: &[Role],
    written: &str,
    words: &[Word],
    at: &mut usize,
) -> Item<'g> {
    let mut values = Vec::with_capacity(roles.len());
    for role in roles {
        if *role == Role::ExecUntil {
            return until(option, written, words, at);
        }
        match words.get(*at) {
            // Several words: they could be this value and operands or options after it.
            Some(Word::Any | Word::Glob(_) | Word::FoundMany(_)) => {
                *at += 1;
                return Item::Anything;
            }
            Some(Word::Later(later)) if later.many => {
                *at += 1;
                return Item::Anything;
            }
            Some(word) => values.push((role.clone(), word.clone())),
            None => return Item::Missing(written.to_owned()),
        }
        *at += 1;
    }
    Item::Option { option, values, written: written.to_owned() }
}

/// Takes the value of an option that may be the last word.
fn take_last<'g>(
    option: &'g Opt,
    role: &Role,
    written: &str,
    words: &[Word],
    at: &mut usize,
) -> Item<'g> {
    if words.len() <= *at {
        return Item::Option { option, values: Vec::new(), written: written.to_owned() };
    }
    take(option, std::slice::from_ref(role), written, words, at)
}

/// `-exec CMD … ;` or `-exec CMD … {} +`. Every word is a value of the option.
fn until<'g>(option: &'g Opt, written: &str, words: &[Word], at: &mut usize) -> Item<'g> {
    let mut values: Vec<(Role, Word)> = Vec::new();
    while let Some(word) = words.get(*at) {
        *at += 1;
        let ends = match word.text() {
            Some(";") => true,
            Some("+") => match values.last_mut() {
                Some((_, last)) if last.text() == Some("{}") => {
                    *last = Word::FoundMany(Vec::new());
                    true
                }
                _ => false,
            },
            _ => false,
        };
        if ends {
            return Item::Option { option, values, written: written.to_owned() };
        }
        if matches!(word, Word::Later(_)) {
            // It could be the `;` that ends the command, or the `{}` in it.
            return Item::Anything;
        }
        values.push((Role::ExecUntil, word.clone()));
    }
    Item::Missing(written.to_owned())
}

/// The whole word is the option.
fn whole<'g>(
    command: &'g Command,
    text: &str,
    words: &[Word],
    at: &mut usize,
    items: &mut Vec<Item<'g>>,
) {
    if let Some(option) = named(command, text) {
        let item = match &option.value {
            OptValue::Required(roles) => take(option, roles, text, words, at),
            OptValue::Last(role) => take_last(option, role, text, words, at),
            _ => Item::Option { option, values: Vec::new(), written: text.to_owned() },
        };
        items.push(item);
    } else if text.len() > 1 && text.starts_with('-') && !dash_operand(command, text) {
        items.push(Item::Unknown(text.to_owned()));
    }
}

/// `-x`, `-xyz`, `-xVALUE`, `--long`, `--long=VALUE`, `-5`.
fn gnu<'g>(
    command: &'g Command,
    text: &str,
    words: &[Word],
    at: &mut usize,
    items: &mut Vec<Item<'g>>,
) {
    if text.starts_with("--") {
        let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
        let flag = named(command, name).is_some_and(|option| option.value == OptValue::Flag);
        let value = value
            .filter(|value| !(command.style.options == OptionStyle::Pflag && flag && truth(value)));
        items.push(long(&command.options, name, value, text, words, at));
        return;
    }
    if !text.starts_with('-') || text.len() == 1 || dash_operand(command, text) {
        return;
    }
    if text[1..].bytes().all(|byte| byte.is_ascii_digit())
        && let Some(option) = find(&command.options, NUMBER)
    {
        items.push(Item::Option { option, values: Vec::new(), written: text.to_owned() });
        return;
    }
    // A single-dash word that is listed as such (`-exec` style names in GNU programs). Not a letter: `-o=x` is `-o` with `=x`.
    let (name, value) =
        text.split_once('=').map_or((text, None), |(name, value)| (name, Some(value)));
    if name.len() > 2
        && let Some(option) = named(command, name)
    {
        items.push(long(std::slice::from_ref(option), option.canonical(), value, text, words, at));
        return;
    }
    let equals =
        if command.style.options == OptionStyle::Pflag { Equals::Stripped } else { Equals::Kept };
    cluster(&command.options, text, BundleForm::Dashed, equals, words, at, items);
}

/// `-name`, `--name`, `-name=VALUE`, `-name VALUE`.
fn go<'g>(
    command: &'g Command,
    text: &str,
    words: &[Word],
    at: &mut usize,
    items: &mut Vec<Item<'g>>,
) {
    if !text.starts_with('-') || text.len() == 1 {
        return;
    }
    let (name, value) = text.split_once('=').map_or((text, None), |(n, v)| (n, Some(v)));
    let bare = name.trim_start_matches('-');
    let spelled = [format!("-{bare}"), format!("--{bare}")];
    let found =
        command.options.iter().find(|option| option.names.iter().any(|n| spelled.contains(n)));
    items.push(match found {
        Some(option) => {
            long(std::slice::from_ref(option), option.canonical(), value, text, words, at)
        }
        None => Item::Unknown(text.to_owned()),
    });
}

fn long<'g>(
    options: &'g [Opt],
    name: &str,
    value: Option<&str>,
    text: &str,
    words: &[Word],
    at: &mut usize,
) -> Item<'g> {
    let Some(option) = find(options, name) else { return Item::Unknown(text.to_owned()) };
    let attached = |role: &Role, value: &str| Item::Option {
        option,
        values: vec![(role.clone(), Word::lit(value))],
        written: text.to_owned(),
    };
    match (&option.value, value) {
        (OptValue::Flag | OptValue::Optional(_), None) => {
            Item::Option { option, values: Vec::new(), written: text.to_owned() }
        }
        (OptValue::Flag, Some(_)) => Item::Unknown(text.to_owned()),
        (
            OptValue::Optional(role) | OptValue::Attached(role) | OptValue::Last(role),
            Some(value),
        ) => attached(role, value),
        (OptValue::Last(role), None) => take_last(option, role, text, words, at),
        (OptValue::Attached(_), None) => Item::Missing(text.to_owned()),
        (OptValue::Required(roles), Some(value)) => match roles.as_slice() {
            [role] => attached(role, value),
            _ => Item::Unknown(text.to_owned()),
        },
        (OptValue::Required(roles), None) => take(option, roles, text, words, at),
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum BundleForm {
    /// `-xzf`
    Dashed,
    /// `xzf`: values are the next words.
    Bare,
    /// `aux`, `opid,comm`: a value is the rest of the word, or the next.
    Attached,
}

/// What `=` after a letter is.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Equals {
    /// A part of the value.
    Kept,
    /// Not a part of the value: `-f=x` is `-f x`.
    Stripped,
}

/// How pflag writes yes and no. An option that is given as `false` is read as given.
fn truth(value: &str) -> bool {
    matches!(value, "true" | "false" | "1" | "0")
}

/// A run of single letters. With a dash, what follows a letter with a value is that value; in a bare
/// bundle the values are the next words, in order. `false` if a bare word is no bundle.
fn cluster<'g>(
    options: &'g [Opt],
    text: &str,
    form: BundleForm,
    equals: Equals,
    words: &[Word],
    at: &mut usize,
    items: &mut Vec<Item<'g>>,
) -> bool {
    let letters = if form == BundleForm::Dashed { &text[1..] } else { text };
    let option_of = |letter: char| {
        options.iter().find(|option| {
            option.names.iter().any(|name| {
                let mut chars = name.chars();
                match form {
                    BundleForm::Dashed => {
                        chars.next() == Some('-')
                            && chars.next() == Some(letter)
                            && chars.next().is_none()
                    }
                    // A bundle's own table may write its letters with or without a dash.
                    BundleForm::Bare | BundleForm::Attached => {
                        let bare = name.strip_prefix('-').unwrap_or(name);
                        bare.chars().eq(std::iter::once(letter))
                    }
                }
            })
        })
    };
    let takes_rest = |letter: char| {
        form == BundleForm::Attached
            && option_of(letter).is_some_and(|option| matches!(option.value, OptValue::Required(_)))
    };
    let valued = letters.find(takes_rest).unwrap_or(letters.len());
    if form != BundleForm::Dashed
        && letters[..valued].chars().any(|letter| option_of(letter).is_none())
    {
        return false;
    }
    for (index, letter) in letters.char_indices() {
        let Some(option) = option_of(letter) else {
            items.push(Item::Unknown(format!("-{letter}")));
            continue;
        };
        let tail = &letters[index + letter.len_utf8()..];
        let stripped = tail.strip_prefix('=').filter(|_| equals == Equals::Stripped);
        if option.value == OptValue::Flag && stripped.is_some_and(truth) {
            items.push(Item::Option {
                option,
                values: Vec::new(),
                written: format!("-{letter}{tail}"),
            });
            return true;
        }
        let tail = stripped.unwrap_or(tail);
        let written = format!("-{letter}");
        let attached = |role: &Role| Item::Option {
            option,
            values: vec![(role.clone(), Word::lit(tail))],
            written: format!("-{letter}{tail}"),
        };
        match (&option.value, form) {
            (OptValue::Flag, _)
            | (
                OptValue::Optional(_) | OptValue::Attached(_),
                BundleForm::Bare | BundleForm::Attached,
            ) => {
                items.push(Item::Option { option, values: Vec::new(), written });
            }
            (OptValue::Optional(role) | OptValue::Attached(role), BundleForm::Dashed) => {
                items.push(if tail.is_empty() {
                    Item::Option { option, values: Vec::new(), written }
                } else {
                    attached(role)
                });
                return true;
            }
            (OptValue::Last(role), _) => {
                items.push(if tail.is_empty() {
                    take_last(option, role, &written, words, at)
                } else {
                    attached(role)
                });
                return true;
            }
            (OptValue::Required(roles), BundleForm::Dashed | BundleForm::Attached) => {
                items.push(match roles.as_slice() {
                    [role] if !tail.is_empty() => attached(role),
                    _ if tail.is_empty() => take(option, roles, &written, words, at),
                    _ => Item::Unknown(text.to_owned()),
                });
                return true;
            }
            (OptValue::Required(roles), BundleForm::Bare) => {
                let item = take(option, roles, &written, words, at);
                items.push(item);
            }
        }
    }
    true
}

/// `chmod -x f`: begins with a dash and is an operand.
fn dash_operand(command: &Command, text: &str) -> bool {
    command
        .style
        .dash_operands
        .as_ref()
        .is_some_and(|letters| text[1..].chars().all(|c| letters.contains(c)))
}
