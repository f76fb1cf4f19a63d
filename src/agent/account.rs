//! The home of the user's account, as the system knows it. `HOME` is not asked: a repository can set it.

use std::path::PathBuf;

use crate::sys;

/// The file of accounts.
const ACCOUNTS: &str = "/etc/passwd";

/// The home folder of the user who runs this process.
#[must_use]
pub fn account_home() -> Option<PathBuf> {
    let uid = rustix::process::getuid().as_raw();
    let accounts = std::fs::read_to_string(ACCOUNTS).unwrap_or_default();
    // Accounts of a directory service are not in the file; asking for them loads libraries, which takes longer.
    home_in(&accounts, uid).or_else(|| sys::account_home(uid)).filter(|home| home.is_absolute())
}

/// The home of a number's first account.
fn home_in(accounts: &str, uid: u32) -> Option<PathBuf> {
    accounts.lines().find_map(|line| {
        let mut fields = line.split(':').skip(2);
        let number = fields.next()?;
        let home = fields.nth(2)?;
        (number.parse() == Ok(uid) && !home.is_empty()).then(|| PathBuf::from(home))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_home_is_found_by_the_number() {
        let accounts =
            "root:x:0:0:r:/root:/bin/sh\nbroken\nann:x:1000:1000:Ann:/home/ann:/bin/sh\n";
        assert_eq!(home_in(accounts, 1000), Some("/home/ann".into()));
        assert_eq!(home_in(accounts, 7), None);
        assert_eq!(home_in("x:x:7:7::", 7), None);
    }
}
