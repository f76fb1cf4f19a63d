//! Who a command runs as, inside.
//!
//! Duty: the uid inside that maps to the caller, so that a build leaves files that the caller owns and
//! no command runs as root without need. Non-goals: finding out how the daemon maps users (the engine
//! says). Every choice carries its reason, which a result can show.

use crate::engine::UserNamespace;
use crate::engine::plan::{Image, UserChoice, WhyUser};
use crate::workspace::grants::Writes;
use crate::workspace::{OthersMay, Owner};

/// The user that owns nothing.
pub const NOBODY: u32 = 65_534;

/// How a daemon maps the users of a container to those of the host.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UserMapping {
    /// Not at all: a uid inside is the same uid outside.
    Rootful,
    /// The daemon runs as the caller: 0 inside is the caller outside.
    Rootless,
    /// Every uid inside is a foreign one outside (`userns-remap`).
    Remapped,
    /// Not at all; and root's files can be shown as another user's.
    Swapped,
    /// One uid inside is the caller outside, and there is no other.
    Single,
}

impl From<UserNamespace> for UserMapping {
    fn from(namespace: UserNamespace) -> Self {
        match namespace {
            UserNamespace::Host => Self::Rootful,
            UserNamespace::Rootless => Self::Rootless,
            UserNamespace::Remapped => Self::Remapped,
            UserNamespace::Swapped => Self::Swapped,
            UserNamespace::Single => Self::Single,
        }
    }
}

/// Why there is no user to run as.
#[derive(Debug, thiserror::Error, Clone, Copy, PartialEq, Eq)]
pub enum UserError {
    /// Inside, the host's files belong to the user `nobody`.
    #[error(
        "the engine maps users to others (userns-remap), so that image `host` cannot be used; \
         name an image with --image, or use an engine without userns-remap"
    )]
    RemappedHost,
    /// What the call writes would belong to a foreign user.
    #[error(
        "the engine maps users to others (userns-remap), so that files written in the workspace \
         would belong to a foreign user; use an engine without userns-remap"
    )]
    RemappedWrites,
    /// Root's workspace, and only root can read it.
    #[error(
        "the workspace belongs to root and is closed to all others, and a call that writes \
         nothing does not run as root; open it (chmod o+rx), or give it to an ordinary user"
    )]
    ClosedWorkspace,
}

/// What the choice depends on.
#[derive(Debug, Clone, Copy)]
pub struct UserFacts<'a> {
    /// The caller.
    pub caller: Owner,
    /// How the daemon maps users.
    pub mapping: UserMapping,
    /// Whom the workspace belongs to.
    pub workspace: Owner,
    /// Whether others can look into the workspace.
    pub others: OthersMay,
    /// The image.
    pub image: &'a Image,
    /// Whether something must be written.
    pub writes: Writes,
}

