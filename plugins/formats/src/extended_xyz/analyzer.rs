//! The analyzer.

use crate::extended_xyz::write::{Form, frame};
use galamost_plugin_api::prelude::*;
use galamost_text::FrameFile;

/// Writes an extended XYZ trajectory, one frame every `every` steps, as OVITO, ASE and MDAnalysis read it.
///
/// The second line of a frame has the box (`Lattice`, with `Origin`, since it is centered at 0), the columns (`Properties`), `pbc` and
/// `Timestep`. Columns: `species` (the type's name), `pos`, `velo` with `velocity`, `mass` if one is not 1, and `charge`, `radius`
/// (half the diameter), `molecule`, `body`, `orientation` (the quaternion x y z w), `axis`, `rotation`, `inert`, `h_init`, `h_cris` if the
/// system has them. The format has no images: with `unwrapped` positions are those without periodic boundaries, of which a reader
/// can make them again. It has no bonds. Numbers have as many digits as it takes to read the same number back, unless `digits` asks
/// for fewer.
///
/// Each frame is handed to the system as a whole, so a run that is killed leaves a file of whole frames, but for the one that was
/// being written. A resumed run cuts the file to its checkpoint. A run that is not resumed overwrites a file of the same name.
///
/// ```ron
/// ExtendedXyz(every: 100, file: "trajectory.xyz", unwrapped: true)
/// ```
#[component(Analyzer, "ExtendedXyz")]
#[derive(Debug, Params)]
pub struct WriteXyz {
    /// Steps from one frame to the next.
    #[param(at_least = 1.0)]
    every: u64,
    /// File to write.
    #[param(extensions = "xyz extxyz exyz")]
    file: String,
    /// Whether velocities are written.
    #[param(default = false)]
    velocity: bool,
    /// Positions without periodic boundaries.
    #[param(default = false)]
    unwrapped: bool,
    /// Digits behind the point, of numbers that are not whole.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    out: FrameFile,
}

impl Analyzer for WriteXyz {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        needs.period = self.every;
        needs.wants.particles = true;
        self.system = system.clone();
        self.out.bind(system, &self.file, |name| !name.is_empty() && !name.contains(char::is_whitespace))
    }
    fn start(&mut self, _: Host) -> Result<()> {
        self.out.start()
    }
    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        let form = Form { velocity: self.velocity, unwrapped: self.unwrapped, digits: self.digits };
        self.out.append(&frame(&f.snapshot(&self.system), form))
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        self.out.save()
    }
    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.out.load(state);
        Ok(())
    }
}
