//! The `Trr` generator.

use crate::gromacs::index::FramesOf;
use crate::gromacs::trr;
use galamost_plugin_api::prelude::*;

/// Reads positions, velocities, box, and step of a frame of a TRR file of GROMACS.
///
/// A TRR file has neither types nor bonds. An earlier generator must create the particles, in the same number and
/// order; this generator moves them to the positions of the frame. Without velocities in the frame, velocities become 0.
/// Forces are not read. Frames without positions are left out, with a warning.
///
/// Numbers keep their units, nanometers and picoseconds, and have single or double precision. The box extends from 0, its
/// center becomes 0. If the file has no box, the existing one is kept. Particles outside the box, as in
/// unwrapped trajectories, are wrapped, and their images count the shifts. An incomplete last frame, as left by a killed run,
/// is ignored with a warning.
///
/// ```ron
/// Trr(file: "trajectory.trr", frame: -1)
/// ```
#[component(Generator, "Trr")]
#[derive(Debug, Params)]
pub struct ReadTrr {
    /// Input file.
    #[param(extensions = "trr")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    frames: FramesOf<trr::Trr>,
}

impl ReadTrr {
    fn state(&mut self, context: &GeneratorContext, number: i64, s: &mut Snapshot) -> Result<()> {
        self.frames.place(&context.path(&self.file), number, self.step, s)
    }

    fn count(&mut self, context: &GeneratorContext) -> Result<u64> {
        Ok(self.frames.open(&context.path(&self.file))?.frames())
    }

    fn notices(&self) -> Vec<String> {
        self.frames.notices(&self.file)
    }
}

crate::frames::frame_generator!(ReadTrr);
