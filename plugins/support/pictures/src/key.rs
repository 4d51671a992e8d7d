//! What the colors of a picture mean: types with their bodies, or a bar of colors with numbers, in a strip on the right.

use crate::camera::Camera;
use crate::color::Rgb;
use crate::drawing::{Anchor, Drawing, Paint, Shape};
use crate::font;
use crate::image::Image;
use crate::parallel::one_thread;
use crate::raster::{Body, Solid, cast};
use crate::shade::{Light, shade};
use crate::ticks::{linear, power_of_ten};

/// What a key tells.
#[derive(Clone, Debug)]
pub enum Meaning {
    /// Types: names, and bodies as the camera of a key sees them, with their reach where a ball's is 1.
    Types(Vec<(String, Body, f32)>),
    /// Numbers between two ends; whether there are some below and above.
    Numbers { name: String, ends: [f64; 2], beyond: [bool; 2] },
}

/// A key for a picture of some size.
#[derive(Debug)]
pub struct Key {
    meaning: Meaning,
    /// Pixels: width and height of the strip, size of the font.
    width: u32,
    height: u32,
    font: f64,
    /// Marks of a bar, and the power of ten of their numbers.
    marks: Vec<(f64, String)>,
    title: String,
    background: Rgb,
}

/// Letters smaller than this cannot be read.
const SMALLEST: f64 = 7.0;

impl Key {
    /// A key for a picture of this size.
    ///
    /// # Errors
    /// There is no room for it.
    pub fn new(meaning: Meaning, [width, height]: [u32; 2], background: Rgb) -> Result<Self, String> {
        let usual = 0.031 * f64::from(width.min(height));
        let (mut font, mut marks, mut title) = (usual.max(SMALLEST), vec![], String::new());
        let ems = match &meaning {
            Meaning::Types(types) => {
                let room = 0.94 * f64::from(height) / (ROW * types.len() as f64);
                if room < SMALLEST {
                    return Err(format!("there is no room for a key of {} types in {height} pixels", types.len()));
                }
                font = font.min(room);
                BALL + 0.5 + widest(types.iter().map(|t| t.0.as_str()))
            }
            Meaning::Numbers { name, ends, .. } => {
                let ticks = linear(*ends, 5.0);
                title = match ticks.power {
                    0 => name.clone(),
                    power => format!("{name} / {}", power_of_ten(power)),
                };
                marks = ticks.major;
                (BAR + 0.75 + widest(marks.iter().map(|m| m.1.as_str()))).max(font::width(&title))
            }
        };
        // as much again on the right as the picture leaves at its edge, and less on the left
        let strip = (font * (ems + 1.2) + 0.015 * f64::from(width)).ceil() as u32;
        if 2 * strip > width {
            return Err(format!("a picture {width} pixels wide has no room for a key of {strip}"));
        }
        Ok(Self { meaning, width: strip, height, font, marks, title, background })
    }

    /// Pixels that it takes off the width.
    pub fn width(&self) -> u32 {
        self.width
    }

    /// The picture with the key on its right.
    ///
    /// # Errors
    /// It would be too large.
    pub fn beside(&self, picture: &Image) -> Result<Image, String> {
        let strip = self.strip()?;
        let rows = picture.pixels.chunks(3 * picture.width as usize).zip(strip.pixels.chunks(3 * strip.width as usize));
        let pixels = rows.flat_map(|(a, b)| [a, b].concat()).collect();
        Ok(Image { width: picture.width + strip.width, height: picture.height, pixels })
    }

    fn ink(&self) -> Paint {
        let [r, g, b] = self.background.0.map(f64::from);
        let dark = 0.3 * r + 0.6 * g + 0.1 * b < 110.0;
        Paint::Color(Rgb(if dark { [225; 3] } else { [0x22; 3] }), 1.0)
    }

    fn text(&self, d: &mut Drawing, at: [f64; 2], text: &str) {
        let (text, size, paint) = (text.to_string(), self.font, self.ink());
        d.shapes.push(Shape::Text { at, text, size, anchor: Anchor::Start, turned: false, paint });
    }

