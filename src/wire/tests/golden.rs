//! The message set as a checked-in file: a change of the wire is a change that somebody sees.
//! `RUNNER_BLESS=1` writes the file anew.
#![expect(clippy::unwrap_used, reason = "a failed step fails the test")]

use runner_wire::*;
use std::fmt::Write as _;

/// A line with one of everything.
fn script() -> Script {
    let plain = |pieces: Vec<Piece>| Expand { pieces, assume: Assume::Nothing };
    let text = |text: &str| plain(vec![Piece::Text(Bytes::from(text))]);
    let name = || Bytes::from("x");
    let set = || vec![Setting { name: name(), value: text("1"), exported: true }];
    let all = vec![
        Piece::Text(Bytes::from("a")),
        Piece::Star,
        Piece::Any,
        Piece::Class(Class { negated: false, ranges: vec![('a', 'z')] }),
        Piece::Variable(name()),
        Piece::Quoted(name()),
        Piece::Status,
        Piece::Output(1),
        Piece::QuotedOutput(1),
    ];
    let exactly = Assume::Exactly(vec![vec![Bytes::from("a\\\\*"), Bytes::from("b")]]);
    let no_option = |many, path| Assume::NoOption { many, path };
    let words = vec![
        Expand { pieces: all, assume: exactly },
        Expand { pieces: vec![Piece::Quoted(name())], assume: no_option(false, None) },
        Expand { pieces: vec![], assume: no_option(true, Some(PathKind::Inside)) },
        Expand { pieces: vec![], assume: no_option(false, Some(PathKind::Plain)) },
    ];
    let inner = Script { errexit: true, pipefail: true, nounset: true, ..Script::default() };
    let does = vec![
        Does::Run { set: set(), words },
        Does::Nested { set: vec![], words: vec![text("nice")], script: Box::new(inner) },
        Does::Set(set()),
        Does::Export(vec![(name(), Some(text("1"))), (name(), None)]),
        Does::Unset(vec![name()]),
        Does::Cd(Some(text("x"))),
        Does::Read { raw: true, whole: true, names: vec![(name(), false)] },
        Does::Options(vec![
            (Switch::Errexit, true),
            (Switch::Nounset, false),
            (Switch::Pipefail, true),
        ]),
        Does::Exit(None),
        Does::Break(1),
        Does::Continue(2),
        Does::True(vec![]),
        Does::False(vec![text("x")]),
        Does::Test(vec![text("x")]),
        Does::Condition(vec![
            Step::Unary(Bytes::from("-f"), text("x")),
            Step::Binary(text("1"), Bytes::from("-eq"), text("1")),
            Step::And,
            Step::Match(text("x"), plain(vec![Piece::Star])),
            Step::Or,
            Step::Not,
        ]),
        Does::Which(vec![name()]),
        Does::Group(1),
        Does::Subshell(1),
        Does::If { branches: vec![(1, 1)], otherwise: Some(1) },
        Does::While { until: true, condition: 1, body: 1 },
        Does::For { name: (name(), false), words: vec![text("x")], body: 1 },
        Does::Case { word: text("x"), arms: vec![(vec![text("x")], 1)] },
    ];
    let redirects = vec![
        Opening { fd: 0, to: OpeningTo::Read(text("in")) },
        Opening { fd: 1, to: OpeningTo::Write(text("out")) },
        Opening { fd: 1, to: OpeningTo::Append(text("log")) },
        Opening { fd: 2, to: OpeningTo::Dup(1) },
        Opening { fd: 3, to: OpeningTo::Close },
        Opening { fd: 0, to: OpeningTo::Here(text("t\n")) },
    ];
    let commands = does.into_iter().map(|does| Node { does, redirects: vec![] });
    let pipe = |commands| Pipe { negated: false, timed: false, commands };
    let last = Node { does: Does::Group(1), redirects };
    let rest = vec![(Joiner::And, Pipe { negated: true, timed: true, commands: vec![last] })];
    let blocks = vec![vec![Chain { first: pipe(commands.collect()), rest }], vec![]];
    Script { blocks, roots: vec![Bytes::from("/w")], ..Script::default() }
}

