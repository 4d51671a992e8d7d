//! The `Mst` analyzer.

use crate::mst::keys::MARKS;
use crate::mst::write::{Invariant, WriteOptions, state};
use galamost_plugin_api::prelude::*;
use galamost_text::{FrameFile, StateFile};

/// Writes an MST file (`mst_version 1.0`, the format of PyGAMD): a trajectory, or, with `{step}` in the name, a file
/// for each state. The format has no triclinic boxes; the check refuses them.
///
/// The section `invariant_data` of a trajectory holds what does not change: number of particles, box, types, masses,
/// `charge`, `diameter`, `body`, `molecule`, `inert`, `init`, `cris`, bonds, angles, and dihedrals. Each frame holds
/// the step, positions, images, velocities (with `velocity`), orientations, and everything above that differs from the
/// first frame, for example bonds that have formed. A file for each state (`out.{step}.mst` gives `out.0000010000.mst`)
/// holds everything and is always complete. If the rows of a section do not use all types in the order of their numbers,
/// a comment after its keyword lists them (`type # types: A B C`). By default, numbers have as many digits as needed to read back the same
/// number.
///
/// Each frame is written in one piece. A killed run therefore leaves complete frames, except possibly the last. A
/// resumed run truncates the file to its checkpoint.
///
/// ```ron
/// Mst(every: 100, file: "trajectory.mst")
/// ```
#[component(Analyzer, "Mst")]
#[derive(Debug, Params)]
pub struct WriteMst {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file; `{step}` is replaced by the step.
    #[param(extensions = "mst")]
    file: String,
    /// Whether to write velocities.
    #[param(default = true)]
    velocity: bool,
    /// Decimal places of real numbers; default: as many as needed.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    system: SystemInfo,
    /// The invariant data at the checkpoint that the run resumes from.
    #[param(skip)]
    invariant: Invariant,
    #[param(skip)]
    written: Option<SharedOutput<Invariant>>,
    #[param(skip)]
    states: StateFile,
    #[param(skip)]
    frames: FrameFile,
}

/// Returns whether a name is a single word without comment characters that does not divide a file.
fn valid_name(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '#') && !MARKS.contains(&name)
}

impl WriteMst {
    fn trajectory(&self) -> bool {
        !self.file.contains("{step}")
    }
}

impl Analyzer for WriteMst {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.wants.particles = true;
        needs.wants.topology = true;
        self.system = system.clone();
        if self.trajectory() {
            self.frames.bind(system, needs, &self.file, valid_name)
        } else {
            self.states.bind(system, needs, &self.file, valid_name)
        }
    }
    fn start(&mut self, _: Host) -> Result<()> {
        if !self.trajectory() {
            return Ok(());
        }
        self.written = None;
        self.frames.start()?;
        // if the user removed the old file, the new one needs the invariant data
        let kept = if self.frames.is_empty() { Invariant::default() } else { self.invariant.clone() };
        let path = self.system.path(&self.file);
        self.written = Some(SharedOutput::open(&self.system, &path, || Ok(kept))?);
        Ok(())
    }
    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let options = WriteOptions { velocity: self.velocity, digits: self.digits };
        let s = frame.snapshot(&self.system);
        if !self.trajectory() {
            return self.states.write(s.step, &state(&s, options));
        }
        let Some(written) = &self.written else { return Err(Error::Run("Mst: `start` was not called".into())) };
        let mut written = written.lock();
        let (text, invariant) = written.frame(&s, options);
        self.frames.append(&text)?;
        *written = invariant;
        Ok(())
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        if !self.trajectory() {
            return Ok(vec![]);
        }
        // 8 bytes for the length of the file, then the checksums of its invariant data
        let invariant = self.written.as_ref().map_or_else(|| self.invariant.bytes(), |w| w.lock().bytes());
        Ok([self.frames.save()?, invariant].concat())
    }
    fn load(&mut self, saved: &[u8]) -> Result<()> {
        if saved.is_empty() && !self.trajectory() {
            return Ok(());
        }
        let wrong = || Error::Run("the checkpoint belongs to another pipeline".into());
        let (length, invariant) = saved.split_at_checked(8).ok_or_else(wrong)?;
        self.frames.load(length)?;
        self.invariant = Invariant::of(invariant).ok_or_else(wrong)?;
        Ok(())
    }
}
