//! Names and contents that try to act as markup or control characters.

use pinfold_testkit::mcp::answer;

use crate::browser::Browser;
use crate::stage::{Stage, answered, write};

/// A name that is markup, with a character that reverses the text after it.
const NAME: &str = "<img src=x onerror=alert(1)>\u{202e}txt.exe";

/// Markup, escape sequences, invisible characters, and the syntax of the page's templates.
const CONTENT: &str = "<script>alert(1)</script>\n</div><iframe src=javascript:alert(1)>\n\
    \x1b]0;title\x07\x1b[2Jescape\n\u{202e}detrever\u{2066}\u{200b}hidden\n${alert(1)} {{x}} &lt; --> ]]>\n";

#[test]
fn names_and_lines_are_text_and_never_markup() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[]);
    let (mut server, _page, tab) = stage.watched(&browser, "default");
    let id = server.ask("tools/call", write(NAME, CONTENT));
    tab.wait("pin-request .line.added");
    let shown = tab.text("pin-request");
    for part in [
        "<img src=x onerror=alert(1)>\\u{202e}txt.exe",
        "<script>alert(1)</script>",
        "</div><iframe src=javascript:alert(1)>",
        "\\x1b]0;title\\x07\\x1b[2Jescape",
        "\\u{202e}detrever\\u{2066}\\u{200b}hidden",
        "${alert(1)} {{x}} &lt; --> ]]>",
    ] {
        assert!(shown.contains(part), "{part}: {shown}");
    }
    tab.wait("article.request.ready");
    tab.press("y");
    assert_eq!(answered(&mut server, id)["success"], true);
    tab.wait(".row.call a");
    tab.click(".row.call a");
    tab.wait("pin-detail .line.added");
    tab.click("pin-detail >> text=History");
    tab.wait("pin-file .line.added");
    let everything = tab.run("document.body.textContent").as_str().unwrap().to_owned();
    let is_hidden = |it: char| matches!(it, '\u{202e}' | '\u{2066}' | '\u{200b}' | '\x1b');
    assert!(!everything.contains(is_hidden), "{everything:?}");
    for element in ["iframe", "img[onerror]", "script:not([src])"] {
        assert_eq!(tab.count(element), 0, "{element}");
    }
    assert!(tab.text("h2.path").contains("<img src=x onerror=alert(1)>\\u{202e}txt.exe"));
    assert_eq!(tab.title(), "Pinfold");
    tab.assert_no_problems();
}

#[test]
fn a_line_of_ten_megabytes_is_shown_in_part() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[]);
    let (mut server, _page, tab) = stage.watched(&browser, "default");
    let line = format!("{}\nshort\n", "<b>x".repeat(2_500_000));
    let id = server.ask("tools/call", write("long.txt", &line));
    tab.wait("pin-request .line.added");
    assert!(tab.text("pin-request").len() < 50_000);
    // Missing lines are counted, and a click shows them.
    assert!(tab.text("pin-request .line.added .code").contains(" characters not shown … "));
    tab.click("pin-request >> text=Show the whole diff");
    tab.wait("pin-request .cut >> text=characters not shown");
    tab.click("pin-request >> text=Allow once");
    assert_eq!(answered(&mut server, id)["success"], true);
    tab.wait(".row.call a");
    tab.click(".row.call a");
    tab.wait("pin-detail .cut >> text=characters not shown");
    tab.wait("pin-detail .line.added .code >> text=short");
    assert_eq!(tab.count("pin-detail b b, pin-detail .code b"), 0);
    // The page still answers.
    let done = answer(
        &server.request("tools/call", serde_json::json!({"name": "file.list", "arguments": {}})),
    );
    assert!(done["files"].is_array(), "{done}");
    tab.press("1");
    tab.wait(".row.call >> text=file.list");
    tab.assert_no_problems();
}
