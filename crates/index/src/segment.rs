//! The trigrams of some texts.
//!
//! A text is divided into blocks that end with a line, so a match within a line is in one block. A match that spans
//! lines may begin in one block and end in another, so its trigrams are looked up in the whole text. Blocks overlap
//! by two bytes, so each trigram of a text is in one of its blocks.

use crate::plan::Query;
use crate::{SLOTS, slot};

/// The size of a block. A block is longer if its last line is.
const BLOCK_BYTES: usize = 64 * 1024;

/// The maximum number of blocks. Their numbers fit into 16 bits.
const MAX_BLOCKS: usize = 4_096;

/// The number of a text in its segment, in the order of addition.
pub type TextId = u32;

/// Collects the trigrams of texts.
#[derive(Debug)]
pub struct SegmentBuilder {
    /// The trigrams of all blocks, block by block.
    grams: Vec<u32>,
    /// The end of each block's trigrams.
    block_ends: Vec<usize>,
    /// The end of each text's blocks.
    text_ends: Vec<u32>,
    /// Scratch space: the trigrams of the current block. What follows them is stale.
    scratch: Vec<u32>,
    /// For each trigram, the mark of the last block in which it occurred. One byte each, so that they fit into the
    /// CPU cache.
    seen: Vec<u8>,
    /// The mark of the last block. Marks start again at 1.
    mark: u8,
}

impl Default for SegmentBuilder {
    fn default() -> Self {
        Self {
            grams: Vec::new(),
            block_ends: Vec::new(),
            text_ends: Vec::new(),
            scratch: Vec::new(),
            seen: vec![0; SLOTS],
            mark: 0,
        }
    }
}

impl SegmentBuilder {
    /// Whether a text of this length still fits.
    pub fn has_room(&self, len: usize) -> bool {
        self.block_ends.len() + len / BLOCK_BYTES < MAX_BLOCKS
    }

    /// Adds a text. It must fit, unless it is the first one.
    pub fn add(&mut self, text: &[u8]) -> TextId {
        let mut rest = text;
        while !rest.is_empty() {
            let end = match rest.get(BLOCK_BYTES..) {
                Some(after) => {
                    BLOCK_BYTES + memchr::memchr(b'\n', after).map_or(after.len(), |at| at + 1)
                }
                None => rest.len(),
            };
            self.add_block(&rest[..rest.len().min(end + 2)]);
            rest = &rest[end..];
        }
        self.text_ends.push(self.block_ends.len() as u32);
        self.text_ends.len() as TextId - 1
    }

    fn add_block(&mut self, text: &[u8]) {
        if self.mark == u8::MAX {
            self.seen.fill(0);
            self.mark = 0;
        }
        self.mark += 1;
        let mark = self.mark;
        if self.scratch.len() < text.len() {
            self.scratch.resize(text.len().next_power_of_two(), 0);
        }
        let grams = &mut self.scratch[..text.len()];
        let seen = self.seen.as_mut_slice();
        let mut new = 0;
        // This loop has no branch, since the processor could not predict it: each trigram is written, and kept if it
        // is new.
        for gram in text.windows(3) {
            let slot = slot([gram[0], gram[1], gram[2]]);
            let last = &mut seen[slot as usize & (SLOTS - 1)];
            grams[new] = slot;
            new += usize::from(*last != mark);
            *last = mark;
        }
        self.grams.extend_from_slice(&self.scratch[..new]);
        self.block_ends.push(self.grams.len());
    }

    /// How many texts it has.
    pub fn len(&self) -> usize {
        self.text_ends.len()
    }

    /// Whether it has no texts.
    pub fn is_empty(&self) -> bool {
        self.text_ends.is_empty()
    }

