//! From YAML to a grammar, with findings for everything that does not fit.

use super::{
    Access, Bundle, BundleWord, Command, Depth, Does, Kind, Opt, OptValue, OptionStyle, OptionsEnd,
    Program, Role, Shape, Slots, Style, Subcommand, When, role,
};
use crate::effect::Class;
use crate::finding::{At, Report, did_you_mean};
use crate::yaml::{Entry, Node, Value};

/// Keys that say how arguments are read, in programs and subcommands.
const COMMAND: &[&str] = &[
    "style",
    "options",
    "use",
    "bundle",
    "keys",
    "operands",
    "after",
    "does",
    "when",
    "subcommands",
    "default",
];
/// Keys of a catalog file besides those.
const PROGRAM: &[&str] = &[
    "program",
    "also",
    "about",
    "implementation",
    "versions",
    "depth",
    "ambient",
    "recipes",
    "sets",
];

/// Named tables of options that several subcommands share.
type Sets = Vec<(String, Vec<Opt>)>;

/// A catalog file.
pub fn grammar(root: &Node, report: &mut Report<'_>) -> Option<Program> {
    let known = [PROGRAM, COMMAND].concat();
    let entries = report.keys(root, &known)?;
    let text = |key: &str, report: &mut Report<'_>| {
        let Some(entry) = find(entries, key) else {
            report.add("missing_key", root.at, format!("`{key}` is missing"), None);
            return String::new();
        };
        report.text(&entry.value).unwrap_or_default().to_owned()
    };
    let name = text("program", report);
    let about = text("about", report);
    let implementation = text("implementation", report);
    let versions = text("versions", report);
    let depth = text("depth", report);
    let depth = match depth.as_str() {
        "full" => Depth::Full,
        "subcommands" => Depth::Subcommands,
        "opaque" => Depth::Opaque,
        other => {
            report.unknown_word("depth", other, root.at, &["full", "subcommands", "opaque"]);
            return None;
        }
    };
    let list = |key: &str, report: &mut Report<'_>| -> Vec<String> {
        find(entries, key)
            .and_then(|entry| report.texts(&entry.value))
            .map(|texts| texts.into_iter().map(|(text, _)| text.to_owned()).collect())
            .unwrap_or_default()
    };
    let also = list("also", report);
    let ambient = list("ambient", report);
    let recipes = list("recipes", report);
    let mut sets = Sets::new();
    if let Some(entry) = find(entries, "sets") {
        for set in report.map(&entry.value)? {
            let table = options(&set.value, &sets, report);
            sets.push((set.key.clone(), table));
        }
    }
    let command = command(root, &sets, OptionStyle::default(), report)?;
    Some(Program { name, also, about, implementation, versions, depth, ambient, recipes, command })
}

/// An entry of a policy's `programs:`. It claims to know every option.
pub fn inline(name: &str, node: &Node, report: &mut Report<'_>) -> Option<Program> {
    report.keys(node, COMMAND)?;
    let command = command(node, &Sets::new(), OptionStyle::default(), report)?;
    Some(Program {
        name: name.to_owned(),
        also: Vec::new(),
        about: String::new(),
        implementation: "declared by the policy".to_owned(),
        versions: String::new(),
        depth: Depth::Full,
        ambient: Vec::new(),
        recipes: Vec::new(),
        command,
    })
}

fn find<'n>(entries: &'n [Entry], key: &str) -> Option<&'n Entry> {
    entries.iter().find(|entry| entry.key == key)
}

/// Go's conventions hold for a whole program; other styles belong to one level.
fn handed_down(style: OptionStyle) -> OptionStyle {
    match style {
        OptionStyle::Go | OptionStyle::Pflag => style,
        OptionStyle::Gnu | OptionStyle::GnuAt | OptionStyle::Words | OptionStyle::None => {
            OptionStyle::Gnu
        }
    }
}

