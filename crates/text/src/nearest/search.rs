//! Finds the region of a file that a text resembles most, and aligns the two.
//!
//! One pass over the file notes which of its segments are, or are like, segments of the text. The
//! places with most of them are aligned with the text, and the best alignment wins. Work is bounded:
//! past `MAX_WORK` only segments with the same key are noted.

use std::cell::Cell;
use std::collections::{HashMap, HashSet};

use super::fold::{Segment, key, segments};

/// Segments of the text that are looked for: enough to know a region by.
pub(super) const MAX_SEGMENTS: usize = 200;
/// Segments of the text that others are compared with by likeness.
const MAX_LIKENESS: usize = 64;
/// Places noted for one key of the text, and for how many equal segments of it.
const MAX_PLACES: usize = 50;
const MAX_EQUALS: usize = 4;
/// Places noted for one segment by likeness.
const MAX_LIKE: usize = 20;
/// Bytes of a key that are compared by likeness.
const MAX_KEY: usize = 1_000;
/// Segments of the text that are looked for within longer ones of the file.
const MAX_LONG: usize = 4;
/// Steps of comparing by likeness.
const MAX_WORK: usize = 300_000_000;
/// After how many steps the deadline is checked: some milliseconds.
const CHECK_INTERVAL: usize = 1_000_000;
/// Less than this share of trigrams in common is no likeness.
const MIN_LIKENESS: f32 = 0.4;
/// Places that are aligned with the text.
const MAX_ALIGNED: usize = 3;

/// Counts the steps of a search, which ends once `keep_going` returns false.
pub(super) struct Work<'w> {
    steps: Cell<usize>,
    is_stopped: Cell<bool>,
    keep_going: &'w dyn Fn() -> bool,
}

impl<'w> Work<'w> {
    pub(super) fn new(keep_going: &'w dyn Fn() -> bool) -> Self {
        Self { steps: Cell::new(0), is_stopped: Cell::new(!keep_going()), keep_going }
    }

    /// Counts steps. Whether the search goes on.
    pub(super) fn goes_on(&self, steps: usize) -> bool {
        let before = self.steps.get();
        let now = before.saturating_add(steps);
        self.steps.set(now);
        if before / CHECK_INTERVAL != now / CHECK_INTERVAL && !(self.keep_going)() {
            self.is_stopped.set(true);
        }
        !self.is_stopped.get()
    }

    /// Counts steps of comparing by likeness. Whether there may be more of them.
    fn may_compare(&self, steps: usize) -> bool {
        self.goes_on(steps) && self.steps.get() < MAX_WORK
    }
}

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

/// The keys of a text's segments, prepared for looking them up.
struct Index<'k> {
    keys: &'k [String],
    by_key: HashMap<&'k str, Vec<usize>>,
    /// Segments that are compared by likeness, longest first.
    likeness: Vec<usize>,
    /// For each hash of a trigram, which of those have it.
    masks: Vec<u64>,
}

const HASH_BITS: u32 = 14;

/// The trigrams of a key, as hashes; its ends count as characters.
fn trigrams(key: &str) -> impl Iterator<Item = usize> {
    let key = &key.as_bytes()[..key.len().min(MAX_KEY)];
    let at = |index: usize| if index < 2 { 1 } else { key.get(index - 2).copied().unwrap_or(2) };
    (0..key.len() + 2).map(move |index| {
        let three = u32::from_le_bytes([at(index), at(index + 1), at(index + 2), 0]);
        (three.wrapping_mul(0x9e37_79b1) >> (32 - HASH_BITS)) as usize
    })
}

/// Where a part of a long key is like a shorter one, and how much of that it has.
pub(super) fn best_part(key: &str, long: &str, work: &Work<'_>) -> Option<(f32, usize)> {
    // For each trigram of the key, in which part it was last seen.
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
        if !work.may_compare(part.len().min(MAX_KEY)) {
            break;
        }
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

    /// Which segments a key is like, and how much.
    fn alike(&self, key: &str, work: &Work<'_>, mut found: impl FnMut(usize, f32)) {
        if key.len() > MAX_KEY {
            for number in self.likeness.iter().take(MAX_LONG) {
                if best_part(&self.keys[*number], key, work).is_some() {
                    found(*number, MIN_LIKENESS);
                }
            }
        }
        let mut hits = [0_u16; MAX_LIKENESS];
        let (mut any, mut count, mut steps) = (0_u64, 0, 0);
        for hash in trigrams(key) {
            let mut mask = self.masks[hash];
            any |= mask;
            count += 1;
            while mask != 0 {
                hits[mask.trailing_zeros() as usize] += 1;
                mask &= mask - 1;
                steps += 1;
            }
        }
        work.goes_on(count + steps);
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
    /// The number of the file's segment less that of the text's.
    diagonal: isize,
    text: usize,
    weight: f32,
}

/// Where every so many segments start, so that a region can be found again.
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

/// The score of a pair of segments; `None` if they have nothing in common.
fn pair_score(text: (&str, &[usize]), file: (&str, &[usize]), work: &Work<'_>) -> Option<f32> {
    match (text.0, file.0) {
        ("", "") => return Some(0.1),
        ("", _) | (_, "") => return None,
        (text, file) if text == file => return Some(if text.len() < 3 { 0.5 } else { 1.0 }),
        _ => {}
    }
    if file.0.len() > MAX_KEY && file.0.len() > 2 * text.0.len() {
        return best_part(text.0, file.0, work).map(|(share, _)| share * 0.6);
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

/// Aligns all of the text with a part of some segments of the file.
fn align<'t>(
    keys: &[String],
    window: impl Iterator<Item = Segment<'t>>,
    work: &Work<'_>,
) -> Option<Region<'t>> {
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
