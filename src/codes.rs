//! Every code that a result, an error or a refusal can carry, in one list.
//!
//! Duty: what each word means, whether the same call can succeed later without a change, and the next step. The
//! parts that raise them have the sentences for the case at hand; this is what a program or a person looks
//! up. The list makes the type [`Code`], so nothing can raise a code that is not in it. A test finds codes that
//! nothing raises, and `docs/reference` is generated from the list. Findings in files have codes of their own, in
//! a list of their own: [`FINDINGS`]. A policy's decision has codes of its own too, because the crate that decides
//! knows nothing of the host program; each is one of ours.
//!
//! Tools throw errors with codes of their own. The words that authors commonly use are in the last group, in
//! our spelling: [`find`] reads `RATE_LIMIT_EXCEEDED` as `rate_limit_exceeded`.

mod decisions;
mod findings;

use std::fmt;

use serde::{Deserialize, Deserializer, Serialize, Serializer, de};

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
    /// The code.
    pub code: Code,
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

impl Code {
    /// What is known of it.
    #[must_use]
    pub fn row(self) -> &'static Row {
        // The table and the enum are made from the same list, in the same order.
        &TABLE[self as usize]
    }

    /// The code with exactly this word.
    #[must_use]
    pub fn parse(word: &str) -> Option<Self> {
        TABLE.iter().map(|row| row.code).find(|code| code.as_str() == word)
    }

    /// Whether the same call can succeed later without a change.
    #[must_use]
    pub fn can_pass(self) -> bool {
        self.row().recoverable == Recoverable::Yes
    }
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for Code {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for Code {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let word = String::deserialize(deserializer)?;
        Self::parse(&word)
            .ok_or_else(|| de::Error::custom(format_args!("no code is called {word:?}")))
    }
}

/// Tests compare codes with their words; the program compares codes.
#[cfg(test)]
impl PartialEq<&str> for Code {
    fn eq(&self, word: &&str) -> bool {
        self.as_str() == *word
    }
}

/// The code of a word that somebody else wrote, in our spelling or in theirs.
#[must_use]
pub fn find(word: &str) -> Option<Code> {
    let word = word.to_ascii_lowercase();
    Code::parse(&word)
        .or_else(|| ALIASES.iter().find(|(other, _)| *other == word).map(|(_, ours)| *ours))
}

/// Words of other systems, and ours for the same.
pub const ALIASES: &[(&str, Code)] = &[
    ("validation_error", Code::InvalidArguments),
    ("invalid_parameters", Code::InvalidArguments),
    ("missing_required_param", Code::InvalidArguments),
    ("permission_denied", Code::AccessDenied),
    ("insufficient_privileges", Code::AccessDenied),
    ("security_violation", Code::AccessDenied),
    ("user_cancelled", Code::Cancelled),
    ("user_rejected", Code::ApprovalNeeded),
    ("confirmation_timeout", Code::ApprovalNeeded),
    ("resource_not_found", Code::NotFound),
    ("resource_locked", Code::Busy),
    ("lock", Code::Busy),
    ("resource_conflict", Code::AlreadyExists),
    ("file_exists", Code::AlreadyExists),
    ("write_failed", Code::IoError),
    ("rate_limit", Code::RateLimitExceeded),
    ("api_error", Code::ExternalServiceError),
    ("server_error", Code::ExternalServiceError),
    ("network_error", Code::NetConnect),
    ("network", Code::NetConnect),
    ("connection_error", Code::NetConnect),
    ("tool_initialization_failed", Code::LoadFailed),
    ("tool_execution_failed", Code::ToolFailed),
    ("execution_failed", Code::ToolFailed),
    ("unexpected_error", Code::ToolFailed),
];

macro_rules! table {
    ($($group:ident { $($name:ident $code:literal $recoverable:ident $about:literal $suggestion:literal)* })*) => {
        /// A code of ours: a stable word that programs compare. What a tool throws is text, never one of these.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $($(#[doc = $about] $name,)*)* }

        /// Every code, group by group, in the order of [`Code`].
        #[rustfmt::skip]
        pub const TABLE: &[Row] = &[$($(
            Row { code: Code::$name, group: Group::$group, about: $about, recoverable: Recoverable::$recoverable, suggestion: $suggestion },
        )*)*];

        impl Code {
            /// The stable word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $($(Self::$name => $code,)*)* }
            }
        }
    };
}

