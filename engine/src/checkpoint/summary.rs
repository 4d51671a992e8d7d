//! What a checkpoint's header says, without its state.

use super::{DIGEST, Header, MAGIC};
use std::io::Read as _;
use std::path::Path;

/// The contents of a file's header.
#[derive(Clone, Debug)]
pub struct FileSummary {
    /// Step.
    pub step: u64,
    /// Stage, from 0.
    pub stage: u64,
    /// Number of particles.
    pub particles: u64,
    /// Box lengths.
    pub box_length: [f64; 3],
    /// The run's seed.
    pub seed: u64,
    /// Precision.
    pub precision: String,
    /// Device.
    pub device: String,
    /// Version of the engine.
    pub engine: String,
    /// Names and versions of plugins.
    pub plugins: Vec<(String, String)>,
    /// Kinds and names of components, in the order of their numbers.
    pub components: Vec<String>,
    /// Name and length of each section.
    pub sections: Vec<(String, u64)>,
}

/// Reads the header of a file without verifying its checksum.
///
/// # Errors
/// Returns an error if the file is not a checkpoint or its header is damaged.
pub fn summary(path: &Path) -> Result<FileSummary, String> {
    let cannot = |e: std::io::Error| format!("cannot be read: {e}");
    let mut file = std::fs::File::open(path).map_err(cannot)?;
    let size = file.metadata().map_err(cannot)?.len();
    let (mut magic, mut length) = (vec![0; MAGIC.len()], [0; 8]);
    file.read_exact(&mut magic).and_then(|()| file.read_exact(&mut length)).map_err(|_| "is truncated")?;
    let length = u64::from_le_bytes(length);
    if magic != MAGIC || length > size {
        return Err("is damaged or truncated".into());
    }
    let mut text = vec![];
    file.take(length).read_to_end(&mut text).map_err(cannot)?;
    let h: Header = ron::de::from_bytes(&text).map_err(|e| format!("has a header that cannot be read: {e}"))?;
    let sections = h.sections.iter().try_fold(0u64, |sum, (_, length)| sum.checked_add(*length));
    let expected_size = sections.and_then(|s| s.checked_add((MAGIC.len() + 8 + DIGEST) as u64 + length));
    if expected_size != Some(size) {
        return Err("is damaged or truncated: its size differs from that in its header".into());
    }
    Ok(FileSummary {
        step: h.step,
        stage: h.position.stage,
        particles: h.particles,
        box_length: h.box_length,
        seed: h.seed,
        precision: h.precision,
        device: h.device,
        engine: h.engine,
        plugins: h.plugins.into_iter().map(|p| (p.name, p.version)).collect(),
        components: h.names.into_values().collect(),
        sections: h.sections,
    })
}
