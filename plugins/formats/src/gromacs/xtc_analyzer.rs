//! The `Xtc` analyzer.

use crate::gromacs::require_number;
use crate::gromacs::xtc::{PLAIN, frame};
use crate::positions;
use galamost_plugin_api::prelude::*;
use galamost_text::FrameFile;

/// Writes an XTC trajectory, readable by GROMACS, VMD, MDAnalysis, and MDTraj.
///
/// A frame contains step, time, box, and positions as compressed integers in units of 1/`precision`: the rounding error is at
/// most 0.5/`precision`, 0.0005 for the default of GROMACS; an error of more than a tenth of the shortest box length is refused. Systems of at most nine particles have positions in single
/// precision. Coordinates beyond 2³¹/`precision` end the run with an error that names the particle. Numbers keep their units:
/// use nanometers and picoseconds for GROMACS. The corner of the box is 0. Steps beyond 2³¹ become 2³¹ − 1.
///
/// The format has no types, bonds, velocities, or images. Write a data or XML file for types and bonds, and use `unwrapped`
/// for unwrapped positions.
///
/// Each frame is written in one piece. A killed run therefore leaves complete frames, except possibly the last. A resumed
/// run truncates the file to its checkpoint.
///
/// ```ron
/// Xtc(every: 1000, file: "trajectory.xtc", precision: 10_000.0)
/// ```
#[component(Analyzer, "Xtc")]
#[derive(Debug, Params)]
pub struct WriteXtc {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    #[param(extensions = "xtc")]
    file: String,
    /// Positions are rounded to multiples of 1/`precision`; per unit of length.
    #[param(default = 1000.0, at_least = 1e-6, at_most = 1e9)]
    precision: f64,
    /// Whether to write unwrapped positions.
    #[param(default = false)]
    unwrapped: bool,
    /// Number of particles.
    #[param(skip)]
    n: u64,
    #[param(skip)]
    out: FrameFile,
}

impl Analyzer for WriteXtc {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        positions::check_bytes(system.n, 4)?;
        if system.n > PLAIN {
            positions::check_rounding(system, 0.5 / self.precision, "use a larger `precision`")?;
        }
        self.n = system.n;
        self.out.bind(system, needs, &self.file, |_| true)
    }
    fn start(&mut self, _: Host) -> Result<()> {
        self.out.start()
    }
    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        require_number(f, self.n)?;
        let (shape, position) = positions::from_corner(f, self.unwrapped);
        let bytes = frame(f.step(), f.time(), &shape, &position, self.precision).map_err(Error::input)?;
        self.out.append(&bytes)
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        self.out.save()
    }
    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.out.load(state)
    }
}
