//! The `LammpsDump` generator.

use crate::frames::TextFrames;
use crate::lammps_dump::read::{Choice, read, skip};
use crate::names::TypeNames;
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a frame of a LAMMPS text dump (`dump atom`, `dump custom`).
///
/// | column | becomes |
/// |---|---|
/// | `id` | order of the particles |
/// | `type`, `element` | type |
/// | `x y z`, `xs ys zs`, `xu yu zu`, or `xsu ysu zsu`; `ix iy iz` | position and image; without `ix iy iz`, unwrapped positions give the image |
/// | `vx vy vz` | velocity |
/// | `mass` | mass |
/// | `q` | `charge` |
/// | `diameter`, or twice the `radius` | `diameter` |
/// | `mol` | `molecule` |
///
/// Other columns are not read, nor are vectors that lack a component; a warning lists them. With `dimensions: 2`, vectors need no
/// component along z. Types are named by `element` if each type has a different one, otherwise by their
/// numbers. Types without numbers are numbered in the order of their first use by the particles.
/// The box may have tilts (`xy xz yz`); its center becomes 0. It is periodic here whatever its boundaries in the dump, with
/// a warning. Dumps have no bonds. An incomplete last
/// frame, as left by a killed run, is ignored with a warning. The file may be compressed (.xz, .gz, .bz2, .zst).
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
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    /// Names of the types 1, 2, …, or of types without numbers in the desired order; default: those of the file.
    types: Option<TypeNames>,
    /// Masses of the types 1, 2, …, or of types without numbers in their order, if the dump has none; default: 1. Masses are those of
    /// particles, so the mass of a type without atoms has no effect.
    masses: Option<Vec<f64>>,
    /// Number of dimensions, 3 or 2; 2 ignores components along z, which the dump may lack.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    open: TextFrames<()>,
}

impl ReadDump {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("LammpsDump", snapshot)?;
        let choice =
            Choice { types: self.types.clone().map(|t| t.0), masses: self.masses.clone(), flat: self.dimensions == 2 };
        *snapshot = read(self.open(context)?.0.frame(number)?, &choice)?;
        snapshot.step = self.step.unwrap_or(snapshot.step);
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut (Trajectory, ())> {
        self.open.open(&context.path(&self.file), skip, |_| Ok(()))
    }

    fn count(&mut self, context: &GeneratorContext) -> Result<u64> {
        Ok(self.open(context)?.0.count()?)
    }

    fn notices(&self) -> Vec<String> {
        self.open.warnings()
    }
}

crate::frames::frame_generator!(ReadDump);
