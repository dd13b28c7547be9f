//! The files of the page. Their source is in `web`. `npm run build` writes `page.js` and `page.css` there, which are
//! committed, so that building Pinfold needs no Node.

/// The content and the media type of a file.
pub(crate) fn file(name: &str) -> Option<(&'static [u8], &'static str)> {
    Some(match name {
        "" => (&include_bytes!("../assets/index.html")[..], "text/html; charset=utf-8"),
        "page.js" => (include_bytes!("../assets/page.js"), "text/javascript; charset=utf-8"),
        "page.css" => (include_bytes!("../assets/page.css"), "text/css; charset=utf-8"),
        "icon.svg" => (include_bytes!("../assets/icon.svg"), "image/svg+xml"),
        _ => return None,
    })
}

/// The answer to the link with the key. It makes the browser open the page. A redirect would not work: a browser that
/// comes from another site does not send the new cookie with it.
pub(crate) const ENTER: &str = "<!doctype html>\n<html lang=\"en\">\n<meta charset=\"utf-8\">\n\
    <meta http-equiv=\"refresh\" content=\"0; url=./\">\n<title>Pinfold</title>\n\
    <link rel=\"icon\" href=\"icon.svg\">\n\
    <p><a href=\"./\">Open the page</a>\n";
