//! User namespaces: the one that an ordinary caller's sandbox lives in, and the one that maps owners of files.

use super::failure::{Failed, Trying};
use super::kernel::{self, Namespace};
use runner_wire::{Bytes, LaunchStep};
use std::fs::File;
use std::io::{self, Read};
use std::os::fd::OwnedFd;

/// Makes a user namespace for this process, in which the caller's user and group have these numbers.
pub fn enter(uid: u32, gid: u32) -> Result<(), Failed> {
    let (own_uid, own_gid) = crate::sys::user();
    kernel::unshare(&[Namespace::Users]).trying(LaunchStep::UserNamespace)?;
    // The kernel lets an ordinary user map a group only if groups cannot be changed any more.
    let maps = [
        ("/proc/self/setgroups", "deny".to_owned()),
        ("/proc/self/uid_map", format!("{uid} {own_uid} 1")),
        ("/proc/self/gid_map", format!("{gid} {own_gid} 1")),
    ];
    for (file, text) in maps {
        std::fs::write(file, text).trying_at(LaunchStep::UserMap, &Bytes::from(file))?;
    }
    Ok(())
}

/// A user namespace in which root and this user, and root's group and this group, have changed places. Layers that are
/// mounted with it show root's files as this user's, and what this user writes becomes root's.
pub fn swap(uid: u32, gid: u32) -> Result<OwnedFd, Failed> {
    make(uid, gid).trying(LaunchStep::IdMap)
}

fn make(uid: u32, gid: u32) -> io::Result<OwnedFd> {
    let (mut ready, said) = io::pipe()?;
    let (until, release) = io::pipe()?;
    let Some(holder) = crate::sys::fork()? else {
        drop((ready, release));
        hold(said, until);
    };
    drop((said, until));
    // Its namespace is there once it has said so; it ends without a word if it could not make one.
    let made = ready.read_exact(&mut [0]).and_then(|()| {
        let folder = format!("/proc/{holder}");
        std::fs::write(format!("{folder}/uid_map"), swapped(uid))?;
        std::fs::write(format!("{folder}/gid_map"), swapped(gid))?;
        File::open(format!("{folder}/ns/user"))
    });
    drop(release);
    crate::sys::wait_for(holder);
    Ok(made?.into())
}

/// The life of the process that holds the namespace until it was opened.
fn hold(said: io::PipeWriter, mut until: io::PipeReader) -> ! {
    use std::io::Write;
    let mut said = said;
    let made = kernel::unshare(&[Namespace::Users]).and_then(|()| said.write_all(&[0]));
    if made.is_ok() {
        let _ = until.read(&mut [0]);
    }
    crate::sys::exit(0)
}

/// 0 and `id` change places; what lies between stays.
fn swapped(id: u32) -> String {
    let between = if id > 1 { format!("1 1 {}\n", id - 1) } else { String::new() };
    format!("0 {id} 1\n{between}{id} 0 1\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_swap_map_covers_every_id_up_to_the_users_once() {
        assert_eq!(swapped(65_534), "0 65534 1\n1 1 65533\n65534 0 1\n");
        assert_eq!(swapped(1), "0 1 1\n1 0 1\n");
    }
}