fn command(
    node: &Node,
    sets: &Sets,
    inherited: OptionStyle,
    report: &mut Report<'_>,
) -> Option<Command> {
    let mut command = Command::default();
    command.style.options = inherited;
    let entries = report.map(node)?;
    if let Some(entry) = find(entries, "style") {
        command.style = style(&entry.value, inherited, report);
    }
    for entry in entries {
        let value = &entry.value;
        match entry.key.as_str() {
            "options" => command.options.extend(options(value, sets, report)),
            "use" => {
                for (name, at) in report.one_or_more(value).unwrap_or_default() {
                    match sets.iter().find(|(known, _)| known == name) {
                        Some((_, table)) => command.options.extend(table.iter().cloned()),
                        None => report.unknown_word("set", name, at, &[]),
                    }
                }
            }
            "bundle" => command.bundle = bundle(value, sets, report),
            "keys" => {
                for entry in report.map(value).unwrap_or_default() {
                    if let Some(role) = role(&entry.value, report) {
                        command.keys.push((entry.key.clone(), role));
                    }
                }
            }
            "operands" => command.operands = slots(value, report).unwrap_or_default(),
            "after" => command.after = slots(value, report),
            "does" => command.does = does_list(value, report),
            "when" => {
                for node in report.list(value).unwrap_or_default() {
                    command.when.extend(when(node, report));
                }
            }
            "default" => command.default = report.text(value).map(str::to_owned),
            "subcommands" => {
                for entry in report.map(value).unwrap_or_default() {
                    report.keys(&entry.value, COMMAND);
                    if let Some(inner) = self::command(
                        &entry.value,
                        sets,
                        handed_down(command.style.options),
                        report,
                    ) {
                        let names = entry.key.split(", ").map(str::to_owned).collect();
                        command.subcommands.push(Subcommand { names, command: inner });
                    }
                }
            }
            _ => {}
        }
    }
    check_names(&command, node.at, report);
    Some(command)
}

/// Option names are unique; conditions and `default` name what exists.
fn check_names(command: &Command, at: At, report: &mut Report<'_>) {
    let mut inner = command.subcommands.iter().flat_map(|inner| &inner.names);
    if let Some(default) = &command.default
        && !inner.any(|name| name == default)
    {
        report.add(
            "unknown_value",
            at,
            format!("`default` names `{default}`, which is no subcommand here"),
            None,
        );
    }
    let mut names: Vec<&str> = Vec::new();
    for name in command.options.iter().flat_map(|option| &option.names) {
        if names.contains(&name.as_str()) {
            report.add("duplicate_key", at, format!("option `{name}` stands twice"), None);
        }
        names.push(name);
    }
    if let Some(bundle) = &command.bundle {
        names.extend(bundle.letters.iter().flat_map(|option| &option.names).map(String::as_str));
    }
    for when in &command.when {
        let overrides = when.options.iter().map(|(name, _)| name);
        let conditions = when.given.iter().chain(&when.and).chain(&when.without);
        for name in conditions.clone().map(|name| given_name(name)) {
            if command.options.iter().any(|option| both_ways(option, name)) {
                report.add(
                    "bad_option",
                    at,
                    format!("`when` names `{name}`, which is written together with its negation"),
                    "list `--x` and `--no-x` apart".to_owned(),
                );
            }
        }
        for name in conditions.map(|name| given_name(name)).chain(overrides.map(String::as_str)) {
            if !names.contains(&name) {
                let help = did_you_mean(name, names.iter().copied())
                    .map(|close| format!("did you mean `{close}`?"));
                report.add(
                    "unknown_value",
                    at,
                    format!("`when` names `{name}`, which is no option here"),
                    help,
                );
            }
        }
    }
}

/// Whether an option of this name stands together with its negation: then giving it says nothing.
fn both_ways(option: &Opt, name: &str) -> bool {
    let has = |name: &str| option.names.iter().any(|known| known == name);
    has(name)
        && option.names.iter().any(|known| {
            known.strip_prefix("--no-").is_some_and(|plain| has(&format!("--{plain}")))
        })
}

