//! The codes of a policy's decision are codes of ours, under the same names.
//!
//! The crate that decides has a list of its own: it does not know the host program. The match is exhaustive, so a code
//! that is added there does not compile before it is in the table here.

use runner_policy::Code as Decided;

use super::Code;

impl From<Decided> for Code {
    fn from(code: Decided) -> Self {
        match code {
            Decided::Allowed => Self::Allowed,
            Decided::Ask => Self::Ask,
            Decided::DeniedByRule => Self::DeniedByRule,
            Decided::NoRule => Self::NoRule,
            Decided::EffectNotGranted => Self::EffectNotGranted,
            Decided::UnknownProgram => Self::UnknownProgram,
            Decided::UnknownArgument => Self::UnknownArgument,
            Decided::ProgramPath => Self::ProgramPath,
            Decided::ShellUnreadable => Self::ShellUnreadable,
            Decided::PathDenied => Self::PathDenied,
            Decided::PathOutside => Self::PathOutside,
            Decided::PathNotReadable => Self::PathNotReadable,
            Decided::PathNotWritable => Self::PathNotWritable,
            Decided::PathReadonly => Self::PathReadonly,
            Decided::ProtectedPath => Self::ProtectedPath,
            Decided::KeyMaterial => Self::KeyMaterial,
            Decided::NetDenied => Self::NetDenied,
            Decided::NetAddress => Self::NetAddress,
            Decided::EnvDenied => Self::EnvDenied,
            Decided::RuleExpired => Self::RuleExpired,
            Decided::ArgsNotMet => Self::ArgsNotMet,
            Decided::EmptyCommand => Self::EmptyCommand,
            Decided::BadArgument => Self::BadArgument,
            Decided::TooLarge => Self::TooLarge,
            Decided::TooDeep => Self::TooDeep,
        }
    }
}
