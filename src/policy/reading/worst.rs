//! The worst that a program could do if any of its options might be given.
//!
//! Words from standard input can be options. For a program whose every option was read, that is the
//! join of all of them; for any other it is unknown.

use super::level::{Arg, Level};
use crate::effect::{Caused, Effect, Peer, Place};
use crate::grammar::{Access, Command, Depth, Does, Kind, OptValue, Role, Slots};

/// Adds the effects of any words whatsoever.
pub(super) fn add(command: &Command, level: &mut Level) {
    level.complete = false;
    for (_, kind) in Kind::ALL {
        level.args.push(Arg { kind: *kind, value: None });
    }
    let by = "words that are not known before it runs can be options";
    let mut push = |effect: Effect| {
        let caused = Caused { effect, by: by.to_owned() };
        if !level.effects.contains(&caused) {
            level.effects.push(caused);
        }
    };
    if level.known != Some(Depth::Full) || !command.subcommands.is_empty() {
        push(Effect::Unknown);
        return;
    }
    let bundled = command.bundle.iter().flat_map(|bundle| &bundle.letters);
    for option in command.options.iter().chain(bundled) {
        option.does.iter().for_each(|does| written(does, &mut push));
        match &option.value {
            OptValue::Flag => {}
            OptValue::Optional(value) | OptValue::Attached(value) | OptValue::Last(value) => {
                role(value, &mut push)
            }
            OptValue::Required(values) => values.iter().for_each(|value| role(value, &mut push)),
        }
    }
    slots(&command.operands, &mut push);
    command.after.iter().for_each(|after| slots(after, &mut push));
    command.keys.iter().for_each(|(_, value)| role(value, &mut push));
    for when in &command.when {
        when.operands.iter().for_each(|operands| slots(operands, &mut push));
        when.does.iter().for_each(|does| written(does, &mut push));
        when.options.iter().for_each(|(_, value)| role(value, &mut push));
    }
}

fn slots(slots: &Slots, push: &mut impl FnMut(Effect)) {
    slots.head.iter().chain(&slots.rest).chain(&slots.tail).for_each(|value| role(value, push));
}

fn written(does: &Does, push: &mut impl FnMut(Effect)) {
    match does {
        Does::Path(access, _, _) => path(*access, push),
        Does::Class(class) => push(match class {
            crate::effect::Class::Read => Effect::Read(Place::Any),
            crate::effect::Class::Write => Effect::Write(Place::Any),
            crate::effect::Class::Net => Effect::Net(Peer::Any),
            crate::effect::Class::Code => Effect::Code,
            crate::effect::Class::System => Effect::System,
            crate::effect::Class::Unknown => Effect::Unknown,
        }),
        Does::Method(_) | Does::Any(_) => {}
    }
}

fn path(access: Access, push: &mut impl FnMut(Effect)) {
    if access != Access::Write {
        push(Effect::Read(Place::Any));
    }
    if access != Access::Read {
        push(Effect::Write(Place::Any));
    }
}

fn role(role: &Role, push: &mut impl FnMut(Effect)) {
    match role {
        Role::Inert(_)
        | Role::Method
        | Role::Replace
        | Role::Pass
        | Role::Chdir
        | Role::ChdirOperands => {}
        Role::Path(access, _) => path(*access, push),
        Role::AtFile
        | Role::FileEquals
        | Role::ReadList
        | Role::ReadEquals
        | Role::ReadMember
        | Role::FilterRule
        | Role::Form
        | Role::Rev
        | Role::RevOrPath
        | Role::RevTree
        | Role::JqFilter => path(Access::Read, push),
        Role::HostPath(access, _) => {
            path(*access, push);
            push(Effect::Net(Peer::Any));
        }
        Role::UrlOrRead => {
            path(Access::Read, push);
            push(Effect::Net(Peer::Any));
        }
        Role::Url | Role::Host => push(Effect::Net(Peer::Any)),
        Role::Env
        | Role::UnsetEnv
        | Role::Exec
        | Role::ExecStdin
        | Role::ExecUntil
        | Role::ShellLine
        | Role::Code(_)
        | Role::AwkScript
        | Role::SedScript => {
            push(Effect::Code);
        }
        Role::Remote(access) => {
            path(*access, push);
            push(Effect::Net(Peer::Any));
            push(Effect::Code);
        }
        Role::Suffix => path(Access::Write, push),
        Role::Mode | Role::PlusFormat | Role::System => push(Effect::System),
        Role::Unknown => push(Effect::Unknown),
    }
}
