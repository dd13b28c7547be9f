//! The real files of a running scenario.

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde_json::{Map, Value};
use tempfile::TempDir;

/// The files, settings and calls of one scenario, in a directory of its own.
#[derive(Debug)]
pub struct Stage {
    dir: TempDir,
    front_end_directory: PathBuf,
    /// The roots. The first one has the scenario's files.
    pub roots: Vec<PathBuf>,
    /// The dialect of the called tools.
    pub dialect: String,
    /// The settings, by their names in the configuration file.
    pub settings: Map<String, Value>,
    /// The calls, and steps in between, with `$ROOT` filled in.
    pub calls: Vec<Value>,
    /// Whether it depends on what the session has read, so that every call must be made in one session.
    pub about_read_before_write: bool,
}

/// The directory with the roots. Beside it is one for the files of front ends.
const STAGE: &str = "stage";
const BACKSTAGE: &str = "front_end_directory";

/// The state of a path, in enough detail to notice every change.
#[derive(Clone, Debug, Eq, PartialEq)]
pub(crate) enum Entry {
    Directory,
    File { mode: u32, bytes: Vec<u8> },
    Link(PathBuf),
    Other,
}

pub(crate) type Entries = BTreeMap<String, Entry>;

impl Stage {
    /// The options of a package in another language, as JSON text.
    pub fn options(&self) -> String {
        let mut options = self.settings.clone();
        let roots = self.roots.iter().map(|root| root.to_str().unwrap());
        options.insert("root".into(), roots.collect());
        options.insert("dialect".into(), self.dialect.as_str().into());
        Value::from(options).to_string()
    }

    pub(crate) fn set(scenario: &Path) -> Self {
        let dir = TempDir::with_prefix("stage-").unwrap();
        let setup = setup(scenario);
        let names = match &setup["roots"] {
            Value::Array(names) => {
                names.iter().map(|name| name.as_str().unwrap().to_owned()).collect()
            }
            _ => vec!["ws".to_owned()],
        };
        fs::create_dir(dir.path().join(BACKSTAGE)).unwrap();
        let roots: Vec<_> = names.iter().map(|name| dir.path().join(STAGE).join(name)).collect();
        roots.iter().for_each(|root| fs::create_dir_all(root).unwrap());
        if scenario.join("before").exists() {
            copy(&scenario.join("before"), &roots[0]);
        }
        let dialect = setup["dialect"].as_str().unwrap_or("all").to_owned();
        let about_read_before_write =
            scenario.parent().is_some_and(|topic| topic.ends_with("read_before_write"));
        let front_end_directory = dir.path().join(BACKSTAGE);
        let (settings, calls) = (Map::new(), Vec::new());
        let mut stage = Self {
            dir,
            front_end_directory,
            roots,
            dialect,
            settings,
            calls,
            about_read_before_write,
        };
        if let Value::Object(settings) = stage.filled(setup["settings"].clone()) {
            stage.settings = settings;
        }
        for step in setup["steps"].as_array().into_iter().flatten() {
            stage.perform(&stage.filled(step.clone()));
        }
        let calls = read_json(&scenario.join("call.json")).expect("a scenario has a call.json");
        let calls = if let Value::Array(calls) = calls { calls } else { vec![calls] };
        stage.calls = calls.into_iter().map(|call| stage.filled(call)).collect();
        stage
    }

    /// A directory for the files of a front end, beside the workspace.
    pub fn front_end_directory(&self) -> &Path {
        self.front_end_directory.as_path()
    }