/// Chooses who a command runs as.
///
/// # Errors
/// See [`UserError`].
pub fn choose(facts: &UserFacts<'_>) -> Result<UserChoice, UserError> {
    let choice = |owner: Owner, why| Ok(UserChoice { uid: owner.uid, gid: owner.gid, why });
    let root = Owner { uid: 0, gid: 0 };
    let nobody = Owner { uid: NOBODY, gid: NOBODY };
    match facts.mapping {
        UserMapping::Rootless => choice(root, WhyUser::RootlessCaller),
        UserMapping::Remapped => match (facts.image, facts.writes) {
            (Image::Host, _) => Err(UserError::RemappedHost),
            (Image::Reference(_), Writes::Some) => Err(UserError::RemappedWrites),
            (Image::Reference(_), Writes::None) => choice(nobody, WhyUser::Unprivileged),
        },
        UserMapping::Single if facts.caller.uid == 0 => choice(nobody, WhyUser::IdMapped),
        UserMapping::Swapped if facts.caller.uid == 0 && facts.workspace.uid == 0 => {
            choice(nobody, WhyUser::IdMapped)
        }
        UserMapping::Single => choice(facts.caller, WhyUser::Caller),
        UserMapping::Rootful | UserMapping::Swapped if facts.caller.uid != 0 => {
            choice(facts.caller, WhyUser::Caller)
        }
        UserMapping::Rootful | UserMapping::Swapped if facts.workspace.uid != 0 => {
            choice(facts.workspace, WhyUser::WorkspaceOwner)
        }
        UserMapping::Rootful | UserMapping::Swapped => match (facts.writes, facts.others) {
            (Writes::Some, _) => choice(root, WhyUser::RootWithoutCapabilities),
            (Writes::None, OthersMay::Enter) => choice(nobody, WhyUser::Nobody),
            (Writes::None, OthersMay::NotEnter) => Err(UserError::ClosedWorkspace),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ROOT: Owner = Owner { uid: 0, gid: 0 };
    const ANN: Owner = Owner { uid: 1000, gid: 100 };

    fn facts(
        caller: Owner,
        mapping: UserMapping,
        workspace: Owner,
        writes: Writes,
    ) -> UserFacts<'static> {
        UserFacts {
            caller,
            mapping,
            workspace,
            others: OthersMay::Enter,
            image: &Image::Host,
            writes,
        }
    }

    #[test]
    fn the_rule_row_by_row() {
        use UserMapping::{Remapped, Rootful, Rootless};
        let run = |caller, mapping, workspace, writes| {
            choose(&facts(caller, mapping, workspace, writes))
                .map(|user| (user.uid, user.gid, user.why))
        };
        for writes in [Writes::None, Writes::Some] {
            assert_eq!(run(ANN, Rootful, ANN, writes), Ok((1000, 100, WhyUser::Caller)));
            assert_eq!(run(ANN, Rootful, ROOT, writes), Ok((1000, 100, WhyUser::Caller)));
            assert_eq!(run(ANN, Rootless, ANN, writes), Ok((0, 0, WhyUser::RootlessCaller)));
            assert_eq!(run(ROOT, Rootful, ANN, writes), Ok((1000, 100, WhyUser::WorkspaceOwner)));
            assert_eq!(run(ANN, Remapped, ANN, writes), Err(UserError::RemappedHost));
        }
        assert_eq!(run(ROOT, Rootful, ROOT, Writes::None), Ok((NOBODY, NOBODY, WhyUser::Nobody)));
        assert_eq!(
            run(ROOT, Rootful, ROOT, Writes::Some),
            Ok((0, 0, WhyUser::RootWithoutCapabilities))
        );
    }

    /// The embedded engine never runs a command as user 0, inside or outside.
    #[test]
    fn root_becomes_an_ordinary_user_where_owners_can_be_mapped() {
        for (mapping, workspace) in
            [(UserMapping::Swapped, ROOT), (UserMapping::Single, ROOT), (UserMapping::Single, ANN)]
        {
            for writes in [Writes::None, Writes::Some] {
                let closed = UserFacts {
                    others: OthersMay::NotEnter,
                    ..facts(ROOT, mapping, workspace, writes)
                };
                let user = choose(&closed).unwrap();
                assert_eq!((user.uid, user.gid, user.why), (NOBODY, NOBODY, WhyUser::IdMapped));
            }
        }
        for mapping in [UserMapping::Swapped, UserMapping::Single] {
            let user = choose(&facts(ANN, mapping, ROOT, Writes::Some)).unwrap();
            assert_eq!((user.uid, user.why), (1000, WhyUser::Caller));
        }
        let user = choose(&facts(ROOT, UserMapping::Swapped, ANN, Writes::Some)).unwrap();
        assert_eq!((user.uid, user.why), (1000, WhyUser::WorkspaceOwner));
    }

    #[test]
    fn a_closed_workspace_of_root_is_an_error_with_a_next_step() {
        let closed = UserFacts {
            others: OthersMay::NotEnter,
            ..facts(ROOT, UserMapping::Rootful, ROOT, Writes::None)
        };
        let error = choose(&closed).unwrap_err();
        assert_eq!(error, UserError::ClosedWorkspace);
        assert!(error.to_string().contains("chmod o+rx"));
    }

    #[test]
    fn a_foreign_image_under_remapped_users_reads_only() {
        let image = Image::Reference("alpine:3".to_owned());
        let run = |writes| {
            choose(&UserFacts { image: &image, ..facts(ANN, UserMapping::Remapped, ANN, writes) })
        };
        assert_eq!(run(Writes::None).unwrap().why, WhyUser::Unprivileged);
        assert_eq!(run(Writes::Some), Err(UserError::RemappedWrites));
    }
}
