//! Access to the page: the one-time key, the cookie, host and origin.

use pinfold_testkit::mcp::Reply;

use crate::stage::{Page, Stage};

/// Exchanges the key for a cookie.
pub(crate) fn enter(page: &Page) -> String {
    let (base, query) = page.base_and_query();
    let reply = page.web().send("GET", &format!("{base}?{query}"), &[], b"");
    assert_eq!(reply.status, 200, "{reply:?}");
    let cookie = reply.header("set-cookie").unwrap();
    for part in ["HttpOnly", "SameSite=Strict", &format!("Path={base}")] {
        assert!(cookie.split("; ").any(|known| known == part), "{cookie}");
    }
    cookie.split(';').next().unwrap().to_owned()
}

/// Asks for something of the page, with the cookie and more headers.
fn get(page: &Page, name: &str, headers: &[(&str, &str)]) -> Reply {
    page.web().send("GET", &format!("{}{name}", page.base_and_query().0), headers, b"")
}

fn post(page: &Page, name: &str, headers: &[(&str, &str)], body: &str) -> Reply {
    let path = format!("{}api/{name}", page.base_and_query().0);
    page.web().send("POST", &path, headers, body.as_bytes())
}

#[test]
fn the_key_works_once_and_everything_else_needs_the_cookie() {
    let stage = Stage::new(&[]);
    let page = stage.page(&[]);
    let (base, query) = page.base_and_query();
    for path in ["/", base, &format!("{base}page.js"), &format!("{base}events"), "/favicon.ico"] {
        let reply = page.web().send("GET", path, &[], b"");
        assert_eq!(reply.status, 401, "{path}: {reply:?}");
        assert!(reply.body.contains("`pinfold page`"), "{reply:?}");
    }
    // Neither a wrong key nor a browser that prefetches uses it up.
    let wrong = page.web().send("GET", &format!("{base}?key=0"), &[], b"");
    assert_eq!(wrong.status, 401);
    let ahead = [("Sec-Purpose", "prefetch")];
    assert_eq!(page.web().send("GET", &format!("{base}?{query}"), &ahead, b"").status, 403);
    assert_eq!(page.web().send("HEAD", &format!("{base}?{query}"), &[], b"").status, 401);
    let cookie = enter(&page);
    let again = page.web().send("GET", &format!("{base}?{query}"), &[], b"");
    assert_eq!((again.status, again.header("set-cookie")), (401, None), "{again:?}");
    assert!(again.body.contains("used already"), "{again:?}");
    // The browser that has the cookie may open the link again.
    let own = get(&page, &format!("?{query}"), &[("Cookie", &cookie)]);
    assert_eq!((own.status, own.header("set-cookie")), (200, None), "{own:?}");
    for (name, kind) in [
        ("", "text/html"),
        ("page.js", "text/javascript"),
        ("page.css", "text/css"),
        ("icon.svg", "image/svg+xml"),
        ("api/changes?%7B%7D", "application/json"),
    ] {
        let reply = get(&page, name, &[("Cookie", &cookie)]);
        assert_eq!(reply.status, 200, "{name}: {reply:?}");
        assert!(reply.header("content-type").unwrap().starts_with(kind), "{name}: {reply:?}");
        assert_eq!(get(&page, name, &[("Cookie", "pinfold-page=0")]).status, 401, "{name}");
    }
    // Another run does not know the cookie.
    let other = stage.page(&[]);
    assert_eq!(get(&other, "", &[("Cookie", &cookie)]).status, 401);
}

