//! The `Pdb` generator.

use crate::frames::TextFrames;
use crate::names::TypeNames;
use crate::pdb::columns::Extra;
use crate::pdb::common::Common;
use crate::pdb::read::{Choice, Molecules, read, skip};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a PDB file (wwPDB format 3.3): a single state, or a model of a trajectory.
///
/// | record | becomes |
/// |---|---|
/// | `ATOM`, `HETATM` | particles in the order of the file: type = atom name (13–16), position = x, y, z (31–54) |
/// | `CRYST1` | box with its angles; its corner is 0 in the file, its center becomes 0 |
/// | `CONECT` | bonds, each once, named by the types of their ends ("A-B"); records outside of models apply to all |
///
/// `scale` is the number of Å in a unit of length; default: the value in a file of this program, otherwise 1. A frame
/// ends with `ENDMDL`, or with `END` in a file without `MODEL`. An incomplete last frame of a trajectory is ignored with a
/// warning.
/// Other records, and alternate locations other than A or 1, are ignored. Particles outside the box are wrapped, and
/// their images count the shifts. Masses are 1 unless `masses` or a column defines them; velocities are 0. The file may
/// be compressed (.xz, .gz, .bz2, .zst).
///
/// Atom and residue numbers may be hybrid-36 (A0000 follows 99999). `molecules` selects what a molecule is: `Residues`
/// (chain, number, and insertion code), `Chains` (letter, up to a `TER`), or `Bonds` (bonded particles). The default is
/// `Residues` for files of this program, whose residue numbers are those of the molecules, and `Bonds` otherwise.
/// Occupancy and temperature factor are only read if `occupancy` or `b_factor` defines them as `Mass`, `Charge`,
/// `Diameter`, or `Body`.
///
/// ```ron
/// Pdb(file: "melt.pdb", scale: 10.0, b_factor: Charge)
/// ```
#[component(Generator, "Pdb")]
#[derive(Debug, Params)]
pub struct ReadPdb {
    /// Input file.
    #[param(extensions = "pdb ent")]
    file: String,
    /// Step at which the run starts; default: that of the file.
    step: Option<u64>,
    /// Frame number from 0; negative numbers count from the end, −1 is the last frame.
    #[param(default = -1)]
    frame: i64,
    /// Å per unit of length.
    #[param(above = 0.0)]
    scale: Option<f64>,
    /// Type names in the desired order; other types follow.
    #[param(default = vec![].into())]
    types: TypeNames,
    /// Masses of the types, in the order of the types.
    masses: Option<Vec<f64>>,
    /// Box lengths; default: those of the file.
    #[param(unit = "length", above = 0.0)]
    box_length: Option<[f64; 3]>,
    /// Definition of molecules: `Residues`, `Chains`, or `Bonds`.
    molecules: Option<Molecules>,
    /// Property in the occupancy (columns 55–60).
    occupancy: Option<Extra>,
    /// Property in the temperature factor (columns 61–66).
    b_factor: Option<Extra>,
    /// Number of dimensions, 3 or 2; 2 ignores z.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    open: TextFrames<Common>,
}

impl ReadPdb {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::require_empty("Pdb", snapshot)?;
        let choice = Choice {
            scale: self.scale,
            types: self.types.0.clone(),
            masses: self.masses.clone(),
            length: self.box_length,
            flat: self.dimensions == 2,
            molecules: self.molecules,
            occupancy: self.occupancy,
            b_factor: self.b_factor,
        };
        let (trajectory, common) = self.open(context)?;
        *snapshot = read(trajectory.frame(number)?, &choice, common)?;
        snapshot.step = self.step.unwrap_or(snapshot.step);
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut (Trajectory, Common)> {
        self.open.open(&context.path(&self.file), skip, |t| Common::of(t.begin()?))
    }

    fn count(&mut self, context: &GeneratorContext) -> Result<u64> {
        Ok(self.open(context)?.0.count()?)
    }

    fn notices(&self) -> Vec<String> {
        self.open.warnings()
    }
}

crate::frames::frame_generator!(ReadPdb);
