//! The `Gro` generator.

use crate::frames::TextFrames;
use crate::gro::read::{Choice, read, skip};
use crate::names::TypeNames;
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a GRO file of GROMACS: a single state, or a frame of a trajectory.
///
/// | part | becomes |
/// |---|---|
/// | atom | particle in the order of the file: type = atom name (columns 11–15), position, velocity |
/// | residue number and name | molecule: consecutive atoms of one residue, counted from 0 |
/// | box | box, three numbers or nine if triclinic; its corner is 0 in the file, its center becomes 0 |
///
/// Numbers keep their units, nanometers and nanometers per picosecond. They may have any number of decimals: the distance
/// between decimal points is the width of a column, as in GROMACS. Without velocities, velocities are 0. Masses are 1 unless
/// `masses` defines them; the mass 0 is allowed for virtual sites. A molecule of several residues needs
/// `molecules: false`, and bonds of another source. The step is that of `step=` in the title.
///
/// Particles outside the box are wrapped, and their images count the shifts. An incomplete last frame of a trajectory is
/// ignored with a warning. The file may be compressed (.xz, .gz, .bz2, .zst).
///
/// ```ron
/// Gro(file: "system.gro", types: ["A", "B"], masses: [1.0, 2.0])
/// ```
#[component(Generator, "Gro")]
#[derive(Debug, Params)]
pub struct ReadGro {
    /// Input file.
    #[param(extensions = "gro")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    /// Type names in the desired order; other types follow.
    #[param(default = vec![].into())]
    types: TypeNames,
    /// Masses of the types, in the order of the types.
    #[param(at_least = 0.0)]
    masses: Option<Vec<f64>>,
    /// Whether residues are molecules.
    #[param(default = true)]
    molecules: bool,
    /// Number of dimensions, 3 or 2; 2 ignores z.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    open: TextFrames<()>,
}

impl ReadGro {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("Gro", snapshot)?;
        let choice = Choice {
            types: self.types.0.clone(),
            masses: self.masses.clone(),
            flat: self.dimensions == 2,
            molecules: self.molecules,
        };
        let (trajectory, ()) = self.open(context)?;
        *snapshot = read(trajectory.frame(number)?, &choice)?;
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

crate::frames::frame_generator!(ReadGro);
