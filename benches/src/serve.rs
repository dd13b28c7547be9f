//! The server: the time from its start to its first answer, and the cost of a call compared with the library.

use std::fs;
use std::path::Path;
use std::process::Command;

use crate::{Kept, compare, compare_slow};
use pinfold::Session;
use pinfold_dialects::{CLASSIC, Toolbox};
use pinfold_testkit::mcp::{Lines, Web};
use serde_json::json;

const LINE: &str = "let total = items.iter().map(|item| item.price * item.count).sum();\n";

pub(crate) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, LINE.repeat(100)).unwrap();
    let cat = || {
        let output = Command::new("cat").arg(&path).output().unwrap();
        assert_eq!(output.stdout.len(), 100 * LINE.len());
    };
    let call = json!({"file_path": path});

    let start = || {
        let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
        assert_eq!(server.call("Read", &call)["isError"], false);
    };
    compare_slow("start, handshake, read 7 KB, end / cat", 100, start, cat);

    let mut server = Lines::initialized(&mut serve(dir.path(), &[]), json!({}));
    let mut through_stdio = || assert_eq!(server.call("Read", &call)["isError"], false);
    compare("read 7 KB, stdio / cat as a process", 50, &mut through_stdio, cat);
    let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&CLASSIC]);
    let in_library = || {
        let text = toolbox.call("Read", call.clone()).to_json_text();
        assert!(text.starts_with("{\"success\":true"));
    };
    compare("read 7 KB, stdio / the library, JSON to JSON", 100, &mut through_stdio, in_library);

    let web = Web::start(&mut serve(dir.path(), &["--http", "127.0.0.1:0"]));
    let mut connection = Kept::new(&web);
    let mut over_http = || assert_eq!(connection.call("Read", &call)["isError"], false);
    compare("read 7 KB, HTTP / cat as a process", 50, &mut over_http, cat);
    compare("read 7 KB, HTTP / the library, JSON to JSON", 100, &mut over_http, in_library);
}

fn serve(root: &Path, more: &[&str]) -> Command {
    let mut command = Command::new(std::env::var("PINFOLD_BIN").unwrap());
    command.args(["serve", "--no-journal", "--root"]).arg(root).args(more);
    command
}
