//! Lines that the guest executes itself.

use runner::call::launch::outcome::Outcome;
use runner::sandbox::outcome::Verdict;
use runner_wire::{
    AndOr, Assignment, Builtin, Bytes, Command, Joiner, Line, Part, Pipeline, Redirect, RedirectTo,
    Simple, Word, Work,
};

use crate::engine::{call, plan, workspace};

fn words(text: &str) -> Simple {
    let words = text.split(' ').map(|word| {
        if word.contains('*') {
            let mut parts = Vec::new();
            for (at, piece) in word.split('*').enumerate() {
                if at > 0 {
                    parts.push(Part::Star);
                }
                parts.push(Part::Text(Bytes::from(piece)));
            }
            Word::Glob(parts)
        } else {
            Word::Text(Bytes::from(word))
        }
    });
    simple(Command::Run { words: words.collect(), program: None })
}

fn simple(command: Command) -> Simple {
    Simple { assignments: vec![], command, redirects: vec![] }
}

fn builtin(builtin: Builtin) -> Simple {
    simple(Command::Builtin(builtin))
}

fn with(mut simple: Simple, redirects: &[(u8, RedirectTo)]) -> Simple {
    simple.redirects =
        redirects.iter().map(|(fd, to)| Redirect { fd: *fd, to: to.clone() }).collect();
    simple
}

fn one(simple: Simple) -> Pipeline {
    pipe(vec![simple])
}

fn pipe(commands: Vec<Simple>) -> Pipeline {
    Pipeline { negated: false, commands }
}

fn list(first: Pipeline, rest: Vec<(Joiner, Pipeline)>) -> AndOr {
    AndOr { first, rest }
}

fn run(folder: &std::path::Path, lists: Vec<AndOr>) -> Outcome {
    call(plan(folder), Work::Line(Line { lists, ..Line::default() })).unwrap()
}

fn out(outcome: &Outcome) -> String {
    String::from_utf8(outcome.stdout.whole().unwrap()).unwrap()
}

fn err(outcome: &Outcome) -> String {
    String::from_utf8(outcome.stderr.whole().unwrap()).unwrap()
}

#[test]
fn a_line_as_agents_write_them() {
    // test -d . && FOO=1 env 2>&1 | grep FOO; pwd
    let folder = workspace();
    let here = builtin(Builtin::Test(["-d", "."].map(|word| Word::Text(Bytes::from(word))).into()));
    let mut env = with(words("env"), &[(2, RedirectTo::Dup(1))]);
    env.assignments.push(Assignment { name: Bytes::from("FOO"), value: Bytes::from("1") });
    let lists = vec![
        list(one(here), vec![(Joiner::And, pipe(vec![env, words("grep FOO")]))]),
        list(one(words("pwd")), vec![]),
    ];
    let outcome = run(folder.path(), lists);
    assert_eq!(outcome.verdict, Verdict::Completed);
    assert_eq!(out(&outcome), format!("FOO=1\n{}\n", folder.path().display()));
}

#[test]
fn and_or_take_the_status_from_left_to_right() {
    let folder = workspace();
    let echo = |text: &str| one(words(&format!("echo {text}")));
    let lists = vec![
        list(
            one(builtin(Builtin::False)),
            vec![(Joiner::And, echo("no")), (Joiner::Or, echo("yes")), (Joiner::And, echo("too"))],
        ),
        list(
            Pipeline { negated: true, commands: vec![words("true")] },
            vec![(Joiner::Or, echo("negated"))],
        ),
        list(pipe(vec![words("false"), words("true")]), vec![(Joiner::And, echo("last"))]),
        list(one(words("nosuch x")), vec![(Joiner::Or, echo("missing"))]),
        list(one(words("sh -c kill$IFS-9$IFS$$")), vec![]),
    ];
    let outcome = run(folder.path(), lists);
    assert_eq!(out(&outcome), "yes\ntoo\nnegated\nlast\nmissing\n");
    assert_eq!(err(&outcome), "nosuch: No such file or directory\n");
    assert_eq!(outcome.verdict, Verdict::Signalled { signal: 9 });
}

#[test]
fn redirections_read_write_append_and_are_carried_out_in_order() {
    let folder = workspace();
    let path = |name: &str| Bytes::from(name);
    let lists = vec![
        list(one(with(words("echo one"), &[(1, RedirectTo::Write(path("f")))])), vec![]),
        list(one(with(words("echo two"), &[(1, RedirectTo::Append(path("f")))])), vec![]),
        list(one(with(words("cat"), &[(0, RedirectTo::Read(path("f")))])), vec![]),
        list(one(with(words("cat"), &[(0, RedirectTo::Here(Bytes::from("here\n")))])), vec![]),
        // ls nosuch 2>&1 >f: the error goes to where output went before.
        list(
            one(with(
                words("ls nosuch"),
                &[(2, RedirectTo::Dup(1)), (1, RedirectTo::Write(path("g")))],
            )),
            vec![(Joiner::Or, one(words("echo failed")))],
        ),
        list(one(with(words("cat"), &[(0, RedirectTo::Read(path("nosuch")))])), vec![]),
        list(one(with(builtin(Builtin::True), &[(1, RedirectTo::Write(path("made")))])), vec![]),
        list(one(words("ls")), vec![]),
    ];
    let outcome = run(folder.path(), lists);
    let shown = out(&outcome);
    assert!(shown.starts_with("one\ntwo\nhere\n"), "{shown}");
    assert!(shown.ends_with("failed\nf\ng\nmade\n"), "{shown}");
    assert!(shown.contains("nosuch"), "{shown}");
    assert_eq!(err(&outcome), "nosuch: No such file or directory\n");
    assert_eq!(outcome.verdict, Verdict::Completed);
}

#[test]
fn export_lasts_for_the_line() {
    let folder = workspace();
    let export = |value: &str| {
        builtin(Builtin::Export(vec![Assignment {
            name: Bytes::from("A"),
            value: Bytes::from(value),
        }]))
    };
    let lists = vec![
        list(one(export("1")), vec![(Joiner::And, one(words("printenv A")))]),
        // In a pipeline it is a process of its own.
        list(pipe(vec![export("2"), words("cat")]), vec![]),
        list(one(words("printenv A")), vec![]),
    ];
    let outcome = run(folder.path(), lists);
    assert_eq!(out(&outcome), "1\n1\n");
}

#[test]
fn patterns_are_the_names_that_exist() {
    let folder = workspace();
    for name in ["b.txt", "a.txt", ".hidden.txt", "c.rs"] {
        std::fs::write(folder.path().join(name), "").unwrap();
    }
    let lists = vec![list(one(words("echo *.txt *.none")), vec![])];
    let outcome = run(folder.path(), lists);
    assert_eq!(out(&outcome), "a.txt b.txt *.none\n");
}

#[test]
fn a_writer_whose_reader_left_ends() {
    let folder = workspace();
    let lists = vec![list(pipe(vec![words("yes"), words("head -1")]), vec![])];
    let outcome = run(folder.path(), lists);
    assert_eq!((out(&outcome).as_str(), outcome.verdict), ("y\n", Verdict::Completed));
}
