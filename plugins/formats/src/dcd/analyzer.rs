//! The `Dcd` analyzer.

use crate::dcd::layer::{Head, Layer, frame, head, note_dt, note_frames};
use crate::single;
use galamost_plugin_api::output::check_not_shortened;
use galamost_plugin_api::prelude::*;
use galamost_plugin_api::resume::{RESTORE, check_exists, has_content};
use galamost_text::Shape;
use std::fs::{File, OpenOptions};
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::{Path, PathBuf};

/// Writes a DCD trajectory (CHARMM format with unit cell), readable by VMD, MDAnalysis, and MDTraj.
///
/// A frame contains the box and positions in single precision: a coordinate of 100 has a resolution of 10⁻⁵.
/// The format has no types, bonds, velocities, or images. Write a data or XML file for types and bonds, and use
/// `unwrapped` for unwrapped positions. The header contains the step of the first frame, `every`, and dt, as numbers
/// below 2³¹. Readers compute the steps of frames from these, so frames are evenly spaced: there is no `at_end`, and all
/// stages from the first frame to the last one must write the file, with the same `every` and dt. Otherwise, write another
/// file in each stage, or use `Gsd` or `Xtc`, which store the step of each frame. A resumed run cannot change `every` or dt of a file.
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
    /// The frames at the checkpoint that the run resumes from.
    #[param(skip)]
    kept: Option<Kept>,
    #[param(skip)]
    out: Option<SharedOutput<Out>>,
}

/// The frames of a file at a checkpoint.
#[derive(Clone, Copy, Debug)]
struct Kept {
    frames: u64,
    /// Step of the first frame, of which the header may not have all bits; `None` in checkpoints of earlier versions.
    first: Option<u64>,
    /// Time of the last frame; NaN if it is unknown.
    time: f64,
}

impl Kept {
    fn parse(state: &[u8]) -> Option<Self> {
        let (words, rest) = state.as_chunks::<8>();
        let words: Vec<u64> = words.iter().map(|b| u64::from_le_bytes(*b)).collect();
        match (&words[..], rest) {
            ([frames], []) => Some(Self { frames: *frames, first: None, time: f64::NAN }),
            ([frames, first, time], []) => {
                Some(Self { frames: *frames, first: Some(*first), time: f64::from_bits(*time) })
            }
            _ => None,
        }
    }
}

/// What to do if frames are not evenly spaced.
const REMEDY: &str = "write another file, or use Gsd or Xtc";

/// Largest relative difference of dt that rounding explains: the header has single precision.
const DT_TOLERANCE: f64 = 1e-5;

#[derive(Debug)]
struct Out {
    file: File,
    head: Option<Head>,
    frames: u64,
    /// Time of the last frame; NaN if it is unknown.
    time: f64,
}

impl Out {
    /// Checks that the file has all frames that were written; see [`check_not_shortened`].
    fn check_length(&self, path: &Path) -> Result<()> {
        let length = self.head.as_ref().map_or(0, |head| head.begin_of(self.frames));
        check_not_shortened(&self.file, path, length)
    }

    fn append(&mut self, head: &Head, bytes: &[u8]) -> std::io::Result<()> {
        let begin = head.begin_of(self.frames);
        let written = self.file.seek(SeekFrom::Start(begin)).and_then(|_| self.file.write_all(bytes));
        if let Err(e) = written.and_then(|()| note_frames(&mut self.file, head, self.frames + 1)) {
            // readers derive the number of frames from the file length: remove the frame, which may be incomplete
            let _ = self.file.set_len(begin).and_then(|()| note_frames(&mut self.file, head, self.frames));
            return Err(e);
        }
        self.frames += 1;
        Ok(())
    }

    /// Checks that a frame has the step and the time that readers compute from the header, and returns dt for the header if the
    /// second frame shows that it is another one: an analyzer of the pipeline knows only that of the first stage.
    ///
    /// # Errors
    /// Returns what is wrong with the frame.
    fn spacing(&self, head: &Head, f: &Frame<'_>) -> Result<Option<f32>, String> {
        let due = head.first.saturating_add(self.frames.saturating_mul(head.every));
        if f.step() != due {
            let step = f.step();
            return Err(format!(
                "the next frame is due at step {due}, every {} steps, but this is step {step}",
                head.every
            ));
        }
        let dt = (f.time() - self.time) / head.every as f64;
        let known = f64::from(head.dt);
        // not for the first frame, and not if the time of the last one is unknown
        if (dt - known).abs() > DT_TOLERANCE * known {
            if self.frames != 1 {
                let (then, now, step) = (head.dt, dt as f32, f.step());
                return Err(format!("dt is {then} in its header, but {now} before the frame of step {step}"));
            }
            return Ok(Some(dt as f32));
        }
        Ok(None)
    }
}

