//! Runs the content of a page and of the forms that it draws, as far as text depends on it.
//!
//! Only the matrices, the text state and optional content decide where text is. Paths, colours, shadings and images
//! are counted, but never decoded. The state follows ISO 32000-2, chapters 8 and 9.

use std::sync::Arc;

use hayro_cmap::{BfString, load_embedded};
use hayro_font::kurbo::{Affine, Vec2};
use hayro_font::{
    CMapResolverFn, Font, FontCache, FontGlyph, FontResolverFn, GlyphId, StandardFont,
};
use hayro_syntax::content::TypedIter;
use hayro_syntax::content::ops::TypedInstruction;
use hayro_syntax::object::dict::keys::{BBOX, FONT, FORM, MATRIX, OC, RESOURCES, SUBTYPE};
use hayro_syntax::object::{Array, Dict, Name, Object, Stream, dict_or_stream};
use hayro_syntax::page::Resources;

use crate::budget::Interrupt;
use crate::lines::{Lines, UNITS};
use crate::optional_content::OptionalContent;

/// How deep forms may draw forms.
const MAX_FORMS: usize = 50;

/// How many graphics states may be saved. Saving more has no effect.
const MAX_STATES: usize = 1 << 12;

/// Operators that draw nothing count as one operation for so many of them.
const OPERATORS_PER_OPERATION: usize = 64;

/// The fonts of a document.
pub(crate) struct Fonts<'a> {
    cache: FontCache<'a>,
    font_resolver: FontResolverFn,
    cmap_resolver: CMapResolverFn,
}

impl<'a> Fonts<'a> {
    pub(crate) fn new() -> Self {
        Self {
            cache: FontCache::new(),
            // A font that is not embedded has to be replaced by one. Which one decides only what glyphs look like: the
            // letters and widths are in the document, or in tables of the standard fonts. So the others are left out.
            font_resolver: Arc::new(|_| Some(StandardFont::Helvetica.get_font_data())),
            cmap_resolver: Arc::new(load_embedded),
        }
    }

    fn load(&self, font: &Dict<'a>) -> Option<TextFont<'a>> {
        let loaded = self.cache.font(font, &self.font_resolver, &self.cmap_resolver);
        loaded.map(|font| TextFont { font, is_fallback: false }).or_else(|| self.fallback())
    }

    /// The font for text without one, as in other readers.
    fn fallback(&self) -> Option<TextFont<'a>> {
        let font = self.cache.standard_font(StandardFont::Helvetica, &self.font_resolver)?;
        Some(TextFont { font, is_fallback: true })
    }
}

#[derive(Clone)]
struct TextFont<'a> {
    font: Font<'a>,
    /// Whether the document has no such font. Only ASCII text is read then, since the rest would be garbage.
    is_fallback: bool,
}

/// The part of the graphics state that moves text.
#[derive(Clone)]
struct State<'a> {
    transform: Affine,
    text_matrix: Affine,
    line_matrix: Affine,
    font: Option<TextFont<'a>>,
    font_size: f32,
    character_spacing: f32,
    word_spacing: f32,
    /// In percent.
    horizontal_scaling: f32,
    leading: f32,
    rise: f32,
}

impl State<'_> {
    fn next_line(&mut self, by: Vec2) {
        self.line_matrix *= Affine::translate(by);
        self.text_matrix = self.line_matrix;
    }

    fn next_line_by_leading(&mut self) {
        self.next_line(Vec2::new(0.0, -f64::from(self.leading)));
    }

    /// Moves along the line, whose direction depends on the font.
    fn advance(&mut self, by: f32) {
        let is_vertical = self.font.as_ref().is_some_and(|font| !font.font.is_horizontal());
        let by = if is_vertical {
            Vec2::new(0.0, by.into())
        } else {
            Vec2::new((by * (self.horizontal_scaling / 100.0)).into(), 0.0)
        };
        self.text_matrix *= Affine::translate(by);
    }

    /// The transform from the coordinates of glyphs, which are in thousandths of the font size, to the user's.
    fn glyph_transform(&self) -> Affine {
        let (size, scaling) =
            (f64::from(self.font_size), f64::from(self.horizontal_scaling / 100.0));
        let text = Affine::new([size * scaling, 0.0, 0.0, size, 0.0, self.rise.into()]);
        self.text_matrix * text * Affine::scale(1.0 / UNITS)
    }
}

