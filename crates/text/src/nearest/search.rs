//! Finds the region of a file that a text resembles most, and aligns the two.
//!
//! One pass over the file notes which of its segments are, or are like, segments of the text (`likeness.rs`). The places
//! with most of them are aligned with the text, and the best alignment wins.

use std::collections::{HashMap, HashSet};

use super::fold::{Segment, key, key_of, segments};
use super::likeness::{Index, MAX_KEY, Work, pair_score, trigrams};

/// Segments of the text that are looked for: enough to know a region by.
pub(super) const MAX_SEGMENTS: usize = 200;
/// Places noted for one key of the text.
const MAX_PLACES: usize = 50;
/// Places noted for one segment by likeness.
const MAX_LIKE: usize = 20;
/// Places that are aligned with the text.
const MAX_ALIGNED: usize = 3;

/// How a segment is aligned, in order.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A segment of the text and the one of the region that it resembles.
    Pair(usize, usize),
    /// A segment of the text that the region does not have.
    OnlyText(usize),
    /// A segment of the region that the text does not have.
    OnlyFile(usize),
}

/// A region of the file, aligned with the text.
#[derive(Debug)]
pub(super) struct Region<'t> {
    pub(super) segments: Vec<Segment<'t>>,
    pub(super) keys: Vec<String>,
    pub(super) steps: Vec<Step>,
    pub(super) score: f32,
}

/// A segment of the file that resembles one of the text.
struct Match {
    /// The number of the file's segment less that of the text's.
    diagonal: isize,
    text: usize,
    weight: f32,
}

/// The start of every `CHECKPOINT`-th segment is noted, so that a region can be found again.
const CHECKPOINT: usize = 64;

/// The region that resembles the segments with these keys most; of equals the first, or the last.
pub(super) fn best_region<'t>(
    file: &'t str,
    start: usize,
    keys: &[String],
    prefer_last: bool,
    work: &Work<'_>,
) -> Option<Region<'t>> {
    let index = Index::new(keys);
    let mut exact: Vec<(usize, Vec<usize>)> = vec![(0, Vec::new()); keys.len()];
    let mut alike: Vec<Vec<(f32, usize)>> = vec![Vec::new(); keys.len()];
    let mut checkpoints = Vec::new();
    let (mut buffer, mut total) = (String::new(), 0);
    for (number, segment) in segments(file, 0).enumerate() {
        total = number + 1;
        if number % CHECKPOINT == 0 {
            checkpoints.push(segment.start);
        }
        // Folding takes less time than comparing.
        if !work.goes_on(segment.text.len() / 16 + 1) {
            break;
        }
        key(segment.text, &mut buffer);
        if buffer.is_empty() {
            continue;
        }
        if let Some(equals) = index.by_key.get(buffer.as_str()) {
            let (count, places) = &mut exact[equals[0]];
            *count += 1;
            if places.len() < MAX_PLACES || prefer_last {
                places.push(number);
            }
        } else if work.may_compare(0) {
            index.alike(&buffer, work, |text, likeness| {
                let places = &mut alike[text];
                if places.len() < MAX_LIKE {
                    places.push((likeness, number));
                } else if let Some(worst) =
                    places.iter_mut().min_by(|one, other| one.0.total_cmp(&other.0))
                    && (worst.0 < likeness || prefer_last && worst.0 <= likeness)
                {
                    *worst = (likeness, number);
                }
            });
        }
    }
    let mut matches = Vec::new();
    for equals in index.by_key.values() {
        let length = keys[equals[0]].len().min(40) as f32 + 1.0;
        let (count, places) = &exact[equals[0]];
        let weight = length / (1.0 + (*count).max(1) as f32).ln();
        let newest = places.len().saturating_sub(MAX_PLACES);
        for text in equals {
            let diagonal = |place: &usize| *place as isize - *text as isize;
            matches.extend(places[newest..].iter().map(|place| Match {
                diagonal: diagonal(place),
                text: *text,
                weight,
            }));
            matches.extend(alike[equals[0]].iter().map(|(likeness, place)| Match {
                diagonal: diagonal(place),
                text: *text,
                weight: length * likeness * 0.8,
            }));
        }
    }
    let slack = keys.len() / 4 + 3;
    let aligned = places_by_weight(&mut matches, slack, prefer_last).into_iter().map(|diagonal| {
        let first = usize::try_from(diagonal - slack as isize - 2).unwrap_or(0);
        let last = usize::try_from(diagonal + (keys.len() + slack + 2) as isize).unwrap_or(0);
        let checkpoint = first / CHECKPOINT;
        let at = checkpoints.get(checkpoint).copied().unwrap_or(0);
        let window = segments(&file[at..], at)
            .skip(first - checkpoint * CHECKPOINT)
            .take(last.min(total).saturating_sub(first));
        let window = window.map(|segment| Segment { start: segment.start + start, ..segment });
        align(keys, window, work)
    });
    let better = |one: Region<'t>, other: Region<'t>| {
        let later = other.segments.first().map(|s| s.start) > one.segments.first().map(|s| s.start);
        let tie = one.score == other.score && later == prefer_last;
        if other.score > one.score || tie { other } else { one }
    };
    let best = aligned.flatten().reduce(better)?;
    best.steps.iter().any(|step| matches!(step, Step::Pair(..))).then_some(best)
}

