//! Inserts whole lines into a document.
//!
//! The bytes before and after the new lines do not change. No line of the file is split or joined.

use std::borrow::Cow;

use crate::document::Document;
use crate::replace::{fold_line_endings, with_line_endings};
use crate::{Encoding, Unmappable};

/// A file with new lines in it.
#[derive(Clone, Debug)]
pub struct Inserted {
    /// The whole file's new bytes.
    pub bytes: Vec<u8>,
    /// The first and the last of the new lines, counting from 1.
    pub lines: (u64, u64),
}

/// The reason why nothing was inserted.
#[derive(Clone, Debug, Eq, PartialEq)]
pub enum InsertError {
    /// The file has fewer lines.
    OutOfRange {
        /// The number of its lines.
        total: u64,
    },
    /// The text has a character that the file's encoding cannot express.
    Unmappable(Unmappable),
}

/// Inserts `text` after the first `after` lines.
///
/// A line ending is added to the text if it has none. After a last line without a line ending, it is added before the
/// text instead. The line endings of the text become those of the line before it, or else of the first line.
pub fn insert_lines(
    bytes: &[u8],
    encoding: Encoding,
    after: u64,
    text: &str,
) -> Result<Inserted, InsertError> {
    let document = Document::new(bytes, encoding);
    let old = document.text();
    let ends = memchr::memchr_iter(b'\n', old.as_bytes());
    let has_final_end = old.is_empty() || old.ends_with('\n');
    let total = ends.clone().count() as u64 + u64::from(!has_final_end);
    if after > total {
        return Err(InsertError::OutOfRange { total });
    }
    let new = fold_line_endings(text);
    let count = new.matches('\n').count() as u64 + u64::from(!new.ends_with('\n'));
    let at_open_end = after == total && !has_final_end;
    let new = if at_open_end {
        Cow::Owned(format!("\n{new}"))
    } else if new.ends_with('\n') {
        new
    } else {
        new + "\n"
    };
    let offset = match usize::try_from(after).unwrap_or(usize::MAX) {
        _ if at_open_end => old.len(),
        0 => 0,
        after => ends.into_iter().nth(after - 1).map_or(old.len(), |end| end + 1),
    };
    let new = document.encode(&with_line_endings(&document, offset, offset, &new)).map_err(
        |missing| {
            let line = missing.line - u64::from(at_open_end);
            InsertError::Unmappable(Unmappable { line, ..missing })
        },
    )?;
    let bytes = document.splice(&[(offset, offset, new)]);
    let bytes = bytes.expect("a line starts where a run of bytes starts");
    Ok(Inserted { bytes, lines: (after + 1, after + count) })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_becomes_whole_lines() {
        for (old, after, text, new, lines) in [
            ("a\nb\n", 0, "x", "x\na\nb\n", (1, 1)),
            ("a\nb\n", 1, "x\n", "a\nx\nb\n", (2, 2)),
            ("a\nb\n", 2, "x\ny", "a\nb\nx\ny\n", (3, 4)),
            ("a\nb\n", 1, "", "a\n\nb\n", (2, 2)),
            ("a\nb", 2, "x", "a\nb\nx", (3, 3)),
            ("a\nb", 2, "x\n", "a\nb\nx\n", (3, 3)),
            ("a\nb", 1, "x", "a\nx\nb", (2, 2)),
            ("", 0, "x", "x\n", (1, 1)),
            ("a\r\nb\r\n", 1, "x\ny", "a\r\nx\r\ny\r\nb\r\n", (2, 3)),
            ("a\r\nb\n", 2, "x\r\n", "a\r\nb\nx\n", (3, 3)),
            ("a\r\nb\n", 0, "x", "x\r\na\r\nb\n", (1, 1)),
            ("a\r\nb", 2, "x", "a\r\nb\r\nx", (3, 3)),
        ] {
            let inserted = insert_lines(old.as_bytes(), Encoding::UTF_8, after, text).unwrap();
            assert_eq!(String::from_utf8(inserted.bytes).unwrap(), new, "{old:?} {after} {text:?}");
            assert_eq!(inserted.lines, lines, "{old:?} {after} {text:?}");
        }
    }

    #[test]
    fn lines_that_are_not_there_are_refused() {
        for (old, after, total) in [("", 1, 0), ("a\n", 2, 1), ("a\nb", 3, 2)] {
            let refused = insert_lines(old.as_bytes(), Encoding::UTF_8, after, "x").unwrap_err();
            assert_eq!(refused, InsertError::OutOfRange { total }, "{old:?}");
        }
    }

    #[test]
    fn the_bytes_of_other_lines_are_kept_in_every_encoding() {
        for label in ["utf-16", "utf-32be", "latin1"] {
            let encoding = Encoding::for_label(label).unwrap();
            let [old, new] = ["é\nz\n", "é\nü\nz\n"].map(|text| encoding.encode(text).unwrap());
            assert_eq!(insert_lines(&old, encoding, 1, "ü").unwrap().bytes, new, "{label}");
        }
        let latin1 = Encoding::for_label("latin1").unwrap();
        let refused = insert_lines(b"a", latin1, 1, "b\n\u{65e5}").unwrap_err();
        assert!(matches!(refused, InsertError::Unmappable(missing) if missing.line == 2));
        let kept = insert_lines(b"\xff\n\xfe", Encoding::UTF_8, 1, "x").unwrap();
        assert_eq!(kept.bytes, b"\xff\nx\n\xfe");
    }
}
