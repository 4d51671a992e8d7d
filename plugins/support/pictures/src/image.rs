//! Pixel images, and PNG files, also animated ones.

use std::io::Write;

/// An image: rows of pixels from the top, as red, green, blue.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Image {
    /// Width in pixels.
    pub width: u32,
    /// Height in pixels.
    pub height: u32,
    /// Three bytes per pixel.
    pub pixels: Vec<u8>,
}

impl Image {
    /// Returns the color of a pixel.
    pub fn at(&self, x: u32, y: u32) -> [u8; 3] {
        let k = 3 * (y as usize * self.width as usize + x as usize);
        [self.pixels[k], self.pixels[k + 1], self.pixels[k + 2]]
    }

    /// Encodes the image as a PNG file.
    ///
    /// # Errors
    /// Returns the encoder's error.
    pub fn png(&self) -> Result<Vec<u8>, String> {
        let mut out = vec![];
        let mut encoder = png::Encoder::new(&mut out, self.width, self.height);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        let written = encoder.write_header().and_then(|mut w| {
            w.write_image_data(&self.pixels)?;
            w.finish()
        });
        written.map_err(|e| e.to_string())?;
        Ok(out)
    }
}

/// An animated PNG file, which repeats without end.
pub struct Animation<W: Write> {
    writer: png::Writer<W>,
    size: [u32; 2],
}

impl<W: Write> Animation<W> {
    /// Begins a file of `frames` images of a given size, shown at `rate` images per second.
    ///
    /// # Errors
    /// Returns the encoder's error.
    pub fn new(out: W, size: [u32; 2], frames: u32, rate: f64) -> Result<Self, String> {
        let mut encoder = png::Encoder::new(out, size[0], size[1]);
        encoder.set_color(png::ColorType::Rgb);
        encoder.set_depth(png::BitDepth::Eight);
        encoder.set_compression(png::Compression::Balanced);
        let delay = (1000.0 / rate).round().clamp(1.0, f64::from(u16::MAX)) as u16;
        let begun = encoder.set_animated(frames, 0).and_then(|()| encoder.set_frame_delay(delay, 1000));
        let writer = begun.and_then(|()| encoder.write_header()).map_err(|e| e.to_string())?;
        Ok(Self { writer, size })
    }

    /// Adds an image.
    ///
    /// # Errors
    /// Returns an error if the image has another size, or the encoder's error.
    pub fn add(&mut self, image: &Image) -> Result<(), String> {
        if [image.width, image.height] != self.size {
            return Err(format!(
                "an image of {} × {} pixels in an animation of {} × {}",
                image.width, image.height, self.size[0], self.size[1]
            ));
        }
        self.writer.write_image_data(&image.pixels).map_err(|e| e.to_string())
    }

    /// Ends the file.
    ///
    /// # Errors
    /// Returns the encoder's error, for example if images are missing.
    pub fn finish(self) -> Result<(), String> {
        self.writer.finish().map_err(|e| e.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_png_is_read_back() {
        let image = Image { width: 3, height: 2, pixels: (0..18).map(|k| 10 * k).collect() };
        let bytes = image.png().expect("a file");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a header");
        let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
        let info = reader.next_frame(&mut pixels).expect("pixels");
        assert_eq!((info.width, info.height, pixels), (3, 2, image.pixels.clone()));
        assert_eq!(image.at(2, 1), [150, 160, 170]);
    }

    #[test]
    fn an_animated_png_is_read_back() {
        let image = |first: u8| Image { width: 3, height: 2, pixels: (0..18).map(|k| first + 10 * k).collect() };
        let mut bytes = vec![];
        let mut animation = Animation::new(&mut bytes, [3, 2], 2, 25.0).expect("begun");
        assert!(animation.add(&Image { width: 2, height: 3, pixels: vec![0; 18] }).is_err());
        animation.add(&image(0)).expect("added");
        animation.add(&image(5)).expect("added");
        animation.finish().expect("finished");
        let mut reader = png::Decoder::new(std::io::Cursor::new(bytes)).read_info().expect("a header");
        let control = reader.info().animation_control.expect("an animation");
        assert_eq!((control.num_frames, control.num_plays), (2, 0));
        for first in [0, 5] {
            let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
            reader.next_frame(&mut pixels).expect("pixels");
            let frame = reader.info().frame_control.expect("a frame");
            assert_eq!((frame.delay_num, frame.delay_den, pixels), (40, 1000, image(first).pixels));
        }
    }
}