#[test]
fn every_answer_forbids_inline_code_and_loads_nothing_from_elsewhere() {
    let stage = Stage::new(&[]);
    let page = stage.page(&[]);
    let cookie = enter(&page);
    for name in ["", "page.js", "missing", "api/changes?%7B%7D", "api/missing"] {
        let reply = get(&page, name, &[("Cookie", &cookie)]);
        let policy = reply.header("content-security-policy").unwrap();
        assert!(policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'"));
        assert!(!policy.contains("unsafe") && policy.contains("frame-ancestors 'none'"));
        assert!(policy.contains("require-trusted-types-for 'script'"), "{policy}");
        for (header, value) in [
            ("x-content-type-options", "nosniff"),
            ("referrer-policy", "no-referrer"),
            ("cache-control", "no-store"),
            ("cross-origin-resource-policy", "same-origin"),
            ("cross-origin-opener-policy", "same-origin"),
        ] {
            assert_eq!(reply.header(header), Some(value), "{name}");
        }
        assert_eq!(reply.header("access-control-allow-origin"), None);
    }
    let index = get(&page, "", &[("Cookie", &cookie)]).body;
    assert!(!index.contains("<style") && !index.contains("http:") && !index.contains("https:"));
    assert_eq!(
        index.matches("<script").count(),
        index.matches("<script type=\"module\" src=").count()
    );
}

#[test]
fn foreign_hosts_origins_and_sites_are_refused() {
    let stage = Stage::new(&[]);
    let page = stage.page(&[]);
    let cookie = enter(&page);
    let cookie = ("Cookie", cookie.as_str());
    let own = format!("http://{}", page.address());
    let origin = ("Origin", own.as_str());
    let json = ("Content-Type", "application/json");
    let pause = "{\"server\": null, \"paused\": true}";
    assert_eq!(post(&page, "pause", &[cookie, origin, json], pause).status, 200);
    let port = page.address().rsplit(':').next().unwrap();
    let [localhost, other_port] = [format!("localhost:{port}"), "127.0.0.1:1".to_owned()];
    for host in ["evil.example", &localhost, &other_port, "127.0.0.1"] {
        let reply = get(&page, "", &[cookie, ("Host", host)]);
        assert_eq!(reply.status, 403, "{host}: {reply:?}");
        assert_eq!(
            post(&page, "pause", &[cookie, origin, json, ("Host", host)], pause).status,
            403
        );
    }
    for foreign in ["https://evil.example", "http://127.0.0.1:1", "null", "http://localhost"] {
        let headers = [cookie, json, ("Origin", foreign)];
        assert_eq!(post(&page, "pause", &headers, pause).status, 403, "{foreign}");
        assert_eq!(get(&page, "api/changes?%7B%7D", &[cookie, ("Origin", foreign)]).status, 403);
    }
    // A page of another server on this machine has the same site, but not the same origin.
    for site in ["cross-site", "same-site", "none"] {
        let headers = [cookie, origin, json, ("Sec-Fetch-Site", site)];
        assert_eq!(post(&page, "pause", &headers, pause).status, 403, "{site}");
        assert_eq!(get(&page, "events", &[cookie, ("Sec-Fetch-Site", site)]).status, 403);
    }
    // Requests that a form of another page can send.
    assert_eq!(post(&page, "pause", &[cookie, json], pause).status, 403, "no origin");
    let form = ("Content-Type", "text/plain");
    assert_eq!(post(&page, "pause", &[cookie, origin, form], pause).status, 415);
    assert_eq!(post(&page, "pause", &[origin, json], pause).status, 401, "no cookie");
}

#[test]
fn bad_requests_get_an_answer_and_change_nothing() {
    let stage = Stage::new(&[]);
    let page = stage.page(&[]);
    let cookie = enter(&page);
    let own = format!("http://{}", page.address());
    let headers =
        [("Cookie", cookie.as_str()), ("Origin", &own), ("Content-Type", "application/json")];
    let long = format!("{{\"server\": \"{}\", \"paused\": true}}", "x".repeat(100_000));
    for (name, body, status) in [
        ("pause", "", 400),
        ("pause", "nonsense", 400),
        ("pause", "{\"paused\": true, \"other\": 1}", 400),
        ("pause", "{\"server\": \"1-gone\", \"paused\": true}", 410),
        ("answer", "{\"server\": \"1-gone\", \"request\": 1, \"answer\": \"once\"}", 410),
        ("answer", "{\"server\": \"1\", \"request\": 1, \"answer\": \"always\"}", 400),
        ("undo", "{\"what\": {\"change\": \"nothing\"}, \"preview\": true}", 422),
        ("undo", "{\"what\": {\"change\": \"../../x\"}, \"preview\": false}", 422),
        ("missing", "{}", 404),
        ("pause", &long, 413),
    ] {
        let reply = post(&page, name, &headers, body);
        assert_eq!(reply.status, status, "{name} {body:.80}: {reply:?}");
    }
    for (query, status) in [
        ("api/changes", 400),
        ("api/changes?nonsense", 400),
        ("api/change?%7B%22id%22%3A%22none%22%7D", 422),
        (
            "api/compare?%7B%22path%22%3A%22/etc/passwd%22%2C%22from%22%3A%22now%22%2C%22to%22%3A%22now%22%7D",
            422,
        ),
        ("../secret", 404),
    ] {
        let reply = get(&page, query, &headers[..1]);
        assert_eq!(reply.status, status, "{query}: {reply:?}");
        assert!(!reply.body.contains("root:"), "{reply:?}");
    }
    let put = page.web().send("PUT", page.base_and_query().0, &headers, b"");
    assert_eq!(put.status, 405);
}