    fn strip(&self) -> Result<Image, String> {
        let [w, h] = [self.width, self.height].map(f64::from);
        let mut d = Drawing::new(w, h);
        let corners = vec![[0.0, 0.0], [w, 0.0], [w, h], [0.0, h]];
        d.shapes.push(Shape::Area(corners, Paint::Color(self.background, 1.0)));
        match &self.meaning {
            Meaning::Types(types) => {
                let (row, size) = (ROW * self.font, (BALL * self.font).round());
                let top = 0.5 * (h - row * types.len() as f64);
                let mut bodies = vec![];
                for (k, (name, body, reach)) in types.iter().enumerate() {
                    let middle = top + row * (k as f64 + 0.5);
                    // the middle of small letters stands 0.36 above their line
                    self.text(&mut d, [(BALL + 0.5) * self.font, middle + 0.36 * self.font], name);
                    bodies.push(((middle - 0.5 * size).round() as u32, self.body(*body, *reach, size as u32)));
                }
                let mut image = d.image(1.0)?;
                bodies.iter().for_each(|(y, body)| lay(&mut image, body, *y));
                Ok(image)
            }
            Meaning::Numbers { ends, beyond, .. } => {
                self.bar(&mut d, *ends, *beyond);
                d.image(1.0)
            }
        }
    }

    /// A body in the light of the picture.
    fn body(&self, body: Body, reach: f32, pixels: u32) -> Image {
        const FINE: u32 = 4;
        let size = [pixels.max(1); 2];
        let ball = f64::from(reach);
        let camera = Camera::new([-std::f64::consts::FRAC_PI_2, 0.0], false, size, &[([0.0; 3], ball)]).enlarged(FINE);
        let center = camera.place([0.0; 3]).map(|x| x as f32);
        let fine = size.map(|n| (n * FINE) as usize);
        let hits = cast(&camera, &[Solid { center, reach, body }], fine, &one_thread);
        let light =
            Light { background: self.background, radius: 1.0, depths: [center[2] - reach, center[2] + 50.0 * reach] };
        shade(&camera, &hits, fine, FINE as usize, light, &one_thread)
    }

    fn bar(&self, d: &mut Drawing, [low, high]: [f64; 2], beyond: [bool; 2]) {
        // whole pixels: no seam of the ground shows between two rows
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
        // points where there are numbers beyond the ends, as all of them have the last color
        let point = 0.75 * w;
        let mut outline = vec![[left, top]];
        for (k, (y, tip)) in [(top, top - point), (bottom, bottom + point)].into_iter().enumerate() {
            if beyond[1 - k] {
                let color = Rgb::of_number(if k == 0 { 1.0 } else { 0.0 });
                let area = vec![[left, y], [left + 0.5 * w, tip], [left + w, y]];
                d.shapes.push(Shape::Area(area, Paint::Color(color, 1.0)));
                outline.push([left + 0.5 * w, tip]);
            }
            // down the right side, and then back to the left one
            outline.extend(if k == 0 { vec![[left + w, top], [left + w, bottom]] } else { vec![[left, bottom]] });
        }
        outline.push([left, top]);
        let thin = (0.05 * self.font).max(1.0);
        d.line(outline, self.ink(), thin);
        for (v, text) in &self.marks {
            let y = y_of(*v);
            d.line(vec![[left + w, y], [left + w + 0.28 * self.font, y]], self.ink(), thin);
            self.text(d, [left + w + 0.5 * self.font, y + 0.36 * self.font], text);
        }
        let above = if beyond[1] { point } else { 0.0 };
        self.text(d, [left, top - above - 0.75 * self.font], &self.title);
    }
}

/// Height of a row of types, edge of the picture of a body, and width of a bar, in sizes of the font.
const ROW: f64 = 1.75;
const BALL: f64 = 1.5;
const BAR: f64 = 0.95;

/// Width of the widest text in sizes of the font.
fn widest<'a>(texts: impl Iterator<Item = &'a str>) -> f64 {
    texts.map(font::width).fold(0.0, f64::max)
}

/// Lays a picture on another one, at its left edge.
fn lay(image: &mut Image, small: &Image, top: u32) {
    for y in 0..small.height.min(image.height.saturating_sub(top)) {
        let (n, to, from) = (3 * small.width.min(image.width), 3 * (top + y) * image.width, 3 * y * small.width);
        image.pixels[to as usize..(to + n) as usize].copy_from_slice(&small.pixels[from as usize..(from + n) as usize]);
    }
}
