//! The analyzer.

use crate::dcd::layer::{Head, Layer, frame, head, note_frames};
use galamost_plugin_api::prelude::*;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::PathBuf;

/// Writes a DCD trajectory (CHARMM's, with the box in each frame), one frame every `every` steps, as VMD, MDAnalysis and MDTraj read it.
///
/// A frame has the box, with right angles, and places in single precision: of a coordinate of 100 the last digit is 10⁻⁵. Types, bonds
/// and velocities have no place in it; write a data or XML file beside it. The format has no images: with `unwrapped` places are those
/// without periodic boundaries. The head says the step of the first frame, `every` and dt, as numbers below 2³¹.
///
/// A frame is handed to the system as a whole, then counted in the head, so a run that is killed leaves a file of whole frames, but for
/// the one that was being written, which is not counted. A resumed run cuts the file to its checkpoint. A run that is not resumed
/// overwrites a file of the same name.
///
/// ```ron
/// Dcd(every: 100, file: "trajectory.dcd", unwrapped: true)
/// ```
#[component(Analyzer, "Dcd")]
#[derive(Debug, Params)]
pub struct WriteDcd {
    /// Steps from one frame to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write.
    #[param(extensions = "dcd")]
    file: String,
    /// Positions without periodic boundaries.
    #[param(default = false)]
    unwrapped: bool,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    path: PathBuf,
    /// Frames there were at the checkpoint that the run goes on from.
    #[param(skip)]
    kept: Option<u64>,
    #[param(skip)]
    out: Option<Out>,
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
            // half a frame would be in the way of whoever counts frames by the length
            let _ = self.file.set_len(begin);
            return Err(e);
        }
        self.frames += 1;
        note_frames(&mut self.file, head, self.frames)
    }
}

impl WriteDcd {
    fn begin(&self) -> Result<Out> {
        let failed = |e: std::io::Error| Error::io(&self.path, e);
        if let (true, Some(frames), true) = (self.system.resumed, self.kept, self.path.exists()) {
            let mut options = OpenOptions::new();
            let mut file = options.read(true).write(true).open(&self.path).map_err(failed)?;
            if frames == 0 {
                file.set_len(0).map_err(failed)?;
                return Ok(Out { file, head: None, frames });
            }
            let layer = Layer::open(&self.path).map_err(|e| Error::io(&self.path, e))?;
            if layer.head.n != self.system.n || layer.frames() < frames {
                let message = format!(
                    "has {} frames of {} particles; at the checkpoint there were {frames} of {}: move it away",
                    layer.frames(),
                    layer.head.n,
                    self.system.n
                );
                return Err(Error::io(&self.path, message));
            }
            file.set_len(layer.head.begin_of(frames)).map_err(failed)?;
            note_frames(&mut file, &layer.head, frames).map_err(failed)?;
            return Ok(Out { file, head: Some(layer.head), frames });
        }
        if self.system.resumed && self.kept.is_none() && self.path.exists() {
            let message = "is there, but the checkpoint knows nothing of it: move it away or choose another name";
            return Err(Error::io(&self.path, message));
        }
        Ok(Out { file: File::create(&self.path).map_err(failed)?, head: None, frames: 0 })
    }
}

impl Analyzer for WriteDcd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        self.system = system.clone();
        self.path = system.path(&self.file);
        if system.n > i32::MAX as u64 / 4 {
            return Err(Error::input(format!("{} particles are too many for this format", system.n)));
        }
        match self.path.parent().filter(|p| !p.as_os_str().is_empty() && !p.is_dir()) {
            Some(folder) => Err(Error::input(format!("there is no folder {} for `file`", folder.display()))),
            None => Ok(()),
        }
    }

    fn start(&mut self, _: Host) -> Result<()> {
        self.out = Some(self.begin()?);
        Ok(())
    }

    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        let Some(out) = &mut self.out else { return Err(Error::Run("Dcd was not started".into())) };
        let failed = |e: std::io::Error| Error::io(&self.path, e);
        let n = f.position().len() as u64;
        let (begin, known) = match &out.head {
            Some(head) => (vec![], head.clone()),
            None => head(f.step(), self.every, self.system.dt, n),
        };
        if known.n != n {
            return Err(Error::io(&self.path, format!("has {} particles in each frame, not {n}", known.n)));
        }
        if !begin.is_empty() {
            out.file.write_all(&begin).map_err(failed)?;
            out.head = Some(known.clone());
        }
        let length = f.box_length();
        let shift = if self.unwrapped { length } else { [0.0; 3] };
        let place = |(x, i): (&[f64; 3], &[i32; 3])| std::array::from_fn(|k| x[k] + shift[k] * f64::from(i[k]));
        // in two dimensions a box with some height
        let length = length.map(|l| if l > 0.0 { l } else { 1.0 });
        out.append(&known, &frame(length, f.position().iter().zip(f.image()).map(place))).map_err(failed)
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let Some(out) = &mut self.out else { return Ok(vec![]) };
        // a checkpoint never knows of more frames than there are
        out.file.sync_data().map_err(|e| Error::io(&self.path, e))?;
        Ok(out.frames.to_le_bytes().to_vec())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = state.try_into().ok().map(u64::from_le_bytes);
        self.kept.map(|_| ()).ok_or_else(|| Error::Run("the checkpoint belongs to another pipeline".into()))
    }
}
