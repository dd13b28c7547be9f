//! The packages for Node and Python: the cost of a small read, compared with the library and with the language's own
//! function.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use crate::compare_slow;
use pinfold::Session;
use pinfold_dialects::{CLASSIC, Toolbox};
use serde_json::json;

const LINE: &str = "let total = items.iter().map(|item| item.price * item.count).sum();\n";

/// The number of reads that are timed together, so that the cost of the loop does not matter.
const TOGETHER: u32 = 200;

pub(crate) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("file");
    fs::write(&path, LINE.repeat(100)).unwrap();
    let toolbox = Toolbox::new(Session::open([dir.path()]).unwrap(), &[&CLASSIC]);
    let arguments = json!({ "file_path": path }).to_string();
    let library = || {
        for _ in 0..TOGETHER {
            let arguments = serde_json::from_str(&arguments).unwrap();
            let text = toolbox.call("Read", arguments).to_json_text();
            assert!(text.starts_with("{\"success\":true"));
        }
    };
    let python = std::env::var("PINFOLD_PYTHON_PACKAGE").unwrap();
    let mut node = Driver::start("node", "read.mjs", &path, "call");
    let mut node_plain = Driver::start("node", "read.mjs", &path, "plain");
    let mut call = Driver::start(&python, "read.py", &path, "call");
    let mut execute = Driver::start(&python, "read.py", &path, "execute");
    let mut plain = Driver::start(&python, "read.py", &path, "plain");
    println!("{TOGETHER} reads of 7 KB, one after the other:");
    compare_slow("Node: call / the Rust library", 50, || node.read(), library);
    compare_slow("Node: call / fs.promises.readFile", 50, || node.read(), || node_plain.read());
    compare_slow("Python: call / the Rust library", 50, || call.read(), library);
    compare_slow("Python: await execute / the Rust library", 50, || execute.read(), library);
    compare_slow("Python: call / open().read()", 50, || call.read(), || plain.read());
}

struct Driver {
    process: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Driver {
    fn start(program: &str, driver: &str, file: &Path, way: &str) -> Self {
        let driver = Path::new(env!("CARGO_MANIFEST_DIR")).join("drivers").join(driver);
        let mut command = Command::new(program);
        command.arg(driver).arg(file).arg(way).stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = command.spawn().unwrap();
        let input = process.stdin.take().unwrap();
        let output = BufReader::new(process.stdout.take().unwrap());
        let mut driver = Self { process, input, output };
        driver.read();
        driver
    }

    fn read(&mut self) {
        writeln!(self.input, "{TOGETHER}").unwrap();
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        assert_eq!(line, "done\n");
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
