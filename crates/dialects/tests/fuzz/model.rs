//! A session, compared with a model: a map from paths to bytes, and links.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::symlink;
use std::path::Path;

use pinfold::Session;
use pinfold_dialects::{DOTTED, SCOPED, Toolbox};
use serde_json::{Value, json};
use tempfile::TempDir;

use crate::choices::Choices;

const DIRECTORIES: [&str; 4] = ["", "a/", "a/b/", "c/"];
const FILES: [&str; 3] = ["f", "g", "h"];
const LINKS: [&str; 2] = ["l", "m"];

/// The model of a directory: files, and symlinks with their literal targets.
#[derive(Clone, Default)]
struct Model {
    files: BTreeMap<String, String>,
    links: BTreeMap<String, String>,
}

/// The file or directory that a path leads to.
#[derive(Clone, Debug, PartialEq)]
enum Place {
    File(String),
    /// Nothing is there, but a file could be created.
    Free(String),
    /// The parent directory does not exist.
    Parentless,
    Directory,
    /// A link on the path is dangling or circular.
    Nowhere,
    Outside,
}

impl Model {
    fn is_directory(path: &str) -> bool {
        path.is_empty() || DIRECTORIES.contains(&format!("{path}/").as_str())
    }

    /// Where a path leads. With `last`, a link in the last component is followed, too.
    fn lead(&self, path: &str, root: &str, last: bool) -> Place {
        // A path that leaves the root and enters it again is inside.
        let path = path.strip_prefix("../ws/").unwrap_or(path);
        // The remaining names, the next one last, and whether a link has added them.
        let mut left: Vec<(String, bool)> =
            path.split('/').rev().map(|name| (name.to_owned(), false)).collect();
        let mut here = String::new();
        let mut links = 0;
        while let Some((name, brought)) = left.pop() {
            match name.as_str() {
                "" | "." => continue,
                ".." => {
                    if here.is_empty() {
                        return Place::Outside;
                    }
                    here =
                        here.rsplit_once('/').map_or(String::new(), |(above, _)| above.to_owned());
                    continue;
                }
                _ => {}
            }
            let next = if here.is_empty() { name } else { format!("{here}/{name}") };
            if let Some(target) = self.links.get(&next).filter(|_| last || !left.is_empty()) {
                links += 1;
                if links > 40 {
                    return Place::Nowhere;
                }
                let target = match target.strip_prefix('/') {
                    Some(_) => match target.strip_prefix(root) {
                        Some(below) => {
                            here.clear();
                            below
                        }
                        None => return Place::Outside,
                    },
                    None => target,
                };
                left.extend(target.split('/').rev().map(|name| (name.to_owned(), true)));
                continue;
            }
            if self.files.contains_key(&next) || self.links.contains_key(&next) {
                return if left.is_empty() { Place::File(next) } else { Place::Nowhere };
            }
            if !Self::is_directory(&next) {
                return match (left.is_empty(), brought) {
                    (true, false) => Place::Free(next),
                    (false, false) => Place::Parentless,
                    (_, true) => Place::Nowhere,
                };
            }
            here = next;
        }
        Place::Directory
    }
}

/// One session of random calls. After each, the disk is compared with the model.
pub(crate) fn session(choices: &mut Choices) {
    let dir = TempDir::new().unwrap();
    let (root, outside) = (dir.path().join("ws"), dir.path().join("out"));
    fs::create_dir_all(root.join("a/b")).unwrap();
    fs::create_dir_all(root.join("c")).unwrap();
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("f"), "SECRET\n").unwrap();
    let root_text = root.to_str().unwrap().to_owned();
    let mut model = Model::default();
    let toolbox = Toolbox::new(Session::open([&root]).unwrap(), &[&DOTTED, &SCOPED]);
    for _ in 0..40 {
        if choices.once_in(6) {
            link(choices, &mut model, &root, &root_text);
            continue;
        }
        let path = path(choices);
        step(choices, &mut model, &toolbox, &path, &root_text);
        compare(&model, &root, &outside);
    }
}

fn path(choices: &mut Choices) -> String {
    let directory = *choices
        .pick(&["", "a/", "a/b/", "c/", "c/../a/", "l/", "a/m/", "./", "../ws/", "../out/"]);
    let name = *choices.pick(&["f", "g", "h", "l", "m"]);
    format!("{directory}{name}")
}

/// Puts a link somewhere, as somebody else would.
fn link(choices: &mut Choices, model: &mut Model, root: &Path, root_text: &str) {
    let at = format!("{}{}", choices.pick(&DIRECTORIES), choices.pick(&LINKS));
    if model.files.contains_key(&at) || model.links.contains_key(&at) {
        return;
    }
    let inside = format!("{}{}", choices.pick(&DIRECTORIES), choices.pick(&FILES));
    let targets = [
        inside.clone(),
        format!("{root_text}/{inside}"),
        format!("{root_text}/a"),
        "a/b".to_owned(),
        "../out/f".to_owned(),
        "/etc/hostname".to_owned(),
        "l".to_owned(),
        "..".to_owned(),
    ];
    let target = choices.pick(&targets).clone();
    symlink(&target, root.join(&at)).unwrap();
    model.links.insert(at, target);
}

