//! `Grep` has the same results as ripgrep, byte for byte.
//!
//! This needs `rg`: `cargo xtask test` installs it and names it in `PINFOLD_RG`. Without it, the test prints that it
//! was skipped.

#![allow(clippy::unwrap_used, reason = "a test that cannot set up its case has failed")]
#![allow(clippy::disallowed_methods, reason = "a test looks at real files")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use pinfold::{Session, Settings};
use pinfold_dialects::{CLASSIC, Toolbox};
use pinfold_testkit::provided;
use serde_json::{Value, json};
use tempfile::TempDir;

/// The flags that give ripgrep Pinfold's settings.
const SAME: [&str; 10] = [
    "--no-config",
    "--hidden",
    "--no-require-git",
    "--no-ignore-global",
    "--no-ignore-exclude",
    "--no-ignore-parent",
    "-H",
    "--no-heading",
    "--sort",
    "path",
];
/// The names that are always skipped. They come last, since the last matching glob decides.
const SKIPPED: [&str; 8] =
    ["-g", "!.git", "-g", "!node_modules", "-g", "!__pycache__", "-g", "!.venv"];

fn ripgrep() -> Option<PathBuf> {
    provided("PINFOLD_RG", "NOT COMPARED WITH RIPGREP").map(PathBuf::from)
}

/// Real code, and files of every unusual kind.
fn tree() -> TempDir {
    let dir = TempDir::new().unwrap();
    let root = dir.path();
    for package in ["encoding_rs", "globset", "regex-syntax", "serde_json", "clap_builder"] {
        copy(&source_of(package), &root.join("code").join(package));
    }
    let odd: [(&str, Vec<u8>); 22] = [
        ("odd/crlf.txt", b"fn one\r\nfn two\r\nend".to_vec()),
        ("odd/no_end.txt", b"first\nfn last without end".to_vec()),
        ("odd/empty.txt", Vec::new()),
        ("odd/blank.txt", b"\n\n\n".to_vec()),
        ("odd/bom.txt", b"\xEF\xBB\xBFfn marked\nfn two\n".to_vec()),
        ("odd/latin.txt", b"fn caf\xE9 \xFF\xFE\nna\xEFve fn\n".to_vec()),
        ("odd/utf16.txt", utf16("fn sixteen\nplain\nfn more\n")),
        ("odd/nul_first.bin", b"fn a\0b\nfn c\n".to_vec()),
        (
            "odd/nul_later.bin",
            [&b"fn early\n"[..], &b"x\n".repeat(100_000), b"\0fn late\n"].concat(),
        ),
        (
            "odd/nul_middle.bin",
            [&b"fn x\n".repeat(20_000)[..], b"\0", &b"fn y\n".repeat(10)].concat(),
        ),
        ("odd/large.txt", b"some words fn and more\nother\n".repeat(20_000)),
        ("odd/kelvin.txt", "K K k \u{17f}s ß SS ΣΑΣ σας\n".as_bytes().to_vec()),
        ("odd/edges.txt", b"a\nfn 1\nb\nc\nfn 2\nfn 3\nd\ne\nf\ng\nfn 4".to_vec()),
        ("odd/spaces name.txt", b"fn spaces\n".to_vec()),
        (".hidden/inside.rs", b"fn hidden\n".to_vec()),
        (".dotfile", b"fn dot\n".to_vec()),
        ("node_modules/pkg/index.js", b"function fn\n".to_vec()),
        ("sub/.gitignore", b"*.log\n!keep.log\n/only_here/\ndeep/**/x.txt\n".to_vec()),
        ("sub/a.log", b"fn log\n".to_vec()),
        ("sub/keep.log", b"fn keep\n".to_vec()),
        ("sub/only_here/a.rs", b"fn only\n".to_vec()),
        ("sub/below/only_here/a.rs", b"fn elsewhere\n".to_vec()),
    ];
    let more: [(&str, &[u8]); 11] = [
        ("sub/deep/a/b/x.txt", b"fn deep\n"),
        ("sub/below/.ignore", b"secret.txt\n!b.log\n"),
        ("sub/below/secret.txt", b"fn secret\n"),
        ("sub/below/b.log", b"fn log that is wanted\n"),
        (
            ".gitignore",
            b"# comment\n\n*.tmp\nbuild/\n\\!bang.txt\n/root_only.txt\ntrailing.txt  \n[a-\n",
        ),
        ("a.tmp", b"fn tmp\n"),
        ("build/out.rs", b"fn built\n"),
        ("!bang.txt", b"fn bang\n"),
        ("sub/root_only.txt", b"fn not the root's\n"),
        ("root_only.txt", b"fn the root's\n"),
        ("trailing.txt", b"fn trailing\n"),
    ];
    let all = odd.into_iter().chain(more.map(|(path, content)| (path, content.to_vec())));
    for (path, content) in all {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }
    std::os::unix::fs::symlink("odd/edges.txt", root.join("link.txt")).unwrap();
    std::os::unix::fs::symlink("code", root.join("link_to_code")).unwrap();
    dir
}

