//! Vector drawings of lines and text, written as SVG or as pixels.

use crate::color::Rgb;
use crate::image::Image;
use crate::plot::font;
use std::fmt::Write as _;
use tiny_skia::{FillRule, LineCap, LineJoin, PathBuilder, Pixmap, Stroke, StrokeDash, Transform};

/// The paint of a shape.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Paint {
    /// The color of axes and text.
    Ink,
    /// The color of grid lines.
    Faint,
    /// The background color.
    Ground,
    /// A color and its opacity, 0 to 1.
    Color(Rgb, f64),
}

/// Alignment of a text at its anchor point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Anchor {
    /// The text starts at the point.
    Start,
    /// The text is centered on the point.
    Middle,
    /// The text ends at the point.
    End,
}

/// A shape; lengths are in points of the drawing.
#[derive(Clone, Debug, PartialEq)]
pub enum Shape {
    /// A filled area.
    Area(Vec<[f64; 2]>, Paint),
    /// A polyline.
    Line {
        /// The points.
        points: Vec<[f64; 2]>,
        /// Paint.
        paint: Paint,
        /// Width.
        width: f64,
        /// Lengths of dashes and gaps.
        dash: Option<[f64; 2]>,
    },
    /// A filled disc: center, radius.
    Dot([f64; 2], f64, Paint),
    /// A text.
    Text {
        /// Anchor point on the baseline.
        at: [f64; 2],
        /// The text.
        text: String,
        /// Font size.
        size: f64,
        /// Alignment at the anchor point.
        anchor: Anchor,
        /// Whether the text is rotated to read upwards.
        turned: bool,
        /// Paint.
        paint: Paint,
    },
}

/// Colors of ink and background in SVG.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Theme {
    /// Black on white, for a file.
    Paper,
    /// The colors of the surrounding page, which may be dark.
    Page,
}

/// A drawing.
#[derive(Clone, Debug, PartialEq)]
pub struct Drawing {
    /// Width in points.
    pub width: f64,
    /// Height in points.
    pub height: f64,
    /// Shapes, from bottom to top.
    pub shapes: Vec<Shape>,
}

/// Escapes text for XML and HTML.
pub fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            // not allowed in XML
            c if c.is_control() && !matches!(c, '\n' | '\t') => out.push('\u{fffd}'),
            c => out.push(c),
        }
    }
    out
}

/// Formats a length with at most two decimals.
fn short(x: f64) -> String {
    let text = format!("{x:.2}");
    match text.contains('.') {
        true => text.trim_end_matches('0').trim_end_matches('.').into(),
        false => text,
    }
}

/// Returns the `d` attribute of an SVG path.
fn path_of(points: &[[f64; 2]], closed: bool) -> String {
    let mut d = String::new();
    for (k, p) in points.iter().enumerate() {
        let _ = write!(d, "{}{} {}", if k == 0 { "M" } else { "L" }, short(p[0]), short(p[1]));
    }
    if closed {
        d.push('Z');
    }
    d
}

impl Drawing {
    /// Makes an empty drawing.
    pub fn new(width: f64, height: f64) -> Self {
        Self { width, height, shapes: vec![] }
    }

    /// Adds a polyline.
    pub fn line(&mut self, points: Vec<[f64; 2]>, paint: Paint, width: f64) {
        self.shapes.push(Shape::Line { points, paint, width, dash: None });
    }

    /// Adds a text.
    pub fn text(&mut self, at: [f64; 2], text: impl Into<String>, size: f64, anchor: Anchor) {
        self.shapes.push(Shape::Text { at, text: text.into(), size, anchor, turned: false, paint: Paint::Ink });
    }