fn host() -> Vec<HostMessage> {
    let simple = |command: Command| Simple { assignments: vec![], command, redirects: vec![] };
    let text = |text: &str| Word::Text(Bytes::from(text));
    let one = |simple: Simple| Pipeline { negated: false, commands: vec![simple] };
    let inner = simple(Command::Line { words: vec![], line: Line::default() });
    let line = Line {
        lists: vec![
            AndOr {
                first: one(simple(Command::Builtin(Builtin::True))),
                rest: vec![(
                    Joiner::And,
                    Pipeline {
                        negated: true,
                        commands: vec![
                            Simple {
                                assignments: vec![Assignment {
                                    name: Bytes::from("FOO"),
                                    value: Bytes::from("1"),
                                }],
                                command: Command::Run {
                                    words: vec![
                                        text("npm"),
                                        Word::Glob(vec![
                                            Part::Text(Bytes::from("src/")),
                                            Part::Star,
                                            Part::Any,
                                            Part::Class(Class {
                                                negated: true,
                                                ranges: vec![('a', 'z'), ('_', '_')],
                                            }),
                                        ]),
                                    ],
                                    program: None,
                                },
                                redirects: vec![
                                    Redirect { fd: 2, to: RedirectTo::Dup(1) },
                                    Redirect { fd: 0, to: RedirectTo::Read(Bytes::from("in")) },
                                    Redirect { fd: 1, to: RedirectTo::Write(Bytes::from("out")) },
                                    Redirect { fd: 1, to: RedirectTo::Append(Bytes::from("log")) },
                                    Redirect { fd: 3, to: RedirectTo::Both(Bytes::from("rw")) },
                                    Redirect { fd: 3, to: RedirectTo::Close },
                                    Redirect { fd: 0, to: RedirectTo::Here(Bytes::from("a\n")) },
                                ],
                            },
                            simple(Command::Run {
                                words: vec![text("tail"), text("-5")],
                                program: Some(Bytes::from("/usr/bin/tail")),
                            }),
                        ],
                    },
                )],
            },
            AndOr {
                first: one(simple(Command::Builtin(Builtin::Export(vec![Assignment {
                    name: Bytes::from("A"),
                    value: Bytes(vec![0xff]),
                }])))),
                rest: vec![
                    (Joiner::Or, one(simple(Command::Builtin(Builtin::True)))),
                    (Joiner::Or, one(simple(Command::Builtin(Builtin::False)))),
                    (
                        Joiner::And,
                        one(simple(Command::Builtin(Builtin::Test(vec![text("-f"), text("a")])))),
                    ),
                    (
                        Joiner::And,
                        one(simple(Command::Builtin(Builtin::Assign(vec![Assignment {
                            name: Bytes::from("A"),
                            value: Bytes::from("b"),
                        }])))),
                    ),
                    (
                        Joiner::And,
                        one(simple(Command::Line {
                            words: vec![text("timeout"), text("5")],
                            line: Line {
                                lists: vec![AndOr { first: one(inner), rest: vec![] }],
                                errexit: true,
                                pipefail: true,
                            },
                        })),
                    ),
                ],
            },
        ],
        ..Line::default()
    };
    let script = Box::new(script());
    let limits = StartLimits {
        wall_ms: 30_000,
        cpu_ms: 30_000,
        open_files: 1024,
        file_size: 1 << 28,
        output_max: 1 << 26,
        watched_memory: None,
        watched_pids: None,
    };
    let watched = StartLimits { watched_memory: Some(1 << 28), watched_pids: Some(128), ..limits };
    let start_within = |work, stdin, limits| {
        HostMessage::Start(Start {
            work,
            env: vec![(Bytes::from("PATH"), Bytes::from("/usr/bin"))],
            cwd: Bytes::from("/w"),
            umask: 0o022,
            stdin,
            port: if stdin == Stdin::Null { Port::Tool } else { Port::Closed },
            limits,
            network: None,
        })
    };
    let start = |work, stdin| start_within(work, stdin, limits);
    let with_network = match start(Work::Waiting, Stdin::Null) {
        HostMessage::Start(start) => {
            let names = vec!["registry.example".to_owned(), "*.example.org".to_owned()];
            HostMessage::Start(Start {
                network: Some(Network { names, ports: vec![443] }),
                ..start
            })
        }
        other => other,
    };
    let mut messages = vec![
        HostMessage::Hello(Hello {
            version: VERSION,
            key: Key::new([7; 32]),
            targets: vec![Bytes::from("/w"), Bytes(vec![b'/', 0xfe])],
            lease_ms: 60_000,
        }),
        start(
            Work::Argv {
                argv: vec![Bytes::from("ls"), Bytes::from("-l")],
                program: Some(Bytes::from("/usr/bin/ls")),
            },
            Stdin::Pipe,
        ),
        start(Work::Argv { argv: vec![Bytes::from("ls")], program: None }, Stdin::Null),
        start(Work::Shell { text: Bytes::from("a=(1); echo $((1))") }, Stdin::Null),
        start(Work::Line(line), Stdin::Pipe),
        start(Work::Script(script.clone()), Stdin::Pipe),
        start(Work::Waiting, Stdin::Null),
        start_within(Work::Waiting, Stdin::Null, watched),
        HostMessage::Data(Channel::STDIN, b"input".to_vec()),
        HostMessage::Close(Channel::STDIN),
        HostMessage::Credit(Channel::STDERR, 65_536),
        HostMessage::Data(Channel::TOOL, b"talk".to_vec()),
        HostMessage::Credit(Channel::TOOL, 65_536),
        HostMessage::Data(Channel::FIRST_TUNNEL, b"back".to_vec()),
        HostMessage::Credit(Channel::FIRST_TUNNEL, 32768),
        HostMessage::Close(Channel::FIRST_TUNNEL),
        HostMessage::Reset(Channel(17)),
        with_network,
    ];
    for signal in
        [SignalName::Interrupt, SignalName::Terminate, SignalName::Hangup, SignalName::Kill]
    {
        messages.push(HostMessage::Signal(signal));
    }
    messages
}