fn utf16(text: &str) -> Vec<u8> {
    let units = std::iter::once(0xFEFF).chain(text.encode_utf16());
    units.flat_map(u16::to_le_bytes).collect()
}

/// The directory of a dependency's source.
fn source_of(package: &str) -> PathBuf {
    // Dependencies for other systems have not been fetched.
    let platform = format!("{}-unknown-linux-gnu", std::env::consts::ARCH);
    let cargo = std::env::var_os("CARGO").unwrap_or("cargo".into());
    let asked = Command::new(cargo)
        .args(["metadata", "--format-version", "1", "--offline", "--filter-platform", &platform])
        .current_dir(env!("CARGO_MANIFEST_DIR"))
        .output()
        .unwrap();
    let known: Value = serde_json::from_slice(&asked.stdout).unwrap();
    let packages = known["packages"].as_array().unwrap();
    let found = packages.iter().find(|known| known["name"] == package).unwrap();
    Path::new(found["manifest_path"].as_str().unwrap()).parent().unwrap().to_owned()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let (entry, to) = (entry.unwrap(), to.to_owned());
        let to = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

/// Arguments for `Grep`, and the same for `rg`.
fn queries() -> Vec<(Value, Vec<&'static str>)> {
    let mut queries = vec![
        (json!({"pattern": "fn"}), vec!["fn"]),
        (json!({"pattern": "zzz_no_such_thing"}), vec!["zzz_no_such_thing"]),
        (json!({"pattern": "pub fn \\w+_\\w+"}), vec!["pub fn \\w+_\\w+"]),
        (json!({"pattern": "FN", "-i": true}), vec!["-i", "FN"]),
        (json!({"pattern": "k", "-i": true}), vec!["-i", "k"]),
        (json!({"pattern": "ss", "-i": true}), vec!["-i", "ss"]),
        (json!({"pattern": "σασ", "-i": true}), vec!["-i", "σασ"]),
        (json!({"pattern": "\\bfn\\b"}), vec!["\\bfn\\b"]),
        (json!({"pattern": "^fn"}), vec!["^fn"]),
        (json!({"pattern": "end$"}), vec!["end$"]),
        (json!({"pattern": "^$"}), vec!["^$"]),
        (json!({"pattern": ""}), vec![""]),
        (json!({"pattern": "."}), vec!["."]),
        (json!({"pattern": "\\s+$"}), vec!["\\s+$"]),
        (json!({"pattern": "[^\\x00-\\x7F]"}), vec!["[^\\x00-\\x7F]"]),
        (json!({"pattern": "\\p{Lu}{4}"}), vec!["\\p{Lu}{4}"]),
        (json!({"pattern": "(?-u)\\xE9"}), vec!["(?-u)\\xE9"]),
        (json!({"pattern": "a.b(c", "literal": true}), vec!["-F", "a.b(c"]),
        (json!({"pattern": "fn(", "literal": true}), vec!["-F", "fn("]),
        (json!({"pattern": "impl|trait"}), vec!["impl|trait"]),
        (json!({"pattern": "(?i)unsafe|UNSAFE"}), vec!["(?i)unsafe|UNSAFE"]),
        (json!({"pattern": "fn", "-n": false}), vec!["-N", "fn"]),
        (json!({"pattern": "fn 2", "-A": 1}), vec!["-A1", "fn 2"]),
        (json!({"pattern": "fn 2", "-B": 2}), vec!["-B2", "fn 2"]),
        (json!({"pattern": "fn \\d", "-C": 1}), vec!["-C1", "fn \\d"]),
        (json!({"pattern": "fn \\d", "-C": 5}), vec!["-C5", "fn \\d"]),
        (json!({"pattern": "fn 1", "-C": 3, "-A": 0}), vec!["-B3", "fn 1"]),
        (json!({"pattern": "impl", "-C": 2}), vec!["-C2", "impl"]),
        (json!({"pattern": "impl", "-A": 3, "-n": false}), vec!["-A3", "-N", "impl"]),
        (json!({"pattern": "fn", "glob": "*.txt"}), vec!["-g", "*.txt", "fn"]),
        (json!({"pattern": "fn", "glob": "*.log"}), vec!["-g", "*.log", "fn"]),
        (json!({"pattern": "fn", "glob": "!*.rs"}), vec!["-g", "!*.rs", "fn"]),
        (
            json!({"pattern": "fn", "glob": "*.{rs,txt},!large*"}),
            vec!["-g", "*.{rs,txt}", "-g", "!large*", "fn"],
        ),
        (json!({"pattern": "fn", "glob": "**/below/**"}), vec!["-g", "**/below/**", "fn"]),
        (json!({"pattern": "fn", "glob": "!**/code/**"}), vec!["-g", "!**/code/**", "fn"]),
        (json!({"pattern": "fn", "type": "rust"}), vec!["-t", "rust", "fn"]),
        (json!({"pattern": "fn", "type": "toml"}), vec!["-t", "toml", "fn"]),
        (
            json!({"pattern": "name", "type": "toml", "glob": "!*orig*"}),
            vec!["-t", "toml", "-g", "!*orig*", "name"],
        ),
        (
            json!({"pattern": "fn \\d\\nfn", "multiline": true}),
            vec!["-U", "--multiline-dotall", "fn \\d\\nfn"],
        ),
        (
            json!({"pattern": "fn.*?end", "multiline": true}),
            vec!["-U", "--multiline-dotall", "fn.*?end"],
        ),
        (
            json!({"pattern": "impl[^{]*\\{\\s*fn", "multiline": true}),
            vec!["-U", "--multiline-dotall", "impl[^{]*\\{\\s*fn"],
        ),
        (json!({"pattern": "fn", "multiline": true}), vec!["-U", "--multiline-dotall", "fn"]),
        (
            json!({"pattern": "\\}\\n\\n\\n", "multiline": true, "-C": 1}),
            vec!["-U", "--multiline-dotall", "-C1", "\\}\\n\\n\\n"],
        ),
        (
            json!({"pattern": "fn", "type": "rust", "glob": "*.txt"}),
            vec!["-t", "rust", "-g", "*.txt", "fn"],
        ),
        (json!({"pattern": "fn", "type": "all"}), vec!["-t", "all", "fn"]),
        (json!({"pattern": "fn", "glob": "**/*"}), vec!["-g", "**/*", "fn"]),
        (json!({"pattern": "\\w{400}"}), vec!["\\w{400}"]),
        (json!({"pattern": "(?:[a-z]{1,30} ){1,30}fn"}), vec!["(?:[a-z]{1,30} ){1,30}fn"]),
        (
            json!({"pattern": "(?-u:\\xE9)", "multiline": true}),
            vec!["-U", "--multiline-dotall", "(?-u:\\xE9)"],
        ),
        (json!({"pattern": "sixteen"}), vec!["sixteen"]),
        (json!({"pattern": "late"}), vec!["late"]),
        (json!({"pattern": "early"}), vec!["early"]),
        (json!({"pattern": "marked"}), vec!["^fn marked"]),
    ];
    queries.last_mut().unwrap().0["pattern"] = json!("^fn marked");
    queries
}

struct Compared<'r> {
    rg: &'r Path,
    toolbox: Toolbox,
}