    /// Performs a step that no tool performs.
    pub(crate) fn perform(&self, step: &Value) {
        let text = |key: &str| step[key].as_str().map(str::to_owned);
        let path = |key: &str| {
            let path = self.roots[0].join(text(key)?);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            Some(path)
        };
        if let Some(file) = path("file") {
            fs::write(file, content(step)).unwrap();
        } else if let Some(dir) = path("dir") {
            fs::create_dir_all(dir).unwrap();
        } else if let Some(link) = path("symlink") {
            symlink(text("to").unwrap(), link).unwrap();
        } else if let Some(link) = path("hardlink") {
            fs::hard_link(path("to").unwrap(), link).unwrap();
        } else if let Some(fifo) = path("fifo") {
            let made = std::process::Command::new("mkfifo").arg(fifo).status().unwrap();
            assert!(made.success());
        } else if let Some(file) = path("chmod") {
            let mode = u32::from_str_radix(&text("mode").unwrap(), 8).unwrap();
            fs::set_permissions(file, fs::Permissions::from_mode(mode)).unwrap();
        } else if let Some(file) = path("touch") {
            let file = fs::File::options().append(true).open(file).unwrap();
            let time = Duration::from_secs(step["time"].as_u64().unwrap_or(0));
            file.set_modified(std::time::SystemTime::UNIX_EPOCH + time).unwrap();
        } else if let Some(file) = path("remove") {
            fs::remove_file(file).unwrap();
        } else {
            panic!("no such step: {step}");
        }
    }

