//! Pixel images, and PNG files.

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
}
