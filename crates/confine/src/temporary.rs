//! The names of files that are about to become others.

use crate::{Name, Result, sys};

const PREFIX: &[u8] = b".pinfold-";
const SUFFIX: &[u8] = b".tmp";
const RANDOM: usize = 16;

/// A name that nothing else has. It does not grow with the target's, which may be as long as names get.
pub(crate) fn temp_name() -> Result<Name> {
    Name::parse(&[PREFIX, random_text()?.as_bytes(), SUFFIX].concat())
}

/// A name that nothing else has, for what somebody needs: it is shown, and never swept away.
pub(crate) fn kept_name() -> Result<Name> {
    Name::parse(&[PREFIX, b"kept-", random_text()?.as_bytes()].concat())
}

fn random_text() -> Result<String> {
    Ok(format!("{:0RANDOM$x}", random_number()?))
}

/// A number that nobody can guess.
pub fn random_number() -> Result<u64> {
    Ok(u64::from_ne_bytes(sys::random()?))
}

/// Whether a name is one that [`temp_name`] makes: no tool shows such a file.
pub fn is_temp_name(name: &[u8]) -> bool {
    let middle = name.strip_prefix(PREFIX).and_then(|rest| rest.strip_suffix(SUFFIX));
    middle.is_some_and(|middle| middle.len() == RANDOM && middle.iter().all(u8::is_ascii_hexdigit))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fresh_names_are_known_again_and_others_are_not() {
        for _ in 0..100 {
            assert!(is_temp_name(temp_name().unwrap().as_bytes()));
            assert!(!is_temp_name(kept_name().unwrap().as_bytes()));
        }
        for name in [&b".pinfold-.tmp"[..], b".pinfold-0123456789abcdeg.tmp", b"a.tmp", b".pinfold"]
        {
            assert!(!is_temp_name(name));
        }
    }
}
