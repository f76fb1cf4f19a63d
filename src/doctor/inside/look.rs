//! Tries that one process can make one after the other, and be there afterwards.

use std::fs::{self, File};
use std::io::{self, Read as _, Write as _};
use std::net::{Ipv4Addr, SocketAddr, TcpListener, TcpStream};
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::fs::{PermissionsExt as _, chown, symlink};
use std::os::unix::net::{SocketAddr as UnixAddr, UnixStream};
use std::path::Path;
use std::time::Duration;

use rustix::fs::{StatVfsMountFlags, statvfs};
use rustix::process::{
    Pid, Resource, Rlimit, getrlimit, prlimit, setpriority_process, setrlimit, test_kill_process,
};

use crate::doctor::folder::{ALLOWED, DENIED, DENIED_FOLDER, FORBIDDEN, KEY, PLAIN};
use crate::doctor::seen::{Asked, Seen};
use crate::sys::forbidden::{
    become_root, ignore_file_size_signal, make_device, try_forbidden_calls,
};

/// How long a connection may take that must not come about.
const CONNECT: Duration = Duration::from_secs(1);

/// Process numbers that a new sandbox may have given out itself.
const OWN_PROCESSES: u32 = 64;

/// Scratch space of every sandbox.
const SCRATCH: &str = "/tmp";

/// The protections that are tried here, in order.
pub fn look(asked: &Asked) -> Seen {
    let mut seen = Seen::default();
    network(&mut seen, asked);
    root(&mut seen);
    capabilities(&mut seen);
    namespaces(&mut seen, asked);
    grants(&mut seen, asked);
    denied(&mut seen, asked);
    staged(&mut seen);
    setuid(&mut seen);
    channel(&mut seen);
    guest(&mut seen);
    figures(&mut seen, asked);
    // Last: where such a call succeeds, this process is no longer what the others are about.
    system_calls(&mut seen);
    seen
}

/// An error of our own making.
fn wrong(why: &str) -> io::Error {
    io::Error::other(why.to_owned())
}

/// Whether something is so, as a try.
fn when(so: bool, otherwise: &str) -> io::Result<()> {
    if so { Ok(()) } else { Err(wrong(otherwise)) }
}

fn network(seen: &mut Seen, asked: &Asked) {
    const NAME: &str = "network";
    let own = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))
        .and_then(|listener| TcpStream::connect_timeout(&listener.local_addr()?, CONNECT));
    seen.control(NAME, "connect to a listener of its own", own);
    let host = SocketAddr::from((Ipv4Addr::LOCALHOST, asked.port));
    seen.attack(
        NAME,
        "connect to a listener of the host",
        TcpStream::connect_timeout(&host, CONNECT),
    );
    let socket = UnixAddr::from_abstract_name(&asked.socket);
    let reached = socket.and_then(|name| UnixStream::connect_addr(&name));
    seen.attack(NAME, "connect to an abstract socket of the host", reached);
    // Two lines of headings; a name ends with a colon.
    let table = fs::read_to_string("/proc/net/dev").unwrap_or_default();
    let names = table.lines().skip(2).filter_map(|line| line.split(':').next()).map(str::trim);
    let other = names.filter(|name| *name != "lo").map(str::to_owned).collect::<Vec<_>>();
    let devices = when(!other.is_empty(), "there is the loopback device alone");
    seen.attack(NAME, format!("find a network device {}", other.join(" ")).trim_end(), devices);
}

fn root(seen: &mut Seen) {
    const NAME: &str = "root";
    seen.control(NAME, "write scratch space", fs::write("/tmp/doctor-scratch", "x"));
    for folder in ["/", "/usr", "/etc", "/bin", "/lib", "/sys"] {
        let Ok(found) = statvfs(folder) else { continue };
        let writable = when(!found.f_flag.contains(StatVfsMountFlags::RDONLY), "it is read-only");
        seen.attack(NAME, format!("find {folder} writable"), writable);
    }
    for file in
        ["/proc/sys/kernel/core_pattern", "/proc/sys/kernel/hostname", "/proc/sysrq-trigger"]
    {
        let opened = File::options().write(true).open(file);
        seen.attack(NAME, format!("open {file} for writing"), opened);
    }
}

fn capabilities(seen: &mut Seen) {
    const NAME: &str = "capabilities";
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let field = |name: &str| {
        let value = status.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
        value.map(|value| value.trim().to_owned())
    };
    for set in ["CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"] {
        let Some(value) = field(set) else { continue };
        let some = when(value.chars().any(|digit| digit != '0'), "the set is empty");
        seen.attack(NAME, format!("find a capability in {set}"), some);
    }
    let gains =
        when(field("NoNewPrivs").is_some_and(|value| value != "1"), "no-new-privileges is set");
    seen.attack(NAME, "gain privileges by starting a program", gains);
    seen.control(NAME, "change the mode of a file of its own", {
        let shut = fs::Permissions::from_mode(0o600);
        fs::write("/tmp/doctor-own", "").and_then(|()| fs::set_permissions("/tmp/doctor-own", shut))
    });
    seen.attack(NAME, "give a file away", chown("/tmp/doctor-own", Some(12_345), None));
    seen.attack(NAME, "make a device file", make_device(c"/tmp/doctor-device"));
    if !rustix::process::getuid().is_root() {
        seen.attack(NAME, "become root", become_root());
    }
}