/// Reads the text that content draws.
pub(crate) struct Interpreter<'i, 'a, 'k> {
    fonts: &'i Fonts<'a>,
    lines: &'i mut Lines<'k>,
    optional: OptionalContent,
    state: State<'a>,
    saved: Vec<State<'a>>,
    /// The number of states that were not saved because there were too many.
    unsaved: usize,
    /// The numbers of saved states and of marks around the current content, which it cannot end.
    floor: usize,
    marked_floor: usize,
    forms: usize,
    operators: usize,
}

impl<'i, 'a, 'k> Interpreter<'i, 'a, 'k> {
    /// For a page with this transform, in a document with this catalog.
    pub(crate) fn new(
        transform: Affine,
        catalog: Option<&Dict<'_>>,
        fonts: &'i Fonts<'a>,
        lines: &'i mut Lines<'k>,
    ) -> Self {
        let state = State {
            transform,
            text_matrix: Affine::IDENTITY,
            line_matrix: Affine::IDENTITY,
            font: None,
            font_size: 1.0,
            character_spacing: 0.0,
            word_spacing: 0.0,
            horizontal_scaling: 100.0,
            leading: 0.0,
            rise: 0.0,
        };
        let optional = catalog.map(OptionalContent::of_document).unwrap_or_default();
        Self {
            fonts,
            lines,
            optional,
            state,
            saved: Vec::new(),
            unsaved: 0,
            floor: 0,
            marked_floor: 0,
            forms: 0,
            operators: 0,
        }
    }

    /// Runs content until its end. Afterwards the state is as before, whatever the content saved, restored or marked.
    pub(crate) fn run(
        &mut self,
        content: &[u8],
        resources: &Resources<'a>,
    ) -> Result<(), Interrupt> {
        let (outer, depth, marks) = (self.state.clone(), self.depth(), self.optional.depth());
        let floor = std::mem::replace(&mut self.floor, depth);
        let marked_floor = std::mem::replace(&mut self.marked_floor, marks);
        let mut instructions = TypedIter::new(content);
        while let Some(instruction) = instructions.next() {
            self.operators += 1;
            if self.operators.is_multiple_of(OPERATORS_PER_OPERATION) {
                self.lines.count(1)?;
            }
            self.instruction(&instruction, resources)?;
        }
        while self.depth() > depth {
            self.restore();
        }
        self.optional.end_down_to(marks);
        (self.state, self.floor, self.marked_floor) = (outer, floor, marked_floor);
        Ok(())
    }

    fn depth(&self) -> usize {
        self.saved.len() + self.unsaved
    }

    fn save(&mut self) {
        if self.saved.len() < MAX_STATES {
            self.saved.push(self.state.clone());
        } else {
            self.unsaved += 1;
        }
    }

    fn restore(&mut self) {
        if self.unsaved > 0 {
            self.unsaved -= 1;
        } else if let Some(state) = self.saved.pop() {
            self.state = state;
        }
    }