/// The diagonals around which most weight lies, best first.
fn places_by_weight(matches: &mut [Match], slack: usize, prefer_last: bool) -> Vec<isize> {
    /// Matches that are looked at on each side of one.
    const MAX_NEIGHBOURS: usize = 300;
    matches.sort_by_key(|found| (found.diagonal, found.text));
    let near = |one: &Match, other: &Match| one.diagonal.abs_diff(other.diagonal) <= slack;
    let mut weights: Vec<(f32, isize)> = Vec::new();
    let mut best: HashMap<usize, f32> = HashMap::new();
    for (number, centre) in matches.iter().enumerate() {
        if weights.last().is_some_and(|(_, diagonal)| *diagonal == centre.diagonal) {
            continue;
        }
        best.clear();
        let before = matches[..number].iter().rev().take(MAX_NEIGHBOURS);
        let after = matches[number..].iter().take(MAX_NEIGHBOURS);
        let neighbours = before
            .take_while(|other| near(centre, other))
            .chain(after.take_while(|other| near(centre, other)));
        for other in neighbours {
            let off = other.diagonal.abs_diff(centre.diagonal) as f32;
            let weight = other.weight * (1.0 - off / (2 * slack + 2) as f32);
            let known = best.entry(other.text).or_default();
            *known = known.max(weight);
        }
        weights.push((best.values().sum(), centre.diagonal));
    }
    weights.sort_by(|one, other| {
        let by_place = one.1.cmp(&other.1);
        let by_place = if prefer_last { by_place.reverse() } else { by_place };
        other.0.total_cmp(&one.0).then(by_place)
    });
    let mut chosen: Vec<isize> = Vec::new();
    for (_, diagonal) in weights {
        if chosen.iter().all(|known| known.abs_diff(diagonal) > slack / 2) {
            chosen.push(diagonal);
        }
        if chosen.len() == MAX_ALIGNED {
            break;
        }
    }
    chosen
}

/// A gap costs so much that two dissimilar segments are a gap on either side rather than a pair.
const GAP: f32 = -0.3;

/// Aligns all of the text with a part of some segments of the file.
fn align<'t>(
    keys: &[String],
    window: impl Iterator<Item = Segment<'t>>,
    work: &Work<'_>,
) -> Option<Region<'t>> {
    let segments: Vec<_> = window.collect();
    let file_keys: Vec<String> = segments.iter().map(key_of).collect();
    let sorted = |key: &String| {
        let mut hashes: Vec<usize> = trigrams(key).collect();
        hashes.sort_unstable();
        hashes
    };
    let text_trigrams: Vec<_> = keys.iter().map(sorted).collect();
    let file_trigrams: Vec<_> = file_keys.iter().map(sorted).collect();
    let (rows, columns) = (keys.len() + 1, segments.len() + 1);
    // A segment that is in both is paired with itself or with none: it may have moved.
    let in_file: HashSet<&str> = file_keys.iter().map(String::as_str).collect();
    let in_text: HashSet<&str> = keys.iter().map(String::as_str).collect();
    let mut scores = vec![0.0_f32; rows * columns];
    let mut pairs = vec![false; rows * columns];
    for row in 1..rows {
        scores[row * columns] = GAP * row as f32;
        for column in 1..columns {
            let gap_in_file = scores[(row - 1) * columns + column] + GAP;
            let gap_in_text = scores[row * columns + column - 1] + GAP;
            let (text, file) = (keys[row - 1].as_str(), file_keys[column - 1].as_str());
            if !work.goes_on(file.len().min(MAX_KEY)) {
                return None;
            }
            let fits = text == file || !in_file.contains(text) && !in_text.contains(file);
            let pair = fits.then(|| {
                let (text, file) =
                    ((text, &*text_trigrams[row - 1]), (file, &*file_trigrams[column - 1]));
                pair_score(text, file, work)
            });
            let pair = pair.flatten();
            let pair = pair.map(|score| scores[(row - 1) * columns + column - 1] + score);
            let gap = gap_in_file.max(gap_in_text);
            let here = row * columns + column;
            pairs[here] = pair.is_some_and(|pair| pair >= gap);
            scores[here] = pair.unwrap_or(f32::MIN).max(gap);
        }
    }
    let last_row = &scores[(rows - 1) * columns..];
    // Of equals the first.
    let mut column = 0;
    for (at, score) in last_row.iter().enumerate() {
        if *score > last_row[column] + 1e-6 {
            column = at;
        }
    }
    let score = last_row[column];
    let mut row = rows - 1;
    let mut steps = Vec::new();
    while row > 0 {
        let here = row * columns + column;
        if column > 0 && pairs[here] {
            (row, column) = (row - 1, column - 1);
            steps.push(Step::Pair(row, column));
        } else if column == 0 || scores[here - columns] + GAP >= scores[here - 1] + GAP {
            row -= 1;
            steps.push(Step::OnlyText(row));
        } else {
            column -= 1;
            steps.push(Step::OnlyFile(column));
        }
    }
    steps.reverse();
    // Lines before the first pair and after the last are not part of the region.
    while matches!(steps.first(), Some(Step::OnlyFile(_))) {
        steps.remove(0);
    }
    while matches!(steps.last(), Some(Step::OnlyFile(_))) {
        steps.pop();
    }
    (!steps.is_empty()).then_some(Region { segments, keys: file_keys, steps, score })
}
