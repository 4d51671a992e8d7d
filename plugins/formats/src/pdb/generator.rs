//! The generator.

use crate::pdb::columns::Extra;
use crate::pdb::common::Common;
use crate::pdb::read::{Choice, Molecules, read, skip};
use galamost_plugin_api::prelude::*;
use galamost_text::Trajectory;

/// Reads a state from a PDB file (wwPDB format 3.3): a file of one state, or a model of a trajectory.
///
/// Taken are the fixed columns of `ATOM` and `HETATM`: the name of the atom (13–16) as type, x, y, z (31–54); the box from `CRYST1`, which
/// must have right angles and reaches from 0 to a, b, c, so that its middle becomes 0; and bonds from `CONECT`, each once, named by the
/// types of their ends ("A-B"). Particles are numbered in the order of the file. A unit of length is `scale` Å: without `scale`
/// what the file says if this engine wrote it, else 1. A frame ends with `ENDMDL`, or with `END` where there is no `MODEL`; a file that
/// ends without either is cut off: of a trajectory the frames before are read. `CONECT` records outside of models count for all.
/// Alternate locations other than A or 1 are passed over, as are all other records. Particles outside of the box are brought back,
/// and counted in their images. Masses are 1 unless `masses` or a column says otherwise; velocities are 0. The file may be compressed
/// (.xz, .gz).
///
/// Numbers of atoms and residues may be in hybrid-36 (A0000 follows on 99999). Molecules are those that `molecules` says: `Residues` (chain,
/// number and insertion code), `Chains` (letter, up to a `TER`), or `Bonds`: what bonds hold together; without it `Residues` in a file
/// of this engine, where their numbers are those of the molecules, else `Bonds`. Occupancy and temperature factor are read if a field says
/// what they are: `Mass`, `Charge`, `Diameter` or `Body`.
///
/// ```ron
/// Pdb(file: "melt.pdb", scale: 10.0, b_factor: Charge)
/// ```
#[component(Generator, "Pdb")]
#[derive(Debug, Params)]
pub struct ReadPdb {
    /// File to read.
    #[param(extensions = "pdb ent")]
    file: String,
    /// Frame, from 0; a negative number counts from the end, −1 is the last one.
    #[param(default = -1)]
    frame: i64,
    /// Å in a unit of length.
    #[param(above = 0.0)]
    scale: Option<f64>,
    /// Names of types in the order that they are to have; others come behind them.
    #[param(default = vec![])]
    types: Vec<String>,
    /// Masses of the types, in their order.
    masses: Option<Vec<f64>>,
    /// Box lengths, where the file has none or others.
    #[param(unit = "length", above = 0.0)]
    box_length: Option<[f64; 3]>,
    /// What a molecule is.
    molecules: Option<Molecules>,
    /// What stands as occupancy (columns 55–60).
    occupancy: Option<Extra>,
    /// What stands as temperature factor (columns 61–66).
    b_factor: Option<Extra>,
    /// 3, or 2: then z is passed over.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
    #[param(skip)]
    open: Option<(Trajectory, Common)>,
}

impl ReadPdb {
    fn state(&mut self, context: &GeneratorContext, number: i64, snapshot: &mut Snapshot) -> Result<()> {
        crate::must_be_first("Pdb", snapshot)?;
        let choice = Choice {
            scale: self.scale,
            types: self.types.clone(),
            masses: self.masses.clone(),
            length: self.box_length,
            flat: self.dimensions == 2,
            molecules: self.molecules,
            occupancy: self.occupancy,
            b_factor: self.b_factor,
        };
        let (trajectory, common) = self.open(context)?;
        *snapshot = read(trajectory.frame(number)?, &choice, common)?;
        Ok(())
    }

    fn open(&mut self, context: &GeneratorContext) -> Result<&mut (Trajectory, Common)> {
        if self.open.is_none() {
            let mut trajectory = Trajectory::open(&context.path(&self.file), skip)?;
            let common = Common::of(trajectory.begin()?)?;
            self.open = Some((trajectory, common));
        }
        self.open.as_mut().ok_or_else(|| Error::Run("the file is not open".into()))
    }
}

impl Generator for ReadPdb {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, self.frame, snapshot)
    }
    fn frames(&mut self, context: &GeneratorContext) -> Result<Option<u64>> {
        Ok(Some(self.open(context)?.0.count()?))
    }
    fn frame(&mut self, context: &GeneratorContext, number: u64, snapshot: &mut Snapshot) -> Result<()> {
        self.state(context, number as i64, snapshot)
    }
}
