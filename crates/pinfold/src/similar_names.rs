//! Suggests existing names that are similar to a missing one.

use std::sync::atomic::{AtomicUsize, Ordering};

use pinfold_confine::{
    Candidate, Error as ConfineError, FilterDecision, Kind, Name, Place, RawPath, Visitor,
    WalkEntry,
};

use crate::View;
use crate::limits::{MAX_COMPARED_NAMES, MAX_SUGGESTED_NAMES, MAX_WALKED_NAMES};
use crate::view::WalkOptions;

/// The most similar existing paths, best first, in the same form as `path`.
pub(crate) fn near_misses(view: &View<'_>, path: &RawPath) -> Vec<String> {
    let session = view.session();
    let workspace = session.workspace();
    let Ok((place, missing)) = workspace.deepest_existing(path) else { return Vec::new() };
    let Some((wanted, rest)) = missing.split_first() else { return Vec::new() };
    let Ok(entries) = workspace.entries(&place, MAX_COMPARED_NAMES) else { return Vec::new() };
    let mut scored: Vec<_> = entries
        .iter()
        .filter(|entry| rest.is_empty() || entry.kind != Kind::File)
        .map(|entry| (similarity(&wanted.to_string(), &entry.name.to_string()), entry))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
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
    let near: Vec<_> =
        near.map(|near| written(&with_rest(view, &near, rest).unwrap_or(near))).collect();
    if !near.is_empty() {
        return near;
    }
    let name = missing.last().unwrap_or(wanted);
    same_name_elsewhere(view, name).iter().map(written).collect()
}

/// Files of the same name anywhere in the workspace, those nearest to a root first.
fn same_name_elsewhere(view: &View<'_>, name: &Name) -> Vec<Place> {
    struct SameName<'n>(&'n Name, Vec<Place>);
    impl Visitor for SameName<'_> {
        fn visit(&mut self, entry: &WalkEntry<'_>) -> Result<(), ConfineError> {
            if entry.kind == Kind::File && entry.name() == self.0.as_bytes() {
                self.1.push(entry.place());
            }
            Ok(())
        }
    }
    // The caller did not ask for these, so the audit log does not have them.
    let Ok(starts) = view.session().workspace().outermost_roots() else { return Vec::new() };
    let met = AtomicUsize::new(0);
    let filter_decision = |_: &Candidate<'_>| {
        if met.fetch_add(1, Ordering::Relaxed) < MAX_WALKED_NAMES {
            FilterDecision::Default
        } else {
            FilterDecision::Exclude
        }
    };
    let options = WalkOptions { counts_withheld: &|_| false, ..WalkOptions::new(&filter_decision) };
    let walked = view.walk(&starts, options, || SameName(name, Vec::new()));
    let Ok(walked) = walked else { return Vec::new() };
    let mut places: Vec<_> = walked.visitors.into_iter().flat_map(|part| part.1).collect();
    places.sort_by_key(|place| {
        (place.path.as_bytes().iter().filter(|byte| **byte == b'/').count(), place.path.clone())
    });
    places.truncate(MAX_SUGGESTED_NAMES);
    places
}

/// The least similarity of a suggested name; 1 is equal.
const MIN_SIMILARITY: f64 = 0.6;

/// The names that are similar to `wanted`, the most similar first.
pub fn similar_names<'n>(
    wanted: &str,
    names: impl IntoIterator<Item = &'n str>,
    max: usize,
) -> Vec<&'n str> {
    most_similar(wanted, &mut names.into_iter(), max)
}

fn most_similar<'n>(
    wanted: &str,
    names: &mut dyn Iterator<Item = &'n str>,
    max: usize,
) -> Vec<&'n str> {
    let mut scored: Vec<_> = names
        .map(|name| (similarity(wanted, name), name))
        .filter(|(score, _)| *score >= MIN_SIMILARITY)
        .collect();
    scored.sort_by(|(one, a), (other, b)| other.total_cmp(one).then_with(|| a.cmp(b)));
    scored.into_iter().take(max).map(|(_, name)| name).collect()
}

/// How similar two names are, from 0 to 1, ignoring case. A name is similar if it starts with the other one, or with
/// all but its last letter, or contains three letters or more of it.
pub(crate) fn similarity(one: &str, other: &str) -> f64 {
    /// Longer names are seldom typos, and comparing them takes long.
    const MAX_LEN: usize = 80;
    if one.len().max(other.len()) > MAX_LEN || one.is_empty() || other.is_empty() {
        return 0.0;
    }
    let [one, other] = [one, other].map(str::to_lowercase);
    let alike = strsim::normalized_damerau_levenshtein(&one, &other);
    let (short, long) = if one.len() < other.len() { (&one, &other) } else { (&other, &one) };
    let mut stem = short.chars();
    stem.next_back();
    let is_part = long.starts_with(short)
        || short.len() > 2 && long.contains(short)
        || short.len() > 3 && long.starts_with(stem.as_str());
    if is_part { alike.max(MIN_SIMILARITY) } else { alike }
}

/// The whole path with one name corrected, if it exists.
fn with_rest(view: &View<'_>, near: &Place, rest: &[Name]) -> Option<Place> {
    let path = rest.iter().fold(near.path.clone(), |path, name| path.join(name));
    let whole = Place { root: near.root, path };
    let session = view.session();
    let seen = session.workspace().lstat(&session.absolute(&whole).into()).ok()?;
    view.shows_place(&seen.place, seen.meta.kind == Kind::Directory).then_some(whole)
}
