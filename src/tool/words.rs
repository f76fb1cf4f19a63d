//! The closed sets of words in a tool's definition: runtime, category, tier and risk.

use serde::Serialize;

macro_rules! words {
    ($(#[$about:meta])* $name:ident { $($(#[$doc:meta])* $variant:ident $word:literal),* $(,)? }) => {
        $(#[$about])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum $name { $($(#[$doc])* $variant),* }

        impl $name {
            /// Every word, in order.
            pub const WORDS: &'static [&'static str] = &[$($word),*];

            /// The word it is written as.
            #[must_use]
            pub fn word(self) -> &'static str {
                match self { $(Self::$variant => $word),* }
            }

            /// What this word means.
            #[must_use]
            pub fn by_word(word: &str) -> Option<Self> {
                match word { $($word => Some(Self::$variant),)* _ => None }
            }
        }

        impl Serialize for $name {
            fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
                serializer.serialize_str(self.word())
            }
        }
    };
}

words! {
    /// What the code of a tool is written in.
    Runtime {
        /// TypeScript, which we compile.
        Typescript "typescript",
        /// JavaScript for Node.
        Node "node",
    }
}

words! {
    /// What a tool is about.
    Category {
        /// Files and folders.
        FileSystem "filesystem",
        /// Parsing, linting, checking of types.
        CodeAnalysis "code_analysis",
        /// Schemas and formats.
        Validation "validation",
        /// Searching code and text.
        Search "search",
        /// Requests to other programs' interfaces.
        Api "api",
        /// Databases.
        Database "database",
        /// Services of others.
        Service "service",
        /// Hosting platforms.
        Deployment "deployment",
        /// Tools of development.
        Development "development",
        /// Anything else.
        Custom "custom",
    }
}

words! {
    /// How far a tool reaches, the harmless first.
    Tier {
        /// It looks and changes nothing.
        ReadOnly "read_only",
        /// It writes files.
        Write "write",
        /// It runs commands.
        Execute "execute",
        /// It reaches the net.
        ExternalApi "external_api",
    }
}

words! {
    /// Which credentials a tool needs.
    AuthKind {
        /// A key of an interface.
        ApiKey "api_key",
        /// OAuth.
        Oauth "oauth",
        /// Name and password.
        BasicAuth "basic_auth",
        /// A bearer token.
        BearerToken "bearer_token",
        /// Something else.
        Custom "custom",
    }
}

words! {
    /// How a tool is paid for.
    CostModel {
        /// Not at all.
        Free "free",
        /// By use.
        UsageBased "usage_based",
        /// By time.
        Subscription "subscription",
        /// Once.
        OneTime "one_time",
    }
}

words! {
    /// How much harm its author sees in a call.
    Risk {
        /// None to speak of.
        Low "low",
        /// It can be undone.
        Medium "medium",
        /// It can hurt.
        High "high",
        /// It can hurt others, or cost money.
        Critical "critical",
    }
}

/// Whether a tool may remove what it may write without asking.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Removal {
    /// It may: its author says so, or the call was approved as a whole.
    Free,
    /// Each is asked about: its tier lets it write, not destroy.
    Asked,
}

/// What becomes of a tool's own `autoAccept: true`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Waiver {
    /// The tool does not say it.
    NotSaid,
    /// It counts.
    Counts,
    /// It does not: what can do harm is asked about, whatever its author says.
    Risk,
    /// It does not: a tool of a project, or of a folder that was named, cannot waive its own approval.
    Stranger,
    /// It does not: the configuration says so.
    Configured,
}

impl Waiver {
    /// Why it does not count, if the tool says it and it does not.
    #[must_use]
    pub fn why_not(self) -> Option<&'static str> {
        match self {
            Self::NotSaid | Self::Counts => None,
            Self::Risk => Some("at high and critical risk a person is asked each time"),
            Self::Stranger => Some("the tool is not built in, yours or your team's"),
            Self::Configured => Some("the configuration says so"),
        }
    }
}

impl Tier {
    /// Whether a call needs no approval, unless its author says otherwise: looking and writing run, running
    /// commands and reaching the net are asked about, and so is whatever can hurt.
    #[must_use]
    pub fn runs(self, risk: Risk) -> bool {
        self <= Self::Write && risk < Risk::High
    }

    /// The risk of a tool that does not say its own.
    #[must_use]
    pub fn default_risk(self) -> Risk {
        match self {
            Self::ReadOnly => Risk::Low,
            Self::Write => Risk::Medium,
            Self::Execute | Self::ExternalApi => Risk::High,
        }
    }
}
