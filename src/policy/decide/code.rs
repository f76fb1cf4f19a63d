//! Every code that a decision can carry, in one list.

macro_rules! codes {
    ($($name:ident $word:literal $about:literal)*) => {
        /// Why a decision is what it is. The words are stable: records and alerts refer to them.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum Code { $(#[doc = $about] $name),* }

        impl Code {
            /// Every code with what it means.
            pub const ALL: &'static [(Self, &'static str, &'static str)] = &[$((Self::$name, $word, $about)),*];

            /// The stable word.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$name => $word),* }
            }
        }
    };
}

codes! {
    Allowed "allowed" "A rule allows it."
    Ask "ask" "A rule allows it after an approval."
    DeniedByRule "denied_by_rule" "A rule denies it."
    NoRule "no_rule" "No rule matches, and the default is to deny."
    EffectNotGranted "effect_not_granted" "A rule is about it, but it does more than the rule grants."
    UnknownProgram "unknown_program" "The program is not in the catalog, and no rule names it."
    UnknownArgument "unknown_argument" "An option, operand or subcommand is not in the catalog."
    ProgramPath "program_path" "The program was named by a path; rules and catalog match bare names."
    ShellUnreadable "shell_unreadable" "The shell line has a construct that only a shell can execute."
    PathDenied "path_denied" "The path is in `files.deny`."
    PathOutside "path_outside" "The path is neither in the workspace nor among the image's readable folders."
    PathNotReadable "path_not_readable" "The path is not in `files.read`."
    PathNotWritable "path_not_writable" "The path is not in `files.write`."
    PathReadonly "path_readonly" "The path is in `files.readonly`."
    ProtectedPath "protected_path" "The path is never writable, whatever a policy says."
    KeyMaterial "key_material" "The path is key material and never readable, whatever a policy says."
    NetDenied "net_denied" "No `net` rule allows the peer."
    NetAddress "net_address" "The address is private or special, and no `net` rule names it."
    EnvDenied "env_denied" "The variable is not in `env.accept`."
    RuleExpired "rule_expired" "The rule that allowed it has ended."
    ArgsNotMet "args_not_met" "A rule matches, but its conditions on arguments are not certainly met."
    EmptyCommand "empty_command" "There is no command."
    BadArgument "bad_argument" "An argument cannot be passed to any program."
    TooLarge "too_large" "It is too large to be judged."
    TooDeep "too_deep" "Commands inside commands are nested too deeply to be judged."
}

impl serde::Serialize for Code {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.word())
    }
}
