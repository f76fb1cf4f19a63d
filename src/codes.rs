//! Every code that a result, an error or a refusal can carry, in one list.
//!
//! Duty: what each word means, whether the same call can succeed later without a change, and the next step. The
//! parts that raise them have the sentences for the case at hand; this is what a program or a person looks
//! up. A test finds every code in the source and holds this list complete; another holds the README equal to
//! it. Findings in files have codes of their own, in a list of their own: [`FINDINGS`].
//!
//! Tools throw errors with codes of their own. The words that authors commonly use are in the last group, in
//! our spelling: [`find`] reads `RATE_LIMIT_EXCEEDED` as `rate_limit_exceeded`.

mod findings;

pub use findings::FINDINGS;

/// Where a code comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Group {
    /// A policy's decision.
    Decision,
    /// A request of a tool, answered by the broker.
    Request,
    /// A tool, before or while it runs.
    Tool,
    /// A call that ran, or could not.
    Call,
    /// Policies, trust, and the command line.
    Setting,
    /// The engine and the sandbox.
    Engine,
    /// What tools themselves say.
    Thrown,
}

/// Whether the same call can succeed later without a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Recoverable {
    /// The cause may pass by itself.
    Yes,
    /// Something has to change first.
    No,
}

/// One code.
#[derive(Debug, Clone, Copy)]
pub struct Row {
    /// The stable word.
    pub code: &'static str,
    /// Where it comes from.
    pub group: Group,
    /// What it means.
    pub about: &'static str,
    /// Whether trying again can help.
    pub recoverable: Recoverable,
    /// The next step.
    pub suggestion: &'static str,
}