    /// Returns the drawing as SVG.
    pub fn svg(&self, theme: Theme) -> String {
        let paint = |attribute: &str, p: Paint| svg_paint(theme, attribute, p);
        let mut s = format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0}\" height=\"{1}\" viewBox=\"0 0 {0} {1}\" \
             font-family=\"'DejaVu Sans', Verdana, Helvetica, sans-serif\" stroke-linejoin=\"round\" stroke-linecap=\"round\">\n",
            short(self.width),
            short(self.height)
        );
        if theme == Theme::Paper {
            s += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
        }
        for shape in &self.shapes {
            let _ = match shape {
                Shape::Area(points, p) => writeln!(s, "<path d=\"{}\" {}/>", path_of(points, true), paint("fill", *p)),
                Shape::Line { points, paint: p, width, dash } => {
                    let dash =
                        dash.map_or(String::new(), |[a, b]| format!(" stroke-dasharray=\"{} {}\"", short(a), short(b)));
                    let d = path_of(points, false);
                    writeln!(
                        s,
                        "<path d=\"{d}\" fill=\"none\" {} stroke-width=\"{}\"{dash}/>",
                        paint("stroke", *p),
                        short(*width)
                    )
                }
                Shape::Dot([x, y], r, p) => {
                    writeln!(
                        s,
                        "<circle cx=\"{}\" cy=\"{}\" r=\"{}\" {}/>",
                        short(*x),
                        short(*y),
                        short(*r),
                        paint("fill", *p)
                    )
                }
                Shape::Text { at: [x, y], text, size, anchor, turned, paint: p } => {
                    let anchor = ["start", "middle", "end"][*anchor as usize];
                    let place = match turned {
                        true => format!("transform=\"translate({} {}) rotate(-90)\"", short(*x), short(*y)),
                        false => format!("x=\"{}\" y=\"{}\"", short(*x), short(*y)),
                    };
                    let (size, fill, text) = (short(*size), paint("fill", *p), escape(text));
                    writeln!(s, "<text {place} font-size=\"{size}\" text-anchor=\"{anchor}\" {fill}>{text}</text>")
                }
            };
        }
        s + "</svg>\n"
    }

    /// Renders the drawing as pixels, black on white, with `scale` pixels per point.
    ///
    /// # Errors
    /// Returns an error if the image would be too large.
    pub fn image(&self, scale: f64) -> Result<Image, String> {
        let (width, height) = ((self.width * scale).round(), (self.height * scale).round());
        let too_large = || format!("a picture of {width} × {height} pixels is too large");
        if !(1.0..=20_000.0).contains(&width) || !(1.0..=20_000.0).contains(&height) {
            return Err(too_large());
        }
        let mut map = Pixmap::new(width as u32, height as u32).ok_or_else(too_large)?;
        map.fill(tiny_skia::Color::WHITE);
        let t = Transform::from_scale(scale as f32, scale as f32);
        for shape in &self.shapes {
            let (Shape::Area(_, paint)
            | Shape::Line { paint, .. }
            | Shape::Dot(_, _, paint)
            | Shape::Text { paint, .. }) = shape;
            let p = pixel_paint(*paint);
            let mut path = PathBuilder::new();
            let stroke = outline(shape, &mut path);
            // a line of one point or a text of blanks has no path
            let Some(path) = path.finish() else { continue };
            match stroke {
                Some(stroke) => map.stroke_path(&path, &p, &stroke, t, None),
                None => map.fill_path(&path, &p, FillRule::Winding, t, None),
            }
        }
        // the background is opaque, so the premultiplied colors are the colors
        let pixels = map.data().as_chunks::<4>().0.iter().flat_map(|p| [p[0], p[1], p[2]]).collect();
        Ok(Image { width: map.width(), height: map.height(), pixels })
    }
}

/// Returns color and opacity as SVG attributes; `attribute` is `fill` or `stroke`.
fn svg_paint(theme: Theme, attribute: &str, paint: Paint) -> String {
    let (color, opacity) = match (paint, theme) {
        (Paint::Ink, Theme::Paper) => ("#222222".to_string(), 1.0),
        (Paint::Faint, Theme::Paper) => ("#e3e3e3".to_string(), 1.0),
        (Paint::Ground, Theme::Paper) => ("#ffffff".to_string(), 0.85),
        (Paint::Ink, Theme::Page) => ("currentColor".to_string(), 1.0),
        (Paint::Faint, Theme::Page) => ("currentColor".to_string(), 0.14),
        (Paint::Ground, Theme::Page) => ("var(--ground, #ffffff)".to_string(), 0.85),
        (Paint::Color(c, opacity), _) => (c.to_string(), opacity),
    };
    match opacity < 1.0 {
        true => format!("{attribute}=\"{color}\" {attribute}-opacity=\"{}\"", short(opacity)),
        false => format!("{attribute}=\"{color}\""),
    }
}

