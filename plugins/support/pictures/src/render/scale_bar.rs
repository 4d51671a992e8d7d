//! The scale bar of a picture, in a strip below it.

use crate::color::Rgb;
use crate::image::Image;
use crate::plot::drawing::{Anchor, Drawing, Paint, Shape};
use crate::render::key::{MIN_FONT, ink};

/// Least height of a picture with a scale bar in pixels.
const LEAST_HEIGHT: u32 = 60;
/// Largest length of the bar relative to the width of the picture.
const SHARE: f64 = 0.22;

/// The scale bar of a picture.
#[derive(Debug)]
pub struct ScaleBar {
    /// Width and height of the strip in pixels.
    size: [u32; 2],
    /// Length in the units of the state.
    length: f64,
    /// Length in pixels.
    pixels: f64,
    background: Rgb,
}

/// Returns the largest of the numbers 1, 2, 5, 10, 20, … that is not above `x`.
fn round_down(x: f64) -> f64 {
    let power = 10f64.powf(x.log10().floor());
    let steps = [10.0, 5.0, 2.0, 1.0].map(|s| s * power);
    steps.into_iter().find(|s| *s <= x * (1.0 + 1e-12)).unwrap_or(power)
}

impl ScaleBar {
    /// Returns the height of the strip for a picture of a given size.
    ///
    /// # Errors
    /// Returns an error if the picture is too small for it.
    pub fn height(size: [u32; 2]) -> Result<u32, String> {
        if size[1] < LEAST_HEIGHT {
            return Err(format!(
                "a picture {} pixels high has no room for a scale bar; enlarge it to at least {LEAST_HEIGHT} pixels",
                size[1]
            ));
        }
        Ok((1.9 * Self::font(size)).ceil() as u32)
    }

    /// Returns the font size for a picture.
    fn font(size: [u32; 2]) -> f64 {
        (0.026 * f64::from(size[0].min(size[1]))).max(MIN_FONT)
    }

    /// Makes the bar for a strip of a given size; `scale` is the number of pixels per unit length.
    pub fn new(size: [u32; 2], scale: f64, background: Rgb) -> Self {
        let length = round_down(SHARE * f64::from(size[0]) / scale);
        Self { size, length, pixels: length * scale, background }
    }

    /// Returns the label: the length in the units of the state.
    fn label(&self) -> String {
        let plain = (1e-3..1e5).contains(&self.length);
        // rounding of 10ⁿ must not show
        let text = if plain { format!("{:.3}", self.length) } else { format!("{:.0e}", self.length) };
        if plain { text.trim_end_matches('0').trim_end_matches('.').into() } else { text }
    }

    /// Returns the picture with the bar below.
    ///
    /// # Errors
    /// Returns an error if the image would be too large.
    pub fn append_to(&self, mut picture: Image) -> Result<Image, String> {
        let [w, h] = self.size.map(f64::from);
        let font = h / 1.9;
        let mut d = Drawing::new(w, h);
        let corners = vec![[0.0, 0.0], [w, 0.0], [w, h], [0.0, h]];
        d.shapes.push(Shape::Area(corners, Paint::Color(self.background, 1.0)));
        let paint = ink(self.background);
        let (left, middle, end) = (0.03 * w, 0.42 * h, 0.22 * h);
        let right = left + self.pixels;
        let width = (0.09 * font).max(1.0);
        d.line(vec![[left, middle], [right, middle]], paint, width);
        for x in [left, right] {
            d.line(vec![[x, middle - end], [x, middle + end]], paint, width);
        }
        let (at, text) = ([right + 0.5 * font, middle + 0.36 * font], self.label());
        d.shapes.push(Shape::Text { at, text, size: font, anchor: Anchor::Start, turned: false, paint });
        let strip = d.image(1.0)?;
        picture.pixels.extend(strip.pixels);
        picture.height += strip.height;
        Ok(picture)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lengths_are_round_and_labeled() {
        for (x, length, label) in [
            (1.0, 1.0, "1"),
            (1.99, 1.0, "1"),
            (4.9, 2.0, "2"),
            (73.0, 50.0, "50"),
            (0.021, 0.02, "0.02"),
            (0.5, 0.5, "0.5"),
            (3e6, 2e6, "2e6"),
            (1e-7, 1e-7, "1e-7"),
        ] {
            let bar = ScaleBar::new([1000, 40], SHARE * 1000.0 / x, Rgb::WHITE);
            assert!((bar.length / length - 1.0).abs() < 1e-9, "{x}: {}", bar.length);
            assert_eq!(bar.label(), label);
            assert!(bar.pixels <= 220.0 + 1e-6 && bar.pixels > 80.0, "{}", bar.pixels);
        }
        assert!(ScaleBar::height([100, 40]).is_err());
    }
}