impl Group {
    /// Every group with its words for people.
    pub const ALL: [(Self, &'static str); 7] = [
        (Self::Decision, "a policy's decision"),
        (Self::Request, "a tool's request"),
        (Self::Tool, "a tool"),
        (Self::Call, "a call"),
        (Self::Setting, "policies, trust, usage"),
        (Self::Engine, "engine and sandbox"),
        (Self::Thrown, "thrown by tools"),
    ];

    /// Its words for people.
    #[must_use]
    pub fn words(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// The row of a code, in our spelling or in capitals as others write it.
#[must_use]
pub fn find(code: &str) -> Option<&'static Row> {
    let code = code.to_ascii_lowercase();
    let known = |word: &str| TABLE.iter().find(|row| row.code == word);
    known(&code).or_else(|| {
        let ours = ALIASES.iter().find(|(other, _)| *other == code).map(|(_, ours)| *ours);
        ours.and_then(known)
    })
}

/// Words of other systems, and ours for the same.
pub const ALIASES: &[(&str, &str)] = &[
    ("validation_error", "invalid_arguments"),
    ("invalid_parameters", "invalid_arguments"),
    ("missing_required_param", "invalid_arguments"),
    ("permission_denied", "access_denied"),
    ("insufficient_privileges", "access_denied"),
    ("security_violation", "access_denied"),
    ("user_cancelled", "cancelled"),
    ("user_rejected", "approval_needed"),
    ("confirmation_timeout", "approval_needed"),
    ("resource_not_found", "not_found"),
    ("resource_locked", "busy"),
    ("lock", "busy"),
    ("resource_conflict", "already_exists"),
    ("file_exists", "already_exists"),
    ("write_failed", "io_error"),
    ("rate_limit", "rate_limit_exceeded"),
    ("api_error", "external_service_error"),
    ("server_error", "external_service_error"),
    ("network_error", "net_connect"),
    ("network", "net_connect"),
    ("connection_error", "net_connect"),
    ("tool_initialization_failed", "load_failed"),
    ("tool_execution_failed", "tool_failed"),
    ("execution_failed", "tool_failed"),
    ("unexpected_error", "tool_failed"),
];

macro_rules! table {
    ($($group:ident { $($code:literal $recoverable:ident $about:literal $suggestion:literal)* })*) => {
        /// Every code, group by group.
        #[rustfmt::skip]
        pub const TABLE: &[Row] = &[$($(
            Row { code: $code, group: Group::$group, about: $about, recoverable: Recoverable::$recoverable, suggestion: $suggestion },
        )*)*];
    };
}

table! {
    Decision {
        "allowed" No "A rule allows it." "Nothing to do."
        "ask" No "A rule allows it if someone approves." "Answer at a terminal, or `runner approve ID` and then `--approve ID`."
        "denied_by_rule" No "A rule denies it." "Read the rule's reason; ask the policy's owner."
        "no_rule" No "No rule is about it; what nothing allows is denied." "Use a form listed under `instead`, or a policy listed under `allowed by`."
        "effect_not_granted" No "It does more than the rule about it grants." "Leave out the option that is marked `too much`."
        "unknown_program" No "The catalog does not know the program and no rule names it." "Name it in a rule of the policy."
        "unknown_argument" No "An option, operand or subcommand is not in the catalog." "Use a documented spelling, or name the command in a rule."
        "program_path" No "A program was named by a path; rules and catalog know bare names." "Write the bare name."
        "shell_unreadable" No "The line has a construct that only a shell can execute." "Write single commands, or use a policy that grants `code`."
        "path_denied" No "The path is in `files.deny`." "Leave the path out."
        "path_outside" No "The path is neither in the workspace nor in a readable folder of the image." "Use a path in the workspace."
        "path_not_readable" No "The path is not in `files.read`." "Read what the policy or the tool lists."
        "path_not_writable" No "The path is not in `files.write`." "Write where the policy and the tool both let."
        "path_readonly" No "The path is in `files.readonly`." "Leave it as it is."
        "key_material" No "The path is key material and never readable, whatever a policy says." "Leave it out; keys are not for commands."
        "env_denied" No "The variable is not in `env.accept`." "Leave it out, or list it in policy and tool."
        "rule_expired" No "The rule that allowed it has ended." "Ask the policy's owner for a new date."
        "args_not_met" No "A rule is about it, but its conditions on arguments are not proved." "Write the arguments out as the rule wants them."
        "empty_command" No "There is no command." "Name one."
        "bad_argument" No "An argument cannot be passed to any program." "Remove the NUL byte."
        "too_deep" No "Commands in commands are nested too deep to be judged." "Nest less."
    }
    Request {
        "access_denied" No "The policy, or the tool's own permissions, do not allow it." "Leave it out, or use a policy, and permissions of the tool, that allow it."
        "approval_needed" No "The policy, the tool or its tier wants somebody's approval first." "Answer at a terminal, or `runner approve ID` and then `--approve ID`."
        "approval_denied" No "A person said never to this call." "Whoever said so can take it back: `runner approve ID`."
        "approval_failed" No "It needs an approval, and the question could not be put." "Look whether our state can be written, then call it again."
        "path_escape" No "The path leads out of the workspace, or its content may belong elsewhere." "Use a path that stays inside, and no link out."
        "protected_path" No "The path is never writable, whatever a policy says." "Leave it to people."
        "special_file" No "The path is a device, pipe, socket or something of the kernel's." "Use a regular file."
        "not_found" No "Nothing is there." "Check the path, or create it first."
        "already_exists" No "Something is there already." "Choose another name, or remove it first."
        "not_a_directory" No "A folder is needed and something else is there." "Check the path."
        "is_a_directory" No "A file is needed and a folder is there." "Check the path."
        "not_empty" No "The folder is not empty." "Remove it with `recursive`."
        "too_large" No "It is larger than may be judged, moved or written." "Work in smaller pieces."
        "limit_reached" No "The call has used up what it may use." "Ask for less, or raise the limit in the policy."
        "busy" Yes "Too much is going on at once." "Try again later."
        "invalid_argument" No "The request cannot be meant like this." "Read what the message says of its form."
        "no_space" No "There is no room left on the disk, or too little to go on." "Free some."
        "io_error" No "The operating system failed." "Read the message; check disk and permissions."
        "timeout" Yes "It took longer than it may." "Raise what set the time (`limits.wall`, `timeout`, `maxExecutionTime` or `--timeout`), or do less."
        "cancelled" No "Somebody ended it, or the call is ending." "Nothing to do."
        "program_not_found" No "There is no such program in the sandbox." "Install it, put it on PATH, or name an image that has it."
        "engine_error" Yes "The sandbox of a command could not be made, or broke." "Try again; then look at the engine's log."
        "net_denied" No "No `net` rule allows the request." "List it under `net` of policy and tool."
        "net_address" No "The name leads to an address that must not be reached." "Name private hosts in the policy, with `private: true`."
        "net_dns" Yes "The name cannot be resolved." "Check the name; try again later."
        "net_connect" Yes "The peer cannot be reached." "Try again later."
        "net_tls" No "There is no trusted connection to the peer." "Check its certificate."
        "net_protocol" No "The peer does not speak HTTP as it should." "Check the address."
        "net_redirect" No "The answer leads elsewhere, and that is not allowed." "List the other address too, or ask it directly."
        "not_text" No "The file is not UTF-8." "Read it as bytes."
    }
    Tool {
        "tool_not_found" No "No source has a tool of this name." "`runner tool list` shows all."
        "tool_name_taken" No "Two sources have a tool of this name." "Rename or remove one of them."
        "tool_refused" No "The tool's definition has findings." "`runner tool check NAME` shows each at its place."
        "tool_disabled" No "It is switched off: by its author, by a configuration file, or as an example that nobody switched on." "`runner tool enable NAME`; or write `enabled: true` in it."
        "tool_enforced" No "The managed configuration decides whether it is on." "Ask whoever manages this machine."
        "tool_description" No "What a module says of itself cannot be used." "`runner tool check NAME` shows why."
        "tool_exists" No "A new tool would overwrite something." "Choose another name."
        "tool_folder_invalid" No "The folder for tools is a link, or no folder." "Make it a real folder, or name it with `--dir` or `--tools`."
        "tool_not_written" No "A new tool cannot be written there." "Name a folder that you can write with `--dir`."
        "tool_unreadable" No "The tool's file or folder cannot be read." "Make it a regular, readable file."
        "tool_source" No "The code has errors." "Each is shown at its line; mend them."
        "tool_digest_mismatch" No "The tool, or something it imports, is not what was approved or compiled." "Look at what changed, then run it again."
        "compiler_unconfined" No "The compiler could not be confined, so it read nothing." "Use a kernel with Landlock."
        "compiler_timeout" No "Compiling took too long." "Import less."
        "compiler_memory" No "Compiling took too much memory." "Import less."
        "compiler_depth" No "The source is nested too deeply to compile." "Split deep expressions."
        "compiler_crashed" No "The compiler broke." "Report it, with the tool."
        "compiler_process" Yes "The compiler could not be started or talked to." "Try again."
        "invalid_arguments" No "The arguments are not those that the schema describes." "Mend what the message names, or each listed pointer; `runner tool info NAME` shows the schema."
        "invalid_result" No "The result is not what `returns` describes." "Mend the code or the schema."
        "invalid_cost" No "The tool says that it cost what is no price; its estimate is booked." "Mend `metadata.cost` of its result: US dollars, 0 or more."
        "invalid_tool" No "The module or the code exports nothing that can run." "Export `execute`, or `tool` with its parts."
        "load_failed" No "The code failed while it was loaded." "Read the stack: it is the author's source."
        "circuit_open" Yes "The tool failed too often and is not called for a while." "Wait as long as `retry_after_ms` says; `runner tool info NAME` shows how it stands."
        "no_match" No "What should be changed is not there." "Read the file, and copy what is there."
        "ambiguous_match" No "What should be changed is there more than once." "Add more of what stands around it, or say `first` or `all`."
        "bad_pattern" No "A regular expression cannot be used." "Read what the message says of its place."
        "bad_manifest" No "A manifest of a project cannot be read." "Mend it at the place that the message names."
        "command_failed" No "A command that the tool needs did not go well." "Read what it said in the message."
        "tool_error" No "The tool threw an error." "Read its message and `details`."
        "tool_failed" No "The tool threw an error without a code." "Read its message and stack."
        "uncaught_exception" No "The tool threw outside of `execute`." "Catch it where it happens."
        "unhandled_rejection" No "A promise was rejected and nobody waited for it." "Await every promise."
        "never_settled" No "Nothing was left to do and `execute` had not ended." "Resolve or reject its promise."
        "no_result" No "The process ended without a result." "Look for `process.exit`, or for a limit."
        "result_too_large" No "The result is larger than may be sent." "Return less, or write a file."
        "result_not_json" No "The result cannot be written as JSON." "Return plain values."
        "channel_closed" No "The talk with the host is over." "Do not ask after the end."
        "broker_limit" No "The tool went on asking beyond a limit." "Ask less, or raise the limit in the policy."
        "broker_ended" No "The host ended the talk with the tool." "Read the error beside it."
        "talk_broken" Yes "The stream between tool and host broke." "Try again."
        "job_too_large" No "Arguments and code are too large to be sent." "Pass large data in a file."
        "mcp_changed" No "The MCP server of the tool is not what was asked any more, so its tools are not used." "Look at what changed, then `runner mcp refresh SERVER`."
        "mcp_never_asked" No "The MCP server of the tool was never asked what it offers." "`runner mcp refresh SERVER`."
        "mcp_ended" No "An MCP server ended before it answered." "Look at what it wrote to standard error; try it under a policy that gives it what it needs."
        "mcp_protocol" No "An MCP server said something that the protocol does not allow, so nothing of it was believed." "Report it to whoever makes the server."
        "mcp_too_large" No "An MCP server said more than is taken: a line, a talk, or a list of tools." "Report it to whoever makes the server."
        "mcp_version" No "An MCP server speaks no version of the protocol that is spoken here." "Upgrade the server."
        "mcp_refused" No "An MCP server answered with an error." "Read its words in the message."
        "protocol_unknown_kind" No "The tool's end sent a frame of no known kind." "Do not touch descriptor 3."
        "protocol_too_long" No "The tool's end sent a frame that is too long." "Do not touch descriptor 3."
        "protocol_not_empty" No "The tool's end sent a frame with a payload that has none." "Do not touch descriptor 3."
        "protocol_cut_frame" No "The stream ended inside a frame." "Do not touch descriptor 3."
        "protocol_bad_id" No "The tool's end sent a frame with an impossible id." "Do not touch descriptor 3."
        "protocol_bad_json" No "The tool's end sent JSON that is none, or repeats a key." "Do not touch descriptor 3."
        "protocol_unknown_method" No "The tool's end asked for a method that nobody knows." "Do not touch descriptor 3."
        "protocol_bad_params" No "The tool's end asked with wrong parameters." "Do not touch descriptor 3."
        "protocol_unwanted_body" No "The tool's end sent a body where there is none." "Do not touch descriptor 3."
        "protocol_over_credit" No "The tool's end sent more than it was granted." "Do not touch descriptor 3."
        "protocol_after_result" No "The tool's end went on after its result." "Do not touch descriptor 3."
    }
    Call {
        "signalled" No "The command was ended by a signal that was not ours." "Read its output."
        "oom" No "It wanted more memory than it had." "Raise `limits.memory`, or use less."
        "limit" No "A limit other than time or memory ended it." "The message names the limit; raise it, or use less."
        "total_time_exceeded" No "With its waiting and its retries the call took longer than it may." "Raise `limits.totalTime` of the configuration, or retry less."
        "output_closed" No "Nobody read the output any more." "Keep the pipe open."
        "not_executable" No "The program cannot be executed." "Check its mode and format."
        "no_cwd" No "The working folder cannot be entered." "Use a folder that may be read."
        "path_not_text" No "The workspace's path is not UTF-8." "Run it in a folder whose path is UTF-8."
        "workspace_missing" No "There is no such folder." "Name one with `--workdir`."
        "workspace_not_a_folder" No "It is no folder." "Name one with `--workdir`."
        "workspace_deleted" No "The folder that the caller stands in is gone." "Change to one that exists."
        "workspace_is_home" No "A home folder is no workspace." "Change to a project, or name one with `--workdir`."
        "workspace_is_system" No "A folder of the system is no workspace." "Change to a project, or name one with `--workdir`."
        "workspace_is_ours" No "The workspace holds runner's own files, or lies among them." "Change to a project, or move our folder (the message names the variable)."
        "workspace_outside" No "The folder is not in its workspace." "Name one inside."
        "workspace_through_link" No "The way to the folder leads through a link." "Name its real path."
        "workspace_unreadable" No "The folder cannot be read." "Check its permissions."
        "store_no_folder" No "There is no folder for records." "Set HOME or XDG_STATE_HOME."
        "store_folder" No "The folder for records is not safe to use." "Make it your own, with mode 700."
        "store_newer" No "The records are of a newer version." "Upgrade this program."
        "store_database" Yes "The records cannot be read or written." "Check disk and permissions; try again."
        "ledger_seal" No "The key or the head that seals the ledger cannot be used." "Put it back from a copy, or begin a new ledger in another state folder."
        "ledger_tampered" No "The ledger is not what was recorded." "Read what `audit verify` names first; keep a copy of the state folder."
        "bench_command" No "A command that `runner bench` measures did not go well." "Run it by hand to see more."
        "undo_nothing" No "The call changed nothing through the broker, or what it changed is not kept any more." "`runner undo --list` shows what can be undone."
        "undo_conflict" No "Not everything is as the call left it, or was kept; nothing was restored." "Restore by hand what you want; the message names each path."
        "undo_workspace" No "The workspace of that call cannot be used any more." "Put the folder back where it was."
        "undo_failed" No "A step of an undo failed after others were done." "Undo the undo, by its own id."
        "local_error" No "The operating system refused something that a call needs." "Read the message."
    }
    Setting {
        "usage" No "The command line is wrong." "`--help` shows the right form."
        "approval_unknown" No "There is no question with this id." "`runner approvals` lists those that wait."
        "approval_over" No "The question was answered, used up, or waited too long." "Call it again without `--approve`: it asks anew."
        "approval_differs" No "The approval is about another call." "Call it as it was asked about, or without `--approve`."
        "approval_not_whole" No "Parts of the question are not shown, so it cannot be answered by its id." "Answer at the terminal of the call itself."
        "approval_needs_terminal" No "Only a person at a terminal can answer, with `--yes` too." "Do it at a terminal, or call it without `--yes` and let a person `runner approve ID`."
        "approval_declined" No "The question was not answered with yes." "Type y to approve."
        "policy_refused" No "The policies have findings, so none was loaded." "`runner policy check` shows each at its place."
        "policy_unknown" No "There is no policy of this name." "`runner policy list` shows all."
        "config_refused" No "The configuration has findings, so nothing runs." "`runner config check` shows each at its place."
        "config_not_written" No "The configuration file could not be written." "Check the folder, or write the line by hand."
        "policy_untrusted" No "A project's policy is not pinned in its present form." "Read it, then `runner policy trust NAME`."
        "trust_needs_terminal" No "Only a person at a terminal can trust a policy." "Do it at a terminal."
        "trust_declined" No "The policy was not pinned." "Type its name to pin it."
        "trust_not_needed" No "Only a project's policy is pinned." "Use it as it is."
        "trust_damaged" No "The list of pins is damaged." "Remove it and trust again."
        "trust_unavailable" No "The list of pins cannot be used." "Check the folder of our state."
        "trust_unsafe" No "Others can change the list of pins." "Make its folder your own, with mode 700."
        "output_failed" No "Our own output could not be written." "Check where standard output goes."
        "hardening_failed" No "The process could not be made safe to run in." "Read the message."
        "privileged_executable" No "The program has setuid or file capabilities." "Remove them."
        "bug" No "This program broke." "Report it, with the message."
    }
    Engine {
        "engine_missing" No "No engine answers." "Start Docker, or set DOCKER_HOST."
        "engine_not_permitted" No "This user may not use the engine." "Join its group, or use a rootless one."
        "engine_bad_endpoint" No "DOCKER_HOST is of a form that is not spoken." "Use `unix://` or `tcp://`."
        "engine_too_old" No "The engine is too old." "Upgrade it."
        "engine_not_linux" No "The engine does not run Linux containers." "Switch it."
        "engine_out_of_disk" No "The engine's disk is full." "Free some."
        "engine_elsewhere" No "The engine runs on another file system, and `image: host` needs this one." "Name an image."
        "engine_not_allowed" No "The policy does not let any engine that is here run it." "Choose another policy."
        "engine_refused" No "The engine refused." "Read its words in the message."
        "engine_lost" Yes "The connection to the engine was lost." "Try again; look at its log."
        "engine_slow" Yes "The engine did not answer in time." "Try again; look at its log."
        "image_missing" No "The image is not there." "Pull or build it."
        "runtime_missing" No "The engine does not have the runtime." "Install it, or choose another."
        "unmountable_path" No "A path cannot be written in a mount." "Rename the folder."
        "mount_gone" Yes "Something that should be mounted is gone." "Try again when nothing else changes the workspace."
        "mount_identity" No "A mount does not lead where it was planned to." "Look who changes the workspace."
        "workspace_contended" Yes "A call that runs could move a folder away that a mount of this sandbox leads through." "Wait until it has ended, or end it."
        "mounts" No "The mounts cannot be planned." "Read the message."
        "write_pattern" No "No mount can express a write pattern of a rule that grants `code`." "Write `folder/**`."
        "uncoverable_file" No "A pipe or a device stands in the workspace, which this runtime cannot hide." "Remove the file that the message names, or choose another runtime."
        "local_file" No "A file of ours cannot be written." "Check the folders of state and cache."
        "no_user" No "There is no user that the sandbox could run as." "Read the message."
        "bad_variable" No "A variable cannot be passed." "Read the message."
        "too_little_protection" No "A protection that the policy demands cannot be given here." "Use another runtime, or a lower isolation."
        "sandbox_weaker" No "The sandbox is weaker than it was planned." "Look at the engine's settings."
        "job_too_long" No "A command with its variables is longer than what can be sent to a sandbox." "Pass what is long on standard input, or in a file."
        "guest_failed" No "Our program in the sandbox failed." "Read the message."
        "guest_lost" Yes "The sandbox ended without a word." "Try again; look at the engine's log."
        "guest_silent" Yes "The sandbox did not answer." "Try again."
        "protocol_error" No "What came from the sandbox was not what our program sends." "Nothing of it was believed; look at what ran."
    }
    Thrown {
        "authentication_required" No "The service wants credentials." "Add them in the policy: `secrets` and `send`."
        "invalid_credentials" No "The service does not take the credentials." "Renew them."
        "authentication_expired" No "The credentials have ended." "Renew them."
        "rate_limit_exceeded" Yes "The service was asked too often." "Wait, then try again."
        "quota_exceeded" No "What the service grants is used up." "Wait for the next period, or ask for more."
        "cost_limit_exceeded" No "It would cost more than it may." "Ask for less, or raise the limit."
        "external_service_error" Yes "The service failed." "Try again later."
        "precondition_failed" No "Something that the tool needs is not so." "Read its message."
        "max_retries_exceeded" No "It failed again and again." "Read the last error."
    }
}

#[cfg(test)]
#[path = "codes_tests.rs"]
mod tests;
