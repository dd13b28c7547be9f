//! Glyphs, put together to words and lines.

use hayro_cmap::BfString;
use hayro_interpret::font::{Glyph, GlyphRun};
use hayro_interpret::{
    BlendMode, ClipPath, Device, DrawMode, DrawProps, Image, ImageDrawProps, SoftMask,
};
use kurbo::{Affine, BezPath, Point, Vec2};

/// Glyphs are drawn in thousandths of their size.
const UNITS: f64 = 1000.0;

/// The text that a page draws.
#[derive(Debug)]
pub(crate) struct Lines {
    text: String,
    most: usize,
    last: Option<Drawn>,
    pub(crate) glyphs: usize,
    pub(crate) unknown: usize,
    /// Whether there was more than `most`.
    pub(crate) full: bool,
}

/// A glyph on the page.
#[derive(Clone, Copy, Debug)]
struct Drawn {
    start: Point,
    end: Point,
    /// The way that the line goes.
    along: Vec2,
    size: f64,
    letter: Option<char>,
}

impl Lines {
    pub(crate) fn new(most: usize) -> Self {
        Self { text: String::new(), most, last: None, glyphs: 0, unknown: 0, full: false }
    }

    /// The lines, without blanks at their ends.
    pub(crate) fn finish(self) -> String {
        let lines: Vec<_> = self.text.lines().map(str::trim_end).collect();
        lines.join("\n").trim_matches('\n').to_owned()
    }

    fn add(&mut self, place: Affine, width: f64, letters: &str) {
        let [a, b, c, d, x, y] = place.as_coeffs();
        let along = Vec2::new(a, b);
        let (stretch, size) = (along.hypot(), Vec2::new(c, d).hypot() * UNITS);
        if !(x.is_finite() && y.is_finite() && size.is_finite() && stretch > 0.0 && size > 0.0) {
            return;
        }
        let start = Point::new(x, y);
        let along = along / stretch;
        let end = start + along * (width * stretch);
        let drawn = Drawn { start, end, along, size, letter: letters.chars().next() };
        match self.last.map(|last| last.before(&drawn)) {
            None | Some(Gap::None) => {}
            // Drawn twice to look bold.
            Some(Gap::Same) => return,
            Some(Gap::Word) => {
                if !self.text.ends_with([' ', '\n']) && !letters.starts_with(' ') {
                    self.text.push(' ');
                }
            }
            Some(Gap::Line) => self.text.push('\n'),
            Some(Gap::Paragraph) => self.text.push_str("\n\n"),
        }
        self.last = Some(drawn);
        if self.text.len() + letters.len() > self.most {
            self.full = true;
        } else {
            let visible = letters.chars().filter(|letter| !letter.is_control());
            self.text.extend(visible.map(|letter| if letter == '\u{a0}' { ' ' } else { letter }));
        }
    }
}

/// What is between two glyphs.
enum Gap {
    None,
    Same,
    Word,
    Line,
    Paragraph,
}

