//! The key of a picture, in a strip on its right: the types with their shapes, or a color bar with numbers.

use crate::color::Rgb;
use crate::image::Image;
use crate::parallel::one_thread;
use crate::plot::drawing::{Anchor, Drawing, Paint, Shape};
use crate::plot::font;
use crate::plot::ticks::{linear, power_of_ten};
use crate::render::camera::Camera;
use crate::render::raster::{Body, Solid, cast};
use crate::render::shade::{Layers, Light, shade};

/// The contents of a key.
#[derive(Clone, Debug)]
pub enum KeyContents {
    /// Types: name, body in the camera's coordinates, and its extent relative to a sphere of radius 1.
    Types(Vec<(String, Body, f32)>),
    /// A property: its name, the numbers at the ends of the color bar, and whether there are values below and above.
    Numbers { name: String, ends: [f64; 2], beyond: [bool; 2] },
}

/// The key of a picture.
#[derive(Debug)]
pub struct Key {
    contents: KeyContents,
    /// Width of the strip in pixels.
    width: u32,
    /// Height of the strip in pixels.
    height: u32,
    /// Font size in pixels.
    font: f64,
    /// Labeled ticks of a color bar.
    ticks: Vec<(f64, String)>,
    /// Title of a color bar, with the power of ten of its numbers.
    title: String,
    background: Rgb,
}

/// Smallest legible font size.
pub const MIN_FONT: f64 = 7.0;

/// Returns a text color that contrasts with the background.
pub fn ink(background: Rgb) -> Paint {
    let [r, g, b] = background.0.map(f64::from);
    let dark = 0.3 * r + 0.6 * g + 0.1 * b < 110.0;
    Paint::Color(Rgb(if dark { [225; 3] } else { [0x22; 3] }), 1.0)
}

impl Key {
    /// Lays out a key for a picture of a given size.
    ///
    /// # Errors
    /// Returns an error if the picture is too small for it.
    pub fn new(contents: KeyContents, [width, height]: [u32; 2], background: Rgb) -> Result<Self, String> {
        let default = 0.031 * f64::from(width.min(height));
        let (mut font, mut labels, mut title) = (default.max(MIN_FONT), vec![], String::new());
        let ems = match &contents {
            KeyContents::Types(types) => {
                let room = 0.94 * f64::from(height) / (ROW * types.len() as f64);
                if room < MIN_FONT {
                    return Err(format!(
                        "a picture {height} pixels high has no room for a key of {} types; enlarge it",
                        types.len()
                    ));
                }
                font = font.min(room);
                BODY + 0.5 + widest(types.iter().map(|t| t.0.as_str()))
            }
            KeyContents::Numbers { name, ends, .. } => {
                let ticks = linear(*ends, 5.0);
                title = match ticks.power {
                    0 => name.clone(),
                    power => format!("{name} / {}", power_of_ten(power)),
                };
                labels = ticks.major;
                (BAR + 0.75 + widest(labels.iter().map(|m| m.1.as_str()))).max(font::width(&title))
            }
        };
        // the right margin is as wide as the picture's own margin, the left one narrower
        let strip = (font * (ems + 1.2) + 0.015 * f64::from(width)).ceil() as u32;
        if 2 * strip > width {
            return Err(format!("a picture {width} pixels wide has no room for a key of {strip} pixels; enlarge it"));
        }
        Ok(Self { contents, width: strip, height, font, ticks: labels, title, background })
    }

    /// Returns the width of the strip in pixels.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// Returns the picture with the key on its right.
    ///
    /// # Errors
    /// Returns an error if the image would be too large.
    pub fn append_to(&self, picture: &Image) -> Result<Image, String> {
        let strip = self.strip()?;
        let rows = picture.pixels.chunks(3 * picture.width as usize).zip(strip.pixels.chunks(3 * strip.width as usize));
        let pixels = rows.flat_map(|(a, b)| [a, b].concat()).collect();
        Ok(Image { width: picture.width + strip.width, height: picture.height, pixels })
    }

    fn text(&self, d: &mut Drawing, at: [f64; 2], text: &str) {
        let (text, size, paint) = (text.to_string(), self.font, ink(self.background));
        d.shapes.push(Shape::Text { at, text, size, anchor: Anchor::Start, turned: false, paint });
    }