    /// The segment of these texts.
    pub fn build(self) -> Segment {
        let blocks = self.block_ends.len();
        let mut starts = vec![0_u32; SLOTS + 1];
        for gram in &self.grams {
            starts[*gram as usize + 1] += 1;
        }
        for number in 1..starts.len() {
            starts[number] += starts[number - 1];
        }
        let mut lists = vec![0_u16; self.grams.len()];
        let mut next = starts.clone();
        let mut first = 0;
        for (block, end) in self.block_ends.iter().enumerate() {
            for gram in &self.grams[first..*end] {
                let at = &mut next[*gram as usize];
                lists[*at as usize] = block as u16;
                *at += 1;
            }
            first = *end;
        }
        let mut slots = Vec::new();
        let mut ends = Vec::new();
        let mut data = Vec::new();
        for number in 0..SLOTS {
            let list = &lists[starts[number] as usize..starts[number + 1] as usize];
            if !list.is_empty() {
                encode(list, blocks, &mut data);
                slots.push(number as u32);
                ends.push(data.len() as u32);
            }
        }
        slots.shrink_to_fit();
        ends.shrink_to_fit();
        data.shrink_to_fit();
        Segment { blocks, slots, ends, data, text_ends: self.text_ends }
    }
}

/// Encodes a list as a bitmap, if it has many blocks; otherwise as the distances between them, with 7 bits in a byte.
fn encode(list: &[u16], blocks: usize, data: &mut Vec<u8>) {
    let start = data.len();
    let bitmap = blocks.div_ceil(8);
    if list.len() >= bitmap {
        return encode_bitmap(list, bitmap, data);
    }
    let mut next = 0;
    for block in list {
        let mut distance = block - next;
        next = block + 1;
        while distance >= 0x80 {
            data.push(distance as u8 | 0x80);
            distance >>= 7;
        }
        data.push(distance as u8);
    }
    // The length distinguishes a list from a bitmap.
    if data.len() - start >= bitmap {
        data.truncate(start);
        encode_bitmap(list, bitmap, data);
    }
}

fn encode_bitmap(list: &[u16], bitmap: usize, data: &mut Vec<u8>) {
    let start = data.len();
    data.resize(start + bitmap, 0);
    for block in list {
        data[start + usize::from(*block) / 8] |= 1 << (block % 8);
    }
}

/// Which blocks of some texts contain which trigrams.
#[derive(Debug)]
pub struct Segment {
    blocks: usize,
    /// The trigrams that occur, and the end of each one's list.
    slots: Vec<u32>,
    ends: Vec<u32>,
    data: Vec<u8>,
    text_ends: Vec<u32>,
}

/// A set of blocks, with one bit for each.
#[derive(Clone, Debug, Eq, PartialEq)]
struct Blocks(Vec<u64>);

impl Blocks {
    fn none(blocks: usize) -> Self {
        Self(vec![0; blocks.div_ceil(64)])
    }

    fn insert(&mut self, block: usize) {
        self.0[block / 64] |= 1 << (block % 64);
    }

    fn contains(&self, block: usize) -> bool {
        self.0[block / 64] >> (block % 64) & 1 == 1
    }

    fn is_empty(&self) -> bool {
        self.0.iter().all(|bits| *bits == 0)
    }

    /// The blocks of the set, in order.
    fn iter(&self) -> impl Iterator<Item = usize> {
        self.0.iter().enumerate().flat_map(|(number, bits)| {
            let mut bits = *bits;
            std::iter::from_fn(move || {
                let bit = bits.trailing_zeros() as usize;
                (bits != 0).then(|| {
                    bits &= bits - 1;
                    number * 64 + bit
                })
            })
        })
    }

    fn and(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(bits, other)| *bits &= other);
    }

    fn or(&mut self, other: &Self) {
        self.0.iter_mut().zip(&other.0).for_each(|(bits, other)| *bits |= other);
    }
}

impl Segment {
    /// How many bytes of memory it takes.
    pub fn bytes(&self) -> usize {
        self.data.len() + 4 * (self.slots.len() + self.ends.len() + self.text_ends.len())
    }

    fn blocks_of(&self, text: TextId) -> std::ops::Range<usize> {
        let text = text as usize;
        let first = text.checked_sub(1).map_or(0, |before| self.text_ends[before]);
        first as usize..self.text_ends[text] as usize
    }

    /// How many texts it has.
    pub fn len(&self) -> usize {
        self.text_ends.len()
    }

    /// Whether it has no texts.
    pub fn is_empty(&self) -> bool {
        self.text_ends.is_empty()
    }