/// The option that a condition names: `-i=` is `-i` with a value.
fn given_name(condition: &str) -> &str {
    match condition.strip_suffix('=') {
        Some(name) if name.len() > 1 => name,
        _ => condition,
    }
}

fn style(node: &Node, inherited: OptionStyle, report: &mut Report<'_>) -> Style {
    let mut style = Style { options: inherited, ..Style::default() };
    for entry in report.keys(node, &["options", "ends", "dash-operands"]).unwrap_or_default() {
        let Some(text) = report.text(&entry.value) else {
            continue;
        };
        match (entry.key.as_str(), text) {
            ("options", "gnu") => style.options = OptionStyle::Gnu,
            ("options", "words") => style.options = OptionStyle::Words,
            ("options", "go") => style.options = OptionStyle::Go,
            ("options", "pflag") => style.options = OptionStyle::Pflag,
            ("options", "gnu-at") => style.options = OptionStyle::GnuAt,
            ("options", "none") => style.options = OptionStyle::None,
            ("options", other) => {
                report.unknown_word(
                    "style",
                    other,
                    entry.value.at,
                    &["gnu", "gnu-at", "words", "go", "pflag", "none"],
                );
            }
            ("ends", "anywhere") => style.ends = OptionsEnd::Anywhere,
            ("ends", "first-operand") => style.ends = OptionsEnd::FirstOperand,
            ("ends", other) => {
                report.unknown_word("style", other, entry.value.at, &["anywhere", "first-operand"]);
            }
            ("dash-operands", letters) => style.dash_operands = Some(letters.to_owned()),
            _ => {}
        }
    }
    style
}

fn options(node: &Node, sets: &Sets, report: &mut Report<'_>) -> Vec<Opt> {
    let mut table = Vec::new();
    for entry in report.map(node).unwrap_or_default() {
        if entry.key == "use" {
            for (name, at) in report.one_or_more(&entry.value).unwrap_or_default() {
                match sets.iter().find(|(known, _)| known == name) {
                    Some((_, set)) => table.extend(set.iter().cloned()),
                    None => report.unknown_word("set", name, at, &[]),
                }
            }
        } else {
            table.extend(option(entry, report));
        }
    }
    table
}

/// `"-o, --output FILE": write`
fn option(entry: &Entry, report: &mut Report<'_>) -> Option<Opt> {
    let mut names = Vec::new();
    let mut form = Form::Flag;
    for part in entry.key.split(", ") {
        // `--[no-]x` is both; for options whose negation does no more.
        let negated =
            part.strip_prefix("--[no-]").map(|rest| (format!("--no-{rest}"), format!("--{rest}")));
        let part = match &negated {
            Some((no, yes)) => {
                let end = no.find([' ', '[', '=']).unwrap_or(no.len());
                names.push(no[..end].to_owned());
                yes.as_str()
            }
            None => part,
        };
        let end = part.find([' ', '[']).unwrap_or(part.len());
        // `=` belongs to the name where it is the whole of it (`test a = b`).
        let end = part.find('=').filter(|at| *at > 1 && *at < end).unwrap_or(end);
        let (name, value) = part.split_at(end);
        if name.is_empty() {
            report.add("bad_option", entry.at, format!("`{}` has no name", entry.key), None);
            return None;
        }
        names.push(name.to_owned());
        form = match value.as_bytes() {
            [] => form,
            [b'[', ..] => Form::Optional,
            [b'=', ..] => Form::Attached,
            _ if value.ends_with('?') => Form::Last,
            _ => Form::Required(value.split_whitespace().count()),
        };
    }
    let mut but = Vec::new();
    let (role_node, mut does) = match &entry.value.value {
        Value::Map(inner) => {
            report.keys(&entry.value, &["value", "does", "but"]);
            if let Some(node) = find(inner, "but").map(|entry| &entry.value) {
                let words = report.one_or_more(node).unwrap_or_default();
                but = words.into_iter().map(|(word, _)| word.to_owned()).collect();
            }
            let does = find(inner, "does").map(|e| does_list(&e.value, report)).unwrap_or_default();
            (find(inner, "value").map(|e| &e.value), does)
        }
        _ if matches!(form, Form::Flag) => (None, does_list(&entry.value, report)),
        _ => (Some(&entry.value), Vec::new()),
    };
    let mut roles = role_node.map(|node| roles(node, report)).unwrap_or_default();
    let value = match form {
        Form::Flag => OptValue::Flag,
        Form::Optional => {
            let role = roles.pop()?;
            // Without a value the option has the effect all the same: `git grep -O`.
            does.extend(match role {
                Role::Code(_) => Some(Does::Class(Class::Code)),
                Role::System => Some(Does::Class(Class::System)),
                Role::Unknown => Some(Does::Class(Class::Unknown)),
                _ => None,
            });
            OptValue::Optional(role)
        }
        Form::Attached => OptValue::Attached(roles.pop()?),
        Form::Last => OptValue::Last(roles.pop()?),
        Form::Required(count) => {
            if roles.len() != count {
                report.add(
                    "bad_option",
                    entry.value.at,
                    format!("`{}` has {count} value(s) and {} role(s)", entry.key, roles.len()),
                    None,
                );
                return None;
            }
            OptValue::Required(roles)
        }
    };
    Some(Opt { names, value, does, but })
}

