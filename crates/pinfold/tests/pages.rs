//! Reading windows of large files, and files that change meanwhile.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::io::Write as _;
use std::thread;
use std::time::Duration;

use pinfold::operations::{Edit, Open, Opened, PastEnd, Read, Write};
use pinfold::{CallOptions, Error, Page, PageEnd, ReadBeforeWrite, Session, Style};
use pinfold_confine::fault::{Meanwhile, inject, interleave};
use tempfile::TempDir;

fn window(path: &str, first: u64, lines: u64) -> Read {
    Read::new(path).with_first(first).with_lines(Some(lines)).with_style(Style::Numbered)
}

fn page(session: &Session, read: &Read) -> Page {
    session.perform(read).unwrap().outcome.page
}

/// A file of some megabytes with lines of many lengths, and its text.
fn large(dir: &TempDir) -> String {
    let mut text = String::from("\u{feff}");
    for number in 0..120_000_u32 {
        let length = number.wrapping_mul(2_654_435_761) as usize >> 22;
        text.push_str(&format!("{number} {}", "é".repeat(length % 97)));
        text.push_str(if number % 7 == 0 { "\r\n" } else { "\n" });
    }
    fs::write(dir.path().join("large.txt"), &text).unwrap();
    text
}

#[test]
fn the_next_page_of_a_large_file_does_not_count_its_lines_again() {
    let dir = TempDir::new().unwrap();
    large(&dir);
    // Until its times can tell whether it has changed since.
    thread::sleep(Duration::from_millis(2_200));
    let session = Session::open([dir.path()]).unwrap();
    let reads = |session: &Session, first: u64| {
        let report = inject(&[], || page(session, &window("large.txt", first, 50)));
        (report.result, report.calls.iter().filter(|call| **call == "pread").count())
    };
    let (_, whole) = reads(&session, 1);
    for first in [1, 2, 1_000, 60_000, 60_001, 99_999, 119_990, 120_000, 120_001] {
        let (known, few) = reads(&session, first);
        let fresh = page(&Session::open([dir.path()]).unwrap(), &window("large.txt", first, 50));
        assert_eq!(known.content, fresh.content, "line {first}");
        assert_eq!((known.total, known.shown), (fresh.total, fresh.shown), "line {first}");
        assert_eq!((known.end, known.encoding), (fresh.end, fresh.encoding), "line {first}");
        assert_eq!(known.line_ending, fresh.line_ending);
        assert!(few <= 4, "line {first}: {few} of {whole} reads");
    }
    // A file that has changed is counted anew.
    let mut file = fs::File::options().append(true).open(dir.path().join("large.txt")).unwrap();
    file.write_all(b"one more\n").unwrap();
    assert_eq!(page(&session, &window("large.txt", 119_000, 5)).total, 120_001);
}

#[test]
fn places_of_lines_are_forgotten_when_the_session_itself_changes_the_file() {
    let dir = TempDir::new().unwrap();
    let text = large(&dir);
    thread::sleep(Duration::from_millis(2_200));
    let session = Session::open([dir.path()]).unwrap();
    assert_eq!(page(&session, &window("large.txt", 1, 1)).total, 120_000);
    // The session knows the new content, but not where its lines are.
    let longer = text.replacen("60000 ", "one more\n60000 ", 1);
    session.perform(&Write::new("large.txt", longer)).unwrap();
    thread::sleep(Duration::from_millis(2_200));
    let later = page(&session, &window("large.txt", 100_002, 1));
    assert_eq!(
        (later.total, &later.content[..14]),
        (120_001, "100002\t100000 "),
        "{}",
        later.content
    );
}

#[test]
fn a_later_page_tells_the_encoding_as_the_first_one_would() {
    let dir = TempDir::new().unwrap();
    let mut content = b"plain ascii line\n".repeat(400_000);
    content.extend_from_slice(&b"caf\xE9 d\xE9j\xE0 vu\n".repeat(50));
    fs::write(dir.path().join("f.txt"), content).unwrap();
    thread::sleep(Duration::from_millis(2_200));
    let session = Session::open([dir.path()]).unwrap();
    page(&session, &window("f.txt", 1, 2));
    let later = page(&session, &window("f.txt", 400_001, 2));
    assert!(later.content.contains("café déjà vu"), "{}", later.content);
    assert_eq!(later.encoding.name(), "windows-1252");
}