    /// The placeholders and their paths.
    fn places(&self) -> [(&'static str, String); 3] {
        let text = |path: &Path| path.to_str().unwrap().to_owned();
        // The longer path comes first, since the other is its prefix.
        let [root, parent_directory, front_end_directory] =
            [&self.roots[0], &self.parent_directory(), &self.front_end_directory].map(|p| text(p));
        [("$ROOT", root), ("$STAGE", parent_directory), ("$BACKSTAGE", front_end_directory)]
    }

    /// The parent directory of all roots.
    fn parent_directory(&self) -> PathBuf {
        self.dir.path().join(STAGE)
    }

    /// Fills in `$ROOT` and `$STAGE` everywhere in a value.
    fn filled(&self, value: Value) -> Value {
        map_strings(value, &|text| {
            self.places()
                .iter()
                .fold(text.to_owned(), |text, (name, path)| text.replace(name, path))
        })
    }

    /// Replaces the stage's own paths by the placeholders, everywhere in a value.
    pub(crate) fn portable(&self, value: Value) -> Value {
        map_strings(value, &|text| {
            self.places()
                .iter()
                .fold(text.to_owned(), |text, (name, path)| text.replace(path, name))
        })
    }

    /// All entries in the first root by their paths, and those beside it by paths that begin with `../`.
    pub(crate) fn entries(&self) -> Entries {
        let (parent_directory, mut all) = (self.parent_directory(), Entries::new());
        collect(&parent_directory, "", &mut all);
        let root = self.roots[0].strip_prefix(&parent_directory).unwrap().to_str().unwrap();
        let name = |path: String| match path.strip_prefix(root) {
            Some("") => None,
            Some(below) if below.starts_with('/') => Some(below[1..].to_owned()),
            _ => Some(format!("../{path}")),
        };
        all.into_iter().filter_map(|(path, entry)| Some((name(path)?, entry))).collect()
    }

    /// Compares the files after the calls with the expected ones: those before, with those in `after/` and without
    /// those in `gone.json`.
    pub(crate) fn compare_tree(
        &self,
        scenario: &Path,
        mut expected: Entries,
        mut found: Entries,
        problems: &mut Vec<String>,
    ) {
        let mut new = Entries::new();
        for (dir, prefix) in [("after", ""), ("beside", "../")] {
            if scenario.join(dir).exists() {
                collect(&scenario.join(dir), prefix, &mut new);
            }
        }
        for (path, entry) in new {
            match (expected.get_mut(&path), entry) {
                // Git does not store modes, so an existing file keeps its own.
                (Some(Entry::File { bytes, .. }), Entry::File { bytes: new, .. }) => *bytes = new,
                (_, Entry::File { bytes, .. }) => {
                    let mode = match found.get(&path) {
                        Some(Entry::File { mode, .. }) => *mode,
                        _ => 0,
                    };
                    expected.insert(path, Entry::File { mode, bytes });
                }
                (_, entry) => {
                    expected.insert(path, entry);
                }
            }
        }
        let gone = read_json(&scenario.join("gone.json")).unwrap_or_default();
        for path in gone.as_array().into_iter().flatten().filter_map(Value::as_str) {
            expected.remove(path);
        }
        for (path, entry) in expected {
            match found.remove(&path) {
                Some(found) if found == entry => {}
                Some(found) => {
                    problems.push(format!("{path}:\n  expected {entry:?}\n  found    {found:?}"))
                }
                None => problems.push(format!("{path} is gone")),
            }
        }
        problems.extend(found.keys().map(|path| format!("{path} should not be there")));
    }

    /// Stores the files after the calls as the expectation.
    pub(crate) fn bless_tree(&self, scenario: &Path) {
        let before = Self::set(scenario).entries();
        let _ = fs::remove_dir_all(scenario.join("after"));
        let _ = fs::remove_dir_all(scenario.join("beside"));
        let changed =
            self.entries().into_iter().filter(|(path, now)| match (before.get(path), now) {
                (Some(Entry::File { bytes: old, .. }), Entry::File { bytes, .. }) => old != bytes,
                (None, Entry::File { .. }) => true,
                _ => false,
            });
        for (path, _) in changed.collect::<Vec<_>>() {
            let to = match path.strip_prefix("../") {
                Some(beside) => scenario.join("beside").join(beside),
                None => scenario.join("after").join(&path),
            };
            fs::create_dir_all(to.parent().unwrap()).unwrap();
            fs::copy(self.roots[0].join(&path), to).unwrap();
        }
    }
}

/// The setup of a scenario. The topic's own `setup.json` applies, too, and its steps come first.
fn setup(scenario: &Path) -> Value {
    let read = |dir: &Path| read_json(&dir.join("setup.json")).unwrap_or_default();
    let (mut topic, own) = (scenario.parent().map(read).unwrap_or_default(), read(scenario));
    if topic.is_null() {
        return own;
    }
    let own = own.as_object().cloned().unwrap_or_default();
    for (key, value) in own {
        match (&mut topic[&key], value) {
            (Value::Array(known), Value::Array(more)) => known.extend(more),
            (known, value) => *known = value,
        }
    }
    topic
}

fn content(step: &Value) -> Vec<u8> {
    if let Some(hex) = step["hex"].as_str() {
        let pairs = hex.as_bytes().chunks(2).map(|pair| str::from_utf8(pair).unwrap());
        return pairs.map(|pair| u8::from_str_radix(pair, 16).unwrap()).collect();
    }
    let times = usize::try_from(step["times"].as_u64().unwrap_or(1)).unwrap();
    let text = step["text"].as_str().unwrap_or_default();
    // `{n}` is replaced by the number of the line.
    (1..=times).map(|number| text.replace("{n}", &number.to_string())).collect::<String>().into()
}

fn read_json(path: &Path) -> Option<Value> {
    let text = fs::read_to_string(path).ok()?;
    let value = serde_json::from_str(&text);
    Some(value.unwrap_or_else(|error| panic!("{}: {error}", path.display())))
}

fn map_strings(value: Value, change: &impl Fn(&str) -> String) -> Value {
    match value {
        Value::String(text) => change(&text).into(),
        Value::Array(items) => items.into_iter().map(|item| map_strings(item, change)).collect(),
        Value::Object(object) => {
            let fields = object.into_iter().map(|(key, value)| (key, map_strings(value, change)));
            Value::Object(fields.collect())
        }
        other => other,
    }
}

fn copy(from: &Path, to: &Path) {
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let to = to.join(entry.file_name());
        let kind = entry.file_type().unwrap();
        if kind.is_dir() {
            fs::create_dir_all(&to).unwrap();
            copy(&entry.path(), &to);
        } else if kind.is_symlink() {
            symlink(fs::read_link(entry.path()).unwrap(), to).unwrap();
        } else {
            fs::copy(entry.path(), to).unwrap();
        }
    }
}

fn collect(dir: &Path, prefix: &str, entries: &mut Entries) {
    for entry in fs::read_dir(dir).unwrap() {
        let entry = entry.unwrap();
        let name = format!("{prefix}{}", entry.file_name().to_string_lossy());
        let (path, kind) = (entry.path(), entry.file_type().unwrap());
        let found = if kind.is_dir() {
            collect(&path, &format!("{name}/"), entries);
            Entry::Directory
        } else if kind.is_symlink() {
            Entry::Link(fs::read_link(path).unwrap())
        } else if kind.is_fifo() || kind.is_socket() {
            Entry::Other
        } else {
            let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o7777;
            Entry::File { mode, bytes: fs::read(path).unwrap() }
        };
        entries.insert(name, found);
    }
}