impl Compared<'_> {
    fn new<'r>(rg: &'r Path, root: &Path) -> Compared<'r> {
        let settings = Settings::default()
            .with_max_output_bytes(Some(usize::MAX / 2))
            .with_max_line_chars(1_000_000);
        let session = Session::with_settings([root], settings).unwrap();
        Compared { rg, toolbox: Toolbox::new(session, &[&CLASSIC]) }
    }

    fn ours(&self, arguments: &Value, mode: &str, path: &Path) -> String {
        let mut arguments = arguments.clone();
        arguments["output_mode"] = json!(mode);
        arguments["path"] = json!(path);
        arguments["head_limit"] = json!(0);
        let answer = self.toolbox.call("Grep", arguments.clone()).to_json();
        assert_eq!(answer["success"], true, "{arguments} {answer}");
        let content = answer["content"].as_str().unwrap();
        if content.starts_with("No matches found") { String::new() } else { content.to_owned() }
    }

    fn theirs(&self, arguments: &[&str], mode: &[&str], path: &Path) -> String {
        let mut command = Command::new(self.rg);
        command.args(SAME).args(mode).args(["-e", arguments.last().unwrap()]);
        command
            .args(&arguments[..arguments.len() - 1])
            .args(SKIPPED)
            .arg("--")
            .arg(path)
            .current_dir(path.parent().unwrap());
        let output = command.output().unwrap();
        assert!(output.stderr.is_empty() || output.status.code() != Some(2), "{output:?}");
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    fn compare(&self, path: &Path, (arguments, flags): &(Value, Vec<&str>)) -> usize {
        let context = |flag: &&str| !["-A", "-B", "-C"].iter().any(|name| flag.starts_with(name));
        let plain: Vec<_> = flags.iter().copied().filter(context).collect();
        let content = self.ours(arguments, "content", path);
        same(&content, &self.theirs(flags, &["-n"], path), arguments, path);
        let count = self.ours(arguments, "count", path);
        same(&count, &self.theirs(&plain, &["-c"], path), arguments, path);
        let set = |text: &str| text.lines().map(str::to_owned).collect::<BTreeSet<_>>();
        let files = self.ours(arguments, "files_with_matches", path);
        assert_eq!(set(&files), set(&self.theirs(&plain, &["-l"], path)), "{arguments} {path:?}");
        content.lines().count()
    }
}

