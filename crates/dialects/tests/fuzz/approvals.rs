//! Approvals: the question decodes to the change that is made, for any content, even if the file changes while the
//! user is asked.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

use pinfold::{ApprovalAnswer, ApprovalRequest, Approver, Mode, Session, Settings};
use pinfold_dialects::{DOTTED, SCOPED, Toolbox};
use pinfold_testkit::unescaped;
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::choices::Choices;

const PIECES: [&str; 20] = [
    "one",
    "two\n",
    "\n",
    "\r\n",
    "\t",
    "%PDF-\n",
    "\0",
    "\\x41 \\u{41} \\",
    "+plus\n",
    "-minus\n",
    "@@ -1 +1 @@\n",
    "\\ No newline at end of file\n",
    "\u{200b}",
    "\u{e0041}",
    "\u{202e}evil\u{2066}",
    "\u{feff}",
    "\u{85}\u{2028}",
    "caf\u{e9}\n",
    "\u{1b}[2J",
    "# comment\n# comment\n# comment\n# comment\n# comment\n# comment\n# comment\n",
];

/// The user, who sees the file and the question, and gives the chosen answer. Another program may save the file
/// meanwhile.
#[derive(Debug)]
struct User {
    path: PathBuf,
    approves: bool,
    saves: Mutex<Vec<Vec<u8>>>,
    questions: Arc<Mutex<Vec<Question>>>,
}

#[derive(Debug)]
struct Question {
    headline: String,
    preview: String,
    /// The file when the question was asked.
    before: Option<Vec<u8>>,
}

impl Approver for User {
    fn ask(&self, request: &ApprovalRequest) -> ApprovalAnswer {
        let before = fs::read(&self.path).ok();
        let (headline, preview) = (request.headline(), request.preview(usize::MAX));
        self.questions.lock().unwrap().push(Question { headline, preview, before });
        if let Some(content) = self.saves.lock().unwrap().pop() {
            fs::write(&self.path, content).unwrap();
        }
        if self.approves { ApprovalAnswer::Once } else { ApprovalAnswer::Denied(None) }
    }
}

pub(crate) fn approved_changes(choices: &mut Choices) {
    let dir = TempDir::new().unwrap();
    let path = dir.path().join("f");
    if !choices.once_in(4) {
        fs::write(&path, bytes(choices)).unwrap();
    }
    let approves = !choices.once_in(5);
    let saves = (0..choices.below(3)).map(|_| bytes(choices)).collect();
    let questions: Arc<Mutex<Vec<Question>>> = Arc::default();
    let user = User {
        path: path.clone(),
        approves,
        saves: Mutex::new(saves),
        questions: questions.clone(),
    };
    let mut settings = Settings::default();
    settings.permissions.mode = Mode::Ask;
    let session = Session::with_settings([dir.path()], settings).unwrap().with_approver(user);
    let tools = Toolbox::new(session, &[&DOTTED, &SCOPED]);
    let content = choices.text(&PIECES, 8);
    let (tool, arguments) = match choices.below(4) {
        0 => ("file.delete", json!({"path": "f"})),
        1 => {
            let encoding = *choices.pick(&["latin1", "utf-16le", "utf-16be", "windows-1252"]);
            ("write_file", json!({"path": "f", "content": content, "encoding": encoding}))
        }
        2 => {
            let patches = json!([{"find": "two", "replace": content}]);
            ("file.patch", json!({"path": "f", "patches": patches}))
        }
        _ => ("file.write", json!({"path": "f", "content": content})),
    };
    let answer = tools.call(tool, arguments).to_json();
    let questions = questions.lock().unwrap();
    check(&path, approves, &answer, &questions);
}

/// The bytes of a file: text, sometimes with invalid bytes.
fn bytes(choices: &mut Choices) -> Vec<u8> {
    let mut content = choices.text(&PIECES, 8).into_bytes();
    if choices.once_in(4) {
        let bytes: [&[u8]; 3] = [b"\xff\xfe", b"\x80", b"\xc3\x28\n"];
        content.extend_from_slice(choices.pick::<&[u8]>(&bytes));
    }
    content
}

fn check(path: &Path, approves: bool, answer: &Value, questions: &[Question]) {
    let after = fs::read(path).ok();
    let what = format!("{answer}\n{questions:#?}\nafter: {after:?}");
    assert_eq!(fs::read_dir(path.parent().unwrap()).unwrap().count(), usize::from(after.is_some()));
    for (number, Question { headline, preview, .. }) in questions.iter().enumerate() {
        let invisible = |text: &str| text.chars().any(|it| it.is_control() && !"\n\t".contains(it));
        assert!(!invisible(headline) && !invisible(preview), "{what}");
        let first = questions[..number].iter().all(|earlier| earlier.preview == *preview);
        assert!(first || headline.starts_with("The file changed since"), "{what}");
    }
    if answer.get("error").is_some() {
        return;
    }
    // Without a change, there is no question.
    let Some(Question { preview, before, .. }) = questions.last() else { return };
    assert!(approves, "{what}");
    let Some(after) = after else {
        let expected = format!("deletes a file of {} bytes", before.as_ref().unwrap().len());
        return assert_eq!(*preview, expected, "{what}");
    };
    let printed = preview.lines().find(|line| line.starts_with("after: "));
    if let Some(printed) = printed.filter(|_| !preview.starts_with("---")) {
        let hash = pinfold_confine::hash(&after);
        assert!(printed.ends_with(&format!("{} bytes, blake3 {hash}", after.len())), "{what}");
    } else {
        assert_eq!(applied(before.as_deref().unwrap_or_default(), preview), after, "{what}");
    }
}

/// A file after the diff that a preview shows.
fn applied(before: &[u8], preview: &str) -> Vec<u8> {
    let mut old = before.split_inclusive(|byte| *byte == b'\n').enumerate().peekable();
    let mut new: Vec<u8> = Vec::new();
    let mut lines = preview.lines().skip_while(|line| !line.starts_with("@@ ")).peekable();
    while let Some(line) = lines.next() {
        if let Some(header) = line.strip_prefix("@@ -") {
            let range = header.split(' ').next().unwrap();
            let (start, count) = range.split_once(',').unwrap_or((range, "1"));
            let start: usize = start.parse().unwrap();
            let start = if count == "0" { start } else { start - 1 };
            while let Some((_, line)) = old.next_if(|(number, _)| *number < start) {
                new.extend_from_slice(line);
            }
            continue;
        }
        let (sign, text) = line.split_at(1);
        let mut text = unescaped(text);
        if lines.next_if(|next| *next == "\\ No newline at end of file").is_none() {
            text.push(b'\n');
        }
        if sign != "+" {
            assert_eq!(old.next().unwrap().1, text, "{preview}");
        }
        if sign != "-" {
            new.extend_from_slice(&text);
        }
    }
    old.for_each(|(_, line)| new.extend_from_slice(line));
    new
}