enum Form {
    Flag,
    Optional,
    Attached,
    Last,
    Required(usize),
}

fn bundle(node: &Node, sets: &Sets, report: &mut Report<'_>) -> Option<Bundle> {
    let mut bundle = Bundle { which: BundleWord::First, letters: Vec::new() };
    for entry in report.keys(node, &["which", "letters"])? {
        match entry.key.as_str() {
            "which" => match report.text(&entry.value)? {
                "first" => bundle.which = BundleWord::First,
                "any" => bundle.which = BundleWord::Any,
                other => report.unknown_word("bundle", other, entry.value.at, &["first", "any"]),
            },
            _ => bundle.letters = options(&entry.value, sets, report),
        }
    }
    Some(bundle)
}

fn roles(node: &Node, report: &mut Report<'_>) -> Vec<Role> {
    let Some(text) = report.text(node) else {
        return Vec::new();
    };
    text.split_whitespace().filter_map(|word| role_word(word, node.at, report)).collect()
}

fn role(node: &Node, report: &mut Report<'_>) -> Option<Role> {
    let text = report.text(node)?;
    role_word(text, node.at, report)
}

fn role_word(word: &str, at: At, report: &mut Report<'_>) -> Option<Role> {
    let role = Role::by_word(word);
    if role.is_none() {
        let known: Vec<&str> = role::WORDS
            .iter()
            .map(|(known, _)| *known)
            .chain(Kind::ALL.iter().map(|(known, _)| *known))
            .collect();
        report.unknown_word("role", word, at, &known);
    }
    role
}

/// `"pattern read-tree..."`, `"read... write"`, `"set-env... exec..."`; brackets only tell the reader what may be missing.
fn slots(node: &Node, report: &mut Report<'_>) -> Option<Slots> {
    let text = report.text(node)?;
    let mut slots = Slots::default();
    for token in text.split_whitespace() {
        let token = token.trim_start_matches('[').trim_end_matches(']');
        let (word, repeated) = match token.strip_suffix("...") {
            Some(word) => (word, true),
            None => (token, false),
        };
        let role = role_word(word, node.at, report)?;
        match (repeated, role) {
            (true, Role::Env) => slots.assigns = true,
            (true, role) if slots.rest.is_none() => slots.rest = Some(role),
            (true, _) => {
                report.add("bad_operands", node.at, "only one role can be repeated", None);
                return None;
            }
            (false, role) if slots.rest.is_some() => slots.tail.push(role),
            (false, role) => slots.head.push(role),
        }
    }
    if slots.rest.as_ref().is_some_and(Role::takes_rest) && !slots.tail.is_empty() {
        report.add("bad_operands", node.at, "nothing can follow what takes the rest", None);
        return None;
    }
    Some(slots)
}

