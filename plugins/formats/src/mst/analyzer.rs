//! The analyzer.

use crate::mst::write::{Form, Once, state};
use galamost_plugin_api::prelude::*;
use galamost_text::{FrameFile, StateFile};

/// Writes an MST file (`mst_version 1.0`, the format of PyGAMD) every `every` steps: a trajectory, or, with `{step}` in the name, a
/// file for each state.
///
/// A trajectory has behind `invariant_data` what does not change: number of particles, box, types, masses, `charge`, `diameter`,
/// `body`, `molecule`, `inert`, `init`, `cris`, bonds, angles and dihedrals. Frames have the step, positions, images, velocities with
/// `velocity`, what turns, and everything of the above that is not as it was in the first frame, so bonds that form are there.
/// In a file for each state (`out.{step}.mst` gives `out.0000010000.mst`) all stands together; it is always whole. Numbers have as many
/// digits as it takes to read the same number back, unless `digits` asks for fewer.
///
/// Each frame is handed to the system as a whole, so a run that is killed leaves a file of whole frames, but for the one that was
/// being written. A resumed run cuts the file to its checkpoint. A run that is not resumed overwrites a file of the same name.
///
/// ```ron
/// Mst(every: 100, file: "trajectory.mst")
/// ```
#[component(Analyzer, "Mst")]
#[derive(Debug, Params)]
pub struct WriteMst {
    /// Steps from one frame to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write; `{step}` in it stands for the step.
    #[param(extensions = "mst")]
    file: String,
    /// Whether velocities are written.
    #[param(default = true)]
    velocity: bool,
    /// Digits behind the point, of numbers that are not whole.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    once: Once,
    #[param(skip)]
    states: StateFile,
    #[param(skip)]
    frames: FrameFile,
}

/// A word that neither splits nor looks like a comment.
fn good(name: &str) -> bool {
    !name.is_empty() && !name.contains(|c: char| c.is_whitespace() || c == '#')
}

impl WriteMst {
    fn trajectory(&self) -> bool {
        !self.file.contains("{step}")
    }
}

impl Analyzer for WriteMst {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        needs.wants.topology = true;
        self.states.bind(system, &self.file, good)?;
        if self.trajectory() { self.frames.bind(system, &self.file, good) } else { Ok(()) }
    }
    fn start(&mut self, _: Host) -> Result<()> {
        if !self.trajectory() {
            return Ok(());
        }
        self.frames.start()?;
        if self.frames.is_empty() {
            // the user moved the old file away: the new one begins with everything
            self.once = Once::default();
        }
        Ok(())
    }
    fn analyze(&mut self, frame: &Frame<'_>) -> Result<()> {
        let form = Form { velocity: self.velocity, digits: self.digits };
        let s = frame.snapshot(self.states.system());
        if !self.trajectory() {
            return self.states.write(s.step, &state(&s, form));
        }
        let (text, once) = self.once.frame(&s, form);
        self.frames.append(&text)?;
        self.once = once;
        Ok(())
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        if !self.trajectory() {
            return Ok(vec![]);
        }
        // the length of the file, 8 bytes, and what its begin says
        Ok([self.frames.save()?, self.once.bytes()].concat())
    }
    fn load(&mut self, saved: &[u8]) -> Result<()> {
        if saved.is_empty() && !self.trajectory() {
            return Ok(());
        }
        let wrong = || Error::Run("the checkpoint belongs to another pipeline".into());
        let (length, once) = saved.split_at_checked(8).ok_or_else(wrong)?;
        self.frames.load(length);
        self.once = Once::of(once).ok_or_else(wrong)?;
        Ok(())
    }
}
