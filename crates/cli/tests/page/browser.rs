//! A browser for tests: `driver.mjs` with Debian's Chromium.

use std::cell::RefCell;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use pinfold_testkit::provided;
use serde_json::{Value, json};

use crate::stage::Page;

pub(crate) struct Browser {
    process: Child,
    pipes: RefCell<(Option<ChildStdin>, BufReader<ChildStdout>)>,
}

/// A page in a browser.
pub(crate) struct Tab<'b> {
    browser: &'b Browser,
    number: Value,
}

impl Browser {
    /// Starts a browser, if there is one.
    pub(crate) fn start() -> Option<Self> {
        let modules = provided("PINFOLD_PAGE_MODULES", "THE PAGE WAS NOT TRIED IN A BROWSER")?;
        let browser = provided("PINFOLD_BROWSER", "THE PAGE WAS NOT TRIED IN A BROWSER")?;
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/page/driver.mjs");
        let mut command = Command::new("node");
        command.arg(driver).arg(modules).arg(browser).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let pipes = RefCell::new((process.stdin.take(), output));
        Some(Self { process, pipes })
    }

    fn ask(&self, command: &str, mut given: Value) -> Value {
        given["command"] = command.into();
        let mut pipes = self.pipes.borrow_mut();
        writeln!(pipes.0.as_mut().unwrap(), "{given}").unwrap();
        let mut line = String::new();
        pipes.1.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect("the driver ended");
        assert_eq!(answer.get("error"), None, "{given}");
        answer
    }

    /// Opens a link in a browser without cookies.
    pub(crate) fn open(&self, link: &str) -> Tab<'_> {
        self.open_with(link, &json!({}))
    }

    /// Opens a link in a browser without cookies, with settings such as the size of the screen.
    pub(crate) fn open_with(&self, link: &str, settings: &Value) -> Tab<'_> {
        let opened = self.ask("open", json!({"url": link, "settings": settings}));
        Tab { browser: self, number: opened["page"].clone() }
    }

    /// Opens the page, and waits until it shows something.
    pub(crate) fn open_page(&self, page: &Page) -> Tab<'_> {
        let tab = self.open(&page.link);
        tab.wait("header nav");
        tab
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        drop(self.pipes.borrow_mut().0.take());
        _ = self.process.wait();
    }
}

impl<'b> Tab<'b> {
    fn ask(&self, command: &str, mut given: Value) -> Value {
        given["page"] = self.number.clone();
        self.browser.ask(command, given)
    }

    /// Opens another tab of the same browser.
    pub(crate) fn another(&self, url: &str) -> Self {
        let opened = self.ask("tab", json!({"url": url}));
        Tab { browser: self.browser, number: opened["page"].clone() }
    }

    /// Goes to a view, by the part of the address after `#`.
    pub(crate) fn view(&self, hash: &str) {
        self.run(&format!("location.hash = {hash:?}"));
    }

    pub(crate) fn click(&self, at: &str) {
        self.ask("click", json!({"at": at}));
    }

    pub(crate) fn fill(&self, at: &str, text: &str) {
        self.ask("fill", json!({"at": at, "text": text}));
    }

    pub(crate) fn press(&self, key: &str) {
        self.ask("press", json!({"key": key}));
    }

    /// Waits until something is shown.
    pub(crate) fn wait(&self, at: &str) {
        self.ask("wait", json!({"at": at}));
    }

    /// Waits until something is not there.
    pub(crate) fn wait_gone(&self, at: &str) {
        self.ask("gone", json!({"at": at}));
    }

    pub(crate) fn text(&self, at: &str) -> String {
        self.ask("text", json!({"at": at}))["text"].as_str().unwrap().to_owned()
    }

    pub(crate) fn count(&self, at: &str) -> u64 {
        self.ask("count", json!({"at": at}))["count"].as_u64().unwrap()
    }

    pub(crate) fn title(&self) -> String {
        self.ask("title", json!({}))["title"].as_str().unwrap().to_owned()
    }

    /// Runs JavaScript in the page.
    pub(crate) fn run(&self, code: &str) -> Value {
        self.ask("run", json!({"code": code}))["value"].clone()
    }

    pub(crate) fn close(self) {
        self.ask("close", json!({}));
    }

    pub(crate) fn resize(&self, width: u32, height: u32) {
        self.ask("size", json!({"width": width, "height": height}));
    }

    pub(crate) fn screenshot(&self, file: &Path) {
        self.ask("shot", json!({"file": file}));
    }

    /// Checks that the page had no errors: neither exceptions nor violations of its Content-Security-Policy.
    pub(crate) fn assert_no_problems(&self) {
        assert_eq!(self.ask("problems", json!({}))["problems"], json!([]));
    }

    /// Checks that axe finds no serious accessibility problem.
    pub(crate) fn assert_accessible(&self) {
        assert_eq!(self.ask("axe", json!({}))["found"], json!([]));
    }
}
