//! Hostile PDFs, through the command line.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fmt::Write as _;
use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use pinfold_testkit::mcp::Lines;
use serde_json::{Value, json};
use tempfile::TempDir;

/// A PDF of numbered objects, the first of which is the catalog.
fn pdf(objects: &[String]) -> Vec<u8> {
    let mut text = String::from("%PDF-1.7\n");
    let mut offsets = Vec::new();
    for (object, number) in objects.iter().zip(1..) {
        offsets.push(text.len());
        write!(text, "{number} 0 obj\n{object}\nendobj\n").unwrap();
    }
    let start = text.len();
    write!(text, "xref\n0 {}\n0000000000 65535 f \n", objects.len() + 1).unwrap();
    offsets.iter().for_each(|offset| writeln!(text, "{offset:010} 00000 n ").unwrap());
    let size = objects.len() + 1;
    write!(text, "trailer << /Size {size} /Root 1 0 R >>\nstartxref\n{start}\n%%EOF\n").unwrap();
    text.into_bytes()
}

fn stream(content: &str) -> String {
    format!("<< /Length {} >>\nstream\n{content}\nendstream", content.len())
}

/// A document with one page that draws `content`, and more objects from number 6 on.
fn one_page(content: &str, more: &[String]) -> Vec<u8> {
    let mut objects = vec![
        "<< /Type /Catalog /Pages 2 0 R >>".to_owned(),
        "<< /Type /Pages /Kids [3 0 R] /Count 1 >>".into(),
        "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 4 0 R \
         /Resources << /Font << /F 5 0 R >> /XObject << /X 6 0 R >> >> >>"
            .into(),
        stream(content),
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>".into(),
    ];
    objects.extend_from_slice(more);
    pdf(&objects)
}

/// The answer of `Read` to a document, within some seconds.
fn read(content: &[u8], deadline: u64) -> Value {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.pdf");
    fs::write(&path, content).unwrap();
    let start = Instant::now();
    let output = Command::new(env!("CARGO_BIN_EXE_pinfold"))
        .args(["call", "--root", dir.path().to_str().unwrap(), "--no-journal"])
        .args(["--deadline-seconds", &deadline.to_string()])
        .args(["Read", &json!({"file_path": path}).to_string()])
        .env("XDG_CONFIG_HOME", dir.path())
        .output()
        .unwrap();
    assert!(start.elapsed() < Duration::from_secs(deadline + 20), "{:?}", start.elapsed());
    assert!(output.status.code().is_some_and(|code| code < 2), "{output:?}");
    serde_json::from_slice(&output.stdout).unwrap()
}

#[test]
fn the_text_of_a_page_is_read() {
    let content = "BT /F 12 Tf 50 700 Td (Hello) Tj 40 0 Td (world) Tj 0 -14 Td (Next line) Tj ET";
    let answer = read(&one_page(content, &[]), 60);
    assert_eq!(answer["content"], "--- Page 1 ---\nHello world\nNext line\n", "{answer}");
    assert_eq!(answer["metadata"]["page_count"], 1);
}

