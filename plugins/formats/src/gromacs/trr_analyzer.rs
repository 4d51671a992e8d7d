//! The `Trr` analyzer.

use crate::gromacs::require_number;
use crate::gromacs::trr::{Contents, frame};
use crate::{positions, single};
use galamost_plugin_api::prelude::*;
use galamost_text::FrameFile;

/// Writes a TRR trajectory, readable by GROMACS, VMD, MDAnalysis, and MDTraj.
///
/// A frame contains step, time, box, and positions, and with `velocity` and `forces` velocities and forces, in single
/// precision, or in double precision with `double`. Numbers keep their units: use nanometers and picoseconds for GROMACS. The corner of the
/// box is 0. Steps beyond 2³¹ become 2³¹ − 1.
///
/// The format has no types, bonds, or images. Write a data or XML file for types and bonds, and use `unwrapped` for unwrapped
/// positions.
///
/// Each frame is written in one piece. A killed run therefore leaves complete frames, except possibly the last. A resumed
/// run truncates the file to its checkpoint.
///
/// ```ron
/// Trr(every: 1000, file: "trajectory.trr", forces: true)
/// ```
#[component(Analyzer, "Trr")]
#[derive(Debug, Params)]
pub struct WriteTrr {
    #[param(flatten)]
    schedule: Schedule,
    /// Output file.
    #[param(extensions = "trr")]
    file: String,
    /// Whether to write velocities.
    #[param(default = true)]
    velocity: bool,
    /// Whether to write the forces on the particles.
    #[param(default = false)]
    forces: bool,
    /// Whether to write double precision.
    #[param(default = false)]
    double: bool,
    /// Whether to write unwrapped positions.
    #[param(default = false)]
    unwrapped: bool,
    /// Number of particles.
    #[param(skip)]
    n: u64,
    #[param(skip)]
    out: FrameFile,
}

impl Analyzer for WriteTrr {
    fn bind(&mut self, system: &SystemInfo, needs: &mut Needs) -> Result<()> {
        self.schedule.bind(needs)?;
        needs.triclinic = true;
        needs.wants.particles = true;
        needs.wants.forces = self.forces;
        positions::check_bytes(system.n, if self.double { 24 } else { 12 })?;
        self.n = system.n;
        self.out.bind(system, needs, &self.file, |_| true)
    }
    fn start(&mut self, _: Host) -> Result<()> {
        self.out.start()
    }
    fn analyze(&mut self, f: &Frame<'_>) -> Result<()> {
        require_number(f, self.n)?;
        let (shape, position) = positions::from_corner(f, self.unwrapped);
        let force = self.forces.then(|| f.array("force").map(|(_, force)| force));
        let force = force.map(|found| found.ok_or_else(|| Error::Run("the forces are missing".into()))).transpose()?;
        let velocity = self.velocity.then(|| f.velocity());
        if !self.double {
            single::of_particles("position", 3, position.as_flattened()).map_err(Error::input)?;
            let velocity = velocity.unwrap_or_default().as_flattened();
            single::of_particles("velocity", 3, velocity).map_err(Error::input)?;
            single::of_particles("force", 3, force.unwrap_or_default()).map_err(Error::input)?;
        }
        let (step, time, double) = (f.step(), f.time(), self.double);
        self.out.append(&frame(&Contents { step, time, shape, position: &position, velocity, force, double }))
    }
    fn save(&mut self) -> Result<Vec<u8>> {
        self.out.save()
    }
    fn load(&mut self, state: &[u8]) -> Result<()> {
        self.out.load(state)
    }
}
