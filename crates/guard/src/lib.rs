//! Decides which HTTP requests a server accepts: those with an accepted host and origin, and with a known token.
//!
//! A web page that the user visits can send requests to servers on this machine. Its browser sends the page's origin
//! and the host of the request, so these two are checked before anything else.

#![forbid(unsafe_code)]

mod token;

pub use token::{TokenHash, bearer};

use std::net::{IpAddr, SocketAddr};

use http::header::{HOST, HeaderMap, HeaderValue, ORIGIN};
use http::uri::Authority;
use http::{StatusCode, Uri};

/// Checks the host and the origin of requests. Tokens are checked later: see [`bearer`].
#[derive(Clone, Debug)]
pub struct Guard {
    hosts: Vec<String>,
    origins: Vec<String>,
    /// Whether `localhost` and loopback addresses, with any port, are accepted as hosts and as origins.
    local: bool,
    /// Whether the server also listens on other addresses than loopback.
    public: bool,
}

impl Default for Guard {
    /// Accepts only requests for this machine, from pages of this machine.
    fn default() -> Self {
        Self { hosts: Vec::new(), origins: Vec::new(), local: true, public: false }
    }
}

impl Guard {
    /// Accepts only requests for this address of the server, from its own pages. Pages of other servers on this
    /// machine are foreign.
    pub fn own_pages(address: SocketAddr) -> Self {
        let guard = Self { local: false, ..Self::default() };
        guard.allow_host(address.to_string()).allow_origin(format!("http://{address}"))
    }

    /// Also accepts requests for this host, with any port or with the given one. Otherwise a request must be for
    /// `localhost` or a loopback address, or for any IP address if the server listens on others than loopback. An
    /// attacker's page can make its own host name resolve to this machine.
    #[must_use]
    pub fn allow_host(mut self, host: impl Into<String>) -> Self {
        self.hosts.push(host.into().to_ascii_lowercase());
        self
    }

    /// Also accepts requests from pages of an origin, such as `https://example.org`. Otherwise only pages of this
    /// machine may send requests.
    #[must_use]
    pub fn allow_origin(mut self, origin: impl Into<String>) -> Self {
        self.origins.push(origin.into().trim_end_matches('/').to_ascii_lowercase());
        self
    }

    /// Sets the address that the server listens on.
    pub fn listening_on(&mut self, address: IpAddr) {
        self.public = !address.is_loopback();
    }

    /// Checks a request. The error is a status and the reason.
    pub fn check(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        self.check_host(uri, headers)?;
        self.check_origin(headers)
    }

    /// The origin of the page that sent a request, if it is accepted.
    pub fn allowed_origin(&self, headers: &HeaderMap) -> Option<HeaderValue> {
        let origin = headers.get(ORIGIN)?;
        self.check_origin(headers).is_ok().then(|| origin.clone())
    }

    /// Checks the host. A foreign host name that resolves to this machine is an attack (DNS rebinding).
    pub fn check_host(&self, uri: &Uri, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        let mut hosts = headers.get_all(HOST).iter();
        let named = match (hosts.next(), hosts.next()) {
            (Some(host), None) => host.to_str().ok().and_then(|host| host.parse().ok()),
            (None, _) => uri.authority().cloned(),
            (Some(_), Some(_)) => None,
        };
        let bare = |named: &Authority| !named.as_str().contains('@');
        let Some(named) = named.filter(bare) else {
            return Err((StatusCode::BAD_REQUEST, "the Host header is missing or wrong".into()));
        };
        // The host in an absolute target takes precedence over the header.
        let named = uri.authority().cloned().unwrap_or(named);
        let local = self.local && is_local(&named);
        if local || (self.public && is_address(&named)) || self.knows_host(&named) {
            return Ok(());
        }
        let host = named.host();
        let way = if self.local {
            format!("`--allow-host {host}` allows it")
        } else {
            format!("the server is at {}", self.hosts.join(" and "))
        };
        Err((StatusCode::FORBIDDEN, format!("the host `{named}` is not served; {way}")))
    }

    fn knows_host(&self, named: &Authority) -> bool {
        let (whole, host) =
            (named.as_str().to_ascii_lowercase(), named.host().to_ascii_lowercase());
        self.hosts.iter().any(|known| *known == whole || *known == host)
    }

    fn check_origin(&self, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        for origin in headers.get_all(ORIGIN) {
            let origin = origin.to_str().unwrap_or("?").to_ascii_lowercase();
            let local = |origin: &str| -> Option<bool> {
                let uri: Uri = origin.parse().ok()?;
                Some(
                    matches!(uri.scheme_str(), Some("http" | "https"))
                        && is_local(uri.authority()?),
                )
            };
            let local = self.local && local(&origin) == Some(true);
            if !self.origins.contains(&origin) && !local {
                let way = format!("; `--allow-origin {origin}` allows it");
                let way = if self.local { way.as_str() } else { "" };
                let why = format!("pages of `{origin}` may not talk to this server{way}");
                return Err((StatusCode::FORBIDDEN, why));
            }
        }
        Ok(())
    }
}

