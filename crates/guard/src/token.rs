//! The tokens of requests. A server stores only their hashes.

use std::fmt;

use http::header::{AUTHORIZATION, HeaderMap};
use sha2::{Digest as _, Sha256};
use subtle::{Choice, ConstantTimeEq as _};

/// The SHA-256 hash of a token.
///
/// A token has 256 random bits, so it cannot be guessed, and a fast hash is enough. It is written as `sha256:` and 64
/// hexadecimal digits, the output of `printf %s TOKEN | sha256sum`.
#[derive(Clone, Copy)]
pub struct TokenHash([u8; 32]);

const PREFIX: &str = "sha256:";

impl TokenHash {
    /// The hash of a token.
    pub fn of(token: &[u8]) -> Self {
        Self(Sha256::digest(token).into())
    }

    /// Parses the output of [`Display`](fmt::Display).
    pub fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix(PREFIX)?;
        if digits.len() != 64 || !digits.bytes().all(|digit| digit.is_ascii_hexdigit()) {
            return None;
        }
        let mut hash = [0; 32];
        for (byte, at) in hash.iter_mut().zip((0..64).step_by(2)) {
            *byte = u8::from_str_radix(&digits[at..at + 2], 16).ok()?;
        }
        Some(Self(hash))
    }

    /// Whether the hash is among these. The time does not depend on which one is equal, or on how many bytes are.
    pub fn is_among<'h>(&self, hashes: impl IntoIterator<Item = &'h Self>) -> bool {
        let same = |found: Choice, hash: &Self| found | hash.0.ct_eq(&self.0);
        hashes.into_iter().fold(Choice::from(0), same).into()
    }
}

impl PartialEq for TokenHash {
    fn eq(&self, other: &Self) -> bool {
        self.is_among([other])
    }
}

impl Eq for TokenHash {}

impl fmt::Display for TokenHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(PREFIX)?;
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

impl fmt::Debug for TokenHash {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("TokenHash")
    }
}

/// The hash of the token in `Authorization: Bearer TOKEN`, if a request has exactly one such header.
pub fn bearer(headers: &HeaderMap) -> Option<TokenHash> {
    let mut given = headers.get_all(AUTHORIZATION).iter();
    let (Some(given), None) = (given.next(), given.next()) else { return None };
    let (scheme, token) = given.as_bytes().split_at_checked(b"Bearer ".len())?;
    let token = token.trim_ascii();
    let right = scheme.eq_ignore_ascii_case(b"Bearer ") && !token.is_empty();
    right.then(|| TokenHash::of(token))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_hash_is_read_as_it_is_written() {
        let hash = TokenHash::of(b"abc");
        let text = "sha256:ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!((hash.to_string().as_str(), TokenHash::parse(text)), (text, Some(hash)));
        let upper = text.to_uppercase().replace("SHA256", "sha256");
        assert_eq!(TokenHash::parse(&upper), Some(hash));
        for wrong in [&text[1..], &text[7..], &text[..70], &text.replace('b', "g"), "sha256:"] {
            assert_eq!(TokenHash::parse(wrong), None, "{wrong}");
        }
        assert!(!format!("{hash:?}").contains("ba78"));
    }

    #[test]
    fn requests_carry_one_token() {
        let right = TokenHash::of(b"abcdef");
        let known = [TokenHash::of(b"other"), right];
        let carries = |values: &[&str]| {
            let headers = values.iter().map(|value| (AUTHORIZATION, value.parse().unwrap()));
            let mut all = HeaderMap::new();
            headers.for_each(|(name, value)| _ = all.append(name, value));
            bearer(&all).is_some_and(|hash| hash.is_among(&known))
        };
        for (value, expected) in [
            ("Bearer abcdef", true),
            ("bearer  abcdef ", true),
            ("Bearer other", true),
            ("Bearer abcde", false),
            ("Bearer abcdefg", false),
            ("Bearer ", false),
            ("Bearer", false),
            ("Basic abcdef", false),
            ("abcdef", false),
            ("", false),
        ] {
            assert_eq!(carries(&[value]), expected, "{value}");
        }
        assert!(!carries(&[]));
        assert!(!carries(&["Bearer abcdef", "Bearer abcdef"]));
    }
}