fn step(choices: &mut Choices, model: &mut Model, toolbox: &Toolbox, path: &str, root: &str) {
    let place = model.lead(path, root, true);
    let call = |tool: &str, arguments: Value| toolbox.call(tool, arguments).to_json();
    match choices.below(6) {
        // It would create directories, which the model does not have.
        0 | 1 if place == Place::Parentless => {}
        0 | 1 => {
            let content = choices.text(&["one\n", "two\n", "three", "ä\r\n", "\n"], 6);
            let answer = call("file.write", json!({"path": path, "content": content}));
            match &place {
                Place::File(at) | Place::Free(at) => {
                    assert_eq!(answer["success"], true, "write {path} ({place:?}): {answer}");
                    model.files.insert(at.clone(), content);
                }
                other => refused(&answer, other, path),
            }
        }
        2 => {
            let answer = call("read_file", json!({ "path": path }));
            match &place {
                Place::File(at) => {
                    assert_eq!(answer["content"], model.files[at], "read {path}: {answer}")
                }
                Place::Free(_) => {
                    assert_eq!(answer["error"], "FILESYSTEM_ERROR", "{path}: {answer}")
                }
                Place::Outside => {
                    assert_eq!(answer["error"], "SCOPE_VIOLATION", "{path}: {answer}")
                }
                _ => assert!(answer["error"].is_string(), "{path}: {answer}"),
            }
        }
        3 => {
            let (find, replace) =
                (*choices.pick(&["one", "two\n", "three"]), *choices.pick(&["X", "", "two"]));
            let patches = json!([{"find": find, "replace": replace}]);
            let answer = call("file.patch", json!({"path": path, "patches": patches}));
            let Place::File(at) = &place else {
                return refused(&answer, &place, path);
            };
            let content = model.files.get_mut(at).unwrap();
            // Line endings are treated as equal, so the model leaves those cases out.
            let plain = !content.contains('\r');
            match content.matches(find).count() {
                1 if plain && find != replace => {
                    assert_eq!(answer["success"], true, "patch {path}: {answer}");
                    *content = content.replacen(find, replace, 1);
                }
                _ if plain => assert!(answer["error"].is_string(), "patch {path}: {answer}"),
                _ => *content = fs::read_to_string(Path::new(root).join(at)).unwrap(),
            }
        }
        4 => {
            let answer = call("file.delete", json!({ "path": path }));
            match model.lead(path, root, false) {
                Place::File(at) => {
                    assert_eq!(answer["success"], true, "delete {path}: {answer}");
                    model.files.remove(&at);
                    model.links.remove(&at);
                }
                other => refused(&answer, &other, path),
            }
        }
        _ => {
            let answer = call("file.search", json!({"pattern": "two", "max_results": 1000}));
            let mut found: Vec<String> = answer["matches"]
                .as_array()
                .unwrap()
                .iter()
                .map(|hit| format!("{}:{}", hit["path"].as_str().unwrap(), hit["line"]))
                .collect();
            found.sort();
            let lines = |(path, content): (&String, &String)| -> Vec<String> {
                let numbered = content.lines().enumerate();
                let hits = numbered.filter(|(_, line)| line.contains("two"));
                hits.map(|(number, _)| format!("{path}:{}", number + 1)).collect()
            };
            let mut expected: Vec<String> = model.files.iter().flat_map(lines).collect();
            expected.sort();
            assert_eq!(found, expected, "{answer}");
        }
    }
}

fn refused(answer: &Value, place: &Place, path: &str) {
    assert!(answer["error"].is_string(), "{path} ({place:?}): {answer}");
    if *place == Place::Outside {
        assert_eq!(answer["error"], "path_outside_workspace", "{path}: {answer}");
    }
    assert!(!answer.to_string().contains("SECRET"), "{answer}");
}

/// Compares the disk with the model, and checks that nothing outside has changed.
fn compare(model: &Model, root: &Path, outside: &Path) {
    let mut files = BTreeMap::new();
    let mut links = BTreeMap::new();
    for directory in DIRECTORIES {
        for entry in fs::read_dir(root.join(directory)).unwrap() {
            let entry = entry.unwrap();
            let path = format!("{directory}{}", entry.file_name().to_str().unwrap());
            let kind = entry.file_type().unwrap();
            if kind.is_symlink() {
                let target = fs::read_link(entry.path()).unwrap();
                links.insert(path, target.to_str().unwrap().to_owned());
            } else if kind.is_file() {
                files.insert(path, fs::read_to_string(entry.path()).unwrap());
            }
        }
    }
    assert_eq!(files, model.files);
    assert_eq!(links, model.links);
    assert_eq!(fs::read_to_string(outside.join("f")).unwrap(), "SECRET\n");
    assert_eq!(fs::read_dir(outside).unwrap().count(), 1);
}
