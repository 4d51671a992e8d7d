//! The font of pictures: a part of DejaVu Sans, see `font/LICENSE-DEJAVU`.

use tiny_skia::PathBuilder;
use ttf_parser::{Face, GlyphId, OutlineBuilder};

static BYTES: &[u8] = include_bytes!("../font/DejaVuSans-subset.ttf");

/// The font; `None` never happens, since the file is part of the program and a test reads it.
fn face() -> Option<Face<'static>> {
    Face::parse(BYTES, 0).ok()
}

/// The glyph of a character, or the box that stands for what the font does not have.
fn glyph(face: &Face<'_>, c: char) -> GlyphId {
    face.glyph_index(c).unwrap_or(GlyphId(0))
}

/// Width of a text in units of the font's size.
pub fn width(text: &str) -> f64 {
    let Some(face) = face() else { return 0.6 * text.chars().count() as f64 };
    let units = f64::from(face.units_per_em());
    text.chars().map(|c| f64::from(face.glyph_hor_advance(glyph(&face, c)).unwrap_or(0)) / units).sum()
}

/// Adds the outline of a text to a path; `turned` writes it upwards.
pub fn outline(path: &mut PathBuilder, text: &str, [x, y]: [f64; 2], size: f64, turned: bool) {
    let Some(face) = face() else { return };
    let scale = size / f64::from(face.units_per_em());
    let mut pen = 0.0;
    for c in text.chars() {
        let id = glyph(&face, c);
        face.outline_glyph(id, &mut Pen { path, at: [x, y], pen, scale, turned });
        pen += scale * f64::from(face.glyph_hor_advance(id).unwrap_or(0));
    }
}

struct Pen<'a> {
    path: &'a mut PathBuilder,
    at: [f64; 2],
    pen: f64,
    scale: f64,
    turned: bool,
}

impl Pen<'_> {
    fn place(&self, x: f32, y: f32) -> (f32, f32) {
        let (u, v) = (self.pen + self.scale * f64::from(x), self.scale * f64::from(y));
        let [x, y] = self.at;
        if self.turned { ((x - v) as f32, (y - u) as f32) } else { ((x + u) as f32, (y - v) as f32) }
    }
}

impl OutlineBuilder for Pen<'_> {
    fn move_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.move_to(x, y);
    }
    fn line_to(&mut self, x: f32, y: f32) {
        let (x, y) = self.place(x, y);
        self.path.line_to(x, y);
    }
    fn quad_to(&mut self, x1: f32, y1: f32, x: f32, y: f32) {
        let ((a, b), (c, d)) = (self.place(x1, y1), self.place(x, y));
        self.path.quad_to(a, b, c, d);
    }
    fn curve_to(&mut self, x1: f32, y1: f32, x2: f32, y2: f32, x: f32, y: f32) {
        let ((a, b), (c, d), (e, f)) = (self.place(x1, y1), self.place(x2, y2), self.place(x, y));
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
