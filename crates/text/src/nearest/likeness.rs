//! How much two segments resemble each other: the share of trigrams that their keys have in common.
//!
//! Work is bounded: past `MAX_WORK` only segments with the same key are found.

use std::cell::Cell;
use std::cmp::Ordering;
use std::collections::HashMap;

/// Segments of the text that others are compared with by likeness.
const MAX_LIKENESS: usize = 64;
/// Equal segments of the text that are looked for.
const MAX_EQUALS: usize = 4;
/// Bytes of a key that are compared by likeness.
pub(super) const MAX_KEY: usize = 1_000;
/// Segments of the text that are looked for within longer ones of the file.
const MAX_LONG: usize = 4;
/// Steps of comparing by likeness.
const MAX_WORK: usize = 300_000_000;
/// After how many steps the deadline is checked: some milliseconds.
const CHECK_INTERVAL: usize = 1_000_000;
/// Less than this share of trigrams in common is no likeness.
const MIN_LIKENESS: f32 = 0.4;

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
    pub(super) fn may_compare(&self, steps: usize) -> bool {
        self.goes_on(steps) && self.steps.get() < MAX_WORK
    }
}

/// The keys of a text's segments, prepared for looking them up.
pub(super) struct Index<'k> {
    keys: &'k [String],
    pub(super) by_key: HashMap<&'k str, Vec<usize>>,
    /// Segments that are compared by likeness, longest first.
    likeness: Vec<usize>,
    /// For each hash of a trigram, which of those have it.
    masks: Vec<u64>,
}

const HASH_BITS: u32 = 14;

/// The trigrams of a key, as hashes; its ends count as characters.
pub(super) fn trigrams(key: &str) -> impl Iterator<Item = usize> {
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
    pub(super) fn new(keys: &'k [String]) -> Self {
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
    pub(super) fn alike(&self, key: &str, work: &Work<'_>, mut found: impl FnMut(usize, f32)) {
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

/// The score of a pair of segments; `None` if they have nothing in common.
pub(super) fn pair_score(
    text: (&str, &[usize]),
    file: (&str, &[usize]),
    work: &Work<'_>,
) -> Option<f32> {
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
            Ordering::Less => one += 1,
            Ordering::Greater => other += 1,
            Ordering::Equal => {
                (one, other, shared) = (one + 1, other + 1, shared + 1);
            }
        }
    }
    let dice = 2.0 * shared as f32 / (text.1.len() + file.1.len()) as f32;
    let part = text.0.len() >= 3 && file.0.contains(text.0);
    let score = if part { dice.max(0.5) } else { dice };
    (score >= 0.3).then_some(score * 0.9)
}
