//! The `Xtc` generator.

use crate::gromacs::index::FramesOf;
use crate::gromacs::xtc;
use galamost_plugin_api::prelude::*;

/// Reads positions, box, and step of a frame of an XTC file of GROMACS.
///
/// An XTC file has neither types nor bonds. An earlier generator must create the particles, in the same number and
/// order; this generator moves them to the positions of the frame. Their velocities become 0, since they do not belong
/// to this frame.
///
/// Numbers keep their units, nanometers. The box extends from 0, its center becomes 0. If the file has
/// no box, the existing one is kept. Particles outside the box, as in unwrapped trajectories, are wrapped, and their images
/// count the shifts. Files of large systems (with lengths of 64 bits) are read, too. An incomplete last frame, as left by a
/// killed run, is ignored with a warning.
///
/// ```ron
/// Xtc(file: "trajectory.xtc", frame: -1)
/// ```
#[component(Generator, "Xtc")]
#[derive(Debug, Params)]
pub struct ReadXtc {
    /// Input file.
    #[param(extensions = "xtc")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    #[param(skip)]
    frames: FramesOf<xtc::Xtc>,
}

impl ReadXtc {
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

crate::frames::frame_generator!(ReadXtc);
