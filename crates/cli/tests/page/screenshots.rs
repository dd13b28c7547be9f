//! The screenshots in the documentation, and the page on small screens.

use std::path::Path;

use serde_json::json;

use crate::browser::Browser;
use crate::stage::{Stage, answered, write};

const CART: &str = "from decimal import Decimal\n\n\ndef total(items):\n    \"\"\"Sum of the prices.\"\"\"\n    \
    result = 0\n    for item in items:\n        result += item.price\n    return result\n\n\n\
    def describe(items):\n    return \", \".join(item.name for item in items)\n";

/// `cargo xtask screenshots` runs this with the directory to write to.
#[test]
#[ignore = "writes the pictures of the documentation"]
fn pictures_of_the_views() {
    let directory = std::env::var_os("PINFOLD_SCREENSHOTS").expect("names a directory");
    let browser = Browser::start().expect("a browser is there");
    let stage = Stage::new(&[("src/cart.py", CART), ("README.md", "# Shop\n\nA small shop.\n")]);
    let mut server = stage.serve(&["--ask", "Edit(README.md)", "--mode", "acceptEdits"]);
    let page = stage.page(&[]);
    let tab = browser.open_with(
        &page.link,
        &json!({"viewport": {"width": 1240, "height": 680}, "locale": "en-GB", "permissions": ["notifications"]}),
    );
    tab.wait("article.server");
    let call =
        |server: &mut pinfold_testkit::mcp::Lines, name: &str, arguments: serde_json::Value| {
            server.request("tools/call", json!({"name": name, "arguments": arguments}));
        };
    call(&mut server, "file.read", json!({"path": "src/cart.py"}));
    let patches = json!([
        {"find": "result = 0", "replace": "result = Decimal(0)"},
        {"find": "result += item.price", "replace": "result += item.price * item.count"},
    ]);
    call(&mut server, "file.patch", json!({"path": "src/cart.py", "patches": patches}));
    call(&mut server, "file.search", json!({"pattern": "VAT"}));
    call(
        &mut server,
        "file.write",
        json!({"path": "src/prices.py", "content": "VAT = Decimal(\"0.19\")\n"}),
    );
    call(&mut server, "file.read", json!({"path": "src/taxes.py"}));
    let patches = json!([{"find": "A small shop.", "replace": "x"}]);
    call(&mut server, "file.patch", json!({"path": "src/cart.py", "patches": patches}));
    let text =
        "# Shop\n\nA small shop, with prices in `Decimal` and VAT.\n\n## Tests\n\nRun `pytest`.\n";
    let id = server.ask("tools/call", write("README.md", text));
    tab.wait("pin-request .line.added");
    tab.wait("article.request.ready");
    let shot = |name: &str| tab.screenshot(&Path::new(&directory).join(name));
    shot("page-now.png");
    tab.click("pin-request >> text=Allow once");
    answered(&mut server, id);
    tab.wait(".notice");
    tab.click(".notice >> button >> nth=-1");
    tab.press("2");
    tab.wait("[role=option] >> nth=2");
    tab.press("v");
    for _ in 0..3 {
        tab.press("j");
    }
    tab.wait("pin-detail .side mark");
    shot("page-changes.png");
    tab.press("v");
    let patches = json!([{"find": "def total(items):", "replace": "def total(items: list[Item]) -> Decimal:"}]);
    call(&mut server, "file.patch", json!({"path": "src/cart.py", "patches": patches}));
    tab.press("Enter");
    tab.wait("pin-file .line.added mark");
    shot("page-file.png");
    // These are for developers of the page, not for the documentation.
    if std::env::var_os("PINFOLD_SCREENSHOTS_ALL").is_some() {
        tab.resize(360, 740);
        shot("narrow-file.png");
        tab.press("2");
        tab.wait("[role=option]");
        shot("narrow-changes.png");
        tab.press("1");
        shot("narrow-now.png");
    }
    for name in ["page-now.png", "page-changes.png", "page-file.png"] {
        let bytes = std::fs::metadata(Path::new(&directory).join(name)).unwrap().len();
        assert!(bytes < 200_000, "{name} has {bytes} bytes");
    }
}

#[test]
fn a_phone_in_the_dark_shows_everything_without_scrolling_sideways() {
    let Some(browser) = Browser::start() else { return };
    let stage = Stage::new(&[("a.txt", "one\n")]);
    let mut server = stage.serve(&["--mode", "default"]);
    let page = stage.page(&[]);
    let settings = json!({"viewport": {"width": 360, "height": 740}, "colorScheme": "dark"});
    let tab = browser.open_with(&page.link, &settings);
    tab.wait("article.server");
    let fits = |view: &str| {
        let wide = "document.documentElement.scrollWidth - innerWidth";
        assert_eq!(tab.run(wide), 0, "{view}");
        let main = "(() => { const main = document.querySelector('main'); return main.scrollWidth - main.clientWidth })()";
        assert_eq!(tab.run(main), 0, "{view}");
        tab.assert_accessible();
    };
    let long = format!("{}\n", "a long line ".repeat(40));
    let id = server.ask("tools/call", write("a.txt", &long));
    tab.wait("pin-request");
    fits("Now");
    tab.click("pin-request >> text=Allow once");
    answered(&mut server, id);
    tab.wait_gone("pin-request");
    fits("Now, without requests");
    tab.click("nav >> text=Changes");
    tab.wait("[role=option]");
    fits("Changes");
    tab.click("[role=option]");
    tab.wait("pin-detail .line.added");
    fits("a change");
    tab.click("pin-detail >> text=History");
    tab.wait("pin-file .line.added");
    fits("a file");
    tab.press("?");
    tab.wait("dialog[open] >> text=allow once");
    fits("help");
}
