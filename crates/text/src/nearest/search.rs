//! Finds the region of a file that a text resembles most, and aligns the two.
//!
//! One pass over the file finds the segments that equal or resemble segments of the text. The places with most of
//! them are aligned with the text, and the best alignment wins. The work is bounded: after `MAX_WORK` steps only
//! segments with the same key are found.

use std::collections::{HashMap, HashSet};

use super::fold::{Segment, key, segments};

/// The maximum number of segments of the text that are searched for. They are enough to identify a region.
pub(super) const MAX_SEGMENTS: usize = 200;
/// The maximum number of segments of the text that are compared by similarity.
const MAX_LIKENESS: usize = 64;
/// The maximum number of places for one key of the text, and of equal segments in the text.
const MAX_PLACES: usize = 50;
const MAX_EQUALS: usize = 4;
/// The maximum number of similar places for one segment.
const MAX_LIKE: usize = 20;
/// The maximum number of bytes of a key that are compared by similarity.
const MAX_KEY: usize = 1_000;
/// The maximum number of segments that are searched for within longer ones of the file.
const MAX_LONG: usize = 4;
/// The maximum number of steps for comparing by similarity.
const MAX_WORK: usize = 300_000_000;
/// The minimum share of common trigrams of similar segments.
const MIN_LIKENESS: f32 = 0.4;
/// The maximum number of places that are aligned with the text.
const MAX_ALIGNED: usize = 3;

/// One step of an alignment.
#[derive(Clone, Copy, Debug, Eq, PartialEq)]
pub(super) enum Step {
    /// A segment of the text, and the segment of the region that it resembles.
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

/// The keys of a text's segments, prepared for lookups.
struct Index<'k> {
    keys: &'k [String],
    by_key: HashMap<&'k str, Vec<usize>>,
    /// The segments that are compared by similarity, longest first.
    likeness: Vec<usize>,
    /// For each trigram hash, the set of those segments that have it.
    masks: Vec<u64>,
}

const HASH_BITS: u32 = 14;

