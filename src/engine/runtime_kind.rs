//! The kinds of runtime, and what each of them means for a sandbox.

use super::plan::Runtime;

/// What stands between a sandbox and the host's kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuntimeKind {
    /// The host's kernel, behind namespaces and a system call filter (runc, crun).
    SharedKernel,
    /// The same without any runtime: the embedded engine asks the kernel itself.
    Direct,
    /// gVisor: a kernel of its own in a process.
    Gvisor,
    /// Kata: a kernel of its own in a virtual machine.
    Kata,
}

impl RuntimeKind {
    /// The kind of a runtime, by its name. An unknown name counts as a shared kernel: it promises least.
    #[must_use]
    pub fn of(runtime: Option<&Runtime>) -> Self {
        let name = runtime.map_or("", Runtime::as_str);
        let base = name.rsplit('/').next().unwrap_or(name);
        if base == "runsc" || base.starts_with("runsc-") || base.starts_with("io.containerd.runsc")
        {
            Self::Gvisor
        } else if base == "kata"
            || base.starts_with("kata-")
            || base.starts_with("io.containerd.kata")
        {
            Self::Kata
        } else {
            Self::SharedKernel
        }
    }

    /// Whether the host's kernel is out of reach.
    #[must_use]
    pub fn has_own_kernel(self) -> bool {
        match self {
            Self::SharedKernel | Self::Direct => false,
            Self::Gvisor | Self::Kata => true,
        }
    }

    /// Where the identity of mounts can be compared.
    #[must_use]
    pub fn identity_proof(self) -> IdentityProof {
        match self {
            Self::SharedKernel | Self::Direct => IdentityProof::Inside,
            Self::Gvisor | Self::Kata => IdentityProof::OnHost,
        }
    }

    /// Its name in messages.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Self::SharedKernel => "shared kernel (runc)",
            Self::Direct => "the embedded engine (shared kernel)",
            Self::Gvisor => "gVisor (runsc)",
            Self::Kata => "Kata",
        }
    }
}

/// Where it can be proved that a mount is what was planned.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityProof {
    /// The guest sees the host's device and inode numbers.
    Inside,
    /// The guest sees numbers of its own kernel: the host looks at each source again, after the start
    /// and before the command is sent.
    OnHost,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_is_known_by_its_exact_name() {
        let kind = |name| RuntimeKind::of(Runtime::new(name).as_ref());
        assert_eq!(kind("runsc"), RuntimeKind::Gvisor);
        assert_eq!(kind("runsc-kvm"), RuntimeKind::Gvisor);
        assert_eq!(kind("io.containerd.kata.v2"), RuntimeKind::Kata);
        assert_eq!(kind("runscape"), RuntimeKind::SharedKernel);
        assert_eq!(kind("crun"), RuntimeKind::SharedKernel);
        assert_eq!(RuntimeKind::of(None), RuntimeKind::SharedKernel);
    }
}