#[test]
fn pages_that_follow_the_notices_are_the_whole_file() {
    let dir = TempDir::new().unwrap();
    let text = large(&dir);
    let session = Session::open([dir.path()]).unwrap();
    let mut read = String::from("\u{feff}");
    let mut first = 1;
    loop {
        let request =
            Read::new("large.txt").with_first(first).with_lines(Some(9_000)).with_budget(300_000);
        let page = page(&session, &request);
        read.push_str(&page.content);
        first += page.shown;
        if page.end == PageEnd::EndOfFile {
            break;
        }
        assert!(page.shown > 0);
    }
    assert!(read == text, "what was read is not what was written");
}

#[test]
fn a_file_that_shrinks_or_grows_while_it_is_read_ends_in_an_answer() {
    for grows in [false, true] {
        let dir = TempDir::new().unwrap();
        let path = dir.path().join("f.txt");
        fs::write(&path, "a line of text\n".repeat(100_000)).unwrap();
        let session = Session::open([dir.path()]).unwrap();
        let change = move || {
            let file = fs::File::options().append(true).open(&path).unwrap();
            if grows {
                (&file).write_all(&b"more\n".repeat(500_000)).unwrap();
            } else {
                file.set_len(300_000).unwrap();
            }
        };
        let meanwhile: Vec<Meanwhile> = vec![("pread", 3, Box::new(change))];
        let page = interleave(meanwhile, || page(&session, &window("f.txt", 1, 5))).result;
        assert_eq!(page.shown, 5);
        assert!(if grows { page.total > 100_000 } else { page.total < 100_000 }, "{}", page.total);
    }
}

/// A read of the lines alone, without a total.
fn lines_only(path: &str) -> Read {
    Read::new(path).with_whole(false).with_past_end(PastEnd::Refuse)
}

#[test]
fn lines_without_a_total_take_no_more_of_a_file_than_they_show() {
    let dir = TempDir::new().unwrap();
    let text = large(&dir);
    let session = Session::open([dir.path()]).unwrap();
    let lines: Vec<_> = text.trim_start_matches('\u{feff}').split_inclusive('\n').collect();
    let head = lines_only("large.txt").with_lines(Some(100));
    let tail = lines_only("large.txt").with_tail(Some(100));
    for (read, shown) in [(&head, &lines[..100]), (&tail, &lines[lines.len() - 100..])] {
        let report = inject(&[], || page(&session, read));
        let reads = report.calls.iter().filter(|call| **call == "pread").count();
        assert!(reads <= 4, "{reads} reads");
        assert_eq!(report.result.content, shown.concat());
        assert_eq!((report.result.shown, report.result.complete), (100, false));
    }
    // If the answer has the number of lines, they are counted.
    let cut = head.clone().with_budget(500);
    assert_eq!(page(&session, &cut).total, 120_000);
    let past_end = lines_only("large.txt").with_first(120_001);
    let refused = session.perform(&past_end).unwrap_err();
    assert!(matches!(refused, Error::OutOfRange { total: 120_000, .. }), "{refused}");
    // Neither counts as a read.
    let write = Write::new("large.txt", "new\n").with_read_rule(ReadBeforeWrite::Require);
    assert!(matches!(session.perform(&write).unwrap_err(), Error::NotRead { .. }));
    page(&session, &window("large.txt", 1, 1));
    session.perform(&write).unwrap();
}