#[test]
fn hostile_documents_end_in_an_answer() {
    let repeated = |text: &str, times: usize| text.repeat(times);
    let page_loop = pdf(&[
        "<< /Type /Catalog /Pages 2 0 R >>".into(),
        "<< /Type /Pages /Kids [2 0 R 2 0 R 2 0 R] /Count 1000000000 >>".into(),
    ]);
    let nested = one_page(&format!("{}BT ET", repeated("[", 200_000)), &[]);
    let nested_dicts = pdf(&[format!(
        "<< /Type /Catalog /Pages 2 0 R /X {}1{} >>",
        repeated("<</A ", 100_000),
        repeated(">>", 100_000)
    )]);
    let form = "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources << /XObject << /X 6 0 R >> >> /Length 11 >>\nstream\n/X Do /X Do\nendstream";
    let draws_itself = one_page("/X Do", &[form.into()]);
    let saves = one_page(&repeated("q ", 3_000_000), &[]);
    let many_glyphs = one_page(
        &format!("BT /F 1 Tf {} ET", repeated("(aaaaaaaaaaaaaaaaaaaa) Tj ", 300_000)),
        &[],
    );
    let cut = one_page("BT /F 12 Tf (x) Tj ET", &[])[..300].to_vec();
    let xref_loop = b"%PDF-1.7\nxref\n0 1\n0000000000 65535 f \ntrailer << /Root 1 0 R /Prev 9 /Size 1 >>\nstartxref\n9\n%%EOF\n".to_vec();
    let encrypted = pdf(&["<< /Type /Catalog /Pages 2 0 R >>".into()]);
    let encrypted = String::from_utf8(encrypted).unwrap().replace(
        "/Root 1 0 R",
        "/Root 1 0 R /ID [<00><00>] /Encrypt << /Filter /Standard /V 2 /R 3 /Length 128 /P -4 \
         /O <0000000000000000000000000000000000000000000000000000000000000000> \
         /U <0000000000000000000000000000000000000000000000000000000000000000> >>",
    );
    for (name, content) in [
        ("page tree in a circle", page_loop),
        ("nested arrays", nested),
        ("nested dictionaries", nested_dicts),
        ("a form that draws itself", draws_itself),
        ("millions of saved states", saves),
        ("millions of glyphs", many_glyphs),
        ("cut", cut),
        ("cross references in a circle", xref_loop),
        ("encrypted", encrypted.into_bytes()),
        (
            "noise",
            [b"%PDF-1.4\n".to_vec(), (0..100_000_u32).map(|n| ((n * 7919) >> 3) as u8).collect()]
                .concat(),
        ),
    ] {
        let answer = read(&content, 5);
        let code = answer["metadata"]["code"].as_str().unwrap_or("ok");
        assert!(matches!(code, "ok" | "unsupported_document" | "timeout"), "{name}: {answer}");
        // The answer keeps within its budget.
        assert!(answer["content"].as_str().unwrap().len() < 110_000, "{name}");
    }
}

#[test]
fn a_process_that_reads_a_document_ends_with_the_one_that_asked() {
    let forms = nested_forms(10);
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.pdf");
    fs::write(&path, one_page("/X Do", &forms)).unwrap();
    let mut parent = Command::new(env!("CARGO_BIN_EXE_pinfold"))
        .args(["call", "--root", dir.path().to_str().unwrap(), "--no-journal"])
        .args(["Read", &json!({"file_path": path}).to_string()])
        .spawn()
        .unwrap();
    let children = || {
        let list = format!("/proc/{0}/task/{0}/children", parent.id());
        fs::read_to_string(list).unwrap_or_default()
    };
    let waited = |done: &dyn Fn() -> bool| {
        (0..600).any(|_| {
            std::thread::sleep(Duration::from_millis(50));
            done()
        })
    };
    assert!(waited(&|| !children().is_empty()), "no process was started");
    let child = children().trim().to_owned();
    // It asks to end with its parent, and then limits itself.
    let limited = || {
        let limits = fs::read_to_string(format!("/proc/{child}/limits")).unwrap_or_default();
        limits.lines().any(|line| line.starts_with("Max open files") && line.contains(" 16 "))
    };
    assert!(waited(&limited), "it has no limits");
    // A stopped process cannot end by itself.
    let pid = rustix::process::Pid::from_raw(child.parse().unwrap()).unwrap();
    rustix::process::kill_process(pid, rustix::process::Signal::STOP).unwrap();
    parent.kill().unwrap();
    parent.wait().unwrap();
    let gone = || {
        let status = fs::read_to_string(format!("/proc/{child}/stat")).unwrap_or_default();
        status.is_empty() || status.contains(") Z ")
    };
    assert!(waited(&gone), "it runs on");
}

#[test]
fn a_document_that_unpacks_without_end_takes_no_more_memory_than_it_may() {
    // More than a gigabyte of blanks, packed twice.
    let packed = zlib(&zlib(&vec![b' '; 64 << 20]));
    let mut objects = vec![
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents [4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R 4 0 R] >>".to_vec(),
    ];
    let head =
        format!("<< /Length {} /Filter [/FlateDecode /FlateDecode] >>\nstream\n", packed.len());
    objects.push([head.as_bytes(), &packed, b"\nendstream"].concat());
    let content = assembled(&objects);
    let answer = read(&content, 60);
    assert_eq!(answer["metadata"]["code"], "unsupported_document", "{answer}");
}