/// Whether a name or address is that of the client's own machine.
fn is_local(authority: &Authority) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    let address = host.parse::<IpAddr>();
    host.eq_ignore_ascii_case("localhost") || address.is_ok_and(|address| address.is_loopback())
}

/// Whether it is an IP address. Unlike a name, it cannot resolve to another machine.
fn is_address(authority: &Authority) -> bool {
    let host = authority.host().trim_start_matches('[').trim_end_matches(']');
    host.parse::<IpAddr>().is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn status(guard: &Guard, given: &[(&str, &str)]) -> u16 {
        let mut headers = HeaderMap::new();
        for (name, value) in given {
            let name: http::HeaderName = name.parse().unwrap();
            headers.append(name, value.parse().unwrap());
        }
        guard
            .check(&Uri::from_static("/mcp"), &headers)
            .map_or_else(|(status, _)| status.as_u16(), |()| 200)
    }

    #[test]
    fn foreign_hosts_are_refused() {
        let guard = Guard::default().allow_host("Files.example").allow_host("a.example:81");
        for (host, expected) in [
            ("localhost:80", 200),
            ("LOCALHOST", 200),
            ("127.0.0.1:9", 200),
            ("[::1]:9", 200),
            ("192.0.2.1", 403),
            ("8.8.8.8:80", 403),
            ("[2001:db8::1]", 403),
            ("127.0.0.2", 200),
            ("files.example:9", 200),
            ("a.example:81", 200),
            ("a.example:82", 403),
            ("a.example", 403),
            ("localhost.example", 403),
            ("127.0.0.1.example", 403),
            ("evil.example", 403),
            ("", 400),
            ("a b", 400),
            ("evil.example@127.0.0.1", 400),
        ] {
            assert_eq!(status(&guard, &[("host", host)]), expected, "{host}");
        }
        assert_eq!(status(&guard, &[]), 400);
        let target = Uri::from_static("http://evil.example/mcp");
        let headers = HeaderMap::from_iter([(HOST, HeaderValue::from_static("localhost"))]);
        assert!(guard.check(&target, &headers).is_err());
        assert_eq!(status(&guard, &[("host", "localhost"), ("host", "evil.example")]), 400);
        // A server on all interfaces has addresses that it does not know.
        let mut public = Guard::default();
        public.listening_on("0.0.0.0".parse().unwrap());
        assert_eq!(status(&public, &[("host", "192.0.2.1")]), 200);
        assert_eq!(status(&public, &[("host", "evil.example")]), 403);
    }

    #[test]
    fn foreign_origins_are_refused() {
        let guard = Guard::default().allow_origin("https://App.example/");
        for (origin, expected) in [
            ("http://localhost:6274", 200),
            ("http://127.0.0.1", 200),
            ("http://[::1]:80", 200),
            ("https://app.example", 200),
            ("https://app.example:444", 403),
            ("http://app.example", 403),
            ("http://192.0.2.1", 403),
            ("https://evil.example", 403),
            ("http://localhost.evil.example", 403),
            ("http://localhost@evil.example", 403),
            ("file://localhost", 403),
            ("null", 403),
            ("", 403),
        ] {
            let given = [("host", "localhost"), ("origin", origin)];
            assert_eq!(status(&guard, &given), expected, "{origin}");
        }
    }

    #[test]
    fn a_page_of_another_server_on_this_machine_is_foreign_to_own_pages() {
        let guard = Guard::own_pages("127.0.0.1:81".parse().unwrap());
        let own = ("host", "127.0.0.1:81");
        for (given, expected) in [
            (&[own][..], 200),
            (&[own, ("origin", "http://127.0.0.1:81")], 200),
            (&[own, ("origin", "https://127.0.0.1:81")], 403),
            (&[own, ("origin", "http://127.0.0.1:82")], 403),
            (&[own, ("origin", "http://127.0.0.1")], 403),
            (&[own, ("origin", "http://localhost:81")], 403),
            (&[own, ("origin", "null")], 403),
            (&[("host", "127.0.0.1:82")], 403),
            (&[("host", "127.0.0.1")], 403),
            (&[("host", "localhost:81")], 403),
            (&[("host", "evil.example:81")], 403),
        ] {
            assert_eq!(status(&guard, given), expected, "{given:?}");
        }
    }
}
