//! Why the kernel made no sandbox, told apart by what to do next.

use std::path::PathBuf;

use runner_wire::{LaunchFailure, LaunchStep};

use super::systemd::ScopeError;
use crate::codes::Code;

/// What stands against a sandbox of the embedded engine.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// A step of the launch failed.
    #[error(
        "the embedded engine cannot {}{}: {}",
        words(.0.step),
        .0.object.as_ref().map(|object| format!(" {}", object.as_os().display())).unwrap_or_default(),
        reason(.0)
    )]
    Step(LaunchFailure),
    /// A security module forbids user namespaces.
    #[error("AppArmor does not let this program make user namespaces")]
    AppArmor {
        /// This program.
        program: String,
    },
    /// A setting of the kernel forbids user namespaces.
    #[error("this machine does not let runner make namespaces: {name} is {now}")]
    Setting {
        /// The setting.
        name: &'static str,
        /// What it is.
        now: String,
        /// What it should be.
        wanted: u32,
    },
    /// The container that this program runs in forbids namespaces.
    #[error("the container that runner runs in does not let it make namespaces")]
    InContainer,
    /// The kernel lacks a system call.
    #[error("this kernel ({release}) is too old for the embedded engine: it needs Linux 5.12")]
    OldKernel {
        /// Its release.
        release: String,
    },
    /// An image that is not the host.
    #[error("the embedded engine runs `image: host` alone, and the image is {reference}")]
    ForeignImage {
        /// The image.
        reference: String,
    },
    /// A runtime, which it has none of.
    #[error("the embedded engine has no runtimes, and the policy names {runtime}")]
    ForeignRuntime {
        /// The runtime.
        runtime: String,
    },
    /// The control groups that the plan counts on cannot be made any more.
    #[error("what this machine's control groups can limit has changed since the call was planned")]
    GroupsChanged,
    /// systemd gave the launcher no group of its own.
    #[error("systemd made no scope for the sandbox: {0}")]
    Scope(#[from] ScopeError),
    /// No sandbox of this label waits.
    #[error("no such sandbox waits")]
    NothingWaits,
    /// The other end of a socket of a sandbox that waits.
    #[error(
        "another user, or a process of another container, is at the socket of a waiting sandbox"
    )]
    ForeignPeer,
    /// The folder of waiting sandboxes.
    #[error("the folder of waiting sandboxes {path} is not used: {why}")]
    WaitingFolder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// The process that holds a sandbox that waits.
    #[error("no sandbox waits: {0}")]
    NotHeld(String),
    /// The launcher said what is not known.
    #[error("the launcher of the embedded engine ended without a sandbox: {0}")]
    Unknown(String),
}

impl LaunchError {
    /// Its code.
    #[must_use]
    pub fn code(&self) -> Code {
        match self {
            Self::Step(failure) => match failure.step {
                LaunchStep::Overlay | LaunchStep::IdMap => Code::OverlayRefused,
                LaunchStep::Open | LaunchStep::Replaced => Code::MountGone,
                _ => Code::LaunchFailed,
            },
            Self::AppArmor { .. } => Code::UsernsApparmor,
            Self::Setting { .. } => Code::UsernsSysctl,
            Self::InContainer => Code::UsernsInContainer,
            Self::OldKernel { .. } => Code::KernelTooOld,
            Self::ForeignImage { .. } => Code::ImageNeedsDocker,
            Self::ForeignRuntime { .. } => Code::RuntimeNeedsDocker,
            Self::GroupsChanged
            | Self::Scope(_)
            | Self::NothingWaits
            | Self::ForeignPeer
            | Self::WaitingFolder { .. }
            | Self::NotHeld(_)
            | Self::Unknown(_) => Code::LaunchFailed,
        }
    }

