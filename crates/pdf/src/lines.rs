//! Joins glyphs into words and lines, by their positions on the page.

use hayro_font::kurbo::{Affine, Point, Vec2};

use crate::budget::{Interrupt, Meter};

/// Glyph coordinates are in thousandths of the font size.
pub(crate) const UNITS: f64 = 1000.0;

/// The text that a page draws.
pub(crate) struct Lines<'k> {
    pub(crate) text: String,
    pub(crate) meter: Meter<'k>,
    max_bytes: usize,
    last: Option<PlacedGlyph>,
    pub(crate) glyphs: usize,
    pub(crate) unmapped_glyphs: usize,
    /// Whether there was more text than `max_bytes`.
    pub(crate) is_full: bool,
}

/// A glyph on the page.
#[derive(Clone, Copy, Debug)]
struct PlacedGlyph {
    start: Point,
    end: Point,
    /// The direction of the line of text, as a unit vector.
    direction: Vec2,
    size: f64,
    character: Option<char>,
}

/// The text without trailing whitespace on its lines, and without blank lines around it.
pub(crate) fn trimmed(text: &str) -> String {
    let lines: Vec<_> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

impl<'k> Lines<'k> {
    pub(crate) fn new(max_bytes: usize, meter: Meter<'k>) -> Self {
        Self {
            text: String::new(),
            meter,
            max_bytes,
            last: None,
            glyphs: 0,
            unmapped_glyphs: 0,
            is_full: false,
        }
    }

    fn add(&mut self, place: Affine, width: f64, letters: &str) {
        let [a, b, c, d, x, y] = place.as_coeffs();
        let direction = Vec2::new(a, b);
        let (stretch, size) = (direction.hypot(), Vec2::new(c, d).hypot() * UNITS);
        if !(x.is_finite() && y.is_finite() && size.is_finite() && stretch > 0.0 && size > 0.0) {
            return;
        }
        let start = Point::new(x, y);
        let direction = direction / stretch;
        let end = start + direction * (width * stretch);
        let glyph = PlacedGlyph { start, end, direction, size, character: letters.chars().next() };
        match self.last.map(|last| last.gap_before(&glyph)) {
            None | Some(Gap::None) => {}
            // Programs draw a glyph twice to make it look bold.
            Some(Gap::Same) => return,
            Some(Gap::Word) => {
                if !self.text.ends_with([' ', '\n']) && !letters.starts_with(' ') {
                    self.text.push(' ');
                }
            }
            Some(Gap::Line) => self.text.push('\n'),
            Some(Gap::Paragraph) => self.text.push_str("\n\n"),
        }
        self.last = Some(glyph);
        if self.text.len() + letters.len() > self.max_bytes {
            self.is_full = true;
        } else {
            let visible = letters.chars().filter(|letter| !letter.is_control());
            self.text.extend(visible.map(|letter| if letter == '\u{a0}' { ' ' } else { letter }));
        }
    }

    /// Adds a glyph with its place, its width if it is known, and its letters if the document maps it to any.
    pub(crate) fn add_glyph(&mut self, place: Affine, width: Option<f64>, letters: Option<&str>) {
        self.glyphs += 1;
        self.unmapped_glyphs += usize::from(letters.is_none());
        self.add(place, width.unwrap_or(UNITS / 2.0), letters.unwrap_or("\u{fffd}"));
    }

    /// Counts drawing operations. Fails if the budget is spent or the text has reached its limit.
    pub(crate) fn count(&mut self, operations: u64) -> Result<(), Interrupt> {
        if self.is_full {
            return Err(Interrupt::Full);
        }
        self.meter.count(operations)
    }
}

/// The gap between two glyphs.
enum Gap {
    None,
    Same,
    Word,
    Line,
    Paragraph,
}

impl PlacedGlyph {
    fn gap_before(&self, next: &Self) -> Gap {
        let size = self.size.max(next.size);
        let moved = next.start - self.end;
        let (ahead, across) = (moved.dot(self.direction), moved.cross(self.direction).abs());
        let turned = self.direction.dot(next.direction) < 0.9;
        // A glyph that is drawn twice, to look bold. In narrow text the next glyph is no further away than that.
        let near = (0.1 * size).min(0.5 * (self.end - self.start).hypot());
        let same = (next.start - self.start).hypot() <= near && next.character == self.character;
        if same && !turned {
            Gap::Same
        } else if turned || across > 0.6 * size {
            if !turned && across > 1.9 * size { Gap::Paragraph } else { Gap::Line }
        } else if ahead < -0.6 * size {
            Gap::Line
        } else if ahead > 0.17 * size {
            Gap::Word
        } else {
            Gap::None
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::Budget;

    fn lines(max_bytes: usize) -> Lines<'static> {
        Lines::new(max_bytes, Meter::new(Budget::default(), &|| true))
    }

    /// The text of a page with letters of size 10 and width 5 at these positions.
    fn read(drawn: &[(f64, f64, &str)]) -> String {
        let mut lines = lines(1_000);
        for (x, y, letters) in drawn {
            lines.add(Affine::new([0.01, 0.0, 0.0, 0.01, *x, *y]), 500.0, letters);
        }
        trimmed(&lines.text)
    }

    #[test]
    fn gaps_make_words_lines_and_paragraphs() {
        for (second, text) in [
            ((5.0, 0.0), "ab"),
            ((6.0, 0.0), "ab"),
            ((7.5, 0.0), "a b"),
            ((60.0, 0.0), "a b"),
            // Superscript.
            ((5.0, 4.0), "ab"),
            ((0.0, 12.0), "a\nb"),
            ((60.0, 12.0), "a\nb"),
            ((0.0, 30.0), "a\n\nb"),
            // Back to the left: another line, or another column.
            ((-40.0, 0.0), "a\nb"),
        ] {
            assert_eq!(read(&[(0.0, 0.0, "a"), (second.0, second.1, "b")]), text, "{second:?}");
        }
    }

    #[test]
    fn a_glyph_drawn_twice_to_look_bold_is_read_once() {
        let bold = [(0.0, 0.0, "a"), (0.3, 0.0, "a"), (5.0, 0.0, "b"), (5.3, 0.0, "b")];
        assert_eq!(read(&bold), "ab");
        assert_eq!(read(&[(0.0, 0.0, "a"), (5.0, 0.0, "a")]), "aa");
    }

    #[test]
    fn spaces_are_not_doubled_and_control_characters_not_shown() {
        assert_eq!(read(&[(0.0, 0.0, "a"), (9.0, 0.0, " "), (14.0, 0.0, "b")]), "a b");
        assert_eq!(read(&[(0.0, 0.0, "a\u{1b}\u{a0}"), (5.0, 0.0, "b")]), "a b");
        assert_eq!(read(&[(0.0, 0.0, "a "), (0.0, 12.0, "b")]), "a\nb");
    }

    #[test]
    fn rotated_text_is_a_line_of_its_own() {
        let mut lines = lines(100);
        lines.add(Affine::new([0.01, 0.0, 0.0, 0.01, 0.0, 0.0]), 500.0, "a");
        lines.add(Affine::new([0.0, 0.01, -0.01, 0.0, 5.0, 0.0]), 500.0, "b");
        lines.add(Affine::new([0.0, 0.01, -0.01, 0.0, 5.0, 5.0]), 500.0, "c");
        assert_eq!(trimmed(&lines.text), "a\nbc");
    }

    proptest! {
        #[test]
        fn any_transform_is_accepted_and_the_limit_holds(
            glyphs in prop::collection::vec((prop::array::uniform6(any::<f64>()), any::<f64>(), ".{0,4}"), 0..40),
            max_bytes in 0..60_usize,
        ) {
            let mut lines = lines(max_bytes);
            for (place, width, letters) in &glyphs {
                lines.add(Affine::new(*place), *width, letters);
            }
            let full = lines.is_full;
            let text = trimmed(&lines.text);
            // Only the whitespace between glyphs is added.
            prop_assert!(text.len() <= max_bytes + 2 * glyphs.len());
            prop_assert!(full || glyphs.iter().map(|(_, _, letters)| letters.len()).sum::<usize>() >= text.replace(['\n', ' '], "").len());
        }
    }
}
