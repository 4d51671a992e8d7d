//! The `LammpsDump` generator.

use crate::lammps_dump::read::{Choice, read, skip};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a frame of a LAMMPS text dump (`dump atom`, `dump custom`).
///
/// | column | becomes |
/// |---|---|
/// | `id` | order of the particles |
/// | `type`, `element` | type |
/// | `x y z`, `xs ys zs`, `xu yu zu`, or `xsu ysu zsu`; `ix iy iz` | position and image |
/// | `vx vy vz` | velocity |
/// | `mass` | mass |
/// | `q` | `charge` |
/// | `diameter`, or twice the `radius` | `diameter` |
/// | `mol` | `molecule` |
///
/// Other columns are ignored. Types are named by `element` if each type has a different one, otherwise by their
/// numbers. The box must be periodic and orthogonal; its center becomes 0. Dumps have no bonds. An incomplete last
/// frame, as left by a killed run, is ignored. The file may be compressed (.xz, .gz).
///
/// ```ron
/// LammpsDump(file: "melt.dump", frame: -1, types: ["A", "B"])
/// ```
#[component(Generator, "LammpsDump")]
#[derive(Debug, Params)]
pub struct ReadDump {
    /// Input file.
    #[param(extensions = "dump lammpstrj lammpsdump")]
    file: String,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    /// Names of the types 1, 2, …; default: those of the file.
    types: Option<Vec<String>>,
    /// Masses of the types 1, 2, …, if the dump has none; default: 1.
    masses: Option<Vec<f64>>,
    /// Number of dimensions, 3 or 2; 2 ignores z.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    trajectory: Option<Trajectory>,
}

impl ReadDump {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("LammpsDump", snapshot)?;
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