fn same(ours: &str, theirs: &str, arguments: &Value, path: &Path) {
    if ours == theirs {
        return;
    }
    let pairs = ours.lines().zip(theirs.lines()).enumerate();
    let first = pairs.filter(|(_, (one, other))| one != other).take(3).collect::<Vec<_>>();
    let lengths = (ours.lines().count(), theirs.lines().count());
    panic!("{arguments} on {path:?}: lines {lengths:?}, first differences (ours, rg's) {first:#?}");
}

#[test]
fn answers_are_ripgreps_byte_for_byte() {
    let Some(rg) = ripgrep() else { return };
    let tree = tree();
    let root = tree.path().canonicalize().unwrap();
    let compared = Compared::new(&rg, &root);
    let queries = queries();
    assert!(queries.len() >= 40);
    let found = queries.iter().filter(|query| compared.compare(&root, query) > 0).count();
    assert!(found > queries.len() * 3 / 4, "most queries should find something: {found}");
}

#[test]
fn a_file_or_directory_that_is_named_is_searched_as_ripgrep_does() {
    let Some(rg) = ripgrep() else { return };
    let tree = tree();
    let root = tree.path().canonicalize().unwrap();
    let compared = Compared::new(&rg, &root);
    for path in [
        "odd/edges.txt",
        "odd/nul_first.bin",
        "odd/nul_later.bin",
        "odd/nul_middle.bin",
        "odd/utf16.txt",
        "odd/bom.txt",
        "odd/large.txt",
        "sub/a.log",
        "build/out.rs",
        "sub",
        "build",
        ".hidden",
        "sub/only_here",
        "code/globset",
    ] {
        for query in [
            (json!({"pattern": "fn"}), vec!["fn"]),
            (json!({"pattern": "fn", "-C": 2}), vec!["-C2", "fn"]),
            (json!({"pattern": "late|y$"}), vec!["late|y$"]),
            (
                json!({"pattern": "fn.*\\n.", "multiline": true}),
                vec!["-U", "--multiline-dotall", "fn.*\\n."],
            ),
            (json!({"pattern": "fn", "glob": "*.rs"}), vec!["-g", "*.rs", "fn"]),
        ] {
            compared.compare(&root.join(path), &query);
        }
    }
}
