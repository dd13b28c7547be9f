//! Finds texts that a regex cannot match in, by trigrams: sequences of three bytes.
//!
//! A [`Query`] is what the text of every match must contain. A [`Segment`] knows which blocks of some texts contain
//! which trigrams. A text that is not among the candidates has no match; a candidate may have none, so it has to be
//! searched. Nothing here reads a file.

#![forbid(unsafe_code)]

mod plan;
mod segment;

pub use plan::Query;
pub use segment::{Segment, SegmentBuilder, TextId};

/// The number that stands for a trigram. Some share one, which only adds candidates.
#[inline]
fn slot(gram: [u8; 3]) -> u32 {
    let gram = u32::from_le_bytes([gram[0], gram[1], gram[2], 0]);
    gram.wrapping_mul(0x9E37_79B1) >> (32 - SLOT_BITS)
}

/// Enough for the trigrams of source code.
const SLOT_BITS: u32 = 18;
const SLOTS: usize = 1 << SLOT_BITS;
