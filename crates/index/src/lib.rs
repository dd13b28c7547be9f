//! Excludes texts that a regex cannot match, by trigrams: sequences of three bytes.
//!
//! A [`Query`] has the trigrams that every match contains. A [`Segment`] has the blocks of some texts in which each
//! trigram occurs. A text that is not a candidate has no match; a candidate may have none, so it has to be searched.
//! This crate reads no files.

#![forbid(unsafe_code)]

mod plan;
mod segment;

pub use plan::Query;
pub use segment::{Segment, SegmentBuilder, TextId};

/// The hash slot of a trigram. Some trigrams share one, which only adds candidates.
#[inline]
fn slot(gram: [u8; 3]) -> u32 {
    let gram = u32::from_le_bytes([gram[0], gram[1], gram[2], 0]);
    gram.wrapping_mul(0x9E37_79B1) >> (32 - SLOT_BITS)
}

/// Enough slots for the trigrams of source code.
const SLOT_BITS: u32 = 18;
const SLOTS: usize = 1 << SLOT_BITS;
