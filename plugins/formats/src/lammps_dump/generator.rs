//! The generator.

use crate::lammps_dump::read::{Choice, read, skip};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a frame of a text dump of LAMMPS (`dump atom`, `dump custom`), whose atoms may stand in any order.
///
/// Taken are the time step, the box, and of each atom `id`, `type` or `element`, its place as `x y z`, `xs ys zs`, `xu yu zu` or
/// `xsu ysu zsu`, images `ix iy iz`, velocities `vx vy vz`, `mass`, `q` (as `charge`), `diameter` (or twice the `radius`) and `mol` (as
/// `molecule`); other columns are passed over. Particles are numbered in the order of their ids. Types are named by `element` if
/// each type has one of its own, else by their numbers. The box must be periodic and have right angles; its middle becomes 0. A
/// dump has no bonds. A file that ends in the midst of a frame, as a killed run leaves it, is read up to the frame before. It may
/// be compressed (.xz, .gz).
///
/// ```ron
/// LammpsDump(file: "melt.dump", frame: -1, types: ["A", "B"])
/// ```
#[component(Generator, "LammpsDump")]
#[derive(Debug, Params)]
pub struct ReadDump {
    /// File to read.
    #[param(extensions = "dump lammpstrj lammpsdump")]
    file: String,
    /// Frame, from 0; a negative number counts from the end, −1 is the last one.
    #[param(default = -1)]
    frame: i64,
    /// Names of the types 1, 2, …, instead of the file's.
    types: Option<Vec<String>>,
    /// Masses of the types 1, 2, …, where the dump has none; without it they are 1.
    masses: Option<Vec<f64>>,
    /// 3, or 2: then z is passed over.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    trajectory: Option<Trajectory>,
}

impl ReadDump {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::must_be_first("LammpsDump", snapshot)?;
        let choice = Choice { types: self.types.clone(), masses: self.masses.clone(), flat: self.dimensions == 2 };
        *snapshot = read(self.open(context)?.frame(number)?, &choice)?;
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut Trajectory> {
        if self.trajectory.is_none() {
            self.trajectory = Some(Trajectory::open(&context.path(&self.file), skip)?);
        }
        self.trajectory.as_mut().ok_or_else(|| Error::Run("the file is not open".into()))
    }
}

impl Generator for ReadDump {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, self.frame, snapshot)
    }
    fn frames(&mut self, context: &GeneratorContext) -> Result<Option<u64>> {
        Ok(Some(self.open(context)?.count()?))
    }
    fn frame(&mut self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, number as i64, snapshot)
    }
}