fn does_list(node: &Node, report: &mut Report<'_>) -> Vec<Does> {
    let texts = report.one_or_more(node).unwrap_or_default();
    texts
        .into_iter()
        .filter(|(text, _)| *text != "none")
        .filter_map(|(text, at)| does(text, at, report))
        .collect()
}

fn does(text: &str, at: At, report: &mut Report<'_>) -> Option<Does> {
    let (word, object) = text.split_once(' ').unwrap_or((text, ""));
    let path = |access, shape| Some(Does::Path(access, shape, object.to_owned()));
    match (word, object) {
        ("code", "") => Some(Does::Class(Class::Code)),
        ("system", "") => Some(Does::Class(Class::System)),
        ("net", "") => Some(Does::Class(Class::Net)),
        ("unknown", "") => Some(Does::Class(Class::Unknown)),
        ("method", name) if !name.is_empty() => Some(Does::Method(name.to_owned())),
        ("any", kind) if Kind::by_word(kind).is_some() => Kind::by_word(kind).map(Does::Any),
        ("read", path_text) if !path_text.is_empty() => path(Access::Read, Shape::Exact),
        ("read-tree", path_text) if !path_text.is_empty() => path(Access::Read, Shape::Tree),
        ("write", path_text) if !path_text.is_empty() => path(Access::Write, Shape::Exact),
        ("write-tree", path_text) if !path_text.is_empty() => path(Access::Write, Shape::Tree),
        ("write-below", path_text) if !path_text.is_empty() => path(Access::Write, Shape::Below),
        _ => {
            report.add("bad_effect", at, format!("`{text}` is no effect"), "none, code, system, net, unknown, `read PATH`, `read-tree PATH`, `write PATH`, `write-tree PATH`, `write-below PATH`, `method NAME` or `any KIND`; `?` is a path that is not known".to_owned());
            None
        }
    }
}

fn when(node: &Node, report: &mut Report<'_>) -> Option<When> {
    let mut when = When::default();
    let known = [
        "given",
        "and",
        "without",
        "count",
        "count-after",
        "first",
        "not-first",
        "operands",
        "options",
        "does",
        "drops",
    ];
    for entry in report.keys(node, &known)? {
        let value = &entry.value;
        match entry.key.as_str() {
            "given" | "and" | "without" | "first" | "not-first" => {
                let names = report.one_or_more(value)?.into_iter().map(|(n, _)| n.to_owned());
                match entry.key.as_str() {
                    "given" => when.given = names.collect(),
                    "and" => when.and = names.collect(),
                    "first" => when.first = names.collect(),
                    "not-first" => when.not_first = names.collect(),
                    _ => when.without = names.collect(),
                }
            }
            "count" => when.count = Some(count(value, report)?),
            "count-after" => when.count_after = Some(count(value, report)?),
            "operands" => when.operands = Some(slots(value, report)?),
            "options" => {
                for entry in report.map(value)? {
                    when.options.push((entry.key.clone(), role(&entry.value, report)?));
                }
            }
            "does" => when.does = does_list(value, report),
            "drops" => {
                for (word, at) in report.one_or_more(value)? {
                    match Class::by_word(word) {
                        Some(class) => when.drops.push(class),
                        None => {
                            report.unknown_word("effect", word, at, &Class::ALL.map(|(w, _)| w))
                        }
                    }
                }
            }
            _ => {}
        }
    }
    Some(when)
}

/// `"0"`, `"2"`, `"1+"`.
fn count(node: &Node, report: &mut Report<'_>) -> Option<(u32, u32)> {
    let text = report.figure(node)?;
    let (number, open) = text.strip_suffix('+').map_or((text, false), |number| (number, true));
    match number.parse() {
        Ok(least) => Some((least, if open { u32::MAX } else { least })),
        Err(_) => {
            report.add(
                "wrong_type",
                node.at,
                "expected a number of operands, such as 0 or 1+",
                None,
            );
            None
        }
    }
}
