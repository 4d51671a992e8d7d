//! The font of pictures: a subset of DejaVu Sans, see `font/LICENSE-DEJAVU`.

use tiny_skia::PathBuilder;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static BYTES: &[u8] = include_bytes!("../../font/DejaVuSans-subset.ttf");

/// Parses the font. It is part of the program and parsed in a test, so this does not return `None`.
fn face() -> Option<Face<'static>> {
    Face::parse(BYTES, 0).ok()
}

/// Returns the glyph of a character, or the replacement box if the font does not have it.
fn glyph(face: &Face<'_>, c: char) -> GlyphId {
    face.glyph_index(c).unwrap_or(GlyphId(0))
}

/// Returns the width of a text in units of the font size.
pub fn width(text: &str) -> f64 {
    let Some(face) = face() else { return 0.6 * text.chars().count() as f64 };
    let units = f64::from(face.units_per_em());
    text.chars().map(|c| f64::from(face.glyph_hor_advance(glyph(&face, c)).unwrap_or(0)) / units).sum()
}

/// Adds the outline of a text to a path; `turned` rotates it to read upwards.
pub fn outline(path: &mut PathBuilder, text: &str, [x, y]: [f64; 2], size: f64, turned: bool) {
    let Some(face) = face() else { return };
    let scale = size / f64::from(face.units_per_em());
    let mut advance = 0.0;
    for c in text.chars() {
        let id = glyph(&face, c);
        face.outline_glyph(id, &mut Pen { path, at: [x, y], advance, scale, turned });
        advance += scale * f64::from(face.glyph_hor_advance(id).unwrap_or(0));
    }
}

/// Transforms the outline of one glyph and appends it to a path.
struct Pen<'a> {
    path: &'a mut PathBuilder,
    at: [f64; 2],
    /// Distance of the glyph from `at` along the text.
    advance: f64,
    scale: f64,
    turned: bool,
}

impl Pen<'_> {
    /// Transforms from font units to the picture.
    fn transform(&self, x: f32, y: f32) -> (f32, f32) {
        let (u, v) = (self.advance + self.scale * f64::from(x), self.scale * f64::from(y));
        let [x, y] = self.at;
        if self.turned { ((x - v) as f32, (y - u) as f32) } else { ((x + u) as f32, (y - v) as f32) }
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.transform(x, y);
        self.path.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.transform(x, y);
        self.path.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((a, b), (c, d)) = (self.transform(x1, y1), self.transform(x, y));
        self.path.quad_to(a, b, c, d);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((a, b), (c, d), (e, f)) = (self.transform(x1, y1), self.transform(x2, y2), self.transform(x, y));
        self.path.cubic_to(a, b, c, d, e, f);
    }
    fn close(&mut self) {
        self.path.close();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_font_has_what_labels_need() {
        let face = face().expect("the font");
        for c in "AZaz09 +−·×√⟨⟩θφρσε²₁⁻¹°ÅΔ".chars() {
            assert!(face.glyph_index(c).is_some(), "{c}");
        }
        assert!(width("WWW") > 2.0 * width("iii") && width("") == 0.0);
        let mut path = PathBuilder::new();
        outline(&mut path, "kT", [0.0, 0.0], 10.0, false);
        let bounds = path.finish().expect("an outline").bounds();
        assert!(bounds.top() < -6.0 && bounds.bottom().abs() < 0.5 && bounds.right() < 10.0 * width("kT") as f32 + 1.0);
    }
}
