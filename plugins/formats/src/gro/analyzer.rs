//! The `Gro` analyzer.

use crate::gro::write::{WriteOptions, frame};
use crate::names::of_particles;
use crate::positions::check_rounding;
use galamost_plugin_api::prelude::*;
use galamost_text::FrameFile;

/// Writes a GRO trajectory, readable by GROMACS, VMD, and MDAnalysis.
///
/// Positions have `digits` decimals, and velocities one more; the rounding error of positions is at most 0.0005 for the
/// default of GROMACS, 3; an error of more than a tenth of the shortest box length is refused. Numbers keep their units: use nanometers and picoseconds for GROMACS. The box extends from 0 to L.
/// Coordinates that do not fit their columns (below −999 or from 10,000 on) end the run with an error that names the particle.
///
/// Atom names are type names of at most five characters. Each molecule is a residue with the name MOL and the number
/// molecule + 1; without molecules, each particle is one. Numbers of residues and atoms begin anew after 99,999. The format has
/// no bonds, masses, images, or charges. `unwrapped` writes unwrapped positions.
///
/// Each frame is written in one piece. A killed run therefore leaves complete frames, except possibly the last. A resumed
/// run truncates the file to its checkpoint.
///
/// ```ron
/// Gro(every: 1000, file: "trajectory.gro", digits: 6)
/// ```
#[component(Analyzer, "Gro")]
#[derive(Debug, Params)]
pub struct WriteGro {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    #[param(extensions = "gro")]
    file: String,
    /// Decimals of positions.
    #[param(default = 3, at_least = 1.0, at_most = 12.0)]
    digits: u32,
    /// Whether to write velocities.
    #[param(default = true)]
    velocity: bool,
    /// Whether to write unwrapped positions.
    #[param(default = false)]
    unwrapped: bool,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    out: FrameFile,
}

/// Returns whether a name fits its columns.
fn valid_name(name: &str) -> bool {
    (1..=5).contains(&name.len()) && name.bytes().all(|c| c.is_ascii_graphic())
}

impl Analyzer for WriteGro {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        check_rounding(system, 0.5 * 0.1f64.powi(self.digits as i32), "use more `digits`")?;
        self.system = system.clone();
        self.out.bind(&of_particles(system), needs, &self.file, valid_name)
    }
    fn start(&mut self, _: Host) -> Result<()> {
        self.out.start()
    }
    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        let options = WriteOptions { unwrapped: self.unwrapped, velocity: self.velocity, digits: self.digits as usize };
        self.out.append(&frame(&f.snapshot(&self.system), options).map_err(Error::input)?)
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        self.out.save()
    }
    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.out.load(state)
    }
}
