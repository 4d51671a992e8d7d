//! The generator.

use crate::lammps_data::read::{Choice, read};
use crate::lammps_data::style::Style;
use galamost_plugin_api::prelude::*;

/// Reads a state from a data file of LAMMPS, as `write_data`, moltemplate, topotools and many builders write it.
///
/// Taken are the box (with right angles; its middle becomes 0), `Masses`, `Atoms` with image flags, `Velocities`, `Bonds`, `Angles` and
/// `Dihedrals`; charges become the array `charge`, molecules `molecule` (LAMMPS's 1 is 0, its 0, no molecule, is −1), and the spheres
/// of the style `sphere` have a `diameter` and the mass ρ π d³/6 (or ρ, where d is 0). Coefficients of potentials and impropers are
/// passed over: potentials stand in the pipeline. `timestep = N` in the first line is the step that the run starts at.
///
/// The style of the atoms is the one that stands behind `Atoms #`; without it, `atom_style` must say it. Particles are numbered in
/// the order of their ids. Types are named by `types`, or by `Atom Type Labels`, or by the comments behind the masses if each is one
/// word and none stands twice, or by their numbers; types of bonds by `bond_types` and so on, by labels, or by their numbers. Without
/// masses they are 1. The file may be compressed (.xz, .gz).
///
/// ```ron
/// LammpsData(file: "melt.data", types: ["A", "B"])
/// ```
#[component(Generator, "LammpsData")]
#[derive(Clone, Debug, Params)]
pub struct ReadData {
    /// File to read.
    #[param(extensions = "data lmp lammps")]
    file: String,
    /// What stands in a row of `Atoms`, if the file does not say it.
    atom_style: Option<Style>,
    /// Names of the types 1, 2, …
    types: Option<Vec<String>>,
    /// Names of the types of bonds 1, 2, …
    bond_types: Option<Vec<String>>,
    /// Names of the types of angles 1, 2, …
    angle_types: Option<Vec<String>>,
    /// Names of the types of dihedrals 1, 2, …
    dihedral_types: Option<Vec<String>>,
    /// 3, or 2: then z is passed over.
    #[param(default = 3, at_least = 2, at_most = 3)]
    dimensions: u32,
}

impl Generator for ReadData {
    fn generate(&mut self, context: &GeneratorContext, snapshot: &mut Snapshot) -> Result<()> {
        crate::must_be_first("LammpsData", snapshot)?;
        let choice = Choice {
            style: self.atom_style,
            names: [&self.types, &self.bond_types, &self.angle_types, &self.dihedral_types].map(Clone::clone),
            flat: self.dimensions == 2,
        };
        *snapshot = read(&context.path(&self.file), &choice)?;
        Ok(())
    }
}