#[test]
fn the_last_lines_are_the_same_with_and_without_a_total() {
    let dir = TempDir::new().unwrap();
    let session = Session::open([dir.path()]).unwrap();
    let text: String = (0..9_000).map(|number| format!("line {number}: caf\u{e9}\r\n")).collect();
    let utf16: Vec<u8> =
        format!("\u{feff}{text}").encode_utf16().flat_map(u16::to_le_bytes).collect();
    let latin1: Vec<u8> = text.chars().map(|letter| letter as u8).collect();
    for (content, case) in [
        (text.clone().into_bytes(), "CRLF"),
        (format!("\u{feff}{text}last").into_bytes(), "no final newline"),
        (utf16, "UTF-16"),
        (latin1, "Latin-1"),
        ([&b"ascii\n".repeat(20_000)[..], &b"caf\xE9 d\xE9j\xE0 vu\n".repeat(50)].concat(), "late"),
        ([&b"\0\x01"[..], text.as_bytes()].concat(), "binary"),
        (b"one\ntwo".to_vec(), "short"),
        (Vec::new(), "empty"),
    ] {
        fs::write(dir.path().join("f"), content).unwrap();
        for lines in [1, 3, 500] {
            let tail = lines_only("f").with_tail(Some(lines)).with_binary_as_text(true);
            let counted = page(&session, &tail.clone().with_whole(true));
            let page = page(&session, &tail);
            assert_eq!(page.content, counted.content, "{case}, {lines}");
            assert_eq!((page.shown, page.end), (counted.shown, counted.end), "{case}, {lines}");
            assert_eq!(page.encoding, counted.encoding, "{case}, {lines}");
        }
    }
}

#[test]
fn a_file_that_changes_while_its_end_is_read_ends_in_an_answer() {
    let text: String = (0..100_000).map(|number| format!("line {number}\n")).collect();
    for (size, last) in [(Some(30_000), &text[29_994..30_000]), (None, "line 99999\n")] {
        for call in 1..=3 {
            let dir = TempDir::new().unwrap();
            let path = dir.path().join("f.txt");
            fs::write(&path, &text).unwrap();
            let session = Session::open([dir.path()]).unwrap();
            let change = move || {
                let file = fs::File::options().append(true).open(&path).unwrap();
                match size {
                    Some(size) => file.set_len(size).unwrap(),
                    None => (&file).write_all(b"more\n").unwrap(),
                }
            };
            let meanwhile: Vec<Meanwhile> = vec![("pread", call, Box::new(change))];
            let tail = lines_only("f.txt").with_tail(Some(1));
            let page = interleave(meanwhile, || page(&session, &tail)).result;
            assert!(page.content.ends_with(last), "{size:?}, {call}: {}", page.content);
        }
    }
}

#[test]
fn a_file_that_is_known_to_be_read_is_read_again_if_it_may_have_changed() {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("f.txt");
    fs::write(&path, "one\ntwo\n").unwrap();
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    thread::sleep(Duration::from_millis(2_200));
    let session = Session::open([dir.path()]).unwrap();
    let read = Read::new("f.txt");
    let write = Write::new("f.txt", "new\n").with_read_rule(ReadBeforeWrite::Require);
    let is_refused =
        |session: &Session| matches!(session.perform(&write), Err(Error::Changed { .. }));
    for _ in 0..2 {
        assert_eq!(page(&session, &read).content, "one\ntwo\n");
    }
    // Another content of the same size, with the same modification time.
    fs::write(&path, "uno\ndos\n").unwrap();
    fs::File::options().append(true).open(&path).unwrap().set_modified(modified).unwrap();
    assert!(is_refused(&session));
    assert_eq!(page(&session, &read).content, "uno\ndos\n");
    thread::sleep(Duration::from_millis(2_200));
    assert_eq!(page(&session, &read).content, "uno\ndos\n");
    // A change while a file that is known is read: it is not taken for read.
    let change = {
        let path = path.clone();
        move || fs::write(&path, "eins\nzwei\n").unwrap()
    };
    let meanwhile: Vec<Meanwhile> = vec![("pread", 1, Box::new(change))];
    interleave(meanwhile, || page(&session, &read));
    assert!(is_refused(&session));
    assert_eq!(page(&session, &read).content, "eins\nzwei\n");
    session.perform(&write).unwrap();
}

#[test]
fn an_office_document_is_known_by_the_names_at_its_end() {
    let dir = TempDir::new().unwrap();
    let picture = [&b"PK\x03\x04"[..], &[0; 100], b"word/media/i.png", &[7; 200_000]].concat();
    let names = b"PK\x01\x02 word/media/i.png PK\x01\x02 [Content_Types].xml";
    fs::write(dir.path().join("a.docx"), [&picture[..], names].concat()).unwrap();
    fs::write(dir.path().join("a.zip"), &picture).unwrap();
    let session = Session::open([dir.path()]).unwrap();
    let open = |name: &str| {
        let open = Open::from(window(name, 1, 10));
        session.perform(&open).unwrap_err()
    };
    assert!(matches!(open("a.docx"), Error::UnsupportedDocument { .. }));
    assert!(matches!(open("a.zip"), Error::Binary { .. }));
}

