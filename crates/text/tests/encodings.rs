//! Text as Python's codecs encode it is read as what it is, and edited without touching the rest.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::fs;
use std::path::PathBuf;

use pinfold_text::{
    Encoding, MatchMode, PageError, PageRequest, Replacement, Style, read_page, replace_in_order,
    text_encoding,
};

/// Every sample: the codec's name, the bytes, the text.
fn samples() -> Vec<(String, Vec<u8>, String)> {
    let directory = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/encodings");
    let mut samples = Vec::new();
    for entry in fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_some_and(|extension| extension == "bin") {
            let name = path.file_stem().unwrap().to_str().unwrap().to_owned();
            let text = fs::read_to_string(path.with_extension("txt")).unwrap();
            samples.push((name, fs::read(&path).unwrap(), text));
        }
    }
    samples.sort();
    assert!(samples.len() >= 25);
    samples
}

fn encoding(bytes: &[u8]) -> Encoding {
    text_encoding(bytes).unwrap()
}

fn request(first: u64, size: usize) -> PageRequest {
    PageRequest {
        first,
        lines: Some(10),
        style: Style::Raw,
        budget: 1 << 20,
        max_line_chars: 2_000,
        max_line_bytes: None,
        size_hint: size as u64,
        encoding: None,
        count_all: true,
    }
}

#[test]
fn samples_are_read_as_they_were_written() {
    for (name, bytes, text) in samples() {
        let page = read_page(&mut bytes.as_slice(), &request(1, bytes.len())).unwrap();
        assert_eq!(page.content, text, "{name}, taken for {}", page.encoding.name());
        assert!(!page.malformed, "{name}");
    }
}

#[test]
fn an_edit_writes_in_the_encoding_that_it_found() {
    for (name, bytes, text) in samples() {
        let found = encoding(&bytes);
        // A word of the sample itself, so that it can be expressed.
        let line = text.lines().last().unwrap();
        let word: String = line.chars().take(4).collect();
        let replacement =
            Replacement { old: line.to_owned(), new: format!("{word}{word}"), all: false };
        let done =
            replace_in_order(&bytes, found, &[replacement], MatchMode::Exact, 1 << 20, &|| true);
        let done = done.unwrap_or_else(|error| panic!("{name}: {error:?}"));
        let expected = text.replace(line, &format!("{word}{word}"));
        let page = read_page(
            &mut done.bytes.as_slice(),
            &PageRequest { encoding: Some(found), ..request(1, done.bytes.len()) },
        );
        assert_eq!(page.unwrap().content, expected, "{name}");
        // The bytes before the edit are unchanged.
        let before = text.find(line).unwrap();
        let kept = found.encode(&text[..before]).unwrap().len();
        assert_eq!(done.bytes[..kept.min(bytes.len())], bytes[..kept.min(bytes.len())], "{name}");
    }
}

#[test]
fn a_window_far_down_tells_what_ascii_before_it_could_not() {
    let ascii = "int main(void) { return 0; }\n".repeat(5_000);
    for (name, bytes, text) in samples() {
        if name.starts_with("utf_16") || name.starts_with("utf_32") || name == "utf_8_sig" {
            continue;
        }
        let content = [ascii.as_bytes(), &bytes].concat();
        let asked = request(5_001, content.len());
        let page = match read_page(&mut content.as_slice(), &asked) {
            Err(PageError::Encoding(encoding)) => {
                let again = PageRequest { encoding: Some(encoding), ..asked };
                read_page(&mut content.as_slice(), &again).unwrap()
            }
            other => other.unwrap(),
        };
        assert_eq!(page.content, text, "{name}, taken for {}", page.encoding.name());
        assert_eq!(encoding(&content).name(), page.encoding.name(), "{name}");
    }
}

#[test]
fn the_last_line_tells_the_encoding_with_and_without_an_end() {
    for end in ["", "\n"] {
        let content =
            [&b"plain ascii line\n".repeat(5_000)[..], b"caf\xE9", end.as_bytes()].concat();
        let refused = read_page(&mut content.as_slice(), &request(5_000, content.len()));
        let Err(PageError::Encoding(encoding)) = refused else { panic!("{refused:?}") };
        assert_eq!(encoding.name(), "windows-1252");
    }
}

#[test]
fn one_bad_byte_far_down_does_not_make_utf8_something_else() {
    let mut content = "größer und schöner\n".repeat(20_000).into_bytes();
    let middle = content.len() / 2;
    content[middle] = 0xFF;
    assert_eq!(encoding(&content).name(), "utf-8");
    let line = content[..middle].iter().filter(|byte| **byte == b'\n').count() as u64 + 1;
    let page = read_page(&mut content.as_slice(), &request(line, content.len())).unwrap();
    assert_eq!((page.encoding.name().as_str(), page.malformed), ("utf-8", true));
    assert!(page.content.contains('\u{fffd}'));
}