fn namespaces(seen: &mut Seen, asked: &Asked) {
    const NAME: &str = "namespaces";
    for (kind, of_host) in &asked.namespaces {
        let link = format!("/proc/self/ns/{kind}");
        // A kernel of its own may show no such links.
        let Ok(own) = fs::read_link(&link) else { continue };
        let shared = when(own.as_os_str() == of_host.as_str(), "it is another one");
        seen.attack(NAME, format!("find the host's {kind} namespace around it"), shared);
    }
    let first =
        fs::read("/proc/1/cmdline").map(|words| String::from_utf8_lossy(&words).into_owned());
    let shown = fs::read_dir("/proc").map(|entries| {
        entries
            .flatten()
            .filter(|it| it.file_name().to_string_lossy().parse::<u32>().is_ok())
            .count()
    });
    seen.control(
        NAME,
        "see a first process",
        first.and_then(|words| when(!words.is_empty(), "it has no words")),
    );
    let many = shown.and_then(|count| when(count > 16, "there are those of the sandbox alone"));
    seen.attack(NAME, "see processes of the host", many);
    // A small number may be that of a process of the sandbox itself.
    if asked.process > OWN_PROCESSES
        && let Some(process) = Pid::from_raw(asked.process.cast_signed())
    {
        let reached = test_kill_process(process).map_err(io::Error::from);
        seen.attack(NAME, "send a signal to a process of the host", reached);
    }
}

fn grants(seen: &mut Seen, asked: &Asked) {
    const NAME: &str = "file-grants";
    let plain = |path: &Path| holds(path, "plain");
    seen.control(NAME, "read a file of the workspace", plain(Path::new(PLAIN)));
    seen.control(NAME, "read it through a symlink", plain(Path::new("inside")));
    let outside = |path: &str| holds(Path::new(path), &asked.canary);
    let out = &asked.outside;
    seen.attack(NAME, "read a file outside of the workspace", outside(out));
    seen.attack(NAME, "read it through a symlink that was there", outside("outside"));
    let _ = fs::create_dir_all(ALLOWED);
    let link = format!("{ALLOWED}/link");
    seen.attack(
        NAME,
        "read it through a symlink of its own",
        symlink(out, &link).and_then(|()| outside(&link)),
    );
    let _ = fs::remove_file(&link);
    seen.attack(
        NAME,
        "read it through the root of the first process",
        outside(&format!("/proc/1/root{out}")),
    );
}

/// Whether a file can be read and holds a word.
fn holds(path: &Path, word: &str) -> io::Result<()> {
    let mut text = String::new();
    File::open(path)?.take(1 << 16).read_to_string(&mut text)?;
    when(text.contains(word), "it reads as empty")
}

fn denied(seen: &mut Seen, asked: &Asked) {
    const NAME: &str = "denied-files";
    seen.control(NAME, "read a file that is not denied", holds(Path::new(PLAIN), "plain"));
    for file in [DENIED, KEY] {
        seen.attack(NAME, format!("read {file}"), holds(Path::new(file), &asked.canary));
    }
    let copied = fs::copy(DENIED, format!("{SCRATCH}/doctor-copy"));
    let copied = copied.and_then(|count| when(count > 0, "the copy is empty"));
    seen.attack(NAME, format!("copy {DENIED}"), copied);
    let entries = fs::read_dir(DENIED_FOLDER).map(|entries| entries.flatten().count());
    let found = entries.and_then(|count| when(count > 0, "it is empty"));
    seen.attack(NAME, format!("find files in {DENIED_FOLDER}"), found);
}

/// Writes what the host must judge. What became of it is seen there.
fn staged(seen: &mut Seen) {
    const NAME: &str = "protected-paths";
    let write = |path: &str| {
        let path = Path::new(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, "doctor")
    };
    seen.control(NAME, "write a file that the policy allows", write(&format!("{ALLOWED}/out.txt")));
    for path in FORBIDDEN {
        // Whether it can be written inside says nothing: the host judges it afterwards.
        let _ = write(path);
    }
}

fn setuid(seen: &mut Seen) {
    const NAME: &str = "setuid-bits";
    let path = format!("{ALLOWED}/bits");
    let made = fs::write(&path, "");
    seen.control(NAME, "make a file", made);
    // The host looks whether the bit is on its file afterwards.
    let _ = fs::set_permissions(&path, fs::Permissions::from_mode(0o4755));
}

