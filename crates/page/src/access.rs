//! Access to the page: only the browser that opened the link with the one-time key gets it, by its cookie.
//!
//! Cookies ignore ports: a browser would send the page's cookie to any other server on the same address. So the
//! cookie is bound to a secret path, and the page is below that path.

use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};

use http::header::{COOKIE, HeaderMap};
use pinfold_confine::{random_number, random_secret};
use subtle::ConstantTimeEq as _;

/// The secrets of one run of the program.
pub(crate) struct Access {
    /// The secret path, with a slash at both ends.
    base: String,
    /// The key in the link, until it is used.
    key: Mutex<Option<String>>,
    /// The value of the cookie.
    cookie: String,
}

/// The name of the cookie.
const NAME: &str = "pinfold-page";

impl Access {
    /// Makes new secrets.
    pub(crate) fn new() -> Result<Self, pinfold_confine::Error> {
        Ok(Self {
            base: format!("/{:016x}/", random_number()?),
            key: Mutex::new(Some(random_secret()?)),
            cookie: random_secret()?,
        })
    }

    /// The link that opens the page. It works once.
    pub(crate) fn link(&self, address: SocketAddr) -> String {
        let key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        format!("http://{address}{}?key={}", self.base, key.as_deref().unwrap_or_default())
    }

    /// The part of a path below the secret path.
    pub(crate) fn below_base<'p>(&self, path: &'p str) -> Option<&'p str> {
        path.strip_prefix(self.base.as_str())
    }

    /// Exchanges the key of a link for a cookie. A key works once.
    pub(crate) fn redeem_key(&self, query: &str) -> Option<String> {
        let given = query.strip_prefix("key=")?;
        let mut key = self.key.lock().unwrap_or_else(PoisonError::into_inner);
        key.take_if(|key| is_same(key, given))?;
        let Self { base, cookie, .. } = self;
        Some(format!("{NAME}={cookie}; Path={base}; HttpOnly; SameSite=Strict"))
    }

    /// Whether a request has the cookie.
    pub(crate) fn is_known(&self, headers: &HeaderMap) -> bool {
        let cookies = headers.get_all(COOKIE).iter().filter_map(|value| value.to_str().ok());
        let mut cookies = cookies.flat_map(|cookies| cookies.split(';'));
        cookies.any(|cookie| {
            let value = cookie.trim().strip_prefix(NAME).and_then(|it| it.strip_prefix('='));
            value.is_some_and(|value| is_same(value, &self.cookie))
        })
    }
}

/// Compares in constant time.
fn is_same(one: &str, other: &str) -> bool {
    one.as_bytes().ct_eq(other.as_bytes()).into()
}

#[cfg(test)]
mod tests {
    use http::HeaderValue;

    use super::*;

    fn known(access: &Access, cookies: &[&str]) -> bool {
        let mut headers = HeaderMap::new();
        for cookie in cookies {
            headers.append(COOKIE, HeaderValue::from_str(cookie).unwrap());
        }
        access.is_known(&headers)
    }

    #[test]
    fn a_key_is_traded_once_for_a_cookie() {
        let access = Access::new().unwrap();
        let link = access.link("127.0.0.1:9".parse().unwrap());
        let (path, query) = link.split_once('?').unwrap();
        assert_eq!(access.below_base(path.strip_prefix("http://127.0.0.1:9").unwrap()), Some(""));
        for wrong in ["", "key=", "key=0", &query[..query.len() - 1], &format!("{query}0")] {
            assert_eq!(access.redeem_key(wrong), None, "{wrong}");
        }
        let cookie = access.redeem_key(query).unwrap();
        assert_eq!(access.redeem_key(query), None, "it was used");
        assert!(cookie.ends_with("; HttpOnly; SameSite=Strict"), "{cookie}");
        let cookie = cookie.split(';').next().unwrap();
        assert!(known(&access, &[cookie]));
        assert!(known(&access, &["a=b", &format!("c=d; {cookie}; e=f")]));
        for wrong in ["", "pinfold-page=", "pinfold-page", &cookie.replace('=', "x="), "a=b"] {
            assert!(!known(&access, &[wrong]), "{wrong}");
        }
        assert!(!known(&Access::new().unwrap(), &[cookie]), "another run has another cookie");
    }
}