impl Drawn {
    fn before(&self, next: &Self) -> Gap {
        let size = self.size.max(next.size);
        let moved = next.start - self.end;
        let (ahead, across) = (moved.dot(self.along), moved.cross(self.along).abs());
        let turned = self.along.dot(next.along) < 0.9;
        let same = (next.start - self.start).hypot() < 0.1 * size && next.letter == self.letter;
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

impl<'a> Device<'a> for Lines {
    fn draw_glyph_run(&mut self, run: &GlyphRun<'_, 'a>, props: DrawProps<'a>, _: &DrawMode) {
        for glyph in run.glyphs() {
            if self.full {
                return;
            }
            self.glyphs += 1;
            let letters = match glyph.as_unicode() {
                Some(BfString::Char(letter)) => letter.to_string(),
                Some(BfString::String(letters)) => letters,
                None => {
                    self.unknown += 1;
                    "\u{fffd}".into()
                }
            };
            let width = match &**glyph {
                Glyph::Outline(glyph) => glyph.advance_width(),
                Glyph::Type3(glyph) => glyph.advance_width(),
            };
            let place = props.transform * glyph.transform();
            self.add(place, f64::from(width.unwrap_or(500.0)), &letters);
        }
    }

    fn draw_path(&mut self, _: &BezPath, _: DrawProps<'a>, _: &DrawMode) {}
    fn push_clip_path(&mut self, _: &ClipPath) {}
    fn push_transparency_group(&mut self, _: f32, _: Option<SoftMask<'a>>, _: BlendMode) {}
    fn draw_image(&mut self, _: Image<'a, '_>, _: ImageDrawProps<'a>) {}
    fn pop_clip(&mut self) {}
    fn pop_transparency_group(&mut self) {}
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// What is read where letters of size 10 and width 5 are drawn at these places.
    fn read(drawn: &[(f64, f64, &str)]) -> String {
        let mut lines = Lines::new(1_000);
        for (x, y, letters) in drawn {
            lines.add(Affine::new([0.01, 0.0, 0.0, 0.01, *x, *y]), 500.0, letters);
        }
        lines.finish()
    }

    #[test]
    fn gaps_make_words_lines_and_paragraphs() {
        for (second, text) in [
            ((5.0, 0.0), "ab"),
            ((6.0, 0.0), "ab"),
            ((7.5, 0.0), "a b"),
            ((60.0, 0.0), "a b"),
            // Raised a little, as a power is.
            ((5.0, 4.0), "ab"),
            ((0.0, 12.0), "a\nb"),
            ((60.0, 12.0), "a\nb"),
            ((0.0, 30.0), "a\n\nb"),
            // Back to the left: another line, or a column.
            ((-40.0, 0.0), "a\nb"),
        ] {
            assert_eq!(read(&[(0.0, 0.0, "a"), (second.0, second.1, "b")]), text, "{second:?}");
        }
    }

    #[test]
    fn what_is_drawn_twice_to_look_bold_is_read_once() {
        let bold = [(0.0, 0.0, "a"), (0.3, 0.0, "a"), (5.0, 0.0, "b"), (5.3, 0.0, "b")];
        assert_eq!(read(&bold), "ab");
        assert_eq!(read(&[(0.0, 0.0, "a"), (5.0, 0.0, "a")]), "aa");
    }

    #[test]
    fn blanks_are_not_doubled_and_controls_not_shown() {
        assert_eq!(read(&[(0.0, 0.0, "a"), (9.0, 0.0, " "), (14.0, 0.0, "b")]), "a b");
        assert_eq!(read(&[(0.0, 0.0, "a\u{1b}\u{a0}"), (5.0, 0.0, "b")]), "a b");
        assert_eq!(read(&[(0.0, 0.0, "a "), (0.0, 12.0, "b")]), "a\nb");
    }

    #[test]
    fn turned_text_is_a_line_of_its_own() {
        let mut lines = Lines::new(100);
        lines.add(Affine::new([0.01, 0.0, 0.0, 0.01, 0.0, 0.0]), 500.0, "a");
        lines.add(Affine::new([0.0, 0.01, -0.01, 0.0, 5.0, 0.0]), 500.0, "b");
        lines.add(Affine::new([0.0, 0.01, -0.01, 0.0, 5.0, 5.0]), 500.0, "c");
        assert_eq!(lines.finish(), "a\nbc");
    }

    proptest! {
        #[test]
        fn no_place_is_too_odd_and_the_limit_holds(
            glyphs in prop::collection::vec((prop::array::uniform6(any::<f64>()), any::<f64>(), ".{0,4}"), 0..40),
            most in 0..60_usize,
        ) {
            let mut lines = Lines::new(most);
            for (place, width, letters) in &glyphs {
                lines.add(Affine::new(*place), *width, letters);
            }
            let full = lines.full;
            let text = lines.finish();
            // Only what is between letters comes on top.
            prop_assert!(text.len() <= most + 2 * glyphs.len());
            prop_assert!(full || glyphs.iter().map(|(_, _, letters)| letters.len()).sum::<usize>() >= text.replace(['\n', ' '], "").len());
        }
    }
}