    fn instruction(
        &mut self,
        instruction: &TypedInstruction<'_, '_>,
        resources: &Resources<'a>,
    ) -> Result<(), Interrupt> {
        use TypedInstruction as I;
        match instruction {
            I::SaveState(_) => self.save(),
            I::RestoreState(_) if self.depth() > self.floor => self.restore(),
            I::RestoreState(_) => {}
            I::Transform(m) => {
                self.state.transform *=
                    Affine::new([m.0, m.1, m.2, m.3, m.4, m.5].map(|number| number.as_f64()));
            }
            I::SetGraphicsState(name) => {
                if let Some(state) = resources.get_ext_g_state(name.0) {
                    self.set_font_of(&state);
                }
            }
            I::BeginText(_) => {
                self.state.text_matrix = Affine::IDENTITY;
                self.state.line_matrix = Affine::IDENTITY;
            }
            I::SetTextMatrix(m) => {
                let matrix = [m.0, m.1, m.2, m.3, m.4, m.5].map(|number| number.as_f64());
                self.state.line_matrix = Affine::new(matrix);
                self.state.text_matrix = self.state.line_matrix;
            }
            I::TextFont(font) => {
                self.state.font = match resources.get_font(font.0) {
                    Some(font) => self.fonts.load(&font),
                    None => self.fonts.fallback(),
                };
                self.state.font_size = font.1.as_f32();
            }
            I::HorizontalScaling(scaling) => self.state.horizontal_scaling = scaling.0.as_f32(),
            I::TextLeading(leading) => self.state.leading = leading.0.as_f32(),
            I::CharacterSpacing(spacing) => self.state.character_spacing = spacing.0.as_f32(),
            I::WordSpacing(spacing) => self.state.word_spacing = spacing.0.as_f32(),
            I::TextRise(rise) => self.state.rise = rise.0.as_f32(),
            I::NextLine(by) => self.state.next_line(Vec2::new(by.0.as_f64(), by.1.as_f64())),
            I::NextLineAndSetLeading(by) => {
                self.state.leading = -by.1.as_f32();
                self.state.next_line(Vec2::new(by.0.as_f64(), by.1.as_f64()));
            }
            I::NextLineUsingLeading(_) => self.state.next_line_by_leading(),
            I::ShowText(text) => self.show(text.0.as_bytes())?,
            I::ShowTexts(texts) => {
                for part in texts.0.iter::<Object<'_>>() {
                    match part {
                        Object::Number(back) => {
                            self.state
                                .advance(-back.as_f32() / UNITS as f32 * self.state.font_size);
                        }
                        Object::String(text) => self.show(text.as_bytes())?,
                        _ => {}
                    }
                }
            }
            I::NextLineAndShowText(text) => {
                self.state.next_line_by_leading();
                self.show(text.0.as_bytes())?;
            }
            I::ShowTextWithParameters(text) => {
                self.state.word_spacing = text.0.as_f32();
                self.state.character_spacing = text.1.as_f32();
                self.state.next_line_by_leading();
                self.show(text.2.as_bytes())?;
            }
            I::BeginMarkedContent(_) => {
                self.lines.count(1)?;
                self.optional.begin();
            }
            I::BeginMarkedContentWithProperties(content) => {
                self.lines.count(1)?;
                // Only this tag marks optional content.
                if **content.0 == *OC {
                    self.begin_marked_content(content.1, resources);
                } else {
                    self.optional.begin();
                }
            }
            I::EndMarkedContent(_) if self.optional.depth() > self.marked_floor => {
                self.optional.end();
            }
            I::EndMarkedContent(_) => {}
            I::XObject(name) => {
                self.lines.count(1)?;
                if let Some(object) = resources.get_x_object(name.0) {
                    self.form(&object, resources)?;
                }
            }
            I::StrokePath(_)
            | I::CloseAndStrokePath(_)
            | I::FillPathNonZero(_)
            | I::FillPathNonZeroCompatibility(_)
            | I::FillPathEvenOdd(_)
            | I::FillAndStrokeNonZero(_)
            | I::FillAndStrokeEvenOdd(_)
            | I::CloseFillAndStrokeNonZero(_)
            | I::CloseFillAndStrokeEvenOdd(_)
            | I::ClipNonZero(_)
            | I::ClipEvenOdd(_)
            | I::Shading(_)
            | I::InlineImage(_) => self.lines.count(1)?,
            _ => {}
        }
        Ok(())
    }

    /// Sets the font that a graphics state parameter dictionary has, if any.
    fn set_font_of(&mut self, state: &Dict<'a>) {
        let Some(font) = state.get::<Array<'a>>(FONT) else { return };
        let mut parts = font.iter::<Object<'a>>();
        let dictionary = parts.next().and_then(Object::into_dict);
        let size = parts.next().and_then(Object::into_number);
        if let (Some(dictionary), Some(size)) = (dictionary, size) {
            self.state.font = self.fonts.load(&dictionary);
            self.state.font_size = size.as_f32();
        }
    }

    fn begin_marked_content(&mut self, properties: &Object<'_>, resources: &Resources<'a>) {
        let named = properties.clone().into_name().and_then(|name| {
            let id = resources.properties.get_ref(name.as_ref())?;
            Some((resources.properties.get::<Dict<'_>>(name).unwrap_or_default(), id))
        });
        if let Some((group, id)) = named {
            return self.optional.begin_group(&group, Some(id.into()));
        }
        let inline = dict_or_stream(properties).and_then(|(properties, _)| {
            let id = properties.get_ref(OC)?;
            Some((properties.get::<Dict<'_>>(OC).unwrap_or_default(), id))
        });
        match inline {
            Some((group, id)) => self.optional.begin_group(&group, Some(id.into())),
            None => self.optional.begin(),
        }
    }

    /// Runs the content of a form. Other external objects have no text.
    fn form(&mut self, object: &Stream<'a>, resources: &Resources<'a>) -> Result<(), Interrupt> {
        let dictionary = object.dict();
        let is_form = dictionary.get::<Name<'_>>(SUBTYPE).is_some_and(|kind| &*kind == FORM);
        // A form without a bounding box is not drawn.
        let has_box = || dictionary.get::<[f32; 4]>(BBOX).is_some();
        if !is_form || !has_box() || self.forms >= MAX_FORMS || !self.optional.is_visible() {
            return Ok(());
        }
        let group = dictionary.get::<Dict<'_>>(OC);
        if let Some(group) = &group {
            self.optional.begin_group(group, dictionary.get_ref(OC).map(Into::into));
        }
        if self.optional.is_visible()
            && let Ok(content) = object.decoded_data()
        {
            let own = dictionary.get(RESOURCES).map(Resources::new);
            let outer = self.state.clone();
            if let Some(matrix) = dictionary.get::<[f64; 6]>(MATRIX) {
                self.state.transform *= Affine::new(matrix);
            }
            self.forms += 1;
            self.run(&content, own.as_ref().unwrap_or(resources))?;
            self.forms -= 1;
            self.state = outer;
        }
        if group.is_some() {
            self.optional.end();
        }
        Ok(())
    }

    /// Adds the glyphs of a string, each at its place.
    fn show(&mut self, text: &[u8]) -> Result<(), Interrupt> {
        if self.state.font.is_none() {
            self.state.font = self.fonts.fallback();
        }
        let Some(TextFont { font, is_fallback }) = self.state.font.clone() else { return Ok(()) };
        let is_visible = self.optional.is_visible() && (!is_fallback || text.is_ascii());
        let mut start = 0;
        while start < text.len() {
            let (code, length) = font.read_code(text, start);
            start += length;
            if is_visible {
                self.lines.count(1)?;
                // Neither the text nor the width of a glyph depends on its outline.
                let (letters, width) = match font.glyph(GlyphId::NOTDEF, code) {
                    FontGlyph::Outline(glyph) => (glyph.as_unicode(), glyph.advance_width()),
                    FontGlyph::Type3(glyph) => (glyph.as_unicode(), Some(glyph.advance_width())),
                };
                let letters = letters.map(|letters| match letters {
                    BfString::Char(letter) => letter.to_string(),
                    BfString::String(letters) => letters,
                });
                let place = self.state.glyph_transform()
                    * Affine::translate(font.origin_displacement(code));
                let place = self.state.transform * place;
                self.lines.add_glyph(place, width.map(f64::from), letters.as_deref());
            }
            let advance = font.code_advance(code);
            let advance = if font.is_horizontal() { advance.x } else { advance.y } as f32;
            let is_space = code == 32 && length == 1;
            let word_spacing = if is_space { self.state.word_spacing } else { 0.0 };
            let scaled = advance / UNITS as f32 * self.state.font_size;
            self.state.advance(scaled + self.state.character_spacing + word_spacing);
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use crate::{Budget, ExtractError, PdfRequest, extract};

    /// The text of a page with this content. `/X` is a form with the content of the second part, `/L` a hidden layer,
    /// and `/M` content that is shown if that layer is hidden.
    fn text(content: &str, form: &str) -> String {
        let stream = |entries: &str, content: &str| {
            format!("<< /Length {} {entries} >>\nstream\n{content}\nendstream", content.len())
        };
        let objects = [
            "<< /Type /Catalog /Pages 2 0 R /OCProperties << /OCGs [6 0 R] /D << /OFF [6 0 R] >> >> >>",
            "<< /Type /Pages /Kids [3 0 R] /Count 1 >>",
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 600 800] /Contents 7 0 R /Resources 4 0 R >>",
            "<< /Font << /F 5 0 R >> /XObject << /X 8 0 R /Hidden 9 0 R /Boxless 10 0 R >> \
             /Properties << /L 6 0 R /M 11 0 R >> /ExtGState << /G << /Font [5 0 R 10] >> >> >>",
            "<< /Type /Font /Subtype /Type1 /BaseFont /Courier >>",
            "<< /Type /OCG /Name (Layer) >>",
            &stream("", content),
            &stream(
                "/Subtype /Form /BBox [0 0 9 9] /Matrix [1 0 0 1 0 100] /Resources 4 0 R",
                form,
            ),
            &stream("/Subtype /Form /BBox [0 0 9 9] /OC 6 0 R", form),
            &stream("/Subtype /Form", form),
            "<< /Type /OCMD /OCGs [6 0 R] /P /AllOff >>",
        ];
        let objects = objects.iter().zip(1..);
        let objects = objects.map(|(object, id)| format!("{id} 0 obj\n{object}\nendobj\n"));
        let file = format!(
            "%PDF-1.7\n{}trailer << /Size 12 /Root 1 0 R >>\n%%EOF\n",
            objects.collect::<String>()
        );
        let request = PdfRequest { first: 1, last: 1, max_bytes: 10_000 };
        let budget = Budget { page_operations: 10_000, ..Budget::default() };
        match extract(file.into_bytes(), request, budget, &|| true) {
            Ok(extracted) => extracted.pages.join("\n"),
            Err(ExtractError::TooComplex(page)) => format!("page {page} is too complex"),
            Err(error) => panic!("{error:?}"),
        }
    }

    #[test]
    fn operators_place_text() {
        for (content, read) in [
            ("(a) Tj", "a"),
            // Courier is 600 wide: a gap of less than a sixth of the size is none.
            ("[(a) -100 (b)] TJ", "ab"),
            ("[(a) -300 (b)] TJ", "a b"),
            ("2 Tc (ab) Tj", "a b"),
            ("5 Tw (a b) Tj", "a b"),
            ("(a) Tj 10 0 Td (b) Tj", "a b"),
            ("(a) Tj 6 0 Td (b) Tj", "ab"),
            ("200 Tz (a) Tj 12 0 Td (b) Tj", "ab"),
            ("(a) Tj 0 -12 Td (b) Tj", "a\nb"),
            ("(a) Tj 0 -12 TD (b) Tj T* (c) Tj", "a\nb\nc"),
            ("12 TL (a) Tj (b) ' 0 0 (c) \"", "a\nb\nc"),
            ("(a) Tj 1 0 0 1 6 0 Tm (b) Tj", "ab"),
            ("(a) Tj 4 Ts (b) Tj", "ab"),
            ("(a) Tj 0 Tc ET BT 1 0 0 1 0 -30 Tm (b) Tj", "a\n\nb"),
            // Filled and stroked is drawn twice, and read once.
            ("2 Tr (ab) Tj", "ab"),
            ("3 Tr (invisible) Tj", "invisible"),
            // Narrow letters are as near to each other as one that is drawn twice.
            ("10 Tz (hello 1000) Tj", "hello 1000"),
            ("(a) Tj 0.3 0 Td (a) Tj", "a"),
            ("(a) Tj /Missing 10 Tf (b\\344) Tj (c) Tj", "a c"),
        ] {
            assert_eq!(text(&format!("BT /F 10 Tf {content} ET"), ""), read, "{content}");
        }
        assert_eq!(text("BT (no font) Tj ET", ""), "no font");
        assert_eq!(text("/G gs BT (a) Tj 6 0 Td (b) Tj ET", ""), "ab");
    }

    #[test]
    fn states_are_saved_and_restored() {
        let content = "q 1 0 0 1 0 50 cm q BT /F 10 Tf (a) Tj ET Q Q Q BT /F 10 Tf (b) Tj ET";
        assert_eq!(text(content, ""), "a\n\nb");
        let deep = format!("{} BT /F 10 Tf (a) Tj ET {}", "q ".repeat(9_000), "Q ".repeat(10_000));
        assert_eq!(text(&deep, ""), "a");
        // A form cannot change the state around it, however deep it is.
        for before in ["", &"q ".repeat(5_000)] {
            let content =
                format!("{before} BT /F 10 Tf (a) Tj ET /X Do BT /F 10 Tf 6 0 Td (b) Tj ET");
            assert_eq!(text(&content, "Q Q 1 0 0 1 0 300 cm"), "ab");
        }
    }

    #[test]
    fn forms_are_drawn_where_their_matrix_says() {
        let form = "BT /F 10 Tf (form) Tj ET";
        assert_eq!(text("/X Do BT /F 10 Tf (page) Tj ET", form), "form\n\npage");
        assert_eq!(text("/Boxless Do BT /F 10 Tf (page) Tj ET", form), "page");
        // A form that draws itself ends, and so does one that draws itself twice.
        assert_eq!(text("/X Do", "BT /F 10 Tf (a) Tj ET /X Do").matches('a').count(), 50);
        assert_eq!(text("/X Do", "/X Do /X Do"), "page 1 is too complex");
    }

    #[test]
    fn hidden_layers_are_not_read() {
        let form = "BT /F 10 Tf (form) Tj ET";
        assert_eq!(text("/Hidden Do BT /F 10 Tf (page) Tj ET", form), "page");
        let layers = "BT /F 10 Tf /OC /L BDC /P BMC (a) Tj EMC EMC /OC /M BDC (b) Tj EMC (c) Tj ET";
        assert_eq!(text(layers, ""), "bc");
        // Only the tag `OC` marks a layer, and a form hides nothing after it.
        assert_eq!(text("BT /F 10 Tf /Span /L BDC (a) Tj EMC (b) Tj ET", ""), "ab");
        assert_eq!(text("/X Do BT /F 10 Tf (page) Tj ET", "/OC /L BDC"), "page");
        let ends = "BT /F 10 Tf /OC /L BDC (a) Tj ET /X Do BT (b) Tj EMC (c) Tj ET";
        assert_eq!(text(ends, "EMC"), "c");
    }
}