/// Bytes in zlib's format.
fn zlib(bytes: &[u8]) -> Vec<u8> {
    use std::io::Write as _;
    let mut encoder = flate2::write::ZlibEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}

/// A document of one page whose content is compressed once and decompresses to `size` spaces.
fn expanding(size: usize) -> Vec<u8> {
    let packed = zlib(&vec![b' '; size]);
    let head = format!("<< /Length {} /Filter /FlateDecode >>\nstream\n", packed.len());
    let objects = [
        b"<< /Type /Catalog /Pages 2 0 R >>".to_vec(),
        b"<< /Type /Pages /Kids [3 0 R] /Count 1 >>".to_vec(),
        b"<< /Type /Page /Parent 2 0 R /MediaBox [0 0 9 9] /Contents 4 0 R >>".to_vec(),
        [head.as_bytes(), &packed, b"\nendstream"].concat(),
    ];
    assembled(&objects)
}

/// A PDF of four objects, of which the first is the catalogue.
fn assembled(objects: &[Vec<u8>]) -> Vec<u8> {
    let mut content = b"%PDF-1.7\n".to_vec();
    for (object, number) in objects.iter().zip(1..) {
        content.extend_from_slice(format!("{number} 0 obj\n").as_bytes());
        content.extend_from_slice(object);
        content.extend_from_slice(b"\nendobj\n");
    }
    content.extend_from_slice(b"trailer << /Size 5 /Root 1 0 R >>\n%%EOF\n");
    content
}

/// Forms that draw ten others each, `levels` deep, from object 6 on. The last one draws nothing.
fn nested_forms(levels: usize) -> Vec<String> {
    (0..=levels)
        .map(|level| {
            let draws = if level < levels { "/X Do ".repeat(10) } else { String::new() };
            let resources = format!("<< /XObject << /X {} 0 R >> >>", 7 + level);
            format!(
                "<< /Type /XObject /Subtype /Form /BBox [0 0 9 9] /Resources {resources} \
                 /Length {} >>\nstream\n{draws}\nendstream",
                draws.len()
            )
        })
        .collect()
}

#[test]
fn a_page_that_expands_beyond_its_budget_is_an_error_that_says_so() {
    // Both fit the memory and the deadline, and would succeed without a budget.
    for (name, content) in [
        ("decompresses to much", expanding(100 << 20)),
        ("draws ten million forms", one_page("/X Do", &nested_forms(7))),
    ] {
        let answer = read(&content, 600);
        assert_eq!(answer["metadata"]["code"], "unsupported_document", "{name}: {answer}");
        let error = answer["error"].as_str().unwrap();
        assert!(error.contains("page 1 is too complex"), "{name}: {error}");
    }
    let answer = read(&one_page("/X Do", &nested_forms(2)), 60);
    assert_eq!(answer["success"], true, "{answer}");
}

#[test]
fn documents_that_are_read_at_once_do_not_add_up_in_the_server() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("a.pdf");
    fs::write(&path, "%PDF-1.7\n\0").unwrap();
    fs::OpenOptions::new().write(true).open(&path).unwrap().set_len(199 << 20).unwrap();
    let mut serve = Command::new(env!("CARGO_BIN_EXE_pinfold"));
    serve.args(["serve", "--no-journal", "--deadline-seconds", "5", "--root"]).arg(dir.path());
    serve.env("XDG_CONFIG_HOME", dir.path()).env("XDG_STATE_HOME", dir.path());
    let mut server = Lines::initialized(&mut serve, json!({}));
    let arguments = json!({"name": "Read", "arguments": {"file_path": path}});
    let ids: Vec<_> = (0..16).map(|_| server.ask("tools/call", arguments.clone())).collect();
    let answered = (0..).map_while(|_| server.read()).filter(|message| message.get("id").is_some());
    for message in answered.take(ids.len()) {
        let code = &message["result"]["_meta"]["pinfold/result"]["metadata"]["code"];
        assert!(matches!(code.as_str(), Some("unsupported_document" | "timeout")), "{message}");
    }
    let status = fs::read_to_string(format!("/proc/{}/status", server.process().id())).unwrap();
    let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
    let kilobytes: u64 = peak.trim().trim_end_matches(" kB").parse().unwrap();
    assert!(kilobytes < 150 * 1024, "the server took {peak}");
}