    /// Draws the strip.
    fn strip(&self) -> Result<Image, String> {
        let [w, h] = [self.width, self.height].map(f64::from);
        let mut d = Drawing::new(w, h);
        let corners = vec![[0.0, 0.0], [w, 0.0], [w, h], [0.0, h]];
        d.shapes.push(Shape::Area(corners, Paint::Color(self.background, 1.0)));
        match &self.contents {
            KeyContents::Types(types) => {
                let (row, size) = (ROW * self.font, (BODY * self.font).round());
                let top = 0.5 * (h - row * types.len() as f64);
                let mut bodies = vec![];
                for (k, (name, body, extent)) in types.iter().enumerate() {
                    let middle = top + row * (k as f64 + 0.5);
                    // the center of lowercase letters is 0.36 em above the baseline
                    self.text(&mut d, [(BODY + 0.5) * self.font, middle + 0.36 * self.font], name);
                    bodies.push(((middle - 0.5 * size).round() as u32, self.body(*body, *extent, size as u32)));
                }
                let mut image = d.image(1.0)?;
                bodies.iter().for_each(|(y, body)| paste(&mut image, body, *y));
                Ok(image)
            }
            KeyContents::Numbers { ends, beyond, .. } => {
                self.bar(&mut d, *ends, *beyond);
                d.image(1.0)
            }
        }
    }

    /// Renders a body with the light of the picture.
    fn body(&self, body: Body, extent: f32, pixels: u32) -> Image {
        const FINE: u32 = 4;
        let size = [pixels.max(1); 2];
        let radius = f64::from(extent);
        let camera =
            Camera::new([-std::f64::consts::FRAC_PI_2, 0.0], false, size, &[([0.0; 3], radius)]).enlarged(FINE);
        let center = camera.transform([0.0; 3]).map(|x| x as f32);
        let fine = size.map(|n| (n * FINE) as usize);
        let opaque = cast(&camera, &[Solid { center, extent, body }], fine, &one_thread);
        let light =
            Light { background: self.background, radius: 1.0, depths: [center[2] - extent, center[2] + 50.0 * extent] };
        shade(&camera, Layers { opaque: &opaque, translucent: &[] }, fine, FINE as usize, light, &one_thread)
    }

    /// Draws a color bar with its ticks and title.
    fn bar(&self, d: &mut Drawing, [low, high]: [f64; 2], beyond: [bool; 2]) {
        // whole pixels, so that the background does not show between rows
        let (w, h) = ((BAR * self.font).round(), f64::from(self.height));
        let (top, bottom) = ((0.24 * h + self.font).round(), (0.76 * h + self.font).round());
        let left = (0.1 * self.font).round();
        let y_of = |v: f64| bottom - (bottom - top) * (v - low) / (high - low);
        let rows = (bottom - top) as u32;
        for k in 0..rows {
            let y = top + f64::from(k);
            let color = Rgb::of_number(1.0 - (f64::from(k) + 0.5) / f64::from(rows));
            let points = vec![[left, y], [left + w, y], [left + w, y + 1.0], [left, y + 1.0]];
            d.shapes.push(Shape::Area(points, Paint::Color(color, 1.0)));
        }
        // triangles in the end colors where there are values beyond the ends
        let point = 0.75 * w;
        let mut outline = vec![[left, top]];
        for (k, (y, tip)) in [(top, top - point), (bottom, bottom + point)].into_iter().enumerate() {
            if beyond[1 - k] {
                let color = Rgb::of_number(if k == 0 { 1.0 } else { 0.0 });
                let area = vec![[left, y], [left + 0.5 * w, tip], [left + w, y]];
                d.shapes.push(Shape::Area(area, Paint::Color(color, 1.0)));
                outline.push([left + 0.5 * w, tip]);
            }
            // down the right side, then back to the left side
            outline.extend(if k == 0 { vec![[left + w, top], [left + w, bottom]] } else { vec![[left, bottom]] });
        }
        outline.push([left, top]);
        let thin = (0.05 * self.font).max(1.0);
        d.line(outline, ink(self.background), thin);
        for (v, text) in &self.ticks {
            let y = y_of(*v);
            d.line(vec![[left + w, y], [left + w + 0.28 * self.font, y]], ink(self.background), thin);
            self.text(d, [left + w + 0.5 * self.font, y + 0.36 * self.font], text);
        }
        let above = if beyond[1] { point } else { 0.0 };
        self.text(d, [left, top - above - 0.75 * self.font], &self.title);
    }
}

/// Height of a row of types, in font sizes.
const ROW: f64 = 1.75;
/// Edge of the picture of a body, in font sizes.
const BODY: f64 = 1.5;
/// Width of the color bar, in font sizes.
const BAR: f64 = 0.95;

/// Returns the width of the widest text, in font sizes.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(font::width).fold(0.0, f64::max)
}

/// Copies a picture into another one, at its left edge.
fn paste(image: &mut Image, small: &Image, top: u32) {
    for y in 0..small.height.min(image.height.saturating_sub(top)) {
        let (n, to, from) = (3 * small.width.min(image.width), 3 * (top + y) * image.width, 3 * y * small.width);
        image.pixels[to as usize..(to + n) as usize].copy_from_slice(&small.pixels[from as usize..(from + n) as usize]);
    }
}
