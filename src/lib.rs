//! `runner`: run commands and tools that nobody trusts. The written map.
//!
//! A call is decided by a policy, runs in a fresh sandbox, and is told apart by its status.
//!
//! ```text
//!  argv, line                                       records
//!      |                                               ^
//!     cli -----> call ---- decide ----> policy         |
//!      ^          |  \                                 |
//!      |          |   +--- start, end ----------> audit, store
//!   printer       v
//!             sandbox ---- plan: mounts, covers, limits, user, environment
//!                 |
//!              engine ---- container: no network, no capabilities, read-only root
//!                 |                     |
//!                 +------- wire ------ guest ---- the command
//! ```
//!
//! # Parts, in the order in which a call meets them
//!
//! - [`cli`]: reads the command line, prints. One short file a subcommand.
//! - [`agent`]: coding agents: their hooks, the command that these rewrite a shell call to, and the set-up of both.
//! - [`policy_files`]: finds and opens policy files, knows which are trusted.
//! - [`config`]: what applies to every call: three files, settled to one value a key.
//! - [`call`]: the life of a call, phase by phase: decide, plan, record, run, record. Its `launch` claims or makes the
//!   sandbox, runs it and lets it go; `undo` is a call that takes another back; `running` and `gc` are about calls
//!   that run and what is left of those that do not.
//! - [`approvals`]: questions that wait for a person, and answers that hold; the ledger records them.
//! - [`queue`]: a place among the calls that run at once, or a wait for it.
//! - [`runner_policy`] (`src/policy`, a crate without I/O): reads policies and commands, decides.
//! - `runner_glob` (`src/glob`): what patterns of names and paths cover, and what braces stand for; the guest has it
//!   too.
//! - [`workspace`]: the caller's tree: found, walked, surveyed; protected names, git folders, links; files that get
//!   their name when they are complete.
//! - [`sandbox`]: from decision to container: mounts, covers, limits, user; its streams, and how it ended.
//! - [`stage`]: what a writing call changed: walked, judged, applied, held back.
//! - [`engine`]: what makes sandboxes: one trait, and an implementation a folder (`docker`, `embedded`). No other part names one.
//! - [`pool`]: sandboxes that wait: claimed by a call, made anew behind its back.
//! - `runner_wire` (`src/wire`) and the guest (`src/guest`): the protocol over the container's own
//!   streams, and the only program that we start in it.
//! - `runner_filter` (`src/filter`): the system call profile as a program for the kernel; the build script compiles it.
//! - [`broker`]: the host end of a tool's talk: files, commands and net, each judged before it is answered; and the other
//!   end, for the tools that are part of this program.
//! - [`audit`], [`store`]: every call and decision, in one SQLite database.
//! - [`registries`]: where this machine's package managers install from, and what their clients in a sandbox are told.
//! - [`undo`]: keeps what tools and commands change, and puts it back.
//! - [`tool`]: tools: where they are found, what they take, give and ask for. The TypeScript of custom ones becomes one
//!   module in a confined child process; built-in ones are functions of this program that talk to the same broker.
//! - [`mcp`]: the server through which any client of the Model Context Protocol makes calls: a front beside [`cli`].
//! - [`mcp_client`]: tools of others: what a server offers and answers, over the standard streams of its sandbox.
//! - [`bench`]: what a call costs on this machine, beside others.
//! - [`doctor`]: proves by trying that each protection holds on this machine.
//! - [`exit`], [`error`], [`codes`]: how a run ends; one table of exit codes, one top error, one list of codes.
//! - [`git_index`]: git's index: read strictly; covered entries hidden in a copy, and revealed in what comes back.
//! - [`json`]: strict JSON: bounded, and no key twice.
//! - [`caller`]: on whose behalf a call runs, and which calls are one session.
//! - [`environment`]: the variables of the caller, which the front reads once and passes on.
//! - [`ids`]: ids and names that every part uses: of calls, tools, processes and files.
//! - [`latency`]: what makes a call start sooner, with the measured gain of each measure.
//! - [`text`]: which characters deceive, and how they are carried harmlessly.
//! - [`sys`]: the only unsafe code and raw system calls.
//!
//! # Every file and socket we touch
//!
//! | what | why |
//! | --- | --- |
//! | `/etc/passwd` | the home of the account, for hooks of agents, which read no variable |
//! | `/etc/runner/agents`, `~/.local/state/runner/agents` of the account | what is pinned for coding agents, the key of their tickets, and what their sessions remember |
//! | the configuration of a coding agent | edited by `agent install` and `agent uninstall` |
//! | `/proc/self/fd` | read once, at the start, where the kernel cannot mark descriptors at once |
//! | `/proc/self/fd/N/ID.socket` | a socket in the very folder that was checked |
//! | `/proc/self/fd/N` | where an object of the workspace is that a tool asks for, and opening it once it was judged |
//! | `/etc/runner/policies`, `$XDG_CONFIG_HOME/runner/policies`, `.runner/policies` | policies, read |
//! | `/etc/runner/config.yml`, `$XDG_CONFIG_HOME/runner/config.yml`, `.runner/config.yml` | the configuration, read; `tool enable` and `tool disable` write it |
//! | `$XDG_STATE_HOME/runner/store.db` | the ledger of calls, approvals, and what modules and MCP servers said of themselves |
//! | `$XDG_STATE_HOME/runner/ledger.key`, `ledger.head` | the key that signs the ledger, and its signed head |
//! | `$XDG_STATE_HOME/runner/backups/` | contents that tools and commands changed, for `undo` |
//! | `$XDG_STATE_HOME/runner/trust.json`, `trust.lock` | digests of trusted project policies, and the lock under which they are added |
//! | `$XDG_STATE_HOME/runner/mcp-tokens.json`, `mcp-tokens.lock` | digests of the tokens of MCP clients, and the lock under which they change |
//! | the address of `mcp serve --http`, the socket of `--socket` | where clients of the MCP server come in |
//! | configuration files of clients | `mcp install` adds an entry |
//! | `$XDG_STATE_HOME/runner/queue/` | locks: which calls run, which wait |
//! | `$XDG_STATE_HOME/runner/checked/` | which policies passed their own tests |
//! | `$XDG_CONFIG_HOME/runner/tools`, `.runner/tools`, the team's folder, the folders of `--tools` | tools, read; `tool new` writes there |
//! | `$XDG_STATE_HOME/runner/tools/` | the tools that we ship, laid out to be compiled |
//! | `$XDG_STATE_HOME/runner/compiled/` | compiled tools, by content |
//! | `$XDG_STATE_HOME/runner/tokens-o200k` | what tools cost in a context, counted, by content |
//! | the folder of a tool | its source, what it imports and its `node_modules`, read |
//! | the program of a configured MCP server, and files that its words name | read, to know whether it is still what was asked |
//! | `$XDG_STATE_HOME/runner/pool/` | which sandboxes wait, and room for more |
//! | `$XDG_RUNTIME_DIR/runner/`, else `$XDG_STATE_HOME/runner/waiting/` | `ID.socket` and `ID.holder` of each sandbox that the embedded engine has waiting |
//! | `$XDG_STATE_HOME/runner/materials/` | synthetic files that sandboxes mount, and covers over credentials of toolchains |
//! | `$XDG_STATE_HOME/runner/covers/` | layers of covers, by content |
//! | `$XDG_STATE_HOME/runner/tracked/` | copies of git indexes in which covered files are not looked at |
//! | `$XDG_STATE_HOME/runner/certificates/` | copies of public certificates among denied files, and what was read |
//! | `$XDG_STATE_HOME/runner/stages/` | what running calls write, and changes that were held back |
//! | `$XDG_STATE_HOME/runner/turns/` | locks: which call judges and changes a folder of the host |
//! | `$XDG_STATE_HOME/runner/walks/` | what surveys of large workspaces remember of folders that did not change |
//! | `$RUSTUP_HOME/settings.toml` | the caller's default toolchain, read for calls that run no code |
//! | `/proc/self/exe` | which build of this program a memory is of |
//! | `/proc/self/mountinfo` | what the host has mounted below what a sandbox sees |
//! | `/proc/self/cgroup`, `/proc/PID/cgroup` of a launcher, `/sys/fs/cgroup` | which control groups limit a sandbox of the embedded engine |
//! | `$XDG_RUNTIME_DIR/systemd/private`, `/run/systemd/private` | the caller's manager of systemd, asked for a scope where the caller has no control group |
//! | `/proc/stat` | whether the machine is idle, for `bench` |
//! | `/proc/PID/status` of a call that `bench` makes | its peak memory |
//! | `$XDG_CACHE_HOME/runner/engine/` | what was learned about a running daemon |
//! | `$DOCKER_HOST`, `/var/run/docker.sock`, `$XDG_RUNTIME_DIR/docker.sock` | the engine's socket |
//! | `.runner-temp-…` in folders that a tool writes to | a new content for the moment of its naming |
//! | `/var/tmp/runner-bench-…` | where `runner bench` measures; gone afterwards |
//! | `/var/tmp/runner-doctor-…` | where `runner doctor` tries; gone afterwards |
//! | the workspace | surveyed; the lowest layer of an overlay; changes are applied after a call |
//! | `$HOME/.gitconfig`, `$XDG_CONFIG_HOME/git/config` | read, to know what they make git run |
//! | `.npmrc`, `.pip/pip.conf`, `.config/pip/pip.conf`, `.cargo/config.toml`, `.cargo/credentials.toml` in the home; `npmrc` and `pip.conf` of the system | read for calls whose rules name a `registry` |
//! | hosts and ports of a policy's `net` rules for commands | connections of commands, resolved and dialled by this process |
//! | peers of a policy's other `net` rules | requests of tools; no proxy is taken from the environment |
//! | the variables and files of a policy's `secrets` | read when a rule sends one |
//! | the system's certificates, `SSL_CERT_FILE`, `SSL_CERT_DIR` | read at the first https request |
//! | standard streams, the descriptor of `--status-fd` | input, output, the status line |

pub mod agent;
pub mod approvals;
pub mod audit;
pub(crate) mod bench;
pub mod broker;
pub mod call;
pub mod caller;
pub mod cli;
pub mod codes;
pub mod config;
pub mod doctor;
pub mod engine;
pub mod environment;
pub mod error;
pub mod exit;
pub(crate) mod git_index;
pub mod ids;
pub(crate) mod json;
pub mod latency;
pub mod mcp;
pub mod mcp_client;
pub mod policy_files;
pub mod pool;
pub(crate) mod queue;
pub mod registries;
pub mod sandbox;
pub mod stage;
pub(crate) mod store;
pub mod sys;
pub(crate) mod text;
pub mod tool;
pub(crate) mod undo;
pub mod workspace;
