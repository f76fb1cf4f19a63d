//! File modes of chmod, mkdir and install: whether one can set setuid or setgid.

/// Whether a mode leaves setuid and setgid alone, in octal or symbolic form.
pub(super) fn is_harmless(mode: &str) -> bool {
    if !mode.is_empty() && mode.bytes().all(|byte| byte.is_ascii_digit()) {
        let significant = mode.trim_start_matches('0');
        return u32::from_str_radix(mode, 8).is_ok_and(|bits| bits & 0o6000 == 0)
            && significant.len() <= 4;
    }
    mode.split(',').all(|clause| {
        let operator = clause.find(['+', '-', '=']);
        let Some(operator) = operator else { return false };
        let (who, change) = clause.split_at(operator);
        who.chars().all(|c| "ugoa".contains(c))
            && change.chars().all(|c| "+-=rwxXtugo".contains(c) || c == 's')
            && !sets_s(change)
    })
}

/// Whether an `s` is set; taking it away is harmless.
fn sets_s(change: &str) -> bool {
    let mut sets = false;
    let mut operator = ' ';
    for c in change.chars() {
        match c {
            '+' | '-' | '=' => operator = c,
            's' => sets |= operator != '-',
            _ => {}
        }
    }
    sets
}

#[cfg(test)]
mod tests {
    use super::is_harmless;

    #[test]
    fn only_modes_without_setuid_and_setgid_are_harmless() {
        for mode in ["755", "0644", "1777", "+x", "u+x,g-w", "-x", "a=rX", "u-s", "g=u", "o-rwx"] {
            assert!(is_harmless(mode), "{mode}");
        }
        for mode in [
            "4755", "2755", "06755", "+s", "u+xs", "g=s", "ug+rws", "u-x+s", "", "x", "u?x", "99",
            "99999",
        ] {
            assert!(!is_harmless(mode), "{mode}");
        }
    }
}