    /// The texts that a query does not exclude, in order. `multiline` says whether matches may span lines.
    pub fn candidates(&self, query: &Query, multiline: bool) -> impl Iterator<Item = TextId> {
        let (all, blocks) = match self.eval(query, multiline) {
            None => (0..self.len() as TextId, Blocks(Vec::new())),
            Some(blocks) => (0..0, blocks),
        };
        let mut next = 0;
        let mut texts = Vec::new();
        for block in blocks.iter() {
            // An empty text has no blocks, and ends where the text before it ends.
            let text = next + self.text_ends[next..].partition_point(|end| *end as usize <= block);
            if texts.last() != Some(&(text as TextId)) {
                texts.push(text as TextId);
            }
            next = text;
        }
        all.chain(texts)
    }

    /// `None` stands for all blocks.
    fn eval(&self, query: &Query, multiline: bool) -> Option<Blocks> {
        match query {
            Query::All => None,
            Query::Grams(slots) => {
                let mut blocks = Blocks::none(self.blocks);
                slots.iter().for_each(|slot| self.add_list(*slot, &mut blocks));
                if multiline {
                    self.widen(&mut blocks);
                }
                Some(blocks)
            }
            Query::And(parts) => {
                let mut blocks: Option<Blocks> = None;
                // The rarest part comes first: often nothing is left after a few.
                let mut parts: Vec<_> = parts.iter().map(|part| (self.size(part), part)).collect();
                parts.sort_by_key(|(size, _)| *size);
                for (_, part) in parts {
                    let Some(more) = self.eval(part, multiline) else { continue };
                    match &mut blocks {
                        Some(blocks) => blocks.and(&more),
                        None => blocks = Some(more),
                    }
                    if blocks.as_ref().is_some_and(Blocks::is_empty) {
                        break;
                    }
                }
                blocks
            }
            Query::Or(parts) => {
                let mut blocks = Blocks::none(self.blocks);
                for part in parts {
                    blocks.or(&self.eval(part, multiline)?);
                }
                Some(blocks)
            }
        }
    }

    /// The size of the lists that a query reads, as an estimate of the number of remaining blocks.
    fn size(&self, query: &Query) -> usize {
        match query {
            Query::All => usize::MAX,
            Query::Grams(slots) => slots.iter().map(|slot| self.list(*slot).len()).sum(),
            Query::And(parts) => parts.iter().map(|part| self.size(part)).min().unwrap_or(0),
            Query::Or(parts) => {
                parts.iter().map(|part| self.size(part)).fold(0, usize::saturating_add)
            }
        }
    }

    fn list(&self, slot: u32) -> &[u8] {
        let Ok(number) = self.slots.binary_search(&slot) else { return &[] };
        let start = number.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.data[start as usize..self.ends[number] as usize]
    }

    fn add_list(&self, slot: u32, blocks: &mut Blocks) {
        let list = self.list(slot);
        if list.len() == self.blocks.div_ceil(8) {
            for (number, byte) in list.iter().enumerate() {
                blocks.0[number / 8] |= u64::from(*byte) << (number % 8 * 8);
            }
            return;
        }
        let (mut next, mut distance, mut shift) = (0_usize, 0_usize, 0);
        for byte in list {
            distance |= usize::from(byte & 0x7F) << shift;
            shift += 7;
            if byte & 0x80 == 0 {
                blocks.insert(next + distance);
                (next, distance, shift) = (next + distance + 1, 0, 0);
            }
        }
    }

    /// Adds all blocks of the texts that have a block in the set.
    fn widen(&self, blocks: &mut Blocks) {
        for text in 0..self.text_ends.len() as TextId {
            let range = self.blocks_of(text);
            if range.len() > 1 && range.clone().any(|block| blocks.contains(block)) {
                range.for_each(|block| blocks.insert(block));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_marks_of_blocks_are_used_again() {
        let mut builder = SegmentBuilder::default();
        for number in 0..1_000 {
            builder.add(if number % 300 == 7 { b"abc xyz" } else { b"abc ..." });
        }
        let segment = builder.build();
        let candidates =
            |text| segment.candidates(&Query::new(text, true, false), false).collect::<Vec<_>>();
        assert_eq!(candidates("abc").len(), 1_000);
        assert_eq!(candidates("xyz"), [7, 307, 607, 907]);
    }
}