fn channel(seen: &mut Seen) {
    const NAME: &str = "result-channel";
    let status = fs::read_to_string("/proc/1/status");
    seen.control(NAME, "read what the guest shows of itself", status);
    seen.attack(NAME, "open the guest's memory", File::open("/proc/1/mem"));
    for number in [0, 1] {
        let stream = File::options().write(true).open(format!("/proc/1/fd/{number}"));
        seen.attack(NAME, format!("open descriptor {number} of the guest"), stream);
    }
}

/// What a process of the guest's user may try against the process that ends its sandbox.
fn guest(seen: &mut Seen) {
    const NAME: &str = "orphans";
    const NICE: i32 = 5;
    let own = setpriority_process(None, NICE).map_err(io::Error::from);
    seen.control(NAME, "lower its own priority", own);
    let slowed = setpriority_process(Some(Pid::INIT), NICE).map_err(io::Error::from);
    seen.attack(NAME, "lower the priority of the process that ends the sandbox", slowed);
    let few = Rlimit { current: Some(8), maximum: Some(8) };
    let limited = prlimit(Some(Pid::INIT), Resource::Nofile, few).map(drop);
    seen.attack(NAME, "limit the process that ends the sandbox", limited.map_err(io::Error::from));
}

/// Limits that a process meets and outlives.
fn figures(seen: &mut Seen, asked: &Asked) {
    let limits = asked.limits;
    let beyond = |count: u64, most: u64| when(count > most, "the limit holds");
    let mut files = Vec::new();
    while let Ok(file) = File::open("/dev/null")
        && files.len() as u64 <= limits.open_files
    {
        files.push(file);
    }
    let opened = files.len() as u64;
    drop(files);
    seen.control("open-files", "open a file", when(opened > 0, "none could be opened"));
    seen.attack("open-files", "open more files than the limit", beyond(opened, limits.open_files));

    ignore_file_size_signal();
    let large = File::create(format!("{ALLOWED}/large"));
    let grown = |bytes| {
        large.as_ref().map_err(|it| wrong(&it.to_string())).and_then(|file| file.set_len(bytes))
    };
    seen.control("file-size", "write a file of the limit's size", grown(limits.file_size));
    seen.attack("file-size", "write a larger file", grown(limits.file_size + 1));
    let _ = fs::remove_file(format!("{ALLOWED}/large"));

    seen.control("shared-memory", "write scratch space", fs::write("/tmp/doctor-scratch", "x"));
    let shared = fs::write("/dev/shm/doctor", "x");
    seen.attack("shared-memory", "write in /dev/shm", shared);

    let filled = fill(limits.scratch);
    seen.control("scratch", "write in scratch space", when(filled > 0, "nothing could be written"));
    seen.attack("scratch", "write more than the limit", beyond(filled, limits.scratch));

    let made = crowd(limits.inodes);
    seen.control("inodes", "make files in scratch space", when(made > 0, "none could be made"));
    seen.attack("inodes", "make more files than the limit", beyond(made, limits.inodes));
}

/// Fills scratch space, a little beyond its limit if that is possible; how many bytes it took.
fn fill(limit: u64) -> u64 {
    const BLOCK: [u8; 4096] = [1; 4096];
    let path = format!("{SCRATCH}/doctor-fill");
    let Ok(mut file) = File::create(&path) else { return 0 };
    let mut written = 0;
    while written <= limit + (1 << 20) && file.write_all(&BLOCK).is_ok() {
        written += BLOCK.len() as u64;
    }
    let _ = fs::remove_file(path);
    written
}

/// Makes files in scratch space, a few more than the limit if that is possible; how many.
fn crowd(limit: u64) -> u64 {
    let folder = format!("{SCRATCH}/doctor-crowd");
    if fs::create_dir(&folder).is_err() {
        return 0;
    }
    let made = (0..=limit).take_while(|at| File::create(format!("{folder}/{at}")).is_ok()).count();
    let _ = fs::remove_dir_all(folder);
    made as u64
}

fn system_calls(seen: &mut Seen) {
    const NAME: &str = "system-calls";
    seen.control(
        NAME,
        "start a thread",
        std::thread::Builder::new().spawn(|| {}).map(|it| it.join()),
    );
    // It seems to succeed, since programs do it with the best intentions.
    let none = Rlimit { current: Some(0), maximum: Some(0) };
    let _ = setrlimit(Resource::Core, none);
    let lowered = when(getrlimit(Resource::Core) == none, "the limit is as it was");
    seen.attack(NAME, "have a crash start the host's program for core dumps", lowered);
    for (name, result) in try_forbidden_calls() {
        seen.attack(NAME, format!("use {name}"), result);
    }
}
