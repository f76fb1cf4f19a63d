//! Row 5, launch configuration: how every container is launched, as the container sees it and as the daemon tells
//! it.

use std::io::{Read, Write};
use std::process::Stdio;

use runner::engine::seccomp::PROFILE;
use serde_json::Value;

use super::harness::{On, attack, case};
use super::seat::Seat;
use crate::image::{docker, small_image};

/// What the kernel says about the command itself.
fn the_kernel_confirms_how_a_command_was_launched(on: On) {
    let case = case(&["a"]);
    let script = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Groups)' /proc/self/status; \
        ls /dev | sort | tr '\\n' ' '; echo; ls /sys/class/net; cat /proc/1/comm; ps -e 2>/dev/null | wc -l; \
        cat /proc/self/mountinfo; echo x > /x; echo x > /usr/x; echo x > /sys/fs/cgroup/x && echo WROTE; ls /run /var/run 2>/dev/null; \
        grep -E 'open files|core|file size' /proc/self/limits; hostname";
    let ran = case.sh(on.write(&["t/**"]), script);
    let uid = std::os::unix::fs::MetadataExt::uid(&case.root.metadata().unwrap());
    for line in [
        "CapInh:\t0000000000000000",
        "CapPrm:\t0000000000000000",
        "CapEff:\t0000000000000000",
        "CapBnd:\t0000000000000000",
        "CapAmb:\t0000000000000000",
        "NoNewPrivs:\t1",
        "Seccomp:\t2",
        &format!("Uid:\t{uid}\t{uid}\t{uid}\t{uid}"),
    ] {
        assert!(ran.out.lines().any(|found| found == line), "{line}\n{}", ran.out);
    }
    assert_ne!(uid, 0);
    assert!(!ran.out.contains("docker.sock") && !ran.out.contains("WROTE"));
    let mut tmpfs = 0;
    for line in ran.out.lines().filter(|line| line.contains(" - ")) {
        let fields: Vec<&str> = line.split(' ').collect();
        let (target, options) = (fields[4], fields[5]);
        // Of the mount, and of the file system.
        let writable = [options, fields[fields.len() - 1]]
            .iter()
            .all(|options| options.split(',').any(|option| option == "rw"));
        if ["/tmp", "/home/runner", "/dev/shm"].contains(&target) {
            tmpfs += 1;
            let of_fs = fields.last().unwrap();
            for option in ["nosuid", "nodev"] {
                assert!(options.contains(option), "{line}");
            }
            for option in ["size=", "nr_inodes=", &format!("uid={uid}")] {
                assert!(of_fs.contains(option), "{line}");
            }
        } else if writable {
            let ours = target == case.root.to_str().unwrap() && line.contains("upperdir=");
            // Root's own; a test below tries it.
            let system = ["/proc", "/sys/fs/cgroup"].contains(&target);
            assert!(
                ours || target.starts_with("/dev") || target.starts_with("/proc/") || system,
                "{line}"
            );
        }
    }
    assert_eq!(tmpfs, 3);
    assert!(
        ran.err.contains("/x: Read-only file system") || ran.err.contains("Permission denied"),
        "{}",
        ran.err
    );
    // At 0 the kernel would still start the program that `core_pattern` may name.
    assert!(ran.out.contains("Max core file size        1 "), "{}", ran.out);
}
attack!(5, "kernel", the_kernel_confirms_how_a_command_was_launched);

/// Whether a mount is an overlay without set-user-id bits and devices. One without a stage is
/// read-only, which the kernel confirms above.
fn is_overlay(mount: &Value) -> bool {
    let driver = &mount["VolumeOptions"]["DriverConfig"]["Options"];
    let options: Vec<&str> = driver["o"].as_str().unwrap_or_default().split(',').collect();
    driver["type"] == "overlay"
        && options[0].starts_with("lowerdir=/proc/")
        && ["nosuid", "nodev", "userxattr"].iter().all(|option| options.contains(option))
}

/// A call that waits, and what the daemon tells about its container.
fn inspected(seat: &Seat, args: &[&str]) -> Value {
    let mut child = seat
        .home
        .runner()
        .arg("exec")
        .args(args)
        .args(["--", "cat"])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    // It runs when it answers, and waits for more.
    child.stdin.as_mut().unwrap().write_all(b"up\n").unwrap();
    let mut first = [0; 3];
    child.stdout.as_mut().unwrap().read_exact(&mut first).unwrap();
    let calls = seat.home.run(["ps", "--json"]).json();
    let call = calls["calls"][0]["call"].as_str().unwrap().to_owned();
    let id = docker(&["ps", "-aq", "--no-trunc", "--filter", &format!("label=runner.call={call}")]);
    let told: Value = serde_json::from_str(&docker(&["inspect", &id])).unwrap();
    assert_eq!(seat.home.run(["cancel", &call]).code, Some(0));
    child.wait().unwrap();
    told[0].clone()
}