fn guest() -> Vec<GuestMessage> {
    let usage = Usage {
        peak_memory: Some(1 << 20),
        cpu_us: Some(1500),
        peak_pids: Some(3),
        oom_kills: Some(0),
        pids_refused: None,
        wall_us: 2000,
        written: StreamTotals { stdout: 5, stderr: 0 },
    };
    let mut messages = vec![
        GuestMessage::Ready(Ready {
            version: VERSION,
            mounts: vec![
                MountSeen {
                    target: Bytes::from("/w"),
                    dev: 64769,
                    ino: 12,
                    read_only: true,
                    mark: Some(Bytes::from("0123")),
                },
                MountSeen {
                    target: Bytes::from("/usr"),
                    dev: 64769,
                    ino: 13,
                    read_only: true,
                    mark: None,
                },
            ],
            seen: Seen {
                uid: 1000,
                gid: 1000,
                capabilities: 0,
                no_new_privs: Some(true),
                seccomp: Some(2),
            },
        }),
        GuestMessage::Started(Started { spawn_us: 700 }),
        GuestMessage::Data(Channel::STDOUT, b"output".to_vec()),
        GuestMessage::Data(Channel::STDERR, vec![0, 255]),
        GuestMessage::Open(
            Channel::FIRST_TUNNEL,
            Open { name: "registry.example".to_owned(), port: 443 },
        ),
        GuestMessage::Data(Channel::FIRST_TUNNEL, b"hello".to_vec()),
        GuestMessage::Credit(Channel::FIRST_TUNNEL, 32768),
        GuestMessage::Close(Channel::FIRST_TUNNEL),
        GuestMessage::Reset(Channel(17)),
        GuestMessage::Missed(Missed { name: "other.example".to_owned() }),
        GuestMessage::Close(Channel::STDOUT),
        GuestMessage::Credit(Channel::STDIN, 65_536),
        GuestMessage::Data(Channel::TOOL, b"talk".to_vec()),
        GuestMessage::Close(Channel::TOOL),
        GuestMessage::Credit(Channel::TOOL, 65_536),
    ];
    for (ending, hits) in [
        (Ending::Exited { status: 1 }, vec![]),
        (
            Ending::Signalled { signal: 9 },
            vec![
                LimitHit::Memory,
                LimitHit::Pids,
                LimitHit::OpenFiles,
                LimitHit::CpuTime,
                LimitHit::FileSize,
                LimitHit::Output,
                LimitHit::Wall,
            ],
        ),
        (Ending::Stopped { cause: Cause::Wall }, vec![]),
        (Ending::Stopped { cause: Cause::Output }, vec![]),
        (Ending::Stopped { cause: Cause::Pids }, vec![]),
        (Ending::Stopped { cause: Cause::OpenFiles }, vec![]),
        (Ending::Stopped { cause: Cause::Memory }, vec![]),
        (Ending::Stopped { cause: Cause::Cancel }, vec![]),
        (Ending::NotFound { program: Bytes::from("nosuch") }, vec![]),
        (Ending::NotExecutable { program: Bytes::from("./a"), errno: 13 }, vec![]),
        (Ending::NoCwd { errno: 2 }, vec![]),
        (Ending::Assumption(Broken { word: Bytes::from("-rf"), why: Why::Option }), vec![]),
    ] {
        // What ended by itself has run.
        let ran = match ending {
            Ending::Exited { .. } => {
                vec![
                    Ran { name: Bytes::from("cat"), path: Bytes::from("/usr/bin/cat") },
                    Ran { name: Bytes(vec![0xff]), path: Bytes(vec![b'/', 0xff]) },
                ]
            }
            _ => vec![],
        };
        let (left_out, left_running) = (u64::from(!ran.is_empty()), ran.len() as u64);
        let (programs, usage) = (Programs { left_out, ran }, usage.clone());
        messages.push(GuestMessage::Exit(Exit { ending, hits, programs, left_running, usage }));
    }
    for phase in [Phase::Setup, Phase::Handshake, Phase::Wait, Phase::Spawn, Phase::Run] {
        messages.push(GuestMessage::Fatal(Fatal { phase, message: "why".to_owned() }));
    }
    messages
}

