//! How every container is launched, as the container sees it and as the daemon tells it.

use super::harness::{READ, Rules, case};

/// What the kernel says about the command itself.
#[test]
fn the_kernel_confirms_how_a_command_was_launched() {
    let case = case(&["a"]);
    let script = "grep -E '^(Cap|NoNewPrivs|Seccomp:|Uid|Groups)' /proc/self/status; \
        ls /dev | sort | tr '\\n' ' '; echo; ls /sys/class/net; cat /proc/1/comm; ps -e 2>/dev/null | wc -l; \
        cat /proc/self/mountinfo; echo x > /x; echo x > /usr/x; echo x > /sys/fs/cgroup/x && echo WROTE; ls /run /var/run 2>/dev/null; \
        grep -E 'open files|core|file size' /proc/self/limits; hostname";
    let ran = case.sh(Rules { write: &["t/**"], ..READ }, script);
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
        let writable = options.split(',').any(|option| option == "rw");
        if ["/tmp", "/home/runner"].contains(&target) {
            tmpfs += 1;
            let of_fs = fields.last().unwrap();
            for option in ["nosuid", "nodev"] {
                assert!(options.contains(option), "{line}");
            }
            for option in ["size=", "nr_inodes=", &format!("uid={uid}")] {
                assert!(of_fs.contains(option), "{line}");
            }
        } else if writable {
            let ours = target == case.root.join("t").to_str().unwrap();
            // Root's own; a test below tries it.
            let system = ["/proc", "/sys/fs/cgroup"].contains(&target);
            assert!(
                ours || target.starts_with("/dev") || target.starts_with("/proc/") || system,
                "{line}"
            );
        }
    }
    assert_eq!(tmpfs, 2);
    assert!(
        ran.err.contains("/x: Read-only file system") || ran.err.contains("Permission denied"),
        "{}",
        ran.err
    );
    assert!(ran.out.contains("Max core file size        0 "), "{}", ran.out);
}

/// What the daemon tells about a container that was made from a plan.
#[test]
fn the_daemon_confirms_how_a_container_was_made() {
    use runner::engine::docker::settings::SECCOMP;
    use runner::engine::{CallId, Docker, Engine, Labels, Owner, now};
    use runner::sandbox::plan::Image;

    let case = case(&["a", ".env"]);
    let plan = case.plan(Rules { write: &["t/**"], deny: &["**/.env"], ..READ }).unwrap();
    let told = crate::engine::block_on(async {
        let engine = Docker::connect().await.unwrap();
        let prepared = engine.prepare(&Image::Host).await.unwrap();
        let labels = Labels {
            call: CallId::fresh().unwrap(),
            owner: Owner::this().unwrap(),
            deadline: now() + std::time::Duration::from_secs(60),
        };
        let id = engine.create(&plan, &prepared, &labels).await.unwrap();
        let out = std::process::Command::new("curl")
            .args(["-s", "--unix-socket", engine.endpoint().trim_start_matches("unix://")])
            .arg(format!("http://d/containers/{}/json", id.as_str()))
            .output()
            .unwrap();
        engine.remove(&id).await.unwrap();
        serde_json::from_slice::<serde_json::Value>(&out.stdout).unwrap()
    });
    let host = &told["HostConfig"];
    assert_eq!(host["NetworkMode"], "none");
    assert_eq!(host["IpcMode"], "none");
    assert_eq!(host["PidMode"], "");
    assert_eq!(host["UTSMode"], "");
    assert_eq!(host["UsernsMode"], "");
    assert_eq!(host["CgroupnsMode"], "private");
    assert_eq!(host["Privileged"], false);
    assert_eq!(host["ReadonlyRootfs"], true);
    assert_eq!(host["CapDrop"], serde_json::json!(["ALL"]));
    assert!(host["CapAdd"].is_null());
    assert!(host["Binds"].is_null());
    assert_eq!(host["Devices"].as_array().map_or(0, Vec::len), 0);
    assert_eq!(host["LogConfig"]["Type"], "none");
    assert_eq!(host["AutoRemove"], true);
    assert!(host["Memory"].as_i64().unwrap() > 0);
    assert_eq!(host["Memory"], host["MemorySwap"]);
    assert!(host["PidsLimit"].as_i64().unwrap() > 0);
    assert!(host["NanoCpus"].as_i64().unwrap() > 0);
    let options: Vec<&str> =
        host["SecurityOpt"].as_array().unwrap().iter().map(|o| o.as_str().unwrap()).collect();
    assert!(options.contains(&"no-new-privileges"));
    assert!(options.iter().any(|option| option.strip_prefix("seccomp=") == Some(SECCOMP)));
    assert!(host["MaskedPaths"].as_array().unwrap().iter().any(|path| path == "/proc/kcore"));
    assert!(host["ReadonlyPaths"].as_array().unwrap().iter().any(|path| path == "/proc/sys"));
    let limits: Vec<&str> =
        host["Ulimits"].as_array().unwrap().iter().map(|l| l["Name"].as_str().unwrap()).collect();
    assert_eq!(limits, ["core", "cpu", "fsize", "nofile"]);
    let config = &told["Config"];
    assert_ne!(config["User"], "0:0");
    assert_eq!(
        (&config["OpenStdin"], &config["StdinOnce"], &config["Tty"]),
        (&true.into(), &true.into(), &false.into())
    );
    assert!(!told.to_string().contains("docker.sock"));
}
