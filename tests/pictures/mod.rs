//! Pictures, plots, statistics, reports, and the log for programs.

mod browser;
mod drawing;
mod movies;
mod runs;
mod tables;

use std::path::Path;

fn decoded(path: &Path) -> (u32, u32, Vec<u8>) {
    let file = std::io::BufReader::new(std::fs::File::open(path).expect("a picture"));
    let mut reader = png::Decoder::new(file).read_info().expect("PNG");
    let mut pixels = vec![0; reader.output_buffer_size().expect("a size")];
    let info = reader.next_frame(&mut pixels).expect("pixels");
    (info.width, info.height, pixels)
}