table! {
    Decision {
        Allowed "allowed" No "A rule allows it." "Nothing to do."
        Ask "ask" No "A rule allows it after an approval." "Answer at a terminal, or `runner approve ID` and then `--approve ID`."
        DeniedByRule "denied_by_rule" No "A rule denies it." "Read the rule's reason; ask the policy's owner."
        NoRule "no_rule" No "No rule matches, and the default is to deny." "Use a form listed under `instead`, or a policy listed under `allowed by`."
        EffectNotGranted "effect_not_granted" No "It does more than the matching rule grants." "Leave out the option that is marked `too much`."
        UnknownProgram "unknown_program" No "The program is not in the catalog, and no rule names it." "Name it in a rule of the policy."
        UnknownArgument "unknown_argument" No "An option, operand or subcommand is not in the catalog." "Use a documented spelling, or name the command in a rule."
        ProgramPath "program_path" No "The program was named by a path; rules and catalog match bare names." "Write the bare name."
        ShellUnreadable "shell_unreadable" No "The line has a construct that only a shell can execute." "Write single commands, or use a policy that grants `code`."
        PathDenied "path_denied" No "The path is in `files.deny`." "Leave the path out."
        PathOutside "path_outside" No "The path is neither in the workspace nor in a readable folder of the image." "Use a path in the workspace."
        PathNotReadable "path_not_readable" No "The path is not in `files.read`." "Read what the policy or the tool lists."
        PathNotWritable "path_not_writable" No "The path is not in `files.write`." "Write only where both the policy and the tool allow it."
        PathReadonly "path_readonly" No "The path is in `files.readonly`." "Leave it as it is."
        KeyMaterial "key_material" No "The path is key material and never readable, whatever a policy says." "Leave it out; no command may read keys."
        EnvDenied "env_denied" No "The variable is not in `env.accept`." "Leave it out, or list it in policy and tool."
        RuleExpired "rule_expired" No "The rule that allowed it has ended." "Ask the policy's owner for a new date."
        ArgsNotMet "args_not_met" No "A rule matches, but its conditions on arguments are not certainly met." "Write the arguments out as the rule wants them."
        EmptyCommand "empty_command" No "There is no command." "Give one."
        BadArgument "bad_argument" No "An argument cannot be passed to any program." "Remove the NUL byte."
        TooDeep "too_deep" No "Commands inside commands are nested too deeply to be judged." "Nest fewer commands."
    }
    Request {
        AccessDenied "access_denied" No "The policy, or the tool's own permissions, do not allow it." "Leave it out, or use a policy, and permissions of the tool, that allow it."
        ApprovalNeeded "approval_needed" No "The policy, the tool or its security tier requires an approval first." "Answer at a terminal, or `runner approve ID` and then `--approve ID`."
        ApprovalDenied "approval_denied" No "A person refused this call for good, with `--never`." "The same person can undo that with `runner approve ID`."
        ApprovalFailed "approval_failed" No "It needs an approval, and the question could not be recorded or shown." "Check that the state folder is writable, then try again."
        PathEscape "path_escape" No "The path leads out of the workspace, or the file may have a second name outside." "Use a path inside the workspace, and no link out of it."
        ProtectedPath "protected_path" No "The path is never writable, whatever a policy says." "Change it yourself, outside of runner."
        SpecialFile "special_file" No "The path is a device, a pipe, a socket or a file of procfs or sysfs." "Use a regular file."
        NotFound "not_found" No "The file or folder does not exist." "Check the path, or create it first."
        AlreadyExists "already_exists" No "The file or folder exists already." "Choose another name, or remove it first."
        NotADirectory "not_a_directory" No "A folder is needed, and the path is something else." "Check the path."
        IsADirectory "is_a_directory" No "A file is needed, and the path is a folder." "Check the path."
        NotEmpty "not_empty" No "The folder is not empty." "Remove it with `recursive`."
        TooLarge "too_large" No "It is larger than the limit for judging, moving or writing." "Work in smaller pieces."
        LimitReached "limit_reached" No "The call reached one of its limits." "Ask for less, or raise the limit in the policy."
        Busy "busy" Yes "Too many calls or requests run at once." "Try again later."
        InvalidArgument "invalid_argument" No "The request is malformed." "The message shows the right form."
        NoSpace "no_space" No "The disk is full, or almost." "Free some space."
        IoError "io_error" No "An operation of the operating system failed." "Read the message; check disk and permissions."
        Timeout "timeout" Yes "It reached its time limit." "Raise the limit that the message names (`limits.wall`, `timeout`, `maxExecutionTime` or `--timeout`), or do less."
        Cancelled "cancelled" No "It was cancelled, or its call is ending." "Nothing to do."
        ProgramNotFound "program_not_found" No "There is no such program in the sandbox." "Install it, put it on PATH, or name an image that has it."
        EngineError "engine_error" Yes "The sandbox of a command could not be made, or failed." "Try again; then look at the engine's log."
        NetDenied "net_denied" No "No `net` rule allows the request." "List it under `net` of policy and tool."
        NetAddress "net_address" No "The name resolves to an address that must not be reached." "Name private hosts in the policy, with `private: true`."
        NetDns "net_dns" Yes "The name cannot be resolved." "Check the name; try again later."
        NetConnect "net_connect" Yes "The peer cannot be reached." "Try again later."
        NetTls "net_tls" No "The TLS connection to the peer cannot be trusted." "Check its certificate."
        NetProtocol "net_protocol" No "The peer's answer is not valid HTTP." "Check the address."
        NetRedirect "net_redirect" No "The answer redirects to an address that is not allowed." "Allow the other address too, or request it directly."
        Registries "registries" No "It is not known where a package manager of this machine installs from." "Mend the file that the message names; a project's own files do not count."
        NotText "not_text" No "The file is not UTF-8." "Read it as bytes."
    }
    Tool {
        ToolNotFound "tool_not_found" No "No source has a tool of this name." "`runner tool list` shows all tools."
        ToolNameTaken "tool_name_taken" No "Two sources have a tool of this name." "Rename or remove one of them."
        ToolRefused "tool_refused" No "The tool's definition has findings." "`runner tool check NAME` shows each at its place."
        ToolDisabled "tool_disabled" No "It is switched off: by its author, by a configuration file, or because it is an example." "`runner tool enable NAME`, or `enabled: true` in the tool."
        ToolEnforced "tool_enforced" No "The managed configuration sets whether it is on." "Ask the administrator of this machine."
        ToolDescription "tool_description" No "A module's description of itself is not valid." "`runner tool check NAME` shows why."
        ToolExists "tool_exists" No "A new tool would overwrite a file." "Choose another name."
        ToolFolderInvalid "tool_folder_invalid" No "The folder for tools is a link, or no folder." "Make it a real folder, or name it with `--dir` or `--tools`."
        ToolNotWritten "tool_not_written" No "A new tool cannot be written there." "Name a folder that you can write with `--dir`."
        ToolUnreadable "tool_unreadable" No "The tool's file or folder cannot be read." "Make it a regular, readable file."
        ToolSource "tool_source" No "The code has errors." "Fix the errors; each is shown at its line."
        ToolDigestMismatch "tool_digest_mismatch" No "The tool, or something it imports, is not what was approved or compiled." "Check what changed, then run it again."
        CompilerUnconfined "compiler_unconfined" No "The compiler could not be confined, so it read nothing." "Use a kernel with Landlock."
        CompilerTimeout "compiler_timeout" No "Compiling took too long." "Import less."
        CompilerMemory "compiler_memory" No "Compiling took too much memory." "Import less."
        CompilerDepth "compiler_depth" No "The source is nested too deeply to compile." "Split deep expressions."
        CompilerCrashed "compiler_crashed" No "The compiler crashed." "Report it, with the tool."
        CompilerProcess "compiler_process" Yes "The compiler could not be started, or its answer could not be read." "Try again."
        InvalidArguments "invalid_arguments" No "The arguments do not match the tool's schema." "Fix what the message names, or each listed pointer; `runner tool info NAME` shows the schema."
        InvalidResult "invalid_result" No "The result does not match `returns`." "Fix the code or the schema."
        InvalidCost "invalid_cost" No "The cost that the tool reports is not a price; its estimate is recorded instead." "Fix `metadata.cost` of its result: US dollars, 0 or more."
        InvalidTool "invalid_tool" No "The module or the code exports nothing that can run." "Export `execute`, or `tool` with its parts."
        LoadFailed "load_failed" No "The code failed while it was loaded." "Read the stack; it names lines of the tool's source."
        CircuitOpen "circuit_open" Yes "The tool failed too often, so it is not called for a while." "Wait for `retry_after_ms`; `runner tool info NAME` shows the state."
        NoMatch "no_match" No "The text to be changed is not in the file." "Read the file, and copy the text from it."
        AmbiguousMatch "ambiguous_match" No "The text to be changed is in the file more than once." "Add more of the text around it, or set `first` or `all`."
        BadPattern "bad_pattern" No "A regular expression is not valid." "The message shows where."
        BadManifest "bad_manifest" No "A manifest of a project cannot be read." "Fix it at the place that the message names."
        CommandFailed "command_failed" No "A command that the tool needs failed." "Read its output in the message."
        ToolError "tool_error" No "The tool threw an error." "Read its message and `details`."
        ToolFailed "tool_failed" No "The tool threw an error without a code." "Read its message and stack."
        UncaughtException "uncaught_exception" No "The tool threw outside of `execute`." "Catch it where it happens."
        UnhandledRejection "unhandled_rejection" No "A promise was rejected and not awaited." "Await every promise."
        NeverSettled "never_settled" No "Nothing was left to do and `execute` had not ended." "Resolve or reject its promise."
        NoResult "no_result" No "The process ended without a result." "Look for `process.exit`, or for a limit."
        ResultTooLarge "result_too_large" No "The result is larger than may be sent." "Return less, or write a file."
        ResultNotJson "result_not_json" No "The result cannot be written as JSON." "Return plain values."
        ChannelClosed "channel_closed" No "The talk with the host is over." "Do not ask after the end."
        BrokerLimit "broker_limit" No "The tool went on asking beyond a limit." "Ask less, or raise the limit in the policy."
        ChangesHeld "changes_held" No "The command ran, some of its changes were held back, and `--strict-writes` makes that a failure." "`runner stage show CALL` lists them with the reason of each."
        ChangesNotApplied "changes_not_applied" No "The command ran, and its changes could not be applied." "Read the message; `runner stage list` shows what is kept."
        NothingHeld "nothing_held" No "No such changes were held back." "`runner stage list` shows those there are."
        BrokerEnded "broker_ended" No "The host ended the talk with the tool." "Read the error beside it."
        TalkBroken "talk_broken" Yes "The stream between the tool and the host was closed." "Try again."
        JobTooLarge "job_too_large" No "Arguments and code are too large to be sent." "Pass large data in a file."
        McpChanged "mcp_changed" No "The MCP server of the tool has changed since it was asked for its tools, so they are not used." "Check what changed, then `runner mcp refresh SERVER`."
        McpNeverAsked "mcp_never_asked" No "The MCP server of the tool was never asked for its tools." "`runner mcp refresh SERVER`."
        McpEnded "mcp_ended" No "An MCP server ended before it answered." "Read what it wrote to standard error; try a policy that grants what it needs."
        McpProtocol "mcp_protocol" No "An MCP server broke the protocol, so its answer was discarded." "Report it to the author of the server."
        McpTooLarge "mcp_too_large" No "An MCP server exceeded a size limit: of a line, of a session, or of its list of tools." "Report it to the author of the server."
        McpVersion "mcp_version" No "An MCP server supports none of runner's protocol versions." "Upgrade the server."
        McpRefused "mcp_refused" No "An MCP server answered with an error." "Read its error in the message."
        ProtocolUnknownKind "protocol_unknown_kind" No "The tool's end sent a frame of no known kind." "Do not touch descriptor 3."
        ProtocolTooLong "protocol_too_long" No "The tool's end sent a frame that is too long." "Do not touch descriptor 3."
        ProtocolNotEmpty "protocol_not_empty" No "The tool's end sent a payload with a frame that must have none." "Do not touch descriptor 3."
        ProtocolCutFrame "protocol_cut_frame" No "The stream ended inside a frame." "Do not touch descriptor 3."
        ProtocolBadId "protocol_bad_id" No "The tool's end sent a frame with an impossible id." "Do not touch descriptor 3."
        ProtocolBadJson "protocol_bad_json" No "The tool's end sent text that is not JSON, or JSON with a repeated key." "Do not touch descriptor 3."
        ProtocolUnknownMethod "protocol_unknown_method" No "The tool's end asked for an unknown method." "Do not touch descriptor 3."
        ProtocolBadParams "protocol_bad_params" No "The tool's end asked with wrong parameters." "Do not touch descriptor 3."
        ProtocolUnwantedBody "protocol_unwanted_body" No "The tool's end sent a body where none is allowed." "Do not touch descriptor 3."
        ProtocolOverCredit "protocol_over_credit" No "The tool's end sent more than it was granted." "Do not touch descriptor 3."
        ProtocolAfterResult "protocol_after_result" No "The tool's end went on after its result." "Do not touch descriptor 3."
    }
    Call {
        Signalled "signalled" No "The command was ended by a signal that runner did not send." "Read its output."
        Oom "oom" No "It reached its memory limit." "Raise `limits.memory`, or use less."
        Limit "limit" No "It reached a limit other than time or memory." "The message names the limit; raise it, or use less."
        TotalTimeExceeded "total_time_exceeded" No "The call with its waiting and its retries reached its time limit." "Raise `limits.totalTime` of the configuration, or retry less."
        OutputClosed "output_closed" No "The reader of the output closed it." "Keep the pipe open."
        NotExecutable "not_executable" No "The program cannot be executed." "Check its mode and format."
        NoCwd "no_cwd" No "The working folder cannot be entered." "Use a folder that may be read."
        AssumptionFailed "assumption_failed" No "When the line ran, a word had another value than the one that was judged." "The message names the word; write its value, or put it into double quotes."
        PathNotText "path_not_text" No "The workspace's path is not UTF-8." "Run it in a folder whose path is UTF-8."
        WorkspaceMissing "workspace_missing" No "The folder does not exist." "Name one with `--workdir`."
        WorkspaceNotAFolder "workspace_not_a_folder" No "It is not a folder." "Name one with `--workdir`."
        WorkspaceDeleted "workspace_deleted" No "The current folder was deleted." "Change to one that exists."
        WorkspaceIsHome "workspace_is_home" No "A home folder cannot be a workspace." "Change to a project, or name one with `--workdir`."
        WorkspaceIsSystem "workspace_is_system" No "A system folder cannot be a workspace." "Change to a project, or name one with `--workdir`."
        WorkspaceIsOurs "workspace_is_ours" No "The workspace contains runner's own folders, or is inside one of them." "Change to a project, or move runner's folder (the message names the variable)."
        WorkspaceOutside "workspace_outside" No "The folder is not in its workspace." "Name one inside."
        WorkspaceThroughLink "workspace_through_link" No "The path to the folder contains a symlink." "Name its real path."
        WorkspaceUnreadable "workspace_unreadable" No "The folder cannot be read." "Check its permissions."
        StoreNoFolder "store_no_folder" No "There is no folder for records." "Set HOME or XDG_STATE_HOME."
        StoreFolder "store_folder" No "The folder for records is not safe to use." "Make it your own, with mode 700."
        StoreNewer "store_newer" No "The records were written by a newer version." "Upgrade runner."
        StoreDatabase "store_database" Yes "The records cannot be read or written." "Check disk and permissions; try again."
        LedgerSeal "ledger_seal" No "The key or the head that seals the ledger cannot be used." "Put it back from a copy, or begin a new ledger in another state folder."
        LedgerTampered "ledger_tampered" No "The ledger was changed after it was recorded." "Keep a copy of the state folder; `runner audit verify` names the first wrong record."
        BenchCommand "bench_command" No "A command that `runner bench` measures failed." "Run it yourself to see more."
        ProtectionFails "protection_fails" No "`runner doctor` found a protection that does not hold, or that could not be proved." "Read its report; run nothing untrusted until it is fixed."
        UndoNothing "undo_nothing" No "The call changed nothing, or its backups were deleted." "`runner undo --list` shows what can be undone."
        UndoConflict "undo_conflict" No "Files have changed since the call, or were not kept; nothing was restored." "Restore what you need yourself; the message names each path."
        UndoWorkspace "undo_workspace" No "The workspace of that call is gone, or cannot be used." "Put the folder back where it was."
        UndoFailed "undo_failed" No "A step of an undo failed after other steps were done." "Undo the undo, by its own id."
        LocalError "local_error" No "The operating system refused an operation that a call needs." "Read the message."
    }
    Setting {
        AgentNotInstalled "agent_not_installed" No "No hook of this coding agent is installed for this folder." "`runner agent install AGENT`."
        AgentConfig "agent_config" No "The coding agent's configuration cannot be edited as it is." "Mend the place that the message names."
        AgentPin "agent_pin" No "What was pinned for a coding agent cannot be believed." "Look at who can write the file; install the hook again."
        AgentInput "agent_input" No "A coding agent called its hook with what is not understood, or the hook broke, so the call was refused." "Run `runner agent check AGENT`."
        AgentTicket "agent_ticket" No "A line was given to `runner agent exec` that the hook did not wrap." "Write the command itself; the hook wraps it."
        AgentStart "agent_start" No "The coding agent's program cannot be started." "Name it with `--program PATH`."
        Usage "usage" No "The command line is wrong." "`--help` shows the right form."
        ApprovalUnknown "approval_unknown" No "There is no question with this id." "`runner approvals` lists the open questions."
        ApprovalOver "approval_over" No "The question was answered, its approval was used, or it expired." "Call it again without `--approve`: it asks again."
        ApprovalDiffers "approval_differs" No "The approval is about another call." "Repeat the call exactly, or leave `--approve` out."
        ApprovalNotWhole "approval_not_whole" No "The question cannot be shown whole, so it cannot be answered by its id." "Answer at the terminal of the call itself."
        ApprovalNeedsTerminal "approval_needs_terminal" No "Only a person at a terminal can answer; `--yes` needs a terminal too." "Answer at a terminal, or leave `--yes` out and let a person run `runner approve ID`."
        ApprovalDeclined "approval_declined" No "The question was not answered with yes." "Type y to approve."
        PolicyRefused "policy_refused" No "The policies have findings, so none was loaded." "`runner policy check` shows each at its place."
        PolicyUnknown "policy_unknown" No "There is no policy of this name." "`runner policy list` shows all policies."
        McpListen "mcp_listen" No "The MCP server cannot listen where it should." "Choose another address or path."
        McpTokens "mcp_tokens" No "The file of tokens cannot be used, so no token counts." "Check its owner and mode."
        McpTokenName "mcp_token_name" No "A token of this name is there already, or is not." "`runner mcp token list` shows all."
        McpInstall "mcp_install" No "The entry of the MCP server was not written for the client." "`runner mcp install AGENT --print` shows what to add by hand."
        ConfigRefused "config_refused" No "The configuration has findings, so nothing runs." "`runner config check` shows each at its place."
        ConfigNotWritten "config_not_written" No "The configuration file could not be written." "Check the folder, or write the line by hand."
        PolicyUntrusted "policy_untrusted" No "A project's policy is not trusted in its present form." "Read it, then `runner policy trust NAME`."
        TrustNeedsTerminal "trust_needs_terminal" No "Only a person at a terminal can trust a policy." "Do it at a terminal."
        TrustDeclined "trust_declined" No "The policy was not pinned." "Type its name to pin it."
        TrustNotNeeded "trust_not_needed" No "Only a project's policy has to be trusted." "Use this one as it is."
        TrustDamaged "trust_damaged" No "The list of trusted policies is damaged." "Remove it, and trust them again."
        TrustUnavailable "trust_unavailable" No "The list of trusted policies cannot be used." "Check the state folder."
        TrustUnsafe "trust_unsafe" No "Other users can change the list of trusted policies." "Make its folder your own, with mode 700."
        OutputFailed "output_failed" No "runner's output could not be written." "Check where standard output goes."
        HardeningFailed "hardening_failed" No "The process could not be hardened at its start." "Read the message."
        PrivilegedExecutable "privileged_executable" No "The runner program has the setuid bit or file capabilities." "Remove them."
        Bug "bug" No "This is a bug in runner." "Report it, with the message."
    }
    Engine {
        EngineMissing "engine_missing" No "No engine answers." "Start one; the hint of the error says how."
        EngineNotPermitted "engine_not_permitted" No "This user may not use the engine." "Join its group, or use a rootless one."
        EngineBadEndpoint "engine_bad_endpoint" No "The address of the engine has an unknown form." "Use `unix://` or `tcp://`."
        EngineTooOld "engine_too_old" No "The engine is too old." "Upgrade it."
        EngineNotLinux "engine_not_linux" No "The engine does not run Linux containers." "Switch it to Linux containers."
        EngineOutOfDisk "engine_out_of_disk" No "The engine's disk is full." "Free some space."
        EngineElsewhere "engine_elsewhere" No "The engine runs on another file system, and `image: host` needs this one." "Name an image."
        EngineNotAllowed "engine_not_allowed" No "The policy allows none of the engines that are available." "Choose another policy."
        EngineRefused "engine_refused" No "The engine refused the request." "Read its error in the message."
        ImageNeedsDocker "image_needs_docker" No "The embedded engine runs `image: host` alone." "Use Docker, or leave the image out."
        RuntimeNeedsDocker "runtime_needs_docker" No "The embedded engine has no runtimes." "Use Docker, or take `runtime:` out of the policy."
        KernelTooOld "kernel_too_old" No "The kernel lacks what the embedded engine needs." "Use Docker, or a newer kernel."
        LaunchFailed "launch_failed" No "The kernel refused a step of making a sandbox." "`runner doctor` shows what this machine allows."
        UsernsApparmor "userns_apparmor" No "AppArmor forbids user namespaces." "Install the profile that the hint shows."
        UsernsInContainer "userns_in_container" No "The container that runner runs in forbids namespaces." "Start it with the options that the hint shows."
        UsernsSysctl "userns_sysctl" No "A setting of the kernel forbids user namespaces." "Change the setting that the hint shows."
        EngineLost "engine_lost" Yes "The connection to the engine was lost." "Try again; look at its log."
        EngineSlow "engine_slow" Yes "The engine did not answer in time." "Try again; look at its log."
        ImageMissing "image_missing" No "The engine does not have the image." "Pull or build it."
        RuntimeMissing "runtime_missing" No "The engine does not have the runtime." "Install it, or choose another."
        UnmountablePath "unmountable_path" No "A path cannot be written in a mount." "Rename the folder."
        MountGone "mount_gone" Yes "A file or folder to be mounted was removed." "Try again when no other process changes the workspace."
        OverlayRefused "overlay_refused" No "The kernel cannot show the workspace as an overlay." "Put the state folder on ext4, xfs, btrfs or tmpfs (XDG_STATE_HOME), and the workspace on a file system that overlayfs can read."
        MountIdentity "mount_identity" No "A mount shows another file or folder than the planned one." "Check which process changes the workspace."
        Mounts "mounts" No "The mounts cannot be planned." "Read the message."
        LocalFile "local_file" No "A file of runner's cannot be written." "Check the state folder and the cache folder."
        NoUser "no_user" No "There is no user that the sandbox could run as." "Read the message."
        BadVariable "bad_variable" No "A variable cannot be passed." "Read the message."
        TooLittleProtection "too_little_protection" No "A protection that the policy demands is not available here." "Use another runtime, or a lower isolation."
        SandboxWeaker "sandbox_weaker" No "The sandbox is weaker than planned." "Check the engine's settings."
        JobTooLong "job_too_long" No "A command with its variables is too long to be sent to a sandbox." "Pass long values on standard input, or in a file."
        GuestFailed "guest_failed" No "The guest, runner's program in the sandbox, failed." "Read the message."
        GuestLost "guest_lost" Yes "The sandbox ended without a result." "Try again; look at the engine's log."
        GuestSilent "guest_silent" Yes "The sandbox did not answer." "Try again."
        ProtocolError "protocol_error" No "The sandbox broke the protocol, so its result was discarded." "Check what the command does."
    }
    Thrown {
        AuthenticationRequired "authentication_required" No "The service requires credentials." "Add them in the policy: `secrets` and `send`."
        InvalidCredentials "invalid_credentials" No "The service refused the credentials." "Renew them."
        AuthenticationExpired "authentication_expired" No "The credentials have expired." "Renew them."
        RateLimitExceeded "rate_limit_exceeded" Yes "The service received too many requests." "Wait, then try again."
        QuotaExceeded "quota_exceeded" No "The quota of the service is used up." "Wait for the next period, or ask for more."
        CostLimitExceeded "cost_limit_exceeded" No "It would exceed the cost limit." "Ask for less, or raise the limit."
        ExternalServiceError "external_service_error" Yes "The service failed." "Try again later."
        PreconditionFailed "precondition_failed" No "A precondition of the tool is not met." "Read its message."
        MaxRetriesExceeded "max_retries_exceeded" No "It failed on every attempt." "Read the last error."
    }
}

#[cfg(test)]
#[path = "codes_tests.rs"]
mod tests;