    /// What to do.
    #[must_use]
    pub fn hint(&self) -> Option<String> {
        Some(match self {
            Self::AppArmor { program } => format!(
                "as root, write these two lines to /etc/apparmor.d/runner\n\
                 \u{20} abi <abi/4.0>,\n\
                 \u{20} profile runner \"{program}\" flags=(unconfined) {{ userns, }}\n\
                 and load them: apparmor_parser -r /etc/apparmor.d/runner\n\
                 or use Docker (--engine docker)"
            ),
            Self::Setting { name, wanted, .. } => format!(
                "as root: sysctl -w {name}={wanted}\n\
                 to keep it after a restart: echo {name}={wanted} > /etc/sysctl.d/90-runner.conf\n\
                 or use Docker (--engine docker)"
            ),
            Self::InContainer => {
                "start the container with `--security-opt seccomp=unconfined --security-opt systempaths=unconfined`, or \
                 give runner an engine of its own with DOCKER_HOST\n\
                 in a pod: `seccompProfile: {type: Unconfined}` and `procMount: Unmasked` in its securityContext"
                    .to_owned()
            }
            Self::OldKernel { .. } => "use Docker (--engine docker), or a newer kernel".to_owned(),
            Self::ForeignImage { .. } => {
                "use Docker (--engine docker), or leave out --image and `image:`".to_owned()
            }
            Self::ForeignRuntime { .. } => {
                "use Docker (--engine docker), or take `runtime:` out of the policy".to_owned()
            }
            Self::GroupsChanged => "try again".to_owned(),
            Self::Scope(_) => {
                "try again; `systemctl --user status` says whether your manager of systemd works"
                    .to_owned()
            }
            Self::Step(failure) => match failure.step {
                LaunchStep::Overlay => {
                    "the state folder must be on a file system that overlayfs can write to (ext4, xfs, btrfs or tmpfs: set \
                     XDG_STATE_HOME), the workspace on one that it can read, and for an ordinary user nothing may be \
                     mounted below the workspace; see docs/staged-writes.md"
                        .to_owned()
                }
                LaunchStep::IdMap => {
                    "work in a folder that belongs to an ordinary user, or use Docker (--engine docker): root's files \
                     cannot be shown as another user's here (this needs Linux 5.19 and a file system with id-mapped mounts)"
                        .to_owned()
                }
                LaunchStep::Open | LaunchStep::Replaced => {
                    "try again when nothing else changes the workspace".to_owned()
                }
                _ => "run `runner doctor` for what this machine allows, or use Docker (--engine docker)".to_owned(),
            },
            Self::WaitingFolder { .. } => {
                "remove it, or give it to this user alone (chmod 700); or set XDG_RUNTIME_DIR to another folder"
                    .to_owned()
            }
            Self::NothingWaits | Self::ForeignPeer | Self::NotHeld(_) | Self::Unknown(_) => {
                return None;
            }
        })
    }

    /// Whether another engine may do what this one cannot.
    #[must_use]
    pub fn is_out_of_reach(&self) -> bool {
        matches!(
            self,
            Self::AppArmor { .. }
                | Self::Setting { .. }
                | Self::InContainer
                | Self::OldKernel { .. }
        )
    }
}

fn reason(failure: &LaunchFailure) -> String {
    match failure.errno {
        Some(number) => std::io::Error::from_raw_os_error(number).to_string(),
        None if failure.step == LaunchStep::Replaced => {
            "another file or folder is there".to_owned()
        }
        None => "this is a mistake of ours, please report it".to_owned(),
    }
}

/// What a step does, after "cannot".
fn words(step: LaunchStep) -> &'static str {
    match step {
        LaunchStep::Recipe => "read what it should make",
        LaunchStep::UserNamespace => "make a user namespace",
        LaunchStep::UserMap => "map the user of a user namespace through",
        LaunchStep::Namespace => "make a namespace",
        LaunchStep::Process => "start the first process of a sandbox",
        LaunchStep::Group => "use the control group",
        LaunchStep::Processors => "choose processors",
        LaunchStep::Loopback => "bring the loopback device up",
        LaunchStep::Root => "make the root file system at",
        LaunchStep::Open => "open",
        LaunchStep::Replaced => "mount",
        LaunchStep::Bind => "mount a folder or file of the host at",
        LaunchStep::IdMap => "map the owners of files at",
        LaunchStep::Overlay => "show the workspace as an overlay at",
        LaunchStep::Tmpfs => "mount a folder in memory at",
        LaunchStep::Proc => "mount procfs",
        LaunchStep::Devices => "make the device",
        LaunchStep::Pivot => "change to the new root file system",
        LaunchStep::Limit => "set a limit",
        LaunchStep::User => "become the user of the sandbox",
        LaunchStep::Capabilities => "drop capabilities",
        LaunchStep::Landlock => "close the root file system with Landlock",
        LaunchStep::Filter => "install the system call filter",
        LaunchStep::Exec => "start the guest",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_cause_on_a_machine_has_its_own_code_and_next_step() {
        let app_armor = LaunchError::AppArmor { program: "/opt/a b/runner".to_owned() };
        let name = "user.max_user_namespaces";
        let setting = LaunchError::Setting { name, now: "0".to_owned(), wanted: 15_000 };
        let old = LaunchError::OldKernel { release: "5.10.0".to_owned() };
        let cases = [
            (
                &app_armor,
                "userns_apparmor",
                "profile runner \"/opt/a b/runner\" flags=(unconfined)",
            ),
            (&setting, "userns_sysctl", "sysctl -w user.max_user_namespaces=15000"),
            (&LaunchError::InContainer, "userns_in_container", "systempaths=unconfined"),
            (&old, "kernel_too_old", "--engine docker"),
        ];
        for (error, code, step) in cases {
            assert_eq!(error.code().as_str(), code);
            assert!(error.is_out_of_reach());
            let hint = error.hint().unwrap();
            assert!(hint.contains(step), "{hint}");
        }
        assert!(app_armor.hint().unwrap().contains("abi <abi/4.0>,"));
        assert!(old.to_string().contains("5.10.0"));
        assert!(!LaunchError::Scope(ScopeError::Elsewhere).is_out_of_reach());
    }
}