/// Returns the paint of a shape for pixels, black on white.
fn pixel_paint(paint: Paint) -> tiny_skia::Paint<'static> {
    let (color, opacity) = match paint {
        Paint::Ink => (Rgb([0x22; 3]), 1.0),
        Paint::Faint => (Rgb([0xe3; 3]), 1.0),
        Paint::Ground => (Rgb::WHITE, 0.85),
        Paint::Color(c, opacity) => (c, opacity),
    };
    let [r, g, b] = color.0;
    let mut p = tiny_skia::Paint::default();
    p.set_color_rgba8(r, g, b, (255.0 * opacity) as u8);
    p
}

/// Adds the outline of a shape to a path. Returns the stroke of a line, or `None` for a filled shape.
fn outline(shape: &Shape, path: &mut PathBuilder) -> Option<Stroke> {
    let through = |path: &mut PathBuilder, points: &[[f64; 2]]| {
        for (k, [x, y]) in points.iter().enumerate() {
            let (x, y) = (*x as f32, *y as f32);
            if k == 0 { path.move_to(x, y) } else { path.line_to(x, y) }
        }
    };
    match shape {
        Shape::Area(points, _) => {
            through(path, points);
            path.close();
            None
        }
        Shape::Line { points, width, dash, .. } => {
            through(path, points);
            let dash = dash.and_then(|[a, b]| StrokeDash::new(vec![a as f32, b as f32], 0.0));
            let (line_cap, line_join) = (LineCap::Round, LineJoin::Round);
            Some(Stroke { width: *width as f32, line_cap, line_join, dash, ..Stroke::default() })
        }
        Shape::Dot([x, y], r, _) => {
            path.push_circle(*x as f32, *y as f32, *r as f32);
            None
        }
        Shape::Text { at: [x, y], text, size, anchor, turned, .. } => {
            let shift = size * font::width(text) * [0.0, 0.5, 1.0][*anchor as usize];
            let at = if *turned { [*x, y + shift] } else { [x - shift, *y] };
            font::outline(path, text, at, *size, *turned);
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn svg_and_pixels_show_the_same() {
        let mut d = Drawing::new(100.0, 50.0);
        d.shapes.push(Shape::Area(
            vec![[0.0, 0.0], [50.0, 0.0], [50.0, 50.0], [0.0, 50.0]],
            Paint::Color(Rgb([255, 0, 0]), 1.0),
        ));
        d.line(vec![[50.0, 25.0], [100.0, 25.0]], Paint::Ink, 4.0);
        d.text([75.0, 15.0], "a<b & c", 10.0, Anchor::Middle);
        let svg = d.svg(Theme::Paper);
        assert!(
            svg.contains("fill=\"#ff0000\"") && svg.contains("a&lt;b &amp; c") && svg.contains("M0 0L50 0L50 50L0 50Z")
        );
        assert!(!d.svg(Theme::Page).contains("#ffffff\"/>"));
        let image = d.image(2.0).expect("pixels");
        assert_eq!((image.width, image.height), (200, 100));
        assert_eq!(image.at(20, 20), [255, 0, 0]);
        assert_eq!(image.at(150, 50), [0x22; 3]);
        assert_eq!(image.at(150, 90), [255; 3]);
        let dark =
            (110..190).flat_map(|x| (8..36).map(move |y| (x, y))).filter(|(x, y)| image.at(*x, *y)[0] < 128).count();
        assert!((150..900).contains(&dark), "letters: {dark}");
        assert!(d.image(1e4).is_err());
    }
}