impl WriteDcd {
    /// Opens the file and checks that it has the frames of a checkpoint.
    fn checked(&self, frames: u64) -> Result<Layer> {
        let layer = Layer::open(&self.path).map_err(|e| Error::io(&self.path, format!("{e}; {RESTORE}")))?;
        if layer.head.n != self.system.n || layer.frames() < frames {
            let message = format!(
                "has {} frames of {} particles, but the checkpoint expects {frames} of {}; {RESTORE}",
                layer.frames(),
                layer.head.n,
                self.system.n
            );
            return Err(Error::io(&self.path, message));
        }
        if layer.head.every != self.every.min(i32::MAX as u64) {
            let (then, now) = (layer.head.every, self.every);
            return Err(Error::io(
                &self.path,
                format!("has a frame every {then} steps, but `every` is {now}; {REMEDY}"),
            ));
        }
        Ok(layer)
    }

    fn begin(&self) -> Result<Out> {
        let failed = |e: std::io::Error| Error::io(&self.path, e);
        if let (true, Some(kept), true) = (self.system.resumed, self.kept, has_content(&self.path)) {
            let (frames, time) = (kept.frames, kept.time);
            let mut options = OpenOptions::new();
            let mut file = options.read(true).write(true).open(&self.path).map_err(failed)?;
            if frames == 0 {
                file.set_len(0).map_err(failed)?;
                return Ok(Out { file, head: None, frames, time });
            }
            let mut head = self.checked(frames)?.head;
            file.set_len(head.begin_of(frames)).map_err(failed)?;
            note_frames(&mut file, &head, frames).map_err(failed)?;
            head.first = kept.first.unwrap_or(head.first);
            return Ok(Out { file, head: Some(head), frames, time });
        }
        if self.system.resumed && self.kept.is_none() && has_content(&self.path) {
            let message = format!("exists but is not part of the checkpoint; {REMEDY}");
            return Err(Error::io(&self.path, message));
        }
        Ok(Out { file: File::create(&self.path).map_err(failed)?, head: None, frames: 0, time: f64::NAN })
    }
}

impl Analyzer for WriteDcd {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.triclinic = true;
        needs.wants.particles = true;
        // the header has one interval for all frames
        needs.lags = true;
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
        out.check_length(&self.path)?;
        let failed = |e: std::io::Error| Error::io(&self.path, e);
        let n = f.position().len() as u64;
        let (begin, mut known) = match &out.head {
            Some(head) => (vec![], head.clone()),
            None => head(f.step(), self.every, self.system.dt, n),
        };
        if known.n != n {
            return Err(Error::io(&self.path, format!("has {} particles per frame, expected {n}", known.n)));
        }
        // a conversion, which is not a run, has states of any steps
        if self.system.run > 0 {
            let uneven = |what: String| Error::Run(format!("Dcd: {}: {what}; {REMEDY}", self.path.display()));
            if let Some(dt) = out.spacing(&known, f).map_err(uneven)? {
                known.dt = dt;
                note_dt(&mut out.file, dt).map_err(failed)?;
                out.head = Some(known.clone());
            }
        }
        if !begin.is_empty() {
            out.file.write_all(&begin).map_err(failed)?;
            out.head = Some(known.clone());
        }
        let unwrapped = (0..f.position().len()).map(|tag| f.unwrapped(tag)).collect();
        let position: Vec<[f64; 3]> = if self.unwrapped { unwrapped } else { f.position().to_vec() };
        single::of_particles("position", 3, position.as_flattened()).map_err(Error::input)?;
        // two-dimensional boxes get a finite height
        let shape = Shape { length: f.box_length(), tilt: f.tilt() }.finite();
        out.append(&known, &frame(&shape, position.iter().copied())).map_err(failed)?;
        out.time = f.time();
        Ok(())
    }

    fn save(&mut self) -> Result<Vec<u8>> {
        let Some(out) = &self.out else { return Ok(vec![]) };
        let out = out.lock();
        // the checkpoint must not refer to frames that are not on disk
        out.file.sync_data().map_err(|e| Error::io(&self.path, e))?;
        let first = out.head.as_ref().map_or(0, |head| head.first);
        Ok([out.frames, first, out.time.to_bits()].map(u64::to_le_bytes).concat())
    }

    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.kept = Kept::parse(state);
        let wrong = || Error::Run("the checkpoint belongs to another pipeline".into());
        let frames = self.kept.ok_or_else(wrong)?.frames;
        if frames > 0 {
            check_exists(&self.path, &format!("{frames} frames"))?;
            if has_content(&self.path) {
                self.checked(frames)?;
            }
        }
        Ok(())
    }
}