/// Encodes and decodes each message, and renders its frame as a line of text.
fn render() -> String {
    let mut text = String::from(
        "# Every message of the wire. Written by RUNNER_BLESS=1; read before you commit a change.\n",
    );
    for kind in Kind::ALL {
        let _ = writeln!(text, "kind {:2} {kind:?}: at most {} bytes", kind as u8, kind.cap());
    }
    let show = |text: &mut String, side: &str, bytes: &[u8]| {
        let payload = &bytes[HEADER..];
        let channel = u32::from_le_bytes(bytes[5..9].try_into().unwrap());
        let kind = Kind::from_number(bytes[4]).unwrap();
        let shown = std::str::from_utf8(payload)
            .map_or_else(|_| payload.escape_ascii().to_string(), str::to_owned);
        let _ = writeln!(text, "{side} {kind:?} {channel} {shown}");
    };
    let key = Key::new([7; 32]);
    let (mut encoder, mut decoder) = (Encoder::new(Side::Host), Decoder::new(Side::Host));
    for message in host() {
        let mut bytes = Vec::new();
        message.encode(&mut encoder, &mut bytes).unwrap();
        decoder.push(&bytes);
        let frame = decoder.next_frame().unwrap().unwrap();
        if frame.kind == Kind::Hello {
            decoder.rekey(&key);
        }
        assert_eq!(HostMessage::from_frame(frame).unwrap(), message);
        show(&mut text, "host", &bytes);
    }
    let (mut encoder, mut decoder) = (Encoder::new(Side::Guest), Decoder::new(Side::Guest));
    encoder.rekey(&key);
    decoder.rekey(&key);
    for message in guest() {
        let mut bytes = Vec::new();
        message.encode(&mut encoder, &mut bytes).unwrap();
        decoder.push(&bytes);
        let frame = decoder.next_frame().unwrap().unwrap();
        assert_eq!(GuestMessage::from_frame(frame).unwrap(), message);
        show(&mut text, "guest", &bytes);
    }
    text
}

#[test]
fn the_message_set_is_the_golden_one() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/messages.golden");
    let now = render();
    if std::env::var_os("RUNNER_BLESS").is_some() {
        std::fs::write(path, &now).unwrap();
    }
    let golden = std::fs::read_to_string(path).unwrap();
    assert!(golden == now, "the wire changed; RUNNER_BLESS=1 writes {path} anew:\n{now}");
}
