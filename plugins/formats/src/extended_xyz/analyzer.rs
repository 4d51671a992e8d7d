//! The `ExtendedXyz` analyzer.

use crate::extended_xyz::write::{WriteOptions, frame};
use crate::forces::Quantities;
use crate::names::of_particles;
use galamost_plugin_api::prelude::*;
use galamost_text::FrameFile;

/// Writes an extended XYZ trajectory, readable by OVITO, MDAnalysis, and, if types are named as chemical elements, ASE.
///
/// The second line of a frame contains the box (`Lattice`, and `Origin`, since the box is centered at 0), the columns
/// (`Properties`), `pbc`, and `Timestep`. Columns are `species` (type name), `pos`, `velo` (with `velocity`), `mass`
/// (if any differs from 1), and, if the system has them, `charge`, `radius` (half of the diameter), `molecule`, `body`,
/// `orientation` (quaternion x y z w), `axis`, `rotation`, `inert`, `h_init`, and `h_cris`.
///
/// Energies and virials of particles are defined on the page of `LammpsDump`.
///
/// The format has no images; use `unwrapped` to write positions from which a reader can reconstruct them. It has no
/// bonds. By default, numbers have as many digits as needed to read back the same number.
///
/// Each frame is written in one piece. A killed run therefore leaves complete frames, except possibly the last. A
/// resumed run truncates the file to its checkpoint.
///
/// ```ron
/// ExtendedXyz(every: 100, file: "trajectory.xyz", unwrapped: true)
/// ```
#[component(Analyzer, "ExtendedXyz")]
#[derive(Debug, Params)]
pub struct WriteXyz {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    #[param(extensions = "xyz extxyz exyz")]
    file: String,
    /// Whether to write velocities.
    #[param(default = false)]
    velocity: bool,
    /// Whether to write forces and energies of the particles (`forces`, `energies`).
    #[param(default = false)]
    forces: bool,
    /// Whether to write torques of the particles (`torques`), in the lab frame.
    #[param(default = false)]
    torques: bool,
    /// Whether to write virials of the particles (`virials`: xx, xy, xz, yy, yz, zz).
    #[param(default = false)]
    virials: bool,
    /// Whether to write unwrapped positions.
    #[param(default = false)]
    unwrapped: bool,
    /// Decimal places of real numbers; default: as many as needed.
    #[param(at_most = 17.0)]
    digits: Option<u32>,
    #[param(skip)]
    system: SystemInfo,
    #[param(skip)]
    out: FrameFile,
}

impl WriteXyz {
    fn quantities(&self) -> Quantities {
        Quantities { force: self.forces, energy: self.forces, torque: self.torques, virial: self.virials }
    }
}

impl Analyzer for WriteXyz {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        self.quantities().request(system, needs)?;
        self.system = system.clone();
        let named = of_particles(system);
        self.out.bind(&named, needs, &self.file, |name| !name.is_empty() && !name.contains(char::is_whitespace))
    }
    fn start(&mut self, _: Host) -> Result<()> {
        self.out.start()
    }
    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        let options = WriteOptions {
            velocity: self.velocity,
            quantities: self.quantities(),
            unwrapped: self.unwrapped,
            digits: self.digits,
        };
        self.out.append(&frame(&f.snapshot(&self.system), options))
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        self.out.save()
    }
    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.out.load(state)
    }
}