/// The trigrams of a key as hashes. Its ends count as characters.
fn trigrams(key: &str) -> impl Iterator<Item = usize> {
    let key = &key.as_bytes()[..key.len().min(MAX_KEY)];
    let at = |index: usize| if index < 2 { 1 } else { key.get(index - 2).copied().unwrap_or(2) };
    (0..key.len() + 2).map(move |index| {
        let three = u32::from_le_bytes([at(index), at(index + 1), at(index + 2), 0]);
        (three.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
    })
}

/// The part of a long key that resembles a shorter one: the share of common trigrams, and the offset.
pub(super) fn best_part(key: &str, long: &str) -> Option<(f32, usize)> {
    // For each trigram of the key, the part in which it was last seen.
    let mut wanted = vec![None; 1 << HASH_BITS];
    let inner = |key: &str| {
        let count = key.len().saturating_sub(2);
        trigrams(key).skip(2).take(count).collect::<Vec<_>>()
    };
    let mut own = inner(key);
    own.sort_unstable();
    own.dedup();
    if own.len() < 2 {
        return None;
    }
    own.iter().for_each(|hash| wanted[*hash] = Some(usize::MAX));
    let length = (key.len() * 3 / 2).max(32);
    let mut best: Option<(f32, usize)> = None;
    for start in (0..long.len()).step_by(length / 3) {
        let start = long.floor_char_boundary(start);
        let part = &long[start..long.floor_char_boundary(start + length)];
        let mut hits = 0;
        for hash in inner(part) {
            if wanted[hash].is_some_and(|last| last != start) {
                wanted[hash] = Some(start);
                hits += 1;
            }
        }
        let share = hits as f32 / own.len() as f32;
        if share >= 0.5 && best.is_none_or(|(known, _)| share > known) {
            best = Some((share, start));
        }
    }
    best
}

impl<'k> Index<'k> {
    fn new(keys: &'k [String]) -> Self {
        let mut by_key: HashMap<&str, Vec<usize>> = HashMap::new();
        for (number, key) in keys.iter().enumerate().filter(|(_, key)| !key.is_empty()) {
            let equals = by_key.entry(key).or_default();
            if equals.len() < MAX_EQUALS {
                equals.push(number);
            }
        }
        let mut likeness: Vec<usize> = by_key.values().map(|equals| equals[0]).collect();
        likeness.sort_by_key(|number| (std::cmp::Reverse(keys[*number].len()), *number));
        likeness.truncate(MAX_LIKENESS);
        let mut masks = vec![0; 1 << HASH_BITS];
        for (bit, number) in likeness.iter().enumerate() {
            trigrams(&keys[*number]).for_each(|hash| masks[hash] |= 1 << bit);
        }
        Self { keys, by_key, likeness, masks }
    }

    /// Finds the segments that a key resembles, and how much. Adds the steps to `work`.
    fn alike(&self, key: &str, work: &mut usize, mut found: impl FnMut(usize, f32)) {
        if key.len() > MAX_KEY {
            for number in self.likeness.iter().take(MAX_LONG) {
                *work += 4 * key.len();
                if best_part(&self.keys[*number], key).is_some() {
                    found(*number, MIN_LIKENESS);
                }
            }
        }
        let mut hits = [0_u16; MAX_LIKENESS];
        let (mut any, mut count) = (0_u64, 0);
        for hash in trigrams(key) {
            let mut mask = self.masks[hash];
            any |= mask;
            count += 1;
            *work += 1;
            while mask != 0 {
                hits[mask.trailing_zeros() as usize] += 1;
                mask &= mask - 1;
                *work += 1;
            }
        }
        while any != 0 {
            let bit = any.trailing_zeros() as usize;
            any &= any - 1;
            let own = &self.keys[self.likeness[bit]];
            let wanted = own.len().min(MAX_KEY) + 2;
            let hits = usize::from(hits[bit]).min(wanted).min(count);
            let mut likeness = 2.0 * hits as f32 / (wanted + count) as f32;
            if likeness < MIN_LIKENESS
                && own.len() >= 3
                && hits + 4 >= wanted
                && key.contains(&**own)
            {
                likeness = MIN_LIKENESS;
            }
            if likeness >= MIN_LIKENESS {
                found(self.likeness[bit], likeness);
            }
        }
    }
}

/// A segment of the file that resembles one of the text.
struct Match {
    /// The index of the file's segment minus that of the text's.
    diagonal: isize,
    text: usize,
    weight: f32,
}

/// The interval of segments whose offsets are stored, so that a region can be found again.
const CHECKPOINT: usize = 64;

/// The region that resembles the segments with these keys most. Of equal ones, it is the first, or the last if
/// `prefer_last` is set.
pub(super) fn best_region<'t>(
    file: &'t str,
    start: usize,
    keys: &[String],
    prefer_last: bool,
    keep_going: &dyn Fn() -> bool,
) -> Option<Region<'t>> {
    let index = Index::new(keys);
    let mut exact: Vec<(usize, Vec<usize>)> = vec![(0, Vec::new()); keys.len()];
    let mut alike: Vec<Vec<(f32, usize)>> = vec![Vec::new(); keys.len()];
    let mut checkpoints = Vec::new();
    let (mut work, mut buffer, mut total) = (0, String::new(), 0);
    for (number, segment) in segments(file, 0).enumerate() {
        total = number + 1;
        if number % CHECKPOINT == 0 {
            checkpoints.push(segment.start);
            if number % (CHECKPOINT * 64) == 0 && !keep_going() {
                break;
            }
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
        } else if work < MAX_WORK {
            index.alike(&buffer, &mut work, |text, likeness| {
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
    let mut matches = weighted_matches(keys, &index, &exact, &alike);
    let slack = keys.len() / 4 + 3;
    let aligned = places_by_weight(&mut matches, slack, prefer_last).into_iter().map(|diagonal| {
        let first = usize::try_from(diagonal - slack as isize - 2).unwrap_or(0);
        let last = usize::try_from(diagonal + (keys.len() + slack + 2) as isize).unwrap_or(0);
        let checkpoint = first / CHECKPOINT;
        let at = checkpoints.get(checkpoint).copied().unwrap_or(0);
        let window = segments(&file[at..], at)
            .skip(first - checkpoint * CHECKPOINT)
            .take(last.min(total).saturating_sub(first));
        align(keys, window.map(|segment| Segment { start: segment.start + start, ..segment }))
    });
    let better = |one: Region<'t>, other: Region<'t>| {
        let later = other.segments.first().map(|s| s.start) > one.segments.first().map(|s| s.start);
        let tie = one.score == other.score && later == prefer_last;
        if other.score > one.score || tie { other } else { one }
    };
    let best = aligned.flatten().reduce(better)?;
    best.steps.iter().any(|step| matches!(step, Step::Pair(..))).then_some(best)
}

/// The matches of segments, with their weights. `exact` has the number of equal segments of the file and their places,
/// and `alike` the similar ones; both are at the index of the first equal segment of the text.
fn weighted_matches(
    keys: &[String],
    index: &Index<'_>,
    exact: &[(usize, Vec<usize>)],
    alike: &[Vec<(f32, usize)>],
) -> Vec<Match> {
    let mut matches = Vec::new();
    for equals in index.by_key.values() {
        let length = keys[equals[0]].len().min(40) as f32 + 1.0;
        let (count, places) = &exact[equals[0]];
        let weight = length / (1.0 + (*count).max(1) as f32).ln();
        let newest = places.len().saturating_sub(MAX_PLACES);
        for text in equals {
            let matched = |place: usize, weight| {
                let diagonal = place as isize - *text as isize;
                Match { diagonal, text: *text, weight }
            };
            matches.extend(places[newest..].iter().map(|place| matched(*place, weight)));
            let alike = alike[equals[0]].iter();
            matches.extend(alike.map(|(likeness, place)| matched(*place, length * likeness * 0.8)));
        }
    }
    matches
}

/// The diagonals with most weight around them, best first.
fn places_by_weight(matches: &mut [Match], slack: usize, prefer_last: bool) -> Vec<isize> {
    /// The maximum number of neighbours that are added on each side of a match.
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

/// The cost of a gap. Because of it, two dissimilar segments become two gaps and not a pair.
const GAP: f32 = -0.3;

/// The score of a pair of segments. Returns `None` if they have nothing in common.
fn pair_score(text: (&str, &[usize]), file: (&str, &[usize])) -> Option<f32> {
    match (text.0, file.0) {
        ("", "") => return Some(0.1),
        ("", _) | (_, "") => return None,
        (text, file) if text == file => return Some(if text.len() < 3 { 0.5 } else { 1.0 }),
        _ => {}
    }
    if file.0.len() > MAX_KEY && file.0.len() > 2 * text.0.len() {
        return best_part(text.0, file.0).map(|(share, _)| share * 0.6);
    }
    let (mut one, mut other, mut shared) = (0, 0, 0);
    while one < text.1.len() && other < file.1.len() {
        match text.1[one].cmp(&file.1[other]) {
            std::cmp::Ordering::Less => one += 1,
            std::cmp::Ordering::Greater => other += 1,
            std::cmp::Ordering::Equal => {
                (one, other, shared) = (one + 1, other + 1, shared + 1);
            }
        }
    }
    let dice = 2.0 * shared as f32 / (text.1.len() + file.1.len()) as f32;
    let part = text.0.len() >= 3 && file.0.contains(text.0);
    let score = if part { dice.max(0.5) } else { dice };
    (score >= 0.3).then_some(score * 0.9)
}

/// Aligns the whole text with a part of some segments of the file.
fn align<'t>(keys: &[String], window: impl Iterator<Item = Segment<'t>>) -> Option<Region<'t>> {
    let segments: Vec<_> = window.collect();
    let folded = |segment: &Segment<'_>| {
        let mut out = String::new();
        key(segment.text, &mut out);
        out
    };
    let file_keys: Vec<String> = segments.iter().map(folded).collect();
    let sorted = |key: &String| {
        let mut hashes: Vec<usize> = trigrams(key).collect();
        hashes.sort_unstable();
        hashes
    };
    let text_trigrams: Vec<_> = keys.iter().map(sorted).collect();
    let file_trigrams: Vec<_> = file_keys.iter().map(sorted).collect();
    let (rows, columns) = (keys.len() + 1, segments.len() + 1);
    // A segment that is in both is paired only with its equal, since it may have moved.
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
            let fits = text == file || !in_file.contains(text) && !in_text.contains(file);
            let pair = fits.then(|| {
                pair_score((text, &text_trigrams[row - 1]), (file, &file_trigrams[column - 1]))
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
    // The first of equal ones.
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