#[test]
fn notebooks_and_images_that_were_made_to_do_harm_end_in_an_answer() {
    let dir = TempDir::new().unwrap();
    let write = |name: &str, content: &[u8]| fs::write(dir.path().join(name), content).unwrap();
    write("deep.ipynb", format!("{{\"cells\": {}", "[".repeat(100_000)).as_bytes());
    write("long.ipynb", format!("{{\"cells\": [\"{}\"]}}", "x".repeat(5_000_000)).as_bytes());
    write("bomb.gif", &[b"GIF89a", &[0xFF_u8; 10][..], &[0; 100]].concat());
    let heavy = fs::File::create(dir.path().join("heavy.png")).unwrap();
    (&heavy).write_all(b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR\0\0\0\x03\0\0\0\x02").unwrap();
    heavy.set_len(21 << 20).unwrap();
    write("many.ipynb", format!("{{\"cells\": [{}0]}}", "{\"a\":0},".repeat(1_000_000)).as_bytes());
    let images = "{\"output_type\":\"display_data\",\"data\":{\"image/png\":\"not base64!!\"}}";
    let cell = format!("{{\"cell_type\":\"code\",\"outputs\":[{images}]}}");
    write("images.ipynb", format!("\u{feff}{{\"cells\":[{cell}]}}").as_bytes());
    let session = Session::open([dir.path()]).unwrap();
    let open = |name: &str| {
        let read = window(name, 1, 10).with_past_end(PastEnd::Refuse);
        session.perform(&Open::from(read)).map(|done| done.outcome)
    };
    let deep = open("deep.ipynb").unwrap();
    assert!(
        matches!(&deep, Opened::Text { not_a_notebook: Some(problem), .. } if problem.contains("recursion")),
        "{deep:?}"
    );
    assert!(matches!(open("long.ipynb").unwrap(), Opened::Notebook { .. }));
    let many = open("many.ipynb").unwrap();
    assert!(
        matches!(&many, Opened::Text { not_a_notebook: Some(problem), .. } if problem.contains("parts")),
        "{many:?}"
    );
    match open("images.ipynb").unwrap() {
        Opened::Notebook { reading, notebook } => {
            assert!(notebook.images.is_empty());
            assert!(reading.page.content.contains("[image/png, not shown: it is damaged]"));
        }
        other => panic!("{other:?}"),
    }
    for name in ["bomb.gif", "heavy.png"] {
        let refused = open(name).unwrap_err();
        assert!(matches!(refused, Error::ImageTooLarge { .. }), "{refused}");
    }
}

#[test]
fn a_cached_file_is_read_once_and_nothing_else_is_opened() {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("a.txt");
    fs::write(&path, "then\n").unwrap();
    let session = Session::open([dir.path()]).unwrap();
    let read = Read::new("a.txt");
    // Some file systems cannot say what is cached.
    let Some(cached_file) = session.cached_file(&read) else { return };
    fs::write(dir.path().join("b.txt"), "now\n").unwrap();
    fs::rename(dir.path().join("b.txt"), &path).unwrap();
    let call = CallOptions::default().with_cached_file(cached_file);
    let content = || session.perform_with(&read, &call).map(|done| done.outcome.page.content);
    assert_eq!(content().unwrap(), "then\n");
    assert!(matches!(content(), Err(Error::Internal { .. })));
    // The session has read an older version of the file.
    let edit = Edit::new("a.txt", "then", "later");
    assert!(session.perform(&edit).is_err());
}

#[cfg(not(feature = "pdf"))]
#[test]
fn a_pdf_is_unsupported_without_the_feature() {
    let dir = TempDir::new().unwrap();
    fs::write(dir.path().join("a.pdf"), "%PDF-1.7\n\0").unwrap();
    let session = Session::open([dir.path()]).unwrap();
    let refused = session.perform(&Open::new("a.pdf"));
    assert!(matches!(refused, Err(Error::UnsupportedDocument { .. })), "{refused:?}");
}
