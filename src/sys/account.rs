//! An account's home, from the system's directory services.

use std::ffi::{CStr, OsStr};
use std::os::unix::ffi::OsStrExt as _;
use std::path::PathBuf;

/// Room for the texts of one account.
const TEXTS: usize = 16 << 10;

/// The home folder of a user, if the system knows the user.
#[must_use]
#[expect(unsafe_code, reason = "the C library has the only reader of all directory services")]
pub fn account_home(uid: u32) -> Option<PathBuf> {
    let mut texts = vec![0_u8; TEXTS];
    let mut account = std::mem::MaybeUninit::<libc::passwd>::uninit();
    let mut found: *mut libc::passwd = std::ptr::null_mut();
    // SAFETY: all three places live until the call returns, and the length is that of the buffer.
    let status = unsafe {
        libc::getpwuid_r(
            uid,
            account.as_mut_ptr(),
            texts.as_mut_ptr().cast(),
            texts.len(),
            &raw mut found,
        )
    };
    if status != 0 || found.is_null() {
        return None;
    }
    // SAFETY: the call succeeded and found an account, so `account` is filled.
    let home = unsafe { account.assume_init_ref() }.pw_dir;
    if home.is_null() {
        return None;
    }
    // SAFETY: the home is a text with a NUL at its end, in `texts`, which still lives.
    let home = unsafe { CStr::from_ptr(home) };
    Some(PathBuf::from(OsStr::from_bytes(home.to_bytes())))
}

#[cfg(test)]
mod tests {
    use super::account_home;

    #[test]
    fn root_has_a_home_and_an_unknown_number_none() {
        assert_eq!(account_home(0), Some("/root".into()));
        assert_eq!(account_home(u32::MAX - 7), None);
    }
}
