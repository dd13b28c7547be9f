//! Reads: a window at the end of a large file, compared with `sed`; small files, compared with `cat`.

use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::process::{Command, Stdio};

use crate::{compare, compare_slow};
use pinfold::operations::Read;
use pinfold::{Session, Style};
use serde_json::json;

const LINE: &str = "let total = items.iter().map(|item| item.price * item.count).sum();\n";

pub(crate) fn run() {
    let dir = tempfile::tempdir().unwrap();
    let lines = 1_000_000_000 / LINE.len();
    let mut file = std::io::BufWriter::new(fs::File::create(dir.path().join("large")).unwrap());
    (0..lines).for_each(|_| file.write_all(LINE.as_bytes()).unwrap());
    file.into_inner().unwrap().sync_all().unwrap();
    // Waits until its times are old enough to prove that it has not changed.
    std::thread::sleep(std::time::Duration::from_secs(3));

    let first = lines as u64 - 99;
    let window =
        Read::new("large").with_first(first).with_lines(Some(100)).with_style(Style::Numbered);
    let path = dir.path().join("large");
    let sed = || {
        let script = format!("{first},{lines}p");
        let output = Command::new("sed").arg("-n").arg(script).arg(&path).output().unwrap();
        assert_eq!(output.stdout.len(), 100 * LINE.len());
    };
    let read = |session: &Session| {
        let page = session.perform(&window).unwrap().outcome.page;
        assert_eq!((page.shown, page.total), (100, lines as u64));
    };
    let fresh = || read(&Session::open([dir.path()]).unwrap());
    compare_slow("last 100 lines of 1 GB, first time / sed -n", 5, fresh, sed);
    let session = Session::open([dir.path()]).unwrap();
    read(&session);
    compare_slow("the same again in one session / sed -n", 5, || read(&session), sed);

    let small = LINE.repeat(100);
    (0..500).for_each(|number| fs::write(dir.path().join(format!("f{number}")), &small).unwrap());
    let mut batch = Command::new(std::env::var("PINFOLD_BIN").unwrap())
        .args(["batch", "--no-journal", "--root"])
        .arg(dir.path())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut calls = batch.stdin.take().unwrap();
    let mut answers = BufReader::new(batch.stdout.take().unwrap());
    let mut number = 0;
    let ours = || {
        number = (number + 1) % 500;
        let path = dir.path().join(format!("f{number}"));
        let call = json!({"tool": "Read", "args": {"file_path": path}});
        writeln!(calls, "{call}").unwrap();
        let mut answer = String::new();
        answers.read_line(&mut answer).unwrap();
        assert!(answer.starts_with("{\"success\":true"), "{answer}");
    };
    let mut other = 0;
    let cat = || {
        other = (other + 1) % 500;
        let output =
            Command::new("cat").arg(dir.path().join(format!("f{other}"))).output().unwrap();
        assert_eq!(output.stdout.len(), small.len());
    };
    compare("read 7 KB, `pinfold batch` / cat as a process", 50, ours, cat);
    drop(calls);
    batch.wait().unwrap();
}
