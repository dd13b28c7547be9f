//! The context of a tool call: session, options and dialect.

use std::path::{Path, PathBuf};

use pinfold::{CallOptions, Encoding, Error, Place, RawPath, ReadBeforeWrite, Session};
use schemars::JsonSchema;
use serde::Deserialize;

use crate::names::AnswerNames;
use crate::phrases::shortened;

/// The session and the call of a tool.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ToolContext<'s> {
    /// The session.
    pub session: &'s Session,
    /// The call.
    pub call: &'s CallOptions,
    /// The names in the tool's answers.
    pub names: &'static AnswerNames,
    /// Whether tools of the session require that a file was read before they change it, so that reads have to be
    /// recorded.
    pub requires_reads: bool,
}

impl ToolContext<'_> {
    /// Whether a file must have been read before it is changed: the setting, or `default`.
    pub(crate) fn read_rule(&self, default: ReadBeforeWrite) -> ReadBeforeWrite {
        self.session.settings().read_before_write.unwrap_or(default)
    }

    /// The maximum size of an answer's text in bytes: the setting, or `default`.
    pub(crate) fn budget(&self, default: usize) -> usize {
        self.session.settings().max_output_bytes.unwrap_or(default)
    }

    /// How many bytes of text a search reads to count the matches that are not on its page.
    pub(crate) fn max_count_bytes(&self) -> u64 {
        self.session.settings().max_count_bytes
    }

    /// A path for the user: relative to its root.
    pub(crate) fn short_path(&self, path: &str) -> String {
        let mut roots = self.session.roots();
        let below = roots.find_map(|root| Path::new(path).strip_prefix(root).ok());
        let short = match below {
            Some(below) if below == Path::new("") => ".".into(),
            Some(below) => below.to_string_lossy().into_owned(),
            None => path.to_owned(),
        };
        RawPath::from(short).to_string()
    }

    /// The encoding with a label.
    pub(crate) fn encoding(&self, argument: &str, label: &str) -> Result<Encoding, Error> {
        Encoding::for_label(label).ok_or_else(|| {
            let known = "use a label such as `utf-8`, `utf-16`, `latin1` or `shift_jis`";
            let label = shortened(label);
            Error::InvalidArgument(format!("`{argument}`: there is no encoding `{label}`; {known}"))
        })
    }

    /// A path as it was given, for an answer.
    pub(crate) fn given(&self, path: &str) -> String {
        RawPath::from(path).to_string()
    }

    /// The absolute path of a path. Symlinks are not followed.
    pub(crate) fn absolute_path(&self, path: &str) -> String {
        let absolute = self.session.base().join(path);
        // Removes `.` and a slash at the end.
        let absolute: PathBuf = absolute.components().collect();
        RawPath::from(absolute.to_string_lossy()).to_string()
    }

    /// The absolute path of a search's directory, or what is searched without one.
    pub(crate) fn searched_directory(&self, directory: Option<&RelativePath>) -> String {
        match directory.filter(|directory| !matches!(directory.as_str(), "" | ".")) {
            Some(directory) => self.absolute_path(directory.as_str()),
            None => {
                let roots = self.session.roots();
                let roots: Vec<_> = roots.map(|root| root.to_string_lossy().into_owned()).collect();
                RawPath::from(roots.join(", ")).to_string()
            }
        }
    }

    pub(crate) fn absolute(&self, place: &Place) -> String {
        self.session.absolute(place)
    }

    pub(crate) fn relative(&self, place: &Place) -> String {
        self.session.relative(place)
    }
}

/// An absolute path, or a relative one if the settings or the dialect allow it.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(from = "String")]
pub(crate) struct AbsolutePath {
    path: String,
    may_be_relative: bool,
}

impl From<String> for AbsolutePath {
    fn from(path: String) -> Self {
        Self { path, may_be_relative: false }
    }
}

impl From<RelativePath> for AbsolutePath {
    fn from(path: RelativePath) -> Self {
        Self { path: path.0, may_be_relative: true }
    }
}

impl AbsolutePath {
    /// The path, or an error with the absolute path to use.
    pub(crate) fn raw(&self, argument: &str, ctx: &ToolContext<'_>) -> Result<RawPath, Error> {
        let path = RawPath::from(self.path.as_str());
        if path.is_absolute() || ctx.session.settings().relative_paths {
            return Ok(path);
        }
        if self.may_be_relative {
            return raw_path(&self.path);
        }
        if self.path.is_empty() {
            let problem = format!("{argument} must be an absolute path; it is empty");
            return Err(Error::InvalidArgument(problem));
        }
        let root = ctx.session.base();
        refuse_home(&self.path, &RawPath::from(root.join("~").to_string_lossy()))?;
        let mut below = self.path.as_str();
        while let Some(rest) = below.strip_prefix("./") {
            below = rest.trim_start_matches('/');
        }
        if self.path.split('/').any(|part| part == "..") || below.is_empty() {
            let problem =
                format!("{argument} must be an absolute path in the workspace, {}", root.display());
            return Err(Error::InvalidArgument(problem));
        }
        // Paths also come in quotes, as URIs, and without their first slash.
        let bare = self.path.trim_matches(['"', '\'', '`']);
        let bare = bare.strip_prefix("file://").unwrap_or(bare);
        let slashed = Path::new("/").join(below);
        let absolute = if bare.starts_with('/') {
            bare.into()
        } else if slashed.starts_with(root) {
            slashed
        } else {
            root.join(below)
        };
        let instead = RawPath::from(absolute.to_string_lossy());
        Err(Error::InvalidArgument(format!("{argument} must be an absolute path; use `{instead}`")))
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.path
    }
}

/// Refuses `~/x`, which only a shell expands. `literal` is the path of a directory named `~`.
fn refuse_home(path: &str, literal: &RawPath) -> Result<(), Error> {
    if path != "~" && !path.starts_with("~/") {
        return Ok(());
    }
    Err(Error::InvalidArgument(format!(
        "`{}`: `~` is not expanded; give a path in the workspace, or `{literal}` for a directory of that name",
        RawPath::from(path)
    )))
}

/// The path as it was given. Fails if it starts with `~`.
pub(crate) fn raw_path(path: &str) -> Result<RawPath, Error> {
    refuse_home(path, &RawPath::from("./~"))?;
    Ok(path.into())
}

/// A path relative to the first root. An absolute path inside the workspace is accepted, too.
#[derive(Debug, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(transparent)]
pub(crate) struct RelativePath(String);

impl RelativePath {
    /// The path. Fails if it starts with `~`.
    pub(crate) fn raw(&self) -> Result<RawPath, Error> {
        raw_path(&self.0)
    }

    pub(crate) fn as_str(&self) -> &str {
        &self.0
    }
}
