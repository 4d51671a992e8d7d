//! The `Dcd` analyzer.

use crate::dcd::layer::{Head, Layer, frame, head, note_frames};
use crate::single;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::resume::{check_exists, has_content};
use galamost_text::Shape;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

/// Writes a DCD trajectory (CHARMM format with unit cell), readable by VMD, MDAnalysis, and MDTraj.
///
/// A frame contains the box and positions in single precision: a coordinate of 100 has a resolution of 10⁻⁵.
/// The format has no types, bonds, velocities, or images. Write a data or XML file for types and bonds, and use
/// `unwrapped` for unwrapped positions. The header contains the step of the first frame, `every`, and dt, as numbers
/// below 2³¹. Readers compute the steps of frames from these, so frames are evenly spaced: there is no `at_end`.
///
/// Each frame is written in one piece and then counted in the header. A killed run therefore leaves complete frames,
/// except possibly the last, which the header does not count. A resumed run truncates the file to its checkpoint.
///
/// ```ron
/// Dcd(every: 100, file: "trajectory.dcd", unwrapped: true)
/// ```
#[component(Analyzer, "Dcd")]
#[derive(Debug, Params)]
pub struct WriteDcd {
    /// Steps between frames.
    #[param(at_least = 1.0)]
    every: u64,
    /// Output file.
    #[param(extensions = "dcd")]
    file: String,
    /// Whether to write unwrapped positions.
    #[param(default = false)]
    unwrapped: bool,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    path: PathBuf,
    /// Number of frames at the checkpoint that the run resumes from.
    #[param(skip)]
    kept: Option<u64>,
    #[param(skip)]
    out: Option<SharedOutput<Out>>,
}

#[derive(Debug)]
struct Out {
    file: File,
    head: Option<Head>,
    frames: u64,
}

impl Out {
    fn append(&mut self, head: &Head, bytes: &[u8]) -> std::io::Result<()> {
        let begin = head.begin_of(self.frames);
        let written = self.file.seek(SeekFrom::Start(begin)).and_then(|_| self.file.write_all(bytes));
        if let Err(e) = written {
            // readers derive the number of frames from the file length: remove the incomplete frame
            let _ = self.file.set_len(begin);
            return Err(e);
        }
        self.frames += 1;
        note_frames(&mut self.file, head, self.frames)
    }
}

impl WriteDcd {
    /// Opens the file and checks that it has the frames of a checkpoint.
    fn checked(&self, frames: u64) -> Result<Layer> {
        let layer = Layer::open(&self.path).map_err(|e| Error::io(&self.path, e))?;
        if layer.head.n != self.system.n || layer.frames() < frames {
            let message = format!(
                "has {} frames of {} particles, but the checkpoint expects {frames} of {}; move the file away",
                layer.frames(),
                layer.head.n,
                self.system.n
            );
            return Err(Error::io(&self.path, message));
        }
        Ok(layer)
    }

    fn begin(&self) -> Result<Out> {
        let failed = |e: std::io::Error| Error::io(&self.path, e);
        if let (true, Some(frames), true) = (self.system.resumed, self.kept, has_content(&self.path)) {
            let mut options = OpenOptions::new();
            let mut file = options.read(true).write(true).open(&self.path).map_err(failed)?;
            if frames == 0 {
                file.set_len(0).map_err(failed)?;
                return Ok(Out { file, head: None, frames });
            }
            let layer = self.checked(frames)?;
            file.set_len(layer.head.begin_of(frames)).map_err(failed)?;
            note_frames(&mut file, &layer.head, frames).map_err(failed)?;
            return Ok(Out { file, head: Some(layer.head), frames });
        }
        if self.system.resumed && self.kept.is_none() && self.path.exists() {
            let message = "exists but is not part of the checkpoint; move it away or choose another name";
            return Err(Error::io(&self.path, message));
        }
        Ok(Out { file: File::create(&self.path).map_err(failed)?, head: None, frames: 0 })
    }
}

impl Analyzer for WriteDcd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.triclinic = true;
        needs.wants.particles = true;
        self.system = system.clone();
        self.path = needs.output(system, &self.file, OutputKind::Growing);
        if system.n > i32::MAX as u64 / 4 {
            return Err(Error::input(format!("{} particles exceed the limit of this format", system.n)));
        }
        Ok(())
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.out = None;
        self.out = Some(SharedOutput::open(&self.system, &self.path, || self.begin())?);
        Ok(())
    }

    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        let Some(out) = &self.out else { return Err(Error::Run("Dcd: `start` was not called".into())) };
        let mut out = out.lock();
        let failed = |e: std::io::Error| Error::io(&self.path, e);
        let n = f.position().len() as u64;
        let (begin, known) = match &out.head {
            Some(head) => (vec![], head.clone()),
            None => head(f.step(), self.every, self.system.dt, n),
        };
        if known.n != n {
            return Err(Error::io(&self.path, format!("has {} particles per frame, expected {n}", known.n)));
        }
        if !begin.is_empty() {
            out.file.write_all(&begin).map_err(failed)?;
            out.head = Some(known.clone());
        }
        let unwrapped = (0..f.position().len()).map(|tag| f.unwrapped(tag)).collect();
        let position: Vec<[f64; 3]> = if self.unwrapped { unwrapped } else { f.position().to_vec() };
        single::of_particles("position", 3, position.as_flattened()).map_err(|e| Error::io(&self.path, e))?;
        // two-dimensional boxes get a finite height
        let shape = Shape { length: f.box_length(), tilt: f.tilt() }.finite();
        out.append(&known, &frame(&shape, position.iter().copied())).map_err(failed)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let Some(out) = &self.out else { return Ok(vec![]) };
        let out = out.lock();
        // the checkpoint must not refer to frames that are not on disk
        out.file.sync_data().map_err(|e| Error::io(&self.path, e))?;
        Ok(out.frames.to_le_bytes().to_vec())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = state.try_into().ok().map(u64::from_le_bytes);
        let wrong = || Error::Run("the checkpoint belongs to another pipeline".into());
        let frames = self.kept.ok_or_else(wrong)?;
        if frames > 0 {
            check_exists(&self.path, &format!("{frames} frames"))?;
            if has_content(&self.path) {
                self.checked(frames)?;
            }
        }
        Ok(())
    }
}