/// Everything that must be true of any container of ours.
fn confirm(told: &Value, on: On) {
    let host = &told["HostConfig"];
    for (key, value) in [
        ("NetworkMode", "none"),
        ("IpcMode", "none"),
        ("PidMode", ""),
        ("UTSMode", ""),
        ("UsernsMode", ""),
        ("CgroupnsMode", "private"),
    ] {
        assert_eq!(host[key], value, "{key}");
    }
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]));
    for key in [
        "CapAdd",
        "Binds",
        "Devices",
        "DeviceRequests",
        "Links",
        "VolumesFrom",
        "GroupAdd",
        "PortBindings",
    ] {
        let empty = host[key].is_null()
            || host[key].as_array().is_some_and(Vec::is_empty)
            || host[key].as_object().is_some_and(serde_json::Map::is_empty);
        assert!(empty, "{key}: {}", host[key]);
    }
    assert_eq!(host["LogConfig"]["Type"], "none");
    assert_eq!((&host["AutoRemove"], &host["PublishAllPorts"]), (&true.into(), &false.into()));
    assert_eq!(host["OomKillDisable"], false);
    assert!(host["Memory"].as_i64().unwrap() > 0);
    assert_eq!(host["Memory"], host["MemorySwap"]);
    assert!(host["PidsLimit"].as_i64().unwrap() > 0);
    assert!(host["NanoCpus"].as_i64().unwrap() > 0);
    let options: Vec<&str> =
        host["SecurityOpt"].as_array().unwrap().iter().map(|o| o.as_str().unwrap()).collect();
    assert_eq!(options.len(), 2);
    assert!(options.contains(&"no-new-privileges"));
    assert!(options.iter().any(|option| option.strip_prefix("seccomp=") == Some(PROFILE)));
    assert!(host["MaskedPaths"].as_array().unwrap().iter().any(|path| path == "/proc/kcore"));
    assert!(host["ReadonlyPaths"].as_array().unwrap().iter().any(|path| path == "/proc/sys"));
    let limits: Vec<&str> =
        host["Ulimits"].as_array().unwrap().iter().map(|l| l["Name"].as_str().unwrap()).collect();
    assert_eq!(limits, ["core", "cpu", "fsize", "nofile"]);
    let scratch = host["Tmpfs"].as_object().unwrap();
    assert!(scratch.len() >= 2, "{scratch:?}");
    for (target, options) in scratch {
        let options: Vec<&str> = options.as_str().unwrap().split(',').collect();
        for option in ["nosuid", "nodev"] {
            assert!(options.contains(&option), "{target}: {options:?}");
        }
        for start in ["size=", "nr_inodes=", "uid=", "gid="] {
            assert!(
                options.iter().any(|option| option.starts_with(start)),
                "{target}: {options:?}"
            );
        }
    }
    for mount in host["Mounts"].as_array().unwrap() {
        assert_ne!(mount["Source"], "/", "{mount}");
        let bind = mount["Type"] == "bind" && mount["BindOptions"]["Propagation"] == "private";
        let volume = mount["Type"] == "volume" && mount["ReadOnly"] == true;
        assert!(bind && mount["ReadOnly"] == true || volume || is_overlay(mount), "{mount}");
    }
    assert_eq!(host["Runtime"], on.name().unwrap_or("runc"));
    let config = &told["Config"];
    let user = config["User"].as_str().unwrap();
    assert!(!user.is_empty() && !user.starts_with("0:") && user != "0" && user != "root", "{user}");
    assert_eq!(
        (&config["OpenStdin"], &config["StdinOnce"], &config["Tty"]),
        (&true.into(), &true.into(), &false.into())
    );
    assert_eq!(config["Healthcheck"]["Test"], serde_json::json!(["NONE"]));
    let text = told.to_string();
    assert!(!text.contains("docker.sock") && !text.contains("containerd.sock"));
}

/// Calls of every kind that the command line can start.
fn the_daemon_confirms_how_every_kind_of_call_was_made(on: On) {
    let seat = Seat::new(on, &[("a", "one\n"), (".env", "two\n")]);
    let writes = "files: { write: [\"out/**\"] }\ncommands: [{ id: cat, allow: \"cat ...\", effects: [read, write, code] }]\n";
    seat.policy("writes", &format!("extends: [readonly]\n{writes}"), "");
    seat.policy("loose", "extends: [readonly]\n", "  isolation: basic\n");
    let image = small_image();
    for args in [
        &["--policy", "look"][..],
        &["--policy", "writes"],
        &["--policy", "loose"],
        &["--policy", "all"],
        &["--policy", "all", "--memory", "64MiB", "--limit", "pids=16"],
        &["--policy", "look", "--image", &image],
    ] {
        confirm(&inspected(&seat, args), on);
    }
    if on == On::Gvisor {
        seat.policy("closed", "extends: [readonly]\n", "  isolation: paranoid\n");
        confirm(&inspected(&seat, &["--policy", "closed"]), on);
    }
}
attack!(5, "daemon", the_daemon_confirms_how_every_kind_of_call_was_made);
