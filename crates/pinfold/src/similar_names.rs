//! Paths that exist and are called almost like one that does not.

use pinfold_confine::{Entry, Kind, Name, Place, RawPath};

use crate::View;
use crate::limits::{MAX_COMPARED_NAMES, MAX_SUGGESTED_NAMES};

/// Names at least this alike are worth naming; 1 is equal.
const ALIKE: f64 = 0.6;

/// The nearest existing paths, best first, written the way `path` was.
pub(crate) fn near_misses(view: &View<'_>, path: &RawPath) -> Vec<String> {
    let session = view.session();
    let workspace = session.workspace();
    let Ok((place, missing)) = workspace.deepest_existing(path) else { return Vec::new() };
    let Some((wanted, rest)) = missing.split_first() else { return Vec::new() };
    let Ok(entries) = workspace.entries(&place, MAX_COMPARED_NAMES) else { return Vec::new() };
    let mut scored: Vec<_> = entries
        .iter()
        .filter(|entry| rest.is_empty() || entry.kind != Kind::File)
        .map(|entry| (likeness(wanted, entry), entry))
        .filter(|(score, _)| *score >= ALIKE)
        .filter(|(_, entry)| {
            let near = Place { root: place.root, path: place.path.join(&entry.name) };
            view.shows_place(&near, entry.kind == Kind::Directory)
        })
        .collect();
    scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.name.cmp(&b.name)));
    let near = scored
        .into_iter()
        .take(MAX_SUGGESTED_NAMES)
        .map(|(_, entry)| Place { root: place.root, path: place.path.join(&entry.name) });
    let written = |place: &Place| {
        if path.is_absolute() { session.absolute(place) } else { session.relative(place) }
    };
    near.map(|near| written(&with_rest(view, &near, rest).unwrap_or(near))).collect()
}

fn likeness(wanted: &Name, entry: &Entry) -> f64 {
    /// Longer names are not mistyped but made up, and comparing them takes long.
    const LONGEST: usize = 80;
    let (one, other) = (wanted.as_bytes().len(), entry.name.as_bytes().len());
    if one.max(other) > LONGEST || one.max(other) > 2 * one.min(other) {
        return 0.0;
    }
    let [wanted, found] = [wanted, &entry.name].map(|name| name.to_string().to_lowercase());
    strsim::normalized_damerau_levenshtein(&wanted, &found)
}

/// The whole path with one name put right, if that leads to something.
fn with_rest(view: &View<'_>, near: &Place, rest: &[Name]) -> Option<Place> {
    let path = rest.iter().fold(near.path.clone(), |path, name| path.join(name));
    let whole = Place { root: near.root, path };
    let session = view.session();
    let seen = session.workspace().lstat(&session.absolute(&whole).into()).ok()?;
    view.shows_place(&seen.place, seen.meta.kind == Kind::Directory).then_some(whole)
}
